package leader

import (
	"sync"
	"time"

	"agentteam/pkg/spawn"
)

// children are the teammate processes that this one started. They outlive it,
// unless the owner of the whole cluster has ended.
type children struct {
	mu  sync.Mutex
	all map[*spawn.Child]bool
}

func (c *children) add(child *spawn.Child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*spawn.Child]bool{}
	}
	c.all[child] = true
	go func() {
		<-child.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, child)
	}()
}

// endWait is how long children may take to stop by themselves.
const endWait = 3 * time.Second

// end waits for the children, which end by the same lifeline, and kills those that
// do not.
func (c *children) end() {
	c.mu.Lock()
	var all []*spawn.Child
	for child := range c.all {
		all = append(all, child)
	}
	c.mu.Unlock()
	limit := time.After(endWait)
	for _, child := range all {
		select {
		case <-child.Done():
		case <-limit:
			child.Kill()
			<-child.Done()
			limit = time.After(0)
		}
	}
}
