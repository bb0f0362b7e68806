package toolchain

import (
	"path"
	"slices"
	"strings"
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
