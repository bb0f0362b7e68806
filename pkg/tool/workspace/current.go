package workspace

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"agentteam/pkg/tool"
)

// Current is where a member works at each moment: the workspace of the task that it holds,
// or of none. When the task changes, the next use asks the source, and the former workspace
// is released once no call uses it. Safe for concurrent use.
type Current struct {
	source Source
	opts   Options
	work   func() Work

	mu  sync.Mutex // held while the source opens
	now *lent      // nil: none
}

// lent is a workspace that is released after its last use.
type lent struct {
	ws      *Workspace
	work    Work
	release func()
	users   atomic.Int32 // calls, and the Current itself
}

func (l *lent) done() {
	if l.users.Add(-1) == 0 {
		l.release()
	}
}

// Follow returns where a member works. work returns what it works on at the moment. The
// caller closes it when its tools are no longer called.
func Follow(s Source, work func() Work, o Options) *Current {
	o.seen = &seen{}
	return &Current{source: s, work: work, opts: o}
}

// Use returns the workspace of what the member works on now; the caller calls done once,
// after its use. It may take until ctx ends. Errors: those of the source.
func (c *Current) Use(ctx context.Context) (ws *Workspace, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	work := c.work()
	if c.now == nil || c.now.work.Task.ID != work.Task.ID || c.now.work.Task.Epoch != work.Task.Epoch || c.now.work.Head != work.Head || c.now.work.Team.OnLine() != work.Team.OnLine() || !sameHands(c.now.work, work) {
		ws, release, err := c.source.Open(ctx, work, c.opts)
		if err != nil {
			return nil, nil, err
		}
		c.giveBack()
		c.now = &lent{ws: ws, work: work, release: release}
		c.now.users.Add(1)
	}
	c.now.users.Add(1)
	return c.now.ws, c.now.done, nil
}

// sameHands reports whether the member may do the same: a person may have changed that meanwhile.
func sameHands(a, b Work) bool {
	return reflect.DeepEqual(a.Team.HandsOf(a.Member.Role), b.Team.HandsOf(b.Member.Role))
}

func (c *Current) giveBack() {
	if c.now != nil {
		c.now.done()
		c.now = nil
	}
}

// Close releases the workspace once no call uses it.
func (c *Current) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack()
}

// Tools are those of [Workspace.Tools]. Each call works in the workspace of its moment.
func (c *Current) Tools() []tool.Tool { return tools(c.Use) }

// Resume tells that the agent continues the work of an earlier process, which may have
// read files of which this one does not know how they were. From then on write_file
// replaces only what this process has read or written; edit_file needs no such rule, since
// its text must be in the file.
func (c *Current) Resume() {
	c.opts.seen.mu.Lock()
	defer c.opts.seen.mu.Unlock()
	c.opts.seen.resumed = true
}
