package toolchain

import (
	"maps"
	"path"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// systemDirs are the folders that every sandbox has.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"}

func system(name string) bool { return within(name, systemDirs) }

// neverDirs contain files that work outside a sandbox only: sockets, devices, processes, snaps.
var neverDirs = []string{"/proc", "/sys", "/dev", "/run", "/boot", "/snap"}

// neverWhole are folders of which a part may be granted, but not all.
var neverWhole = []string{"/", "/home", "/root", "/tmp", "/var", "/var/tmp", "/mnt", "/media", "/srv", "/opt"}

// secretNames contain, below a home, keys, tokens, passwords, browser profiles, or histories of input.
var secretNames = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config", ".docker", ".kube", ".netrc", ".git-credentials",
	".npmrc", ".pypirc", ".pip", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
	".m2/settings-security.xml", ".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".vault-token", ".password-store", ".pki",
	".mozilla", ".thunderbird", ".snap", ".var", ".local/share/keyrings", ".local/state", ".cache/mozilla", ".cache/google-chrome", ".cache/chromium",
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".claude", ".codex", ".gemini", ".agentteam",
}

// Secrets returns the user's home and the absolute paths of its secrets, existing or not, also those in variables. ok is false if the
// user has no home.
func (h Host) Secrets() (home string, paths []string, ok bool) {
	home, _ = h.Env("HOME")
	if !path.IsAbs(home) || path.Clean(home) == "/" {
		return "", nil, false
	}
	home = path.Clean(home)
	for _, name := range secretNames {
		paths = append(paths, path.Join(home, name))
	}
	for _, variable := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "GNUPGHOME", "DOCKER_CONFIG", "CLAUDE_CONFIG_DIR", "CODEX_HOME"} {
		if dir, _ := h.Env(variable); path.IsAbs(dir) {
			paths = append(paths, path.Clean(dir))
		}
	}
	return home, paths, true
}

// SecretsAt returns the secrets of another user's home that contain a path; "" if none do.
func SecretsAt(name string) string {
	home := "/root"
	if rest, ok := strings.CutPrefix(name, "/home/"); ok {
		user, _, _ := strings.Cut(rest, "/")
		home = "/home/" + user
	}
	for _, s := range secretNames {
		if at := path.Join(home, s); below(name, at) {
			return at
		}
	}
	return ""
}

// secret reports whether a path, with links followed, is not given to commands: it holds more than tools, or works outside of a
// sandbox only, or may hold secrets, in each home and not in this user's alone, or holds more than the member may write.
func (f *finder) secret(name string) bool {
	if slices.Contains(neverWhole, name) || within(name, neverDirs) || slices.ContainsFunc(f.homes, func(home string) bool { return below(home, name) }) {
		return true
	}
	return slices.ContainsFunc(f.writable, func(w string) bool { return below(w, name) && w != name }) || slices.ContainsFunc(secretNames, func(s string) bool {
		return strings.Contains(name+"/", "/"+s+"/") || slices.ContainsFunc(f.homes, func(home string) bool { return below(path.Join(home, s), name) })
	})
}

// credential is where a program stores the user's identity.
type credential struct {
	files []string // below the user's home; a folder stands for all below it
	paths []string // variables that name a file or folder in place of those
	env   []string // variables that hold a secret; one of them is enough
	with  []string // variables that go along, and are not enough
	login string   // how the files come to be there
}

