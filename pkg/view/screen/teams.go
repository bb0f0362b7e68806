package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/view/render"
)

// teamRows returns the teams of the cluster: first those with items that wait for the person, then the active ones.
func (m *model) teamRows() (rows []row) {
	switch {
	case m.listErr != nil:
		rows = []row{{heading: true, lines: styled(red, indented(lines(team.Line(m.listErr), m.width-2), 1))}}
	case m.teams == nil:
		return []row{{heading: true, lines: []string{faint.Render(" reading …")}}}
	case len(m.teams) == 0:
		return []row{{heading: true, lines: []string{faint.Render(" there are no teams yet: teamctl run GOAL makes one")}}}
	}
	if len(m.teams) == 0 {
		return rows
	}
	all := slices.Clone(m.teams)
	rank := func(t client.TeamStatus) int {
		switch {
		case t.Waiting > 0:
			return 0
		case t.Status == team.Active:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b client.TeamStatus) int { return rank(a) - rank(b) })
	name := 4
	for _, t := range all {
		name = max(name, len(t.ID))
	}
	name = min(name, max(m.width/4, 10))
	rows = append(rows, row{heading: true, lines: []string{faint.Render(" " + m.teamLine(name, "NAME", "STATUS", "DONE", "WAITS", "MEMBERS", "GOAL"))}})
	for _, t := range all {
		wait := ""
		if n := t.Waiting; n > 0 {
			wait = yellow.Render(fmt.Sprint(n))
		}
		members := strings.Join(explain.ByName(t.Members), ", ")
		goal := line(t.Goal)
		r := row{id: string(t.ID), lines: []string{m.teamLine(name, line(string(t.ID)), render.Paint(string(t.Status), cmp.Or(t.End, string(t.Status))),
			fmt.Sprintf("%d/%d", t.Tasks[team.Completed], t.Tasks.Total()-t.Tasks[team.Cancelled]), wait, members, goal)}}
		if m.width < oneLine {
			r.lines = append(r.lines, "   "+faint.Render(strings.Trim(members+" · "+goal, " ·")))
		}
		rows = append(rows, r)
	}
	return rows
}

func (m *model) teamLine(name int, id, status, done, waits, members, goal string) string {
	s := fit(m.width-1, " ", part{pad(id, name), 0}, part{pad(status, 9), 0}, part{pad(done, 9), 2}, part{pad(waits, 5), 1})
	if m.width >= oneLine {
		s += " " + pad(members, 34) + "  " + goal
	}
	return s
}
