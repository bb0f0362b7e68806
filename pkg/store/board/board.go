package board

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options are the optional dependencies of a Board besides the records.
type Options struct {
	Logger  *slog.Logger
	Metrics prometheus.Registerer

	// Withdraw is called before a hold of a task ends, other than by its completion: work that was submitted under
	// that epoch must not be merged any more. Its error keeps the hold.
	Withdraw func(ctx context.Context, id team.TaskID, epoch uint64) error
}

// Board is a team's task list. Safe for concurrent use.
type Board struct {
	bucket      Records
	log         *slog.Logger
	metrics     metrics
	withdraw    func(ctx context.Context, id team.TaskID, epoch uint64) error
	createdUpTo atomic.Int64 // the tasks up to this number have been created
	at          uint64       // see [Board.At]
}

// Records is the storage of a board: a team's [broker.Bucket], or, in tests that control time, boardtest.Records, which
// are in memory. Methods and errors are those of Bucket.
type Records interface {
	Get(ctx context.Context, key string) (broker.Entry, error)
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	PutAgain(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Load(ctx context.Context, filters ...string) ([]broker.Entry, error)
	Each(ctx context.Context, f func(broker.Entry) error, filters ...string) error
	Past(ctx context.Context, from uint64, f func(broker.Entry) error, filters ...string) error
}

// New returns the board of the team with these records.
func New(records Records, o Options) *Board {
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.Withdraw == nil {
		o.Withdraw = func(context.Context, team.TaskID, uint64) error { return nil }
	}
	return &Board{bucket: records, log: o.Logger, metrics: newMetrics(o.Metrics), withdraw: o.Withdraw}
}

// At returns the same board for one change of a task on the condition that the task is still at this revision; else the
// change fails with [team.ErrRevision], and nothing is changed.
func (b *Board) At(revision uint64) *Board {
	at := &Board{bucket: b.bucket, log: b.log, metrics: b.metrics, withdraw: b.withdraw, at: revision}
	at.createdUpTo.Store(b.createdUpTo.Load())
	return at
}

// Decode reads a task from its entry.
func Decode(e broker.Entry) (team.Task, error) {
	var t team.Task
	var err error
	if t.Kept, err = e.Decode(&t, &t.V); err != nil {
		return t, err
	}
	if !t.Status.Valid() || t.ID.Number() == 0 || e.Key != subject.KeyTask(t.ID) {
		return t, team.Errorf(team.InvalidState, "record %s %w: it is no task of that id, but says %q with status %q", e.Key, team.ErrUnreadable, t.ID, t.Status).
			WithHint(team.RepairHint)
	}
	t.Revision = e.Revision
	return t, nil
}

// Get returns a task. Once it has returned, all tasks of the call that created this one
// exist. Errors: NotFound; Unavailable.
func (b *Board) Get(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, err := b.read(ctx, id)
	switch {
	case errors.Is(err, team.NotFound): // it may be about to appear: its creator wrote the intent and died
		if err := b.finishCall(ctx, id); err != nil {
			return team.Task{}, err
		}
		return b.read(ctx, id)
	case err == nil && t.Untouched(): // the same, but the creator died a little later: a caller that changes a task has first completed its call
		err = b.finishCall(ctx, id)
	}
	if err != nil {
		return team.Task{}, err
	}
	return t, nil
}

// read returns the stored task.
func (b *Board) read(ctx context.Context, id team.TaskID) (team.Task, error) {
	e, err := b.bucket.Get(ctx, subject.KeyTask(id))
	switch {
	case errors.Is(err, team.NotFound):
		return team.Task{}, notFound(id)
	case err != nil:
		return team.Task{}, err
	}
	return Decode(e)
}

func notFound(id team.TaskID) *team.Error {
	return team.Errorf(team.NotFound, "there is no task %s", id).WithHint("`teamctl tasks` lists the tasks").WithModelHint("list_tasks shows the tasks")
}

// Listing is the state of the board at one moment.
type Listing struct {
	Tasks []team.Task        // by number
	Bad   []team.Quarantined // records that cannot be read; all others work without them
}

// All returns every task that can be read, by number; see [Board.Load].
func (b *Board) All(ctx context.Context) ([]team.Task, error) {
	l, err := b.Load(ctx)
	return l.Tasks, err
}

// Load reads the whole board in one pass over the bucket, after completing a creation that another process left half
// done. Errors: InvalidState if the sequence cannot be read; Unavailable.
func (b *Board) Load(ctx context.Context) (Listing, error) {
	if err := b.FinishCreate(ctx); err != nil {
		return Listing{}, err
	}
	entries, err := b.bucket.Load(ctx, subject.AllTasks, subject.KeySequence)
	if err != nil {
		return Listing{}, err
	}
	var l Listing
	var r Reader
	shown := tasks{}
	for _, e := range entries {
		if err := r.Take(e, shown); err != nil {
			b.log.WarnContext(ctx, "record set aside", "key", e.Key, "revision", e.Revision, "err", err)
			l.Bad = append(l.Bad, team.Quarantined{Key: e.Key, Revision: e.Revision, Error: err.Error()})
		}
	}
	r.Created(int(b.createdUpTo.Load()), shown)
	l.Tasks = slices.SortedFunc(maps.Values(shown), func(a, b team.Task) int { return cmp.Compare(a.ID.Number(), b.ID.Number()) })
	return l, nil
}

// tasks is a board as a map.
type tasks map[team.TaskID]team.Task

func (m tasks) Task(id team.TaskID) team.Task { return m[id] }

func (m tasks) Show(id team.TaskID, t team.Task) {
	if t.Status == "" {
		delete(m, id)
	} else {
		m[id] = t
	}
}

// leftBy returns the tasks that earlier incarnations of h hold: at most one, unless a rule was broken. It reads the whole
// board but keeps only these in memory.
func (b *Board) leftBy(ctx context.Context, h team.Holder) ([]team.Task, error) {
	left := map[team.TaskID]team.Task{}
	err := b.bucket.Each(ctx, func(e broker.Entry) error {
		if !bytes.Contains(e.Value, []byte(h.Agent)) { // saves decoding nearly all of them
			return nil
		}
		t, err := Decode(e)
		switch {
		case err != nil: // an unreadable task cannot be adopted
		case t.Status == team.InProgress && t.Assignee == h.Agent && t.Incarnation < h.Incarnation:
			left[t.ID] = t
		default:
			delete(left, t.ID)
		}
		return nil
	}, subject.AllTasks)
	return slices.Collect(maps.Values(left)), err
}

// change makes a transition of one task: it reads the task, calls f for the next copy, and stores that if the task has
// not changed. After a concurrent write it calls f again with the new copy. If f refuses, change returns the task that
// it read.
func (b *Board) change(ctx context.Context, id team.TaskID, f func(team.Task) (team.Task, error)) (team.Task, error) {
	for {
		t, err := b.Get(ctx, id)
		if err == nil {
			err = t.At(b.at)
		}
		if err != nil {
			return team.Task{}, err
		}
		next, err := b.changeFrom(ctx, t, f)
		if !errors.Is(err, errStale) {
			return next, err
		}
	}
}

// errStale: the task was written since it was read.
var errStale = errors.New("the task has changed since it was read")

// errSame: no write is needed, as the task has that state already or has moved on.
var errSame = errors.New("the task needs no change")

// changeFrom makes a transition of t, and returns t if f refuses it. If the task has changed since t was read, the error
// is errStale.
func (b *Board) changeFrom(ctx context.Context, t team.Task, f func(team.Task) (team.Task, error)) (team.Task, error) {
	next, err := f(t)
	if err == nil && t.Status == team.InProgress && next.Status != team.Completed && (next.Status != team.InProgress || next.Epoch != t.Epoch) {
		err = b.withdraw(ctx, t.ID, t.Epoch)
	}
	if err != nil {
		return t, err
	}
	next, err = b.put(ctx, next)
	if errors.Is(err, team.Conflict) {
		return team.Task{}, errStale
	}
	return next, err
}

// changeHeld is change that starts from the caller's copy since its claim. Others rarely write a held task, so this
// usually saves the read.
func (b *Board) changeHeld(ctx context.Context, held team.Task, f func(team.Task) (team.Task, error)) (team.Task, error) {
	if held.Revision != 0 {
		if next, err := b.changeFrom(ctx, held, f); err == nil || team.CodeOf(err) == team.Unavailable {
			return next, err
		}
		// The refused copy may be old: read the task and judge again.
	}
	return b.change(ctx, held.ID, f)
}

// put stores the copy of a task that a transition made, and counts it.
func (b *Board) put(ctx context.Context, t team.Task) (team.Task, error) {
	t, err := b.Rewrite(ctx, t)
	if err == nil {
		b.metrics.transitions.WithLabelValues(string(t.Status)).Inc()
	}
	return t, err
}

// Rewrite stores t over the revision it was read at. Storing t unchanged moves its
// revision, which cancels any pending write that expects the old one. Errors: Conflict if
// the task has changed since; Unavailable.
func (b *Board) Rewrite(ctx context.Context, t team.Task) (team.Task, error) {
	t.Op = ulid.Make().String()
	revision, err := broker.Save(ctx, b.bucket, subject.KeyTask(t.ID), &t, t.Kept, t.Revision)
	if err == nil {
		t.Revision = revision
	}
	return t, err
}

// Claim makes h the task's assignee. It reads the task first; see [Board.ClaimAt] for a task that was already read.
// Errors: NotFound; Conflict (another agent holds it or was first, or it is reserved for another); *team.Error Blocked
// naming the dependencies; InvalidState; PermissionDenied for a role that is not h's, unless assigned; Unavailable, and
// then the outcome is unknown.
//
// It does not know the other holds of h: an agent claims through its [ClaimSlot].
func (b *Board) Claim(ctx context.Context, id team.TaskID, h team.Holder) (team.Task, error) {
	t, err := b.Get(ctx, id)
	if err == nil {
		err = b.Claimable(ctx, t, h)
	}
	if err != nil {
		b.metrics.claim(err)
		return team.Task{}, err
	}
	return b.ClaimAt(ctx, t, h)
}

// Claimable returns the reason why h could not claim this copy t, or nil.
func (b *Board) Claimable(ctx context.Context, t team.Task, h team.Holder) error {
	if err := t.At(b.at); err != nil {
		return err
	}
	if _, err := t.Claim(h, now()); err != nil {
		return err
	}
	return b.unblocked(ctx, t)
}

// Assignable returns the reason why this copy t could not be given to h, or nil.
func (b *Board) Assignable(ctx context.Context, t team.Task, a team.Assignment, h team.Holder) error {
	if err := t.At(b.at); err != nil {
		return err
	}
	if _, err := t.Assign(h, a, now()); err != nil {
		return err
	}
	return b.unblocked(ctx, t)
}

// ClaimAt claims this copy t without reading the task again: the caller vouches that its dependencies are completed,
// which once true stays true.
func (b *Board) ClaimAt(ctx context.Context, t team.Task, h team.Holder) (team.Task, error) {
	next, err := t.Claim(h, now())
	if err == nil {
		next, err = b.put(ctx, next)
		if errors.Is(err, team.Conflict) {
			err = team.Errorf(team.Conflict, "somebody else was first at %s", t.ID).WithHint("choose another task")
		}
	}
	b.metrics.claim(err)
	if err != nil {
		return team.Task{}, err
	}
	b.log.InfoContext(ctx, "task claimed", "task", t.ID, "agent", h.Agent, "epoch", next.Epoch, "revision", next.Revision)
	return next, nil
}

// Reserve keeps a pending task for a member; "" ends the reservation; see [team.Task.Reserve]. For a member in plan mode
// the task becomes gated. A task that has that state already is not written again. Errors: NotFound; those of the
// transition; Unavailable.
func (b *Board) Reserve(ctx context.Context, id team.TaskID, member team.AgentID, a team.Actor) (team.Task, error) {
	gate, err := gateOf(ctx, b.bucket, member)
	if err != nil {
		return team.Task{}, err
	}
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) {
		next, err := t.Reserve(member, a, now())
		next = next.Gated(gate)
		if err == nil && next.ReservedFor == t.ReservedFor && next.Lapses == t.Lapses && next.Gate == t.Gate {
			return t, errSame
		}
		return next, err
	})
	if errors.Is(err, errSame) {
		return t, nil
	}
	if err == nil {
		b.log.InfoContext(ctx, "task reserved", "task", id, "by", a.Agent, "agent", member, "revision", t.Revision)
	}
	return t, err
}

