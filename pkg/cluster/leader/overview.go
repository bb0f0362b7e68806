package leader

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// overview returns the team's state, from the heartbeats that this process received. Only the count
// of waiting mail is requested. Errors: Unavailable.
func (t *term) overview(ctx context.Context) (explain.Overview, error) {
	l := t.index.Snapshot()
	if l.Team.Goal != "" && l.Team.Branch != nil && l.Team.Branch.Early {
		t.decideAgain(ctx, l.Team)
	}
	o := explain.Overview{Members: map[team.MemberState]int{}, Running: l.Tasks[team.InProgress], Failed: l.Tasks[team.Failed]}
	for _, n := range l.Claimable {
		o.Claimable += n
	}
	o.Blocked = l.Tasks[team.Pending] - o.Claimable
	o.Away = t.away(l)
	heard, now := t.pulse.Last(), time.Now()
	for _, m := range l.Members {
		if !m.Counts() {
			continue
		}
		h := heard[m.AgentID]
		state := h.State(m, l.Team, now)
		o.Members[state]++
		switch {
		case state == team.WaitingApproval && h.Awaits == team.Leader:
			o.Plans++
		case state == team.WaitingUser, state == team.WaitingApproval:
			o.Questions++
		}
		if !m.HasProcess() {
			continue
		}
		n, err := t.mailbox.Waiting(ctx, m.AgentID, m.Incarnation)
		if err != nil && !errors.Is(err, team.NotFound) { // it has not begun to receive
			return o, err
		}
		o.Unread += n
	}
	return o, nil
}

// decideWithin bounds how long the first turn of a goal waits for git.
const decideWithin = 2 * time.Minute

// decideAgain decides how the members of a goal are isolated that was set after the term had begun:
// the checkout may have changed since. It runs before the leader's first turn, so before any member
// has a task. A goal that cannot begin is ended.
func (t *term) decideAgain(ctx context.Context, record team.Team) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideWithin) // the context of the overview ends sooner
	defer cancel()
	_, err := t.leader.decide(ctx, t.team, record, t.member.Workspace)
	if code := team.CodeOf(err); code == team.Conflict || code == team.InvalidState {
		err = errors.Join(err, t.end(ctx, team.Ending{Status: team.TeamFailed, Reason: team.Line(err)}, spareNone))
	}
	if err != nil {
		t.log.WarnContext(ctx, "isolation not decided again", "err", err)
	}
}

// away returns the members of earlier goals that may come back.
func (t *term) away(l index.Snapshot) (all []explain.Away) {
	var names []team.AgentID
	for _, m := range l.Members {
		if m.AgentID != team.Leader && l.Team.Recalls(m) {
			all = append(all, explain.Away{Name: m.AgentID, Role: m.Role})
			names = append(names, m.AgentID)
		}
	}
	last := t.index.LastDone(names...)
	for i, a := range all {
		all[i].Last = last[a.Name]
	}
	return all
}
