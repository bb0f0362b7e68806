package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// A checkout that cannot be brought forward stays as it is, and the user learns what to do.
func TestLandRefused(t *testing.T) {
	for name, tt := range map[string]struct{ script, word string }{
		"a change":        {"echo x >>numbers.txt", "has changes: numbers.txt"},
		"a staged change": {"echo x >>numbers.txt; git add -A", "has changes: numbers.txt"},
		"moved":           {"echo x >y; git add -A; git commit -qm y", "has moved"},
		"a merge":         {"git commit -q --allow-empty -m side; git branch side; git reset -q --hard HEAD~1; git commit -q --allow-empty -m more; git merge -q --no-ff --no-commit side", "merge is under way"},
		"a new file":      {"echo mine >x", "not brought forward"},
		"moved by hand":   {"git branch agentteam/red; git switch -q agentteam/red; git commit -q --allow-empty -m x; git switch -q main", "moved by hand"},
		"its filter":      {"git config filter.own.smudge 'sh ./x'", "a filter of your git config"},
		"gone":            {"rm -rf .git", "no git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			head := r.work("T-001", "echo x >x; sed -i s/^3$/three/ numbers.txt")
			sh(t, r.user, tt.script)
			before := sh(t, r.user, "git rev-parse HEAD 2>/dev/null || true; cat numbers.txt x 2>/dev/null || true")
			err := r.Land(r.ctx, r.c, head)
			refuses(t, err, codeOf(err), tt.word)
			if after := sh(t, r.user, "git rev-parse HEAD 2>/dev/null || true; cat numbers.txt x 2>/dev/null || true"); after != before {
				t.Errorf("changed from %q to %q", before, after)
			}
		})
	}
}

// Hooks of the user do not run, since the line may have changed them; LFS' filter does.
func TestLandRunsNoHooks(t *testing.T) {
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	canary := filepath.Join(t.TempDir(), "canary")
	sh(t, r.user, `mkdir .husky; printf '#!/bin/sh\n' >.husky/post-merge; chmod +x .husky/post-merge; git config core.hooksPath .husky
		echo '*.up filter=up' >.gitattributes; git config filter.up.smudge 'tr a-z A-Z'; git config filter.up.clean 'tr A-Z a-z'; git add -A; git commit -qm hooks`)
	r.begin(gitrepo.Limits{})
	head := r.work("T-001", "printf '#!/bin/sh\\ntouch "+canary+"\\n' >.husky/post-merge; cp .husky/post-merge .husky/reference-transaction; cp .husky/post-merge .husky/post-checkout; echo abc >a.up")
	r.must(r.Land(r.ctx, r.c, head))
	if _, err := os.Stat(canary); err == nil {
		t.Error("a hook that a member has written has run")
	}
	if got := read(t, r.user+"/a.up"); got != "ABC\n" {
		t.Errorf("the user's filter has not run: %q", got)
	}
}

func TestSnapshot(t *testing.T) {
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	sh(t, r.user, `echo gone >gone; echo staged >staged; printf '*.crlf text eol=crlf\n' >.gitattributes; printf 'a\r\n' >a.crlf; mkdir secret
		git add -A; git commit -qm second; git init -q --bare ../mod; git clone -q ../mod mod 2>/dev/null; (cd mod; git commit -q --allow-empty -m m); git -c protocol.file.allow=always submodule add -q ./mod mod 2>/dev/null; git commit -qm mod
		echo /private >>.git/info/exclude`)
	r.begin(gitrepo.Limits{})
	if h, err := r.Snapshot(r.ctx, r.c, gitrepo.Message{Agent: team.UserAgent}); err != nil || h != r.c.Head {
		t.Errorf("without changes: %s %v", h, err)
	}
	sh(t, r.user, `sed -i s/^3$/three/ numbers.txt; rm gone; echo more >>staged; git add staged; echo most >>staged; echo n >new; echo f >forced.log; git add -f forced.log
		echo l >x.log; echo p >private; printf 'b\r\n' >a.crlf; (cd mod; echo x >x; git config core.fsmonitor 'touch canary'); touch .gitignore; chmod +x sub/inner.txt; ln -s new link; ln -s "$HOME" .agentteam; mkdir sub/.agentteam; echo t >sub/.agentteam/token; git add sub/.agentteam; git rm -q --cached .gitignore`)
	all := "git status --porcelain --ignore-submodules=all; git rev-parse HEAD; sha256sum .git/index; find . -path ./mod -prune -o -type f -print | sort | xargs sha256sum"
	sh(t, r.user, "git update-index -q --refresh || true")
	before := sh(t, r.user, all)
	names, err := r.Changes(r.ctx, r.c)
	r.must(err)
	if got := strings.Join(names, " "); got != "a.crlf forced.log gone link new numbers.txt staged sub/inner.txt" {
		t.Errorf("changes: %s", got)
	}
	h, err := r.Snapshot(r.ctx, r.c, gitrepo.Message{Subject: "Changes of the checkout", Agent: team.UserAgent})
	r.must(err)
	if after := sh(t, r.user, all+" | sed '/mod.canary/d'"); after != before {
		t.Errorf("the checkout has changed:\n%s\nwas:\n%s", after, before)
	}
	if _, err := os.Stat(r.user + "/mod/canary"); err == nil {
		t.Error("the submodule's config has run a program")
	}
	dir := filepath.Join(t.TempDir(), "out")
	r.must(r.Export(r.ctx, h, dir))
	if got := sh(t, dir, "ls -A; cat staged new forced.log link; test -x sub/inner.txt; od -c a.crlf | head -1"); got !=
		".gitattributes\n.gitignore\n.gitmodules\na.crlf\nforced.log\nlink\nmod\nnew\nnumbers.txt\nstaged\nsub\nstaged\nmore\nmost\nn\nf\nn\n0000000   b  \\r  \\n" {
		t.Errorf("the commit has %q", got)
	}
	files, err := r.Files(r.ctx, r.c.Head, h)
	r.must(err)
	if len(files) != len(names) {
		t.Errorf("the commit changes %+v", files)
	}
	next, err := r.Next(r.ctx, h, gitrepo.Message{Agent: team.UserAgent})
	if err != nil || next != h {
		t.Errorf("the goal begins at %s, not %s: %v", next, h, err)
	}
}

