package registry

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
)

// lessonKeys is the prefix of the keys of lessons in the registry.
const lessonKeys = "lesson."

// lessonsLast is how long a lesson counts: an endpoint that has changed meanwhile may no longer want what it has taught.
const lessonsLast = 24 * time.Hour

// Lessons are the lessons of model endpoints, shared by all processes of the server; the client of models states their
// form. They are only a help: without a connection each process learns alone. Safe for concurrent use.
type Lessons struct {
	mu     sync.Mutex
	known  map[string]lesson // by key
	unsent map[string]string // learned here, not stored yet
	wake   chan struct{}
}

type lesson struct {
	text string
	at   time.Time
}

// NewLessons returns an empty store, which [Lessons.Run] connects.
func NewLessons() *Lessons {
	return &Lessons{known: map[string]lesson{}, unsent: map[string]string{}, wake: make(chan struct{}, 1)}
}

// Lesson returns the lesson that was stored under key in the last 24 hours, or "". It does not block.
func (l *Lessons) Lesson(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known[key]; time.Since(known.at) < lessonsLast {
		return known.text
	}
	return ""
}

// Learn stores a lesson. It does not block: Run sends it to the server.
func (l *Lessons) Learn(key, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[key], l.unsent[key] = lesson{text, time.Now()}, text
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run exchanges lessons with the other processes of c's server until ctx ends, and returns the first failure. It calls
// ready once it has those that were there.
func (l *Lessons) Run(ctx context.Context, c *broker.Conn, ready func()) error {
	b, err := c.Registry(ctx)
	if err != nil {
		return err
	}
	return shutdown.Together(ctx, func(ctx context.Context) error {
		return b.Watch(ctx, l.hear, ready, lessonKeys+">")
	}, func(ctx context.Context) error { return l.send(ctx, b) })
}

// hear takes a lesson of another process; one that was learned here and is on its way replaces it.
func (l *Lessons) hear(e broker.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.TrimPrefix(e.Key, lessonKeys)
	if _, newer := l.unsent[key]; !newer {
		l.known[key] = lesson{string(e.Value), e.Time}
	}
	return nil
}

// lessonPause is the time between tries to store a lesson while NATS is away.
const lessonPause = 10 * time.Second

// send stores what is learned here, until ctx ends.
func (l *Lessons) send(ctx context.Context, b *broker.Bucket) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		l.mu.Lock()
		unsent := maps.Clone(l.unsent)
		l.mu.Unlock()
		for key, text := range unsent {
			for b.Set(ctx, lessonKeys+key, []byte(text)) != nil && shutdown.Sleep(ctx, lessonPause) {
			}
			l.mu.Lock()
			if l.unsent[key] == text {
				delete(l.unsent, key)
			}
			l.mu.Unlock()
		}
	}
}
