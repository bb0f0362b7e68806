package hands_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/hands"
	"agentteam/pkg/team"
)

// unchanged has a test see that a user's files below a folder are as they were, and that none was added.
func unchanged(t *testing.T, dir string) (check func()) {
	t.Helper()
	state := func() string {
		out, err := exec.Command("sh", "-c", `find "$1" -exec stat -c '%n %F %f %i' {} + | sort && find "$1" -type f -exec cksum {} + | sort`, "sh", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	before := state()
	return func() {
		t.Helper()
		if now := state(); now != before {
			t.Errorf("%s was\n%s\nand is\n%s", dir, before, now)
		}
	}
}

// What the user's git and the user's programs obey in a shared folder no command changes, at each level, nor
// puts anything else in its place.
func TestRepositoryIsKept(t *testing.T) {
	levels(t, func(r *rig) {
		put(r.T, filepath.Join(r.dir, ".git", "config"), `[core]
	hooksPath = .husky/_
	fsmonitor = "tools/watch.sh --fast"
[include]
	path = ../settings/more
[includeIf "onbranch:x"]
	path = ../settings/absent
[filter "clean"]
	smudge = sh 'tools/smudge.sh' main.go2
[pager]
	log = tools/run/pager.sh
[core]
	alternateRefsCommand = tools/run/refs.sh
[submodule "x"]
	update = !tools/run/update.sh
[gpg "ssh"]
	defaultKeyCommand = sh tools/run/key.sh
[trailer "x"]
	cmd = tools/run/trailer.sh
	command = tools/run/old-trailer.sh
[gc]
	recentObjectsHook = tools/run/recent.sh
`)
		for name, text := range map[string]string{
			".git/HEAD": "ref: refs/heads/main\n", "settings/more": "[diff]\n\texternal = ./deep/down/diff.sh\n", "settings/free": "x", "tools/watch.sh": "x",
			"tools/smudge.sh": "x", "tools/free.sh": "x", "tools/run/pager.sh": "x", "tools/run/refs.sh": "x", "tools/run/update.sh": "x",
			"tools/run/key.sh": "x", "tools/run/trailer.sh": "x", "tools/run/old-trailer.sh": "x", "tools/run/recent.sh": "x", "deep/down/diff.sh": "x", "deep/free": "x", "src/main.go": "x", ".husky/pre-commit": "x",
		} {
			put(r.T, filepath.Join(r.dir, name), text)
		}
		if err := os.Symlink(".git", filepath.Join(r.dir, "way")); err != nil {
			r.Fatal(err)
		}
		if _, err := r.open("coder-1"); err != nil { // which makes what is named and absent
			r.Fatal(err)
		}
		kept := []string{".git", ".husky", "team.yaml", "settings/more", "settings/absent", "tools/watch.sh", "tools/smudge.sh", "tools/run", "deep/down/diff.sh"}
		var checks []func()
		for _, path := range kept {
			checks = append(checks, unchanged(r.T, filepath.Join(r.dir, path)))
		}
		for _, line := range []string{
			"echo x >> .git/config", "rm -rf .git .husky settings tools deep team.yaml", "mv .git away; mkdir .git; echo x > .git/config", "mv .husky away; mkdir -p .husky/_; echo x > .husky/_/pre-commit",
			"mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", "echo x > src/hook; mv src/hook .git/hook; ln src/hook .git/hook; ln -s ../src/hook .git/hook",
			"echo x >> way/config; echo x > way/new", "ln .git/config src/config && echo x >> src/config", "echo x >> .husky/pre-commit", "mkdir -p .husky/_; echo x > .husky/_/pre-commit", "git config core.pager 'echo x'", "git commit --allow-empty -m x",
			"echo x > team.yaml; mv src/hook team.yaml", "echo x >> settings/more", "echo x >> settings/absent; rm settings/absent; mv settings gone", "echo x >> tools/watch.sh; sed -i s/x/y/ tools/watch.sh tools/smudge.sh",
			"mv src/hook tools/watch.sh", "for f in tools/run/*; do echo x >> $f; mv src/hook $f; rm $f; done", "mv deep/down deep/gone; mkdir -p deep/down; echo x > deep/down/diff.sh", "mv deep gone", "truncate -s 0 deep/down/diff.sh",
		} {
			r.run(line)
		}
		for _, check := range checks {
			check()
		}
		if got := r.run("set -e; echo y > src/new; mkdir -p src/sub; mv src/new src/sub; rm src/main.go; echo y >> main.go; echo y >> settings/free; echo y >> tools/free.sh; echo y >> deep/free; cat .git/HEAD way/HEAD src/sub/new"); got != "ref: refs/heads/main\nref: refs/heads/main\ny" {
			r.Errorf("work beside that: %s", got)
		}
		hint := strings.Contains(r.run("echo x > .git/x"), "a person can install bubblewrap")
		if _, err := os.Lstat(filepath.Join(r.dir, ".git", "x")); err == nil || hint != (r.level == team.Confined) {
			r.Errorf("a file in .git is refused with %v, the hint: %v", err, hint)
		}
	})
}

// Settings by which other programs run commands as a person opens the folder are kept where they are there, and no file tool
// makes one. None of them is a reason to refuse a workspace, and what lies beside them is free.
func TestSettingsOfOthersAreKept(t *testing.T) {
	levels(t, func(r *rig) {
		names := []string{".claude/settings.json", ".mcp.json", ".vscode/tasks.json"}
		for _, name := range append(names, ".git/HEAD", ".claude/agents/coder.md", ".vscode/launch.json", "elsewhere/local.json", "src/free") {
			put(r.T, filepath.Join(r.dir, name), "{}")
		}
		if err := os.Symlink("../elsewhere/local.json", filepath.Join(r.dir, ".claude", "settings.local.json")); err != nil {
			r.Fatal(err)
		}
		if _, err := r.open("coder-1"); err != nil {
			r.Fatal(err)
		}
		var checks []func()
		for _, name := range names {
			checks = append(checks, unchanged(r.T, filepath.Join(r.dir, name)))
		}
		for _, name := range append(names, ".vscode/settings.json", ".vscode/mcp.json", ".claude/settings.local.json", "elsewhere/local.json") {
			if got := r.call(r.Context(), "write_file", args{"path": name, "content": "x"}); !strings.Contains(got.Content, "kept from members") {
				r.Errorf("write_file %s: %s", name, got.Content)
			}
		}
		for _, name := range names {
			r.run(strings.ReplaceAll("echo x >> NAME; mv src/free NAME; ln -sf src/free NAME; rm -f NAME; mv $(dirname NAME) gone; rm -rf $(dirname NAME)", "NAME", name))
		}
		for _, check := range checks {
			check()
		}
		if got := r.run("echo x > src/more; mkdir -p .claude/agents; echo y > .claude/agents/coder.md; echo z > .vscode/launch.json; cat src/more .claude/agents/coder.md .vscode/launch.json"); got != "x\ny\nz" {
			r.Errorf("work beside that: %s", got)
		}
		if got := r.call(r.Context(), "write_file", args{"path": ".vscode/extensions.json", "content": "x"}); got.IsError {
			r.Errorf("write_file beside that: %s", got.Content)
		}
	})
}

// What a command makes or changes all the same is named.
func TestObeyed(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	dir := t.TempDir()
	if got := hands.Obeyed(dir); len(got) > 0 {
		t.Errorf("in an empty folder: %q", got)
	}
	for _, name := range []string{".git/hooks/pre-push", ".git/hooks/pre-commit.sample", ".husky/_/pre-commit", ".husky/pre-commit", "scripts/page", ".vscode/launch.json", "elsewhere/tasks.json"} {
		put(t, filepath.Join(dir, name), "{}")
	}
	put(t, filepath.Join(dir, ".git/config"), "[core]\n\thooksPath = .husky/_\n\tpager = scripts/page")
	if err := os.Symlink("../elsewhere/tasks.json", filepath.Join(dir, ".vscode", "tasks.json")); err != nil {
		t.Fatal(err)
	}
	had := hands.Obeyed(dir)
	want := []string{".git", ".git/config", ".git/hooks/pre-push", ".husky/_/pre-commit", ".husky/pre-commit", ".vscode/tasks.json", "scripts/page"}
	if got := slices.Sorted(maps.Keys(had)); !slices.Equal(got, want) {
		t.Errorf("there are %q", got)
	}
	for _, name := range want[1:] {
		was := had[name]
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n"); err != nil || f.Close() != nil || hands.Obeyed(dir)[name] == was {
			t.Errorf("%s is as before, %v", name, err)
		}
	}
	before := had["scripts/page"] + "\n"
	if err := os.Chmod(filepath.Join(dir, "scripts/page"), 0o755); err != nil || hands.Obeyed(dir)["scripts/page"] == before {
		t.Errorf("it may be run as before, %v", err)
	}
}

// Such settings are known in a difference wherever they lie.
func TestObeys(t *testing.T) {
	for path, want := range map[string]bool{".mcp.json": true, "web/.vscode/tasks.json": true, ".vscode/launch.json": false, "x.mcp.json": false, "": false} {
		if got := hands.Obeys(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// The settings of the user's git count in each repository: where they are links into the workspace, what these lead to is
// kept, with what it names, also if the workspace is no repository.
func TestUserSettingsInWorkspaceAreKept(t *testing.T) {
	for name, at := range map[string]struct{ make, kept string }{
		"in a repository":         {"git init -q; mkdir dots; echo > dots/gitconfig; ln -s ../work/dots/gitconfig ../user/.gitconfig", "dots/gitconfig"},
		"in none":                 {"mkdir dots hooks; git config -f dots/gitconfig core.hooksPath $PWD/hooks; ln -s ../work/dots/gitconfig ../user/.gitconfig", "dots/gitconfig hooks"},
		"a helper, in none":       {"mkdir dots; echo x > dots/cred; git config -f ../user/.gitconfig credential.helper \"!$PWD/dots/cred\"", "dots/cred"},
		"a script, in none":       {"mkdir dots; echo x > dots/p; git config -f ../user/.gitconfig core.pager \"sh $PWD/dots/p\"", "dots/p"},
		"a quoted path, in none":  {"mkdir dots; echo x > dots/p; git config -f ../user/.gitconfig core.editor \"'$PWD/dots/p'\"", "dots/p"},
		"not there":               {"mkdir dots; ln -s ../work/dots/gitconfig ../user/.gitconfig", "dots/gitconfig"},
		"a folder of git's":       {"mkdir dots ../user/.config; echo > dots/config; ln -s ../../work/dots ../user/.config/git", "dots/config"},
		"included":                {"mkdir dots; echo > dots/more; git config -f ../user/.gitconfig include.path $PWD/dots/more", "dots/more"},
		"a relative hooksPath":    {"mkdir dots; echo > dots/gitconfig; git config -f dots/gitconfig core.hooksPath .; ln -s ../work/dots/gitconfig ../user/.gitconfig", "dots/gitconfig"},
		"named by GIT_CONFIG_...": {"mkdir dots; echo > dots/other; ln -s work/dots/other ../other", "dots/other"},
	} {
		t.Run(name, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "cd \"$1\"; rm -rf .git; mkdir src; "+at.make, "sh", r.dir).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				if strings.HasPrefix(name, "named by") {
					r.Setenv("GIT_CONFIG_GLOBAL", r.outside("other"))
				}
				if _, err := r.open("coder-1"); err != nil { // which makes what is not there
					r.Fatal(err)
				}
				for _, kept := range strings.Fields(at.kept) {
					check := unchanged(r.T, filepath.Join(r.dir, kept))
					r.run(strings.ReplaceAll("echo x >> KEPT; echo x > KEPT/pre-commit; mv KEPT src; rm -rf KEPT; ln -sfn src KEPT; mv $(dirname KEPT) src", "KEPT", kept))
					check()
				}
				if got := r.call(r.Context(), "write_file", args{"path": strings.Fields(at.kept)[0], "content": "x"}); !strings.Contains(got.Content, "kept from members") {
					r.Errorf("write_file: %s", got.Content)
				}
				if got := r.run("echo x > src/free; cat src/free"); got != "x" {
					r.Errorf("beside that: %s", got)
				}
			})
		})
	}
}

