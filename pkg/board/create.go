package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// sequence is the value of seq.task. Ids are dense and several tasks appear at
// once because a creator first stores the whole tasks here, under the next
// numbers, and only then creates their keys; whoever finds the intent unfinished
// finishes it.
type sequence struct {
	V      int         `json:"v"`
	Op     string      `json:"op"`
	Next   int         `json:"next"`   // number of the next task; 0 means 1
	Closed bool        `json:"closed"` // the goal was ended: no more tasks
	Intent []team.Task `json:"intent"` // the tasks created last

	revision uint64
}

// maxIntentBytes bounds the tasks of one call; a message to NATS may hold 1 MiB.
const maxIntentBytes = 512 << 10

func decodeSequence(e broker.Entry) (sequence, error) {
	var s sequence
	if err := json.Unmarshal(e.Value, &s); err != nil {
		return s, team.Errorf(team.InvalidState, "record %s cannot be read: %w", e.Key, err)
	}
	s.revision = e.Revision
	return s, nil
}

// missing returns the tasks of the intent that are not among tasks.
func (s sequence) missing(tasks []team.Task) []team.Task {
	return slices.DeleteFunc(slices.Clone(s.Intent), func(t team.Task) bool {
		return slices.ContainsFunc(tasks, func(have team.Task) bool { return have.ID == t.ID })
	})
}

func (b *Board) sequence(ctx context.Context) (sequence, error) {
	e, err := b.bucket.Get(ctx, subject.KeySequence)
	if errors.Is(err, team.NotFound) {
		return sequence{Next: 1}, nil
	}
	if err != nil {
		return sequence{}, err
	}
	return decodeSequence(e)
}

func (b *Board) putSequence(ctx context.Context, s sequence) error {
	s.V, s.Op = team.Protocol, ulid.Make().String()
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = b.bucket.Put(ctx, subject.KeySequence, data, s.revision)
	return err
}

// Create adds the tasks, in order, with the next ids; either all of them exist
// from now on or none. A dependency names a task of the board.
//
// Errors: InvalidArgument; NotFound for an unknown dependency; InvalidState once
// the goal was ended; Unavailable, and then the outcome is unknown.
func (b *Board) Create(ctx context.Context, by team.AgentID, tasks ...team.NewTask) ([]team.Task, error) {
	for i, n := range tasks {
		if err := n.Validate(); err != nil {
			if len(tasks) > 1 {
				err = fmt.Errorf("task %d: %w", i+1, err)
			}
			return nil, err
		}
	}
	if err := b.known(ctx, tasks); err != nil {
		return nil, err
	}
	for {
		seq, err := b.sequence(ctx)
		if err != nil {
			return nil, err
		}
		if seq.Closed {
			return nil, team.Errorf(team.InvalidState, "the team's goal has ended; no task can be added").WithHint("start a new goal with `teamctl run`")
		}
		// The previous intent must be finished before ours replaces it.
		if err := b.createKeys(ctx, seq.Intent); err != nil {
			return nil, err
		}
		created := make([]team.Task, len(tasks))
		for i, n := range tasks {
			created[i] = n.Task(team.MakeTaskID(seq.Next+i), by, now())
			created[i].Op = ulid.Make().String()
		}
		seq.Next, seq.Intent = seq.Next+len(tasks), created
		if data, err := json.Marshal(created); err != nil || len(data) > maxIntentBytes {
			return nil, errors.Join(err, team.Errorf(team.InvalidArgument, "the tasks of one call take %d bytes, the limit is %d", len(data), maxIntentBytes).
				WithHint("create them in several calls"))
		}
		err = b.putSequence(ctx, seq)
		if errors.Is(err, team.Conflict) { // another creator was first
			if err := pause(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := b.createKeys(ctx, created); err != nil {
			return nil, err
		}
		for i := range created {
			b.log.InfoContext(ctx, "task created", "task", created[i].ID, "by", by)
			if created[i], err = b.Get(ctx, created[i].ID); err != nil {
				return nil, err
			}
		}
		return created, nil
	}
}

// known refuses dependencies that do not exist. A task is never removed, so what
// exists now exists for good; and since a new task can be named by none before
// it, creating makes no cycle.
func (b *Board) known(ctx context.Context, tasks []team.NewTask) error {
	for _, n := range tasks {
		for _, d := range n.Dependencies {
			if _, err := b.Get(ctx, d); errors.Is(err, team.NotFound) {
				return team.Errorf(team.NotFound, "dependency %s of %q does not exist", d, n.Title).WithHint("create it first, or list the tasks to see what exists")
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// createKeys creates the keys of an intent in order. A key that exists was made
// by somebody else who found the intent, and may have moved on since.
func (b *Board) createKeys(ctx context.Context, tasks []team.Task) error {
	for _, t := range tasks {
		if _, err := b.bucket.Get(ctx, subject.KeyTask(t.ID)); err == nil {
			continue
		} else if !errors.Is(err, team.NotFound) {
			return err
		}
		data, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if _, err := b.bucket.Put(ctx, subject.KeyTask(t.ID), data, 0); err != nil && !errors.Is(err, team.Conflict) {
			return err
		}
	}
	return nil
}

// finishCreate finishes the open intent if it holds id, and reports whether it did.
func (b *Board) finishCreate(ctx context.Context, id team.TaskID) (bool, error) {
	seq, err := b.sequence(ctx)
	if err != nil || !slices.ContainsFunc(seq.Intent, func(t team.Task) bool { return t.ID == id }) {
		return false, err
	}
	return true, b.createKeys(ctx, seq.Intent)
}

// Close ends the creating of tasks, as the last act of a goal. It is refused
// (InvalidState, naming them) while tasks are pending or in progress. From the
// moment it returns no task can slip in.
func (b *Board) Close(ctx context.Context) error {
	for {
		seq, err := b.sequence(ctx)
		if err != nil {
			return err
		}
		tasks, err := b.All(ctx)
		if err != nil {
			return err
		}
		if open := openIDs(tasks); len(open) > 0 {
			return team.Errorf(team.InvalidState, "the goal is not finished: %s", summarizeOpen(open)).
				WithHint("wait for them, or cancel what you give up")
		}
		seq.Closed = true
		if err = b.putSequence(ctx, seq); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

func openIDs(tasks []team.Task) (open []team.Task) {
	for _, t := range tasks {
		if t.Status.Open() {
			open = append(open, t)
		}
	}
	return open
}

func summarizeOpen(open []team.Task) string {
	s := ""
	for i, t := range open {
		if i == 10 {
			return s[2:] + fmt.Sprintf(" and %d more", len(open)-i)
		}
		s += fmt.Sprintf(", %s is %s", t.ID, t.Status)
	}
	return s[2:]
}

// Reopen allows tasks again, for the team's next goal.
func (b *Board) Reopen(ctx context.Context) error {
	for {
		seq, err := b.sequence(ctx)
		if err != nil || !seq.Closed {
			return err
		}
		seq.Closed = false
		if err = b.putSequence(ctx, seq); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

// pause spreads the next tries of writers that collided.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return team.Errorf(team.Unavailable, "the board is too busy: %w", ctx.Err())
	case <-time.After(rand.N(20 * time.Millisecond)):
		return nil
	}
}
