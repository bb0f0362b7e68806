package execenv_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/execenv"
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

// Files by which other programs run commands as a person opens the folder are kept where they are there, and no file tool
// makes one. None of them is a reason to refuse a workspace, and what lies beside them is free, files that run on a
// person's word too.
func TestSettingsOfOthersAreKept(t *testing.T) {
	levels(t, func(r *rig) {
		var names, free []string
		for _, row := range execenv.ProtectedFiles() {
			for _, name := range row.Paths {
				if row.Runs == execenv.Unasked && strings.HasSuffix(name, "/") {
					name += "deep/file.md"
				}
				switch {
				case row.Runs == execenv.Unasked && name != ".claude/settings.local.json":
					names = append(names, name)
				case row.Runs == execenv.OnWord && !strings.ContainsAny(name, "*[") && !strings.HasSuffix(name, "/"):
					free = append(free, name)
				}
			}
		}
		if len(names) < 25 || len(free) < 60 {
			r.Fatalf("the table has %d paths that are kept, and %d that are free", len(names), len(free))
		}
		for _, name := range append(names, ".git/HEAD", ".vscode/launch.json", "elsewhere/local.json", "src/free") {
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
		for _, name := range append(names, ".claude/settings.local.json", "elsewhere/local.json") {
			if got := r.call(r.Context(), "write_file", args{"path": name, "content": "x"}); !strings.Contains(got.Content, "kept from members") {
				r.Errorf("write_file %s: %s", name, got.Content)
			}
		}
		r.run(strings.ReplaceAll("for n in NAMES; do echo x >> $n; mv src/free $n; ln -sf src/free $n; rm -f $n; mv $(dirname $n) gone; rm -rf $(dirname $n); mkdir -p $(dirname $n); echo x > $n; done 2> /dev/null", "NAMES", strings.Join(names, " ")))
		for _, check := range checks {
			check()
		}
		if got := r.run("echo x > src/more; echo z > .vscode/launch.json; cat src/more .vscode/launch.json"); got != "x\nz" {
			r.Errorf("work beside that: %s", got)
		}
		for _, name := range append(free, ".vscode/extensions.json") {
			if got := r.call(r.Context(), "write_file", args{"path": name, "content": "x"}); got.IsError {
				r.Errorf("write_file beside that: %s", got.Content)
			}
		}
	})
}

// A hook that is a link has git run what it leads to. That is kept, whether it is there or not.
func TestLinkedHooksAreKept(t *testing.T) {
	for name, at := range map[string]struct{ make, kept string }{
		"in the repository's hooks":  {"ln -s ../../githooks/pre-commit .git/hooks/pre-commit; mkdir githooks; echo x > githooks/pre-commit", "githooks/pre-commit"},
		"absolute":                   {"ln -s $PWD/githooks/pre-commit .git/hooks/pre-commit; mkdir githooks; echo x > githooks/pre-commit", "githooks/pre-commit"},
		"not there":                  {"ln -s ../../githooks/pre-commit .git/hooks/pre-commit", "githooks/pre-commit"},
		"in a folder that is named":  {"mkdir .hooks scripts; echo x > scripts/push; ln -s ../scripts/push .hooks/pre-push; git config core.hooksPath .hooks", "scripts/push"},
		"husky's":                    {"mkdir -p .husky/_ scripts; echo x > scripts/commit; ln -s ../scripts/commit .husky/pre-commit; git config core.hooksPath .husky/_", "scripts/commit"},
		"behind a link from outside": {"mkdir githooks; echo x > githooks/a; ln -s work/githooks/a ../a; ln -s ../../../a .git/hooks/pre-commit", "githooks/a"},
	} {
		t.Run(name, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; rm -rf .git; git init -q; mkdir -p .git/hooks src; "+at.make, "sh", r.dir).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				if _, err := r.open("coder-1"); err != nil { // which makes what is not there
					r.Fatal(err)
				}
				check := unchanged(r.T, filepath.Join(r.dir, at.kept))
				r.run(strings.ReplaceAll("echo x >> KEPT; rm -f KEPT; mv KEPT src; ln -sfn src KEPT; mv $(dirname KEPT) src; mkdir -p $(dirname KEPT); echo y > KEPT", "KEPT", at.kept))
				check()
				if got := r.call(r.Context(), "write_file", args{"path": at.kept, "content": "x"}); !strings.Contains(got.Content, "kept from members") {
					r.Errorf("write_file: %s", got.Content)
				}
				if got := r.run("echo x > src/free; cat src/free"); got != "x" {
					r.Errorf("beside that: %s", got)
				}
			})
		})
	}
}

// What a line of git's settings names is found below a folder that the line changes to, and below a path that a shell puts together.
func TestFilesOfCommandsAreKept(t *testing.T) {
	for key, line := range map[string]string{
		"filter.x.clean":         "cd scripts && ./x.sh",
		"filter.x.smudge":        `"$(git rev-parse --show-toplevel)"/scripts/x.sh %f`,
		"filter.x.process":       "$GIT_WORK_TREE/scripts/x.sh",
		"core.pager":             "sh scripts/x.sh",
		"alias.st":               "!scripts/x.sh",
		"tar.tgz.command":        "scripts/x.sh -c",
		"mergetool.x.cmd":        "scripts/x.sh $BASE",
		"difftool.x.cmd":         "scripts/x.sh",
		"sendemail.toCmd":        "scripts/x.sh",
		"remote.origin.url":      "ext::sh -c scripts/x.sh",
		"init.templateDir":       "scripts/template",
		"interactive.diffFilter": "scripts/x.sh | less",
	} {
		t.Run(key, func(t *testing.T) {
			levels(t, func(r *rig) {
				if out, err := exec.Command("sh", "-ec", "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; rm -rf .git; git init -q; mkdir -p src scripts/template/hooks; echo x > scripts/x.sh; echo x > scripts/template/hooks/pre-push; git config \"$2\" \"$3\"", "sh", r.dir, key, line).CombinedOutput(); err != nil {
					r.Fatalf("%v: %s", err, out)
				}
				kept := "scripts/x.sh"
				if key == "init.templateDir" {
					kept = "scripts/template/hooks"
				}
				check := unchanged(r.T, filepath.Join(r.dir, kept))
				r.run(strings.ReplaceAll("echo x >> KEPT; echo x > KEPT/pre-commit; mv KEPT src; rm -rf KEPT; mv scripts gone", "KEPT", kept))
				check()
				if got := r.run("echo x > src/free; cat src/free"); got != "x" {
					r.Errorf("beside that: %s", got)
				}
			})
		})
	}
}