// Unreserve ends the reservation of this copy t. If t has been written again, for example claimed, nothing changes and
// the error is nil.
func (b *Board) Unreserve(ctx context.Context, t team.Task, a team.Actor) error {
	next, err := t.Reserve("", a, now())
	if err == nil {
		_, err = b.put(ctx, next)
	}
	if errors.Is(err, team.Conflict) {
		return nil
	}
	return err
}

// unblocked returns a Blocked error naming the dependencies of t that are not completed, or nil.
func (b *Board) unblocked(ctx context.Context, t team.Task) error {
	deps, err := b.several(ctx, t.Dependencies)
	if err != nil {
		return err
	}
	waiting := slices.DeleteFunc(deps, func(d team.Task) bool { return d.Status == team.Completed })
	if len(waiting) == 0 {
		return nil
	}
	return blockedError(t.ID, waiting)
}

// several reads tasks, in the order of ids.
func (b *Board) several(ctx context.Context, ids []team.TaskID) ([]team.Task, error) {
	tasks := make([]team.Task, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, id := range ids {
		g.Go(func() (err error) {
			tasks[i], err = b.Get(ctx, id)
			return err
		})
	}
	return tasks, g.Wait()
}

// parallel bounds the concurrent requests of one call.
const parallel = 32

func blockedError(id team.TaskID, waiting []team.Task) error {
	msg, hint, toModel := "", "it can be claimed once they are completed", "it can be begun once they are completed"
	for _, d := range waiting {
		msg += ", " + string(d.ID) + " (" + string(d.Status) + ")"
		if !d.Status.Open() { // it will never be completed
			hint = "it can be claimed once " + string(d.ID) + " is no dependency of it: teamctl tasks update " + string(id) + " --remove-dependency " + string(d.ID)
			toModel = "the leader can take " + string(d.ID) + " out of its dependencies: update_task with remove_dependencies"
		}
	}
	return team.Errorf(team.Blocked, "%s is blocked by %s", id, msg[2:]).WithHint("%s", hint).WithModelHint("%s", toModel)
}

// Adopt takes over a task that an earlier incarnation of h holds; see [team.Task.Adopt].
func (b *Board) Adopt(ctx context.Context, id team.TaskID, h team.Holder, attempt bool) (team.Task, error) {
	return b.change(ctx, id, func(t team.Task) (team.Task, error) { return t.Adopt(h, attempt, now()) })
}

// Assign gives a task to h on behalf of a.By, which has the leader's rights; see [team.Task.Assign]. Like Claim it does
// not know the other holds of h. Errors: Blocked; those of the transition; Unavailable.
func (b *Board) Assign(ctx context.Context, a team.Assignment, h team.Holder) (team.Task, error) {
	t, err := b.change(ctx, a.Task, func(t team.Task) (team.Task, error) {
		next, err := t.Assign(h, a, now())
		if err == nil {
			err = b.unblocked(ctx, t)
		}
		return next, err
	})
	b.metrics.claim(err)
	if err == nil {
		b.log.InfoContext(ctx, "task assigned", "task", t.ID, "by", a.By, "agent", h.Agent, "epoch", t.Epoch, "revision", t.Revision)
	}
	return t, err
}

// AssignAt is [Board.Assign] for this copy t, without reading the task again: the caller vouches that its dependencies
// are completed.
func (b *Board) AssignAt(ctx context.Context, t team.Task, a team.Assignment, h team.Holder) (team.Task, error) {
	next, err := t.Assign(h, a, now())
	if err == nil {
		next, err = b.put(ctx, next)
		if errors.Is(err, team.Conflict) {
			err = team.Errorf(team.Conflict, "somebody else was first at %s", t.ID).WithHint("look at it again: teamctl tasks get %s", t.ID).WithModelHint("get_task shows how it stands")
		}
	}
	b.metrics.claim(err)
	if err != nil {
		return team.Task{}, err
	}
	b.log.InfoContext(ctx, "task assigned", "task", t.ID, "by", a.By, "agent", h.Agent, "epoch", next.Epoch, "revision", next.Revision)
	return next, nil
}

// Complete completes a task for its holder; see [team.Task.Complete]. Epoch 0, here and in the methods below, means that
// the holder does not know its epoch.
func (b *Board) Complete(ctx context.Context, id team.TaskID, h team.Holder, epoch uint64, d team.Done) (team.Task, error) {
	return b.complete(ctx, team.Task{ID: id}, h, epoch, d)
}

// complete is Complete for the holder's copy of the task, or, if the holder has none,
// for a task with only an id.
func (b *Board) complete(ctx context.Context, held team.Task, h team.Holder, epoch uint64, d team.Done) (team.Task, error) {
	t, err := b.changeHeld(ctx, held, func(t team.Task) (team.Task, error) { return t.Complete(h, epoch, d, now()) })
	if err == nil {
		b.log.InfoContext(ctx, "task completed", "task", t.ID, "agent", h.Agent, "revision", t.Revision)
	}
	return t, b.late(b.former(ctx, held.ID, h, epoch, err))
}

// MayComplete returns the error that Complete would return to h for this copy t.
func (b *Board) MayComplete(ctx context.Context, t team.Task, h team.Holder, epoch uint64) error {
	if err := t.At(b.at); err != nil {
		return err
	}
	return b.former(ctx, t.ID, h, epoch, t.MayComplete(h, epoch))
}

// former turns PermissionDenied into Conflict for a caller that held the task earlier but does not know its epoch. Only
// the task's history shows that, so only this error costs a read. A hold older than the copies in the bucket is not
// found.
func (b *Board) former(ctx context.Context, id team.TaskID, h team.Holder, epoch uint64, err error) error {
	if epoch != 0 || !errors.Is(err, team.PermissionDenied) {
		return err
	}
	copies, perr := b.past(ctx, id)
	if perr != nil {
		return perr
	}
	return cmp.Or(team.LostBy(copies, h.Agent), err)
}

// past returns the readable copies of a task that the bucket still holds, oldest first.
func (b *Board) past(ctx context.Context, id team.TaskID) ([]team.Task, error) {
	var copies []team.Task
	err := b.bucket.Past(ctx, 1, func(e broker.Entry) error {
		t, err := Decode(e)
		if err == nil { // an unreadable copy leaves a gap, and the others stay
			copies = append(copies, t)
		}
		return nil
	}, subject.KeyTask(id))
	return copies, err
}

// FailCheck records that the task's check has failed; see [team.Task.FailCheck].
func (b *Board) FailCheck(ctx context.Context, id team.TaskID, h team.Holder, epoch uint64, f team.Freed) (team.Task, error) {
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) { return t.FailCheck(h, epoch, f, now()) })
	if err == nil {
		b.log.InfoContext(ctx, "check failed", "task", id, "agent", h.Agent, "attempts", t.Attempts, "status", t.Status)
	}
	return t, b.late(b.former(ctx, id, h, epoch, err))
}

