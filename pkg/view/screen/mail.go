package screen

import (
	"fmt"
	"slices"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// open returns the open questions to the person, the oldest first.
func (r *room) open() (all []client.StoredMessage) {
	for _, l := range r.snapshot.messages {
		if l.Open {
			all = append(all, l)
		}
	}
	return all
}

// waits returns how many items wait for the person.
func (r *room) waits() int { return len(r.open()) + len(r.snapshot.plans) }

// mailRows returns the items that wait for the person, and the mail to it.
func (m *model) mailRows() (rows []row) {
	r := m.room
	title := func(text string, n int) {
		rows = append(rows, row{heading: true, lines: []string{bold.Render(fmt.Sprintf("%s (%d)", text, n))}})
	}
	if n := r.waits(); n > 0 {
		title("waiting for you", n)
	} else {
		rows = append(rows, row{heading: true, lines: []string{faint.Render(" nothing waits for you; write to somebody: :msg NAME TEXT")}})
	}
	for _, l := range r.open() {
		rows = append(rows, m.mailRow(l.ID, yellow.Render("?"), l.From, "asks"+l.For(), line(l.Content), span(m.now.Sub(l.StoredAt))))
	}
	for _, p := range r.snapshot.plans {
		what := "plan"
		if p.Call != nil {
			what = "call"
		}
		if p.Task != "" {
			what += " for " + string(p.Task)
		}
		rows = append(rows, m.mailRow(p.ID, yellow.Render("!"), p.AgentID, what, line(p.Brief()), span(m.now.Sub(p.CreatedAt))))
	}
	letters := slices.DeleteFunc(slices.Clone(r.snapshot.messages), func(l client.StoredMessage) bool {
		_, waits := r.plan(l.RequestID) // it stands above
		return l.Open || waits
	})
	if len(letters) > 0 {
		title("letters to you", len(letters))
	}
	for _, l := range slices.Backward(letters) {
		mark := " "
		if len(l.Deliveries) > 0 && l.Deliveries[0].Status == team.MailDelivered && !l.Asks() {
			mark = cyan.Render("•") // you have not written back
		}
		rows = append(rows, m.mailRow(l.ID, mark, l.From, string(l.Type), line(l.Content), span(m.now.Sub(l.StoredAt))))
	}
	return rows
}

func (m *model) mailRow(id, mark string, from team.AgentID, what, text, age string) row {
	who := render.Ink(m.room.member(from).Color).Render(line(string(from)))
	if m.width < oneLine {
		return row{id: id, lines: []string{spread(m.width-1, fit(m.width-7, " ", part{mark + " " + who, 0}, part{faint.Render(what), 1}), faint.Render(age)), "   " + text}}
	}
	return row{id: id, lines: []string{pad(mark+" "+who, 18) + " " + pad(faint.Render(what), 22) + " " + pad(faint.Render(age), 6) + " " + text}}
}

// messageLines returns a letter, a plan or a call in full, with the possible actions.
func (m *model) messageLines(id string) []string {
	if p, ok := m.room.plan(id); ok {
		return m.planLines(p)
	}
	l, ok := m.room.message(id)
	if !ok {
		return []string{faint.Render(" it does not wait any more")}
	}
	text := l.Content
	if whole := m.room.texts[id]; whole != "" {
		text = whole
	}
	what := "writes"
	if l.Asks() {
		what = "asks" + l.For()
	}
	all := append(styled(bold, lines(fmt.Sprintf("%s %s, %s ago", line(string(l.From)), what, span(m.now.Sub(l.StoredAt))), m.width)), "")
	all = append(all, indented(lines(text, m.width-2), 1)...)
	for _, c := range l.Numbered() {
		all = append(all, indented(lines(c, m.width-4), 3)...)
	}
	all = append(all, "")
	switch {
	case l.Open && len(l.Choices) > 0:
		return append(all, yellow.Render(fmt.Sprintf(" 1 to %d, or a, answers it", len(l.Choices))))
	case l.Open:
		return append(all, yellow.Render(" a answers it"))
	case l.Asks() && len(l.Deliveries) > 0:
		status := string(l.Deliveries[0].Status)
		if l.Deliveries[0].Status == team.MailProcessed {
			status = "answered"
		}
		return append(all, faint.Render(" "+status))
	}
	return append(all, faint.Render(" m writes back"))
}

// planLines returns a plan or a call that waits for a decision.
func (m *model) planLines(p client.Plan) []string {
	about := ""
	if p.Task != "" {
		about = " for " + string(p.Task)
	}
	if p.Call == nil {
		all := append(styled(bold, lines(fmt.Sprintf("%s wants its plan%s approved, %s ago", line(string(p.AgentID)), about, span(m.now.Sub(p.CreatedAt))), m.width)), "")
		all = append(all, indented(lines(p.Plan, m.width-2), 1)...)
		return append(all, "", yellow.Render(" y approves it, n rejects it"))
	}
	all := append(styled(bold, lines(line(string(p.AgentID))+" "+line(p.Asking())+", "+span(m.now.Sub(p.CreatedAt))+" ago", m.width)), "")
	all = append(all, indented(lines(p.Call.Quoted(mostOfText), m.width-2), 1)...)
	all = append(append(all, ""), labelled(faint.Render("in"), 5, lines(team.Escaped(p.Call.Dir), m.width-5))...)
	all = append(all, labelled(faint.Render("why"), 5, lines(p.Call.Why, m.width-5))...)
	if slices.Contains(p.Scopes(), team.Always) {
		all = append(append(all, faint.Render("rule that w would add")), indented(lines(team.Escaped(p.Call.Rule), m.width-5), 5)...)
	}
	keys := "y allows it once, t for the task, w always, n refuses it"
	switch scopes := p.Scopes(); {
	case len(scopes) == 1:
		keys = "y brings it back, n does not"
	case !slices.Contains(scopes, team.Always):
		keys = "y allows it once, t for the task, n refuses it"
	}
	return append(append(all, ""), styled(yellow, indented(lines(keys, m.width-1), 1))...)
}
