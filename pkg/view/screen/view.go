package screen

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/view/render"
)

// The smallest usable screen.
const leastWidth, leastHeight = 20, 8

// oldAfter is the age from which on the screen shows how old its data is.
const oldAfter = 15 * time.Second

// View draws the screen.
func (m *model) View() tea.View {
	var v tea.View
	v.AltScreen = true
	v.WindowTitle = m.title()
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.width < leastWidth || m.height < leastHeight {
		v.SetContent(ansi.Truncate(fmt.Sprintf("too small: %d × %d", m.width, m.height), m.width, ""))
		return v
	}
	all := m.header()
	foot := m.footer()
	body := m.body(m.height - len(all) - len(foot))
	all = append(append(all, body...), foot...)
	all = all[max(len(all)-m.height, 0):]
	for i := range all {
		all[i] = ansi.Truncate(all[i], m.width, "…")
	}
	v.SetContent(strings.Join(all, "\n"))
	if m.prompt != nil && m.prompt.kind != yesOrNo {
		if v.Cursor = m.input.Cursor(); v.Cursor != nil {
			v.Cursor.Y += m.height - m.input.Height()
		}
	}
	return v
}

// title returns the title of the window: the number of items that wait for the person, and the team.
func (m *model) title() string {
	r := m.room
	if r == nil {
		return "teamctl top"
	}
	if n := r.waits(); n > 0 {
		return fmt.Sprintf("(%d) %s", n, r.id)
	}
	return string(r.id)
}

// header returns the lines at the top: the team and the number of items that wait for the person, the goal, the members
// by state, and the pages.
func (m *model) header() []string {
	r := m.room
	state := ""
	if m.away {
		state = red.Render("no connection, trying again")
	} else if r != nil && !r.seen.IsZero() && m.now.Sub(r.seen) > oldAfter {
		state = yellow.Render("as of " + span(m.now.Sub(r.seen)) + " ago")
	}
	if r == nil {
		n := 0
		for _, t := range m.teams {
			n += t.Waiting
		}
		if state == "" && n > 0 {
			state = yellow.Render(fmt.Sprintf("%d for you", n))
		}
		return []string{spread(m.width, bold.Render("teams"), state), strings.Repeat("─", m.width)}
	}
	record := r.snapshot.record
	if n := r.waits(); state == "" && n > 0 {
		state = yellow.Bold(true).Render(fmt.Sprintf("%d for you", n))
	}
	doneN, allN, running, blocked := r.progress()
	left := fit(m.width-ansi.StringWidth(state)-1, " · ",
		part{bold.Render(line(string(r.id))) + " " + render.Paint(string(record.Status), record.InWords()), 0},
		part{fmt.Sprintf("%d/%d done", doneN, allN), 1},
		part{some(running, "running"), 3}, part{some(blocked, "blocked"), 4},
		part{r.cost.total, 2}, part{r.lasted(m), 5})
	by := map[team.MemberState]int{}
	for _, a := range r.snapshot.agents {
		by[a.State]++
	}
	members := faint.Render(explain.Counted(len(r.snapshot.agents), "member") + ": " + strings.Join(explain.ByName(by), ", "))
	if len(by) == 0 {
		members = faint.Render("no members")
	}
	goal := line(record.Goal)
	if goal == "" {
		goal = faint.Render("no goal yet; set one: :goal TEXT")
	}
	return []string{spread(m.width, left, state), goal, members, m.tabLine(), strings.Repeat("─", m.width)}
}

func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}

// progress counts the tasks of the goal.
func (r *room) progress() (done, all, running, blocked int) {
	for _, g := range r.board() {
		switch g.name {
		case "completed":
			done = len(g.tasks)
		case "in progress":
			running = len(g.tasks)
		case team.ShownBlocked:
			blocked = len(g.tasks)
		case "cancelled", earlier:
			continue
		}
		all += len(g.tasks)
	}
	return done, all, running, blocked
}

