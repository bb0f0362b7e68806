package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Sequence is the value of seq.task. A creator first stores the whole tasks here, under the next numbers, and then
// creates their keys, that of the last task last. So ids are dense, and the tasks exist for everyone once the last key
// does. A process that finds an unfinished intent completes it.
type Sequence struct {
	V      int         `json:"v"`
	Op     string      `json:"op"`
	Next   int         `json:"next"`          // number of the next task; 0 means 1
	Closed bool        `json:"closed"`        // the goal was ended: no more tasks
	Intent []team.Task `json:"intent"`        // the tasks created last
	Key    string      `json:"key,omitempty"` // idempotency key of the call that created them

	raw      []json.RawMessage // the intent as it is stored
	revision uint64
	kept     team.Extra
}

// storedSequence is the stored form of a Sequence. It keeps the tasks byte by byte, so that completing an intent of a
// newer program drops none of its fields.
type storedSequence struct {
	Sequence
	Intent []json.RawMessage `json:"intent"`
}

// maxIntentBytes bounds the bytes of the tasks of one call; a message to NATS may hold 1 MiB.
const maxIntentBytes = 512 << 10

// DecodeSequence reads the sequence from its entry.
func DecodeSequence(e broker.Entry) (Sequence, error) {
	var stored storedSequence
	kept, err := e.Decode(&stored, &stored.V)
	s := stored.Sequence
	for _, raw := range stored.Intent {
		var t team.Task
		if err == nil {
			if t.Kept, err = codec.Decode(raw, &t); err != nil {
				err = team.Errorf(team.InvalidState, "record %s %w: %w", e.Key, team.ErrUnreadable, err).
					WithHint("nothing can be added meanwhile; " + team.RepairHint)
			}
		}
		s.Intent = append(s.Intent, t)
	}
	if err != nil {
		return s, err
	}
	s.raw, s.revision, s.kept = stored.Intent, e.Revision, kept
	return s, nil
}

// Last returns the id of the intent's last task, "" if there is none.
func (s Sequence) Last() team.TaskID {
	if len(s.Intent) == 0 {
		return ""
	}
	return s.Intent[len(s.Intent)-1].ID
}

func (b *Board) sequence(ctx context.Context) (Sequence, error) {
	e, err := b.bucket.Get(ctx, subject.KeySequence)
	if errors.Is(err, team.NotFound) {
		return Sequence{Next: 1}, nil
	}
	if err != nil {
		return Sequence{}, err
	}
	return DecodeSequence(e)
}

// putSequence stores s if the sequence is still at the revision of s.
func (b *Board) putSequence(ctx context.Context, s Sequence) error {
	s.V, s.Op = team.Protocol, ulid.Make().String()
	_, err := broker.Save(ctx, b.bucket, subject.KeySequence, storedSequence{s, s.raw}, s.kept, s.revision)
	return err
}

// intend makes tasks, which have the next ids, the intent of s. Errors: InvalidArgument if they are too large for one
// message.
func (s *Sequence) intend(tasks []team.Task, key string) error {
	s.Next, s.Intent, s.Key, s.raw = s.Next+len(tasks), tasks, key, make([]json.RawMessage, len(tasks))
	size := 0
	for i := range tasks {
		raw, err := codec.Marshal(&tasks[i])
		if err != nil {
			return err
		}
		s.raw[i] = raw
		size += len(raw)
	}
	if size > maxIntentBytes {
		return team.Errorf(team.InvalidArgument, "the tasks of one call take %d bytes, the limit is %d", size, maxIntentBytes).
			WithHint("create them in several calls")
	}
	return nil
}

// Create adds the tasks, in order, with the next ids; either all of them exist
// from now on or none. A dependency names a task of the board; one of the same
// call is named by its position ([team.NewTask.After]).
//
// Errors: InvalidArgument; NotFound for an unknown dependency; InvalidState once
// the goal was ended; Unavailable, and then the outcome is unknown.
func (b *Board) Create(ctx context.Context, by team.AgentID, tasks ...team.NewTask) ([]team.Task, error) {
	created, _, err := b.create(ctx, by, "", tasks)
	return created, err
}

// CreateOnce is Create for a caller that may have to repeat it. If an earlier call had the same key, it creates nothing:
// existed is true, and the tasks are the present copies of that call's tasks. The caller chooses the key, 1 to 256 bytes;
// the key is stored as long as the team.
func (b *Board) CreateOnce(ctx context.Context, by team.AgentID, key string, tasks ...team.NewTask) (_ []team.Task, existed bool, _ error) {
	if _, err := broker.NewCall("", "", key); err != nil {
		return nil, false, err
	}
	return b.create(ctx, by, key, tasks)
}

// Created returns the present copies of the tasks of the call of [Board.CreateOnce] with this key; nil if there was none.
// Errors: those of CreateOnce.
func (b *Board) Created(ctx context.Context, key string) ([]team.Task, error) {
	if _, err := broker.NewCall("", "", key); err != nil {
		return nil, err
	}
	seq, err := b.sequence(ctx)
	if err == nil {
		err = b.finish(ctx, seq)
	}
	if err != nil {
		return nil, err
	}
	return b.once(ctx, key)
}

