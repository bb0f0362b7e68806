package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/team"
)

// name returns the name of a key. A terminal sends Esc and a key that follows quickly as that key with Alt.
func name(k tea.KeyPressMsg) string {
	switch pressed := k.String(); pressed {
	case "alt+esc":
		return "esc"
	case "ctrl+alt+c":
		return "ctrl+c"
	default:
		return pressed
	}
}

// key handles a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	pressed := name(k)
	if pressed == "ctrl+c" && m.prompt == nil {
		return m.quit()
	}
	if m.prompt != nil {
		return m.typed(k)
	}
	m.notice = ""
	if cmd, ok := m.moves(pressed); ok {
		return cmd
	}
	switch pressed {
	case "q":
		return m.quit()
	case "ctrl+z":
		if m.leave.Ends {
			return m.wrong("the cluster lives in this command and would stand still with it; teamctl up -d starts one that does not")
		}
		return tea.Suspend
	case ":":
		return m.prompts(prompt{kind: commandLine, then: m.obey}, "")
	case "/":
		if !m.page().filters() {
			return m.wrong("there is nothing to filter here")
		}
		return m.prompts(prompt{kind: filterLine}, m.page().filter)
	case "?":
		m.open(page{kind: helpPage})
	case "esc":
		return m.back()
	case "enter":
		return m.into()
	case "shift+up", "shift+down":
		return m.neighbour(pressed == "shift+down")
	case "v":
		if r := m.room; r != nil {
			r.full = !r.full
			m.lay()
		}
	default:
		return m.acts(pressed)
	}
	return nil
}

// moves handles the keys that move in a page, or to another tab.
func (m *model) moves(pressed string) (tea.Cmd, bool) {
	far := max(m.height-8, 1)
	by, ok := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -far, "pgdown": far, "ctrl+b": -far, "ctrl+f": far, "space": far,
		"home": -1 << 30, "g": -1 << 30, "end": 1 << 30, "G": 1 << 30}[pressed]
	p := m.page()
	switch {
	case ok && p.list():
		p.move(m.rows(), by)
	case ok:
		p.scroll(by)
	case m.room == nil:
		return nil, false
	case pressed == "tab", pressed == "right" && len(m.over) == 0:
		return m.toTab((m.tab + 1) % int(tabCount)), true
	case pressed == "shift+tab", pressed == "left" && len(m.over) == 0:
		return m.toTab((m.tab + int(tabCount) - 1) % int(tabCount)), true
	default:
		n, err := strconv.Atoi(pressed)
		if l, is := m.room.message(m.item()); err == nil && is && p.kind == messagePage && l.Open && n >= 1 && n <= len(l.Choices) {
			return m.answer(l, l.Choices[n-1]), true
		}
		if err != nil || n < 1 || n > int(tabCount) {
			return nil, false
		}
		return m.toTab(n - 1), true
	}
	return nil, true
}

// quit leaves, after a question if that ends something.
func (m *model) quit() tea.Cmd {
	leaves := func() tea.Cmd { return tea.Quit }
	if m.leave.Ask != "" && !m.ended {
		return m.asks(m.leave.Ask, leaves)
	}
	return leaves()
}

// open opens a page above the others.
func (m *model) open(p page) {
	if last := m.page(); len(m.over) > 0 && last.kind == p.kind {
		*last = p
		return
	}
	m.over = append(m.over, p)
}

// back returns to the previous page; from a tab to the list of teams.
func (m *model) back() tea.Cmd {
	p := m.page()
	switch {
	case p.filter != "":
		p.filter = ""
	case len(m.over) > 0:
		m.over = m.over[:len(m.over)-1]
		m.listen()
	case m.room != nil:
		return m.toTeams()
	}
	return nil
}

// listen follows the shown conversation, and no other.
func (m *model) listen() {
	r := m.room
	if r == nil {
		return
	}
	var a team.AgentID
	for _, p := range m.over {
		if p.kind == agentPage {
			a = team.AgentID(p.about)
		}
	}
	if a == r.agent {
		return
	}
	r.agent, r.drafts = a, nil
	if a != "" {
		o := m.telling(r)
		o.Journal, o.Fold = true, 6
		r.drafts = newTranscript(o, records(r.state), r.tasks, r.counts)
	}
	m.behind.follow(a)
}

func (m *model) toTab(i int) tea.Cmd {
	m.tab, m.over = i, nil
	m.listen()
	if m.charts() {
		return m.behind.chart()
	}
	return nil
}

