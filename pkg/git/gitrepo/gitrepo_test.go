package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

func codeOf(err error) team.Code {
	for _, c := range []team.Code{team.PermissionDenied, team.Conflict, team.Busy, team.NotFound, team.InvalidState, team.InvalidArgument, team.BudgetExceeded, team.Unavailable} {
		if errors.Is(err, c) {
			return c
		}
	}
	return ""
}

// The way of two tasks into the line and of the line to the user.
func TestLine(t *testing.T) {
	r := setUp(t)
	one, two := r.tree("t-001"), r.tree("t-002")
	sh(t, one.Dir, "sed -i s/^3$/three/ numbers.txt; echo new >new.txt; echo noise >x.log; git commit -qam 'on my own'")
	sh(t, two.Dir, "sed -i s/^17$/seventeen/ numbers.txt; rm sub/inner.txt")
	if got := sh(t, one.Dir, "git log --format=%an,%s"); got != "coder-1,on my own\nAda,first" {
		t.Errorf("the member sees %q", got)
	}
	first, err := r.Import(r.ctx, r.bundle(one, "T-001"), one.Base)
	r.must(err)
	second, err := r.Import(r.ctx, r.bundle(two, "T-002"), two.Base)
	r.must(err)
	if again, err := r.Import(r.ctx, r.bundle(two, "T-002"), two.Base); err != nil || again != second {
		t.Errorf("a second import: %s %v, want %s", again, err, second)
	}
	r.take("T-001", first)
	head := r.take("T-002", second)

	want := strings.NewReplacer("\n3\n", "\nthree\n", "\n17\n", "\nseventeen\n").Replace(numbers)
	if got := r.at(head, "numbers.txt"); got != want {
		t.Errorf("merged %q", got)
	}
	entries, err := r.Log(r.ctx, r.c.Head, head)
	r.must(err)
	if len(entries) != 2 || entries[0].Task != "T-001" || entries[1].Task != "T-002" || entries[1].Agent != "coder-1" || entries[1].Commit != head {
		t.Errorf("log %+v", entries)
	}
	files, err := r.Files(r.ctx, r.c.Head, head)
	r.must(err)
	if len(files) != 3 || files[0] != (gitrepo.File{Path: "new.txt", Added: 1}) || files[1] != (gitrepo.File{Path: "numbers.txt", Added: 2, Deleted: 2}) {
		t.Errorf("files %+v", files)
	}
	if got := read(t, r.user+"/numbers.txt"); got != numbers {
		t.Error("the user's checkout has changed")
	}
	r.must(r.Land(r.ctx, r.c, head))
	if got := read(t, r.user+"/numbers.txt"); got != want {
		t.Errorf("landed %q", got)
	}
	if got := sh(t, r.user, "git status --porcelain; git rev-parse HEAD agentteam/red"); got != string(head+"\n"+head) {
		t.Errorf("after landing: %q", got)
	}
	if got := sh(t, r.user, "git log -1 --format='%an %(trailers:key=Task,valueonly)%(trailers:key=Agent,valueonly)%(trailers:key=Team,valueonly)'"); got != "coder-1 T-002\ncoder-1\nred\n" {
		t.Errorf("the commit says %q", got)
	}
}

// A difference beyond the limit has the whole lines that fit, also where git would print much more.
func TestDiffUpTo(t *testing.T) {
	r := setUp(t)
	head := r.work("T-001", "seq 1 200000 >many.txt")
	all, whole, err := r.Diff(r.ctx, gitrepo.Patch, 4<<20, r.c.Head, head)
	r.must(err)
	if !whole || !strings.HasSuffix(all, "\n+200000\n") {
		t.Fatalf("whole %v, ends in %.20q", whole, all[max(0, len(all)-20):])
	}
	first := strings.Index(all, "\n") + 1
	for most, want := range map[int]int{0: 0, first - 1: 0, first: first, first + 1: first, len(all) - 1: len(all) - len("+200000\n"), len(all): len(all)} {
		if got, whole, err := r.Diff(r.ctx, gitrepo.Patch, int64(most), r.c.Head, head); err != nil || got != all[:want] || whole != (want == len(all)) {
			t.Errorf("of %d bytes: %d, want %d; whole %v, %v", most, len(got), want, whole, err)
		}
	}
}