// composed returns tasks with titles in NFC: a deliverable is named after its title, and a name must be the same file on
// each system.
func composed(tasks []team.NewTask) []team.NewTask {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Title = norm.NFC.String(tasks[i].Title)
	}
	return tasks
}

func (b *Board) create(ctx context.Context, by team.AgentID, key string, tasks []team.NewTask) (_ []team.Task, existed bool, _ error) {
	if err := team.ValidatePlan(tasks); err != nil {
		return nil, false, err
	}
	tasks = composed(tasks)
	for lost := 1; ; lost++ {
		begun := time.Now()
		seq, err := b.sequence(ctx)
		if err != nil {
			return nil, false, err
		}
		// The previous intent must be completed before ours replaces it.
		if err := b.finish(ctx, seq); err != nil {
			return nil, false, err
		}
		if key != "" {
			// The sequence was read first: if it is still the same when ours is stored, no call has used the key in
			// between.
			if before, err := b.once(ctx, key); err != nil || before != nil {
				return before, before != nil, err
			}
		}
		if err := known(tasks, seq.Next); err != nil {
			return nil, false, err
		}
		created := team.Number(tasks, seq.Next, by, now())
		if err := gateReserved(ctx, b.bucket, created); err != nil {
			return nil, false, err
		}
		for i := range created {
			created[i].Op, created[i].DeliverablePath = ulid.Make().String(), norm.NFC.String(created[i].DeliverablePath) // a letter in lower case may be one with its mark
		}
		if err := seq.intend(created, key); err != nil {
			return nil, false, err
		}
		if seq.Closed { // last: an invalid call must not lead to a reopening
			return nil, false, team.Errorf(team.InvalidState, "the team's goal has ended; no task can be added").WithHint("start a new goal with `teamctl run`").WithModelHint("end your turn: only a person sets a new goal")
		}
		err = b.putSequence(ctx, seq)
		if errors.Is(err, broker.ErrOvertaken) {
			err = b.settleIntent(ctx, created[0], err)
		}
		if errors.Is(err, team.Conflict) { // another creator was first
			if err := broker.Pause(ctx, time.Since(begun), lost); err != nil {
				return nil, false, err
			}
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if err := b.createKeys(ctx, seq); err != nil {
			return nil, false, err
		}
		for _, t := range created {
			b.log.InfoContext(ctx, "task created", "task", t.ID, "by", by)
		}
		return created, false, nil
	}
}

// settleIntent returns nil if an overtaken intent was stored, Conflict if it was not. The next creator first created the
// tasks of the intent before its own, so the first copy under our first number shows whose intent that was. If that task
// too has been written so often that its first copy is gone, the error is overtaken.
func (b *Board) settleIntent(ctx context.Context, first team.Task, overtaken error) error {
	if err := b.FinishCreate(ctx); err != nil { // it may be the last, if the board was only closed and opened since
		return err
	}
	var copies []team.Task
	err := b.bucket.Past(ctx, 1, func(e broker.Entry) error {
		t, err := Decode(e)
		if err != nil {
			t = team.Task{}
		}
		copies = append(copies, t)
		return nil
	}, subject.KeyTask(first.ID))
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(copies, func(t team.Task) bool { return t.Op == first.Op }):
		return nil
	case len(copies) == 0 || copies[0].Untouched():
		return team.Errorf(team.Conflict, "other tasks were created first")
	}
	return overtaken
}

// known refuses unknown dependencies. Ids are dense and agentteam removes no task, so every number below the next one
// exists. No older task can name a new one, so a cycle is possible only within the call, which [team.ValidatePlan] checks.
func known(tasks []team.NewTask, next int) error {
	for _, n := range tasks {
		for _, d := range n.Dependencies {
			if number := d.Number(); number == 0 || number >= max(next, 1) {
				return team.Errorf(team.NotFound, "dependency %s of %q does not exist", d, n.Title).WithHint("create it first, or list the tasks to see what exists")
			}
		}
	}
	return nil
}

// FinishCreate creates the missing keys of the last intent, whose creator may have died. It returns nil for an unreadable
// sequence, of which no missing key is known: work on the existing tasks continues.
func (b *Board) FinishCreate(ctx context.Context) error {
	seq, err := b.sequence(ctx)
	if errors.Is(err, team.ErrUnreadable) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, seq)
}

// finish creates the missing keys of an intent. A task that was deleted since, with other tools, was there: to create it
// again would bring back work that may be done.
func (b *Board) finish(ctx context.Context, seq Sequence) error {
	if len(seq.Intent) == 0 || seq.Last().Number() <= int(b.createdUpTo.Load()) {
		return nil
	}
	switch _, err := b.bucket.Get(ctx, subject.KeyTask(seq.Last())); {
	case errors.Is(err, broker.ErrDeleted):
	case errors.Is(err, team.NotFound):
		return b.createKeys(ctx, seq)
	case err != nil:
		return err
	}
	b.noteCreated(seq) // the last key has been there, so all have
	return nil
}

