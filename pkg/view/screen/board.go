package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/view/render"
)

// group is a part of the board.
type group struct {
	name  string
	tasks []team.TaskView
}

// earlier names the part of the board with the tasks of earlier goals.
const earlier = "earlier goals"

// board returns the tasks by their shown status. It is computed again when a task has changed.
func (r *room) board() []group {
	if r.groups == nil {
		r.groups = r.sorted()
	}
	return r.groups
}

func (r *room) sorted() []group {
	records := make([]team.Task, 0, len(r.state.Tasks))
	for _, t := range r.state.Tasks {
		records = append(records, t.Task)
	}
	slices.SortFunc(records, func(a, b team.Task) int { return cmp.Compare(a.ID.Number(), b.ID.Number()) })
	groups := []group{{name: "in progress"}, {name: "ready"}, {name: team.ShownBlocked}, {name: "failed"}, {name: "completed"}, {name: "cancelled"}, {name: earlier}}
	for _, v := range team.View(records) {
		name := strings.ReplaceAll(v.Shown(), "_", " ")
		switch {
		case r.state.Tasks[v.ID].Earlier:
			name = earlier
		case v.Status == team.Pending && !v.IsBlocked:
			name = "ready"
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		groups[max(i, 0)].tasks = append(groups[max(i, 0)].tasks, v)
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.tasks) == 0 })
}

func (r *room) status(id team.TaskID) team.TaskStatus {
	if t := r.state.Tasks[id]; t != nil {
		return t.Status
	}
	return ""
}

// rowsOf are the rows of a board at a time and a width.
type rowsOf struct {
	board *group // the first of its parts
	now   time.Time
	width int
	rows  []row
}

// taskRows returns the rows of the board. They are computed again if an input has changed.
func (m *model) taskRows() []row {
	r := m.room
	board := r.board()
	at := rowsOf{now: m.now, width: m.width}
	if len(board) > 0 {
		at.board = &board[0]
	}
	if is := r.rows; is.rows == nil || is.board != at.board || !is.now.Equal(at.now) || is.width != at.width {
		at.rows = m.boardRows(board)
		r.rows = at
	}
	return r.rows.rows
}

func (m *model) boardRows(board []group) (rows []row) {
	title := 0
	for _, g := range board {
		for _, v := range g.tasks {
			title = max(title, ansi.StringWidth(line(v.Title)))
		}
	}
	title = min(title, (m.width-14)/2)
	for _, g := range board {
		rows = append(rows, row{heading: true, lines: []string{bold.Render(fmt.Sprintf("%s (%d)", g.name, len(g.tasks)))}})
		for _, v := range g.tasks {
			rows = append(rows, m.taskRow(v, title))
		}
	}
	if rows == nil {
		rows = []row{{heading: true, lines: []string{faint.Render(" the board is empty; add a task: :add TITLE")}}}
	}
	return rows
}

// taskRow returns the row of a task, with its title in so many cells if the row is one line.
func (m *model) taskRow(v team.TaskView, cells int) row {
	mark := " "
	if v.Priority > 0 {
		mark = yellow.Render(strings.Repeat("!", v.Priority))
	}
	lead := fmt.Sprintf(" %s %s ", pad(render.Paint(v.Shown(), string(v.ID)), 6), pad(mark, 2))
	about, title := m.room.standing(v, m.now), line(v.Title)
	if m.width < oneLine {
		r := row{id: string(v.ID), lines: []string{lead + title}}
		if about != "" {
			r.lines = append(r.lines, strings.Repeat(" ", 11)+faint.Render(about))
		}
		return r
	}
	return row{id: string(v.ID), lines: []string{lead + pad(title, cells) + "  " + faint.Render(about)}}
}

// standing returns who holds a task, what it waits for, or how it has ended.
func (r *room) standing(v team.TaskView, now time.Time) string {
	switch {
	case v.Status == team.InProgress:
		since := ""
		if v.ClaimedAt != nil {
			since = " for " + span(now.Sub(*v.ClaimedAt))
		}
		if slices.ContainsFunc(r.snapshot.agents, func(a client.Agent) bool { return a.Task == v.ID && a.WaitsFor == team.ForMerge }) {
			since += ", merging"
		}
		return line(string(v.Assignee)) + since
	case v.IsBlocked:
		return "waits for " + explain.WaitsFor(v, r.status)
	case v.Status == team.Failed, v.Status == team.Cancelled:
		return line(v.Reason)
	case v.Status == team.Completed:
		return strings.Trim(line(string(v.Assignee))+": "+line(v.ResultSummary), ": ")
	case v.ReservedFor != "":
		return "reserved for " + line(string(v.ReservedFor))
	case v.Role != "":
		return "for a " + line(v.Role)
	}
	return ""
}

// taskLines returns all details of a task.
func (m *model) taskLines(id team.TaskID) []string {
	r := m.room
	var v team.TaskView
	for _, g := range r.board() {
		for _, t := range g.tasks {
			if t.ID == id {
				v = t
			}
		}
	}
	if v.ID == "" {
		return []string{faint.Render(" the board has no task " + line(string(id)))}
	}
	all := styled(bold, lines(string(v.ID)+" "+line(v.Title), m.width))
	field := func(name, text string) {
		if text = strings.TrimSpace(text); text != "" {
			const cells = 13
			all = append(all, labelled(faint.Render(name), cells, strings.Split(ansi.Wrap(text, max(m.width-cells, 1), ""), "\n"))...)
		}
	}
	field("status", render.Paint(v.Shown(), v.Shown())+"  "+faint.Render(r.standing(v, m.now)))
	if v.Priority > 0 {
		field("priority", team.PriorityName(v.Priority))
	}
	field("role", line(v.Role))
	field("holder", line(string(v.Assignee)))
	if v.Attempts > 0 {
		field("attempts", fmt.Sprint(v.Attempts))
	}
	if len(v.Dependencies) > 0 {
		field("depends on", strings.Join(team.Strings(v.Dependencies...), ", "))
	}
	if len(v.Blocks) > 0 {
		field("blocks", strings.Join(team.Strings(v.Blocks...), ", "))
	}
	field("check", line(v.Check))
	field("deliverable", line(v.DeliverablePath))
	if t := r.state.Tasks[id]; t.Tokens > 0 {
		field("tokens", render.Amount(t.Tokens))
	}
	text := func(name, text string) {
		if strings.TrimSpace(text) != "" {
			all = append(append(all, "", faint.Render(name)), indented(lines(text, m.width-2), 1)...)
		}
	}
	text("description", v.Description)
	text("result", v.ResultSummary)
	text("reason", v.Reason)
	all = append(all, "", faint.Render("history"))
	if r.lives[id] == nil {
		return append(all, faint.Render(" reading …"))
	}
	for _, step := range r.lives[id] {
		all = append(all, indented(lines(step, m.width-2), 1)...)
	}
	return all
}
