package watchdog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// The notices to the leader follow, as its model reads them. testdata/notices.txt contains all of
// them.

// Notice returns the text to the leader when all are idle: the completed and the open work, and the
// leader's options. unfinished are the first of the tasks that are open or have failed, out of
// total.
func (l snapshot) Notice(unfinished []index.Unfinished, total int) string {
	var b strings.Builder
	b.WriteString(team.AllIdle + " " + l.done())
	fmt.Fprintf(&b, "Nobody has anything left to do. Tasks: %d completed, %d in progress, %d pending, %d failed, %d cancelled.\n",
		l.Tasks[team.Completed], l.Tasks[team.InProgress], l.Tasks[team.Pending], l.Tasks[team.Failed], l.Tasks[team.Cancelled])
	situation := l.situation()
	for _, v := range unfinished {
		switch {
		case v.Status == team.Failed:
			fmt.Fprintf(&b, "- %s (%s) failed: %s\n", v.ID, v.Title, team.Summarize(v.Reason))
		case v.Status == team.InProgress:
			fmt.Fprintf(&b, "- %s (%s) is in progress at %s\n", v.ID, v.Title, l.holder(v.Task))
		case v.Dead != "":
			fmt.Fprintf(&b, "- %s (%s) is blocked for good: %s %s\n", v.ID, v.Title, v.Dead, ended(v.DeadStatus))
		case v.IsBlocked:
			fmt.Fprintf(&b, "- %s (%s) waits for %s\n", v.ID, v.Title, team.Some(v.WaitingFor, maxNamed))
		default:
			fmt.Fprintf(&b, "- %s (%s) is pending: %s\n", v.ID, v.Title, cmp.Or(situation.Why(v.TaskView, nil), "an idle teammate is about to take it"))
		}
	}
	if more := total - len(unfinished); more > 0 {
		fmt.Fprintf(&b, "- and %d more, which list_tasks shows\n", more)
	}
	for _, q := range l.Quarantined {
		fmt.Fprintf(&b, "- the record %s cannot be read: %s\n", q.Key, q.Error)
	}
	for _, m := range l.Members {
		b.WriteString(notable(m, l.Beats[m.AgentID]))
	}
	if l.stands() {
		b.WriteString("The team waits for a person, for as long as it takes. You are told when something moves; the goal does not end meanwhile. Do what does not depend on it, or end your turn.")
		return b.String()
	}
	b.WriteString("If the goal is reached, check the result and call finish_team with the summary. If not, say what is to be done: create tasks, spawn or write to teammates, cancel what is given up.")
	if l.deserted() {
		b.WriteString(" A text answer now ends the goal with that text as the summary.")
	}
	return b.String()
}

// notable returns why a member does nothing, and its jobs for which the team does not wait, a line
// each.
func notable(m team.Member, beat team.Heartbeat) string {
	var b strings.Builder
	for _, j := range beat.Jobs { // the team does not wait for them
		if j.Asked != "" {
			fmt.Fprintf(&b, "- %s has the subagent %s (%s), which waits for a person to decide on its request %s\n", m.AgentID, j.ID, j.About, j.Asked)
			continue
		}
		fmt.Fprintf(&b, "- %s has %s (%s) in the background, which has printed nothing for %s\n", m.AgentID, j.ID, j.About, span(time.Duration(j.Still)*time.Second))
	}
	switch {
	case beat.State == team.WaitingAnswer && beat.Awaits == "" && len(beat.Jobs) > 0:
		fmt.Fprintf(&b, "- %s waits for that\n", m.AgentID)
	case beat.State == team.WaitingAnswer:
		fmt.Fprintf(&b, "- %s waits for an answer%s\n", m.AgentID, question(beat))
	case beat.State == team.WaitingUser:
		fmt.Fprintf(&b, "- %s waits for the answer of %s%s\n", m.AgentID, cmp.Or(string(beat.Awaits), "a person"), asked(beat))
	case beat.State == team.WaitingBudget:
		fmt.Fprintf(&b, "- %s waits for a person to raise a budget: %s\n", m.AgentID, beat.About)
	case beat.State == team.WaitingApproval && beat.WaitsForPerson():
		fmt.Fprintf(&b, "- %s waits for a person to decide on its request %s (%q)\n", m.AgentID, beat.Asked, beat.About)
	case beat.State == team.WaitingApproval:
		fmt.Fprintf(&b, "- %s waits for your decision on its plan %s (%q): decide with approve_plan\n", m.AgentID, beat.Asked, beat.About)
	case m.State == team.Lost:
		fmt.Fprintf(&b, "- %s is lost: its process is gone\n", m.AgentID)
	case beat.Parked():
		what := "model"
		if beat.State == team.WaitingRepair {
			what = "journal"
		}
		fmt.Fprintf(&b, "- %s cannot work until a person mends its %s: %s\n", m.AgentID, what, team.Summarize(m.LastError))
	}
	return b.String()
}

// maxDone bounds a summary in a notice, in characters.
const maxDone = 240

