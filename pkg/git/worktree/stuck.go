package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// patience has the time for which an entry may be first in the queue until the leader is notified, the time until the next
// notice, and the time between two checks.
type patience struct{ after, again, every time.Duration }

var usual = patience{after: 5 * time.Minute, again: time.Hour, every: time.Minute}

// stuck records since when entries are first in the queue.
type stuck struct {
	patience
	turns map[mergequeue.Work]turn
}

type turn struct {
	state          mergequeue.State
	since, noticed time.Time
	notices        int
}

// due returns the waiting entries for which a notice is due, in order. An entry behind others has its turn once these are gone,
// or have waited too long themselves.
func (s *stuck) due(waiting []mergequeue.Entry, now time.Time) (due []mergequeue.Entry) {
	there, behind := map[mergequeue.Work]bool{}, false
	for _, e := range waiting {
		w := workOf(e)
		there[w] = true
		if behind {
			continue
		}
		t, known := s.turns[w]
		if !known || t.state != e.State { // merged, and its task not completed: another matter
			t.state, t.since, t.noticed = e.State, now, time.Time{}
			s.turns[w] = t
		}
		behind = now.Sub(t.since) < s.after
		if !behind && (t.noticed.IsZero() || now.Sub(t.noticed) >= s.again) {
			due = append(due, e)
		}
	}
	maps.DeleteFunc(s.turns, func(w mergequeue.Work, _ turn) bool { return !there[w] })
	return due
}

func workOf(e mergequeue.Entry) mergequeue.Work { return mergequeue.Work{Task: e.Task, Epoch: e.Epoch} }

// noteStuck notifies the leader of waiting work that this process cannot merge, until ctx ends: its holder waits for as long as
// it takes, so the goal would never end, and the leader would not learn why.
func (l *Workspaces) noteStuck(ctx context.Context) {
	s := &stuck{l.waits, map[mergequeue.Work]turn{}}
	shutdown.Every(ctx, s.every, func(ctx context.Context) {
		waiting, err := l.records.Waiting(ctx)
		if err == nil {
			err = l.notifyStuck(ctx, s, waiting)
		}
		if err != nil && ctx.Err() == nil {
			l.o.Logger.WarnContext(ctx, "the leader is not notified of what waits to be merged", "err", err)
		}
	})
}

// notifyStuck sends the notices that are due. Notices of one kind have the same id in each process: of those within two minutes
// the leader gets the first.
func (l *Workspaces) notifyStuck(ctx context.Context, s *stuck, waiting []mergequeue.Entry) error {
	now := time.Now()
	for _, e := range s.due(waiting, now) {
		why, tried := l.trouble(ctx, e)
		if why == nil {
			continue
		}
		t, kind := s.turns[workOf(e)], "unable"
		if tried {
			kind = "tried"
		}
		id := fmt.Sprintf("stuck-%s-%d-%s-%d", e.Task, e.Epoch, kind, t.notices)
		if err := l.o.Notify(ctx, team.Leader, id, stuckText(e, now.Sub(t.since), why, tried)); err != nil {
			return err
		}
		l.o.Logger.WarnContext(ctx, "work waits to be merged", "task", e.Task, "agent", e.Agent, "why", why)
		t.noticed, t.notices = now, t.notices+1
		s.turns[workOf(e)] = t
	}
	return nil
}

// trouble returns the reason why this process has not merged an entry, see [mergequeue.Queue.Trouble].
func (l *Workspaces) trouble(ctx context.Context, e mergequeue.Entry) (why error, tried bool) {
	_, queue, err := l.at(ctx)
	if err != nil {
		return fmt.Errorf("the line cannot be opened: %w", err), true
	}
	return queue.Trouble(ctx, e)
}

// stuckText returns the notice to the leader of work that waits to be merged.
func stuckText(e mergequeue.Entry, d time.Duration, why error, tried bool) string {
	if e.State == mergequeue.Merged {
		return fmt.Sprintf("[Not completed] The work of %s on %s (%s) is in the line, and the record of %s has not been readable for %d minutes: %s. "+
			"It is completed once a person has repaired the record: ask for that. Nothing else waits for it.",
			e.Agent, e.Task, e.Title, e.Task, int(d.Minutes()), team.Clean(team.Line(why), 1000))
	}
	what := "may not merge it"
	if tried {
		what = "has tried in vain"
	}
	return fmt.Sprintf("[Not merged] The work of %s on %s (%s) has waited for %d minutes to be merged. Host %s %s: %s. It stays in the queue, and is merged as soon as any host can. "+
		"If that cannot be repaired, update_task with status \"pending\" takes the task back, without this work.",
		e.Agent, e.Task, e.Title, int(d.Minutes()), host(), what, team.Clean(team.Line(why), 1000))
}

// over waits until the queue is done with a submitted task, but no longer than until the notice of a problem must have come
// (Busy): its caller reads no mail meanwhile.
func (l *Workspaces) over(ctx context.Context, id team.TaskID, epoch uint64) error {
	bounded, cancel := context.WithTimeoutCause(ctx, l.waits.after+2*l.waits.every, team.Errorf(team.Busy, "this takes long, and continues without you").
		WithModelHint("do other things; complete %s again to wait for the outcome, or put it back", id))
	defer cancel()
	err := l.records.Over(bounded, id, epoch)
	if errors.Is(err, team.Busy) && l.merged(ctx, id, epoch) {
		return team.Errorf(team.Busy, "%s is merged, and its record cannot be read", id).
			WithModelHint("do other things; it is completed without you once a person has repaired the record")
	}
	return err
}

// merged reports whether the work of a task is in the integration branch, and waits only for the repair of its record.
func (l *Workspaces) merged(ctx context.Context, id team.TaskID, epoch uint64) bool {
	e, err := l.records.Get(ctx, id)
	return err == nil && workOf(e) == mergequeue.Work{Task: id, Epoch: epoch} && e.State == mergequeue.Merged
}

// Settle waits until no work that an earlier incarnation of the member has submitted waits to be
// merged, but for each no longer than a leader waits; then it notifies the member: until the member begins it reads no
// mail, and no request to leave. Its task stays in progress, so the team is not quiet.
func (l *Workspaces) Settle(ctx context.Context) error {
	if !l.o.Record().HasBranch() {
		return nil
	}
	waiting, err := l.records.Waiting(ctx)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		if e.Agent != l.o.Member.AgentID {
			continue
		}
		err := l.over(ctx, e.Task, e.Epoch)
		if errors.Is(err, team.Busy) {
			err = l.o.Notify(ctx, e.Agent, fmt.Sprintf("waits-%s-%d-%d", e.Task, e.Epoch, l.o.Member.Incarnation), l.unsettled(ctx, e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unsettled returns the notice to a member whose work from before its restart still waits.
func (l *Workspaces) unsettled(ctx context.Context, e mergequeue.Entry) string {
	if l.merged(ctx, e.Task, e.Epoch) {
		return fmt.Sprintf("[Not completed] What you have done for %s (%s) before your process was restarted is in the line, and the record of %[1]s cannot be read. "+
			"It is completed without you once a person has repaired the record.", e.Task, e.Title)
	}
	who := "The leader can take %s back"
	if e.Agent == team.Leader {
		who = "update_task with status \"pending\" takes %s back"
	}
	return fmt.Sprintf("[Not merged] What you have done for %s (%s) before your process was restarted still waits to be merged. It stays in the queue, "+
		"and until it is merged or put back you can take no other task. "+who+", without this work.", e.Task, e.Title, e.Task)
}
