package local

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
)

// A process that nobody knows any more, and that is frozen, is found by the lifeline
// that it holds, and does not stay.
func TestEndOrphans(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc")
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	frozen, stranger := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	frozen.ExtraFiles = []*os.File{read}
	for _, cmd := range []*exec.Cmd{frozen, stranger} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill() // it may have ended
	}
	if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if got := holders(read); !slices.Equal(got, []int{frozen.Process.Pid}) {
		t.Errorf("the pipe is held by %v, want %d", got, frozen.Process.Pid)
	}
	ended := make(chan error, 1)
	go func() { ended <- frozen.Wait() }()
	endOrphans(read, 50*time.Millisecond)
	brokertest.Receive(t, "the orphan ends", ended)
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process that does not hold the pipe: %v", err)
	}
}
