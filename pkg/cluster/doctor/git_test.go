package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// Git's own answer decides whether a commit would have a name: the settings and four variables of author and committer count.
func TestGitNames(t *testing.T) {
	for name, tt := range map[string]struct {
		set  map[string]string
		want Status
	}{
		"nothing":            {nil, Warn},
		"all four":           {map[string]string{"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}, OK},
		"of the author only": {map[string]string{"GIT_AUTHOR_NAME": "Ada", "EMAIL": "ada@example.org"}, Warn},
	} {
		t.Run(name, func(t *testing.T) {
			unnamed(t)
			for key, value := range tt.set {
				t.Setenv(key, value)
			}
			if g := find(t, gitChecks(t.Context(), config.Config{Workspace: t.TempDir()}), "git"); g.Status != tt.want {
				t.Errorf("git: %+v, want %s", g, tt.want)
			}
		})
	}
}

// unnamed clears the name and the address that git knows, for the duration of the test, and has it guess none.
func unnamed(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tuseConfigOnly = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, name := range []string{"XDG_CONFIG_HOME", "EMAIL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "") // to have it back at the end
		os.Unsetenv(name)
	}
}

// How git stands in the workspace is named, with what to do.
func TestGitChecks(t *testing.T) {
	unnamed(t)
	const begin = "git init -q -b main; git config user.name Ada; git config user.email ada@example.org; echo a >a; git add a; "
	const commit = begin + "git commit -qm first; "
	for name, tt := range map[string]struct {
		script    string
		shared    bool
		at        string
		git, repo Status
		detail    string
		hint      string
	}{
		"no repository":     {"true", false, ".", Warn, OK, "is in no git repository, so that all members", "git init"},
		"no commit":         {begin, false, ".", OK, Warn, "has no commit, so that all members", "make one"},
		"fine":              {commit, false, ".", OK, OK, ", on the branch main", ""},
		"no name":           {commit + "git config --unset user.email", false, ".", Warn, OK, ", on the branch main", ""},
		"detached":          {commit + "git checkout -q --detach", false, ".", OK, Warn, "its HEAD is on no branch", "git switch"},
		"shared":            {commit + "git checkout -q --detach", true, ".", OK, OK, "isolation is set to shared", ""},
		"a merge":           {commit + "git checkout -qb x; echo x >a; git commit -qam x; git checkout -q main; echo y >a; git commit -qam y; git merge -q x || true", false, ".", OK, Warn, "a merge is under way", "git status"},
		"a rebase":          {commit + "git checkout -qb x; echo x >a; git commit -qam x; git checkout -q main; echo y >a; git commit -qam y; git rebase -q x 2>/dev/null || true", false, ".", OK, Warn, "its HEAD is on no branch; a rebase is under way", "git switch"},
		"within submodule":  {commit + "git init -q ../lib; (cd ../lib; git config user.name Ada; git config user.email ada@example.org; git commit -q --allow-empty -m l); git -c protocol.file.allow=always submodule add -q ../lib lib 2>/dev/null; cd lib; git config user.name Ada; git config user.email a@example.org", false, "lib", OK, OK, "/project/lib, on the branch", ""},
		"an ignored folder": {commit + "echo /sub >.gitignore; mkdir sub; git add .gitignore; git commit -qm i", false, "sub", OK, Warn, "is ignored by the git repository", "isolation: shared"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "project")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("bash", "-ec", tt.script)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			cfg := config.Config{Workspace: filepath.Join(dir, tt.at)}
			if tt.shared {
				cfg.Policy.Isolation = team.Shared
			}
			checks := gitChecks(t.Context(), cfg)
			g, r := find(t, checks, "git"), find(t, checks, "repository")
			if g.Status != tt.git || !strings.Contains(g.Detail, "git version ") || (g.Status == OK) != (g.Hint == "") {
				t.Errorf("git: %+v", g)
			}
			if r.Status != tt.repo || !strings.Contains(r.Detail, tt.detail) || !strings.Contains(r.Hint, tt.hint) {
				t.Errorf("repository: %+v", r)
			}
			if name == "within submodule" && !strings.HasSuffix(r.Detail, ", a submodule of "+dir) {
				t.Errorf("repository: %+v", r)
			}
		})
	}
}
