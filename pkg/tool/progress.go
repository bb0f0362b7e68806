package tool

import "context"

// progressKey is the key under which a context holds what is called on progress.
type progressKey struct{}

// WithProgress returns a context in which [Progress] calls f, which must be quick and safe
// for concurrent use.
func WithProgress(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress is called by a tool that takes long, each time that its work gets on: a command
// has printed something. Whoever watches the call then knows that it does not hang.
func Progress(ctx context.Context) {
	if f, ok := ctx.Value(progressKey{}).(func()); ok {
		f()
	}
}
