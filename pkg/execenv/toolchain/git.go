package toolchain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// gitSettings are git's settings for a home that is not the user's.
type gitSettings struct {
	name, email string
	include     []string // files with more
}

// gitFile is git's system settings, below a member's home: those of a repository and of the member override them.
const gitFile = ".cache/agentteam/gitconfig"

// gitUser finds the user in whose name members commit.
func (f *finder) gitUser() {
	for _, file := range f.gitSettings() {
		var settings config.Config
		if err := config.NewDecoder(strings.NewReader(f.read(file))).Decode(&settings); err != nil {
			continue // git itself reports it, to its user
		}
		user := settings.Section("user")
		f.grant.git.name, f.grant.git.email = cmp.Or(f.grant.git.name, user.Option("name")), cmp.Or(f.grant.git.email, user.Option("email"))
	}
	for name, to := range map[string]*string{"GIT_AUTHOR_NAME": &f.grant.git.name, "GIT_AUTHOR_EMAIL": &f.grant.git.email} {
		if value, ok := f.lookup(name); ok {
			*to = value
		}
	}
}

// GitSettings returns the files of the user's git settings for all repositories; the first that has a setting counts.
func (h Host) GitSettings() []string { return newFinder(h, Member{}).gitSettings() }

func (f *finder) gitSettings() []string {
	if file, ok := f.lookup("GIT_CONFIG_GLOBAL"); ok {
		return []string{file}
	}
	files := []string{f.folder("", ".gitconfig"), f.folder("", ".config/git/config")}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// text returns the file. Programs started by the settings of another user's repository are confined as well.
func (g gitSettings) text() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace
	var b strings.Builder
	b.WriteString("[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n[user]\n")
	b.WriteString("\tname = \"" + quote(cmp.Or(g.name, "agentteam")) + "\"\n")
	b.WriteString("\temail = \"" + quote(cmp.Or(g.email, "agentteam@localhost")) + "\"\n")
	for _, file := range g.include {
		b.WriteString("[include]\n\tpath = \"" + quote(file) + "\"\n")
	}
	return b.String()
}
