package board

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/team"
)

// ClaimSlot makes all claims of one incarnation of an agent, one at a time, and holds at most
// one task. Its model, offers and assignments all claim through it, so the one-task rule
// needs no second record. Safe for concurrent use.
type ClaimSlot struct {
	board  *Board
	holder team.Holder
	life   context.Context

	claiming      chan struct{} // holds a token for the length of a claim
	mu            sync.Mutex
	retired       bool      // it takes no other task
	settled       bool      // guarded by claiming: the predecessor's task was adopted, or it had none
	left          team.Task // guarded by claiming: the predecessor's, which others end; ID is "" if there is none
	task          team.Task // held now; ID is "" if none
	confirmed     time.Time // when the hold was last known to be true; zero if it is in doubt
	seq           uint64    // bucket revision up to which the hold is known
	epochs        map[team.TaskID]uint64
	onLoss        func(team.Task, error)
	beforeRelease func(context.Context, team.TaskID)
	othersEnd     func(context.Context, team.Task) (bool, error)
	unfinished    func(context.Context, team.Task) *team.Try
}

// NewClaimSlot returns the hand of h. life is the membership's context: a claim continues until
// its outcome is known or life ends, even if its caller's context ends earlier.
func NewClaimSlot(life context.Context, b *Board, h team.Holder) *ClaimSlot {
	return &ClaimSlot{board: b, holder: h, life: life, claiming: make(chan struct{}, 1), settled: h.Incarnation <= 1, epochs: map[team.TaskID]uint64{},
		onLoss: func(team.Task, error) {}, beforeRelease: func(context.Context, team.TaskID) {},
		othersEnd:  func(context.Context, team.Task) (bool, error) { return false, nil },
		unfinished: func(context.Context, team.Task) *team.Try { return nil }}
}

// OnLoss sets the function that is called, once for each hold, when the hand finds that
// its task, as it was held, was taken away; why is the error that showed it. Any call of the hand may find
// that, also a claim of the next task. f must not block.
func (h *ClaimSlot) OnLoss(f func(t team.Task, why error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onLoss = f
}

// BeforeRelease sets the function that is called before the hand puts back, fails or cancels the task that it
// holds: another agent may have the task right after that. f may take until ctx ends.
func (h *ClaimSlot) BeforeRelease(f func(ctx context.Context, id team.TaskID)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beforeRelease = f
}

// OthersEnd sets the function that reports whether a task which an earlier incarnation has left is
// ended by others: [ClaimSlot.Adopt] and [ClaimSlot.PutBack] leave it to them, and until that is over the hand
// takes no other task. It is set before either is called.
func (h *ClaimSlot) OthersEnd(f func(context.Context, team.Task) (bool, error)) { h.othersEnd = f }

// Unfinished sets the function that stores the work on a task before the hand puts that back, fails or cancels it, and before [ClaimSlot.PutBack] does,
// and returns it; nil if there is none. It is called after that of [ClaimSlot.BeforeRelease], and set before any other call.
func (h *ClaimSlot) Unfinished(f func(context.Context, team.Task) *team.Try) { h.unfinished = f }

// Holder is whose hand it is.
func (h *ClaimSlot) Holder() team.Holder { return h.holder }

// Task returns the task held, as it was when it was claimed.
func (h *ClaimSlot) Task() (team.Task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.task.ID != ""
}

// Confirmed returns when the agent was last known to hold its task: the start of the
// claim, or of the last call that showed the hold to be true. It is the zero time if there
// is no task, or if the last such call could not read the task.
func (h *ClaimSlot) Confirmed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.confirmed
}

// Claim claims a task that the caller knows by its id. Errors: Busy if the agent
// holds, or is just claiming, another; else those of [Board.Claim]. Claiming the
// task that is held already returns it.
func (h *ClaimSlot) Claim(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, _, err := h.claim(ctx, id, h.free, func(ctx context.Context) (team.Task, error) { return h.board.Claim(ctx, id, h.holder) })
	return t, err
}

// Assign takes a task on behalf of somebody with the leader's rights; see
// [Board.Assign]. taken is false if the agent held it already, as when an assignment whose
// answer was lost is repeated, or when the task was offered as well: Assign waits for a claim
// that is under way.
func (h *ClaimSlot) Assign(ctx context.Context, a team.Assignment) (t team.Task, taken bool, err error) {
	return h.claim(ctx, a.Task, h.soon, func(ctx context.Context) (team.Task, error) { return h.board.Assign(ctx, a, h.holder) })
}

