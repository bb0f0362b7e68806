package client

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Watch calls f with the whole board, and then for each change with the tasks that it affects: the
// written one, and those that wait for it if it has ended. Tasks that are created together come
// together. It continues until ctx ends, then it returns nil, and misses no change while the server
// restarts. An error of f ends it.
func (t Board) Watch(ctx context.Context, f func(Snapshot) error) error {
	// An interrupted creation would be held back forever if no process leads.
	if err := t.board.FinishCreate(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watch{tasks: map[team.TaskID]team.Task{}, news: map[team.TaskID]bool{}}
	ready := false
	var ended error // of f's call with the whole board
	err := t.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		w.take(e)
		if !ready {
			return nil
		}
		if b := w.notify(); len(b.Tasks)+len(b.Bad)+len(b.Gone) > 0 {
			return f(b)
		}
		return nil
	}, func() {
		ready = true
		if ended = f(w.notify()); ended != nil {
			cancel()
		}
	}, subject.AllTasks, subject.KeySequence)
	return cmp.Or(ended, err)
}

// watch is the board as the bucket's feed has shown it so far.
type watch struct {
	reader board.Reader
	tasks  map[team.TaskID]team.Task

	// Not returned yet.
	news map[team.TaskID]bool // shown; true: it has ended, or is gone
	bad  []team.Quarantined
	gone []team.TaskID
}

// take takes in an entry of the feed.
func (w *watch) take(e broker.Entry) {
	if err := w.reader.Take(e, w); err != nil && e.Key != subject.KeySequence {
		w.bad = append(w.bad, team.Quarantined{Key: e.Key, Revision: e.Revision, Error: err.Error()})
	}
	if kind, name := subject.ParseKey(e.Key); e.Deleted && kind == subject.Task {
		w.gone = append(w.gone, team.TaskID(name))
	}
}

// Task returns the copy that was shown last.
func (w *watch) Task(id team.TaskID) team.Task { return w.tasks[id] }

// Show is called by the reader.
func (w *watch) Show(id team.TaskID, after team.Task) {
	before := w.tasks[id]
	if w.tasks[id] = after; after.Status == "" {
		delete(w.tasks, id)
	}
	w.news[id] = w.news[id] || before.Status != after.Status && !after.Status.Open()
}

// notify returns the changes since its last call.
func (w *watch) notify() Snapshot {
	b := Snapshot{Bad: w.bad, Gone: w.gone}
	if len(w.news) > 0 { // many entries of a creation have no news yet
		byNumber := func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) }
		for _, v := range team.View(slices.Collect(maps.Values(w.tasks))) {
			_, shown := w.news[v.ID]
			if shown || slices.ContainsFunc(v.Dependencies, func(d team.TaskID) bool { return w.news[d] }) {
				slices.SortFunc(v.Blocks, byNumber)
				b.Tasks = append(b.Tasks, v)
			}
		}
		slices.SortFunc(b.Tasks, func(a, b team.TaskView) int { return byNumber(a.ID, b.ID) })
	}
	clear(w.news)
	w.bad, w.gone = nil, nil
	return b
}
