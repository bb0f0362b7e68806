// Package toolchain finds what commands need of the machine beside their workspace, for reading in a sandbox: the folders of PATH,
// toolchains, caches of packages, and the credentials that a role names.
//
// It grants no whole home, and no secrets but named credentials. It confines and runs nothing: package sandbox does.
package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"agentteam/pkg/tool/safefs"
)

// Host is the machine as its user sees it.
type Host struct {
	FS  fs.FS                            // the root of its files; an [fs.ReadLinkFS]
	Env func(name string) (string, bool) // as [os.LookupEnv]

	// Program is the path of this program, which commands start as the go command's cache: see package
	// gocache. "" is none: then the go command does not read the user's cache of builds.
	Program string
}

// This returns the machine and the user of this process.
func This() Host {
	program, err := os.Executable()
	if err == nil {
		_, err = os.Stat(program) // it may have been removed since it was started
	}
	if err != nil {
		program = ""
	}
	return Host{FS: os.DirFS("/"), Env: os.LookupEnv, Program: program}
}

// Member is the member whose commands need the grant.
type Member struct {
	Home     string   // HOME of the commands: absolute, the member's own, writable
	Cache    string   // of what members of one repository build and fetch: absolute, writable; of [Tools] only
	Writable []string // what else they may write, the workspace first; absolute
	Network  bool     // whether they reach any host: packages are fetched then, else taken from the caches of the user
}

// Grant lists what commands may use beside their workspace. The zero Grant grants nothing.
type Grant struct {
	ReadOnly []string // folders and files that are there; absolute, sorted, none below another
	Env      []string // "NAME=value" each; of credentials it holds secrets
	Omitted  []string // paths in the environment that are not given to commands

	home    string
	links   map[string]string // below home, what is to be found at the path of the host
	cache   string            // of the repository
	folders []string          // below cache, what is made
	copies  []seed            // into cache
	git     gitSettings
}

// Of returns the tools in the host's environment, the existing caches, and the named credentials. It changes nothing. Errors: those
// of [Credentials].
func Of(h Host, m Member, credentials []string) (Grant, error) {
	f := newFinder(h, m)
	f.path()
	for _, t := range toolchains {
		f.toolchain(t)
	}
	f.gitUser()
	f.set("GIT_CONFIG_SYSTEM", path.Join(m.Home, gitFile))
	return f.credentials(credentials)
}

// Credentials returns credentials alone: files for reading, and variables. Error: InvalidArgument for an unknown name, or one without
// any existing part.
func Credentials(h Host, names []string) (Grant, error) {
	return newFinder(h, Member{}).credentials(names)
}

// finder collects a [Grant].
type finder struct {
	Host
	grant    Grant
	member   Member
	user     string            // home of the user, as it is named; "" if there is none
	homes    []string          // the same, and where its links lead
	writable []string          // by the member, as named and where links lead
	goEnv    map[string]string // what the go command reads where the environment has nothing
}

func newFinder(h Host, m Member) *finder {
	f := &finder{Host: h, member: m, grant: Grant{home: m.Home, cache: m.Cache, links: map[string]string{}}}
	if home, _ := h.Env("HOME"); path.IsAbs(home) && path.Clean(home) != "/" {
		f.user = path.Clean(home)
		f.homes = f.names(f.user)
	}
	f.goEnv = f.goSettings()
	for _, dir := range append([]string{m.Home, m.Cache}, m.Writable...) {
		if path.IsAbs(dir) {
			f.writable = append(f.writable, f.names(path.Clean(dir))...)
		}
	}
	return f
}

// names returns a path and each path that its links lead to.
func (f *finder) names(name string) []string {
	_, names, err := f.follow(name)
	if err != nil {
		return []string{name}
	}
	return names
}

// lookup returns a variable, and whether it has a value.
func (f *finder) lookup(name string) (string, bool) {
	value, _ := f.Env(name)
	if value == "" {
		value = f.goEnv[name]
	}
	return value, value != ""
}

// goSettings returns the settings of `go env -w`, whose file may be among secrets.
func (f *finder) goSettings() map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(f.read(f.folder("GOENV", ".config/go/env"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	return settings
}

func (f *finder) set(name, value string) { f.grant.Env = append(f.grant.Env, name+"="+value) }

// folder returns the path in a variable, else that of name below the user's home; "" if there is neither.
func (f *finder) folder(variable, name string) string {
	if value, ok := f.lookup(variable); ok && path.IsAbs(value) {
		return path.Clean(value)
	}
	if name == "" {
		return ""
	}
	for base, dir := range bases {
		value, _ := f.lookup(base)
		if first, _, _ := strings.Cut(value, ":"); path.IsAbs(first) && below(name, dir) {
			return path.Join(first, strings.TrimPrefix(name, dir))
		}
	}
	if f.user == "" {
		return ""
	}
	return path.Join(f.user, name)
}

// open returns all names of a path, and whether it exists and may be granted.
func (f *finder) open(name string) (names []string, ok bool) {
	if !path.IsAbs(name) {
		return nil, false
	}
	_, names, err := f.follow(name)
	if err == nil && slices.ContainsFunc(names, f.secret) {
		f.grant.Omitted = append(f.grant.Omitted, name)
		return nil, false
	}
	return names, err == nil
}

// give grants a path with all targets of its links, if it may be granted; it reports whether it has.
func (f *finder) give(name string) bool {
	names, ok := f.open(name)
	for _, n := range names {
		if ok && !system(n) && !within(n, f.writable) {
			f.grant.ReadOnly = append(f.grant.ReadOnly, n)
		}
	}
	return ok
}

// outermost returns paths sorted, without those below another.
func outermost(paths []string) []string {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	return slices.DeleteFunc(paths, func(p string) bool {
		return slices.ContainsFunc(paths, func(q string) bool { return q != p && below(p, q) })
	})
}

// below reports whether a path is dir or below it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// within reports whether a path is one of dirs or below one.
func within(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(name, dir) })
}

// follow returns where the links of an absolute path lead, and all paths on the way, name first and real last: programs may use any
// of them. Error: it is missing, or unreadable.
func (h Host) follow(name string) (real string, names []string, err error) {
	_, names = safefs.Way(func(at string) (string, error) { return fs.ReadLink(h.FS, inFS(at)) }, path.Clean(name))
	real = names[len(names)-1]
	info, err := fs.Lstat(h.FS, inFS(real))
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.New(name + ": too many links")
	}
	return real, names, err
}

// inFS returns an absolute path in the form of package fs.
func inFS(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name != "" {
		return name
	}
	return "."
}

// isDir reports whether a folder exists.
func (h Host) isDir(name string) bool {
	real, _, err := h.follow(name)
	if err != nil {
		return false
	}
	info, err := fs.Lstat(h.FS, inFS(real))
	return err == nil && info.IsDir()
}

// has reports whether dir contains one of names.
func (h Host) has(dir string, names ...string) bool {
	for _, name := range names {
		if _, err := fs.Lstat(h.FS, inFS(path.Join(dir, name))); err == nil {
			return true
		}
	}
	return false
}

// mostSettings bounds the bytes of a settings file that are read.
const mostSettings = 1 << 20

// read returns the text of a regular file, "" if there is none or it is too large for settings.
func (h Host) read(name string) string {
	real, _, err := h.follow(name)
	if err != nil {
		return ""
	}
	info, err := fs.Lstat(h.FS, inFS(real))
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostSettings {
		return ""
	}
	text, err := fs.ReadFile(h.FS, inFS(real))
	if err != nil {
		return ""
	}
	return string(text)
}
