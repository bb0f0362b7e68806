package screen

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/team"
)

// command is a command that is typed behind a colon.
type command struct {
	name, args, about string
	inTeam            bool // it takes a team that is shown
	run               func(m *model, words []string, text string) tea.Cmd
}

// commands returns all commands in the order of the help.
func commands() []command {
	tab := func(kind pageKind) func(*model, []string, string) tea.Cmd {
		return func(m *model, _ []string, _ string) tea.Cmd { return m.toTab(int(kind)) }
	}
	return []command{
		{"members", "", "the members, those first that need you", true, tab(membersPage)},
		{"board", "", "the tasks", true, tab(boardPage)},
		{"stream", "", "what happens", true, tab(streamPage)},
		{"mail", "", "what waits for you, and the mail to you", true, tab(mailPage)},
		{"timeline", "", "who did what when", true, tab(timelinePage)},
		{"agent", "NAME", "read the conversation of an agent", true, named(readConversation, (*model).toAgent)},
		{"task", "ID", "read a task", true, named(team.ParseTaskID, (*model).toTask)},
		{"team", "NAME", "go to a team", false, named(team.ParseTeamID, (*model).toTeam)},
		{"teams", "", "list the teams", false, func(m *model, _ []string, _ string) tea.Cmd { return m.toTeams() }},
		{"goal", "TEXT", "set the team a goal", true, func(m *model, _ []string, text string) tea.Cmd { return m.do(action{kind: sets, text: text}) }},
		{"msg", "NAME TEXT", "write to a member, or to all by *", true, (*model).msgCommand},
		{"urgent", "NAME TEXT", "the same, to be read before its next call", true, (*model).msgCommand},
		{"answer", "NAME|ID TEXT", "answer a question", true, (*model).answerCommand},
		{"approve", "ID [task|always] [TEXT]", "approve a plan, allow a call", true, (*model).decideCommand},
		{"reject", "ID TEXT", "reject a plan, refuse a call", true, (*model).decideCommand},
		{"add", "TITLE", "add a task", true, func(m *model, _ []string, text string) tea.Cmd { return m.do(action{kind: adds, text: text}) }},
		{"assign", "ID NAME", "give a task to a member", true, (*model).assignCommand},
		{"release", "ID [REASON]", "put a task back on the board", true, (*model).endCommand},
		{"cancel", "ID [REASON]", "cancel a task", true, (*model).endCommand},
		{"stop", "NAME [REASON]", "ask a member to leave", true, (*model).memberCommand},
		{"kill", "NAME [REASON]", "stop a member by force", true, (*model).memberCommand},
		{"drain", "NAME [REASON]", "have a member leave after its task", true, (*model).memberCommand},
		{"compact", "NAME", "have a member shorten its conversation", true, (*model).memberCommand},
		{"end", "", "end the goal: all members leave", true, func(m *model, _ []string, _ string) tea.Cmd { return m.do(action{kind: ends}) }},
		{"mouse", "", "use the mouse, or leave it to the terminal", false, func(m *model, _ []string, _ string) tea.Cmd { m.mouse = !m.mouse; return nil }},
		{"help", "", "what there is", false, func(m *model, _ []string, _ string) tea.Cmd { m.open(page{kind: helpPage}); return nil }},
		{"quit", "", "leave", false, func(m *model, _ []string, _ string) tea.Cmd { return m.quit() }},
	}
}

// obey runs the command that was typed behind the colon.
func (m *model) obey(text string) tea.Cmd {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	var found []command
	for _, c := range commands() {
		if c.name == words[0] {
			found = []command{c}
			break
		}
		if strings.HasPrefix(c.name, words[0]) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return m.wrong("there is no command %q here; ? lists them", words[0])
	case len(found) > 1:
		names := make([]string, len(found))
		for i, c := range found {
			names[i] = c.name
		}
		return m.wrong("%q may be %s", words[0], strings.Join(names, " or "))
	}
	c := found[0]
	if c.inTeam && m.room == nil {
		return m.wrong(":%s takes a team: choose one with Enter", c.name)
	}
	need := 0
	for _, a := range strings.Fields(c.args) {
		if !strings.HasPrefix(a, "[") {
			need++
		}
	}
	if len(words)-1 < need {
		return m.wrong("use: :%s %s", c.name, c.args)
	}
	words[0] = c.name
	return c.run(m, words, rest(text, 1))
}