func (m *model) toTeams() tea.Cmd {
	m.room, m.over, m.prompt = nil, nil, nil
	m.visit++
	return m.behind.teams(m.visit)
}

// toTeam opens a team; the present page stays until it arrives.
func (m *model) toTeam(id team.TeamID) tea.Cmd {
	m.visit++
	return m.behind.enter(m.visit, id)
}

func (m *model) toAgent(name team.AgentID) tea.Cmd {
	m.open(page{kind: agentPage, about: string(name)})
	m.listen()
	return nil
}

func (m *model) toTask(id team.TaskID) tea.Cmd {
	m.open(page{kind: taskPage, about: string(id)})
	return m.behind.life(id)
}

// into opens the chosen row.
func (m *model) into() tea.Cmd {
	p := m.page()
	rows := m.rows()
	at := p.choice(rows)
	if !p.list() || at < 0 {
		return nil
	}
	switch id := rows[at].id; p.kind {
	case teamsPage:
		return m.toTeam(team.TeamID(id))
	case membersPage:
		return m.toAgent(team.AgentID(id))
	case boardPage:
		return m.toTask(team.TaskID(id))
	case mailPage:
		return m.toMessage(id)
	}
	return nil
}

// toMessage opens a letter, a plan or a call in full.
func (m *model) toMessage(id string) tea.Cmd {
	if p := m.page(); p.kind == messagePage && p.about == id {
		return nil
	}
	m.open(page{kind: messagePage, about: id})
	if l, ok := m.room.message(id); ok && l.Stored != "" {
		return m.behind.whole(id)
	}
	return nil
}

// neighbour opens the conversation of the next agent in order of joining, or of the previous one.
func (m *model) neighbour(next bool) tea.Cmd {
	if m.room == nil {
		return nil
	}
	var all []team.AgentID
	for _, a := range m.room.snapshot.agents {
		if a.Backend != team.Person {
			all = append(all, a.AgentID)
		}
	}
	if len(all) == 0 {
		return nil
	}
	at := slices.Index(all, m.subject())
	switch {
	case next:
		at++
	case at <= 0:
		at = len(all) - 1
	default:
		at--
	}
	return m.toAgent(all[at%len(all)])
}

// acts handles the keys that act on the shown or chosen item.
func (m *model) acts(pressed string) tea.Cmd {
	unknown := func() tea.Cmd { return m.wrong("%s does nothing here; ? lists the keys", line(pressed)) }
	r := m.room
	if r == nil {
		return unknown()
	}
	item := m.item()
	if a := m.subject(); a != "" {
		switch pressed {
		case "m", "u":
			return m.writeTo(a, pressed == "u")
		case "s":
			return m.do(action{kind: stops, agent: a})
		case "d":
			return m.do(action{kind: drains, agent: a})
		}
		item = r.member(a).Asked
	}
	if id := m.object(); id != "" {
		switch pressed {
		case "a":
			return m.prompts(prompt{kind: commandLine, then: m.obey}, fmt.Sprintf("assign %s ", id))
		case "r":
			return m.do(action{kind: releases, task: id})
		case "c":
			return m.do(action{kind: cancels, task: id})
		}
	}
	if cmd, ok := m.decide(item, pressed); ok {
		return cmd
	}
	return unknown()
}

// pointer handles the mouse: its wheel moves, and a click chooses a row, or opens the chosen one.
func (m *model) pointer(msg tea.MouseMsg) tea.Cmd {
	p := m.page()
	at := msg.Mouse()
	if m.prompt != nil {
		return nil
	}
	if _, wheel := msg.(tea.MouseWheelMsg); wheel {
		by := cmp.Or(map[tea.MouseButton]int{tea.MouseWheelUp: -3, tea.MouseWheelDown: 3}[at.Button], 0)
		if p.list() {
			by /= 3
			p.move(m.rows(), by)
		} else {
			p.scroll(by)
		}
		return nil
	}
	if at.Button != tea.MouseLeft {
		return nil
	}
	head := len(m.header())
	if m.room != nil && at.Y == head-2 {
		x := 0
		for i, name := range m.tabTexts() {
			if x += ansi.StringWidth(name) + 1; at.X < x {
				return m.toTab(i)
			}
		}
		return nil
	}
	if !p.list() || at.Y >= m.height-len(m.footer()) {
		return nil
	}
	y := head - p.top
	for _, r := range m.rows() {
		if at.Y >= y && at.Y < y+len(r.lines) && at.Y >= head && !r.heading {
			if p.chosen == r.id {
				return m.into()
			}
			p.chosen = r.id
		}
		y += len(r.lines)
	}
	return nil
}
