package e2e

import (
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// NATS is gone, or frozen, and then leader and teammate, both in the middle of their
// work and with a reader of their pages that hangs, are told to stop: neither hangs on
// its last words or on the reader.
func TestStopWhileServerIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*brokertest.Cluster){
		"killed": func(c *brokertest.Cluster) { c.Kill(0) },
		"frozen": func(c *brokertest.Cluster) { c.Freeze(0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nats := brokertest.NewCluster(t, 1)
			c := folder(t, rehearse(t, slowScript), append(confined(t), "NATS_URL="+nats.URL())...)
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
			conn := dial(t, nats.URL())
			tm := newTeam(t, conn, team.DefaultTeam)
			c.ok("run", "--detach", "go")
			child := c.pidIn("child.pid")
			all, err := conn.Status(t.Context())
			if err != nil || len(all.Leaders) != 1 || len(all.Members) != 1 {
				t.Fatalf("the processes are %+v, %v", all, err)
			}
			hang(t, all.Leaders[0].Metrics)
			hang(t, all.Members[0].Metrics)

			away(nats)
			for _, cmd := range processes {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			late := time.After(limit)
			for program := range processes {
				select {
				case err := <-ended[program]:
					if err != nil {
						t.Errorf("%s of %s ended: %v", program, tm.ID(), err)
					}
				case <-late:
					t.Fatalf("%s does not end", program)
				}
			}
			gone(t, child)
		})
	}
}

// hang asks for a page again and again and reads no answer. It returns once the server
// is stuck with its answers, and so takes no more questions.
func hang(t *testing.T, page string) {
	t.Helper()
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	questions := strings.Repeat("GET "+u.Path+" HTTP/1.1\r\nHost: "+u.Host+"\r\n\r\n", 1000)
	for err == nil {
		// One that is not stuck takes a thousand questions much faster.
		_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
		_, err = conn.Write([]byte(questions))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
