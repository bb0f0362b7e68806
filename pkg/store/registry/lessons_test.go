package registry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
)

// A process that is at work hears of the lessons of others, and their corrections.
func TestLessonsOfOthers(t *testing.T) {
	url := brokertest.Server(t)
	learner, other := registry.NewLessons(), registry.NewLessons()
	run := func(l *registry.Lessons) func(context.Context) error {
		return func(ctx context.Context) error { return l.Run(ctx, brokertest.Connect(t, url), nil) }
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- shutdown.Together(ctx, run(learner), run(other)) }()
	for _, lesson := range []string{`{"Images":false}`, `{"Images":true}`, ""} {
		learner.Learn("k", lesson)
		brokertest.Until(t, "the lesson "+lesson+" arrives", func() bool { return other.Lesson("k") == lesson })
	}
	end()
	if err := brokertest.Receive(t, "the end", done); err != nil {
		t.Error(err)
	}
}

// A lesson counts for a day.
func TestOldLessonsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := registry.NewLessons()
		l.Learn("k", "{}")
		time.Sleep(24*time.Hour - time.Second)
		if got := l.Lesson("k"); got != "{}" {
			t.Errorf("after less than a day: %q", got)
		}
		time.Sleep(time.Second)
		if got := l.Lesson("k"); got != "" {
			t.Errorf("after a day: %q", got)
		}
	})
}