// Where git runs what a command could put into the workspace, though nothing of it is kept, no command is run: a
// link could be replaced, and in a folder of hooks each file may be one.
func TestRepositoryIsKeptOrRefused(t *testing.T) {
	for _, at := range []struct{ name, make, want, hint string }{
		{"hooks behind a link", "git init -q; mkdir .githooks; ln -s .githooks hooks; git config core.hooksPath hooks", "/work/hooks is a symbolic link", "remove the link, or name the place"},
		{"hooks below a link", "git init -q; mkdir -p real/hooks; ln -s real way; git config core.hooksPath way/hooks", "/work/way is a symbolic link", "remove the link, or name the place"},
		{"a program behind a link", "git init -q; echo x > a; ln -s a b; git config core.fsmonitor ./b", "/work/b is a symbolic link", "remove the link, or name the place"},
		{"hooks behind two links from outside", "git init -q; mkdir -p real/hooks; ln -s real way; ln -s $PWD/way ../first; ln -s first/hooks ../second; git config core.hooksPath ../second", "/work/way is a symbolic link", "remove the link, or name the place"},
		{"hooks beside where a link leads", "git init -q; mkdir -p real/deep real/hooks hooks; ln -s real/deep way; git config core.hooksPath way/../hooks", "/work/way is a symbolic link", "remove the link, or name the place"},
		{"hooks behind a link to nothing", "git init -q; ln -s nothing hooks; git config core.hooksPath hooks", "/work/hooks is a symbolic link", "remove the link, or name the place"},
		{".git is a link to elsewhere", "git init -q ../other; ln -s ../other/.git .git", "/work/.git is a symbolic link", "remove the link, or name the place"},
		{".git is a link to nothing", "ln -s nothing .git", "/work/.git is a symbolic link", "remove the link, or name the place"},
		{"hooks are the workspace", "git init -q; git config core.hooksPath .", "git runs hooks", "core.hooksPath"},
		{"husky's would be", "git init -q; git config core.hooksPath _", "git runs hooks", "core.hooksPath"},
		{"the workspace is the repository's hooks", "git init -q ..; git -C .. config core.hooksPath work", "git runs hooks", "core.hooksPath"},
		{"the workspace is git's own folder", "git init -q --separate-git-dir=. ../other; mv ../other/.git .git", "git runs hooks", "core.hooksPath"},
	} {
		t.Run(at.name, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; rm -rf .git; "+at.make, "sh", r.dir).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				check := unchanged(r.T, r.dir)
				defer check()
				if _, err := r.open("coder-1"); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), at.want) || !strings.Contains(team.HintOf(err), at.hint) {
					r.Errorf("%v (%s)", err, team.HintOf(err))
				}
			})
		})
	}
}

