package leader

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/model"
	"agentteam/pkg/model/probe"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// refusal is the state at the last refusal of finish_team.
type refusal struct {
	revision uint64 // of the team's record: another one means that a goal was mailed since
	upTo     uint64 // sequence of the last message that the leader had not seen
}

// Finish implements finish_team. Mail that the leader's model has not seen refuses it: the mail is
// in its next input, and it may decide again. Later mail of other members does not refuse it a
// second time, but a goal does.
func (t *term) Finish(ctx context.Context, summary string, givenUp []team.TaskID) error {
	return t.end(ctx, team.Ending{Status: team.TeamFinished, Summary: summary, GivenUp: givenUp}, func(revision, seen uint64) bool {
		return t.refused.revision == revision && t.refused.upTo <= seen
	})
}

// End ends the goal for a leader that has nothing more to do; its last text is the summary. If its
// model cannot call tools, the goal ends as failed. Errors: Conflict for mail that its model has
// not seen.
func (t *term) End(ctx context.Context, status team.Status, reason string) error {
	if status == team.TeamFinished && t.onlyTalks(ctx) {
		status, reason = team.TeamFailed, noTools
	}
	return t.end(ctx, team.Ending{Status: status, Summary: t.lastText(), Reason: reason}, spareNone)
}

const noTools = "the model called no tool; can it? (teamctl doctor tries it; take a model that can call tools)"

// trialWait is how long the leader's model may take to show that it can call a tool.
const trialWait = time.Minute

// onlyTalks reports whether the leader's model calls no tools: it has never called one for this
// leader, and calls none when it is asked for just that. If that cannot be determined, it reports
// false.
func (t *term) onlyTalks(ctx context.Context) bool {
	a := t.agent.Load()
	if a == nil || t.model == nil || a.HasCalled() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, trialWait)
	defer cancel()
	calls, err := probe.CallsTools(ctx, t.model, t.member.Model)
	if refusal := (*model.Refusal)(nil); errors.As(err, &refusal) && refusal.Reason == model.NoTools {
		return true
	}
	if err != nil {
		t.log.WarnContext(ctx, "whether the model can call tools is not known", "err", err)
	}
	return err == nil && !calls
}

// spareNone lets all unseen mail refuse the end of a goal.
func spareNone(uint64, uint64) bool { return false }

// end closes the board and ends the goal. Unseen mail refuses it, unless spare returns true for the
// record's revision and the last message that the model has seen.
//
// A goal may arrive at any moment. Its setter mails it first and then writes the team's record; so
// the record is read before the mail is counted, and the goal ends only if that record is still the
// newest.
func (t *term) end(ctx context.Context, e team.Ending, spare func(revision, seen uint64) bool) error {
	t.ending.Lock()
	defer t.ending.Unlock()
	for {
		record, err := registry.Record(ctx, t.team)
		if err != nil || record.Status != team.Active {
			return err
		}
		unseen, last, seen, err := t.unseen(ctx)
		if err != nil {
			return err
		}
		if unseen > 0 && !spare(record.Revision, seen) {
			t.refused = refusal{record.Revision, last}
			return team.Errorf(team.Conflict, "%s came that you have not read", explain.Counted(unseen, "message")).
				WithHint("they stand in your next input; call finish_team again if they change nothing")
		}
		shut := t.board.Close
		if e.Status != team.TeamFinished {
			shut = t.board.Seal // its tasks stay as they are
		}
		if err := shut(ctx); err != nil {
			return err
		}
		tasks, err := t.board.All(ctx)
		if err != nil && !errors.Is(err, team.ErrUnreadable) {
			return err
		}
		e.Failed = record.Failed(tasks)
		// Once the record has changed, this member is notified to leave, and ctx ends.
		_, err = t.leader.registry.EndAt(t.bye, t.team, record.Revision, e)
		if !errors.Is(err, team.Conflict) {
			return err
		}
		if err := t.board.Reopen(ctx); err != nil && !errors.Is(err, team.ErrUnreadable) {
			return err
		}
	}
}

// selfWait bounds the wait for this process's own heartbeat.
const selfWait = 5 * time.Second

// unseen counts the mail that the leader's model has not seen, which is more than the unread mail:
// a message is read into the journal while the model answers. A member's consent to leave does not
// count: it asks for nothing.
func (t *term) unseen(ctx context.Context) (n int, last, seen uint64, err error) {
	beat, err := control.Ping(ctx, t.team, team.Leader, selfWait)
	if err != nil {
		return 0, 0, 0, err
	}
	err = t.mailbox.Read(ctx, team.Leader, beat.InboxSeq+1, func(d mailbox.Delivery) error {
		if d.Wakes() && !(d.Type == team.MsgShutdownResponse && d.Approve != nil && *d.Approve) {
			n, last = n+1, d.Seq
		}
		return nil
	})
	return n, last, beat.InboxSeq, err
}

// refusedGoal ends a goal whose very first call the leader's model refuses: no other member can
// answer for it.
func (t *term) refusedGoal(ctx context.Context, cause string) {
	record, err := registry.Record(ctx, t.team)
	if err == nil && record.Goal != "" {
		err = t.end(ctx, team.Ending{Status: team.TeamFailed, Reason: "the leader's model refuses to answer: " + cause}, spareNone)
	}
	if err != nil {
		t.log.WarnContext(ctx, "goal not ended", "err", err)
	}
}

// leave closes the leader's record once the team has ended, and those of lost members.
func (t *term) leave() error {
	ctx, cancel := context.WithTimeout(t.bye, shutdown.Goal)
	defer cancel()
	if err := t.dismissLost(ctx); err != nil {
		t.log.Warn("lost members not dismissed", "err", err)
	}
	err := t.roster.Leave(ctx, team.Leader, t.member.Incarnation, "")
	if errors.Is(err, team.ErrSuperseded) {
		err = nil
	}
	if cerr := t.mailbox.Close(ctx, team.Leader, t.member.Incarnation); cerr != nil && !errors.Is(cerr, team.NotFound) {
		err = errors.Join(err, cerr)
	}
	return err
}
