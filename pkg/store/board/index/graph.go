package index

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// graph holds the tasks and the facts that follow from their dependencies. It is updated change by change; the cost of a
// change depends on the edges that it touches, not on the number of tasks.
type graph struct {
	nodes   map[team.TaskID]*node
	ordered []*node // every node that ever had a task; by number if inOrder
	inOrder bool

	count    map[team.TaskStatus]int
	running  map[*node]struct{}        // in progress
	held     map[team.Holder]hold      // the tasks of each incarnation of an agent
	free     map[string]int            // how many are claimable, by role; those that are reserved do not count
	ready    backlog                   // the claimable ones; the longest claimable is first
	heaps    map[string]*backlog       // the claimable ones without an offer or a reservation, by role; in order of work
	kept     map[team.AgentID]*backlog // the others of these, by the member that they are reserved for; none is empty
	reserved map[*node]struct{}        // the pending ones that are reserved, claimable or not
	resting  map[*node]struct{}        // those that would be in heaps, but for the cooldown of a member that has put them back
	now      time.Time                 // of the newest entry, or the newest match
	ended    []mark                    // failed and cancelled ones, in the order of the feed
	done     []mark                    // completed ones, in the same order
	moved    uint64                    // newest revision at which any task changed
}

// node is a task in the graph. Its task has no status if it is only named as a dependency, if its record cannot be read,
// or if its creation is not complete yet.
type node struct {
	id         team.TaskID
	number     int
	task       team.Task
	needs      []*node            // its dependencies, as the task names them
	missing    int                // those of them that are not completed
	dependents map[*node]struct{} // tasks that name it as a dependency
	endedAt    uint64             // its mark in graph.ended or graph.done
	offer      *offer             // under way; nil if there is none
	declined   []declined         // the members that have put it back, by its task
	at         int                // place in its role's heap; -1 if it is in none
	ready      int                // place in graph.ready; -1 if it is not claimable
	since      time.Time          // since when it is claimable; it stays while it is in graph.ready
	filed      bool               // it is placed among the claimable ones
	listed     bool               // it is in graph.ordered
}

// hold sums up the tasks that one incarnation of an agent has in progress.
type hold struct {
	tasks  int    // one, unless a rule was broken
	newest uint64 // revision of the newest of their records
}

// declined records that a member has put a task back, and the time at which the feed showed that first.
type declined struct {
	by team.AgentID
	at time.Time
}

// mark records that a task has ended.
type mark struct {
	revision uint64
	node     *node
}

func newGraph() graph {
	return graph{nodes: map[team.TaskID]*node{}, inOrder: true, count: map[team.TaskStatus]int{},
		running: map[*node]struct{}{}, held: map[team.Holder]hold{}, free: map[string]int{},
		ready: backlog{before: (*node).older, at: func(n *node) *int { return &n.ready }}, heaps: map[string]*backlog{},
		kept: map[team.AgentID]*backlog{}, reserved: map[*node]struct{}{}, resting: map[*node]struct{}{}}
}

func (g *graph) node(id team.TaskID) *node {
	n := g.nodes[id]
	if n == nil {
		id = team.TaskID(strings.Clone(string(id))) // the node outlives the record that names it; see package codec
		n = &node{id: id, number: id.Number(), at: -1, ready: -1}
		g.nodes[id] = n
	}
	return n
}

// known reports whether the task is on the board, not only named as a dependency.
func (n *node) known() bool { return n.task.Status != "" }

func (n *node) claimable() bool { return n.task.Status == team.Pending && n.missing == 0 }

// compare orders tasks for work, as team.Task.Compare does; the number of each id is parsed once.
func (n *node) compare(o *node) int {
	return cmp.Or(cmp.Compare(o.task.Priority, n.task.Priority), cmp.Compare(n.number, o.number))
}

func (n *node) sooner(o *node) bool { return n.compare(o) < 0 }

func (n *node) older(o *node) bool { return n.since.Before(o.since) }