// A repository that a file in place of .git, or a link above the workspace, has in the workspace is kept there.
func TestRepositoryElsewhereIsKept(t *testing.T) {
	for name, make := range map[string]string{
		"a file":          "git init -q --separate-git-dir=kept; echo 'gitdir: kept' > .git",
		"a link above it": "git init -q; mv .git kept; ln -s work/kept ../.git",
	} {
		t.Run(name, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; rm -rf .git; mkdir src; "+make, "sh", r.dir).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				check := unchanged(r.T, filepath.Join(r.dir, "kept"))
				r.run("mkdir -p kept/hooks; echo x > kept/hooks/post-checkout; echo x >> kept/config; mv kept src; rm -rf kept; echo x > src/free")
				check()
				if _, err := os.Stat(filepath.Join(r.dir, "src", "free")); err != nil {
					r.Error(err)
				}
			})
		})
	}
}

// What git runs is kept where the kernel finds it: behind links that lie outside, beside where a link leads, in a
// folder that is not there; and so is each folder on the way which, in the place of which a link would lead git elsewhere.
func TestHooksAreKeptWhereTheyAre(t *testing.T) {
	for name, at := range map[string]struct{ make, kept string }{
		"behind two links":            {"mkdir -p real/hooks; ln -s work/real ../first; ln -s first/hooks ../second; git config core.hooksPath ../second", "real/hooks"},
		"beside where a link leads":   {"mkdir -p real/deep real/hooks hooks; ln -s work/real/deep ../way; git config core.hooksPath ../way/../hooks", "real/hooks real/deep"},
		"a program behind such a way": {"mkdir -p real/deep; echo x > real/watch; ln -s work/real/deep ../way; git config core.fsmonitor ../way/../watch", "real/watch real/deep"},
		"not there, behind a link":    {"ln -s work/real/hooks ../way; git config core.hooksPath ../way", "real/hooks"},
		"by a folder that is none":    {"git config core.hooksPath none/../real/hooks", "none real/hooks"},
		"settings in no folder":       {"git config include.path ../none/settings", "none/settings"},
		"husky's":                     {"mkdir -p real/deep; ln -s work/real/deep ../way; git config core.hooksPath ../way/../_/", "real"},
	} {
		t.Run(name, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; rm -rf .git; git init -q; mkdir src; "+at.make, "sh", r.dir).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				if _, err := r.open("coder-1"); err != nil { // which makes what is not there
					r.Fatal(err)
				}
				for _, kept := range strings.Fields(at.kept) {
					check := unchanged(r.T, filepath.Join(r.dir, kept))
					r.run(strings.ReplaceAll("echo x > KEPT; echo x > KEPT/pre-commit; mv KEPT src; rm -rf KEPT; ln -s ../src KEPT; mv $(dirname KEPT) src; mv $(dirname KEPT) gone; ln -sfn src KEPT", "KEPT", kept))
					check()
				}
				if got := r.run("echo x > src/free; cat src/free"); got != "x" {
					r.Errorf("beside that: %s", got)
				}
			})
		})
	}
}

