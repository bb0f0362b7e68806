# Runs in the root of a tree, inside its member's sandbox:
#   line commit BASE MOST_BYTES      all files as one commit on BASE, and that as a bundle
#   line forward SAME TO             from the files of SAME, if these are they, to those of TO
#   line reset FROM TO               to the files of TO, whatever these are; what is ignored stays
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

# stored prints the tree of the files as they are.
stored() { git -c advice.addEmbeddedRepo=false add -A 2>>"$tmp/said" && git write-tree 2>>"$tmp/said"; }
fresh() { rm -f "$GIT_INDEX_FILE" && git read-tree "$1" && stored; }

# moved makes the member's own git dir stand at a commit, with the index.
moved() {
	rm -f .git/index.lock .git/HEAD.lock
	cp -p "$GIT_INDEX_FILE" .git/index.line && mv .git/index.line .git/index || failed
	printf '%s\n' "$1" >.git/HEAD || failed
	answer moved
	exit 0
}

from=$2
git cat-file -e "$from^{commit}" || failed
if [ "$1" = reset ]; then
	{ [ -f .git/index ] && cp -p .git/index "$GIT_INDEX_FILE" && git read-tree --reset -u "$3"; } ||
		{ rm -f "$GIT_INDEX_FILE" && git read-tree "$from" && git read-tree --reset -u "$3"; } || failed
	git clean -ffdq || failed # repositories within the tree too
	moved "$3"
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
	[ $same = no ] || { answer nothing; exit 0; }
	commit=$(printf %s "$LINE_MESSAGE" | git commit-tree "$tree" -p "$from" -F -) || failed
	git update-ref refs/heads/agentteam/bundle "$commit" || failed
	git bundle create -q "$tmp/bundle" "$from..refs/heads/agentteam/bundle" || failed
	size=$(($(wc -c <"$tmp/bundle")))
	[ "$size" -le "$3" ] || { answer large "$size"; exit 0; }
	answer bundle "$size"
	cat "$tmp/bundle" >&3
	;;
forward)
	[ $same = yes ] || { answer changed; exit 0; }
	git read-tree -m -u "$from" "$3" || failed
	moved "$3"
	;;
esac
