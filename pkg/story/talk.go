package story

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/feed"
	"agentteam/pkg/team"
)

// Tools whose effect is told by the facts that follow from them; only their errors are
// told.
var facts = []string{
	"create_task", "create_tasks", "update_task", "claim_task", "release_task",
	"send_message", "broadcast", "ask_user", "spawn_teammate", "remove_teammate", "finish_team", "TeamCreate", "TeamDelete",
}

// Tools whose results are of no use to those who watch.
var reading = []string{"read_file", "write_file", "edit_file", "list_tasks", "get_task", "list_teammates", "TeamCollect"}

// says tells what an agent says.
func (s *Story) says(e feed.Entry, text string) []string {
	return s.text(line{at: e.Time, who: e.AgentID, task: s.agent(e.AgentID).task, body: text})
}

// called takes in a tool call, and returns what tells it.
func (s *Story) called(e feed.Entry, who *agent) func() []string {
	b := e.Event.Event
	tool := team.NativeTool(b.ToolCallName)
	c := &call{tool: tool, at: e.Time}
	c.text, c.more = callText(tool, b.Delta)
	s.calls[key(e)] = c
	if who.doing == "" || tool == "bash" { // of several at once, that which takes longest
		who.doing, who.calling, who.since = tool, key(e), e.Time
	}
	var args struct {
		To    team.AgentID `json:"to"`
		Await bool         `json:"await_reply"`
	}
	switch {
	case tool == "send_message" && json.Unmarshal([]byte(b.Delta), &args) == nil && args.Await:
		who.asks = args.To
	case tool == "ask_user":
		who.asks = team.UserAgent
	}
	task := who.task
	switch {
	case s.o.Full:
		return s.now(func() []string {
			return s.text(line{at: e.Time, who: e.AgentID, task: task, mark: "→", body: b.ToolCallName + " " + b.Delta, style: faint})
		})
	case slices.Contains(facts, tool) && !s.o.Journal:
		return silent
	}
	return s.now(func() []string {
		l := line{at: e.Time, who: e.AgentID, task: task, body: c.text, style: faint}
		if c.more > 0 {
			l.beside = more(c.more)
		}
		lines := s.one(l)
		s.lastOf = key(e)
		return lines
	})
}

// key tells a call from those of other agents.
func key(e feed.Entry) string { return string(e.AgentID) + " " + e.Event.Event.ToolCallID }

// returned takes in the result of a call, and returns what tells it.
func (s *Story) returned(e feed.Entry, who *agent) func() []string {
	b := e.Event.Event
	c := s.calls[key(e)]
	delete(s.calls, key(e))
	if who.calling == key(e) {
		who.doing, who.calling, who.since = "", "", e.Time
		for k, o := range s.calls { // one of several has ended
			if strings.HasPrefix(k, string(e.AgentID)+" ") {
				who.doing, who.calling, who.since = o.tool, k, o.at
			}
		}
	}
	if c == nil {
		c = &call{tool: team.NativeTool(b.ToolCallName), at: e.Time}
	}
	body := line{at: e.Time, who: e.AgentID, task: who.task, mark: "│", style: faint}
	if s.o.Full {
		body.mark, body.body = "←", b.Content
		return s.now(func() []string { return s.text(body) })
	}
	if text, failed := failure(b.Content); failed {
		body.mark, body.style, body.body = "✗", red, c.tool+": "+text
		return s.now(func() []string { return s.text(body) })
	}
	if c.tool == "finish_team" || c.tool == "TeamDelete" {
		return s.now(func() []string { return s.fact(e.Time, e.AgentID, green, "✓", "ends the goal") })
	}
	if slices.Contains(facts, c.tool) || slices.Contains(reading, c.tool) {
		return silent
	}
	time := ""
	if d := e.Time.Sub(c.at); d >= spanShown {
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
		return silent
	}
	return s.now(func() []string { return s.folded(body, key(e), c, lines, status, time) })
}

// spanShown is how long a call takes at least for its time to be told.
const spanShown = time.Second

// folded tells the first lines of a result.
func (s *Story) folded(body line, id string, c *call, lines []string, status, time string) (told []string) {
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
		body.body, body.beside = l, ""
		if i == 0 {
			if status != "" {
				body.style, body.mark, body.body = red, "✗", strings.TrimSuffix(status+": "+l, ": ")
			}
			if s.lastOf != id && c.text != "" { // something came between
				body.body += "   (" + clip(c.text, 24) + ")"
			}
		}
		if i == len(lines)-1 {
			if rest > 0 {
				body.beside = more(rest)
			}
			body.beside = strings.TrimPrefix(strings.TrimSuffix(body.beside+", "+time, ", "), ", ")
		}
		told = append(told, s.one(body)...)
	}
	return told
}

