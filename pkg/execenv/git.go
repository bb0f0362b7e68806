package execenv

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/tool/safefs"
)

// repository is a git repository as it is found without running git, which would obey its settings.
type repository struct {
	top      string   // its folder of files, in which git runs what its settings name
	dirs     []string // where git keeps it; a file in place of .git too
	settings []string // files of settings that git reads for it
}

// repositoryOf returns the repository that contains dir, with links followed; the zero repository if there is none.
func repositoryOf(dir string) (r repository) {
	for at := realOf(dir); ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		info, err := os.Stat(git)
		if err == nil && info.Mode().IsRegular() {
			return repository{at, append([]string{git}, linkedFrom(git)...), settingsIn(adminOf(git))}
		}
		if _, err := os.Lstat(git); err == nil { // a link too, wherever it leads: a command could replace it
			return repository{at, []string{git}, settingsIn(git)}
		}
		if at == filepath.Dir(at) {
			return r
		}
	}
}

// runBy returns the repository that contains dir, and the files and folders from which git runs something there unasked.
func runBy(dir string) (r repository, files, folders []string) {
	r = repositoryOf(dir)
	files, folders = r.named(append([]string{"/etc/gitconfig"}, toolchain.This().GitSettings()...))
	return r, append(files, r.linkedIn(folders)...), folders
}

// settingsIn returns the files of settings in a repository's folder, or in that of a linked worktree.
func settingsIn(git string) []string {
	if git == "" {
		return nil
	}
	files := []string{git + "/config", git + "/config.worktree"}
	if common := readLine(git + "/commondir"); common != "" {
		files = append(files, resolve(git, common)+"/config")
	}
	return files
}

// adminOf returns the folder that a file in place of .git names, "" if none.
func adminOf(file string) string {
	admin, ok := strings.CutPrefix(readLine(file), "gitdir: ")
	if !ok {
		return ""
	}
	return resolve(filepath.Dir(file), admin)
}

// linkedFrom returns the repository that a .git file names, if it made this worktree; otherwise the file could name any folder.
func linkedFrom(file string) []string {
	admin := filepath.Clean(adminOf(file))
	repository := filepath.Dir(filepath.Dir(admin))
	if filepath.Base(filepath.Dir(admin)) != "worktrees" || filepath.Base(repository) != ".git" || readLine(filepath.Join(admin, "gitdir")) != file {
		return nil
	}
	return []string{repository}
}

// named returns the files and folders that git runs unasked, or reads as settings, because of settings. user are the user's settings,
// which apply in each repository. A word of a command counts as a file if that exists.
func (r repository) named(user []string) (files, folders []string) {
	files = slices.Clone(user)
	seen := map[string]bool{}
	for todo := slices.Concat(r.settings, user); len(todo) > 0; todo = todo[1:] {
		file := filepath.Join(realOf(parent(todo[0])), filepath.Base(todo[0])) // of a link git takes the link's own folder
		if seen[file] || len(seen) == mostSettings {
			continue
		}
		seen[file] = true
		var settings config.Config
		// The part before a fault still counts.
		_ = config.NewDecoder(strings.NewReader(readFile(file))).Decode(&settings)
		for _, s := range entries(settings) {
			switch {
			case s.value == "":
			case s.key == "include.path" || s.key == "includeif.path":
				more := resolve(filepath.Dir(file), s.value)
				files, todo = append(files, more), append(todo, more)
			case s.key == "core.hookspath" && r.top == "" && isRelative(s.value): // to a repository, and there is none
			case s.key == "core.hookspath":
				hooks := resolve(r.top, s.value)
				if filepath.Base(hooks) == "_" { // husky's, which runs what lies beside it
					hooks = parent(hooks)
				}
				folders = append(folders, hooks)
			case s.key == "init.templatedir": // its hooks get into each new repository
				folders = append(folders, resolve(r.top, s.value)+"/hooks")
			case commands.MatchString(s.key), strings.HasPrefix(s.key, "alias.") && strings.HasPrefix(s.value, "!"), s.key == "remote.url" && strings.HasPrefix(s.value, "ext::"):
				files = append(files, r.filesIn(strings.TrimPrefix(s.value, "ext::"))...)
			}
		}
	}
	return files, folders
}

// places returns the folders with the repository's settings, which are elsewhere if .git is a file or a link.
func (r repository) places() (all []string) {
	for _, file := range r.settings {
		all = append(all, parent(file))
	}
	return all
}

