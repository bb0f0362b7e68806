package mergequeue

import (
	"context"
	"time"
)

// At has f called before each step of the queue; its error ends the queue there, as if it were killed.
func (q *Queue) At(f func(ctx context.Context, step string) error) { q.step = f }

// Rests is how long the queue waits now, if it hears nothing.
func (q *Queue) Rests() time.Duration {
	_, _, wait := q.turn(context.Background(), time.Now())
	return wait
}
