package needs

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// gitSettings are what git is to know in a home that is not the user's.
type gitSettings struct {
	name, email string
	include     []string // files with more
}

func (g gitSettings) and(more gitSettings) gitSettings {
	return gitSettings{cmp.Or(more.name, g.name), cmp.Or(more.email, g.email), slices.Concat(g.include, more.include)}
}

// gitFile is, below a member's home, what git reads for the settings of the system: the weakest,
// so that those of a repository hold against it, and what the member sets for itself. Other
// settings are another file: git fails where one names a file that its command may not read, and a
// member's subagent may read less.
func (g Grant) gitFile() string {
	sum := sha256.Sum256([]byte(g.git.text()))
	return fmt.Sprintf(".cache/agentteam/gitconfig-%x", sum[:6])
}

// namingGit returns g with the variable that names the file.
func (g Grant) namingGit() Grant {
	if path.IsAbs(g.home) {
		g.Env = append(g.Env, "GIT_CONFIG_SYSTEM="+path.Join(g.home, g.gitFile()))
	}
	return g
}

// FurnishGit puts into the member's home what git reads with these variables, and no more: for
// commands beside those of the member, which have less. It may be called again, also while they run.
// Error: what could not be made.
func (g Grant) FurnishGit() error {
	home, err := g.openHome()
	if err != nil {
		return err
	}
	defer home.Close()
	return g.furnishGit(home)
}

func (g Grant) furnishGit(home *os.Root) error {
	if err := furnishFile(home, g.gitFile(), g.git.text()); err != nil {
		return fmt.Errorf("furnish %s with %s: %w", g.home, g.gitFile(), err)
	}
	return nil
}

// gitUser finds the user by whose name members commit.
func (f *finder) gitUser() {
	for _, file := range f.gitFiles() {
		var settings config.Config
		if err := config.NewDecoder(strings.NewReader(f.read(file))).Decode(&settings); err != nil {
			continue // git itself reports it, to its user
		}
		user := settings.Section("user")
		f.git.name, f.git.email = cmp.Or(f.git.name, user.Option("name")), cmp.Or(f.git.email, user.Option("email"))
	}
	for name, to := range map[string]*string{"GIT_AUTHOR_NAME": &f.git.name, "GIT_AUTHOR_EMAIL": &f.git.email} {
		if value, ok := f.lookup(name); ok {
			*to = value
		}
	}
}

// gitFiles are the settings of the user for all repositories; the first that has one holds.
func (f *finder) gitFiles() (files []string) {
	if file, ok := f.lookup("GIT_CONFIG_GLOBAL"); ok {
		return []string{file}
	}
	if f.home == "" {
		return nil
	}
	return []string{path.Join(f.home, ".gitconfig"), path.Join(f.folder("XDG_CONFIG_HOME", ".config"), "git/config")}
}

// text returns the file. A repository of another user is no danger to a command in a sandbox:
// what its settings start is confined as well.
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
