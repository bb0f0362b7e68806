package leader

import (
	"context"
	"sync"

	"agentteam/pkg/cluster/childproc"
)

// children are the teammate processes that this one started. They outlive it, unless the owner of
// the whole cluster has ended.
type children struct {
	mu  sync.Mutex
	all map[*childproc.Process]bool
}

func (c *children) add(p *childproc.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*childproc.Process]bool{}
	}
	c.all[p] = true
	go func() {
		<-p.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, p)
	}()
}

// end waits for the children, which end by the same lifeline, and kills those that have not ended
// when ctx does.
func (c *children) end(ctx context.Context) {
	c.mu.Lock()
	var all []*childproc.Process
	for p := range c.all {
		all = append(all, p)
	}
	c.mu.Unlock()
	for _, p := range all {
		select {
		case <-p.Done():
		case <-ctx.Done():
			p.Kill()
			<-p.Done()
		}
	}
}