// rest returns the part of a text behind its first n words, with its spaces.
func rest(text string, n int) string {
	text = strings.TrimSpace(text)
	for range n {
		i := strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
		if i < 0 {
			return ""
		}
		text = strings.TrimSpace(text[i:])
	}
	return text
}

// named returns a command that opens the thing that its argument names.
func named[T any](parse func(string) (T, error), to func(*model, T) tea.Cmd) func(*model, []string, string) tea.Cmd {
	return func(m *model, words []string, _ string) tea.Cmd {
		name, err := parse(words[1])
		if err != nil {
			return m.fails(err)
		}
		return to(m, name)
	}
}

func readConversation(s string) (team.AgentID, error) {
	name, _, err := team.ParseConversation(s)
	return name, err
}

func (m *model) msgCommand(words []string, text string) tea.Cmd {
	to := team.Everyone
	if words[1] != string(team.Everyone) {
		var err error
		if to, err = team.ParseAgentID(words[1]); err != nil {
			return m.fails(err)
		}
	}
	return m.do(action{kind: writes, agent: to, text: rest(text, 1), urgent: words[0] == "urgent"})
}

func (m *model) answerCommand(words []string, text string) tea.Cmd {
	return m.do(action{kind: answers, id: words[1], text: rest(text, 1)})
}

func (m *model) decideCommand(words []string, text string) tea.Cmd {
	d := action{kind: rejects, id: words[1], text: rest(text, 1)}
	p, waits := m.room.plan(d.id)
	if words[0] == "approve" {
		d.kind = approves
		if len(words) > 2 && (!waits || p.Call != nil) && slices.Contains([]string{string(team.Once), string(team.ForTask), string(team.Always)}, words[2]) {
			d.scope, d.text = team.Scope(words[2]), rest(text, 2)
		}
	}
	if d.scope == team.Always {
		if !waits || !slices.Contains(scopesOf(p), team.Always) {
			return m.wrong("no call %s waits for you that can be allowed always", line(d.id))
		}
		d.rule = p.Call.Rule
	}
	return m.do(d)
}

func (m *model) assignCommand(words []string, _ string) tea.Cmd {
	id, err := team.ParseTaskID(words[1])
	if err != nil {
		return m.fails(err)
	}
	to, err := team.ParseAgentID(words[2])
	if err != nil {
		return m.fails(err)
	}
	return m.do(action{kind: assigns, task: id, agent: to})
}

// endCommand releases or cancels a task.
func (m *model) endCommand(words []string, text string) tea.Cmd {
	id, err := team.ParseTaskID(words[1])
	if err != nil {
		return m.fails(err)
	}
	return m.do(action{kind: actionKind(words[0]), task: id, text: rest(text, 1)})
}

// memberCommand stops, kills, drains or compacts a member.
func (m *model) memberCommand(words []string, text string) tea.Cmd {
	name, err := team.ParseAgentID(words[1])
	if err != nil {
		return m.fails(err)
	}
	return m.do(action{kind: actionKind(words[0]), agent: name, text: rest(text, 1)})
}

