package command

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// runInGroup runs cmd in a separate process group and returns as cmd.Run does, when cmd has ended; it then kills the
// remaining processes of the group.
func runInGroup(cmd *exec.Cmd, w *Watch) error {
	// The kernel reports the death of the thread that started a process, not of its process. Locked, that thread cannot
	// end before this function does, nor run a goroutine that ends it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	g, err := newGroup(w)
	if err != nil {
		return err
	}
	defer g.end()
	return g.run(cmd, w)
}

// run runs cmd in the group.
func (g *group) run(cmd *exec.Cmd, w *Watch) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.guard.Process.Pid}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	if w.Report() != nil { // the guard's time was up before the command was in the group
		g.kill()
	}
	return cmd.Wait()
}

// group is a process group that ends as a whole, at the latest with this process.
//
// Its leader is a guard that waits for this process to end, by SIGKILL too, and then kills the group: the kernel
// reports the death of a parent to its children, not to theirs. The leader is not reaped before the group is killed, so
// no other group can get its number.
//
// The guard also kills the group once the time has passed that it was sent last. So a command ends in time even if this
// process is frozen.
type group struct {
	guard *exec.Cmd
	alive *os.File // the guard reads from the other end until this process is gone
}

// guardScript reads how many seconds are left, and waits so long for the next number. Before version 4 (macOS has 3.2)
// bash knows whole seconds only. It closes its end before it kills: if a write to it still succeeds after a command has
// started, it will kill that command too.
const guardScript = `trap "" HUP INT QUIT TERM
while read -r ${left:+-t "$left"} left; do ((BASH_VERSINFO >= 4)) || left=${left%.*}; done
exec <&-
kill -KILL 0`

func newGroup(w *Watch) (*group, error) {
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
	g := &group{guard, alive}
	err = w.Guard(func(left time.Duration) error {
		_, err := fmt.Fprintf(alive, "%.3f\n", left.Seconds())
		return err
	})
	if err != nil {
		g.end()
		return nil, err
	}
	return g, nil
}

// end kills every process of the group, with the guard.
func (g *group) end() {
	g.kill()
	g.alive.Close()
	_ = g.guard.Wait() // "signal: killed", as it should be
}

func (g *group) kill() {
	_ = syscall.Kill(-g.guard.Process.Pid, syscall.SIGKILL) // fails only if nobody is left
}
