package board

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/broker"
	"agentteam/pkg/team"
)

// Hand is one incarnation's hold on the board: at most one task at a time, one
// claim in flight. Whoever wants the agent to have a task (its model, an offer,
// an assignment) asks its Hand, so the one-task rule is kept where the claims are
// made and needs no second record. Safe for concurrent use.
type Hand struct {
	board  *Board
	holder team.Holder
	life   context.Context

	claiming  sync.Mutex // held for the length of a claim
	mu        sync.Mutex
	settled   bool      // under claiming: what a predecessor held was adopted, or there is nothing
	task      team.Task // held now; ID is "" if none
	confirmed time.Time // when that was last known; zero if it is in doubt
	seq       uint64    // revision up to which it is known
	epochs    map[team.TaskID]uint64
	onLoss    func(team.TaskID, error)
}

// NewHand returns the hand of h. life is the membership: a claim goes on until its
// outcome is known, or life ends, whatever becomes of its caller's context.
func NewHand(life context.Context, b *Board, h team.Holder) *Hand {
	return &Hand{board: b, holder: h, life: life, settled: h.Incarnation <= 1, epochs: map[team.TaskID]uint64{}, onLoss: func(team.TaskID, error) {}}
}

// OnLoss has f called, once for each hold, when the hand finds that its task was taken from
// the agent, and with the reason. Whatever is asked of the hand may find that, also a claim
// of the next task. f must not block.
func (h *Hand) OnLoss(f func(id team.TaskID, why error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onLoss = f
}

// Holder is whose hand it is.
func (h *Hand) Holder() team.Holder { return h.holder }

// Task returns the task held, as it was when it was claimed.
func (h *Hand) Task() (team.Task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.task.ID != ""
}

// Confirmed returns when the agent was last known to hold its task: when the claim
// began, or the last of those calls about it that have shown it so. It is the zero time if
// there is no task, and after such a call that could not read it.
func (h *Hand) Confirmed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.confirmed
}

// Claim claims a task that the caller knows by its id. Errors: Busy if the agent
// holds, or is just claiming, another; else those of [Board.Claim]. Claiming the
// task that is held already returns it.
func (h *Hand) Claim(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, _, err := h.claim(ctx, id, func(ctx context.Context) (team.Task, error) { return h.board.Claim(ctx, id, h.holder) })
	return t, err
}

// Assign takes a task on behalf of somebody with the leader's rights; see
// [Board.Assign]. taken is false if the agent held it already: whoever was not answered
// assigns it once more.
func (h *Hand) Assign(ctx context.Context, a team.Assignment) (t team.Task, taken bool, err error) {
	return h.claim(ctx, a.Task, func(ctx context.Context) (team.Task, error) { return h.board.Assign(ctx, a, h.holder) })
}

// Take claims a task that was offered, as it was read by who offers it.
func (h *Hand) Take(ctx context.Context, t team.Task) (team.Task, error) {
	t, _, err := h.claim(ctx, t.ID, func(ctx context.Context) (team.Task, error) { return h.board.ClaimAt(ctx, t, h.holder) })
	return t, err
}

// Now returns the task held, with ID "" if there is none, and the revision of the bucket
// up to which that takes in what the board says of the agent.
func (h *Hand) Now() (t team.Task, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.seq
}

// claim does what takes a task, unless the agent holds it; taken tells which.
func (h *Hand) claim(ctx context.Context, id team.TaskID, do func(context.Context) (team.Task, error)) (t team.Task, taken bool, err error) {
	if !h.claiming.TryLock() {
		return team.Task{}, false, h.busy(team.Errorf(team.Busy, "%s is claiming another task right now", h.holder.Agent))
	}
	defer h.claiming.Unlock()
	if !h.settled {
		// A claim now and the adoption after it would make two tasks.
		return team.Task{}, false, h.busy(team.Errorf(team.Busy, "%s was just restarted", h.holder.Agent).WithHint("try again in a moment"))
	}
	if held, ok := h.Task(); ok {
		now, err := h.Confirm(ctx, held.ID)
		switch {
		case err == nil && held.ID == id:
			return now, false, nil
		case err == nil:
			return team.Task{}, false, h.busy(team.Errorf(team.Busy, "%s already holds %s (%s)", h.holder.Agent, held.ID, held.Title).
				WithHint("complete or release it first"))
		case !Lost(err):
			return team.Task{}, false, err
		}
	}
	began := time.Now()
	if t, err = do(h.life); err != nil {
		return team.Task{}, false, err
	}
	h.set(t, began)
	return t, true, nil
}

func (h *Hand) busy(err error) error {
	h.board.metrics.claim(err)
	return err
}

// set makes t, which was taken by a call that began then, the task held.
func (h *Hand) set(t team.Task, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.task, h.confirmed, h.seq = t, began, max(h.seq, t.Revision)
	h.epochs[team.TaskID(strings.Clone(string(t.ID)))] = t.Epoch // the map outlives the record, which t.ID is a piece of
}

// Adopt takes over the task that an earlier incarnation of the agent left in
// progress. ok is false if there is none. An incarnation that has predecessors can
// claim nothing before it has returned.
func (h *Hand) Adopt(ctx context.Context) (t team.Task, ok bool, err error) {
	h.claiming.Lock()
	defer h.claiming.Unlock()
	if h.settled {
		return t, false, nil
	}
	left, err := h.board.leftBy(ctx, h.holder)
	if err != nil {
		return t, false, err
	}
	for _, t := range left {
		began := time.Now()
		t, err := h.board.Adopt(h.life, t.ID, h.holder)
		if errors.Is(err, team.InvalidState) {
			continue // it was freed meanwhile
		}
		if err != nil {
			return t, false, err
		}
		h.set(t, began)
		h.settled = true
		return t, true, nil
	}
	h.settled = true
	return t, false, nil
}