// known are the credentials that a role can name. If a program writes beside its secrets, its files are named one by one.
var known = map[string]credential{
	"aws": {files: []string{".aws/config", ".aws/credentials", ".aws/sso"}, paths: []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}, env: []string{"AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"},
		with: []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"}, login: "aws configure"},
	"cargo":  {files: []string{".cargo/credentials.toml", ".cargo/credentials"}, env: []string{"CARGO_REGISTRY_TOKEN"}, login: "cargo login"},
	"docker": {files: []string{".docker/config.json"}, paths: []string{"DOCKER_CONFIG"}, env: []string{"DOCKER_AUTH_CONFIG"}, login: "docker login"},
	"gcloud": {files: []string{".config/gcloud/active_config", ".config/gcloud/configurations", ".config/gcloud/credentials.db", ".config/gcloud/application_default_credentials.json", ".config/gcloud/legacy_credentials"},
		paths: []string{"GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"}, env: []string{"CLOUDSDK_AUTH_ACCESS_TOKEN"}, with: []string{"CLOUDSDK_CORE_PROJECT", "GOOGLE_CLOUD_PROJECT"}, login: "gcloud auth login"},
	// Else it keeps the token in a keyring, which is a socket.
	"gh":    {files: []string{".config/gh"}, paths: []string{"GH_CONFIG_DIR"}, env: []string{"GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN"}, with: []string{"GH_HOST"}, login: "gh auth login --insecure-storage"},
	"git":   {files: []string{".git-credentials", ".gitconfig", ".config/git"}, paths: []string{"GIT_CONFIG_GLOBAL"}, login: "git config --global credential.helper store"},
	"kube":  {files: []string{".kube/config"}, paths: []string{"KUBECONFIG"}, login: "kubectl config set-credentials"},
	"netrc": {files: []string{".netrc"}, paths: []string{"NETRC"}},
	"npm":   {files: []string{".npmrc"}, paths: []string{"NPM_CONFIG_USERCONFIG"}, env: []string{"NPM_TOKEN", "NODE_AUTH_TOKEN"}, login: "npm login"},
	"pip":   {files: []string{".config/pip", ".pip", ".pypirc"}, paths: []string{"PIP_CONFIG_FILE"}, env: []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "TWINE_PASSWORD"}, with: []string{"TWINE_USERNAME"}},
}

// credentials grants the named credentials, and returns the whole grant.
func (f *finder) credentials(names []string) (Grant, error) {
	for _, name := range names {
		c, ok := known[name]
		if !ok {
			return Grant{}, team.Errorf(team.InvalidArgument, "no credentials are called %q", name).
				WithHint("use some of: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if !f.credential(name, c) {
			looked := slices.Clone(c.files)
			for i := range looked {
				looked[i] = "~/" + looked[i]
			}
			err := team.Errorf(team.InvalidArgument, "credentials %q are not there: looked for %s", name, strings.Join(slices.Concat(looked, c.env, c.paths), ", "))
			if c.login == "" {
				return Grant{}, err.WithHint("make one of them, or take %q out of credentials", name)
			}
			return Grant{}, err.WithHint("run `%s` as the user of this process, or take %q out of credentials", c.login, name)
		}
	}
	f.grant.ReadOnly = outermost(f.grant.ReadOnly)
	return f.grant, nil
}

// credential grants the existing parts of a credential, and reports whether there are any.
func (f *finder) credential(name string, c credential) (found bool) {
	for _, file := range c.files {
		at := path.Join(f.user, file)
		if f.user == "" || !f.named(at) {
			continue
		}
		found = true
		if file == ".gitconfig" { // where the member's own settings go
			f.grant.git.include = append(f.grant.git.include, at)
			continue
		}
		f.grant.links[file] = at
	}
	for _, variable := range c.paths {
		if at, ok := f.lookup(variable); ok && path.IsAbs(at) && f.named(at) {
			f.set(variable, at)
			found = true
		}
	}
	for _, variable := range c.env {
		found = f.pass(variable) || found
	}
	for _, variable := range c.with {
		if found {
			f.pass(variable)
		}
	}
	return found
}

// pass passes on a variable of the user, and reports whether it is set.
func (f *finder) pass(name string) bool {
	value, ok := f.lookup(name)
	if ok {
		f.set(name, value)
	}
	return ok
}

// named grants a path that is known to contain secrets, if it exists and is not a whole home.
func (f *finder) named(name string) bool {
	_, names, err := f.follow(name)
	if err != nil || slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains(neverWhole, n) || within(n, neverDirs) || slices.ContainsFunc(f.homes, func(home string) bool { return below(home, n) })
	}) {
		return false
	}
	f.grant.ReadOnly = append(f.grant.ReadOnly, names...)
	return true
}
