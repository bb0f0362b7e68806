# Runs in the root of a tree, inside its member's sandbox:
#   line commit BASE MOST_BYTES      all files as one commit on BASE, and that as a bundle; then the names that no commit has.
#                                    Beyond MOST_BYTES in a file, or twice that in all, only the sizes of the largest three
#   line forward SAME TO             from the files of SAME, if these are they, to those of TO
#   line reset FROM TO               to the files of TO, whatever these are; what is ignored stays
#   line onto SAME FILES TO          from the files of SAME, if these are they, to FILES, which are changes of TO
#   line list BASE                   the names of what differs from BASE ("c"), of what is ignored ("i"), of submodules with files ("s"),
#                                    and of what cannot be read ("u")
#   line save BASE MOST_BYTES NAME.. all files but these of the names as one commit on BASE, what is ignored as one
#                                    on that, and both as a bundle
# LINE_OBJECTS is where the objects of the line are; they can be read only.
#
# Its git dir is made for this one run, so nothing that the member has written into its own, no
# hook, filter, lock or damage, has a say. Only the index is taken from there, which saves
# reading all files, and the objects that it names.
set -u -o pipefail
top=$PWD
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
exec 3>&1 >"$tmp/said" 2>&1

answer() { printf 'agentteam-line %s\n' "$*" >&3; }
failed() {
	answer failed
	tail -c 1500 "$tmp/said" >&3
	exit 1
}

export GIT_DIR=$tmp/git GIT_WORK_TREE=$top GIT_INDEX_FILE=$tmp/index
git init -q --template= --object-format=sha1 || failed
export GIT_ALTERNATE_OBJECT_DIRECTORIES=$LINE_OBJECTS:$top/.git/objects
mkdir -p "$GIT_DIR/info"
[ ! -f .git/info/exclude ] || cp .git/info/exclude "$GIT_DIR/info/exclude"
[ ! -f .git/shallow ] || cp .git/shallow "$GIT_DIR/shallow"
git config core.checkStat minimal

# stored prints the tree of the files as they are, also of those at which the member's git does not look.
stored() {
	git ls-files -z -v | sed -zn 's/^[Ss] //p' | git update-index -z --no-skip-worktree --stdin 2>>"$tmp/said"
	git -c advice.addEmbeddedRepo=false add -A 2>>"$tmp/said" && git write-tree 2>>"$tmp/said"
}
fresh() { rm -f "$GIT_INDEX_FILE" && git read-tree "$1" && stored; }

# moved makes the member's own git dir stand at a commit, with the index.
moved() {
	rm -f .git/index.lock .git/HEAD.lock
	cp -p "$GIT_INDEX_FILE" .git/index.line && mv .git/index.line .git/index || failed
	printf '%s\n' "$1" >.git/HEAD || failed
	answer moved
	exit 0
}

bundle() { # of the commit $1, in at most $2 bytes, with the names in the file $3
	git update-ref refs/heads/agentteam/bundle "$1" || failed
	git bundle create -q "$tmp/bundle" "$from..refs/heads/agentteam/bundle" || failed
	size=$(($(wc -c <"$tmp/bundle")))
	[ "$size" -le "$2" ] || { answer large "$size"; exit 0; }
	answer bundle "$size" "$(($(wc -c <"$3")))"
	cat "$tmp/bundle" "$3" >&3
	exit 0
}
commit() { printf %s "$LINE_MESSAGE" | git commit-tree "$1" -p "$2" -F -; }
ignored() { git ls-files -z --others --ignored --exclude-standard --directory; }
unseen() { # lists what no commit has
	ignored | while IFS= read -r -d '' name; do printf 'i%s\0' "$name"; done &&
		git ls-files -z --stage | sed -zn 's/^160000 [^\t]*\t//p' | while IFS= read -r -d '' name; do [ -z "$(ls -A "./$name" 2>/dev/null)" ] || printf 's%s/\0' "$name"; done
}

from=$2
git cat-file -e "$from^{commit}" || failed
if [ "$1" = reset ]; then
	{ [ -f .git/index ] && cp -p .git/index "$GIT_INDEX_FILE" && git read-tree --reset -u "$3"; } ||
		{ rm -f "$GIT_INDEX_FILE" && git read-tree "$from" && git read-tree --reset -u "$3"; } || failed
	git clean -ffdq || failed # repositories within the tree too
	moved "$3"