// Take claims an offered task at the revision that the offer names.
func (h *ClaimSlot) Take(ctx context.Context, t team.Task) (team.Task, error) {
	t, _, err := h.claim(ctx, t.ID, h.free, func(ctx context.Context) (team.Task, error) { return h.board.ClaimAt(ctx, t, h.holder) })
	return t, err
}

// Now returns the task held, with ID "" if there is none, and the bucket revision up to
// which the hand knows what the agent holds.
func (h *ClaimSlot) Now() (t team.Task, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.seq
}

// free reports whether no claim was under way, and begins one.
func (h *ClaimSlot) free(context.Context) bool {
	select {
	case h.claiming <- struct{}{}:
		return true
	default:
		return false
	}
}

// soon is free that waits for a claim under way, until ctx ends.
func (h *ClaimSlot) soon(ctx context.Context) bool {
	select {
	case h.claiming <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// claim does what takes a task, once begin lets it and unless the agent holds it; taken
// tells which.
func (h *ClaimSlot) claim(ctx context.Context, id team.TaskID, begin func(context.Context) bool, do func(context.Context) (team.Task, error)) (t team.Task, taken bool, err error) {
	if !begin(ctx) {
		return team.Task{}, false, h.busy(team.Errorf(team.Busy, "%s is claiming another task right now", h.holder.Agent))
	}
	defer func() { <-h.claiming }()
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
		case !team.HoldLost(err):
			return team.Task{}, false, err
		}
	}
	if h.leaves() {
		return team.Task{}, false, h.busy(team.Errorf(team.InvalidState, "%s takes no other task: it leaves the team", h.holder.Agent).
			WithHint("give it to another member"))
	}
	if err := h.done(ctx); err != nil {
		return team.Task{}, false, h.busy(err)
	}
	began := time.Now()
	if t, err = do(h.life); err != nil {
		return team.Task{}, false, err
	}
	h.set(t, began)
	return t, true, nil
}

// done returns nil once what an earlier incarnation has left to others is over. The caller holds claiming.
func (h *ClaimSlot) done(ctx context.Context) error {
	if h.left.ID == "" {
		return nil
	}
	t, err := h.board.Get(ctx, h.left.ID)
	switch {
	case err == nil && t.Status == team.InProgress && t.Epoch == h.left.Epoch:
		return team.Errorf(team.Busy, "what %s has done for %s (%s) before it was restarted is not taken in yet", h.holder.Agent, t.ID, t.Title).
			WithHint("wait for that, or put %s back", t.ID)
	case err == nil, errors.Is(err, team.NotFound):
		h.left = team.Task{}
		return nil
	}
	return err
}

func (h *ClaimSlot) busy(err error) error {
	h.board.metrics.claim(err)
	return err
}

// set makes t the task held; the call that took it started at began.
func (h *ClaimSlot) set(t team.Task, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.task, h.confirmed, h.seq = t, began, max(h.seq, t.Revision)
	h.epochs[team.TaskID(strings.Clone(string(t.ID)))] = t.Epoch // the map outlives the record, which t.ID is a piece of
}

