package mergequeue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// errMoved: the head is no longer the one onto which the work was merged.
var errMoved = errors.New("the line's head has moved")

// errGone: the entry has changed or is gone since it was read.
var errGone = errors.New("the entry was withdrawn")

// lead holds the lease while an entry waits.
func (q *Queue) lead(ctx context.Context, seen Head) error {
	h, err := take(ctx, q.o.Site.Records, seen, q.o.Process, q.o.Lease)
	if errors.Is(err, errLost) {
		return q.hear(ctx, seen.Revision+1) // which queue was first
	}
	if err != nil {
		return err
	}
	term, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		if err := h.renew(term, q.step); err != nil {
			cancel(err)
		}
	}()
	err = q.serve(term, h)
	if why := context.Cause(term); why != nil && ctx.Err() == nil {
		err = why
	}
	cancel(nil)
	<-renewed
	if errors.Is(err, errLost) {
		q.o.Logger.Warn("stopped merging", "err", err)
		return err
	}
	if err := q.step(context.WithoutCancel(ctx), "give back"); err != nil {
		return err
	}
	if back := h.giveBack(ctx); back != nil {
		q.o.Logger.Warn("the lease on the line was not given back; others wait until it runs out", "err", back)
		return cmp.Or(err, ctx.Err())
	}
	return cmp.Or(err, q.hear(ctx, h.now().Revision))
}

// hear waits until the watch has shown the head's record at a revision or a later one.
func (q *Queue) hear(ctx context.Context, revision uint64) error {
	for {
		q.mu.Lock()
		heard := q.head.Revision >= revision
		q.mu.Unlock()
		if heard {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.wake:
		}
	}
}

// serve merges waiting entries until there is none that this queue can merge now.
func (q *Queue) serve(ctx context.Context, h *hold) error {
	if err := q.finish(ctx, h.now()); err != nil {
		return err
	}
	for {
		seen, _ := q.next(ctx, time.Now(), mostTogether)
		if len(seen) == 0 {
			return ctx.Err()
		}
		var batch []Entry
		for _, e := range seen {
			now, ok, err := q.ready(ctx, h, e)
			if err := q.endured(ctx, e, err); err != nil {
				return err
			} else if ok {
				batch = append(batch, now)
			}
		}
		if err := q.settle(ctx, h, batch); err != nil {
			return err
		}
	}
}

// endured postpones an entry with an error that does not end the term, and returns the other errors. A moved head and a withdrawn
// entry have no consequence but that the queue looks again.
func (q *Queue) endured(ctx context.Context, e Entry, err error) error {
	switch {
	case err == nil, errors.Is(err, errMoved):
		return ctx.Err()
	case errors.Is(err, errGone):
		q.forget(e) // the watch brings the newer copy
		return nil
	case errors.Is(err, errLost) || ctx.Err() != nil:
		return err
	}
	q.o.Logger.Warn("an entry could not be merged; it is tried again later", "task", e.Task, "err", err)
	q.postpone(e, err)
	return nil
}

