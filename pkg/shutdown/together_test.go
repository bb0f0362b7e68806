package shutdown_test

import (
	"context"
	"errors"
	"testing"

	"agentteam/pkg/shutdown"
)

func TestTogether(t *testing.T) {
	wrong := errors.New("wrong")
	for name, first := range map[string]error{"nil": nil, "an error": wrong} {
		t.Run(name, func(t *testing.T) {
			ended := 0
			waits := func(ctx context.Context) error {
				<-ctx.Done()
				ended++ // of one such part, so nobody counts beside it
				return errors.New("the second to end")
			}
			err := shutdown.Together(t.Context(), waits, func(context.Context) error { return first })
			if err != first || ended != 1 {
				t.Errorf("it returned %v after %d others had ended, want %v and 1", err, ended, first)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	untilOver := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := shutdown.Together(ctx, untilOver, untilOver); err != nil {
		t.Errorf("parts that ended with their context: %v", err)
	}
}