// lasted returns how long the goal has taken.
func (r *room) lasted(m *model) string {
	end := m.now
	if at := r.snapshot.record.FinishedAt; at != nil && r.snapshot.record.Status != team.Active {
		end = *at
	}
	if r.begun.IsZero() || end.IsZero() {
		return ""
	}
	return span(end.Sub(r.begun))
}

// tabTexts returns the names of the pages; the shown one has brackets.
func (m *model) tabTexts() (all []string) {
	for i, name := range tabNames {
		if n := m.room.waits(); pageKind(i) == mailPage && n > 0 {
			name += fmt.Sprintf(" %d", n)
		}
		if i == m.tab {
			name = bold.Render("[" + name + "]")
		}
		all = append(all, name)
	}
	return all
}

// tabLine names the pages, and the page that was opened from there.
func (m *model) tabLine() string {
	s := ansi.Truncate(strings.Join(m.tabTexts(), " "), m.width, "…")
	if p := m.page(); len(m.over) > 0 {
		s = spread(m.width, s, faint.Render(m.where(p)))
	}
	return s
}

// where names the page that was opened from a tab.
func (m *model) where(p *page) string {
	if p.kind == helpPage {
		return "› help"
	}
	if p.kind == messagePage {
		return "› letter"
	}
	return "› " + line(p.about)
}

// body returns the shown page, in height lines.
func (m *model) body(height int) []string {
	height = max(height, 1)
	p := m.page()
	var all []string
	switch p.kind {
	case streamPage:
		drafts := []string{}
		if p.up == 0 && p.filter == "" {
			drafts = m.room.transcript.story.Drafts(min(height/3, 8))
		}
		all = append(p.drawText(m.room.transcript.lines(p.filter), height-len(drafts)), drafts...)
	case agentPage:
		all = m.agentBody(p, height)
	case taskPage:
		all = p.drawText(m.taskLines(team.TaskID(p.about)), height)
	case messagePage:
		all = p.drawText(m.messageLines(p.about), height)
	case helpPage:
		all = p.drawText(m.helpLines(), height)
	case timelinePage:
		all = p.drawText(m.timelineLines(), height)
	default:
		all = p.drawList(m.rows(), m.width, height)
	}
	for len(all) < height {
		all = append(all, "")
	}
	return all[:height]
}

// agentBody returns the conversation of an agent, below its state.
func (m *model) agentBody(p *page, height int) []string {
	r := m.room
	a := r.member(team.AgentID(p.about))
	since := ""
	if a.Since != nil {
		since = " for " + span(m.now.Sub(*a.Since))
	}
	turns := ""
	if a.Turn > 0 {
		turns = explain.Counted(int(a.Turn), "turn")
	}
	top := []string{
		fit(m.width, " · ", part{render.Ink(a.Color).Bold(true).Render(line(p.about)), 0}, part{line(a.Role), 3}, part{render.Paint(string(a.State), string(a.State)) + since, 0},
			part{string(a.Task), 1}, part{turns, 5}, part{prefixed("context ", strings.TrimPrefix(fill(a), "-")), 2}, part{r.cost.by[a.AgentID], 4}, part{line(a.Model), 6}),
		faint.Render(r.why(a, m.now)),
	}
	height -= len(top)
	var draft []string
	if text := r.draft(a.AgentID); text != "" && p.up == 0 && p.filter == "" {
		if draft = indented(lines(text[max(0, len(text)-mostOfLine):], m.width-1), 1); len(draft) > height/3 {
			draft = draft[len(draft)-height/3:]
		}
	}
	if r.drafts == nil {
		return append(top, faint.Render(" reading …"))
	}
	return append(append(top, p.drawText(r.drafts.lines(p.filter), height-len(draft))...), draft...)
}

