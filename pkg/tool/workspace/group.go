package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// runInGroup runs cmd in a process group of its own and returns as cmd.Run does,
// when cmd has ended; what is left of the group is killed then. The group ends at the
// latest when allowed says so, see [Options.Allowed]; nil: nothing but its end ends it.
func runInGroup(cmd *exec.Cmd, allowed func() (time.Time, <-chan struct{})) error {
	// The parent whose death the kernel reports to a process is the thread that
	// started it. Locked, that thread cannot end before this function does, nor
	// pass to a goroutine that ends it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	g, err := newGroup(allowed)
	if err != nil {
		return err
	}
	defer g.end()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.guard.Process.Pid}
	dieWithParent(cmd.SysProcAttr)
	return cmd.Run()
}

// group is a process group that ends as a whole, at the latest with this process.
//
// Its leader is a guard that does nothing but wait for this process to end, by
// SIGKILL too, and then kill the group: the kernel tells the death of a parent to
// its children, not to theirs. And since the leader is not reaped before the
// group is killed, the group's number cannot meanwhile have become another's.
//
// The guard also kills the group once the time is up that it was told last. So a
// command ends in time although this process is frozen and can end nothing.
type group struct {
	guard *exec.Cmd
	alive *os.File // the guard reads from the other end until this process is gone
	ended chan struct{}
}

// guardScript reads how many seconds are left, and waits so long for the next word. Before
// version 4 (macOS has 3.2) bash knows whole seconds only.
const guardScript = `trap "" HUP INT QUIT TERM
while read -r ${left:+-t "$left"} left; do ((BASH_VERSINFO >= 4)) || left=${left%.*}; done
kill -KILL 0`

func newGroup(allowed func() (time.Time, <-chan struct{})) (*group, error) {
	r, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	guard := exec.Command("bash", "-c", guardScript)
	guard.Env = []string{} // nil would be ours, secrets and all
	guard.Stdin = r
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := guard.Start(); err != nil {
		alive.Close()
		return nil, err
	}
	g := &group{guard, alive, make(chan struct{})}
	if allowed != nil {
		moved, err := g.tell(allowed)
		if err != nil {
			g.end()
			return nil, err
		}
		go g.follow(allowed, moved)
	}
	return g, nil
}

// tell tells the guard how long the group may still run, and returns what is closed when
// that has changed.
func (g *group) tell(allowed func() (time.Time, <-chan struct{})) (moved <-chan struct{}, err error) {
	until, moved := allowed()
	// No time is told as a very short one: to bash, 0 seconds are something else.
	_, err = fmt.Fprintf(g.alive, "%.3f\n", max(time.Until(until), time.Millisecond).Seconds())
	return moved, err
}

// follow tells the guard each new time until the group has ended.
func (g *group) follow(allowed func() (time.Time, <-chan struct{}), moved <-chan struct{}) {
	for {
		select {
		case <-g.ended:
			return
		case <-moved:
		}
		var err error
		if moved, err = g.tell(allowed); err != nil {
			return // the guard is gone, and the group with it
		}
	}
}

// end kills every process of the group, the guard too.
func (g *group) end() {
	close(g.ended)
	_ = syscall.Kill(-g.guard.Process.Pid, syscall.SIGKILL) // fails only if nobody is left
	g.alive.Close()
	_ = g.guard.Wait() // "signal: killed", as it should be
}