// holds returns the folder of the repository's settings or hooks that contains dir; "" if none. Nothing could be protected there.
func (r repository) holds(dir string, hooks []string) string {
	places := r.places()
	for _, git := range places {
		if realOf(dir) == realOf(git) {
			return git
		}
		hooks = append(hooks, git+"/hooks")
	}
	if i := slices.IndexFunc(hooks, func(h string) bool { return below(realOf(dir), realOf(h)) }); i >= 0 {
		return hooks[i]
	}
	return ""
}

// filesIn returns the files that a command line names, relative to the top of the repository and to folders that it names (cd scripts
// && ./x); of $VARIABLE/x it looks for the rest there.
func (r repository) filesIn(line string) (files []string) {
	from := []string{r.top}
	for _, word := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>=!", c) }) {
		_, rest, isPath := strings.Cut(word, "/")
		for _, top := range from {
			if r.top == "" && isRelative(word) {
				continue
			}
			paths := []string{resolve(top, word)}
			if r.top != "" && isPath {
				paths = append(paths, top+"/"+rest)
			}
			for _, path := range paths {
				switch info, err := os.Stat(path); {
				case err != nil:
				case info.Mode().IsRegular():
					files = append(files, path)
				case info.IsDir() && r.top != "" && len(from) < mostFolders:
					from = append(from, path)
				}
			}
		}
	}
	return files
}

// mostFolders bounds the folders in which one line of settings may name files.
const mostFolders = 8

// mostSettings bounds the files of settings that include each other.
const mostSettings = 100

// setting is one line of a file of git's settings.
type setting struct{ key, value string }

func entries(c config.Config) (all []setting) {
	for _, section := range c.Sections {
		options := section.Options
		for _, sub := range section.Subsections {
			options = append(slices.Clip(options), sub.Options...)
		}
		for _, o := range options {
			all = append(all, setting{strings.ToLower(section.Name + "." + o.Key), o.Value})
		}
	}
	return all
}

// commands matches the settings that git runs as a command, without the parts between their first and last.
var commands = regexp.MustCompile(`^(core\.(fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|sequence\.editor|diff\.(external|command|textconv)|merge\.driver|` +
	`filter\.(clean|smudge|process)|gpg\.(program|defaultkeycommand)|credential\.helper|interactive\.difffilter|remote\.(uploadpack|receivepack)|` +
	`pager\..+|submodule\.update|trailer\.(cmd|command)|gc\.recentobjectshook|tar\.command|(merge|diff)tool\.(cmd|path)|sendemail\..*cmd|(browser|man)\.cmd)$`)

// readLine returns a short file without surrounding space; "" is no path.
func readLine(name string) string { return strings.TrimSpace(readFile(name)) }

// readFile returns the beginning of a regular file, "" of any other.
func readFile(name string) string {
	f, err := safefs.FS("/").Open(strings.TrimPrefix(realOf(name), "/"))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 1<<18)) // "" names nothing
	return string(data)
}

// way returns the steps of [safefs.Way] for a path of this machine.
func way(path string) (steps []string) {
	steps, _ = safefs.Way(os.Readlink, path)
	return steps
}

// realOf returns where an absolute path leads, even if the target is missing.
func realOf(path string) string {
	steps := way(path)
	return steps[len(steps)-1]
}

// resolve returns the path of name in dir, or in the user's home, without resolving "..": [way] follows links first.
func resolve(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return home + "/" + rest
		}
	}
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}

// isRelative reports whether [resolve] needs a folder.
func isRelative(name string) bool { return !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/") }

// parent returns a path without its last part, otherwise unchanged.
func parent(path string) string {
	path = strings.TrimRight(path, "/")
	return cmp.Or(strings.TrimRight(path[:strings.LastIndexByte(path, '/')+1], "/"), "/")
}

// in returns the places below dir, with names relative to it, through which one of the paths leads.
func in(dir string, paths ...string) (all []string) {
	real := realOf(dir)
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue
		}
		for _, at := range way(path) {
			if at != real && below(at, real) {
				all = append(all, filepath.Join(dir, strings.TrimPrefix(at, real)))
			}
		}
	}
	return all
}

// fill creates the missing places below dir through which a path leads, an empty file at its end and folders otherwise: a command
// could create them. It creates nothing behind a link, which is refused.
func fill(root *os.Root, dir, path string, file bool) {
	places, end := in(dir, path), in(dir, realOf(path))
	for _, at := range places {
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return
		}
	}
	for _, at := range places {
		name := strings.TrimPrefix(at[len(dir):], "/")
		if !file || !slices.Contains(end, at) {
			_ = root.MkdirAll(name, 0o755)
			continue
		}
		_ = root.MkdirAll(filepath.Dir(name), 0o755)
		if f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			f.Close() // nothing was written
		}
	}
}
