package merge

import "context"

// At has f called before each step of the queue; its error ends the queue there, as if it were killed.
func (q *Queue) At(f func(ctx context.Context, step string) error) { q.step = f }
