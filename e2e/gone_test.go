package e2e

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// goneScript has a leader whose commands last longer than any test.
const goneScript = `
agents:
  - match: {role: leader}
    rules:
      - name: go
        since: '<mail from="user"'
        steps:
          - say: I begin.
            calls:
              - {tool: bash, args: {command: exec sleep 1000}}
          - say: I go on.
            calls:
              - {tool: bash, args: {command: exec sleep 1000}}
          - say: That is all.
`

// follower is a command that goes on until its cluster ends.
type follower struct {
	name string
	*exec.Cmd
	out, errs printed
}

func (c *cluster) follow(args ...string) *follower {
	c.t.Helper()
	f := &follower{name: strings.Join(args, " "), Cmd: c.command(args...)}
	f.Stdout, f.Stderr = &f.out, &f.errs
	if err := f.Start(); err != nil {
		c.t.Fatal(err)
	}
	return f
}

// Whoever follows a team hears that its server is frozen, and that its cluster was killed, goes on at the new address of
// the one that is started in its place, and ends as soon as that is ended in order.
func TestClusterGoesAway(t *testing.T) {
	t.Parallel()
	c := up(t, goneScript, 0)
	c.ok("tasks", "add", "--title", "for somebody else", "--role", "tester")
	run := c.follow("run", "go")
	until(t, "the run shows its leader at work", func() bool { return strings.Contains(run.out.String(), "I begin.") })
	all := []*follower{run, c.follow("events", "-f"), c.follow("tasks", "-w"), c.follow("tasks", "wait", "T-001")}
	until(t, "the followers show something", func() bool {
		return strings.Contains(all[1].out.String(), "I begin.") && strings.Contains(all[2].out.String(), "T-001")
	})
	late := c.follow("events", "-f", "--timeout", "4s")
	until(t, "the last one shows something", func() bool { return strings.Contains(late.out.String(), "I begin.") })

	before := c.pids()
	// A server that is frozen hangs up on nobody.
	if err := syscall.Kill(before[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		until(t, f.name+" says that the server is silent", func() bool { return strings.Contains(f.errs.String(), "NATS is away at nats://127.0.0.1:") })
	}
	if err := syscall.Kill(before[0], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		until(t, f.name+" says that the server answers", func() bool { return strings.Contains(f.errs.String(), "NATS is back at nats://127.0.0.1:") })
	}
	if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range before {
		gone(t, pid)
	}
	for _, f := range all {
		until(t, f.name+" says that the cluster has died", func() bool { return strings.Contains(f.errs.String(), "has died: its process") })
	}
	if code := wait(t, late.Cmd); code != 124 {
		t.Errorf("%s ends with %d: %s", late.name, code, late.errs.String())
	}
	if code, _, errs := exit(t, c.command("agents")); code != 5 || !strings.Contains(errs, "has died: its process") || !strings.Contains(errs, "teamctl up -d") {
		t.Errorf("a command without the cluster ends with %d: %s", code, errs)
	}

	c.ok("up", "-d", "-n", "0")
	for _, f := range all {
		until(t, f.name+" says that the cluster is back", func() bool { return strings.Count(f.errs.String(), "NATS is back at nats://127.0.0.1:") == 2 })
	}
	c.ok("tasks", "add", "--title", "made since", "--role", "tester")
	until(t, "the followers go on", func() bool {
		return strings.Contains(run.out.String(), "I go on.") && strings.Contains(all[1].out.String(), "I go on.") && strings.Contains(all[2].out.String(), "made since")
	})

	c.ok("down")
	for _, f := range all {
		if code := wait(t, f.Cmd); code != 5 || !strings.Contains(f.errs.String(), "was ended") {
			t.Errorf("%s: after the end of its cluster it ends with %d: %s", f.name, code, f.errs.String())
		}
	}
	c.ok("up", "-d", "-n", "0") // for the end of the test
}
