package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// textOf returns the lines for a text of an agent.
func (s *Story) textOf(e feed.Entry, text string) []string {
	return s.text(line{at: e.Time, who: e.AgentID, task: s.team.Member(e.AgentID).Task, body: text})
}

// called returns the lines for a tool call.
func (s *Story) called(e feed.Entry) []string {
	b, task := e.Event.Event, s.team.Member(e.AgentID).Task
	tool := team.ToolOf(b.ToolCallName, b.Delta)
	switch {
	case s.o.Full:
		return append(s.Flush(), s.text(line{at: e.Time, who: e.AgentID, task: task, mark: "→", body: b.ToolCallName + " " + b.Delta, style: faint})...)
	case s.o.Traits(tool).Silent && !s.o.Journal:
		return nil
	}
	text, rest := callText(tool, b.Delta)
	l := line{at: e.Time, who: e.AgentID, task: task, body: text, style: faint}
	if rest > 0 {
		l.extra = more(rest)
	}
	told := append(s.Flush(), s.one(l)...)
	s.lastOf = key(e)
	return told
}

// key identifies a call among those of all agents.
func key(e feed.Entry) string { return string(e.AgentID) + " " + e.Event.Event.ToolCallID }

// returned returns the lines for the result of a call.
func (s *Story) returned(e feed.Entry, ended state.CallEnded) []string {
	b, c := e.Event.Event, ended.Call
	if c == nil {
		c = &state.Call{Tool: team.NativeTool(b.ToolCallName), Began: e.Time}
	}
	body := line{at: e.Time, who: e.AgentID, task: s.team.Member(e.AgentID).Task, mark: "│", style: faint}
	if s.o.Full {
		body.mark, body.body = "←", b.Content
		return append(s.Flush(), s.text(body)...)
	}
	if text, failed := failure(b.Content); failed {
		body.mark, body.style, body.body = "✗", red, c.Tool+": "+text
		return append(s.Flush(), s.text(body)...)
	}
	if c.Tool == "finish_team" || c.Tool == "TeamDelete" {
		return append(s.Flush(), s.fact(e.Time, e.AgentID, green, "✓", "ends the goal")...)
	}
	if t := s.o.Traits(c.Tool); t.Silent || t.Terse {
		return nil
	}
	time := ""
	if d := e.Time.Sub(c.Began); d >= spanShown {
		time = span(d)
	}
	lines := contentLines(b.Content)
	status := ""
	if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], "exit status ") {
		status, lines = lines[n-1], lines[:n-1]
		if m := len(lines); m > 0 { // what a command says last is why it failed
			lines = []string{lines[m-1]}
		}
	}
	if len(lines) == 1 && lines[0] == "(no output)" {
		lines = nil
	}
	if len(lines) == 0 && time == "" && status == "" {
		return nil
	}
	return append(s.Flush(), s.folded(body, key(e), c, lines, status, time)...)
}

// spanShown is the shortest duration of a call that is shown.
const spanShown = time.Second

// folded returns the first lines of a result.
func (s *Story) folded(body line, id string, c *state.Call, lines []string, status, time string) (told []string) {
	shown := max(s.o.Fold, 1)
	rest := len(lines) - shown
	if len(lines) > shown {
		lines = lines[:shown]
	}
	if len(lines) == 0 {
		lines = []string{"done"}
		if status != "" {
			lines = []string{""}
		}
	}
	for i, l := range lines {
		body.body, body.extra = l, ""
		if i == 0 {
			if status != "" {
				body.style, body.mark, body.body = red, "✗", strings.TrimSuffix(status+": "+l, ": ")
			}
			if text, _ := callText(c.Tool, c.Args); s.lastOf != id && c.Name != "" { // something came between
				body.body += "   (" + team.Clip(text, 24) + ")"
			}
		}
		if i == len(lines)-1 {
			if rest > 0 {
				body.extra = more(rest)
			}
			body.extra = strings.TrimPrefix(strings.TrimSuffix(body.extra+", "+time, ", "), ", ")
		}
		told = append(told, s.one(body)...)
	}
	return told
}

// more returns the number of hidden lines.
func more(lines int) string { return "+" + explain.Counted(lines, "line") }

// failure returns the error in a tool's result, if it is one.
func failure(content string) (text string, failed bool) {
	if !strings.HasPrefix(content, "{") || !strings.Contains(content, `"error"`) {
		return "", false
	}
	var r struct {
		Error, Status string
	}
	err := json.Unmarshal([]byte(content), &r)
	return r.Error, err == nil && r.Status == "error" && r.Error != ""
}

