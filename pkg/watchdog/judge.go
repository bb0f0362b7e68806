package watchdog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/board/index"
	"agentteam/pkg/team"
)

// Look is what the watchdog saw of the team at one moment: the bucket as the index
// knows it, with what was heard and read besides.
type Look struct {
	index.Look
	Beats  map[team.AgentID]team.Beat // the last of each member with a process
	Unread int                        // messages that wake their reader, stored and not in its journal
}

// Stirs says in a word why the team is not quiet by this look alone, or "".
func (l Look) Stirs() string {
	if l.Team.Status != team.Active || l.Team.Goal == "" {
		return "no goal"
	}
	waiting := map[team.AgentID]bool{}
	idle := map[string]bool{} // roles of members that would claim
	for _, m := range l.Members {
		switch {
		case m.State == team.Created:
			return "a spawn is under way"
		case m.Backend == team.Person:
			waiting[m.AgentID] = true // a person's task may take as long as it takes
			continue
		case !m.HasProcess():
			continue
		}
		b, ok := l.Beats[m.AgentID]
		switch {
		case !ok || b.Incarnation != m.Incarnation || !b.Quiet(), b.Parked() && m.AgentID == team.Leader:
			return string(m.AgentID) + " is not idle"
		case b.State == team.WaitingAnswer:
			waiting[m.AgentID] = true
		case m.AgentID != team.Leader && !b.Parked():
			idle[m.Role] = true
		}
	}
	for _, t := range l.Running {
		if !waiting[t.Assignee] {
			return string(t.ID) + " is in progress"
		}
	}
	for role := range idle {
		if l.Claimable[role]+l.Claimable[""] > 0 {
			return "a task is about to be claimed"
		}
	}
	if l.Unread > 0 {
		return "there is unread mail"
	}
	return ""
}

// Quiet reports whether nobody moved between two looks and nothing would move by
// itself. One look is not enough: a message may be between two agents.
func Quiet(before, now Look) bool {
	return before.Stirs() == "" && now.Stirs() == "" && before.Seq == now.Seq &&
		len(before.Beats) == len(now.Beats) && samePeople(before, now)
}

func samePeople(before, now Look) bool {
	for a, b := range now.Beats {
		if !before.Beats[a].SameAs(b) {
			return false
		}
	}
	return true
}

// spell names a stretch of quiet by all whose moving ends it: teammates, the
// board, and mail. What the leader does in answer to the notice is not in it.
func (l Look) spell(mailSeq uint64) string {
	var b strings.Builder
	for _, m := range l.Members {
		if m.AgentID != team.Leader {
			beat := l.Beats[m.AgentID]
			fmt.Fprintf(&b, "%s %d %d %d;", m.AgentID, m.Revision, beat.Turn, beat.InboxSeq)
		}
	}
	fmt.Fprintf(&b, "board %d, goal %d, mail %d", l.Moved, l.Team.GoalNumber, mailSeq)
	return b.String()
}

// deserted reports that the leader is alone with nothing to do.
func (l Look) deserted() bool {
	return !slices.ContainsFunc(l.Members, func(m team.Member) bool { return m.AgentID != team.Leader && m.State != team.Stopped }) &&
		!l.open()
}

// stands reports whether the work waits for a person: somebody who could do it cannot,
// since its model's endpoint refuses it.
func (l Look) stands() bool {
	return l.open() && slices.ContainsFunc(l.Members, func(m team.Member) bool { return m.HasProcess() && l.Beats[m.AgentID].Parked() })
}

func (l Look) open() bool { return l.Tasks[team.Pending]+l.Tasks[team.InProgress] > 0 }

