package workspace

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"agentteam/pkg/team"
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
	users   atomic.Int32  // calls, commands in the background, and the Current itself
	gone    chan struct{} // closed when the tree is given up; of all that were lent for it
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
	return c.use(ctx, c.work())
}

// use is Use of what the member works on, while mu is held.
func (c *Current) use(ctx context.Context, work Work) (ws *Workspace, done func(), err error) {
	if c.now == nil || !sameTask(c.now.work, work) || !sameTree(c.now.work, work) || c.now.work.Head != work.Head || !sameHands(c.now.work, work) {
		gone := make(chan struct{})
		if c.now != nil && sameTree(c.now.work, work) {
			gone = c.now.gone
		}
		o := c.opts
		o.gone = gone
		ws, release, err := c.source.Open(ctx, work, o)
		if err != nil {
			return nil, nil, err
		}
		c.giveBack(gone)
		c.now = &lent{ws: ws, work: work, release: release, gone: gone}
		c.now.users.Add(1)
	}
	c.now.users.Add(1)
	return c.now.ws, c.now.done, nil
}

// sameTree reports whether two works are done in the same folder: in a team on the line each hold
// of a task has a tree, and who holds none has one that is brought forward when the head moves.
func sameTree(a, b Work) bool {
	if !a.Team.HasBranch() && !b.Team.HasBranch() {
		return true
	}
	return a.Team.HasBranch() == b.Team.HasBranch() && sameTask(a, b)
}

// sameTask reports whether two works are of the same hold of a task, or both of none.
func sameTask(a, b Work) bool { return a.Task.ID == b.Task.ID && a.Task.Epoch == b.Task.Epoch }

// thereKey is the key under which a context holds the [Work] to which its calls are bound.
type thereKey struct{}

// Here returns what binds contexts to where the member works at this moment, for the tools of
// [Current.Bound].
func (c *Current) Here() (bind func(context.Context) context.Context) {
	then := c.work()
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, thereKey{}, then) }
}

// Bound are the tools for work that is bound to where it was begun, see [Current.Here]: once that is
// given up, they do nothing. None of them runs anything in the background.
func (c *Current) Bound() []tool.Tool {
	return tools(func(ctx context.Context) (*Workspace, func(), error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		work := c.work()
		if then, ok := ctx.Value(thereKey{}).(Work); !ok || !sameTree(then, work) {
			return nil, nil, team.Errorf(team.InvalidState, "%w", errGone)
		}
		return c.use(ctx, work)
	}, false)
}

// Settle gives back a tree in which the member does not work any more, and ends what still runs there
// in the background.
func (c *Current) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil && !sameTree(c.now.work, c.work()) {
		c.giveBack(nil)
	}
}

// sameHands reports whether commands of the member run alike: a person may have changed what they may
// meanwhile. By what calls are judged counts for none that runs.
func sameHands(a, b Work) bool {
	of := func(w Work) team.Policy {
		h := w.Team.PolicyOf(w.Member.Role)
		h.Permissions, h.PermissionMode, h.PermissionAsk = team.Permissions{}, "", ""
		return h
	}
	return reflect.DeepEqual(of(a), of(b))
}

// giveBack gives up what is lent; next is the tree that follows, if it may be the same.
func (c *Current) giveBack(next chan struct{}) {
	if c.now != nil {
		if c.now.gone != next {
			close(c.now.gone)
		}
		c.now.done()
		c.now = nil
	}
}

// Close releases the workspace once no call uses it.
func (c *Current) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack(nil)
}

// Tools are those of [Workspace.Tools]. Each call works in the workspace of its moment.
func (c *Current) Tools() []tool.Tool { return tools(c.Use, c.opts.Begin != nil) }

// Resume tells that the agent continues the work of an earlier process, which may have
// read files of which this one does not know how they were. From then on write_file
// replaces only what this process has read or written; edit_file needs no such rule, since
// its text must be in the file.
func (c *Current) Resume() {
	c.opts.seen.mu.Lock()
	defer c.opts.seen.mu.Unlock()
	c.opts.seen.resumed = true
}
