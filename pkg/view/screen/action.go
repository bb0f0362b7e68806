package screen

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// actionKind is the kind of a person's action.
type actionKind string

const (
	answers  actionKind = "answer"
	approves actionKind = "approve"
	rejects  actionKind = "reject"
	writes   actionKind = "write"
	assigns  actionKind = "assign"
	releases actionKind = "release"
	cancels  actionKind = "cancel"
	adds     actionKind = "add"
	stops    actionKind = "stop"
	kills    actionKind = "kill"
	drains   actionKind = "drain"
	compacts actionKind = "compact"
	sets     actionKind = "goal"
	ends     actionKind = "end"
)

// action is an action of a person in a team; fields without a meaning for it are empty.
type action struct {
	kind    actionKind
	team    team.TeamID
	agent   team.AgentID
	task    team.TaskID
	id      string // of a question, a plan or a call
	text    string
	scope   team.Scope
	rule    string // that the scope Always adds
	urgent  bool
	written *written // what was typed for it
}

// question returns the question before an action that cannot be undone, or takes something from a member; "" for other
// actions.
func (m *model) question(d action) string {
	who := line(string(d.agent))
	switch d.kind {
	case approves:
		if d.scope == team.Always {
			return fmt.Sprintf("allow this call, and from now on all by the rule %s?", team.Escaped(d.rule))
		}
	case assigns:
		if t := m.room.state.Tasks[d.task]; t != nil && t.Status == team.InProgress && t.Assignee != d.agent {
			return fmt.Sprintf("take %s from %s, who works on it, and give it to %s?", d.task, line(string(t.Assignee)), who)
		}
	case releases:
		return fmt.Sprintf("take %s from its holder and put it back on the board?", d.task)
	case cancels:
		return fmt.Sprintf("cancel %s?", d.task)
	case stops:
		return fmt.Sprintf("ask %s to leave the team? Without an answer within %v it is stopped by force.", who, stopWait)
	case kills:
		return fmt.Sprintf("stop %s by force, without asking it?", who)
	case drains:
		return fmt.Sprintf("have %s leave the team after its task?", who)
	case compacts:
		return fmt.Sprintf("have %s shorten its conversation? It does not get back what it leaves out.", who)
	case ends:
		return "end the goal, and have all members leave?"
	}
	return ""
}

// doing returns the notice that an action is in progress.
func (d action) doing() string {
	text := map[actionKind]string{answers: "answering NAME", approves: "approving", rejects: "rejecting", writes: "writing to NAME", assigns: "giving ID to NAME", releases: "releasing ID",
		cancels: "cancelling ID", adds: "adding the task", stops: "asking NAME to leave", kills: "stopping NAME", drains: "asking NAME to leave after its task",
		compacts: "asking NAME", sets: "setting the goal", ends: "ending the goal"}[d.kind]
	return strings.NewReplacer(" NAME", strings.TrimSuffix(" "+string(d.agent), " "), "ID", string(d.task)).Replace(text) + " …"
}

// decide handles the keys that answer a question, or decide on a plan or a call, which is opened first: a list shows
// only its beginning. It reports whether it handles the key.
func (m *model) decide(id, pressed string) (tea.Cmd, bool) {
	r := m.room
	if l, ok := r.message(id); ok {
		switch {
		case pressed == "a" && l.Open:
			return tea.Batch(m.toMessage(id), m.answer(l, "")), true
		case pressed == "m", pressed == "u":
			return m.writeTo(l.From, pressed == "u"), true
		}
		return nil, false
	}
	p, ok := r.plan(id)
	if !ok {
		return nil, false
	}
	d := action{id: p.ID, kind: approves}
	ask := "approve the plan of " + string(p.AgentID) + ", with a word or without (Enter; Esc leaves it):"
	switch scopes := scopesOf(p); {
	case pressed == "m", pressed == "u":
		return m.writeTo(p.AgentID, pressed == "u"), true
	case pressed == "n":
		d.kind, ask = rejects, "reject the plan of "+string(p.AgentID)+"; what is to be different:"
		if p.Call != nil {
			ask = "refuse the call of " + string(p.AgentID) + ", with a word or without:"
		}
	case pressed == "y" && p.Call != nil:
		d.scope, ask = team.Once, "allow it once, with a word or without (Enter; Esc leaves it):"
	case pressed == "y":
	case pressed == "t" && slices.Contains(scopes, team.ForTask):
		d.scope, ask = team.ForTask, "allow it for the task, with a word or without (Enter; Esc leaves it):"
	case pressed == "w" && slices.Contains(scopes, team.Always):
		d.scope, d.rule = team.Always, p.Call.Rule
		return m.do(d), true
	default:
		return nil, false
	}
	return tea.Batch(m.toMessage(id), m.prompts(prompt{kind: textLine, ask: ask, then: func(text string) tea.Cmd {
		d.text = text
		return m.do(d)
	}}, "")), true
}

func scopesOf(p client.Plan) []team.Scope {
	if p.Call == nil {
		return nil
	}
	return p.Scopes()
}

// answer prompts for the answer to a question.
func (m *model) answer(l client.StoredMessage, begin string) tea.Cmd {
	ask := "answer " + string(l.From)
	if n := len(l.Choices); n > 0 { // they stand above
		ask += fmt.Sprintf(" (1 to %d)", n)
	}
	return m.prompts(prompt{kind: textLine, ask: ask + ":", then: func(text string) tea.Cmd {
		if text == "" {
			return nil
		}
		return m.do(action{kind: answers, agent: l.From, id: l.ID, text: text})
	}}, begin)
}

// writeTo prompts for a message to a member.
func (m *model) writeTo(a team.AgentID, urgent bool) tea.Cmd {
	ask := "to " + string(a)
	if urgent {
		ask += ", urgent"
	}
	return m.prompts(prompt{kind: textLine, ask: ask + ":", then: func(text string) tea.Cmd {
		if text == "" {
			return nil
		}
		return m.do(action{kind: writes, agent: a, text: text, urgent: urgent})
	}}, "")
}

// do performs an action, after a question if it needs one.
func (m *model) do(d action) tea.Cmd {
	if d.team = m.room.id; d.text != "" {
		d.written = m.written
	}
	does := func() tea.Cmd {
		m.notice, m.failed = d.doing(), false
		return m.behind.do(d)
	}
	ask := m.question(d)
	if ask == "" {
		return does()
	}
	var opens tea.Cmd
	if d.scope == team.Always {
		opens = m.toMessage(d.id)
	}
	return tea.Batch(opens, m.asks(ask, does))
}

// did shows the outcome of an action. It leaves the page of an answered or decided item.
func (m *model) did(msg done) tea.Cmd {
	if msg.err != nil {
		m.fails(msg.err)
		return m.retry(msg.action)
	}
	m.notice, m.failed = msg.text, false
	if p := m.page(); p.kind == messagePage && p.about == msg.action.id {
		return m.back()
	}
	return nil
}
