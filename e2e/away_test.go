package e2e

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// stopWithin is what is promised of a process that is told to stop, whatever the
// state of NATS.
const stopWithin = 5 * time.Second

// NATS is gone, or frozen, and then leader and teammate, both in the middle of their
// work, are told to stop: neither hangs on its goodbyes.
func TestStopWhileServerIsAway(t *testing.T) {
	for name, away := range map[string]func(*brokertest.Cluster){
		"killed": func(c *brokertest.Cluster) { c.Kill(0) },
		"frozen": func(c *brokertest.Cluster) { c.Freeze(0) },
	} {
		t.Run(name, func(t *testing.T) {
			nats := brokertest.NewCluster(t, 1)
			c := &cluster{t: t, dir: t.TempDir()}
			c.env = append(environ(), "NATS_URL="+nats.URL(), "OPENAI_MODEL=rehearsal", "OPENAI_BASE_URL="+rehearse(t, slowScript))
			processes := map[string]*exec.Cmd{}
			ended := map[string]chan error{}
			for _, program := range []string{"leader", "teammate"} {
				cmd := exec.Command(filepath.Join(bin, program))
				cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, t.Output(), t.Output()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- cmd.Wait() }()
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				processes[program], ended[program] = cmd, done
			}
			conn, err := client.Connect(t.Context(), client.Options{URL: nats.URL()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
			tm := newTeam(t, conn, team.DefaultTeam)
			c.ok("run", "--detach", "go")
			child := c.pidIn("child.pid")

			away(nats)
			begun := time.Now()
			for _, cmd := range processes {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			late := time.After(limit)
			for program := range processes {
				select {
				case err := <-ended[program]:
					if took := time.Since(begun); took > stopWithin || err != nil {
						t.Errorf("%s of %s ended after %v: %v", program, tm.ID(), took, err)
					}
				case <-late:
					t.Fatalf("%s does not end", program)
				}
			}
			gone(t, child)
		})
	}
}