// noteCreated records that the tasks of seq, and so all before them, exist.
func (b *Board) noteCreated(seq Sequence) {
	last := int64(seq.Last().Number())
	for {
		if before := b.createdUpTo.Load(); before >= last || b.createdUpTo.CompareAndSwap(before, last) {
			return
		}
	}
}

// createKeys creates the keys of an intent, and sets the tasks to the stored copies. The last task's key comes last, so
// that it shows whether all are there.
func (b *Board) createKeys(ctx context.Context, seq Sequence) error {
	last := len(seq.Intent) - 1
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	if seq.Key != "" {
		g.Go(func() error { return b.putOnce(gctx, seq) })
	}
	for i := range last {
		g.Go(func() error { return b.createKey(gctx, &seq.Intent[i], seq.raw[i]) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := b.createKey(ctx, &seq.Intent[last], seq.raw[last]); err != nil {
		return err
	}
	b.noteCreated(seq)
	return nil
}

// createKey creates one task's key. If it exists, another process that found the intent has made it, and the task may
// have moved on since.
func (b *Board) createKey(ctx context.Context, t *team.Task, data []byte) (err error) {
	t.Revision, err = b.bucket.Put(ctx, subject.KeyTask(t.ID), data, 0)
	if err == nil || !tooLate(err) {
		return err
	}
	now, err := b.read(ctx, t.ID)
	if errors.Is(err, team.InvalidState) { // it was damaged since, which is not for a creator to judge
		return nil
	}
	if err == nil {
		*t = now
	}
	return err
}

// putOnce stores the ids of an intent's tasks under its idempotency key. Another process that found the intent may have
// done so.
func (b *Board) putOnce(ctx context.Context, seq Sequence) error {
	err := broker.Call{V: team.Protocol, Key: seq.Key, First: seq.Intent[0].ID, Count: len(seq.Intent)}.Store(ctx, b.bucket)
	if errors.Is(err, team.Conflict) {
		err = nil
	}
	return err
}

// once returns the tasks of the call with this key; nil if there was none.
func (b *Board) once(ctx context.Context, key string) ([]team.Task, error) {
	c, err := broker.Call{Key: key}.Find(ctx, b.bucket)
	if errors.Is(err, team.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := make([]team.TaskID, c.Count)
	for i := range ids {
		ids[i] = team.MakeTaskID(c.First.Number() + i)
	}
	return b.several(ctx, ids)
}

// finishCall makes sure that all tasks of the call that created id exist. If that is not known yet, it reads the sequence
// and perhaps the last task.
func (b *Board) finishCall(ctx context.Context, id team.TaskID) error {
	if int64(id.Number()) <= b.createdUpTo.Load() {
		return nil
	}
	return b.FinishCreate(ctx)
}

// Close stops the creation of tasks at the end of a goal. It is refused (InvalidState, naming them) while tasks are
// pending or in progress. After it has returned no task can be added.
func (b *Board) Close(ctx context.Context) error {
	return b.close(ctx, func() error {
		tasks, err := b.All(ctx)
		if err != nil {
			return err
		}
		if open := openIDs(tasks); len(open) > 0 {
			return team.Errorf(team.InvalidState, "the goal is not finished: %s", summarizeOpen(open)).
				WithHint("wait for them, or cancel what you give up")
		}
		return nil
	})
}

// Seal is Close even if tasks are open: a failed goal leaves its tasks as they are, and no task is added.
func (b *Board) Seal(ctx context.Context) error {
	return b.close(ctx, func() error { return nil })
}

// close closes the sequence if may returns nil. If a task is created meanwhile, it calls may again. An unreadable sequence
// accepts no task, so it counts as closed; its repair sees that the goal has ended ([Board.RestoreSequence]).
func (b *Board) close(ctx context.Context, may func() error) error {
	err := b.updateSequence(ctx, func(s *Sequence) (bool, error) {
		s.Closed = true
		return true, may()
	})
	if errors.Is(err, team.ErrUnreadable) {
		return may()
	}
	return err
}

func (b *Board) updateSequence(ctx context.Context, change func(*Sequence) (bool, error)) error {
	_, err := broker.Update(ctx, b.sequence, change, func(ctx context.Context, s Sequence) (Sequence, error) { return s, b.putSequence(ctx, s) })
	return err
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
	var all []string
	for _, t := range open {
		all = append(all, fmt.Sprintf("%s is %s", t.ID, t.Status))
	}
	return team.Some(all, 10)
}

// RestoreSequence stores e, an earlier copy of the sequence, over a damaged one, which is at that revision; closed states
// whether the goal has ended meanwhile. Errors: those of [Records.Put].
func (b *Board) RestoreSequence(ctx context.Context, e broker.Entry, closed bool, revision uint64) error {
	s, err := DecodeSequence(e)
	if err != nil {
		return err
	}
	s.Closed, s.revision = closed, revision
	return b.putSequence(ctx, s)
}

// Reopen allows tasks again, for the team's next goal.
func (b *Board) Reopen(ctx context.Context) error {
	return b.updateSequence(ctx, func(s *Sequence) (bool, error) {
		was := s.Closed
		s.Closed = false
		return was, nil
	})
}
