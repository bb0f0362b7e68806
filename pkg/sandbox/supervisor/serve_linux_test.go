package supervisor

import (
	"os"
	"os/exec"
	"testing"
)

// A process that has the number of the command, once that is collected, is not taken for the command.
func TestNumberIsUsedAgain(t *testing.T) {
	other := exec.Command("sh", "-c", "exit 3")
	other.Stdout = os.Stdout // a file, so that nothing waits for it but reap
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{pid: other.Process.Pid, ended: make(chan struct{}), gone: make(chan struct{}), collected: true}
	close(c.ended)
	c.reap() // returns with the last process
	if got := c.report(ByItself); got.Code != 0 {
		t.Errorf("the command has ended with %+v", got)
	}
}
