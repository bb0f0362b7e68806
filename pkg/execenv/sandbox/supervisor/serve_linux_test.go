package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// started starts a script as a command, in a process group of its own. Nothing waits for it.
func started(t *testing.T, script string) *child {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Stdout = t.TempDir(), os.Stdout // a file, so that nothing waits for its end
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{pid: cmd.Process.Pid, ended: make(chan struct{}), gone: make(chan struct{})}
}

// A process that has the number of the command, once that is collected, is not taken for the command.
func TestNumberIsUsedAgain(t *testing.T) {
	c := started(t, "exit 3")
	c.collected = true
	close(c.ended)
	c.reap() // returns with the last process
	if got := c.report(ByItself); got.Code != 0 {
		t.Errorf("the command has ended with %+v", got)
	}
}

// Of those that have ended the one that was seen is collected: a command that ends meanwhile is not, before its group is ended.
func TestOneIsCollected(t *testing.T) {
	command, other := started(t, "exit 3"), started(t, "exit 4")
	for _, c := range []*child{command, other} {
		if err := waitid(waitPid, c.pid, nil, waitExited|waitLeave); err != nil {
			t.Fatal(err)
		}
	}
	command.collected = true // it had not ended when that was asked
	command.take(other.pid)
	command.collected = false
	command.reap()
	if got := command.report(ByItself); got.Code != 3 {
		t.Errorf("the command has ended with %+v", got)
	}
}

// The group of a command ends with it, and at a limit, by one call: its processes are not looked for one by one.
func TestGroupEnds(t *testing.T) {
	if err := prctl(prSetChildSubreaper, 1); err != nil {
		t.Fatal(err)
	}
	defer prctl(prSetChildSubreaper, 0)
	for name, tt := range map[string]struct {
		last string
		end  func(c *child)
	}{
		"with it":    {"exit 0", (*child).reap},
		"at a limit": {"sleep 20", (*child).killGroup},
	} {
		late := filepath.Join(t.TempDir(), "late")
		c := started(t, "(sleep 20; echo > "+late+") & "+tt.last)
		tt.end(c)
		for { // until nothing of it is left
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
				break
			}
		}
		if _, err := os.Stat(late); err == nil {
			t.Errorf("%s: a process of the group has gone its way", name)
		}
	}
}

// A command that is to be confined, and by what nobody knows, does not start.
func TestConfinedByNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	ready, ended := make(chan struct{}), make(chan error)
	close(ready)
	c := &child{}
	go func() {
		runtime.LockOSThread() // it may be confined in part, and ends with this function
		ended <- c.launch(Spec{Confined: true}, ready, "/bin/sh", []string{"sh", "-c", ": > " + file}, &os.ProcAttr{})
	}()
	if err := <-ended; err == nil || c.pid != 0 {
		t.Errorf("it has started as process %d, %v", c.pid, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it has run")
	}
}
