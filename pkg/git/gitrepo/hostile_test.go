package gitrepo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// poison gives a repository all by which git runs programs. $CANARY is touched by each.
const poison = `
mkdir -p evil
printf '#!/bin/sh\necho "$0 $*" >>"$CANARY"\ncat\n' >evil/run; chmod +x evil/run
R="$PWD/evil/run"
for h in applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout \
	post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite fsmonitor-watchman post-index-change; do
	cp evil/run evil/$h; cp evil/run .git/hooks/$h
done
git config core.hooksPath "$PWD/evil"
git config core.fsmonitor "$R"
git config core.pager "$R"; git config pager.diff "$R"; git config pager.log "$R"
git config core.editor "$R"; git config core.sshCommand "$R"; git config core.askPass "$R"; git config core.gitProxy "$R"; git config core.alternateRefsCommand "$R"
git config credential.helper "!$R"; git config gpg.program "$R"; git config commit.gpgSign true; git config log.showSignature true
git config uploadpack.packObjectsHook "$R"
git config diff.external "$R"; git config diff.spy.textconv "$R"; git config diff.spy.command "$R"
git config filter.spy.clean "$R"; git config filter.spy.smudge "$R"; git config filter.spy.process "$R"; git config filter.spy.required true
git config filter.lfs.clean "$R"; git config filter.lfs.smudge "$R"
git config merge.spy.driver "$R"; git config merge.default spy
git config alias.status "!$R"; git config alias.rev-parse "!$R"; git config alias.fetch "!$R"
git config trailer.task.command "$R"; git config interactive.diffFilter "$R"
git config sequence.editor "$R"; git config ssh.variant simple; git config protocol.ext.allow always
git config remote.origin.url "ext::$R"; git config remote.origin.uploadpack "$R"
git config submodule.mod.update "!$R"; git config submodule.recurse true; git config fetch.recurseSubmodules true; git config status.submoduleSummary true
`

// Nothing that a repository names as a program runs on the host, whatever is done with it.
func TestHostileRepository(t *testing.T) {
	user := userRepo(t)
	canary := filepath.Join(t.TempDir(), "canary")
	t.Setenv("CANARY", canary)
	sh(t, user, `printf '* filter=spy diff=spy merge=spy ident\n*.bin filter=lfs -text\n.gitattributes !filter\n' >.gitattributes
		printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n' >big.bin
		git add -A; git commit -qm attributes
		mkdir mod; git -C mod init -q; git -C mod commit -q --allow-empty -m m
		printf '[submodule "mod"]\n\tpath = mod\n\turl = ./mod\n[submodule "../../evil"]\n\tpath = evil2\n\turl = ./x\n' >.gitmodules
		git add .gitmodules; git -c advice.addEmbeddedRepo=false add mod; git commit -qm mod`)
	sh(t, user, strings.ReplaceAll(poison, "$CANARY", canary))
	sh(t, user, "cd mod; git config core.fsmonitor ../evil/run; mkdir -p hooks; git config core.hooksPath ../evil; echo x >x")
	r := &rig{t: t, ctx: t.Context(), user: user}
	r.begin(gitrepo.Limits{})

	write(t, user+"/.gitignore", "evil\n*.log\nnode_modules\n")
	sh(t, user, "touch numbers.txt; mkdir node_modules; echo m >node_modules/m")
	names, err := r.Changes(r.ctx, r.c)
	r.must(err)
	if got := strings.Join(names, " "); got != ".gitignore" {
		t.Errorf("changes: %s", got)
	}
	_, err = r.Snapshot(r.ctx, r.c, gitrepo.Message{Agent: "user"})
	refuses(t, err, team.InvalidState, ".gitignore", "filter spy")

	tr, err := r.Tree(r.ctx, gitrepo.Plan{Name: "t-001", At: r.head(), Member: "coder-1", From: r.c, Links: []string{"node_modules"}})
	r.must(err)
	if got := read(t, tr.Dir+"/big.bin"); !strings.HasPrefix(got, "version https://git-lfs") {
		t.Errorf("the pointer became %q", got)
	}
	sh(t, tr.Dir, "sed -i s/^3$/three/ numbers.txt")
	c, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
	r.must(err)
	other := r.tree("t-002")
	sh(t, other.Dir, "sed -i s/^4$/four/ numbers.txt; sed -i s/^9$/nine/ numbers.txt")
	d, err := r.Import(r.ctx, r.bundle(other, "T-002"), other.Base)
	r.must(err)
	head := r.take("T-001", c)
	m, err := r.Merge(r.ctx, head, d)
	r.must(err)
	if len(m.Conflicts) != 1 || m.Conflicts[0].Path != "numbers.txt" {
		t.Errorf("conflicts %+v", m.Conflicts)
	}
	_, err = other.Forward(r.ctx, command.Plain{}, d, head)
	r.must(err)
	var out strings.Builder
	for _, f := range []gitrepo.Form{gitrepo.Patch, gitrepo.Colours, gitrepo.Stat} {
		_, _, err = r.Diff(r.ctx, f, 1<<20, r.c.Head, head)
		r.must(err)
	}
	_, err = r.Undo(r.ctx, head, head, gitrepo.Message{Agent: "user", Undoes: "T-001"})
	r.must(err)
	r.must(r.Bundle(r.ctx, &out, "", head))
	if got := r.at(head, "numbers.txt"); !strings.Contains(got, "three") {
		t.Errorf("exported %q", got)
	}
	r.must(r.Publish(r.ctx, r.c, head))
	if text, err := os.ReadFile(canary); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("programs have run: %s %v", text, err)
	}
	// The canary sings where it is let.
	sh(t, user, "rm .git/hooks/* ; git -c alias.status= status >/dev/null 2>&1 || true; git diff >/dev/null 2>&1 || true")
	if _, err := os.Stat(canary); err != nil {
		t.Error("the poison does nothing: the test shows nothing")
	}
}

