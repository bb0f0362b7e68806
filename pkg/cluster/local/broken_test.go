package local

import (
	"os/exec"
	"testing"
)

// A program that ends by its own error, or cannot be loaded, would end so again; one that others have ended, or that did
// not reach NATS, would not.
func TestFaulty(t *testing.T) {
	for how, want := range map[string]bool{
		"exit 0": false, "exit 1": true, "exit 2": true, "exit 5": false, "exit 124": false, "exit 126": true, "exit 127": true, "exit 130": false, "exit 143": false,
		"kill -KILL $$": false, "kill -TERM $$": false, "kill -INT $$": false, "kill -SEGV $$": true, "kill -SYS $$": true, "kill -ILL $$": true,
	} {
		if got := faulty(exec.Command("/bin/sh", "-c", how).Run()); got != want {
			t.Errorf("%s: %v, want %v", how, got, want)
		}
	}
	if !faulty(exec.Command("/nowhere/leader").Run()) {
		t.Error("a program that is not there is tried for ever")
	}
}