// Fail ends a task as failed; see [team.Task.Fail].
func (b *Board) Fail(ctx context.Context, id team.TaskID, a team.Actor, epoch uint64, f team.Freed) (team.Task, error) {
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) { return t.Fail(a, epoch, f, now()) })
	return t, b.late(b.former(ctx, id, a.Holder, epoch, err))
}

// Release puts a task back to pending; see [team.Task.Release]. An actor with the
// leader's rights takes it from any holder (epoch 0), or from the holder of that epoch.
func (b *Board) Release(ctx context.Context, id team.TaskID, a team.Actor, epoch uint64, f team.Freed) (team.Task, error) {
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) { return t.Release(a, epoch, f, now()) })
	if err == nil {
		b.log.InfoContext(ctx, "task released", "task", id, "agent", a.Agent, "reason", f.Reason, "reserved_for", t.ReservedFor)
	}
	return t, b.late(b.former(ctx, id, a.Holder, epoch, err))
}

// GiveBack puts a task back that its holder cannot do; see [team.Task.GiveBack].
func (b *Board) GiveBack(ctx context.Context, id team.TaskID, h team.Holder, epoch uint64, g team.GiveBack) (team.Task, error) {
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) { return t.GiveBack(h, epoch, g, now()) })
	if err == nil {
		b.log.InfoContext(ctx, "task put back", "task", id, "agent", h.Agent, "status", t.Status, "reason", team.Summarize(t.Reason))
	}
	return t, b.late(b.former(ctx, id, h, epoch, err))
}