func contentLines(text string) (lines []string) {
	for l := range strings.Lines(text) {
		if l = strings.TrimRight(l, "\r\n "); strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// maxValue bounds the shown characters of an argument.
const maxValue = 60

// Arguments that characterize a call, the most important first.
var chief = []string{"pattern", "path", "file_path", "query", "url", "task_id", "name", "role", "to"}

// callText returns a call in one line, and the number of further lines of a command.
func callText(tool, raw string) (text string, more int) {
	var args map[string]any
	if json.Unmarshal([]byte(raw), &args) != nil {
		return "· " + tool + " " + team.OneLine(raw), 0
	}
	if command, ok := args["command"].(string); ok && tool == "bash" {
		lines := contentLines(command)
		if len(lines) == 0 {
			return "$", 0
		}
		return "$ " + team.OneLine(lines[0]), len(lines) - 1
	}
	text = "· " + tool
	for _, name := range chief {
		if v, ok := args[name].(string); ok {
			text += " " + value(v)
			delete(args, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		v, ok := args[name].(string)
		if !ok {
			data, _ := json.Marshal(args[name]) // which came from JSON
			v = string(data)
		}
		text += " " + name + "=" + value(v)
	}
	return text, 0
}

func value(v string) string {
	if n := strings.Count(strings.TrimRight(v, "\n"), "\n"); n > 0 {
		return fmt.Sprintf("(%d lines)", n+1)
	}
	return team.Clip(team.OneLine(v), maxValue)
}

// mailed returns the lines for a message.
func (s *Story) mailed(e feed.Entry, m team.Message) []string {
	l := line{at: e.Time, who: m.From, mark: "→", style: plain}
	switch m.Type {
	case team.MsgIdle, team.MsgTaskAssigned: // what follows tells it
		if !s.o.Full {
			return nil
		}
	case team.MsgPlanRequest, team.MsgPlanResponse: // what the records tell, but to a person
		if !s.o.Full && (!s.team.IsPerson(m.To) || s.team.Plans[m.RequestID].Call != nil) {
			return nil
		}
	case team.MsgShutdownRequest, team.MsgShutdownResponse:
		if !s.o.Full {
			l.mark = ""
			l.body = because(s.leaving(m), team.OneLine(m.Content))
			return append(s.Flush(), s.text(l)...)
		}
	case team.MsgWatchdog, team.MsgTaskNotification:
		if m.Type == team.MsgWatchdog && strings.HasPrefix(m.Content, team.AllIdle) && !s.o.Full {
			return s.quiet(e)
		}
		if !s.o.Full {
			l.style, l.body = faint, s.addressee(m.To)+": "+team.OneLine(m.Content)
			return append(s.Flush(), s.one(l)...)
		}
	}
	return append(s.Flush(), s.mail(l, m)...)
}

// mail returns the lines for a message with its text, in the form of l.
func (s *Story) mail(l line, m team.Message) []string {
	to := s.addressee(m.To) + ": "
	l.body = to + m.Content
	if m.Asks() && s.team.IsPerson(m.To) {
		l.mark, l.style, l.task = "?", yellow, m.TaskID
		l.body += s.howToAnswer(m)
	}
	// Mail from and to a person is shown in full.
	if s.o.Full || s.team.IsPerson(m.From) || s.team.IsPerson(m.To) {
		return s.text(l)
	}
	fold := max(s.o.Fold, 3)
	lines := s.text(l)
	if len(lines) <= fold {
		return lines
	}
	l.body, l.extra = to+m.Summary, fmt.Sprintf("%d lines", len(lines))
	if m.Summary == "" || m.Summary == team.Summarize(m.Content) {
		l.body = to + team.OneLine(m.Content)
	}
	return s.one(l)
}

// leaving describes a request to shut down, or its answer.
func (s *Story) leaving(m team.Message) string {
	switch {
	case m.Type == team.MsgShutdownRequest && m.Drain:
		return "asks " + s.addressee(m.To) + " to leave after its task"
	case m.Type == team.MsgShutdownRequest:
		return "asks " + s.addressee(m.To) + " to leave"
	case m.Approve != nil && *m.Approve:
		return "agrees to leave"
	}
	return "refuses to leave"
}

// quiet returns the line that no member moves, if the team waits for a person; else the leader continues automatically,
// and its actions are shown.
func (s *Story) quiet(e feed.Entry) []string {
	var waits []string
	for id, m := range s.team.Members {
		switch {
		case m.Asks != "" && s.team.IsPerson(m.Asks):
			waits = append(waits, s.name(id)+" waits for "+s.name(m.Asks))
		case m.Person && m.Task != "":
			waits = append(waits, s.name(id)+" has "+string(m.Task))
		}
	}
	slices.Sort(waits)
	text := strings.Join(waits, "; ")
	if text == "" || text == s.waits { // which was told
		return nil
	}
	s.waits = text
	return append(s.Flush(), s.one(line{at: e.Time, body: "the team waits for a person: " + text, style: yellow})...)
}

// howToAnswer returns the lines below a question.
func (s *Story) howToAnswer(q team.Message) (text string) {
	for _, choice := range q.Numbered() {
		text += "\n  " + choice
	}
	if s.o.Answer == nil {
		return text
	}
	if command := s.o.Answer(q); command != "" {
		text += "\nanswer: " + command
	}
	return text
}

// addressee returns the shown name of a message's receiver.
func (s *Story) addressee(a team.AgentID) string {
	if a == team.Everyone {
		return "all"
	}
	return s.name(a)
}
