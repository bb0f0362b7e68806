package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// oneLine is the width from which on a row is one line, in cells.
const oneLine = 100

// urgency returns the place of a member in the list: first those that wait for a person, then those with trouble, then
// those that are running.
func urgency(a client.Agent) int {
	switch {
	case a.State.Waits() && a.Awaits == team.UserAgent, a.State == team.WaitingUser, atWork(a):
		return 0
	case a.State == team.Lost, a.State == team.Unreadable, a.State == team.WaitingRepair, a.State == team.WaitingModel:
		return 1
	case a.State == team.Stalled, a.State == team.Unknown, a.Trouble != "":
		return 2
	case a.State.Waits():
		return 3
	case a.State == team.Running:
		return 4
	case a.State == team.Stopped:
		return 6
	}
	return 5
}

// atWork reports whether a person has a task to do; a merging task needs no person.
func atWork(a client.Agent) bool {
	return a.Backend == team.Person && a.Task != "" && a.WaitsFor != team.ForMerge
}

// agents returns the members, first those that need a person.
func (r *room) agents() []client.Agent {
	all := slices.Clone(r.snapshot.agents)
	slices.SortStableFunc(all, func(a, b client.Agent) int { return cmp.Compare(urgency(a), urgency(b)) })
	return all
}

func (r *room) member(id team.AgentID) client.Agent {
	for _, a := range r.snapshot.agents {
		if a.AgentID == id {
			return a
		}
	}
	return client.Agent{Member: team.Member{AgentID: id}}
}

// memberRows returns the rows of the members.
func (m *model) memberRows() (rows []row) {
	r := m.room
	if len(r.snapshot.agents) == 0 {
		text := "the team has no members yet; the leader spawns them once there is a goal: :goal TEXT"
		if r.seen.IsZero() {
			text = "reading …"
		}
		return []row{{heading: true, lines: []string{faint.Render(" " + text)}}}
	}
	name := 4
	for _, a := range r.snapshot.agents {
		name = max(name, len(a.AgentID))
	}
	name = min(name, max(m.width/4, 10))
	rows = append(rows, row{heading: true, lines: []string{faint.Render(" " + m.memberLine(name, "NAME", "STATE", "SINCE", "TASK", "TURN", "CTX", "COST", "WHY AND LAST LINE"))}})
	for _, a := range r.agents() {
		why := r.why(a, m.now)
		last := r.last[a.AgentID]
		if text := lastLine(r.draft(a.AgentID)); text != "" {
			last = text
		}
		if last != "" {
			last = faint.Render("“" + last + "”")
		}
		about := strings.TrimPrefix(why+"  "+last, "  ")
		since := ""
		if a.Since != nil {
			since = span(m.now.Sub(*a.Since))
		}
		l := m.memberLine(name, render.Ink(a.Color).Render(line(string(a.AgentID))), render.Paint(string(a.State), string(a.State)), since, string(a.Task),
			fmt.Sprint(a.Turn), fill(a), r.cost.by[a.AgentID], about)
		one := row{id: string(a.AgentID), lines: []string{l}}
		if m.width < oneLine && about != "" {
			one.lines = append(one.lines, "   "+about)
		}
		for _, j := range a.Jobs {
			one.lines = append(one.lines, faint.Render("   "+jobLine(j, m.now)))
		}
		rows = append(rows, one)
	}
	return rows
}

// jobLine returns a job of a member in a line.
func jobLine(j team.Job, now time.Time) string {
	what := cmp.Or(line(j.Type), string(j.Kind))
	state := span(now.Sub(j.Since))
	switch {
	case j.Ended != "":
		state = "ended: " + line(j.Ended)
	case j.Asked != "":
		state += ", waits for a person"
	case j.Kind == team.JobCommand && j.Still >= 60:
		state += ", silent for " + span(time.Duration(j.Still)*time.Second)
	}
	return fmt.Sprintf("%s %s (%s): %s", line(j.ID), what, state, line(j.About))
}

// memberLine returns a line of the list of members, as wide as the screen.
func (m *model) memberLine(name int, who, state, since, task, turn, context, cost, about string) string {
	right := func(s string, n int) string { return strings.Repeat(" ", max(0, n-len(s))) + s }
	parts := []part{{pad(who, name), 0}, {pad(state, 16), 0}, {right(since, 6), 2}, {pad(task, 6), 1}, {right(turn, 4), 5}, {right(context, 5), 3}, {right(cost, 9), 4}}
	s := fit(m.width-1, " ", parts...)
	if m.width >= oneLine {
		s += "  " + about
	}
	return s
}

// fill returns how full the context of a member is.
func fill(a client.Agent) string {
	switch {
	case a.Context == 0:
		return "-"
	case a.Window == 0:
		return render.Amount(a.Context)
	}
	return fmt.Sprintf("%d%%", 100*a.Context/a.Window)
}

// why returns in a few words why a member is in its state.
func (r *room) why(a client.Agent, now time.Time) string {
	if a.Drains {
		a.Drains = false
		return strings.TrimPrefix(r.why(a, now)+"; leaves after its task", "; ")
	}
	switch {
	case atWork(a):
		return "a person works on it"
	case a.State == team.Lost, a.State == team.Unreadable:
		return line(cmp.Or(a.LastError, "its process is gone"))
	case a.State == team.Unknown:
		return "its process has not answered: it may be slow, or gone"
	case a.Parked():
		again := ""
		if a.RetryAt != nil {
			again = "; it asks again in " + span(a.RetryAt.Sub(now))
		}
		return line(a.LastError) + again
	case a.Trouble != "":
		return "its model: " + line(a.Trouble)
	case a.Awaits == team.UserAgent:
		return r.asked(a)
	case a.WaitsFor == team.ForPlan:
		return "waits for " + line(string(a.Awaits)) + " to decide on its plan"
	case a.WaitsFor == team.ForMerge:
		return "its work waits to be in the line"
	case a.WaitsFor == team.ForJob:
		return "waits for its work in the background"
	case a.Awaits != "":
		return "waits for an answer of " + line(string(a.Awaits))
	case a.Tool != "":
		return line(a.Tool)
	case a.State == team.Running, a.State == team.Stalled:
		return "its model"
	}
	return ""
}

// asked returns a member's request to the person.
func (r *room) asked(a client.Agent) string {
	if l, ok := r.message(a.Asked); ok {
		return "asks you: " + line(l.Content)
	}
	if p, ok := r.plan(a.Asked); ok {
		return wish(p)
	}
	return strings.TrimSuffix("waits for you: "+line(a.About), ": ")
}

// wish returns the request of a plan or a call to the person.
func wish(p client.Plan) string {
	if p.Call != nil {
		return "wants leave: " + line(p.Brief())
	}
	return "wants its plan approved: " + line(p.Brief())
}
