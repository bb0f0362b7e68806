package client

import (
	"cmp"
	"context"
	"slices"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Watch calls f with the whole board, and then for each change with the tasks that it
// concerns: the one that was written, and those that wait for it if it has ended.
// Tasks that are created together come together. It goes on until ctx ends, then it
// returns nil, and misses no change while the server restarts. An error of f ends it.
func (t *Team) Watch(ctx context.Context, f func(Board) error) error {
	// What a creator left half done would be held back for ever if nobody leads.
	if err := t.board.FinishCreate(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watch{tasks: map[team.TaskID]team.Task{}, blocks: map[team.TaskID][]team.TaskID{}, written: map[team.TaskID]bool{}}
	ready := false
	var ended error // of f, when it was told the whole board
	err := t.team.Bucket.Watch(ctx, func(e broker.Entry) error {
		w.take(e)
		if !ready {
			return nil
		}
		if b := w.tell(); len(b.Tasks)+len(b.Bad) > 0 {
			return f(b)
		}
		return nil
	}, func() {
		ready = true
		if ended = f(w.tell()); ended != nil {
			cancel()
		}
	}, subject.AllTasks, subject.KeySequence)
	return cmp.Or(ended, err)
}

// watch is the board as the bucket's feed has told it so far.
type watch struct {
	tasks  map[team.TaskID]team.Task
	blocks map[team.TaskID][]team.TaskID // who waits for it, by dependency
	bad    []team.Quarantined            // not told yet
	news   []team.TaskID                 // changed and not told yet; may name one twice

	// Tasks of one call exist once the last one's key does (board.Sequence). Those of
	// the last call are held back until then.
	first, last team.TaskID
	written     map[team.TaskID]bool // has a key, be it readable or not
}

// take takes in an entry of the feed.
func (w *watch) take(e broker.Entry) {
	if e.Key == subject.KeySequence {
		if seq, err := board.DecodeSequence(e); err == nil && len(seq.Intent) > 0 {
			w.first, w.last = seq.Intent[0].ID, seq.Last()
		}
		return
	}
	_, name := subject.ParseKey(e.Key)
	id := team.TaskID(name)
	w.written[id] = true
	after, err := board.Decode(e)
	if err != nil {
		w.bad = append(w.bad, team.Quarantined{Key: e.Key, Revision: e.Revision, Error: err.Error()})
		return
	}
	before := w.tasks[id]
	w.tasks[id] = after
	if !slices.Equal(before.Dependencies, after.Dependencies) {
		for _, d := range before.Dependencies {
			w.blocks[d] = slices.DeleteFunc(w.blocks[d], func(o team.TaskID) bool { return o == id })
		}
		for _, d := range after.Dependencies {
			w.blocks[d] = append(w.blocks[d], id)
		}
	}
	w.news = append(w.news, id)
	if before.Status != after.Status && !after.Status.Open() {
		w.news = append(w.news, w.blocks[id]...)
	}
}

// tell returns what has changed since it was called last.
func (w *watch) tell() Board {
	b := Board{Bad: w.bad}
	var held []team.TaskID
	slices.SortFunc(w.news, func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, id := range slices.Compact(w.news) {
		if w.last != "" && !w.written[w.last] && id.Number() >= w.first.Number() && id.Number() <= w.last.Number() {
			held = append(held, id)
			continue
		}
		b.Tasks = append(b.Tasks, w.view(w.tasks[id]))
	}
	w.bad, w.news = nil, held
	return b
}

func (w *watch) view(t team.Task) team.TaskView {
	var waiting []team.TaskID
	for _, d := range t.Dependencies {
		if w.tasks[d].Status != team.Completed {
			waiting = append(waiting, d)
		}
	}
	blocks := slices.Clone(w.blocks[t.ID])
	slices.SortFunc(blocks, func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) })
	return t.View(waiting, blocks)
}