// more is how many lines are not shown.
func more(lines int) string {
	if lines == 1 {
		return "+1 line"
	}
	return fmt.Sprintf("+%d lines", lines)
}

// failure returns the error that a tool's result is, if it is one.
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

// maxValue is how many characters of an argument are told.
const maxValue = 60

// Arguments that tell by themselves what a call is about, the first of them first.
var chief = []string{"pattern", "path", "file_path", "query", "url", "task_id", "name", "role", "to"}

// callText is a call in one line, and how many lines more a command has.
func callText(tool, raw string) (text string, more int) {
	var args map[string]any
	if json.Unmarshal([]byte(raw), &args) != nil {
		return "· " + tool + " " + oneLine(raw), 0
	}
	if command, ok := args["command"].(string); ok && tool == "bash" {
		lines := contentLines(command)
		if len(lines) == 0 {
			return "$", 0
		}
		return "$ " + oneLine(lines[0]), len(lines) - 1
	}
	text = "· " + tool
	for _, name := range chief {
		if v, ok := args[name].(string); ok {
			text += " " + value(v)
			delete(args, name)
		}
	}
	names := make([]string, 0, len(args))
	for name := range args {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
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
	return clip(oneLine(v), maxValue)
}

// mailed tells a message.
func (s *Story) mailed(e feed.Entry) func() []string {
	var m team.Message
	if json.Unmarshal(e.Event.Event.Value, &m) != nil {
		return silent
	}
	if a := s.agents[m.To]; a != nil && a.asks == m.From {
		a.asks = ""
	}
	if m.Asks() {
		s.agent(m.From).asks = m.To
	}
	l := line{at: e.Time, who: m.From, mark: "→", style: plain}
	switch m.Type {
	case team.MsgIdle, team.MsgTaskAssigned: // what follows tells it
		if !s.o.Full {
			return silent
		}
	case team.MsgPlanRequest, team.MsgPlanResponse: // what the records tell, but to a person
		if !s.o.Full && !s.person(m.To) {
			return silent
		}
	case team.MsgShutdownRequest, team.MsgShutdownResponse:
		if !s.o.Full {
			l.mark = ""
			l.body = because(s.farewell(m), oneLine(m.Content))
			return s.now(func() []string { return s.text(l) })
		}
	case team.MsgWatchdog, team.MsgTaskNotification:
		if m.Type == team.MsgWatchdog && strings.HasPrefix(m.Content, allIdle) && !s.o.Full {
			return s.quiet(e)
		}
		if !s.o.Full {
			l.style, l.body = faint, s.addressee(m.To)+": "+oneLine(m.Content)
			return s.now(func() []string { return s.one(l) })
		}
	}
	return s.now(func() []string {
		to := s.addressee(m.To) + ": "
		l.body = to + m.Content
		if m.Asks() && s.person(m.To) {
			l.mark, l.style, l.task = "?", yellow, m.TaskID
			l.body += s.howToAnswer(m)
		}
		// What a person wrote, or is written, is told as a whole.
		if s.o.Full || s.person(m.From) || s.person(m.To) {
			return s.text(l)
		}
		fold := max(s.o.Fold, 3)
		lines := s.text(l)
		if len(lines) <= fold {
			return lines
		}
		l.body, l.beside = to+m.Summary, fmt.Sprintf("%d lines", len(lines))
		if m.Summary == "" || m.Summary == team.Summarize(m.Content) {
			l.body = to + oneLine(m.Content)
		}
		return s.one(l)
	})
}

// farewell says what a request to shut down asks for, or how it is answered.
func (s *Story) farewell(m team.Message) string {
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

// allIdle begins the notice to the leader that nobody moves.
const allIdle = "[All Idle]"

// quiet tells that nobody moves, if that is because the team waits for a person; else the leader
// goes on by itself, and what it does is told.
func (s *Story) quiet(e feed.Entry) func() []string {
	var waits []string
	for id, a := range s.agents {
		switch {
		case a.asks != "" && s.person(a.asks):
			waits = append(waits, s.name(id)+" waits for "+s.name(a.asks))
		case a.person && a.task != "":
			waits = append(waits, s.name(id)+" has "+string(a.task))
		}
	}
	slices.Sort(waits)
	text := strings.Join(waits, "; ")
	if text == "" || text == s.waits { // which was told
		return silent
	}
	s.waits = text
	return s.now(func() []string {
		return s.one(line{at: e.Time, body: "the team waits for a person: " + text, style: yellow})
	})
}

// howToAnswer are the lines below a question.
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

func (s *Story) person(a team.AgentID) bool {
	return a == team.UserAgent || s.agents[a] != nil && s.agents[a].person
}

// addressee is how whoever gets a message is told.
func (s *Story) addressee(a team.AgentID) string {
	if a == team.Everyone {
		return "all"
	}
	return s.name(a)
}
