package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/team"
)

// A command that its time limit ends names what the cluster did not answer.
func TestTimeLimitNamesItsCause(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	a := &app{cmd: cmd}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, errTimeout)
	defer cancel()
	<-ctx.Done()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"only the time":      {ctx.Err(), "the time limit (--timeout) has passed"},
		"what was under way": {team.Errorf(team.Unavailable, "read x: %w", ctx.Err()), "the time limit (--timeout) has passed"},
		"JetStream is away":  {team.Errorf(team.Unavailable, "read x: no responders\nat all").WithHint("wait"), "the time limit (--timeout) has passed: read x: no responders at all"},
		"one that was ended": {errInterrupted, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			err := a.ended(ctx, c.err)
			if err.Error() != c.want {
				t.Errorf("it says %q, want %q", err, c.want)
			}
			if code := team.ExitCode(err); c.err != errInterrupted && (code != 124 || !errors.Is(err, errTimeout) || failureOf(err).Code != timedOut) {
				t.Errorf("its exit status is %d, and its failure %+v", code, failureOf(err))
			}
		})
	}
	err := (&runRequest{}).left(a.ended(ctx, team.Errorf(team.Unavailable, "NATS is away").WithHint("start it")))
	if want := "the time limit (--timeout) has passed before the goal was set; nothing was begun: NATS is away"; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
}
