package watchdog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// allIdle notifies the leader when the team is quiet, and ends the goal when it was notified often
// enough (rule 8).
func (w *Watchdog) allIdle(ctx context.Context) error {
	seen := w.checkLost()
	w.asked.see(seen.Beats[team.Leader], seen.episode())
	if seen.Activity() != "" || w.knows(seen) {
		return nil
	}
	now, quiet, err := w.rounds(ctx)
	if err != nil || !quiet || w.knows(now) {
		return err
	}
	spell, leader := now.episode(), now.Beats[team.Leader]
	if spell != w.episode {
		w.notices = 0
	}
	if w.notices >= maxListed || w.notices > 0 && now.deserted() {
		status, reason, settled := w.verdict(now)
		if !settled {
			return nil
		}
		w.o.Logger.InfoContext(ctx, "goal ended: the leader has nothing more to do", "status", status, "reason", reason)
		return w.o.Actions.End(ctx, status, reason)
	}
	now.Done = w.o.Index.DoneSince(max(w.notifiedSeq, now.Team.GoalSeq))
	if err := w.o.Actions.Notify(ctx, ulid.Make().String(), now.Notice(w.o.Index.Unfinished(maxNamed))); err != nil {
		return err
	}
	w.metrics.count(w.metrics.allIdle)
	w.o.Logger.InfoContext(ctx, "all idle", "told", w.notices+1)
	w.episode, w.notifiedTurn, w.notifiedAt, w.notifiedSeq = spell, leader.Turn, time.Now(), now.Moved
	w.notices++
	return nil
}

// knows reports whether the leader needs no notice of a team in this state: it was notified and has
// not answered yet, or only just now, or it knows for whom the team waits, and that does not end
// the goal. A leader that is alone does not wait: no member could send anything.
func (w *Watchdog) knows(l snapshot) bool {
	spell, leader := l.episode(), l.Beats[team.Leader]
	same := spell == w.episode
	return same && (leader.Turn == w.notifiedTurn || time.Since(w.notifiedAt) < againAfter && !l.deserted()) ||
		l.stands() && (same && w.notices > 0 || leader.State == team.WaitingUser && spell == w.asked.of)
}

// rounds asks all processes, until two rounds in a row are equal or one shows activity, and returns
// the last. A round begins after the one before is complete. Messages that members sent to each
// other before they became idle may make the first differ.
func (w *Watchdog) rounds(ctx context.Context) (now snapshot, quiet bool, err error) {
	before, err := w.check(ctx)
	for n := 1; n < maxRounds && err == nil && before.Activity() == ""; n++ {
		if now, err = w.check(ctx); err != nil || allQuiet(before, now) {
			return now, err == nil, err
		}
		before = now
	}
	return before, false, err
}

// verdict returns how a goal ends whose leader has nothing more to do: as failed, with the reason,
// if tasks are open or have failed since the goal was set. It is not settled if the board has
// changed since the snapshot.
func (w *Watchdog) verdict(now snapshot) (status team.Status, reason string, settled bool) {
	turns := fmt.Sprintf("the leader ended its turn %d times", w.notices+1)
	var open, failed []team.TaskID
	unfinished, _ := w.o.Index.Unfinished(math.MaxInt)
	for _, u := range unfinished {
		if u.Status.Open() {
			open = append(open, u.ID)
		}
	}
	switch {
	case now.open() != (len(open) > 0):
		return "", "", false
	case len(open) > 0:
		return team.TeamFailed, turns + " with open tasks: " + team.Some(open, maxNamed), true
	}
	for _, e := range w.o.Index.EndsSince(now.Team.GoalSeq) {
		if e.Task.Status == team.Failed {
			failed = append(failed, e.Task.ID)
		}
	}
	if failed != nil {
		return team.TeamFailed, turns + " without finish_team, and tasks have failed: " + team.Some(failed, maxNamed), true
	}
	return team.TeamFinished, "", true
}

// leaves counts a request that the member has not answered, or with missed false one that it has
// answered, and reports whether the team no longer waits for such answers. Then the leader was
// notified.
func (w *Watchdog) leaves(ctx context.Context, m team.Member, why string, missed bool) (waived bool, err error) {
	s := w.of(m).silence(why)
	if !missed {
		s.missed = 0
		return false, nil
	}
	if s.missed++; s.missed < maxSilent {
		return false, nil
	}
	return true, w.mark(ctx, m, why)
}

// mark reports a member that does not answer to the leader and in the member's record, once.
func (w *Watchdog) mark(ctx context.Context, m team.Member, why string) error {
	s := w.of(m).silence(why)
	if s.marked || m.AgentID == team.Leader {
		return nil
	}
	if err := w.o.Actions.Mark(ctx, m, why, silentText(m.AgentID, why)); err != nil {
		return err
	}
	s.marked = true
	w.o.Logger.WarnContext(ctx, "member does not answer", "agent", m.AgentID, "incarnation", m.Incarnation, "why", why)
	return nil
}

// processes returns the members that have a process.
func (l snapshot) processes() []team.Member {
	return slices.DeleteFunc(slices.Clone(l.Members), func(m team.Member) bool { return !m.HasProcess() })
}

// indexed returns the snapshot without heartbeats.
func (w *Watchdog) indexed() snapshot {
	look := snapshot{Snapshot: w.o.Index.Snapshot(), Missed: map[team.AgentID]bool{}}
	for _, m := range look.Members {
		if (m.State == team.Lost || m.State == team.Created) && m.LastError != "" && w.of(m).failures.notified {
			look.Missed[m.AgentID] = true
		}
	}
	return look
}

// checkLost returns a snapshot of the team without asking any process. It can prove that a member is
// active, not that all are idle.
func (w *Watchdog) checkLost() snapshot {
	look := w.indexed()
	look.Beats = map[team.AgentID]team.Heartbeat{}
	heard := w.o.Pulse.Last()
	for _, m := range look.processes() {
		look.Beats[m.AgentID] = heard[m.AgentID].Heartbeat
	}
	return look
}

// check returns a full snapshot: it asks every process for a new heartbeat, and counts the unread
// mail.
func (w *Watchdog) check(ctx context.Context) (snapshot, error) {
	look := w.indexed()
	members := look.processes()
	look.Beats = w.ping(ctx, members) // a process that does not answer is not known to be idle
	heard := w.o.Pulse.Last()
	for _, m := range members {
		h := heard[m.AgentID]
		b, answers := look.Beats[m.AgentID]
		if answers && b.State == team.WaitingRepair { // it receives nothing yet
			continue
		}
		beats := h.Incarnation == m.Incarnation && time.Since(h.At) < 2*roster.Interval
		waived, err := w.leaves(ctx, m, noPing, !answers && beats)
		if err != nil {
			return look, err
		}
		if waived {
			look.Beats[m.AgentID] = h.Heartbeat
		} else if !answers {
			continue
		}
		n, err := w.o.Actions.Unread(ctx, m)
		absent := errors.Is(err, team.NotFound)
		waived, merr := w.leaves(ctx, m, noInbox, absent)
		if merr != nil {
			return look, merr
		}
		if err != nil && !(absent && waived) {
			return look, err
		}
		look.Unread += n
	}
	if look.Activity() != "" {
		return look, nil // no need to ask the server
	}
	seq, err := w.o.Bucket.LastSeq(ctx)
	if err == nil && seq != look.Seq {
		look.Team.Goal = "" // the index is behind: this snapshot is not used for a judgement
	}
	return look, err
}
