package workspace

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runInGroup runs cmd in a process group of its own and returns as cmd.Run does,
// when cmd has ended; what is left of the group is killed then.
func runInGroup(cmd *exec.Cmd) error {
	// The parent whose death the kernel reports to a process is the thread that
	// started it. Locked, that thread cannot end before this function does, nor
	// pass to a goroutine that ends it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	g, err := newGroup()
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
type group struct {
	guard *exec.Cmd
	alive *os.File // the guard reads from the other end until this process is gone
}

func newGroup() (*group, error) {
	r, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	guard := exec.Command("bash", "-c", `trap "" HUP INT QUIT TERM; read -r; kill -KILL 0`)
	guard.Env = []string{} // nil would be ours, secrets and all
	guard.Stdin = r
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := guard.Start(); err != nil {
		alive.Close()
		return nil, err
	}
	return &group{guard, alive}, nil
}

// end kills every process of the group, the guard too.
func (g *group) end() {
	_ = syscall.Kill(-g.guard.Process.Pid, syscall.SIGKILL) // fails only if nobody is left
	g.alive.Close()
	_ = g.guard.Wait() // "signal: killed", as it should be
}
