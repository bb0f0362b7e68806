package needs

import (
	"path"
	"slices"
	"strings"
)

// systemDirs are those that every sandbox has.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"}

func system(name string) bool { return within(name, systemDirs) }

// neverDirs hold what works outside of a sandbox only: sockets, devices, processes, snaps.
var neverDirs = []string{"/proc", "/sys", "/dev", "/run", "/boot", "/snap"}

// neverWhole are folders of which a part may be given, but not all.
var neverWhole = []string{"/", "/home", "/root", "/tmp", "/var", "/var/tmp", "/mnt", "/media", "/srv", "/opt"}

// secretNames are, below a home, what holds secrets: keys, tokens, passwords, profiles of
// browsers, what was typed.
var secretNames = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config", ".docker", ".kube", ".netrc", ".git-credentials",
	".npmrc", ".pypirc", ".pip", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
	".m2/settings-security.xml", ".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".vault-token", ".password-store", ".pki",
	".mozilla", ".thunderbird", ".snap", ".var", ".local/share/keyrings", ".local/state", ".cache/mozilla", ".cache/google-chrome", ".cache/chromium",
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".claude", ".codex", ".gemini", ".agentteam",
}

// secret returns why a path is not given to commands; "" if nothing speaks against it. It judges
// the name: whether links lead elsewhere is for the caller.
func (f *finder) secret(name string) string {
	switch {
	case slices.Contains(neverWhole, name):
		return name + " holds more than tools"
	case within(name, neverDirs):
		return name + " works outside of a sandbox only"
	}
	for _, home := range f.homes {
		if below(home, name) {
			return name + " holds the whole home"
		}
	}
	for _, s := range secretNames {
		// In each home, not this user's alone.
		if before, _, ok := strings.Cut(name+"/", "/"+s+"/"); ok {
			return path.Join(before, s) + " may hold secrets"
		}
		for _, home := range f.homes {
			if below(path.Join(home, s), name) {
				return name + " holds " + s + ", where secrets may be"
			}
		}
	}
	for _, w := range f.writable {
		if below(w, name) && w != name {
			return name + " holds the workspace, or what else the member writes"
		}
	}
	return ""
}