// History returns every copy of the task that the bucket still holds (the last 64
// writes), oldest first. Errors: NotFound; Unavailable.
func (b *Board) History(ctx context.Context, id team.TaskID) ([]team.Task, error) {
	if _, err := b.Get(ctx, id); err != nil {
		return nil, err
	}
	return b.past(ctx, id)
}

// Reap frees the task of the holder of this epoch, which was judged gone. If the task has moved on meanwhile, nothing
// changes and the error is nil.
func (b *Board) Reap(ctx context.Context, id team.TaskID, epoch uint64, f team.Freed) error {
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) {
		if t.Status != team.InProgress || t.Epoch != epoch {
			return t, errSame
		}
		return t.Reap(f, now())
	})
	if errors.Is(err, errSame) {
		return nil
	}
	if err == nil {
		b.log.WarnContext(ctx, "task taken from its holder", "task", id, "agent", t.Assignee, "reason", f.Reason, "reserved_for", t.ReservedFor, "status", t.Status)
	}
	return err
}

// Left adds the work of a hold to a task that was taken from its holder, and returns it; a completed task, which no
// longer needs the work, stays as it is. Errors: NotFound; Unavailable.
func (b *Board) Left(ctx context.Context, id team.TaskID, y team.Try) (team.Task, error) {
	t, err := b.change(ctx, id, func(t team.Task) (team.Task, error) {
		if t.Status == team.Completed {
			return t, errSame
		}
		// UpdatedBy stays: rules judge a task that has ended, or was freed, by the agent that did that.
		t = t.Left(y)
		t.UpdatedAt = now()
		return t, nil
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return t, err
}

// Cancel cancels a task; see [team.Task.Cancel].
func (b *Board) Cancel(ctx context.Context, id team.TaskID, a team.Actor, reason string) (team.Task, error) {
	return b.change(ctx, id, func(t team.Task) (team.Task, error) { return t.Cancel(a, reason, now()) })
}

// late counts a write of a former holder, and returns err.
func (b *Board) late(err error) error {
	if errors.Is(err, team.Conflict) && !errors.Is(err, team.ErrRevision) {
		b.metrics.late.Inc()
	}
	return err
}

func now() time.Time { return time.Now().UTC() }
