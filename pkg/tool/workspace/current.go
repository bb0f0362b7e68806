package workspace

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Current is the workspace of a member: that of the task that it holds, or of none. When the task changes, the next use
// opens a workspace from the source, and the former one is released once no call uses it. Safe for concurrent use.
type Current struct {
	source Source
	opts   Options
	work   func() Work

	mu  sync.Mutex     // held while the source opens
	now *delegatedFile // nil: none
}

// delegatedFile is a workspace that is released after its last use.
type delegatedFile struct {
	ws      *Workspace
	work    Work
	release func()
	users   atomic.Int32  // calls, commands in the background, and the Current itself
	gone    chan struct{} // closed when the tree is given up; of all that were lent for it
}

func (l *delegatedFile) done() {
	if l.users.Add(-1) == 0 {
		l.release()
	}
}

// Follow returns the current workspace of a member. work returns its present work. The caller closes it when its tools
// are no longer called.
func Follow(s Source, work func() Work, o Options) *Current {
	o.seen = &seen{}
	return &Current{source: s, work: work, opts: o}
}

// Use returns the workspace of the member's present work; the caller calls done once, after its use. It may block until
// ctx ends. Errors: those of the source.
func (c *Current) Use(ctx context.Context) (ws *Workspace, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.use(ctx, c.work())
}

// use is Use for work, while mu is held.
func (c *Current) use(ctx context.Context, work Work) (ws *Workspace, done func(), err error) {
	if c.now == nil || !sameTask(c.now.work, work) || !sameTree(c.now.work, work) || c.now.work.Head != work.Head || !samePolicy(c.now.work, work) {
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
		c.now = &delegatedFile{ws: ws, work: work, release: release, gone: gone}
		c.now.users.Add(1)
	}
	c.now.users.Add(1)
	return c.now.ws, c.now.done, nil
}

// sameTree reports whether two works are in the same folder: in a team with an integration branch each hold of a task
// has a tree, and a member without a task has one that follows the head.
func sameTree(a, b Work) bool {
	if !a.Team.HasBranch() && !b.Team.HasBranch() {
		return true
	}
	return a.Team.HasBranch() == b.Team.HasBranch() && sameTask(a, b)
}

// sameTask reports whether two works are of the same hold of a task, or both without a task.
func sameTask(a, b Work) bool { return a.Task.ID == b.Task.ID && a.Task.Epoch == b.Task.Epoch }

// thereKey is the key under which a context holds the [Work] to which its calls are bound.
type thereKey struct{}

// Here returns a function that binds contexts to the member's present work, for the tools of [Current.Bound].
func (c *Current) Here() (bind func(context.Context) context.Context) {
	then := c.work()
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, thereKey{}, then) }
}

// Bound returns the tools for work that is bound to its place, see [Current.Here]: once the member has left it, they do
// nothing. None of them runs anything in the background.
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

// Settle gives back a tree in which the member no longer works, and ends its background commands there.
func (c *Current) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil && !sameTree(c.now.work, c.work()) {
		c.giveBack(nil)
	}
}

// samePolicy reports whether the member's commands run under the same policy: a person may have changed it. Policies by
// which calls are judged do not matter to a running command.
func samePolicy(a, b Work) bool {
	of := func(w Work) team.Policy {
		h := w.Team.PolicyOf(w.Member.Role)
		h.Permissions, h.PermissionMode, h.PermissionAsk = team.Permissions{}, "", ""
		return h
	}
	return reflect.DeepEqual(of(a), of(b))
}

// giveBack gives up the present workspace; next is the tree that follows, if it may be the same.
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

// Tools returns the tools of [Workspace.Tools]. Each call works in the current workspace.
func (c *Current) Tools() []tool.Tool { return tools(c.Use, c.opts.Begin != nil) }

// Resume states that the agent continues the work of an earlier process, which may have read files whose state this
// process does not know. From then on write_file replaces only files that this process has read or written; edit_file
// needs no such rule, since its text must be in the file.
func (c *Current) Resume() {
	c.opts.seen.mu.Lock()
	defer c.opts.seen.mu.Unlock()
	c.opts.seen.resumed = true
}
