package board

import (
	"cmp"
	"maps"
	"slices"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// View is a copy of the board that a [Reader] updates.
type View interface {
	// Task returns the copy of a task that was shown last; the zero Task if there is none.
	Task(id team.TaskID) team.Task
	// Show replaces that copy by t. A zero t takes the task off the board: its record
	// was deleted, cannot be read, or belongs to a creation that is still under way.
	Show(id team.TaskID, t team.Task)
}

// Reader makes a board from the bucket's feed. It interprets the entries: which records can be read, the effect of a
// deletion, and that the tasks of one call are on the board once the last of them is. The feed may begin anywhere. The
// zero Reader is ready to use, by one goroutine at a time.
type Reader struct {
	newest int                       // highest number of a task whose key has come
	last   team.TaskID               // of the creation that is under way; "": none is
	held   map[team.TaskID]team.Task // its tasks that have come; zero if they have not
}

// Take reads the next entry and shows v the resulting change of the board. It ignores entries of other keys than those of
// tasks and of the sequence. An unreadable record is an error that names it; an unreadable task is taken off the board,
// and an unreadable sequence changes nothing.
func (r *Reader) Take(e broker.Entry, v View) error {
	if e.Key == subject.KeySequence {
		if e.Deleted {
			return nil
		}
		seq, err := DecodeSequence(e)
		if err == nil {
			r.begin(seq, v)
		}
		return err
	}
	kind, name := subject.ParseKey(e.Key)
	if kind != subject.Task {
		return nil
	}
	id := team.TaskID(name)
	r.newest = max(r.newest, id.Number())
	var t team.Task
	var err error
	if !e.Deleted {
		// Without a readable record a task is not on the board: the copy before may be as wrong as this one.
		if t, err = Decode(e); err != nil {
			t = team.Task{}
		}
	}
	if _, held := r.held[id]; !held {
		v.Show(id, t)
		return err
	}
	r.held[id] = t
	if id == r.last {
		r.reveal(v) // the last key has come, be it readable, damaged or deleted since
	}
	return err
}

// Created records that the tasks up to that number have been created. A reader of a bucket without its deleted keys does
// not see that a creation is over if its last task is gone.
func (r *Reader) Created(upTo int, v View) {
	if r.last.Number() <= upTo {
		r.reveal(v)
	}
}

// Creating returns the last task of a creation that is under way, "" if there is none. If that lasts, its creator may have
// died; see [Board.FinishCreate].
func (r *Reader) Creating() team.TaskID { return r.last }

// begin hides the tasks of an intent until the last of them has come.
func (r *Reader) begin(seq Sequence, v View) {
	last := seq.Last()
	if last == r.last {
		return
	}
	r.reveal(v) // a creator completes the intent before it writes a new one
	if last == "" || last.Number() <= r.newest {
		return
	}
	r.last, r.held = last, map[team.TaskID]team.Task{}
	for _, t := range seq.Intent {
		shown := v.Task(t.ID)
		r.held[t.ID] = shown
		if shown.Status != "" { // it came before its intent
			v.Show(t.ID, team.Task{})
		}
	}
}

// reveal shows the tasks of the completed creation, in order.
func (r *Reader) reveal(v View) {
	held := r.held
	r.last, r.held = "", nil
	for _, id := range slices.SortedFunc(maps.Keys(held), func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) }) {
		if t := held[id]; t.Status != "" {
			v.Show(id, t)
		}
	}
}
