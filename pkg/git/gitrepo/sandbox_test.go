package gitrepo_test

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// Commit and Forward work in a sandbox that shows the tree and, for reading, the line's objects.
func TestInSandbox(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			s, err := sandbox.Find(t.Context(), level)
			testenv.Need(t, err)
			r := setUp(t)
			tr := r.tree("t-001")
			in, err := s.Runner(sandbox.Box{Dir: tr.Root, Home: t.TempDir(), ReadOnly: []string{"/usr", "/bin", "/lib", "/lib64", "/etc", tr.Objects()}})
			r.must(err)
			sh(t, tr.Dir, "sed -i s/^3$/three/ numbers.txt; ln -s numbers.txt link")
			for _, line := range []string{"echo x > $1/new", "mkdir $1/info/x", "echo x > $1/info/alternates", "rm -rf $1/*", "mv $1/pack away", "ln -s /etc $1/link"} {
				if exit, err := in.Run(r.ctx, command.Command{Args: []string{"sh", "-c", line, "sh", tr.Objects()}, Dir: tr.Dir, Output: io.Discard}); err == nil && exit.Code == 0 {
					t.Errorf("%s: %+v", line, exit)
				}
			}
			b, _, err := tr.Commit(r.ctx, in, message("T-001"))
			r.must(err)
			c, err := r.Import(r.ctx, b, tr.Base)
			r.must(err)
			r.work("T-002", "sed -i s/^17$/seventeen/ numbers.txt")
			head := r.take("T-001", c)
			if moved, err := tr.Forward(r.ctx, in, c, head); err != nil || !moved {
				t.Fatalf("moved %v: %v", moved, err)
			}
			if got := sh(t, tr.Dir, "git status --porcelain; cat numbers.txt"); got != strings.TrimSpace(r.at(head, "numbers.txt")) {
				t.Errorf("the tree has %q", got)
			}
		})
	}
}

// A repository whose files cannot be read to their end holds nobody up.
func TestDeadline(t *testing.T) {
	user := userRepo(t)
	if err := os.Remove(user + "/.git/config"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(user+"/.git/config", 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	if _, err := gitrepo.Inspect(ctx, user); err == nil {
		t.Error("no error")
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}