// Adopt takes over the task that an earlier incarnation of the agent left in progress;
// ok is false if there is none. atWork is the task that one was at when it was lost, if
// any: adopting that is an attempt, and the last attempt fails it. A task that others end is not adopted. Until Adopt has
// returned, an incarnation with predecessors can claim nothing.
func (h *ClaimSlot) Adopt(ctx context.Context, atWork team.TaskID) (t team.Task, ok bool, err error) {
	h.claiming <- struct{}{}
	defer func() { <-h.claiming }()
	if h.settled {
		return t, false, nil
	}
	left, err := h.board.leftBy(ctx, h.holder)
	if err != nil {
		return t, false, err
	}
	for _, t := range left {
		ended, err := h.othersEnd(ctx, t)
		if err != nil {
			return t, false, err
		}
		if ended {
			h.left = t
			continue
		}
		began := time.Now()
		t, err := h.board.Adopt(h.life, t.ID, h.holder, t.ID == atWork)
		if errors.Is(err, team.InvalidState) || err == nil && t.Status == team.Failed {
			continue // it was freed meanwhile, or has had its last attempt
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

// PutBack puts back what an earlier incarnation of the agent left in progress, which this
// one cannot continue with; that is no attempt. A task that others end stays as it is.
func (h *ClaimSlot) PutBack(ctx context.Context, reason string) error {
	h.claiming <- struct{}{}
	defer func() { <-h.claiming }()
	left, err := h.board.leftBy(ctx, h.holder)
	if err != nil {
		return err
	}
	for _, t := range left {
		ended, err := h.othersEnd(ctx, t)
		if err == nil && !ended {
			err = h.board.Reap(ctx, t.ID, t.Epoch, team.Freed{Reason: reason, Work: h.unfinished(ctx, t)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Remember tells the hand under which epoch an earlier incarnation held a task, so that
// a late write gets the error of a former holder.
func (h *ClaimSlot) Remember(id team.TaskID, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id = team.TaskID(strings.Clone(string(id))) // it is a piece of the journal's record
	h.epochs[id] = max(h.epochs[id], epoch)
}

// call is one read or write of a task that the agent holds or has held.
type call struct {
	task  team.Task // as it was claimed; only its id if that hold is over
	epoch uint64    // of the agent's last hold of it; 0 if there never was one
	began time.Time
}

// begin returns a call about a task, which begins now.
func (h *ClaimSlot) begin(id team.TaskID) call {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.task
	if t.ID != id {
		t = team.Task{ID: id}
	}
	return call{t, h.epochs[id], time.Now()}
}

// beginRelease is begin for a call that puts the task back, fails or cancels it.
func (h *ClaimSlot) beginRelease(ctx context.Context, id team.TaskID) call {
	h.mu.Lock()
	held, f := h.task.ID, h.beforeRelease
	h.mu.Unlock()
	if held == id {
		f(ctx, id)
	}
	return h.begin(id)
}

// end begins a call that puts the task back, fails or cancels it, whose work is stored first, and makes it. The queue may have returned
// work of the agent meanwhile, which raises the epoch: then the call is made again.
func (h *ClaimSlot) end(ctx context.Context, id team.TaskID, f team.Freed, write func(call, team.Freed) (team.Task, error)) (team.Task, error) {
	for {
		c := h.beginRelease(ctx, id)
		if c.task.Epoch > 0 {
			f.Work = cmp.Or(h.unfinished(ctx, c.task), f.Work)
		}
		t, err := write(c, f)
		if err == nil || !h.follow(&c, t) {
			return t, h.after(c, t, err)
		}
	}
}

// follow reports whether t shows that the agent still holds the task, under a later epoch than the call's. The hand has
// that one then, and so has the call: work which the queue returns to its holder raises the epoch.
func (h *ClaimSlot) follow(c *call, t team.Task) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task.ID != c.task.ID || h.epochs[c.task.ID] != c.epoch || !t.HeldBy(h.holder) || t.Epoch <= c.epoch {
		return false
	}
	h.task, h.epochs[c.task.ID], c.epoch = t, t.Epoch, t.Epoch
	return true
}

// endedBy reports whether t, read after the call began, shows that h ended the hold
// itself, with a write whose answer was lost or is still on its way. If somebody has edited
// the task's metadata since, only a completion is still recognised.
func (c call) endedBy(h team.Holder, t team.Task) bool {
	return t.Status != team.InProgress && t.Assignee == h.Agent && t.Incarnation == h.Incarnation && t.Epoch == c.epoch &&
		(t.Status == team.Completed || t.UpdatedBy == h.Agent)
}

// Complete completes the task; see [Board.Complete].
func (h *ClaimSlot) Complete(ctx context.Context, id team.TaskID, d team.Done) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.complete(ctx, c.task, h.holder, c.epoch, d)
	return t, h.after(c, t, err)
}

// Confirm reads the task and reports why the agent may not continue with it, or nil:
// the errors that [ClaimSlot.Complete] would give. A task that was lost is let go of.
func (h *ClaimSlot) Confirm(ctx context.Context, id team.TaskID) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.Get(ctx, id)
	if err == nil {
		h.follow(&c, t)
		err = h.board.MayComplete(ctx, t, h.holder, c.epoch)
	}
	return t, h.after(c, t, err)
}

// FailCheck records that the task's check has failed; the task stays the agent's
// unless that was the last attempt.
func (h *ClaimSlot) FailCheck(ctx context.Context, id team.TaskID, why string) (team.Task, error) {
	c := h.begin(id)
	if c.task.Attempts+1 >= team.MaxAttempts {
		return h.end(ctx, id, team.Freed{Reason: why}, func(c call, f team.Freed) (team.Task, error) {
			return h.board.FailCheck(ctx, id, h.holder, c.epoch, f)
		})
	}
	t, err := h.board.FailCheck(ctx, id, h.holder, c.epoch, team.Freed{Reason: why})
	return t, h.after(c, t, err)
}

// Fail ends the task as failed.
func (h *ClaimSlot) Fail(ctx context.Context, id team.TaskID, reason string) (team.Task, error) {
	return h.end(ctx, id, team.Freed{Reason: reason}, func(c call, f team.Freed) (team.Task, error) {
		return h.board.Fail(ctx, id, team.Actor{Holder: h.holder}, c.epoch, f)
	})
}

// Cancel cancels a task, also one that the agent does not hold; see [team.Task.Cancel].
func (h *ClaimSlot) Cancel(ctx context.Context, id team.TaskID, a team.Actor, reason string) (team.Task, error) {
	if !a.Leads { // it is refused, and what was begun for the task continues
		return h.board.Cancel(ctx, id, a, reason)
	}
	return h.end(ctx, id, team.Freed{}, func(_ call, f team.Freed) (team.Task, error) {
		return h.board.change(ctx, id, func(t team.Task) (team.Task, error) {
			t, err := t.Cancel(a, reason, now())
			if f.Work != nil {
				t = t.Left(*f.Work)
			}
			return t, err
		})
	})
}

// Release puts the task back, which the agent could do and is not to now.
func (h *ClaimSlot) Release(ctx context.Context, id team.TaskID, f team.Freed) (team.Task, error) {
	return h.end(ctx, id, f, func(c call, f team.Freed) (team.Task, error) {
		return h.board.Release(ctx, id, team.Actor{Holder: h.holder}, c.epoch, f)
	})
}

// GiveBack puts back a task that the agent cannot do: it is offered others first.
func (h *ClaimSlot) GiveBack(ctx context.Context, id team.TaskID, g team.GiveBack) (team.Task, error) {
	return h.end(ctx, id, g.Freed, func(c call, f team.Freed) (team.Task, error) {
		g.Freed = f
		return h.board.GiveBack(ctx, id, h.holder, c.epoch, g)
	})
}

// MayComplete is Confirm for an agent that is about to complete the task: a refusal
// counts as a late write.
func (h *ClaimSlot) MayComplete(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, err := h.Confirm(ctx, id)
	return t, h.board.late(err)
}

// after updates the hold from the outcome of a call, and returns err. Errors that say
// nothing about ownership change nothing, except that an unreadable record makes the hold
// unconfirmed. Outcomes of an earlier hold are ignored.
func (h *ClaimSlot) after(c call, t team.Task, err error) error {
	if onLoss := h.learn(c, t, err); onLoss != nil {
		onLoss(c.task, err)
	}
	return err
}

// learn does the work of after under the lock; it returns onLoss if the task was lost.
func (h *ClaimSlot) learn(c call, t team.Task, err error) (onLoss func(team.Task, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq = max(h.seq, t.Revision)
	switch {
	case h.task.ID != c.task.ID || h.epochs[c.task.ID] != c.epoch:
	case err == nil && t.HeldBy(h.holder):
		h.task, h.confirmed = t, c.began
	case err == nil || team.HoldLost(err):
		h.task, h.confirmed = team.Task{}, time.Time{}
		if err != nil && !c.endedBy(h.holder, t) {
			return h.onLoss
		}
	case errors.Is(err, team.ErrUnreadable):
		h.confirmed = time.Time{}
	}
	return nil
}

// Retire makes the hand refuse all claims from here on, since its agent leaves the team: they
// are InvalidState. What it holds stays held.
func (h *ClaimSlot) Retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired = true
}

// leaves reports whether the hand is retired.
func (h *ClaimSlot) leaves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.retired
}

// Inputs returns what came of t's dependencies. All were completed when t was
// claimed; those whose records cannot be read now are left out.
func (h *ClaimSlot) Inputs(ctx context.Context, t team.Task) ([]team.Input, error) {
	inputs := make([]team.Input, len(t.Dependencies))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, id := range t.Dependencies {
		g.Go(func() error {
			d, err := h.board.Get(ctx, id)
			if errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) {
				return nil
			}
			if err == nil {
				inputs[i] = d.Input()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(inputs, func(in team.Input) bool { return in.Task == "" }), nil
}

// LastTry returns how the hold of t before the present one ended, and the last whose work was returned, if
// that was an earlier one; nil if t was never held before, or that is no longer known.
func (h *ClaimSlot) LastTry(ctx context.Context, t team.Task) (last, unmerged *team.Try, err error) {
	if t.Epoch <= 1 {
		return nil, nil, nil
	}
	copies, err := h.board.past(ctx, t.ID)
	if err != nil {
		return nil, nil, err
	}
	last, unmerged = t.LastTry(copies)
	return last, unmerged, nil
}