fi
if [ "$1" = list ] || [ "$1" = save ] || [ "$1" = commit ]; then
	# What the member has added to its own index counts as any other file.
	{ [ -f .git/index ] && cp -p .git/index "$GIT_INDEX_FILE" && git read-tree -i -m "$from"; } ||
		{ rm -f "$GIT_INDEX_FILE" && git read-tree "$from"; } || failed
fi
case $1 in
list)
	{ git ls-files -z --modified --others --exclude-standard | while IFS= read -r -d '' name; do printf 'c%s\0' "$name"; done && unseen; } >"$tmp/names" || failed
	# Git leaves out in silence what it cannot read.
	find . -path ./.git -prune -o \( -type d \( ! -readable -o ! -executable \) -o -type f ! -readable \) -printf 'u%P\0' -prune >>"$tmp/names"
	answer list "$(($(wc -c <"$tmp/names")))"
	cat "$tmp/names" >&3
	exit 0
	;;
save)
	most=$3
	shift 3
	declare -A out
	but=() none=()
	for name in "$@"; do
		pattern=":(exclude,top,literal)${name:1}"
		none+=("${pattern%/}")
		if [ "${name:0:1}" = i ]; then out[${name:1}]=1; else but+=("${pattern%/}"); fi
	done
	git -c advice.addEmbeddedRepo=false add -A -- . "${but[@]}" && tree=$(git write-tree) || failed
	ignored | while IFS= read -r -d '' name; do [ "${out[$name]-}" ] || printf ':(top,literal)%s\0' "$name"; done >"$tmp/names" || failed
	whole=$tree
	if [ -s "$tmp/names" ]; then
		[ ${#none[@]} = 0 ] || printf '%s\0' "${none[@]}" >>"$tmp/names"
		git add -f --pathspec-from-file="$tmp/names" --pathspec-file-nul && whole=$(git write-tree) || failed
	fi
	[ "$whole" != "$(git rev-parse "$from^{tree}")" ] || { answer nothing 0 0; exit 0; }
	tip=$(commit "$tree" "$from") || failed
	[ "$whole" = "$tree" ] || tip=$(commit "$whole" "$tip") || failed
	bundle "$tip" "$most" /dev/null
	;;
esac
if [ "$1" = commit ]; then
	# Git packs large files for minutes before it knows their size.
	git ls-files -z --modified --others --exclude-standard | du -0bc --files0-from=- >"$tmp/sizes" 2>/dev/null
	sed -z '$d' "$tmp/sizes" | sort -zrn | sed -zn '1,3p' >"$tmp/largest"
	IFS=$'\t' read -r -d '' total _ < <(sed -zn '$p' "$tmp/sizes") || total=0
	IFS=$'\t' read -r -d '' size _ <"$tmp/largest" || size=0
	[ "$total" -le $((2 * $3)) ] && [ "$size" -le "$3" ] || { answer heavy; cat "$tmp/largest" >&3; exit 0; }
	rm -f "$GIT_INDEX_FILE"
fi
tree=
# With its time: git compares that with those of files, to know which have changed within the
# second in which it was written.
if [ -f .git/index ] && cp -p .git/index "$GIT_INDEX_FILE"; then
	tree=$(stored) || tree=
fi
if [ -z "$tree" ]; then
	: >"$tmp/said"
	tree=$(fresh "$from") || failed
fi
same=no
[ "$tree" != "$(git rev-parse "$from^{tree}")" ] || same=yes

case $1 in
commit)
	unseen | sed -zn '1,1000p' >"$tmp/names" || failed
	[ $same = no ] || { answer nothing 0 "$(($(wc -c <"$tmp/names")))"; cat "$tmp/names" >&3; exit 0; }
	commit=$(commit "$tree" "$from") || failed
	bundle "$commit" "$3" "$tmp/names"
	;;
onto)
	[ $same = yes ] || { answer changed; exit 0; }
	git read-tree -m -u "$from" "$3" || failed
	git read-tree -i -m "$3" "$4" || failed # the files stay: they are changes of this one
	moved "$4"
	;;
forward)
	[ $same = yes ] || { answer changed; exit 0; }
	git read-tree -m -u "$from" "$3" || failed
	moved "$3"
	;;
esac