// Notice is what the leader is told when all are idle. unfinished are the first of
// the tasks that are open or have failed, out of total.
func (l Look) Notice(unfinished []index.Unfinished, total int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[All Idle] Nobody has anything left to do. Tasks: %d completed, %d in progress, %d pending, %d failed, %d cancelled.\n",
		l.Tasks[team.Completed], l.Tasks[team.InProgress], l.Tasks[team.Pending], l.Tasks[team.Failed], l.Tasks[team.Cancelled])
	for _, v := range unfinished {
		switch {
		case v.Status == team.Failed:
			fmt.Fprintf(&b, "- %s (%s) failed: %s\n", v.ID, v.Title, team.Summarize(v.Reason))
		case v.Status == team.InProgress:
			fmt.Fprintf(&b, "- %s (%s) is in progress at %s, who waits\n", v.ID, v.Title, v.Assignee)
		case v.Dead != "":
			fmt.Fprintf(&b, "- %s (%s) is blocked for good: %s is %s\n", v.ID, v.Title, v.Dead, v.DeadStatus)
		case v.IsBlocked:
			fmt.Fprintf(&b, "- %s (%s) waits for %v\n", v.ID, v.Title, v.WaitingFor)
		case v.Role != "":
			fmt.Fprintf(&b, "- %s (%s) is pending: no idle teammate has the role %s\n", v.ID, v.Title, v.Role)
		default:
			fmt.Fprintf(&b, "- %s (%s) is pending: no idle teammate is there to take it\n", v.ID, v.Title)
		}
	}
	if more := total - len(unfinished); more > 0 {
		fmt.Fprintf(&b, "- and %d more, which list_tasks shows\n", more)
	}
	for _, q := range l.Quarantined {
		fmt.Fprintf(&b, "- the record %s cannot be read: %s\n", q.Key, q.Error)
	}
	for _, m := range l.Members {
		switch beat := l.Beats[m.AgentID]; {
		case beat.State == team.WaitingAnswer:
			fmt.Fprintf(&b, "- %s waits for an answer\n", m.AgentID)
		case beat.Parked():
			fmt.Fprintf(&b, "- %s cannot work until a person mends its model: %s\n", m.AgentID, team.Summarize(m.LastError))
		}
	}
	b.WriteString("If the goal is reached, check the result and call finish_team with the summary. If not, say what is to be done: create tasks, spawn or write to teammates, cancel what is given up.")
	if l.deserted() {
		b.WriteString(" A text answer now ends the goal with that text as the summary.")
	}
	return b.String()
}

// Blocked is what the leader is told of a task that failed or was cancelled and
// that others wait for.
func Blocked(e index.End) string {
	text := fmt.Sprintf("[Blocked] %s (%s) is %s: %s\nTasks that depend on it and cannot go on:", e.Task.ID, e.Task.Title, e.Task.Status, team.Summarize(e.Task.Reason))
	for i, id := range e.Blocks {
		if i == maxNamed {
			return text + fmt.Sprintf(" and %d more", len(e.Blocks)-maxNamed)
		}
		text += " " + string(id)
	}
	return text
}

// Silence is a member with a process that was not heard for the lease.
type Silence struct {
	Member team.Member
	For    time.Duration
}

// Silent returns the members that were not heard for the lease, and whether that
// is more than half of those with a process (self, the leader, counted): then it
// is more likely that the watchdog is cut off than that they are all dead, and
// only silences of three leases are returned.
func Silent(members []team.Member, silence func(team.Member) time.Duration, lease time.Duration) (lost []Silence, many bool) {
	processes := 0
	for _, m := range members {
		if !m.HasProcess() {
			continue
		}
		processes++
		if s := silence(m); m.AgentID != team.Leader && s >= lease {
			lost = append(lost, Silence{m, s})
		}
	}
	if many = 2*len(lost) > processes; many {
		lost = slices.DeleteFunc(lost, func(s Silence) bool { return s.For < 3*lease })
	}
	return lost, many
}

// Orphans returns those of the tasks in progress whose holder is no longer a member
// as it was when it claimed: stopped, removed, or superseded by a later incarnation
// that may still adopt it.
func Orphans(members []team.Member, running []team.Task) (orphans []team.Task) {
	byName := make(map[team.AgentID]team.Member, len(members))
	for _, m := range members {
		byName[m.AgentID] = m
	}
	for _, t := range running {
		m, ok := byName[t.Assignee]
		if !ok || m.State == team.Stopped || m.State == team.Lost || m.Incarnation != t.Incarnation {
			orphans = append(orphans, t)
		}
	}
	return orphans
}