// Remember tells the hand of a task that an earlier incarnation held under this
// epoch, so that a late write is answered as that of a former holder.
func (h *Hand) Remember(id team.TaskID, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id = team.TaskID(strings.Clone(string(id))) // it is a piece of the journal's record
	h.epochs[id] = max(h.epochs[id], epoch)
}

// Drop lets go of a task that is no longer the agent's.
func (h *Hand) Drop(id team.TaskID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task.ID == id {
		h.task, h.confirmed = team.Task{}, time.Time{}
	}
}

// call is a reading or a write of a task that the agent holds, or held last.
type call struct {
	task  team.Task // as it was when it was claimed; no more than its id if that hold is over
	epoch uint64    // of the agent's last hold of it; 0 if there never was one
	began time.Time
}

// begin returns a call about a task, which begins now.
func (h *Hand) begin(id team.TaskID) call {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.task
	if t.ID != id {
		t = team.Task{ID: id}
	}
	return call{t, h.epochs[id], time.Now()}
}

// endedBy reports whether t, as it was read since, says that h has ended the hold itself:
// the answer to that was lost, or is still on its way. An end that somebody has edited
// since (metadata) is not known as its own, unless it is a completion.
func (c call) endedBy(h team.Holder, t team.Task) bool {
	return t.Status != team.InProgress && t.Assignee == h.Agent && t.Incarnation == h.Incarnation && t.Epoch == c.epoch &&
		(t.Status == team.Completed || t.UpdatedBy == h.Agent)
}

// Complete completes the task; see [Board.Complete].
func (h *Hand) Complete(ctx context.Context, id team.TaskID, d team.Done) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.complete(ctx, c.task, h.holder, c.epoch, d)
	return t, h.after(c, t, err)
}

// Confirm reads the task and reports why the agent may not go on with it, or nil:
// the errors that [Hand.Complete] would give. A task that was lost is let go of.
func (h *Hand) Confirm(ctx context.Context, id team.TaskID) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.Get(ctx, id)
	if err == nil {
		err = h.board.MayComplete(ctx, t, h.holder, c.epoch)
	}
	return t, h.after(c, t, err)
}

// FailCheck records that the task's check has failed; the task stays the agent's
// unless that was the last attempt.
func (h *Hand) FailCheck(ctx context.Context, id team.TaskID, why string) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.FailCheck(ctx, id, h.holder, c.epoch, why)
	return t, h.after(c, t, err)
}

// Fail ends the task as failed.
func (h *Hand) Fail(ctx context.Context, id team.TaskID, reason string) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.Fail(ctx, id, team.Actor{Holder: h.holder}, c.epoch, reason)
	return t, h.after(c, t, err)
}

// Release puts the task back; attempt counts it as one (nudge, turn limit).
func (h *Hand) Release(ctx context.Context, id team.TaskID, reason string, attempt bool) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.Release(ctx, id, team.Actor{Holder: h.holder}, c.epoch, reason, attempt)
	return t, h.after(c, t, err)
}

// MayComplete is Confirm for an agent that is about to complete the task: a refusal is
// that of a late write, and counts as one.
func (h *Hand) MayComplete(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, err := h.Confirm(ctx, id)
	return t, h.board.late(err)
}

// Lost reports whether err, of a reading of a task that was held or of a write to it,
// says that the hold is over. A record that cannot be read says nothing: it may be
// healed.
func Lost(err error) bool {
	return errors.Is(err, team.Conflict) || errors.Is(err, team.NotFound) ||
		errors.Is(err, team.InvalidState) && !errors.Is(err, broker.ErrUnreadable)
}

// after takes in what a call has shown of the agent's hold of its task: t, or why that
// hold is over. What says nothing of it changes nothing, but that a record that could not
// be read puts it in doubt; and news of a hold that was followed by another meanwhile
// changes nothing either.
func (h *Hand) after(c call, t team.Task, err error) error {
	if onLoss := h.learn(c, t, err); onLoss != nil {
		onLoss(c.task.ID, err)
	}
	return err
}

// learn returns what is to be told of a loss, nil if there was none.
func (h *Hand) learn(c call, t team.Task, err error) (onLoss func(team.TaskID, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq = max(h.seq, t.Revision)
	switch {
	case h.task.ID != c.task.ID || h.epochs[c.task.ID] != c.epoch:
	case err == nil && t.HeldBy(h.holder):
		h.task, h.confirmed = t, c.began
	case err == nil || Lost(err):
		h.task, h.confirmed = team.Task{}, time.Time{}
		if err != nil && !c.endedBy(h.holder, t) {
			return h.onLoss
		}
	case errors.Is(err, broker.ErrUnreadable):
		h.confirmed = time.Time{}
	}
	return nil
}

// Inputs returns where the results of t's dependencies lie, as far as these can be read:
// they were completed when t was claimed, whatever has become of their records since.
func (h *Hand) Inputs(ctx context.Context, t team.Task) ([]team.Input, error) {
	inputs := make([]team.Input, len(t.Dependencies))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, id := range t.Dependencies {
		g.Go(func() error {
			d, err := h.board.Get(ctx, id)
			if errors.Is(err, team.NotFound) || errors.Is(err, broker.ErrUnreadable) {
				return nil
			}
			inputs[i] = team.Input{Task: d.ID, Path: d.DeliverablePath}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(inputs, func(in team.Input) bool { return in.Task == "" }), nil
}
