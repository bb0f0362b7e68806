package command

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A command has no input, variables beside those of this process, and one output in the order
// of the writes.
func TestWhatACommandIsGiven(t *testing.T) {
	var output bytes.Buffer
	exit, err := Plain{}.Run(t.Context(), Command{
		Args: []string{"bash", "-c", `cat; echo first; echo "$EXTRA" >&2; echo last; exit 3`}, Dir: t.TempDir(), Env: []string{"EXTRA=more"}, Output: &output,
	})
	if err != nil || exit != (Exit{Code: 3, How: "exit status 3", Sandbox: team.Unconfined}) || output.String() != "first\nmore\nlast\n" {
		t.Errorf("%+v, %v: %q", exit, err, &output)
	}
}

func TestWhyACommandEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		command Command
		code    int
		cause   error
	}{
		"by itself":        {Command{Args: []string{"true"}}, 0, nil},
		"by its own hand":  {Command{Args: []string{"bash", "-c", "kill -KILL $$"}}, -1, nil},
		"the time was up":  {Command{Args: []string{"sleep", "600"}, Limit: 10 * time.Millisecond}, -1, ErrTimeout},
		"no longer its":    {Command{Args: []string{"sleep", "600"}, Allowed: func() (time.Time, <-chan struct{}) { return time.Now().Add(-time.Second), nil }}, -1, ErrNotAllowed},
		"within its limit": {Command{Args: []string{"false"}, Limit: time.Hour}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tt.command.Dir, tt.command.Output = t.TempDir(), io.Discard
			exit, err := Plain{}.Run(t.Context(), tt.command)
			if err != nil || exit.Code != tt.code || !errors.Is(exit.Cause, tt.cause) || tt.cause == nil && exit.Cause != nil {
				t.Errorf("%+v, %v, want code %d, cause %v", exit, err, tt.code, tt.cause)
			}
		})
	}
	if _, err := (Plain{}).Run(t.Context(), Command{Args: []string{"no-such-program"}, Dir: t.TempDir(), Output: io.Discard}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// The guard kills a group only once. A command that comes into the group after that ends too.
func TestCommandAfterItsGuard(t *testing.T) {
	past := func() (time.Time, <-chan struct{}) { return time.Now().Add(-time.Second), nil }
	w, err := Command{Output: io.Discard, Allowed: past}.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.End()
	g, err := newGroup(w)
	if err != nil {
		t.Fatal(err)
	}
	defer g.end()
	brokertest.Until(t, "the guard is gone", func() bool { return w.Report() != nil })
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := g.run(cmd, w); err == nil || cmd.ProcessState.Exited() {
		t.Errorf("ended with %v: %v", err, cmd.ProcessState)
	}
}
