package toolchain

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"agentteam/pkg/team"
)

// machine makes a host of lines: "/dir/", "/file", "/file = text", "/link -> target". In a text, ⏎ ends a line.
func machine(lines string, env ...string) Host {
	files := fstest.MapFS{}
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		name, target, link := strings.Cut(line, " -> ")
		name, text, _ := strings.Cut(name, " = ")
		switch {
		case name == "":
		case link:
			files[inFS(name)] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		case strings.HasSuffix(name, "/"):
			files[inFS(name)] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			files[inFS(name)] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "⏎", "\n")), Mode: 0o755}
		}
	}
	return Host{FS: files, Env: func(name string) (string, bool) {
		for _, entry := range env {
			if n, value, _ := strings.Cut(entry, "="); n == name {
				return value, true
			}
		}
		return "", false
	}}
}

var member = Member{Home: "/state/homes/coder-1", Cache: "/state/builds/proj-1", Writable: []string{"/home/ann/proj"}}

// tools are what is given without credentials.
func tools(t *testing.T, h Host, m Member) Grant {
	t.Helper()
	g, err := Of(h, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// value returns a variable of a grant, and whether it is set.
func value(g Grant, name string) (last string, set bool) {
	for _, entry := range g.Env {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			last, set = v, true
		}
	}
	return last, set
}

// What PATH names is given with what it needs, and nothing that holds more.
func TestPath(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files, path, want string
		given             []string
		omitted           string // the only path; "-" for none, "" for an empty one
	}{
		"system only": {"/usr/bin/ls\n/bin -> usr/bin", "/usr/bin:/bin", "/usr/bin:/bin", nil, "-"},
		"no PATH":     {"/usr/bin/ls\n/bin/ls", "", "/usr/bin:/bin", nil, "-"},
		"not there":   {"/usr/bin/ls", "/usr/bin:/opt/none/bin", "/usr/bin", nil, "-"},
		"an installation": {"/home/ann/sdk/go1.26/bin/go\n/home/ann/sdk/go1.26/lib/time/", "/home/ann/sdk/go1.26/bin",
			"/home/ann/sdk/go1.26/bin", []string{"/home/ann/sdk/go1.26"}, "-"},
		"a folder of programs": {"/home/ann/go/bin/gopls\n/home/ann/go/src/secret.go", "/home/ann/go/bin", "/home/ann/go/bin", []string{"/home/ann/go/bin"}, "-"},
		"bin of the home":      {"/home/ann/bin/x\n/home/ann/lib/", "/home/ann/bin", "/home/ann/bin", []string{"/home/ann/bin"}, "-"},
		".local has keyrings":  {"/home/ann/.local/bin/x\n/home/ann/.local/lib/", "/home/ann/.local/bin", "/home/ann/.local/bin", []string{"/home/ann/.local/bin"}, "-"},
		"a linked program": {"/home/ann/bin/go -> /opt/go/bin/go\n/opt/go -> go-1.26\n/opt/go-1.26/bin/go\n/opt/go-1.26/VERSION", "/home/ann/bin",
			"/home/ann/bin", []string{"/home/ann/bin", "/opt/go", "/opt/go-1.26"}, "-"},
		"a program linked into the system folders": {"/usr/local/bin/node -> /home/ann/n/bin/node\n/home/ann/n/bin/node\n/home/ann/n/lib/", "/usr/local/bin",
			"/usr/local/bin", []string{"/home/ann/n"}, "-"},
		"a package of node": {"/home/ann/.npm-global/bin/tsc -> ../lib/node_modules/typescript/bin/tsc\n/home/ann/.npm-global/lib/node_modules/typescript/bin/tsc", "/home/ann/.npm-global/bin",
			"/home/ann/.npm-global/bin", []string{"/home/ann/.npm-global"}, "-"},
		"pipx": {"/home/ann/.local/bin/black -> /home/ann/.local/share/pipx/venvs/black/bin/black\n/home/ann/.local/share/pipx/venvs/black/bin/black\n" +
			"/home/ann/.local/share/pipx/venvs/black/pyvenv.cfg\n/home/ann/.local/share/pipx/venvs/black/bin/python -> /opt/py/bin/python3\n/opt/py/bin/python3\n/opt/py/lib/", "/home/ann/.local/bin",
			"/home/ann/.local/bin", []string{"/home/ann/.local/bin", "/home/ann/.local/share/pipx/venvs/black", "/opt/py"}, "-"},
		"fnm, under /run": {"/run/user/1000/fnm/1 -> /home/ann/.fnm/v20/installation\n/home/ann/.fnm/v20/installation/bin/node\n/home/ann/.fnm/v20/installation/lib/", "/run/user/1000/fnm/1/bin",
			"/home/ann/.fnm/v20/installation/bin", []string{"/home/ann/.fnm/v20/installation"}, "-"},
		"mise": {"/home/ann/.local/share/mise/shims/node\n/home/ann/.local/share/mise/installs/node/22.1/bin/node\n/home/ann/.local/share/mise/installs/node/22.1/lib/\n" +
			"/home/ann/.local/share/mise/installs/node/latest -> ./22.1", "/home/ann/.local/share/mise/shims",
			"/home/ann/.local/share/mise/installs/node/22.1/bin:/home/ann/.local/share/mise/installs/node/22.1", []string{"/home/ann/.local/share/mise"}, "-"},
		"nix": {"/home/ann/.nix-profile -> /nix/store/abc-profile\n/nix/store/abc-profile/bin/jq", "/home/ann/.nix-profile/bin", "/nix/store/abc-profile/bin", []string{"/home/ann/.nix-profile/bin", "/nix/store"}, "-"},

		"planted in the workspace":       {"/usr/bin/ls\n/home/ann/proj/bin/ls", "/home/ann/proj/bin:/usr/bin", "/usr/bin:/home/ann/proj/bin", nil, "-"},
		"a link into the workspace":      {"/usr/bin/ls\n/home/ann/proj/bin/ls\n/home/ann/b -> proj/bin", "/home/ann/b:/usr/bin", "/usr/bin:/home/ann/b", nil, "-"},
		"a link out of the workspace":    {"/usr/bin/ls\n/opt/x/bin/ls\n/home/ann/proj/b -> /opt/x/bin", "/home/ann/proj/b:/usr/bin", "/usr/bin:/home/ann/proj/b", nil, "-"},
		"the member's home":              {"/usr/bin/ls\n/state/homes/coder-1/bin/ls", "/state/homes/coder-1/bin:/usr/bin", "/usr/bin:/state/homes/coder-1/bin", nil, "-"},
		"holds the workspace":            {"/usr/bin/ls\n/home/ann/proj/x", "/home/ann:/usr/bin", "/usr/bin", nil, "/home/ann"},
		"the current folder":             {"/usr/bin/ls", ":/usr/bin", "/usr/bin", nil, ""},
		"a relative folder":              {"/usr/bin/ls\n/bin/ls", "node_modules/.bin:/usr/bin", "/usr/bin", nil, "node_modules/.bin"},
		"below secrets":                  {"/usr/bin/ls\n/home/ann/.config/composer/bin/x", "/home/ann/.config/composer/bin:/usr/bin", "/usr/bin", nil, "/home/ann/.config/composer/bin"},
		"a link to secrets":              {"/usr/bin/ls\n/home/ann/k -> .ssh\n/home/ann/.ssh/id", "/home/ann/k:/usr/bin", "/usr/bin", nil, "/home/ann/k"},
		"another's secrets":              {"/usr/bin/ls\n/home/bob/.aws/bin/x", "/home/bob/.aws/bin:/usr/bin", "/usr/bin", nil, "/home/bob/.aws/bin"},
		"a program that lies in secrets": {"/home/ann/bin/x -> ../.config/x/x\n/home/ann/.config/x/x", "/home/ann/bin", "/home/ann/bin", []string{"/home/ann/bin"}, "/home/ann/.config/x/x"},
		"sockets":                        {"/usr/bin/ls\n/run/user/1000/x", "/run/user/1000:/usr/bin", "/usr/bin", nil, "/run/user/1000"},
		"all of /opt":                    {"/usr/bin/ls\n/opt/bin/x\n/opt/lib/", "/opt/bin:/usr/bin", "/opt/bin:/usr/bin", []string{"/opt/bin"}, "-"},
		"links in a ring":                {"/usr/bin/ls\n/opt/a -> b\n/opt/b -> a", "/opt/a:/usr/bin", "/usr/bin", nil, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{"HOME=/home/ann", "PATH=" + tt.path}
			g := tools(t, machine(tt.files, env...), member)
			if got, _ := value(g, "PATH"); got != tt.want {
				t.Errorf("PATH is %s, want %s", got, tt.want)
			}
			if !slices.Equal(g.ReadOnly, tt.given) {
				t.Errorf("given: %q, want %q", g.ReadOnly, tt.given)
			}
			if got := append(g.Omitted, "-")[0]; got != tt.omitted || len(g.Omitted) > 1 {
				t.Errorf("omitted: %q, want %q", g.Omitted, tt.omitted)
			}
		})
	}
}

