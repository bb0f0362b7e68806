package board

import (
	"context"
	"errors"
	"sync"

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

	claiming sync.Mutex // held for the length of a claim
	mu       sync.Mutex
	settled  bool      // under claiming: what a predecessor held was adopted, or there is nothing
	task     team.Task // held now; ID is "" if none
	seq      uint64    // revision up to which that is known
	epochs   map[team.TaskID]uint64
}

// NewHand returns the hand of h. life is the membership: a claim goes on until its
// outcome is known, or life ends, whatever becomes of its caller's context.
func NewHand(life context.Context, b *Board, h team.Holder) *Hand {
	return &Hand{board: b, holder: h, life: life, settled: h.Incarnation <= 1, epochs: map[team.TaskID]uint64{}}
}

// Holder is whose hand it is.
func (h *Hand) Holder() team.Holder { return h.holder }

// Task returns the task held, as it was when it was claimed.
func (h *Hand) Task() (team.Task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.task.ID != ""
}

// Claim claims a task that the caller knows by its id. Errors: Busy if the agent
// holds, or is just claiming, another; else those of [Board.Claim]. Claiming the
// task that is held already returns it.
func (h *Hand) Claim(ctx context.Context, id team.TaskID) (team.Task, error) {
	return h.claim(ctx, id, func(ctx context.Context) (team.Task, error) { return h.board.Claim(ctx, id, h.holder) })
}

// Assign takes a task on behalf of somebody with the leader's rights; see
// [Board.Assign].
func (h *Hand) Assign(ctx context.Context, a team.Assignment) (team.Task, error) {
	return h.claim(ctx, a.Task, func(ctx context.Context) (team.Task, error) { return h.board.Assign(ctx, a, h.holder) })
}

// Take claims a task that was offered, as it was read by who offers it.
func (h *Hand) Take(ctx context.Context, t team.Task) (team.Task, error) {
	return h.claim(ctx, t.ID, func(ctx context.Context) (team.Task, error) { return h.board.ClaimAt(ctx, t, h.holder) })
}

// Now returns the task held, with ID "" if there is none, and the revision of the bucket
// up to which that takes in what the board says of the agent.
func (h *Hand) Now() (t team.Task, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.seq
}

func (h *Hand) claim(ctx context.Context, id team.TaskID, do func(context.Context) (team.Task, error)) (team.Task, error) {
	if !h.claiming.TryLock() {
		return team.Task{}, h.busy(team.Errorf(team.Busy, "%s is claiming another task right now", h.holder.Agent))
	}
	defer h.claiming.Unlock()
	if !h.settled {
		// A claim now and the adoption after it would make two tasks.
		return team.Task{}, h.busy(team.Errorf(team.Busy, "%s was just restarted", h.holder.Agent).WithHint("try again in a moment"))
	}
	if held, ok := h.Task(); ok {
		now, err := h.board.Get(ctx, held.ID)
		switch {
		case err != nil:
			return team.Task{}, err
		case now.HeldBy(h.holder) && held.ID == id:
			return now, nil
		case now.HeldBy(h.holder):
			return team.Task{}, h.busy(team.Errorf(team.Busy, "%s already holds %s (%s)", h.holder.Agent, held.ID, held.Title).
				WithHint("complete or release it first"))
		}
		h.Drop(held.ID) // it was taken away meanwhile
	}
	t, err := do(h.life)
	if err != nil {
		return team.Task{}, err
	}
	h.set(t)
	return t, nil
}

func (h *Hand) busy(err error) error {
	h.board.metrics.claim(err)
	return err
}

func (h *Hand) set(t team.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.task, h.epochs[t.ID], h.seq = t, t.Epoch, max(h.seq, t.Revision)
}

