package toolchain

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/execenv/toolchain/gocache"
)

// toolchain is a user's folder with a toolchain or a cache. Names that begin with its dir are below it wherever that is.
type toolchain struct {
	variable string // names the folder
	dir      string // where it is else, below the home; "" = only the variable names it, maybe several
	how      mount

	with    []string // variables of the user that go along
	env     []string // "NAME=value" each, with variables of the user, DIR for the folder and WORKSPACE
	offline []string // the same, where there is no network
	online  []string // the same, where there is one
	files   []string // settings, below the home, for which links stand in the member's

	parts  []string // what commands find by links in their home; none = the folder, by its variable
	built  []string // parts that are the repository's in any case
	locks  []string // parts by which programs wait for each other where they share the rest
	copied []string // parts that begin as a copy of the user's where they are the repository's; each file stands alone

	beneath string   // variable of a program that looks into the user's where the repository's has nothing
	shims   []string // patterns of folders that go into PATH in place of shims: those ask settings that are not given
	whole   bool     // the files of the repository's need each other
}

// mount states how commands get the folder. The user's is never written.
type mount int

const (
	readOnly mount = iota // the user's
	fetched               // the user's where there is no network; else the repository's, since programs write there what they fetch
	cache                 // the repository's
)

// toolchains are all known ones.
var toolchains = []toolchain{
	{variable: "PYENV_ROOT", dir: ".pyenv", with: []string{"PYENV_VERSION"}},
	{variable: "RBENV_ROOT", dir: ".rbenv", with: []string{"RBENV_VERSION"}},
	{variable: "NODENV_ROOT", dir: ".nodenv", with: []string{"NODENV_VERSION"}},
	{variable: "GOENV_ROOT", dir: ".goenv", with: []string{"GOENV_VERSION"}},
	{variable: "ASDF_DATA_DIR", dir: ".asdf", files: []string{".tool-versions", ".asdfrc"}},
	{variable: "MISE_DATA_DIR", dir: ".local/share/mise", shims: []string{"installs/*/latest/bin", "installs/*/latest"}},
	{variable: "VOLTA_HOME", dir: ".volta"},
	{variable: "NVM_DIR", dir: ".nvm"},
	{variable: "RUSTUP_HOME", dir: ".rustup", with: []string{"RUSTUP_TOOLCHAIN"}},
	{variable: "JAVA_HOME"},
	{variable: "GOROOT"},
	{variable: "PIP_FIND_LINKS"},
	{variable: "GOCACHE", dir: ".cache/go-build", how: cache, with: []string{"GOTOOLCHAIN", "GOEXPERIMENT", "GOPRIVATE", "CGO_ENABLED", "GOAMD64", "GOARM64"}, beneath: "GOCACHEPROG"},
	// The checksum database is a host, too. The user's cache has what no host serves. A written cache can be cleared.
	{variable: "GOMODCACHE", dir: "go/pkg/mod", how: fetched, offline: []string{"GOPROXY=off", "GOSUMDB=off", "GOFLAGS=$GOFLAGS"},
		online: []string{"GOFLAGS=$GOFLAGS -modcacherw", "GOPROXY=$GOPROXY|file://$DIR/cache/download"}, whole: true},
	// cargo locks its home for each build, so a member has a separate one.
	{variable: "CARGO_HOME", dir: ".cargo", how: fetched, parts: []string{".cargo/registry", ".cargo/git"}, locks: []string{".cargo/.package-cache", ".cargo/.package-cache-mutate"},
		copied: []string{".cargo/registry/index", ".cargo/registry/cache"}, files: []string{".cargo/config.toml", ".cargo/config"}, offline: []string{"CARGO_NET_OFFLINE=true"}, whole: true},
	// npm writes logs beside the packages.
	{variable: "npm_config_cache", dir: ".npm", how: fetched, parts: []string{".npm/_cacache"}, copied: []string{".npm/_cacache"}, offline: []string{"npm_config_offline=true"}},
	// pip uses only a cache that it may write.
	{variable: "PIP_CACHE_DIR", dir: ".cache/pip", how: fetched, parts: []string{".cache/pip/http", ".cache/pip/http-v2"}, built: []string{".cache/pip/wheels"},
		copied: []string{".cache/pip/http", ".cache/pip/http-v2"}, offline: []string{"PIP_NO_INDEX=1"}},
	// Trees of one repository lie at different paths.
	{variable: "CCACHE_DIR", dir: ".cache/ccache", how: cache, copied: under(".cache/ccache/", "0123456789abcdef"), env: []string{"CCACHE_BASEDIR=$WORKSPACE", "CCACHE_NOHASHDIR=1", "CCACHE_MAXSIZE=2G"}},
}

// under returns the folders of one letter each.
func under(dir, letters string) (names []string) {
	for _, letter := range letters {
		names = append(names, dir+string(letter))
	}
	return names
}

// bases are the variables that name a parent folder of others, each with its place below the home.
var bases = map[string]string{"XDG_CACHE_HOME": ".cache", "XDG_CONFIG_HOME": ".config", "GOPATH": "go"}

// defaults are the values of unset variables.
var defaults = map[string]string{"GOFLAGS": "", "GOPROXY": "https://proxy.golang.org,direct"}

// links returns all links that a member's home may have for t.
func (t toolchain) links() []string { return slices.Concat(t.files, t.parts, t.built, t.locks) }