// A home that is a link is known by both names, and so are its secrets.
func TestLinkedHome(t *testing.T) {
	t.Parallel()
	h := machine(`
		/home/ann -> /data/ann
		/data/ann/sdk/bin/go
		/data/ann/sdk/lib/
		/data/ann/.ssh/bin/x
		/data/ann/bin/x
		/data/ann/lib/`, "HOME=/home/ann", "PATH=/home/ann/sdk/bin:/data/ann/.ssh/bin:/home/ann/bin")
	g := tools(t, h, member)
	if want := []string{"/data/ann/bin", "/data/ann/sdk", "/home/ann/bin", "/home/ann/sdk/bin"}; !slices.Equal(g.ReadOnly, want) {
		t.Errorf("given: %q, want %q", g.ReadOnly, want)
	}
	if got, _ := value(g, "PATH"); got != "/data/ann/sdk/bin:/data/ann/bin" {
		t.Errorf("PATH is %s", got)
	}
}

const caches = `
	/home/ann/go/pkg/mod/cache/download/
	/home/ann/.cargo/registry/src/
	/home/ann/.cargo/registry/cache/
	/home/ann/.cargo/credentials.toml = token
	/home/ann/.cargo/config.toml = [build]
	/home/ann/.rustup/toolchains/stable/
	/home/ann/.npm/_cacache/index-v5/
	/home/ann/.cache/pip/http-v2/
	/home/ann/.cache/ccache/0/
	/home/ann/.cache/go-build/00/
	/home/ann/.nvm/versions/node/v22/bin/node
	/opt/agentteam/teammate
	/home/ann/.config/go/env = GOFLAGS=-tags=x -mod=mod
	/home/ann/.pyenv/shims/python3
	/home/ann/.asdf/shims/ruby
	/home/ann/.tool-versions
	/home/ann/.gitconfig = [user]
	/home/ann/wheels/`

