package tool

import "context"

// progressKey is the key of the progress function in a context.
type progressKey struct{}

// WithProgress returns a context in which [Progress] calls f, which must be quick and safe
// for concurrent use.
func WithProgress(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress is called by a slow tool whenever its work advances: a command has printed something. So the watcher of the
// call sees that it does not hang.
func Progress(ctx context.Context) {
	if f, ok := ctx.Value(progressKey{}).(func()); ok {
		f()
	}
}