func TestMoveOnce(t *testing.T) {
	r := setUp(t)
	head := r.head()
	var wg sync.WaitGroup
	won, lost := 0, 0
	var mu sync.Mutex
	for i := range 8 {
		m := message("T-001")
		m.Body = strings.Repeat("x", i+1)
		tree := gitrepo.Hash(sh(t, r.user, "git rev-parse HEAD^{tree}"))
		next, err := r.Commit(r.ctx, tree, m, head)
		r.must(err)
		wg.Go(func() {
			err := r.Move(r.ctx, head, next)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, team.Conflict):
				lost++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 7 {
		t.Errorf("%d won and %d lost", won, lost)
	}
	now := r.head()
	r.must(r.Move(r.ctx, head, now)) // where it is already
	err := r.Move(r.ctx, now, r.c.Head)
	refuses(t, err, team.Conflict, "lacks its head")
}

func TestNothingToCommit(t *testing.T) {
	r := setUp(t)
	tr := r.tree("t-001")
	sh(t, tr.Dir, "touch numbers.txt; echo noise >x.log")
	if b := r.bundle(tr, "T-001"); b != nil {
		t.Errorf("a bundle of %d bytes", len(b))
	}
}

// What a member does to its own git dir is its own affair: its files get into the line, and no
// program that it has planted runs for that.
func TestMembersGitDir(t *testing.T) {
	for name, script := range map[string]string{
		"removed":   "rm -rf .git",
		"made anew": "rm -rf .git; git init -q; git add -A; git commit -qm mine",
		"locked":    "touch .git/index.lock .git/HEAD.lock",
		"damaged":   "echo x >.git/index; echo x >.git/HEAD; echo x >.git/config",
		"pruned":    "git add -A; rm -rf .git/objects",
		"elsewhere": "git checkout -q --orphan other; git add -A; git commit -qm other; git branch -D work/t-001",
		"programs": `mkdir -p .git/hooks
			for h in pre-commit post-commit post-index-change reference-transaction post-checkout prepare-commit-msg commit-msg; do
			printf '#!/bin/sh\ntouch "$CANARY"\n' >.git/hooks/$h; chmod +x .git/hooks/$h; done
			echo '* filter=spy diff=spy merge=spy' >.gitattributes
			git config filter.spy.clean 'touch "$CANARY"; cat'; git config filter.spy.smudge 'touch "$CANARY"; cat'
			git config core.fsmonitor 'touch "$CANARY"'; git config gpg.program 'touch "$CANARY"'; git config commit.gpgsign true`,
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			canary := filepath.Join(t.TempDir(), "canary")
			tr := r.tree("t-001")
			sh(t, tr.Dir, "sed -i s/^3$/three/ numbers.txt; "+strings.ReplaceAll(script, "$CANARY", canary))
			os.Remove(canary) // the script's own git may have run them
			head := r.take("T-001", func() gitrepo.Hash {
				c, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
				r.must(err)
				return c
			}())
			if got := r.at(head, "numbers.txt"); !strings.Contains(got, "\nthree\n") {
				t.Errorf("the line has %q", got)
			}
			if _, err := os.Stat(canary); err == nil {
				t.Error("a program of the member has run")
			}
		})
	}
}

// Large files are refused before git packs them, with the largest of them.
func TestTooLargeToBePacked(t *testing.T) {
	r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
	r.begin(gitrepo.Limits{Bundle: 1 << 20})
	tr := r.tree("t-008")
	for script, want := range map[string]string{
		"truncate -s 3M 'a big'; echo x >small":     "a big (3 MiB)", // sparse: packed it is small
		"truncate -s 1M a b; truncate -s 900K c d":  "a (1 MiB)",
		"truncate -s 3M zoo; git add zoo":           "zoo (3 MiB)",
		"truncate -s 3M numbers.txt; rm .gitignore": "numbers.txt (3 MiB)",
	} {
		sh(t, tr.Dir, script)
		_, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-008"))
		refuses(t, err, team.BudgetExceeded, "a file may have at most 1048576 bytes")
		refuses(t, err, team.BudgetExceeded, want)
		sh(t, tr.Dir, "git reset -q --hard; git clean -fdq; rm -f objects")
	}
	sh(t, tr.Dir, "truncate -s 1M a; git rm -q numbers.txt; truncate -s 9M x.log")
	b, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-008"))
	r.must(err)
	_, err = r.Import(r.ctx, b, tr.Base)
	r.must(err)
}

