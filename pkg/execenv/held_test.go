package execenv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// gitIn runs git on the host, as a user does.
func gitIn(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// No trick of a shell reads a file that a rule denies to read, or changes one that a rule denies to edit, and git in the box takes
// them for unchanged: no commit of a member has them.
func TestRulesAreHeldByTheBox(t *testing.T) {
	r := newRig(t, team.Bubblewrap)
	if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".env": "KEY=c4n4ry\n", "sub/.env": "KEY=c4n4ry2\n", "secrets/a/key": "c4n4ry3\n", "vendor/x.go": "package x\n", "run.sh": "#!/bin/sh\n", "untracked/.env": "c4n4ry4\n"} {
		put(t, filepath.Join(r.dir, name), text)
	}
	gitIn(t, r.dir, "printf '.agentteam\\nuntracked\\n' > .gitignore; git init -q; touch -d '1 hour ago' .env sub/.env secrets/a/key vendor/x.go; git add -A; git commit -qm first")
	r.record.Policy.Permissions = team.Permissions{Deny: []string{"Read(.env)", "Read(/secrets/**)", "Edit(/vendor/**)"}}
	for _, try := range []string{
		"python3 -c 'print(open(\".env\").read())'", "cat .env sub/.env secrets/a/key untracked/.env", "grep -r c4n4r .", "tar cf - . | grep -a c4n4r", "f=env; cat .$f; cat < .env", "cp -r . /tmp/copy; grep -r c4n4r /tmp/copy",
		"ln -s .env l; cat l", "ln .env h; cat h", "mv sub moved; cat moved/.env; mv moved sub", "mv .env e; cat e", "chmod 600 .env; cat .env", "rm -rf sub secrets; git stash; cat sub/.env", "umount .env; cat .env",
		"(exec 3<.env; cat <&3)", "python3 - <<'E'\nimport os\nfor d,_,f in os.walk('.'):\n  for n in f:\n    try: print(open(os.path.join(d,n)).read())\n    except OSError: pass\nE",
	} {
		if got := r.run("{ " + try + "; } 2>&1"); strings.Contains(got, "c4n4ry") {
			t.Errorf("%s: %s", try, got)
		}
	}
	for _, try := range []string{"echo x > vendor/x.go", "rm -rf vendor", "mv vendor v", "echo x > vendor/y.go", "sed -i s/x/y/ vendor/x.go", "python3 -c 'open(\"vendor/x.go\",\"w\")'"} {
		r.run("{ " + try + "; } 2>&1")
	}
	if got := gitIn(t, r.dir, "cat .env sub/.env secrets/a/key vendor/x.go; ls vendor; git status --porcelain | grep -v '^??' || true"); got != "KEY=c4n4ry\nKEY=c4n4ry2\nc4n4ry3\npackage x\nx.go" {
		t.Errorf("on the host: %s", got)
	}

	// The repository of a shared folder is read-only, so git in the box shows and stores nothing.
	if got := r.run("rm -f l h e; echo more >> main.go; git status --porcelain 2>&1; git diff --stat 2>&1"); !strings.HasPrefix(got, "M main.go\n main.go | 1 +") || strings.Count(got, "|") != 1 {
		t.Errorf("git in the box: %s", got)
	}
	if got := gitIn(t, r.dir, "git status --porcelain"); got != "M main.go" {
		t.Errorf("git on the host: %s", got)
	}
}