func (n *node) compareNumber(o *node) int { return cmp.Compare(n.number, o.number) }

// letGo removes one task from the hold of h; that task is no longer in progress.
func (g *graph) letGo(h team.Holder) {
	left := hold{tasks: g.held[h].tasks - 1}
	if left.tasks == 0 {
		delete(g.held, h)
		return
	}
	for n := range g.running {
		if n.task.HeldBy(h) {
			left.newest = max(left.newest, n.task.Revision)
		}
	}
	g.held[h] = left
}

// set makes t the task of n; the zero Task takes it off the board. revision is the feed's.
func (g *graph) set(n *node, t team.Task, revision uint64) {
	was := n.task
	g.lift(n)
	if was.Status == team.InProgress {
		delete(g.running, n)
		g.letGo(team.Holder{Agent: was.Assignee, Incarnation: was.Incarnation})
	}
	if was.ReservedFor != "" {
		delete(g.reserved, n)
	}
	if t.ReservedFor != "" && t.Status == team.Pending {
		g.reserved[n] = struct{}{}
	}
	g.link(n, t.Dependencies)
	n.decline(t, g.now)
	n.task = t
	g.moved = revision
	if was.Status != t.Status {
		g.tally(was.Status, -1)
		g.tally(t.Status, 1)
		n.endedAt = revision // of the status; a later copy does not end the task again
		switch t.Status {
		case team.Failed, team.Cancelled:
			g.ended = append(g.ended, mark{revision, n})
		case team.Completed:
			g.done = append(g.done, mark{revision, n})
		}
	}
	if !n.listed && n.known() {
		n.listed = true
		g.inOrder = g.inOrder && (len(g.ordered) == 0 || g.ordered[len(g.ordered)-1].number < n.number)
		g.ordered = append(g.ordered, n)
	}
	if t.Status == team.InProgress {
		g.running[n] = struct{}{}
		h := team.Holder{Agent: t.Assignee, Incarnation: t.Incarnation}
		g.held[h] = hold{g.held[h].tasks + 1, max(g.held[h].newest, t.Revision)}
	}
	if before, after := was.Status == team.Completed, t.Status == team.Completed; before != after {
		by := 1
		if after {
			by = -1
		}
		for d := range n.dependents {
			g.lift(d)
			d.missing += by
			g.place(d)
		}
	}
	g.place(n)
}

func (g *graph) tally(s team.TaskStatus, by int) {
	if s != "" {
		g.count[s] += by
	}
}

// link makes deps the dependencies of n, each counted once.
func (g *graph) link(n *node, deps []team.TaskID) {
	if slices.Equal(n.task.Dependencies, deps) {
		return
	}
	for _, d := range n.needs {
		delete(d.dependents, n)
	}
	n.needs, n.missing = make([]*node, 0, len(deps)), 0
	for _, id := range deps {
		d := g.node(id)
		n.needs = append(n.needs, d)
		if _, twice := d.dependents[n]; twice {
			continue
		}
		if d.dependents == nil {
			d.dependents = map[*node]struct{}{}
		}
		d.dependents[n] = struct{}{}
		if d.task.Status != team.Completed {
			n.missing++
		}
	}
}

// lift takes n out of its heap and count, before its role, reservation, priority or dependencies change; place puts it
// back. Both are idempotent.
func (g *graph) lift(n *node) {
	a := n.task.ReservedFor
	delete(g.resting, n)
	if n.at >= 0 && a == "" {
		heap.Remove(g.heaps[n.task.Role], n.at)
	} else if n.at >= 0 {
		if h := g.kept[a]; h.Len() == 1 {
			h.Pop()
			delete(g.kept, a)
		} else {
			heap.Remove(h, n.at)
		}
	}
	if n.filed && a == "" {
		g.free[n.task.Role]--
	}
	n.filed = false
}