func TestCommitRefused(t *testing.T) {
	r := setUp(t)
	t.Run("an unreadable file", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root reads all files")
		}
		tr := r.tree("t-001")
		sh(t, tr.Dir, "echo x >secret; chmod 0 secret")
		_, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-001"))
		refuses(t, err, team.InvalidState, "secret")
	})
	t.Run("a repository inside without a commit", func(t *testing.T) {
		tr := r.tree("t-002")
		sh(t, tr.Dir, "mkdir -p 'web app' ; git init -q 'web app/inner'; echo x >'web app/inner/x'")
		_, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-002"))
		refuses(t, err, team.InvalidState, "web app/inner is a separate git repository", "remove web app/inner/.git", "have .gitignore name web app/inner/")
		sh(t, tr.Dir, "rm -rf 'web app/inner/.git'") // as it was advised
		if c, err := r.Import(r.ctx, r.bundle(tr, "T-002"), tr.Base); err != nil || r.at(c, "web app/inner/x") != "x\n" {
			t.Errorf("after the advice: %v", err)
		}
	})
	t.Run("what git says of a file", func(t *testing.T) {
		for name, tt := range map[string]struct {
			script string
			words  []string
		}{
			"t-011": {"printf 'a.txt working-tree-encoding=UTF-16\n' >.gitattributes; echo a >a.txt", []string{"a.txt is not in the working-tree-encoding", "change .gitattributes"}},
			"t-012": {"mkdir sub/git~1; echo a >sub/git~1/f", []string{"sub/git~1/f is a name that some systems", "rename it, or remove it"}},
			"t-013": {"git init -q sub/deep; chmod 755 sub", []string{"sub/deep is a separate git repository", "remove sub/deep/.git"}},
		} {
			tr := r.tree(name)
			sh(t, tr.Dir, tt.script)
			_, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-011"))
			refuses(t, err, team.InvalidState, tt.words...)
		}
	})
	t.Run("seen from the member's folder", func(t *testing.T) {
		r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
		r.begin(gitrepo.Limits{})
		var err error
		r.c, err = gitrepo.Inspect(r.ctx, filepath.Join(r.user, "sub"))
		r.must(err)
		tr := r.tree("t-014")
		sh(t, tr.Dir, "git init -q ../app")
		_, _, err = tr.Commit(r.ctx, command.Plain{}, message("T-014"))
		refuses(t, err, team.InvalidState, "../app is a separate git repository", "remove ../app/.git")
	})
	t.Run("a repository inside", func(t *testing.T) {
		tr := r.tree("t-003")
		sh(t, tr.Dir, "git init -q inner; cd inner; echo x >x; git add x; git -c user.name=x -c user.email=x commit -qm x")
		_, err := r.Import(r.ctx, r.bundle(tr, "T-003"), tr.Base)
		refuses(t, err, team.InvalidArgument, "inner is a separate git repository", "remove inner/.git")
	})
	t.Run("a changed submodule", func(t *testing.T) {
		r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
		sh(t, r.user, "git init -q mod; git -C mod commit -q --allow-empty -m m; git -c advice.addEmbeddedRepo=false add mod; git commit -qm mod")
		r.begin(gitrepo.Limits{})
		for name, script := range map[string]string{"t-001": "git init -q mod; git -C mod -c user.name=x -c user.email=x commit -q --allow-empty -m other", "t-002": "rmdir mod"} {
			tr := r.tree(name)
			sh(t, tr.Dir, script)
			_, err := r.Import(r.ctx, r.bundle(tr, "T-001"), tr.Base)
			refuses(t, err, team.InvalidArgument, "changes the submodule mod")
		}
		tr := r.tree("t-003") // as it is it stays
		sh(t, tr.Dir, "sed -i s/^3$/three/ numbers.txt")
		_, err := r.Import(r.ctx, r.bundle(tr, "T-003"), tr.Base)
		r.must(err)
	})
	t.Run("too large", func(t *testing.T) {
		r := &rig{t: t, ctx: t.Context(), user: userRepo(t)}
		r.begin(gitrepo.Limits{Bundle: 4 << 10})
		tr := r.tree("t-004")
		sh(t, tr.Dir, "head -c 4000 /dev/urandom >big; cp big more; head -c 3000 /dev/urandom >big; sed -i s/^3$/three/ numbers.txt")
		same, before := unchanged(t, r), sh(t, tr.Dir, "git status --porcelain")
		_, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-004"))
		refuses(t, err, team.BudgetExceeded, "its bundle has")
		same()
		if got := sh(t, tr.Dir, "git status --porcelain"); got != before {
			t.Errorf("the tree has %s, and had %s", got, before)
		}
		sh(t, tr.Dir, "rm big more")
		_, err = r.Import(r.ctx, r.bundle(tr, "T-004"), tr.Base) // without it the work gets in
		r.must(err)
	})
	t.Run("without git", func(t *testing.T) {
		tr := r.tree("t-005")
		t.Setenv("PATH", t.TempDir())
		_, _, err := tr.Commit(r.ctx, command.Plain{}, message("T-005"))
		if err == nil {
			t.Fatal("no error")
		}
		refuses(t, gitrepo.NeedGit(t.Context()), team.Unavailable, "no git")
	})
}