// A workspace that is named by a link lies in the repository in which it really is.
func TestRepositoryBehindLinkIsKept(t *testing.T) {
	for name, at := range map[string]struct{ make, kept string }{
		"its top":   {"mv work top; ln -s top work; cd top; git init -q; git config core.hooksPath hooks", ".git hooks"},
		"a part":    {"mkdir top; mv work top/part; ln -s top/part work; cd top; git init -q; git config core.hooksPath part/hooks", "hooks"},
		"not above": {"git init -q; mkdir top; mv work top/part; ln -s top/part work; cd top; git init -q; git config core.hooksPath part/hooks", "hooks"},
	} {
		t.Run(name, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; rm -rf work/.git; mkdir work/src; "+at.make, "sh", r.outside(".")).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				if _, err := r.open("coder-1"); err != nil { // which makes what is not there
					r.Fatal(err)
				}
				for _, kept := range strings.Fields(at.kept) {
					check := unchanged(r.T, filepath.Join(r.dir, kept))
					r.run(strings.ReplaceAll("mkdir -p KEPT; echo x > KEPT/pre-commit; echo x > KEPT/config; mv KEPT src; rm -rf KEPT; ln -sfn src KEPT", "KEPT", kept))
					check()
				}
				if got := r.run("echo x > src/free; cat src/free"); got != "x" {
					r.Errorf("beside that: %s", got)
				}
			})
		})
	}
}