// finish completes the tasks of the last move, as far as that is not done.
func (q *Queue) finish(ctx context.Context, head Head) error {
	for _, m := range head.Last {
		e, err := q.o.Site.Records.Get(ctx, m.Task)
		if errors.Is(err, team.NotFound) || err == nil && (!e.same(m.Task, m.Epoch) || e.State == Merged) {
			continue
		}
		if err == nil {
			err = q.complete(ctx, head.Commit, m.Commit, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// complete moves the host's branch to the head, completes the task, and removes its stored work, the entry last: if the
// process dies before that, the next leader repeats all steps. [Site.Works] finds files that could not be removed here: the
// next entry does not wait for them.
func (q *Queue) complete(ctx context.Context, head, merged gitrepo.Hash, e Entry) error {
	if err := q.step(ctx, "follow"); err != nil {
		return err
	}
	if err := q.o.Site.follow(ctx, head); err != nil {
		return err
	}
	if err := q.step(ctx, "complete"); err != nil {
		return err
	}
	if err := q.o.Tasks.Complete(ctx, e, merged); err != nil {
		switch {
		case errors.Is(err, team.ErrUnreadable) && e.State != Merged:
			return q.shelve(ctx, merged, e, err)
		case !answered(err):
			return fmt.Errorf("complete %s: %w", e.Task, err)
		}
		q.o.Logger.Error("a task is merged and cannot be completed", "task", e.Task, "epoch", e.Epoch, "commit", merged, "err", err)
	}
	if err := q.step(ctx, "clean"); err != nil {
		return err
	}
	for _, epoch := range append([]uint64{e.Epoch}, e.Returned...) {
		if err := q.o.Site.Forget(ctx, Work{e.Task, epoch}); err != nil {
			if ctx.Err() != nil {
				return err
			}
			q.o.Logger.Warn("what is stored of a merged task was not removed; it is removed later", "task", e.Task, "epoch", epoch, "err", err)
		}
	}
	return q.drop(ctx, e)
}

// shelve records in an entry that its work is in the integration branch. A task with an unreadable record is completed once
// the record is readable; until then other work is merged onto it.
func (q *Queue) shelve(ctx context.Context, merged gitrepo.Hash, e Entry, why error) error {
	if err := q.step(ctx, "shelve"); err != nil {
		return err
	}
	e.State, e.Merged = Merged, merged
	e, err := q.o.Site.Records.put(ctx, e)
	if err != nil {
		return err
	}
	q.o.Logger.Warn("a task is merged, and completed once its record can be read", "task", e.Task, "epoch", e.Epoch, "commit", merged, "err", why)
	q.postpone(e, why)
	return nil
}

// drop removes a finished entry.
func (q *Queue) drop(ctx context.Context, e Entry) error {
	if err := q.step(ctx, "remove"); err != nil {
		return err
	}
	if err := q.o.Site.Records.remove(ctx, e); err != nil {
		return err
	}
	q.forget(e)
	return nil
}

// answered reports whether an error is a definite answer. An unreadable record is not one: after its repair, the task's
// holder still waits.
func answered(err error) bool {
	code := team.CodeOf(err)
	return code != "" && code != team.Unavailable && !errors.Is(err, team.ErrUnreadable)
}

// ready returns an entry as it is now, and whether its work is to be merged; else it has done what was left to do for the entry.
func (q *Queue) ready(ctx context.Context, h *hold, seen Entry) (e Entry, ok bool, err error) {
	e, err = q.o.Site.Records.Get(ctx, seen.Task)
	if errors.Is(err, team.NotFound) || err == nil && e.Revision != seen.Revision {
		return e, false, errGone
	}
	if err != nil {
		return e, false, err
	}
	if e.State == Merged {
		return e, false, q.complete(ctx, h.now().Commit, e.Merged, e)
	}
	if err := q.o.Tasks.Held(ctx, e); err != nil {
		if !answered(err) {
			return e, false, fmt.Errorf("look at %s: %w", e.Task, err)
		}
		q.o.Logger.Info("the submitted work no longer belongs to the holder of its task", "task", e.Task, "epoch", e.Epoch, "why", err)
		return e, false, q.drop(ctx, e)
	}
	if e.State == Returned {
		return e, false, q.release(ctx, e)
	}
	return e, true, nil
}

// move stores the new commits for other hosts, and then moves the head. From then on the work is in the integration branch.
func (q *Queue) move(ctx context.Context, h *hold, from gitrepo.Hash, work []merged) error {
	to := work[len(work)-1].next
	if err := q.step(ctx, "store"); err != nil {
		return err
	}
	if err := q.o.Site.publish(ctx, from, to); err != nil {
		return err
	}
	if err := q.step(ctx, "move"); err != nil {
		return err
	}
	return h.change(ctx, func(ctx context.Context, next *Head) error {
		if next.Commit == to && next.has(work[0].Task, work[0].Epoch) {
			return nil // an earlier try, which was in doubt
		}
		if next.Commit != from {
			return errMoved
		}
		next.Commit, next.Last, next.At = to, nil, work[len(work)-1].At
		for _, w := range work {
			// After the head, so that a Withdraw shows in one of the two.
			if err := q.unchanged(ctx, w.Entry); err != nil {
				return err
			}
			next.Last = append(next.Last, Merge{w.Task, w.Epoch, w.next})
		}
		return nil
	})
}

// unchanged reads the entry once more. Errors: errGone; Unavailable.
func (q *Queue) unchanged(ctx context.Context, e Entry) error {
	is, err := q.o.Site.Records.Get(ctx, e.Task)
	if errors.Is(err, team.NotFound) || err == nil && is.Revision != e.Revision {
		return errGone
	}
	return err
}

// giveUp decides that work is not merged, and releases its task. It stores the decision first: once it is stored, and the
// head's record written after it under this lease, no queue merges that work any more, and each queue that finds the decision
// releases the task. The bundle stays stored, for the trees of the next holder on any host ([Site.Returned]).
func (q *Queue) giveUp(ctx context.Context, h *hold, e Entry, o Outcome) error {
	if err := q.step(ctx, "pin"); err != nil {
		return err
	}
	if o.Commit != "" {
		if err := q.o.Site.Repo.Pin(ctx, Work{e.Task, e.Epoch}.pin(), o.Commit); err != nil {
			return err
		}
	}
	if err := q.step(ctx, "decide"); err != nil {
		return err
	}
	data, err := codec.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := q.o.Site.Records.files.Put(ctx, subject.MergeOutcome(e.Task, e.Epoch), bytes.NewReader(data)); err != nil {
		return err
	}
	// Only for the present head: onto another the work may merge.
	if is, err := h.refresh(ctx); err != nil {
		return err
	} else if is.Commit != o.Head {
		return errMoved
	}
	e.State = Returned
	if e, err = q.o.Site.Records.put(ctx, e); errors.Is(err, team.Conflict) {
		return errGone
	} else if err != nil {
		return err
	}
	if err := q.step(ctx, "seal"); err != nil {
		return err
	}
	if err := h.change(ctx, func(context.Context, *Head) error { return nil }); err != nil {
		return err
	}
	return q.release(ctx, e)
}

// release puts back the task of a returned entry.
func (q *Queue) release(ctx context.Context, e Entry) error {
	if err := q.step(ctx, "release"); err != nil {
		return err
	}
	o, err := q.o.Site.Records.Outcome(ctx, e.Task, e.Epoch)
	if err != nil {
		return err
	}
	if err := q.putBack(ctx, e, o); err != nil {
		return fmt.Errorf("release %s: %w", e.Task, err)
	}
	q.m.done(string(o.Kind))
	q.o.Logger.Info("task not merged", "task", e.Task, "agent", e.Agent, "why", o.Reason)
	return q.drop(ctx, e)
}

// putBack releases the task, unless it is no longer in progress under the entry's epoch. While it is, its holder waits and the
// entry stays: without the entry nothing would ever release it.
func (q *Queue) putBack(ctx context.Context, e Entry, o Outcome) error {
	err := q.o.Tasks.Release(ctx, e, o)
	if err == nil || !answered(err) {
		return err
	}
	if held := q.o.Tasks.Held(ctx, e); answered(held) {
		return nil
	} else if held != nil {
		return held
	}
	q.o.Logger.Error("a task's record cannot have the reasons for which it is released; it is released without", "task", e.Task, "epoch", e.Epoch, "err", err)
	return q.o.Tasks.Release(ctx, e, Outcome{Kind: o.Kind, Head: o.Head, Base: o.Base, Commit: o.Commit, Agent: o.Agent, Title: o.Title,
		Reason: "its work was not merged; the task's record cannot have the reasons"})
}

// bundle returns the submitted bundle of a task. Errors: NotFound if the file is gone or another; Unavailable.
func (q *Queue) bundle(ctx context.Context, e Entry) ([]byte, error) {
	digest, err := q.o.Site.Records.files.Digest(ctx, e.Bundle)
	if err != nil {
		return nil, err
	}
	if digest != e.Digest {
		return nil, team.Errorf(team.NotFound, "file %s is not the one that was submitted", e.Bundle)
	}
	return q.o.Site.Records.read(ctx, e.Bundle)
}