// Adopt takes over the task that an earlier incarnation of the agent left in
// progress. ok is false if there is none. An incarnation that has predecessors can
// claim nothing before it has returned.
func (h *Hand) Adopt(ctx context.Context) (t team.Task, ok bool, err error) {
	h.claiming.Lock()
	defer h.claiming.Unlock()
	if h.settled {
		return h.task, h.task.ID != "", nil
	}
	left, err := h.board.leftBy(ctx, h.holder)
	if err != nil {
		return t, false, err
	}
	for _, t := range left {
		t, err := h.board.Adopt(h.life, t.ID, h.holder)
		if errors.Is(err, team.InvalidState) {
			continue // it was freed meanwhile
		}
		if err != nil {
			return t, false, err
		}
		h.set(t)
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
	h.epochs[id] = max(h.epochs[id], epoch)
}

// Drop lets go of a task that is no longer the agent's.
func (h *Hand) Drop(id team.TaskID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task.ID == id {
		h.task = team.Task{}
	}
}

// last returns the agent's last hold of a task: the task as it was claimed, no more
// than its id if that is over, and the epoch, 0 if there never was one.
func (h *Hand) last(id team.TaskID) (held team.Task, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held = h.task
	if held.ID != id {
		held = team.Task{ID: id}
	}
	return held, h.epochs[id]
}

// Complete completes the task; see [Board.Complete].
func (h *Hand) Complete(ctx context.Context, id team.TaskID, d team.Done) (team.Task, error) {
	held, epoch := h.last(id)
	t, err := h.board.complete(ctx, held, h.holder, epoch, d)
	return t, h.after(id, epoch, t, err)
}

// Confirm reads the task and reports why the agent may not go on with it, or nil:
// the errors that [Hand.Complete] would give. A task that was lost is let go of.
func (h *Hand) Confirm(ctx context.Context, id team.TaskID) (team.Task, error) {
	_, epoch := h.last(id)
	t, err := h.board.Get(ctx, id)
	if err == nil {
		err = h.board.MayComplete(ctx, t, h.holder, epoch)
	}
	return t, h.after(id, epoch, t, err)
}

// FailCheck records that the task's check has failed; the task stays the agent's
// unless that was the last attempt.
func (h *Hand) FailCheck(ctx context.Context, id team.TaskID, why string) (team.Task, error) {
	_, epoch := h.last(id)
	t, err := h.board.FailCheck(ctx, id, h.holder, epoch, why)
	return t, h.after(id, epoch, t, err)
}

// Fail ends the task as failed.
func (h *Hand) Fail(ctx context.Context, id team.TaskID, reason string) (team.Task, error) {
	_, epoch := h.last(id)
	t, err := h.board.Fail(ctx, id, team.Actor{Holder: h.holder}, epoch, reason)
	return t, h.after(id, epoch, t, err)
}

// Release puts the task back; attempt counts it as one (nudge, turn limit).
func (h *Hand) Release(ctx context.Context, id team.TaskID, reason string, attempt bool) (team.Task, error) {
	_, epoch := h.last(id)
	t, err := h.board.Release(ctx, id, team.Actor{Holder: h.holder}, epoch, reason, attempt)
	return t, h.after(id, epoch, t, err)
}

// MayComplete is Confirm for an agent that is about to complete the task: a refusal is
// that of a late write, and counts as one.
func (h *Hand) MayComplete(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, err := h.Confirm(ctx, id)
	return t, h.board.late(err)
}

// after takes in what a write or a reading has shown of the agent's hold of a task
// under epoch: t, or why that hold is over. What says nothing of it changes nothing, and
// neither does news of a hold that was followed by another meanwhile.
func (h *Hand) after(id team.TaskID, epoch uint64, t team.Task, err error) error {
	over := errors.Is(err, team.Conflict) || errors.Is(err, team.InvalidState) && !errors.Is(err, broker.ErrUnreadable)
	if err != nil && !over {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq = max(h.seq, t.Revision)
	switch {
	case h.task.ID != id || h.epochs[id] != epoch:
	case err == nil && t.HeldBy(h.holder):
		h.task = t
	default:
		h.task = team.Task{}
	}
	return err
}

// Inputs returns where the results of t's dependencies lie.
func (h *Hand) Inputs(ctx context.Context, t team.Task) ([]team.Input, error) {
	deps, err := h.board.several(ctx, t.Dependencies)
	if err != nil {
		return nil, err
	}
	inputs := make([]team.Input, len(deps))
	for i, d := range deps {
		inputs[i] = team.Input{Task: d.ID, Path: d.DeliverablePath}
	}
	return inputs, nil
}