// What a command makes or changes all the same is named.
func TestObeyed(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	dir := t.TempDir()
	if got := execenv.ExecutableSettings(dir); len(got) > 0 {
		t.Errorf("in an empty folder: %v", got)
	}
	onWord := []string{".github/workflows/ci.yml", "Makefile", "package.json", "web/package.json", "web/deep/Makefile", "web/.devcontainer/devcontainer.json", ".pre-commit-config.yaml"}
	unasked := []string{".claude/agents/coder.md", ".envrc", "web/.vscode/tasks.json"}
	for _, name := range slices.Concat(onWord, unasked, []string{".git/hooks/pre-push", ".git/hooks/pre-commit.sample", ".husky/_/pre-commit", ".husky/pre-commit", "scripts/page", "elsewhere/tasks.json", "node_modules/x/package.json", "src/main.go"}) {
		put(t, filepath.Join(dir, name), "{}")
	}
	put(t, filepath.Join(dir, ".idea", "empty.xml"), "") // it runs nothing
	put(t, filepath.Join(dir, ".git/config"), "[core]\n\thooksPath = .husky/_\n\tpager = scripts/page")
	outside := t.TempDir()
	put(t, filepath.Join(outside, "sub", "x.toml"), "{}")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, ".vscode"), 0o755), os.Symlink("../elsewhere/tasks.json", filepath.Join(dir, ".vscode", "tasks.json")),
		os.Symlink(outside, filepath.Join(dir, ".codex")), os.Symlink(".", filepath.Join(outside, "again"))); err != nil {
		t.Fatal(err)
	}
	had := execenv.ExecutableSettings(dir)
	want := slices.Concat(unasked, []string{".git", ".git/config", ".git/hooks/pre-push", ".husky/_/pre-commit", ".husky/pre-commit", ".vscode/tasks.json", "scripts/page", ".codex", ".codex/again", ".codex/sub/x.toml"})
	for _, kind := range []struct {
		runs execenv.Runs
		want []string
	}{{execenv.Unasked, want}, {execenv.OnWord, onWord}} {
		var got []string
		for name, found := range had {
			if found.Runs == kind.runs {
				got = append(got, name)
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(kind.want))) {
			t.Errorf("of kind %d there are %q", kind.runs, slices.Sorted(slices.Values(got)))
		}
	}
	for name, was := range had {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n"); err != nil || f.Close() != nil || execenv.ExecutableSettings(dir)[name] == was {
			t.Errorf("%s is as before, %v", name, err)
		}
	}
	before := execenv.ExecutableSettings(dir)["scripts/page"]
	if err := os.Chmod(filepath.Join(dir, "scripts/page"), 0o755); err != nil || execenv.ExecutableSettings(dir)["scripts/page"] == before {
		t.Errorf("it may be run as before, %v", err)
	}
}

// Such files are known in a difference wherever they lie.
func TestRunsBy(t *testing.T) {
	for path, want := range map[string]execenv.Runs{
		".mcp.json": execenv.Unasked, "web/.vscode/tasks.json": execenv.Unasked, ".claude/settings.local.json": execenv.Unasked, ".claude/agents/deep/x.md": execenv.Unasked, ".agents/coder.md": execenv.Unasked,
		".cursor/rules/x.mdc": execenv.Unasked, ".codex/config.toml": execenv.Unasked, ".gemini/settings.json": execenv.Unasked, ".zed/tasks.json": execenv.Unasked, ".idea/workspace.xml": execenv.Unasked, ".envrc": execenv.Unasked, ".nvim.lua": execenv.Unasked, "a/.exrc": execenv.Unasked,
		".github/workflows/ci.yml": execenv.OnWord, ".gitlab-ci.yml": execenv.OnWord, "Makefile": execenv.OnWord, "a/b/rules.mk": execenv.OnWord, "package.json": execenv.OnWord, ".devcontainer/devcontainer.json": execenv.OnWord, ".pre-commit-config.yaml": execenv.OnWord,
		".yarnrc.yml": execenv.OnWord, ".gitattributes": execenv.OnWord, "sub/.gitmodules": execenv.OnWord, "vite.config.ts": execenv.OnWord, "justfile": execenv.OnWord, "Dockerfile.dev": execenv.OnWord, ".vscode/launch.json": execenv.OnWord, "build.rs": execenv.OnWord,
		"x.mcp.json": execenv.NothingRuns, ".claude/plans/x.md": execenv.NothingRuns, ".github/CODEOWNERS": execenv.NothingRuns, "workflows/ci.yml": execenv.NothingRuns, "docs/Makefile.md": execenv.NothingRuns, ".idea": execenv.Unasked, "web/.vscode": execenv.Unasked, ".claude": execenv.Unasked, ".github": execenv.OnWord, "vscode": execenv.NothingRuns, "main.go": execenv.NothingRuns, "": execenv.NothingRuns,
	} {
		if got := execenv.RunsBy(path); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
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
