package worktree

import "sync"

// group counts what runs. Unlike a [sync.WaitGroup] it may be waited for while more begins.
type group struct {
	mu   sync.Mutex
	runs int
	none chan struct{} // closed once nothing runs; nil if nothing has
}

// Go runs f in a goroutine.
func (g *group) Go(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs++; g.runs == 1 {
		g.none = make(chan struct{})
	}
	go func() {
		defer g.done()
		f()
	}()
}

func (g *group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs--; g.runs == 0 {
		close(g.none)
	}
}

// idle returns a channel that is closed once nothing runs of what has begun.
func (g *group) idle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.none == nil {
		g.none = make(chan struct{})
		close(g.none)
	}
	return g.none
}