// A link in place of a folder, and a folder in place of a file, are taken along.
func TestSnapshotOfOtherKinds(t *testing.T) {
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	sh(t, r.user, "mkdir dir hidden; echo a >dir/a; echo b >file; echo c >hidden/c; git add -A; git commit -qm second; echo /hidden >>.git/info/exclude")
	r.begin(gitrepo.Limits{})
	sh(t, r.user, "rm -r dir file hidden; ln -s sub dir; ln -s sub hidden; mkdir file; echo d >file/d")
	h, err := r.Snapshot(r.ctx, r.c, gitrepo.Message{Agent: team.UserAgent})
	r.must(err)
	out := filepath.Join(t.TempDir(), "out")
	r.must(r.Export(r.ctx, h, out))
	if got := sh(t, out, "ls; readlink dir; cat file/d"); got != "dir\nfile\nnumbers.txt\nsub\nsub\nd" {
		t.Errorf("the commit has %q", got)
	}
}

// A next goal begins at what the user and the team have done since.
func TestNext(t *testing.T) {
	r := setUp(t)
	m := gitrepo.Message{Subject: "Begin", Agent: team.UserAgent}
	next := func() (gitrepo.Hash, error) {
		r.look()
		r.must(r.Fetch(r.ctx, r.c))
		return r.Next(r.ctx, r.c.Head, m)
	}
	head := r.work("T-001", "sed -i s/^3$/three/ numbers.txt")
	if got, err := next(); err != nil || got != head {
		t.Errorf("nothing landed: %s, want %s: %v", got, head, err)
	}
	sh(t, r.user, "echo u >u; git add -A; git commit -qm u")
	got, err := next()
	r.must(err)
	if !strings.Contains(r.at(got, "numbers.txt"), "three") || r.at(got, "u") != "u\n" {
		t.Error("not merged")
	}
	r.must(r.Move(r.ctx, head, got))
	if all, err := r.Log(r.ctx, r.c.Head, got); err != nil || len(all) != 2 || all[0].Task != "T-001" {
		t.Errorf("what is not landed: %+v %v", all, err)
	}
	r.must(r.Land(r.ctx, r.c, got))
	sh(t, r.user, "echo v >v; git add -A; git commit -qm v")
	if got, err := next(); err != nil || string(got) != sh(t, r.user, "git rev-parse HEAD") {
		t.Errorf("all landed: %s %v", got, err)
	}
	r.work("T-002", "sed -i s/^5$/five/ numbers.txt")
	sh(t, r.user, "sed -i s/^5$/cinq/ numbers.txt; git commit -qam w")
	_, err = next()
	refuses(t, err, team.Conflict, "numbers.txt")
	_, err = r.Next(r.ctx, "1234567890123456789012345678901234567890", m)
	refuses(t, err, team.NotFound, "not in the line's repository")
}

// What vanishes is named.
func TestVanished(t *testing.T) {
	r := setUp(t)
	sh(t, r.user, "git commit -q --allow-empty -m x")
	r.look()
	sh(t, r.user, "rm -rf .git")
	refuses(t, r.Fetch(r.ctx, r.c), team.NotFound, "not there any more")
	sh(t, r.dir, "rm -rf line.git")
	_, err := r.Head(r.ctx)
	refuses(t, err, team.NotFound, "not there any more")
	_, err = r.Tree(r.ctx, gitrepo.Plan{Name: "x", At: r.c.Head, Member: "coder-1"})
	refuses(t, err, team.NotFound, "not there any more")
}