func (g *graph) place(n *node) {
	if !n.claimable() {
		if n.ready >= 0 {
			heap.Remove(&g.ready, n.ready)
		}
		return
	}
	if n.ready < 0 {
		n.since = g.claimableSince(n)
		heap.Push(&g.ready, n)
	}
	if n.filed {
		return
	}
	n.filed = true
	if a := n.task.ReservedFor; a != "" {
		if n.offer == nil {
			heap.Push(backlogOf(g.kept, team.AgentID(strings.Clone(string(a)))), n)
		}
		return
	}
	g.free[n.task.Role]++
	switch {
	case n.offer != nil:
	case n.backoffUntil(g.now):
		g.resting[n] = struct{}{}
	default:
		heap.Push(backlogOf(g.heaps, n.task.Role), n)
	}
}

// backlogOf returns the heap of that name, and makes it on first use.
func backlogOf[K comparable](heaps map[K]*backlog, name K) *backlog {
	h := heaps[name]
	if h == nil {
		h = &backlog{before: (*node).sooner, at: func(n *node) *int { return &n.at }}
		heaps[name] = h
	}
	return h
}

// claimableSince returns the time since which n has been claimable by the records: its last write, or the completion of
// its last dependency, whichever is later. It does not depend on the order of reading, nor on writes to dependencies after
// their completion.
func (g *graph) claimableSince(n *node) time.Time {
	since := n.task.UpdatedAt
	for _, d := range n.needs {
		if at := d.task.CompletedAt; at != nil && at.After(since) {
			since = *at
		}
	}
	return since
}

// best returns the first task for this role in the order of work, nil if there is none.
func (g *graph) best(role string) *node {
	if h := g.heaps[role]; h != nil {
		return h.first()
	}
	return nil
}

// bind marks n as offered, or with a nil o as free for another offer.
func (g *graph) bind(n *node, o *offer) {
	g.lift(n)
	n.offer = o
	g.place(n)
}

// byNumber returns all tasks in order of their numbers.
func (g *graph) byNumber(yield func(*node) bool) {
	if !g.inOrder {
		slices.SortFunc(g.ordered, (*node).compareNumber)
		g.inOrder = true
	}
	for _, n := range g.ordered {
		if n.known() && !yield(n) {
			return
		}
	}
}

// view returns n's task for printing.
func (g *graph) view(n *node) team.TaskView {
	waiting := []team.TaskID{}
	for _, d := range n.needs {
		if d.task.Status != team.Completed {
			waiting = append(waiting, d.id)
		}
	}
	return n.task.View(waiting, dependents(n, func(d *node) bool { return d.task.Status != team.Cancelled }))
}

// dependents returns the ids of the tasks that name n as a dependency, by number.
func dependents(n *node, which func(*node) bool) []team.TaskID {
	ids := make([]team.TaskID, 0, len(n.dependents))
	for d := range n.dependents {
		if which(d) {
			ids = append(ids, d.id)
		}
	}
	slices.SortFunc(ids, func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) })
	return ids
}

// backlog is a heap of tasks, each of which knows its place in it.
type backlog struct {
	nodes  []*node
	before func(n, o *node) bool
	at     func(*node) *int // where a task keeps its place; -1 if it is not in the pile
}

// first returns the task that is before all others, nil if there is none.
func (p *backlog) first() *node {
	if len(p.nodes) == 0 {
		return nil
	}
	return p.nodes[0]
}

func (p *backlog) Len() int           { return len(p.nodes) }
func (p *backlog) Less(i, j int) bool { return p.before(p.nodes[i], p.nodes[j]) }

func (p *backlog) Swap(i, j int) {
	w := p.nodes
	w[i], w[j] = w[j], w[i]
	*p.at(w[i]), *p.at(w[j]) = i, j
}

func (p *backlog) Push(x any) {
	n := x.(*node)
	*p.at(n) = len(p.nodes)
	p.nodes = append(p.nodes, n)
}

func (p *backlog) Pop() any {
	last := len(p.nodes) - 1
	n := p.nodes[last]
	p.nodes[last], *p.at(n) = nil, -1
	p.nodes = p.nodes[:last]
	return n
}
