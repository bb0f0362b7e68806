package execenv

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Runs states when programs on the user's machine run what a file of the workspace names.
type Runs int

// The kinds of files. What git runs is [Unasked], too; git's own settings state which files those are.
const (
	NothingRuns Runs = iota
	OnWord           // once a person starts it by a command of daily work: members change it, and it is named
	Unasked          // once a person opens the folder or enters it: no member changes it
)

// Protected is a row of the table of such files.
type Protected struct {
	Paths []string // in any folder of the workspace; a part may be a pattern of [path.Match]; with "/" at its end all in a folder
	Runs  Runs
	Why   string
}

// ProtectedFiles returns the table. It has no row for the files that git runs.
func ProtectedFiles() []Protected { return slices.Clone(protected) }

// No path of the kind Unasked is a pattern: a file that does not exist yet could not be protected.
var protected = []Protected{
	{[]string{".claude/settings.json", ".claude/settings.local.json", ".claude/agents/", ".claude/commands/", ".claude/hooks/", ".claude/skills/", ".mcp.json"}, Unasked, "Claude Code runs hooks and servers of MCP, and obeys these texts"},
	{[]string{".agents/"}, Unasked, "roles and skills of agentteam and of other agents"},
	{[]string{".codex/", ".cursor/", ".gemini/", ".opencode/", "opencode.json"}, Unasked, "agents run servers of MCP and hooks, and obey these texts"},
	{[]string{".vscode/tasks.json", ".vscode/settings.json", ".vscode/mcp.json"}, Unasked, "Visual Studio Code runs tasks with `runOn: folderOpen` and servers of MCP; its extensions run programs that the settings name"},
	{[]string{".idea/", ".zed/"}, Unasked, "editors run tasks and tools at the start"},
	{[]string{".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el"}, Unasked, "editors run the commands in them as a file of the folder is opened"},
	{[]string{".envrc", "mise.toml", ".mise.toml"}, Unasked, "direnv and mise run them as a shell enters the folder"},

	{[]string{".github/workflows/", ".github/actions/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "Jenkinsfile", ".drone.yml", ".woodpecker.yml", ".woodpecker/", ".buildkite/", ".forgejo/workflows/", ".gitea/workflows/", "appveyor.yml"}, OnWord, "workflows run after a push, with the secrets of the project"},
	{[]string{"package.json", ".npmrc", ".yarnrc.yml", ".yarn/", ".pnpmfile.cjs", "deno.json", "composer.json"}, OnWord, "scripts of packages, and programs in place of the package manager"},
	{[]string{"Makefile", "makefile", "GNUmakefile", "*.mk", "[Jj]ustfile", "Taskfile.yml", "Taskfile.yaml", "Rakefile", "Gemfile", "CMakeLists.txt", "meson.build", "configure", "configure.ac", "SConstruct", "BUILD", "BUILD.bazel", "MODULE.bazel", "WORKSPACE", "flake.nix", "shell.nix", "default.nix"}, OnWord, "build files"},
	{[]string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew", "gradle/wrapper/", "pom.xml", "mvnw", ".mvn/", "build.sbt", "*.csproj", "Directory.Build.props", "Directory.Build.targets"}, OnWord, "build files of the JVM and .NET, and their wrappers"},
	{[]string{"build.rs", ".cargo/", "rust-toolchain.toml", "build.zig", "Package.swift", "mix.exs", "setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "noxfile.py"}, OnWord, "build files of a language"},
	{[]string{"gulpfile.*", "Gruntfile.*", "vite.config.*", "vitest.config.*", "webpack.config.*", "rollup.config.*", "jest.config.*", "babel.config.*", "eslint.config.*", ".eslintrc.*"}, OnWord, "programs of builds and checks that look like settings"},
	{[]string{"Dockerfile", "Dockerfile.*", "Containerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml", ".devcontainer/", ".devcontainer.json", "Vagrantfile", "Procfile", "Tiltfile"}, OnWord, "containers, with mounts and commands of the host"},
	{[]string{".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".husky/", ".gitattributes", ".gitmodules"}, OnWord, "programs of git's hooks, filters and submodules, where a person has installed or set them"},
	{[]string{".vscode/launch.json", ".gdbinit", ".lldbinit", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".vimrc", ".tmux.conf"}, OnWord, "debuggers, and shells and programs of a person whose home links to the folder"},
}

// RunsBy returns the kind of a path in a difference, which is relative to the top of the repository.
func RunsBy(name string) Runs {
	for _, kind := range []Runs{Unasked, OnWord} {
		if kinds()[kind].MatchString(name) {
			return kind
		}
	}
	return NothingRuns
}

// kinds returns expressions for the paths of each kind. A folder around such a path counts: in a difference it is a link.
var kinds = sync.OnceValue(func() map[Runs]*regexp.Regexp {
	all, glob := map[Runs]*regexp.Regexp{}, strings.NewReplacer(".", `\.`, "*", "[^/]*", "/", "(/")
	for _, kind := range []Runs{Unasked, OnWord} {
		var patterns []string
		for _, row := range protected {
			for _, p := range row.Paths {
				if row.Runs == kind {
					patterns = append(patterns, glob.Replace(p)+strings.Repeat(")?", strings.Count(p, "/")))
				}
			}
		}
		all[kind] = regexp.MustCompile("(^|/)(" + strings.ReplaceAll(strings.Join(patterns, "|"), "(/)", "(/.*)") + ")$")
	}
	return all
})

// unaskedIn returns the paths at the top of a folder by which programs run commands unasked, existing or not.
func unaskedIn(dir string) (paths []string) {
	for _, row := range protected {
		for _, name := range row.Paths {
			if row.Runs == Unasked {
				paths = append(paths, filepath.Join(realOf(dir), name))
			}
		}
	}
	return paths
}

// unaskedThere returns the existing ones, except those behind links, which could not be protected.
func unaskedThere(dir string) []string {
	return slices.DeleteFunc(unaskedIn(dir), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil || len(way(path)) > 1
	})
}

// ExecutableSettings returns the files of a folder that can make programs on the user's machine run commands, with a fingerprint of
// each: those of [ProtectedFiles] in all of its folders, a git repository, its settings and hooks, and the files that these name. It
// leaves out empty files, some of which are created here.
func ExecutableSettings(dir string) map[string]Found {
	dir = realOf(dir)
	r, files, folders := runBy(dir)
	files = append(files, r.scripts(folders)...)
	found := map[string]Found{}
	add := func(path string, runs Runs) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().IsRegular() && info.Size() == 0 {
			return
		}
		sum := fnv.New64a()
		fmt.Fprint(sum, info.Mode(), readFile(path)) // never fails
		found[strings.TrimPrefix(path, dir+"/")] = Found{runs, sum.Sum64()}
	}
	for _, path := range walk(dir) {
		add(filepath.Join(dir, path), RunsBy(path))
	}
	for _, file := range slices.Concat(r.dirs, r.settings, files) {
		for _, path := range in(dir, realOf(file)) {
			add(path, Unasked)
		}
	}
	return found
}

// Found is a file of [ExecutableSettings].
type Found struct {
	Runs Runs
	Sum  uint64 // of its mode and content
}

// mostWalked bounds the files of a folder that are visited.
const mostWalked = 200_000

// walk returns the files below a folder that are in the table, without git's own and those of packages.
func walk(dir string) (files []string) {
	seen := 0
	var below func(string)
	below = func(top string) {
		_ = fs.WalkDir(os.DirFS(filepath.Join(dir, top)), ".", func(name string, e fs.DirEntry, err error) error {
			name = filepath.Join(top, name)
			switch seen++; {
			case seen > mostWalked:
				return fs.SkipAll
			case err != nil: // what cannot be read is left out
				return nil
			case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
				return fs.SkipDir
			case e.IsDir() || RunsBy(name) == NothingRuns:
				return nil
			}
			files = append(files, name)
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() && top == "." { // a link to a folder, whose own links lead no further
				below(name)
			}
			return nil
		})
	}
	below(".")
	return files
}

// scripts returns the files of hook folders, the repository's own included, without git's samples; and those of husky below.
func (r repository) scripts(folders []string) (files []string) {
	for _, git := range r.places() {
		folders = append(slices.Clip(folders), git+"/hooks")
	}
	for _, hooks := range folders {
		for _, dir := range []string{hooks, hooks + "/_"} {
			all, _ := os.ReadDir(dir) // none in what is no folder
			for _, e := range all {
				if !e.IsDir() && !strings.HasSuffix(e.Name(), ".sample") {
					files = append(files, dir+"/"+e.Name())
				}
			}
		}
	}
	return files
}

// linkedIn returns the targets of links in hook folders, which may be elsewhere in the workspace.
func (r repository) linkedIn(folders []string) (files []string) {
	for _, script := range r.scripts(folders) {
		if target, err := os.Readlink(script); err == nil {
			files = append(files, resolve(realOf(parent(script)), target))
		}
	}
	return files
}
