package needs

import (
	"path"
	"slices"
	"strings"
)

// A cache that is given for reading serves where no network is. A command that reaches the
// network has separate caches in its home, since it writes what it fetches.

// versionManagers are programs that choose among installed versions: where each keeps them,
// the variable that says so, and files of the home in which it finds what was chosen.
var versionManagers = []struct {
	dir, variable string
	chosen        []string
}{
	{".pyenv", "PYENV_ROOT", nil},
	{".rbenv", "RBENV_ROOT", nil},
	{".nodenv", "NODENV_ROOT", nil},
	{".goenv", "GOENV_ROOT", nil},
	{".asdf", "ASDF_DATA_DIR", []string{".tool-versions", ".asdfrc"}},
	{".volta", "VOLTA_HOME", nil},
}

// managers gives version managers of which PATH names something.
func (f *finder) managers() {
	value, _ := f.lookup("PATH")
	entries := strings.Split(value, ":")
	for _, v := range versionManagers {
		root := f.folder(v.variable, v.dir)
		if root == "" || !slices.ContainsFunc(entries, func(e string) bool { return path.IsAbs(e) && below(path.Clean(e), root) }) {
			continue
		}
		if !f.give(root, v.variable) {
			continue
		}
		f.set(v.variable, root)
		f.pass(strings.TrimSuffix(v.variable, "_ROOT") + "_VERSION")
		for _, name := range v.chosen {
			f.link(name, path.Join(f.home, name))
		}
	}
	if root, ok := f.lookup("JAVA_HOME"); ok && path.IsAbs(root) && f.give(root, "JAVA_HOME") {
		f.set("JAVA_HOME", root)
	}
}

// golang gives the Go root and the cache of modules. What is built is cached in the member's own
// home, which is where the go command looks by default.
func (f *finder) golang() {
	settings := f.goSettings()
	get := func(name string) string {
		if value, ok := f.lookup(name); ok {
			return value
		}
		return settings[name]
	}
	if root := get("GOROOT"); path.IsAbs(root) && f.give(root, "GOROOT") {
		f.set("GOROOT", root)
	}
	for _, name := range []string{"GOTOOLCHAIN", "GOEXPERIMENT", "GOPRIVATE", "CGO_ENABLED"} {
		if value := get(name); value != "" {
			f.set(name, value)
		}
	}
	// -mod=mod has a build write go.mod and look for newer modules.
	flags := slices.DeleteFunc(strings.Fields(get("GOFLAGS")), func(flag string) bool { return strings.TrimLeft(flag, "-") == "mod=mod" })

	modules := get("GOMODCACHE")
	if first, _, _ := strings.Cut(get("GOPATH"), ":"); modules == "" && path.IsAbs(first) {
		modules = path.Join(first, "pkg/mod")
	}
	if modules == "" && f.home != "" {
		modules = path.Join(f.home, "go/pkg/mod")
	}
	there := path.IsAbs(modules) && f.give(modules, "GOMODCACHE")
	switch {
	case !f.member.Network:
		if there {
			f.set("GOMODCACHE", modules)
		}
		// The database of checksums is a host, too.
		f.set("GOPROXY", "off")
		f.set("GOSUMDB", "off")
	case there:
		// A cache that can be written, of which the home can be cleared. What no host gives,
		// the user's cache does.
		proxy := get("GOPROXY")
		if proxy == "" || strings.Contains(proxy, "@") { // with a password
			proxy = "https://proxy.golang.org,direct"
		}
		f.set("GOPROXY", proxy+"|file://"+path.Join(modules, "cache/download"))
		flags = append(flags, "-modcacherw")
	}
	if len(flags) > 0 {
		f.set("GOFLAGS", strings.Join(flags, " "))
	}
}

// goSettings returns what `go env -w` has written, which lies where secrets may be.
func (f *finder) goSettings() map[string]string {
	file, ok := f.lookup("GOENV")
	if !ok {
		file = path.Join(f.folder("XDG_CONFIG_HOME", ".config"), "go/env")
	}
	settings := map[string]string{}
	if !path.IsAbs(file) {
		return settings
	}
	for line := range strings.Lines(f.read(file)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	return settings
}

// rust gives the toolchains of rustup, and the crates that cargo has fetched. cargo locks its home
// for each build, so a member has a separate one, in which the crates are links.
func (f *finder) rust() {
	if root := f.folder("RUSTUP_HOME", ".rustup"); f.give(root, "RUSTUP_HOME") {
		f.set("RUSTUP_HOME", root)
		f.pass("RUSTUP_TOOLCHAIN")
	}
	root := f.folder("CARGO_HOME", ".cargo")
	if root == "" {
		return
	}
	for _, name := range []string{"config.toml", "config"} {
		file := path.Join(root, name)
		if strings.Contains(f.read(file), "token") {
			f.omitted = append(f.omitted, file+" is not given to commands: it may hold a token; `cargo logout` and `cargo login` put it into credentials.toml")
			continue
		}
		f.link(".cargo/"+name, file)
	}
	if f.member.Network {
		return
	}
	f.link(".cargo/registry", path.Join(root, "registry"))
	f.link(".cargo/git", path.Join(root, "git"))
	f.set("CARGO_NET_OFFLINE", "true")
}

// npm gives the packages that npm has fetched. It writes logs beside them, so they are a link.
func (f *finder) npm() {
	if f.member.Network {
		return
	}
	f.link(".npm/_cacache", path.Join(f.folder("npm_config_cache", ".npm"), "_cacache"))
	f.set("npm_config_offline", "true")
}

// pip gives what pip has fetched. It wants a cache that it may write, so the parts are links;
// a wheel that it builds goes into its own.
func (f *finder) pip() {
	root := f.folder("PIP_CACHE_DIR", ".cache/pip")
	for _, name := range []string{"http", "http-v2"} {
		f.link(path.Join(".cache/pip", name), path.Join(root, name))
	}
	if f.member.Network {
		return
	}
	// Without a host, wheels come from folders of the user's.
	value, _ := f.lookup("PIP_FIND_LINKS")
	folders := slices.DeleteFunc(strings.Fields(value), func(dir string) bool {
		return !path.IsAbs(dir) || !f.isDir(dir) || !f.give(dir, "PIP_FIND_LINKS")
	})
	if len(folders) > 0 {
		f.set("PIP_FIND_LINKS", strings.Join(folders, " "))
	}
	f.set("PIP_NO_INDEX", "1")
}
