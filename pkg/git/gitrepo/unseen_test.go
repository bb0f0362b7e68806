package gitrepo_test

import (
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
)

// What trees lack is named from the user's folder, dependencies first, without what is made again.
func TestUnseen(t *testing.T) {
	dir := userRepo(t)
	sh(t, dir, `git init -q ../lib && cd ../lib && echo l >l && git add l && git commit -qm l`)
	sh(t, dir, `printf '/data\n.env*\n.venv\n__pycache__\nbuild\n*.o\n"odd\n' >>.gitignore; git add .gitignore; git commit -qm ignore
		git -c protocol.file.allow=always submodule add -q ../lib sub/lib 2>/dev/null; git -c protocol.file.allow=always submodule add -q ../lib empty 2>/dev/null; git commit -qm modules; git submodule -q deinit -f empty
		mkdir -p node_modules/a sub/node_modules/b .venv/bin __pycache__ build data sub/build/x; for d in node_modules/a sub/node_modules/b .venv/bin __pycache__ build data sub/build/x; do echo x >$d/f; done
		echo x >.env; echo x >.env.local; echo x >a.log; echo x >b.o; echo x >untracked; mkdir -p .agentteam/data; echo '*' >.agentteam/.gitignore; ln -s "$HOME" sub/.agentteam; echo sub/.agentteam >>.git/info/exclude`)
	for at, want := range map[string]string{"": "node_modules .venv .env .env.local data sub/node_modules; sub/lib", "sub": "node_modules; lib"} {
		c, err := gitrepo.Inspect(t.Context(), dir+"/"+at)
		if err != nil {
			t.Fatal(err)
		}
		u, err := c.Unseen(t.Context())
		if got := strings.Join(u.Ignored, " ") + "; " + strings.Join(u.Submodules, " "); err != nil || got != want {
			t.Errorf("in %q: %s, %v; want %s", at, got, err, want)
		}
	}
}