// Caches of the user serve a member without a network. What a member builds or fetches is the repository's.
func TestCaches(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=/home/ann", "PATH=/home/ann/.pyenv/shims:/home/ann/.asdf/shims:/home/ann/.nvm/versions/node/v22/bin", "PYENV_VERSION=3.11", "GOPRIVATE=example.com", "SECRET=1",
		"PIP_FIND_LINKS=/home/ann/wheels https://user:pass@example.com", "GOCACHEPROG=/home/ann/bin/own"}
	online := member
	online.Network = true
	both := []string{"/home/ann/wheels", "/home/ann/.asdf", "/home/ann/.cache/go-build", "/home/ann/.cargo/config.toml", "/home/ann/.nvm", "/home/ann/.pyenv", "/home/ann/.rustup", "/home/ann/.tool-versions", "/home/ann/go/pkg/mod", "/opt/agentteam/teammate"}
	const builds = "/state/builds/proj-1"
	built := map[string]string{
		"GOCACHE": builds + "/go-build", "GOCACHEPROG": "'/opt/agentteam/teammate' 'agentteam-go-cache' '/home/ann/.cache/go-build'", "CCACHE_DIR": builds + "/ccache", "CCACHE_BASEDIR": "/home/ann/proj",
		"RUSTUP_HOME": "/home/ann/.rustup", "PYENV_ROOT": "/home/ann/.pyenv", "PYENV_VERSION": "3.11", "ASDF_DATA_DIR": "/home/ann/.asdf", "NVM_DIR": "/home/ann/.nvm", "PIP_FIND_LINKS": "/home/ann/wheels", "GOPRIVATE": "example.com",
	}
	for name, tt := range map[string]struct {
		member Member
		given  []string
		env    map[string]string
		unset  []string
		links  map[string]string
		copies []string // where to
	}{
		"no network": {member,
			append(both, "/home/ann/.cargo/registry", "/home/ann/.npm/_cacache", "/home/ann/.cache/pip/http-v2"),
			map[string]string{
				"GOPROXY": "off", "GOSUMDB": "off", "GOMODCACHE": "/home/ann/go/pkg/mod", "GOFLAGS": "-tags=x -mod=mod", "CARGO_NET_OFFLINE": "true",
				"npm_config_offline": "true", "PIP_NO_INDEX": "1",
			},
			[]string{"SECRET", "CARGO_HOME", "HOME"},
			map[string]string{".cargo/registry": "/home/ann/.cargo/registry", ".npm/_cacache": "/home/ann/.npm/_cacache", ".cache/pip/http-v2": "/home/ann/.cache/pip/http-v2", ".cache/pip/wheels": builds + "/pip/wheels"},
			[]string{"ccache/0"}},
		"network": {online, both,
			map[string]string{"GOPROXY": "https://proxy.golang.org,direct|file:///home/ann/go/pkg/mod/cache/download", "GOFLAGS": "-tags=x -mod=mod -modcacherw", "GOMODCACHE": builds + "/mod"},
			[]string{"GOSUMDB", "CARGO_NET_OFFLINE", "npm_config_offline", "PIP_NO_INDEX"},
			map[string]string{".cargo/registry": builds + "/cargo/registry", ".cargo/git": builds + "/cargo/git", ".cargo/.package-cache": builds + "/cargo/.package-cache",
				".npm/_cacache": builds + "/npm/_cacache", ".cache/pip/http-v2": builds + "/pip/http-v2", ".cache/pip/wheels": builds + "/pip/wheels"},
			[]string{"ccache/0", "cargo/registry/cache", "npm/_cacache", "pip/http-v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := machine(caches, env...)
			h.Program = "/opt/agentteam/teammate"
			g := tools(t, h, tt.member)
			if slices.Sort(tt.given); !slices.Equal(g.ReadOnly, tt.given) {
				t.Errorf("given:\n%q, want\n%q", g.ReadOnly, tt.given)
			}
			maps.Copy(tt.env, built)
			for name, want := range tt.env {
				if got, _ := value(g, name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			for _, name := range tt.unset {
				if got, set := value(g, name); set {
					t.Errorf("%s is set to %q", name, got)
				}
			}
			for name, want := range tt.links {
				if g.links[name] != want {
					t.Errorf("%s leads to %q, want %q", name, g.links[name], want)
				}
			}
			for name := range g.links {
				if !slices.Contains(everyLink(), name) {
					t.Errorf("the link %s is not known to Populate", name)
				}
			}
			for _, to := range tt.copies {
				if !slices.ContainsFunc(g.copies, func(s seed) bool { return s.to == to && s.most > 0 }) {
					t.Errorf("%s is no copy: %+v", to, g.copies)
				}
			}
			if name == "no network" && slices.ContainsFunc(g.copies, func(s seed) bool { return !strings.HasPrefix(s.to, "ccache/") }) {
				t.Errorf("copied although the user's is read: %+v", g.copies)
			}
		})
	}
}

// A user whose caches lie elsewhere, a program that is not there, and toolchains without a home.
func TestCachesElsewhere(t *testing.T) {
	t.Parallel()
	h := machine("/usr/bin/ls\n/data/cache/go-build/\n/data/cache/ccache/0/\n/data/gb/\n/data/p", "HOME=/home/ann", "PATH=/usr/bin", "XDG_CACHE_HOME=/data/cache")
	h.Program = "/data/p"
	g := tools(t, h, member)
	if prog, _ := value(g, "GOCACHEPROG"); !strings.HasSuffix(prog, " '/data/cache/go-build'") || !slices.Contains(g.ReadOnly, "/data/cache/go-build") || len(g.copies) != 1 || g.copies[0].from != "/data/cache/ccache/0" {
		t.Errorf("%s, given %q, copies %+v", prog, g.ReadOnly, g.copies)
	}
	for env, want := range map[string]string{"GOPATH=/data/go:/other": "/data/go/pkg/mod", "GOMODCACHE=/data/mod": "/data/mod", "GOPATH=relative": "/home/ann/go/pkg/mod"} {
		g := tools(t, machine("/usr/bin/ls\n/data/go/pkg/mod/\n/data/mod/\n/home/ann/go/pkg/mod/", "HOME=/home/ann", "PATH=/usr/bin", env), member)
		if got, _ := value(g, "GOMODCACHE"); got != want || !slices.Contains(g.ReadOnly, want) {
			t.Errorf("%s: modules are in %q, want %q", env, got, want)
		}
	}
	h = machine("/usr/bin/ls\n/data/gb/\n/data/p\n/home/ann/.config/go/env = GOCACHE=/data/gb⏎GOMODCACHE=/data/gb", "HOME=/home/ann", "PATH=/usr/bin")
	for program, want := range map[string]string{"/data/p": "'/data/p' 'agentteam-go-cache' '/data/gb'", "/data/gone": "", "": "", "/home/ann/.ssh/p": ""} {
		h.Program = program
		g := tools(t, h, member)
		if got, _ := value(g, "GOCACHEPROG"); got != want {
			t.Errorf("program %q: GOCACHEPROG is %q, want %q", program, got, want)
		}
		if got, _ := value(g, "GOCACHE"); got != member.Cache+"/go-build" {
			t.Errorf("program %q: GOCACHE is %q", program, got)
		}
	}
}

// A variable that names a secret folder as a cache gives nothing, and that is told.
func TestCacheAmongSecrets(t *testing.T) {
	t.Parallel()
	g := tools(t, machine("/usr/bin/ls\n/home/ann/.ssh/mod/\n/home/ann/.ssh/0/\n/home/ann/.cargo/config.toml = [registry] token = 'x'",
		"HOME=/home/ann", "PATH=/usr/bin", "GOMODCACHE=/home/ann/.ssh/mod", "RUSTUP_HOME=/home/ann", "GOCACHE=/home/ann/.ssh", "CCACHE_DIR=/home/ann/.ssh"), member)
	told := slices.Compact(slices.Sorted(slices.Values(g.Omitted)))
	if len(g.ReadOnly)+len(g.copies) > 0 || !slices.Equal(told, []string{"/home/ann", "/home/ann/.cargo/config.toml", "/home/ann/.ssh", "/home/ann/.ssh/0", "/home/ann/.ssh/mod"}) {
		t.Errorf("given %q, omitted %q", g.ReadOnly, g.Omitted)
	}
	if got, set := value(g, "GOMODCACHE"); set {
		t.Errorf("GOMODCACHE is %q", got)
	}
}

func TestWithoutHome(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"", "/", "relative"} {
		g := tools(t, machine("/usr/bin/ls\n/.cargo/registry/\n/go/pkg/mod/\n/relative/go/pkg/mod/", "HOME="+home, "PATH=/usr/bin"), member)
		if len(g.ReadOnly) > 0 || len(g.Omitted) > 0 {
			t.Errorf("HOME=%q: given %q, omitted %q", home, g.ReadOnly, g.Omitted)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	const files = "/home/ann/.config/gh/hosts.yml\n/home/ann/.aws/credentials -> /data/keys/aws\n/data/keys/aws\n/home/ann/.gitconfig\n/home/ann/kube"
	for name, tt := range map[string]struct {
		names []string
		env   []string
		given []string
		set   []string
		fault string // words of the error; "" for none
	}{
		"none":              {nil, nil, nil, nil, ""},
		"a folder":          {[]string{"gh"}, nil, []string{"/home/ann/.config/gh"}, nil, ""},
		"a variable":        {[]string{"cargo"}, []string{"CARGO_REGISTRY_TOKEN=t"}, nil, []string{"CARGO_REGISTRY_TOKEN=t"}, ""},
		"both":              {[]string{"gh"}, []string{"GH_TOKEN=t", "OTHER=x"}, []string{"/home/ann/.config/gh"}, []string{"GH_TOKEN=t"}, ""},
		"a linked file":     {[]string{"aws"}, []string{"AWS_REGION=eu"}, []string{"/data/keys/aws", "/home/ann/.aws/credentials"}, []string{"AWS_REGION=eu"}, ""},
		"elsewhere":         {[]string{"kube"}, []string{"KUBECONFIG=/home/ann/kube"}, []string{"/home/ann/kube"}, []string{"KUBECONFIG=/home/ann/kube"}, ""},
		"the home itself":   {[]string{"kube"}, []string{"KUBECONFIG=/home/ann"}, nil, nil, "are not there"},
		"several":           {[]string{"gh", "git"}, nil, []string{"/home/ann/.config/gh", "/home/ann/.gitconfig"}, nil, ""},
		"unknown":           {[]string{"gh", "hg"}, nil, nil, nil, `no credentials are called "hg"`},
		"not there":         {[]string{"gh", "npm"}, nil, nil, nil, `credentials "npm" are not there: looked for ~/.npmrc, NPM_TOKEN, NODE_AUTH_TOKEN, NPM_CONFIG_USERCONFIG`},
		"not enough":        {[]string{"pip"}, []string{"TWINE_USERNAME=ann"}, nil, nil, "are not there"},
		"an empty variable": {[]string{"cargo"}, []string{"CARGO_REGISTRY_TOKEN="}, nil, nil, "are not there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := Credentials(machine(files, append(tt.env, "HOME=/home/ann")...), tt.names)
			if tt.fault != "" {
				if team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), tt.fault) || team.HintOf(err) == "" || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, hint %q", err, team.HintOf(err))
				}
				if len(g.ReadOnly)+len(g.Env) > 0 {
					t.Errorf("granted beside an error: %+v", g)
				}
				return
			}
			if err != nil || !slices.Equal(g.ReadOnly, tt.given) || !slices.Equal(g.Env, tt.set) {
				t.Errorf("%v: given %q, variables %q", err, g.ReadOnly, g.Env)
			}
			for name, target := range g.links {
				if !slices.Contains(everyLink(), name) || !path.IsAbs(target) {
					t.Errorf("the link %s to %s is not known to Populate", name, target)
				}
			}
		})
	}
}

// A secret folder is given by name only: what is granted for tools and what for gh are two things.
func TestSecretsByName(t *testing.T) {
	t.Parallel()
	h := machine("/home/ann/.config/gh/hosts.yml\n/home/ann/.config/gh/bin/x\n/home/ann/.gitconfig = [user]\n/opt/x/bin/y", "HOME=/home/ann", "PATH=/opt/x/bin:/home/ann/.config/gh/bin")
	g, err := Of(h, member, []string{"gh", "git"})
	if err != nil || !slices.Equal(g.ReadOnly, []string{"/home/ann/.config/gh", "/home/ann/.gitconfig", "/opt/x/bin"}) ||
		len(g.Omitted) != 1 || g.home != member.Home || g.links[".config/gh"] == "" || !slices.Equal(g.git.include, []string{"/home/ann/.gitconfig"}) {
		t.Errorf("%+v, %v", g, err)
	}
}
