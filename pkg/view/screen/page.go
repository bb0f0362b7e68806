package screen

import (
	"slices"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// pageKind is the kind of a page. The first ones are the tabs of a team.
type pageKind int

const (
	membersPage pageKind = iota
	boardPage
	streamPage
	mailPage
	timelinePage
	tabCount

	agentPage pageKind = iota
	taskPage
	messagePage
	helpPage
	teamsPage
)

var tabNames = [tabCount]string{"Members", "Board", "Stream", "Mail", "Timeline"}

// page is the content between the header and the footer, and the position in it.
type page struct {
	kind   pageKind
	about  string // the agent, the task, or the letter or plan, that it shows
	filter string
	chosen string // id of the row that is chosen; "" = the first
	top    int    // first line that is shown of a list
	up     int    // lines of a text below the last that is shown
	down   int    // first line that is shown, of a text that does not grow
}

// list reports whether a page has rows to choose from.
func (p *page) list() bool {
	return slices.Contains([]pageKind{membersPage, boardPage, mailPage, teamsPage}, p.kind)
}

// grows reports whether lines are added at the end of a page, where it is read.
func (p *page) grows() bool { return p.kind == streamPage || p.kind == agentPage }

// filters reports whether a page can filter its rows or lines.
func (p *page) filters() bool { return p.list() || p.grows() }

// row is an entry of a list: its id and its lines. A heading cannot be chosen.
type row struct {
	id      string
	lines   []string
	heading bool
}

// page returns the shown page.
func (m *model) page() *page {
	switch {
	case len(m.over) > 0:
		return &m.over[len(m.over)-1]
	case m.room == nil:
		return &m.list
	}
	return &m.tabs[m.tab]
}

// rows returns the rows of the shown page.
func (m *model) rows() []row {
	p := m.page()
	var all []row
	switch p.kind {
	case teamsPage:
		all = m.teamRows()
	case membersPage:
		all = m.memberRows()
	case boardPage:
		all = m.taskRows()
	case mailPage:
		all = m.mailRows()
	}
	if p.filter == "" {
		return all
	}
	var some []row
	for i, r := range all {
		if r.heading { // stays if a row below it does
			below := all[i+1:]
			if end := slices.IndexFunc(below, func(r row) bool { return r.heading }); end >= 0 {
				below = below[:end]
			}
			if slices.ContainsFunc(below, func(r row) bool { return has(r.lines, p.filter) }) {
				some = append(some, r)
			}
		} else if has(r.lines, p.filter) {
			some = append(some, r)
		}
	}
	return some
}

// choice returns the index of the chosen row, -1 if there is none.
func (p *page) choice(rows []row) int {
	if i := slices.IndexFunc(rows, func(r row) bool { return !r.heading && r.id == p.chosen }); i >= 0 {
		return i
	}
	return slices.IndexFunc(rows, func(r row) bool { return !r.heading })
}

// move chooses the row that is by rows further on.
func (p *page) move(rows []row, by int) {
	var ids []string
	for _, r := range rows {
		if !r.heading {
			ids = append(ids, r.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	at := 0
	if i := p.choice(rows); i >= 0 {
		at = slices.Index(ids, rows[i].id)
	}
	p.chosen = ids[min(max(at+by, 0), len(ids)-1)]
}

// drawList returns the part of a list that fits into height lines, with the chosen row in it, which its first character
// marks too.
func (p *page) drawList(rows []row, width, height int) []string {
	at := p.choice(rows)
	var all []string
	first, last := 0, 0
	for i, r := range rows {
		if i == at {
			first, last = len(all), len(all)+len(r.lines)
		}
		for j, l := range r.lines {
			switch {
			case r.heading:
			case i == at && j == 0:
				l = chosen.Render(pad(">"+ansi.Strip(l), width))
			default:
				l = " " + l
			}
			all = append(all, l)
		}
	}
	if first < p.top {
		if p.top = first; at >= 0 && first > 0 && rows[at-1].heading {
			p.top-- // with its heading
		}
	}
	p.top = max(min(max(p.top, last-height), len(all)-height), 0)
	return all[p.top:min(p.top+height, len(all))]
}

// drawText returns the part of a text that fits into height lines; none if that is too few.
func (p *page) drawText(all []string, height int) []string {
	height = max(height, 0)
	if p.grows() {
		p.up = max(min(p.up, len(all)-height), 0)
		end := len(all) - p.up
		return all[max(end-height, 0):end]
	}
	p.down = max(min(p.down, len(all)-height), 0)
	return all[p.down:min(p.down+height, len(all))]
}

// scroll moves in a text.
func (p *page) scroll(by int) {
	if p.grows() {
		p.up = max(p.up-by, 0)
		return
	}
	p.down = max(p.down+by, 0)
}

// about returns the subject of the shown page: the only one, or the chosen row of a list.
func (m *model) about(alone, list pageKind) string {
	switch p := m.page(); p.kind {
	case alone:
		return p.about
	case list:
		if rows := m.rows(); p.choice(rows) >= 0 {
			return rows[p.choice(rows)].id
		}
	}
	return ""
}

// subject returns the agent that a page is about.
func (m *model) subject() team.AgentID { return team.AgentID(m.about(agentPage, membersPage)) }

// object returns the task that a page is about.
func (m *model) object() team.TaskID { return team.TaskID(m.about(taskPage, boardPage)) }

// item returns the id of the letter or plan that a page is about.
func (m *model) item() string { return m.about(messagePage, mailPage) }

// message returns the letter of that id.
func (r *room) message(id string) (client.StoredMessage, bool) {
	for _, l := range r.snapshot.messages {
		if l.ID == id {
			return l, true
		}
	}
	return client.StoredMessage{}, false
}

// plan returns the pending plan, or call, of that id.
func (r *room) plan(id string) (client.Plan, bool) {
	for _, p := range r.snapshot.plans {
		if p.ID == id {
			return p, true
		}
	}
	return client.Plan{}, false
}