// done lists the tasks that were completed since the last notice, the newest in a line each: the
// leader need not look them up.
func (l snapshot) done() string {
	if len(l.Done) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Done since you were last told:\n")
	older := max(0, len(l.Done)-maxNamed)
	if older > 0 {
		fmt.Fprintf(&b, "- %s before these, which list_tasks shows\n", explain.Counted(older, "task"))
	}
	for _, t := range l.Done[older:] {
		fmt.Fprintf(&b, "- %s (%s) by %s: %s\n", t.ID, t.Title, t.Assignee, team.OneLine(team.Clean(t.ResultSummary, maxDone)))
	}
	return b.String()
}

// question describes the answer that a member waits for. It may be the leader's, who reads the
// notice.
func question(b team.Heartbeat) string {
	if b.Awaits == "" {
		return ""
	}
	text, hint := " from "+string(b.Awaits), ""
	if b.Awaits == team.Leader {
		text, hint = " of yours", ": answer with send_message"
	}
	return text + asked(b) + hint
}

// asked returns the message that must be answered.
func asked(b team.Heartbeat) string {
	if b.Asked == "" {
		return ""
	}
	return fmt.Sprintf(" to mail %s (%q)", b.Asked, b.About)
}

// holder describes the holder of a task in progress while no member moves.
func (l snapshot) holder(t team.Task) string {
	if slices.ContainsFunc(l.Members, func(m team.Member) bool { return l.atPerson(m, t) }) {
		return string(t.Assignee) + ", a person"
	}
	return string(t.Assignee) + ", who waits"
}

// blockedText returns the notice to the leader about a task that failed or was cancelled and that
// others wait for.
func blockedText(e index.End) string {
	text := fmt.Sprintf("[Blocked] %s (%s) %s: %s\nTasks that depend on it and cannot go on:", e.Task.ID, e.Task.Title, ended(e.Task.Status), team.Summarize(e.Task.Reason))
	return text + " " + team.Some(e.Blocks, maxNamed)
}

// ended describes how a task has ended without success.
func ended(s team.TaskStatus) string {
	if s == team.Cancelled {
		return "was cancelled"
	}
	return "has " + string(s)
}

// Text returns the notice to the leader about them.
func (f UnreachableReservation) Text() string {
	var tasks []string
	for _, t := range f.Tasks {
		tasks = append(tasks, fmt.Sprintf("%s (%s)", t.ID, t.Title))
	}
	return fmt.Sprintf("[Reserved] %s %s. What was reserved for it may be taken by anybody of its role: %s", f.Member, f.Why, team.Some(tasks, maxNamed))
}

// GivenUpText returns the notice to the leader about a member that is lost again and again.
func GivenUpText(a team.AgentID, why string) string {
	return fmt.Sprintf("[Lost] %s is stopped: %s. Its task is back on the board. Find out what ends it before you spawn it again.", a, why)
}

// stillLostText returns the notice to the leader about a member that could not be brought back
// several times.
func stillLostText(a team.AgentID, cause string) string {
	return fmt.Sprintf("[Lost] %s could not be brought back, and is tried again and again: %s", a, team.Clean(cause, 1000))
}

// NoRoomText returns the notice to the leader about a lost member that a person wants back, without
// room for it.
func NoRoomText(a team.AgentID, full error) string {
	return fmt.Sprintf("[Lost] A person has decided that %s comes back, but %s. It comes back once there is room: remove a teammate that you can do without.", a, team.OneLine(full.Error()))
}

// RefusedText returns the notice to the leader about a member that joined uninvited.
func RefusedText(a team.AgentID, why string) string {
	return fmt.Sprintf("[Refused] %s joined by itself and is stopped: %s.", a, why)
}

// silentText returns the notice to the leader about a member that sends heartbeats and otherwise
// does not answer.
func silentText(a team.AgentID, why string) string {
	return fmt.Sprintf("[Silent] %s beats, but %s. The team does not wait for it any more. If it holds nothing up, leave it; else spawn another and have it removed. You are told once.", a, why)
}

// stalledText returns the notice to the leader about a member at work that makes no progress.
func stalledText(b team.Heartbeat) string {
	var t strings.Builder
	fmt.Fprintf(&t, "[Stalled] %s has made no progress for %s: no turn of its model, no result of a tool, no output of a command.",
		b.AgentID, span(time.Duration(b.Still)*time.Second))
	switch {
	case b.Tool != "":
		fmt.Fprintf(&t, " Its call of %s has not returned.", b.Tool)
	case b.Trouble != "":
		fmt.Fprintf(&t, " Its model gives no answer: %s.", team.Summarize(b.Trouble))
	default:
		t.WriteString(" Its model has not answered.")
	}
	if b.Task != "" {
		fmt.Fprintf(&t, " It holds %s; update_task with status \"pending\" puts that back, so that somebody else may take it.", b.Task)
	}
	t.WriteString(" You are told once, until it goes on.")
	return t.String()
}

// span returns a duration in words, in minutes from two minutes on.
func span(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}

// failedText returns the notice to the leader about a task that was failed because its holders were
// lost at work on it; "" for any other.
func failedText(t team.Task) string {
	if t.Status != team.Failed || t.UpdatedBy != team.Watchdog {
		return ""
	}
	return fmt.Sprintf("[Failed] %s (%s) has failed: %s. Whoever worked on it was lost each time, so the work itself may end the process.", t.ID, t.Title, team.Summarize(t.Reason))
}
