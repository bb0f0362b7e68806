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

// ClaimSlot makes all claims of one incarnation of an agent, one at a time, and holds at most one task. Its model, offers
// and assignments all claim through it, so the one-task rule needs no second record. Safe for concurrent use.
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

// NewClaimSlot returns the slot of h. life is the membership's context: a claim continues until its outcome is known or
// life ends, even if its caller's context ends earlier.
func NewClaimSlot(life context.Context, b *Board, h team.Holder) *ClaimSlot {
	return &ClaimSlot{board: b, holder: h, life: life, claiming: make(chan struct{}, 1), settled: h.Incarnation <= 1, epochs: map[team.TaskID]uint64{},
		onLoss: func(team.Task, error) {}, beforeRelease: func(context.Context, team.TaskID) {},
		othersEnd:  func(context.Context, team.Task) (bool, error) { return false, nil },
		unfinished: func(context.Context, team.Task) *team.Try { return nil }}
}

// OnLoss sets the function that is called, once for each hold, when the slot finds that its hold of a task was taken
// away; why is the error that showed it. Any call of the slot may find that, also a claim of the next task. f must not
// block.
func (h *ClaimSlot) OnLoss(f func(t team.Task, why error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onLoss = f
}

// BeforeRelease sets the function that is called before the slot puts back, fails or cancels its task: another agent may
// have the task right after that. f may take until ctx ends.
func (h *ClaimSlot) BeforeRelease(f func(ctx context.Context, id team.TaskID)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beforeRelease = f
}

// OthersEnd sets the function that reports whether others end a task which an earlier incarnation has left:
// [ClaimSlot.Adopt] and [ClaimSlot.PutBack] leave it to them, and until that is over the slot takes no other task. Set it
// before either is called.
func (h *ClaimSlot) OthersEnd(f func(context.Context, team.Task) (bool, error)) { h.othersEnd = f }

// Unfinished sets the function that stores and returns the work on a task, nil if there is none, before the slot puts
// the task back, fails or cancels it, and before [ClaimSlot.PutBack] does. It is called after that of
// [ClaimSlot.BeforeRelease]. Set it before any other call.
func (h *ClaimSlot) Unfinished(f func(context.Context, team.Task) *team.Try) { h.unfinished = f }

// Holder returns the holder of the slot.
func (h *ClaimSlot) Holder() team.Holder { return h.holder }

// Task returns the task held, as last confirmed.
func (h *ClaimSlot) Task() (team.Task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.task.ID != ""
}

// Confirmed returns the time at which the agent was last known to hold its task: the start of the claim, or of the last
// call that confirmed the hold. It is the zero time without a task, or if the last such call could not read the task.
func (h *ClaimSlot) Confirmed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.confirmed
}

// Claim claims a task by its id. Errors: Busy if the agent holds, or is just claiming, another; else those of
// [Board.Claim]. For the task that is already held it returns the task.
func (h *ClaimSlot) Claim(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, _, err := h.claim(ctx, id, h.free, func(ctx context.Context) (team.Task, error) { return h.board.Claim(ctx, id, h.holder) })
	return t, err
}

// Assign takes a task on behalf of a.By, which has the leader's rights; see [Board.Assign]. taken is false if the agent
// held it already, as when an assignment whose answer was lost is repeated, or when the task was offered as well: Assign
// waits for a claim that is under way.
func (h *ClaimSlot) Assign(ctx context.Context, a team.Assignment) (t team.Task, taken bool, err error) {
	return h.claim(ctx, a.Task, h.soon, func(ctx context.Context) (team.Task, error) { return h.board.Assign(ctx, a, h.holder) })
}

// Take claims an offered task at the revision of the offer.
func (h *ClaimSlot) Take(ctx context.Context, t team.Task) (team.Task, error) {
	t, _, err := h.claim(ctx, t.ID, h.free, func(ctx context.Context) (team.Task, error) { return h.board.ClaimAt(ctx, t, h.holder) })
	return t, err
}

// Now returns the task held, with ID "" if there is none, and the bucket revision up to which the slot knows its holds.
func (h *ClaimSlot) Now() (t team.Task, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.task, h.seq
}

// free begins a claim and returns true, or returns false if one is under way.
func (h *ClaimSlot) free(context.Context) bool {
	select {
	case h.claiming <- struct{}{}:
		return true
	default:
		return false
	}
}

