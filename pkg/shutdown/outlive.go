package shutdown

import (
	"context"
	"time"
)

// Outlive returns a context that ends later than ctx, by the duration by: for work that must not stop half done,
// and must not hang while NATS is away when the process has to stop.
func Outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(by):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