// complete returns the completions of the text behind the colon.
func (m *model) complete(text string) (all []string) {
	words := strings.Fields(text)
	if text == "" || strings.HasSuffix(text, " ") {
		words = append(words, "")
	}
	if len(words) == 1 {
		for _, c := range commands() {
			if strings.HasPrefix(c.name, words[0]) && (!c.inTeam || m.room != nil) {
				all = append(all, c.name)
			}
		}
		return all
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == words[0] })
	if i < 0 {
		return nil
	}
	args := strings.Fields(commands()[i].args)
	at := len(words) - 2
	if at >= len(args) {
		return nil
	}
	before := strings.Join(words[:len(words)-1], " ") + " "
	for _, c := range m.candidates(words[0], args[at]) {
		if strings.HasPrefix(c, words[len(words)-1]) {
			all = append(all, before+c)
		}
	}
	return all
}

// candidates returns the possible words for an argument of a command.
func (m *model) candidates(name, arg string) (all []string) {
	r := m.room
	switch {
	case name == "team":
		for _, t := range m.teams {
			all = append(all, string(t.ID))
		}
	case r == nil:
	case name == "answer":
		for _, l := range r.open() {
			all = append(all, l.Which(r.snapshot.messages))
		}
	case name == "approve" && arg == "[task|always]":
		all = []string{string(team.ForTask), string(team.Always)}
	case name == "approve", name == "reject":
		for _, p := range r.snapshot.plans {
			if arg == "ID" {
				all = append(all, p.ID)
			}
		}
	case arg == "NAME":
		for _, a := range r.snapshot.agents {
			all = append(all, string(a.AgentID))
		}
	case arg == "ID":
		for _, g := range r.board() {
			for _, t := range g.tasks {
				if g.name != earlier && (name == "task" || t.Status.Open()) {
					all = append(all, string(t.ID))
				}
			}
		}
	}
	return all
}

// offers returns the line with the completions of Tab.
func (m *model) offers() string {
	text := m.input.Value()
	all := m.complete(text)
	if len(all) == 0 {
		if words := strings.Fields(text); len(words) > 0 {
			if i := slices.IndexFunc(commands(), func(c command) bool { return c.name == words[0] }); i >= 0 {
				return commands()[i].name + " " + commands()[i].args + "  " + commands()[i].about
			}
		}
		return ""
	}
	for i, s := range all {
		all[i] = s[strings.LastIndexByte(s, ' ')+1:]
	}
	return ansi.Truncate(strings.Join(all, "  "), m.width, "…")
}

// helpLines returns the keys and the commands.
func (m *model) helpLines() []string {
	all := []string{bold.Render("keys")}
	leaves := [][2]string{{"q, Ctrl-C", "leave; the team goes on"}, {"Ctrl-Z", "leave for a while; fg comes back"}}
	if m.leave.Ends {
		leaves = [][2]string{{"q, Ctrl-C", "leave; the cluster ends, and the goal is kept"}}
	}
	for _, k := range append([][2]string{
		{"Tab, 1 to 5", "next page, one of the pages; Shift+Tab goes back"},
		{"↑ ↓ j k", "move; also PgUp, PgDn, g and G for the ends"},
		{"Enter, Esc", "go in, go back"},
		{"Shift+↑ ↓", "the conversation of the next agent"},
		{": /", "a command, a filter; Tab completes a command"},
		{"a y n", "answer a question; approve or allow; reject or refuse"},
		{"t w", "allow a call for the task, or always"},
		{"m u", "write to the member; urgent"},
		{"a r c", "on the board: assign, release, cancel"},
		{"s d", "stop the member, or drain it"},
		{"v", "calls and results whole, and short again"},
		{"Alt+Enter, ↑ ↓", "typing: another line; what was typed before"},
	}, leaves...) {
		all = append(all, helpLine(m.width, k[0], k[1])...)
	}
	all = append(all, "", bold.Render("commands"))
	for _, c := range commands() {
		all = append(all, helpLine(m.width, ":"+strings.TrimSpace(c.name+" "+c.args), c.about)...)
	}
	return all
}

func helpLine(width int, what, about string) []string {
	const column = 34
	if width < 2*column {
		return append([]string{" " + what}, indented(styled(faint, lines(about, width-4)), 4)...)
	}
	return labelled(" "+what, column+1, styled(faint, lines(about, width-column-1)))
}
