package shutdown_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		begun := time.Now()
		var at []time.Duration
		shutdown.Every(ctx, 2*time.Second, func(context.Context) { at = append(at, time.Since(begun)) })
		if want := []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second}; !slices.Equal(at, want) || time.Since(begun) != 7*time.Second {
			t.Errorf("it was called after %v and returned after %v, want %v and 7s", at, time.Since(begun), want)
		}
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		if !shutdown.Sleep(ctx, 2*time.Second) || time.Since(begun) != 2*time.Second {
			t.Errorf("it returned early, or after %v, want 2s", time.Since(begun))
		}
		if shutdown.Sleep(ctx, 2*time.Second) || time.Since(begun) != 3*time.Second {
			t.Errorf("it waited on after its context had ended, or returned after %v, want 3s", time.Since(begun))
		}
	})
}