// name returns the name of t, or of a part of it, in the repository's cache.
func (t toolchain) name(part string) string {
	return path.Join(strings.TrimPrefix(path.Base(t.dir), "."), strings.TrimPrefix(part, t.dir))
}

// toolchain grants a toolchain to commands.
func (f *finder) toolchain(t toolchain) {
	root := f.folder(t.variable, t.dir)
	if t.dir == "" {
		f.several(t.variable)
		return
	}
	for _, name := range t.files {
		f.file(name, f.users(t, root, name))
	}
	ours := t.how == cache || t.how == fetched && f.member.Network
	there := len(t.parts) == 0 && (t.how != cache || t.beneath != "") && f.give(root)
	switch {
	case len(t.parts) == 0 && ours:
		f.set(t.variable, f.shared(t, t.dir))
	case there:
		f.set(t.variable, root)
	}
	for _, part := range t.parts {
		if at := f.users(t, root, part); ours {
			f.grant.links[part] = f.shared(t, part)
		} else if f.give(at) {
			f.grant.links[part] = at
		}
	}
	for _, part := range t.built {
		f.grant.links[part] = f.shared(t, part)
	}
	if ours {
		f.share(t, root)
	}
	if there && t.beneath != "" && f.give(f.Program) {
		if program := gocache.Command(f.Program, root); program != "" {
			f.set(t.beneath, program)
		}
	}
	if there || t.how != readOnly {
		f.variables(t, map[bool]string{true: root}[there])
	}
}

// users returns the user's path of a file of t, whose folder is root; "" without a folder or a home.
func (f *finder) users(t toolchain, root, name string) string {
	rest, below := strings.CutPrefix(name, t.dir)
	switch {
	case below && root != "":
		return path.Join(root, rest)
	case !below && f.user != "":
		return path.Join(f.user, name)
	}
	return ""
}

// share grants what programs need beside the parts if those are the repository's.
func (f *finder) share(t toolchain, root string) {
	for _, name := range t.locks {
		f.grant.links[name] = path.Join(f.member.Cache, t.name(name))
	}
	for _, part := range t.copied {
		at := f.users(t, root, part)
		if _, ok := f.open(at); ok {
			f.grant.copies = append(f.grant.copies, seed{at, t.name(part), int64(mostCopied / len(t.copied))})
		}
	}
}

// variables sets the variables of a toolchain; root is the user's folder, "" if that is not granted.
func (f *finder) variables(t toolchain, root string) {
	for _, name := range t.with {
		if value := f.public(name); value != "" {
			f.set(name, value)
		}
	}
	more := t.offline
	if f.member.Network {
		more = t.online
	}
	for _, line := range slices.Concat(t.env, more) {
		complete := true
		line = os.Expand(line, func(name string) string {
			value, known := defaults[name]
			switch {
			case name == "DIR":
				value, known = root, root != ""
			case name == "WORKSPACE" && len(f.member.Writable) > 0:
				value, known = f.member.Writable[0], true
			case f.public(name) != "":
				value, known = f.public(name), true
			}
			complete = complete && known
			return value
		})
		if name, value, _ := strings.Cut(line, "="); complete && strings.TrimSpace(value) != "" {
			f.set(name, strings.TrimSpace(value))
		}
	}
}

// public returns a variable of the user; "" if an address in it has a password.
func (f *finder) public(name string) string {
	value, _ := f.lookup(name)
	if passwords.MatchString(value) {
		return ""
	}
	return value
}

var passwords = regexp.MustCompile(`://[^/\s]*@`)

// several grants the folders that a variable names.
func (f *finder) several(variable string) {
	value, _ := f.lookup(variable)
	folders := slices.DeleteFunc(strings.Fields(value), func(dir string) bool { return !f.isDir(dir) || !f.give(dir) })
	if len(folders) > 0 {
		f.set(variable, strings.Join(folders, " "))
	}
}

// file links settings to name, below the member's home, unless they may contain a token.
func (f *finder) file(name, at string) {
	if path.IsAbs(at) && strings.Contains(f.read(at), "token") {
		f.grant.Omitted = append(f.grant.Omitted, at) // a program's login puts the token into a file apart
	} else if f.give(at) {
		f.grant.links[name] = at
	}
}

// shared returns the path of a part in the repository's cache, a folder that Populate creates.
func (f *finder) shared(t toolchain, part string) string {
	f.grant.folders = append(f.grant.folders, t.name(part))
	return path.Join(f.member.Cache, t.name(part))
}

// withoutShims returns the program folders of a toolchain in place of its shims, a folder; ok is false if dir is not one.
func (f *finder) withoutShims(dir string) (dirs []string, ok bool) {
	for _, t := range toolchains {
		root := f.folder(t.variable, t.dir)
		if real, _, err := f.follow(path.Join(root, "shims")); len(t.shims) == 0 || err != nil || real != dir {
			continue
		}
		for _, pattern := range t.shims {
			found, _ := fs.Glob(f.FS, inFS(path.Join(root, pattern))) // fails only for a bad pattern
			for _, at := range found {
				if real, _, err := f.follow("/" + at); err == nil && f.isDir(real) && !f.secret(real) {
					f.installation(real)
					dirs = append(dirs, real)
				}
			}
		}
		return dirs, true
	}
	return nil, false
}