// Folders of another user, as on a volume, are safe for our git only: the user's git judges them as before.
func TestFoldersOfAnotherUser(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	settings := read(t, filepath.Join(home, ".gitconfig"))
	user := userRepo(t)
	bin := t.TempDir()
	write(t, bin+"/git", "#!/bin/sh\nexport GIT_TEST_ASSUME_DIFFERENT_OWNER=1\nexec "+git+` "$@"`+"\n")
	if err := os.Chmod(bin+"/git", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r := &rig{t: t, ctx: t.Context(), user: user}
	r.begin(gitrepo.Limits{})
	tr := r.tree("t-001")
	sh(t, tr.Dir, "sed -i s/^3$/three/ numbers.txt")
	c, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
	r.must(err)
	refuses(t, r.Publish(r.ctx, r.c, r.take("T-001", c)), "", "dubious ownership") // there the user's git works
	for _, dir := range []string{user, tr.Dir} {
		if out, err := exec.Command("git", "-C", dir, "status").CombinedOutput(); err == nil || !strings.Contains(string(out), "dubious ownership") {
			t.Errorf("the user's git in %s: %v, %s", dir, err, out)
		}
	}
	if now := read(t, filepath.Join(home, ".gitconfig")); now != settings {
		t.Errorf("the user's settings are %s", now)
	}
}

// A clone without all objects fetches them by programs of its config.
func TestHostilePartialClone(t *testing.T) {
	user := userRepo(t)
	canary := filepath.Join(t.TempDir(), "canary")
	sh(t, user, `git config extensions.partialClone origin; git config core.repositoryFormatVersion 1
		git config remote.origin.promisor true; git config remote.origin.url "$PWD"
		git config remote.origin.uploadpack "touch `+canary+`; git-upload-pack"
		rm -rf .git/objects/$(git rev-parse HEAD | cut -c1-2)`)
	_, err := gitrepo.Inspect(t.Context(), user)
	refuses(t, err, team.NotFound, "partial clone")
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program has run")
	}
}

func TestLook(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct{ script, dir, word string }{
		"no repository":      {"rm -rf .git", "", "in no git repository"},
		"no commit":          {"rm -rf .git; git init -q", "", "no commit"},
		"ignored":            {"mkdir -p node_modules/a", "node_modules/a", "is ignored"},
		"ignored by itself":  {"mkdir out; echo '*' >out/.gitignore; echo out >>.gitignore", "out", "is ignored"},
		"bare":               {"git config core.bare true; mv .git/* .; rm -rf .git", "", "bare"},
		"in .git":            {":", ".git", ""},
		"files elsewhere":    {"git config core.worktree ../..", "", "no .git is"},
		"a damaged config":   {"echo [ >.git/config", "", "cannot be used"},
		"a damaged HEAD":     {"echo x >.git/HEAD", "", ""},
		"not there":          {":", "gone", "no such file"},
		"other hashes":       {"rm -rf .git; git init -q --object-format=sha256; git add -A; git commit -qm x", "", "another hash"},
		"its commit is gone": {"rm -rf .git/objects/??", "", "no commit"},
	} {
		t.Run(name, func(t *testing.T) {
			user := userRepo(t)
			sh(t, user, tt.script)
			_, err := gitrepo.Inspect(ctx, filepath.Join(user, tt.dir))
			refuses(t, err, team.NotFound, tt.word)
			var e *team.Error
			if errors.As(err, &e); e == nil || e.Hint == "" && name != "not there" {
				t.Errorf("no hint: %v", err)
			}
		})
	}
	user := userRepo(t)
	sh(t, user, "mkdir -p sub/fresh; git branch -m trunk; git worktree add -q ../linked")
	c, err := gitrepo.Inspect(ctx, user+"/sub/fresh")
	if err != nil || c.Prefix != "sub/fresh" || c.Branch != "trunk" || string(c.Head) != sh(t, user, "git rev-parse HEAD") {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := gitrepo.Inspect(ctx, user+"/../linked"); err != nil || c.Prefix != "" || c.Branch != "linked" {
		t.Errorf("a linked work tree: %+v %v", c, err)
	}
}

func TestRecentGit(t *testing.T) {
	for version, ok := range map[string]bool{"2.39.5": true, "2.38.0": true, "2.37.9": false, "1.8.3.1": false, "3.0.0": true} {
		bin := t.TempDir()
		write(t, bin+"/git", "#!/bin/sh\necho git version "+version+"\n")
		if err := os.Chmod(bin+"/git", 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin)
		if err := gitrepo.NeedGit(t.Context()); (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		} else if err != nil {
			refuses(t, err, team.Unavailable, version, "too old")
		}
	}
}