// In a linked worktree the repository that has made it is out of reach, and the file that names it.
func TestLinkedWorktreeIsKept(t *testing.T) {
	levels(t, func(r *rig) {
		if err := os.RemoveAll(r.dir); err != nil {
			r.Fatal(err)
		}
		parent := r.outside("parent")
		out, err := exec.Command("sh", "-c", `set -e; export GIT_CONFIG_GLOBAL=/dev/null; git init -q "$1"; cd "$1"; git -c user.name=n -c user.email=e commit -q --allow-empty -m x
			git config core.hooksPath hooks; git worktree add -q "$2"; mkdir "$2/src"`, "sh", parent, r.dir).CombinedOutput()
		if err != nil {
			r.Fatalf("%v: %s", err, out)
		}
		if got := r.run("git log --format=%s"); got != "x" {
			r.Errorf("git in it: %s", got)
		}
		checks := []func(){unchanged(r.T, parent), unchanged(r.T, filepath.Join(r.dir, ".git")), unchanged(r.T, filepath.Join(r.dir, "hooks"))}
		for _, line := range []string{
			"echo x >> PARENT/config", "git config core.pager x", "mkdir -p PARENT/hooks; echo x > PARENT/hooks/pre-commit", "rm -rf PARENT/worktrees", "echo x > PARENT/worktrees/work/config.worktree",
			"git commit --allow-empty -m y", "git branch y", "rm .git; echo 'gitdir: src' > .git", "mv .git src/git", "echo x > hooks/pre-commit; mv hooks src",
		} {
			r.run(strings.ReplaceAll(line, "PARENT", filepath.Join(parent, ".git")))
		}
		for _, check := range checks {
			check()
		}
	})
}