func prefixed(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// draft returns the text that an agent is writing.
func (r *room) draft(id team.AgentID) string {
	for _, d := range r.state.Drafts() {
		if d.AgentID == id {
			return d.Text
		}
	}
	return ""
}

// footer returns the lines below: the last notice, the question and input, or the possible keys.
func (m *model) footer() (all []string) {
	if m.notice != "" {
		style := green
		if m.failed {
			style = red
		}
		all = styled(style, lines(line(m.notice), m.width))
	}
	if m.prompt != nil {
		all = append(all, m.promptLines()...)
	}
	if all != nil {
		return all
	}
	p := m.page()
	if p.filter != "" {
		return []string{spread(m.width, yellow.Render("/"+p.filter)+faint.Render("  Esc shows all again"), "")}
	}
	if r := m.room; r != nil && r.snapshot.record.Status != team.Active && r.snapshot.record.Status != "" && r.snapshot.record.Goal != "" && len(m.over) == 0 {
		return []string{m.ending(r.snapshot.record)}
	}
	return []string{faint.Render(fit(m.width, "  ", m.hints(p)...))}
}

// ending states that the goal has ended, and how.
func (m *model) ending(record team.Team) string {
	text := "the goal has ended as " + record.InWords()
	if why := line(record.Why()); why != "" {
		text += ": " + why
	}
	rest := "  q leaves"
	if m.ended {
		rest = "  q shows the result"
	}
	return render.Paint(string(record.Status), ansi.Truncate(text, max(m.width-len(rest), 1), "…")) + faint.Render(rest)
}

// hints returns the keys of the shown page, the most important first.
func (m *model) hints(p *page) []part {
	switch p.kind {
	case teamsPage:
		return []part{{"Enter goes in", 0}, {"/ filter", 2}, {"? help", 1}, {"q quit", 0}}
	case membersPage:
		return append(m.wantedHints(m.room.member(m.subject()).Asked), []part{{"Enter reads", 0}, {"m write", 1}, {"s stop", 3}, {": command", 2}, {"/ filter", 4}, {"? help", 1}, {"q quit", 0}}...)
	case agentPage:
		return append(m.wantedHints(m.room.member(m.subject()).Asked), []part{{"m write", 0}, {"Shift+↓ next agent", 2}, {"v whole calls", 3}, {"s stop", 4}, {"Esc back", 0}, {"? help", 1}}...)
	case boardPage:
		return []part{{"Enter reads", 0}, {"a assign", 1}, {"r release", 3}, {"c cancel", 2}, {": command", 4}, {"? help", 1}, {"q quit", 0}}
	case taskPage:
		return []part{{"a assign", 0}, {"r release", 2}, {"c cancel", 1}, {"Esc back", 0}, {"? help", 1}}
	case mailPage:
		return append(m.wantedHints(m.item()), []part{{"m write", 3}, {"Enter reads", 2}, {"? help", 1}, {"q quit", 0}}...)
	case messagePage:
		return append(m.wantedHints(m.item()), []part{{"m write", 2}, {"? help", 1}, {"Esc back", 0}}...)
	case helpPage:
		return []part{{"PgDn more", 1}, {"Esc back", 0}, {"q quit", 0}}
	case timelinePage:
		return []part{{"Tab next page", 1}, {": command", 2}, {"? help", 0}, {"q quit", 0}}
	}
	return []part{{"Tab next page", 1}, {": command", 2}, {"/ filter", 3}, {"? help", 0}, {"q quit", 0}}
}

// wantedHints returns the keys for a question, a plan or a call that waits for the person.
func (m *model) wantedHints(id string) []part {
	if p, ok := m.room.plan(id); ok {
		if p.Call == nil {
			return []part{{"y approve", 0}, {"n reject", 0}}
		}
		return []part{{"y once", 0}, {"t for the task", 3}, {"w always", 3}, {"n refuse", 0}}
	}
	if l, ok := m.room.message(id); ok && l.Open {
		return []part{{"a answer", 0}}
	}
	return nil
}