// soon is free, but waits for a claim under way, until ctx ends.
func (h *ClaimSlot) soon(ctx context.Context) bool {
	select {
	case h.claiming <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// claim calls do, which takes the task, after begin has returned true and unless the
// agent holds the task already; taken reports whether it called do.
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

// done returns nil once others have ended the task that an earlier incarnation left. The caller holds claiming.
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

// Adopt takes over the task that an earlier incarnation of the agent left in progress; ok is false if there is none.
// atWork is the task on which that incarnation worked when it was lost, if any: adopting it is an attempt, and the last
// attempt fails it. A task that others end is not adopted. Until Adopt has returned, an incarnation with predecessors can
// claim nothing.
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

// PutBack puts back the task that an earlier incarnation of the agent left in progress, and that this one cannot continue;
// that is not an attempt. A task that others end stays as it is.
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

// Remember records the epoch under which an earlier incarnation held a task, so that a late write gets the error of a
// former holder.
func (h *ClaimSlot) Remember(id team.TaskID, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id = team.TaskID(strings.Clone(string(id))) // it is a piece of the journal's record
	h.epochs[id] = max(h.epochs[id], epoch)
}

// call is one read or write of a task that the agent holds or held.
type call struct {
	task  team.Task // as it was claimed; only its id if that hold is over
	epoch uint64    // of the agent's last hold of it; 0 if there never was one
	began time.Time
}

// begin returns a call about a task, with the present time as its start.
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

// end makes a call that puts the task back, fails or cancels it, after storing its work. The queue may have returned work
// of the agent meanwhile, which raises the epoch: then the call is made again.
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

// follow reports whether t shows that the agent still holds the task, under a later epoch than the call's; it then updates
// the slot and the call to that epoch. Work that the queue returns to its holder raises the epoch.
func (h *ClaimSlot) follow(c *call, t team.Task) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task.ID != c.task.ID || h.epochs[c.task.ID] != c.epoch || !t.HeldBy(h.holder) || t.Epoch <= c.epoch {
		return false
	}
	h.task, h.epochs[c.task.ID], c.epoch = t, t.Epoch, t.Epoch
	return true
}

// endedBy reports whether t, read after the call began, shows that h ended the hold itself, with a write whose answer was
// lost or is still on its way. After a later edit of the task's metadata it recognises only a completion.
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

// Confirm reads the task and returns the reason why the agent may not continue with it, or nil: the errors that
// [ClaimSlot.Complete] would return. The slot lets go of a lost task.
func (h *ClaimSlot) Confirm(ctx context.Context, id team.TaskID) (team.Task, error) {
	c := h.begin(id)
	t, err := h.board.Get(ctx, id)
	if err == nil {
		h.follow(&c, t)
		err = h.board.MayComplete(ctx, t, h.holder, c.epoch)
	}
	return t, h.after(c, t, err)
}

// FailCheck records that the task's check has failed; the agent keeps the task unless that was the last attempt.
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
	if !a.Leads { // it is refused, and the jobs of the task continue
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

// Release puts the task back for reasons other than its content: the agent could do it.
func (h *ClaimSlot) Release(ctx context.Context, id team.TaskID, f team.Freed) (team.Task, error) {
	return h.end(ctx, id, f, func(c call, f team.Freed) (team.Task, error) {
		return h.board.Release(ctx, id, team.Actor{Holder: h.holder}, c.epoch, f)
	})
}

// GiveBack puts back a task that the agent cannot do: other members are offered it first.
func (h *ClaimSlot) GiveBack(ctx context.Context, id team.TaskID, g team.GiveBack) (team.Task, error) {
	return h.end(ctx, id, g.Freed, func(c call, f team.Freed) (team.Task, error) {
		g.Freed = f
		return h.board.GiveBack(ctx, id, h.holder, c.epoch, g)
	})
}

// MayComplete is Confirm for an agent that is about to complete the task: a refusal counts as a late write.
func (h *ClaimSlot) MayComplete(ctx context.Context, id team.TaskID) (team.Task, error) {
	t, err := h.Confirm(ctx, id)
	return t, h.board.late(err)
}

// after updates the hold from the outcome of a call, and returns err. Errors without information on the holder change
// nothing, except that an unreadable record makes the hold unconfirmed. Outcomes of an earlier hold are ignored.
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

// Retire makes the slot refuse all later claims with InvalidState, since its agent leaves the team. It keeps its present
// task.
func (h *ClaimSlot) Retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired = true
}

// leaves reports whether the slot is retired.
func (h *ClaimSlot) leaves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.retired
}

// Inputs returns the results of t's dependencies. All were completed when t was claimed; those whose records cannot be
// read now are left out.
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

// LastTry returns the end of the hold of t before the present one, and the last hold whose work was returned, if that was
// an earlier one; nil if t was never held before, or that is no longer known.
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
