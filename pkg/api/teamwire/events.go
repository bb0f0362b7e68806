package teamwire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// This file is the one place where what happens in a team becomes what clients of this wire
// know. What they have no word for (tasks, members, plans) is left out.

// Envelope is an event and whose it is.
type Envelope struct {
	TeamID   team.TeamID  `json:"team_id"`
	AgentID  team.AgentID `json:"agent_id"`
	RoleName *string      `json:"role_name"`
	RunID    *string      `json:"run_id"` // always null
	Event    any          `json:"event"`  // one of the types below
}

// base is what each event has.
type base struct {
	Type      string           `json:"type"`
	Timestamp *int64           `json:"timestamp"` // milliseconds since 1970; null of a text that is being written
	RawEvent  *json.RawMessage `json:"raw_event"` // always null
}

type (
	runStarted struct {
		base
		ThreadID  string  `json:"thread_id"`
		RunID     string  `json:"run_id"`
		AgentID   string  `json:"agent_id"`
		RootRunID string  `json:"root_run_id"`
		TraceID   *string `json:"trace_id"` // always null
	}
	runFinished struct {
		base
		ThreadID string          `json:"thread_id"`
		RunID    string          `json:"run_id"`
		Result   json.RawMessage `json:"result"`
	}
	runError struct {
		base
		Message string  `json:"message"`
		Code    *string `json:"code"`
		RunID   string  `json:"run_id"`
	}
	textStart struct {
		base
		MessageID string `json:"message_id"`
		Role      string `json:"role"`
		RunID     string `json:"run_id"`
	}
	textContent struct {
		base
		MessageID string `json:"message_id"`
		Delta     string `json:"delta"`
	}
	textEnd struct {
		base
		MessageID string `json:"message_id"`
	}
	toolCallStart struct {
		base
		ToolCallID      string `json:"tool_call_id"`
		ToolCallName    string `json:"tool_call_name"`
		ParentMessageID string `json:"parent_message_id"`
	}
	toolCallArgs struct {
		base
		ToolCallID string `json:"tool_call_id"`
		Delta      string `json:"delta"`
	}
	toolCallEnd struct {
		base
		ToolCallID string `json:"tool_call_id"`
	}
	toolCallResult struct {
		base
		ToolCallID string `json:"tool_call_id"`
		Content    string `json:"content"`
		Role       string `json:"role"`
	}
	userMessage struct {
		base
		Content   string       `json:"content"`
		ToAgentID team.AgentID `json:"to_agent_id"`
	}
	teamMessage struct {
		base
		Content     string       `json:"content"`
		FromAgentID team.AgentID `json:"from_agent_id"`
		ToAgentID   team.AgentID `json:"to_agent_id"`
	}
	retry struct {
		base
		RunID          string  `json:"run_id"`
		APIType        string  `json:"api_type"`
		Attempt        int     `json:"attempt"` // 0: all tries of a call have failed
		MaxAttempts    int     `json:"max_attempts"`
		BackoffSeconds float64 `json:"backoff_seconds"`
		ErrorMessage   string  `json:"error_message"`
	}
	compactionFinished struct {
		base
		RunID                 string  `json:"run_id"`
		Phase                 string  `json:"phase"`
		Mode                  string  `json:"mode"`
		Success               bool    `json:"success"`
		TriggerReason         string  `json:"trigger_reason"`
		OriginalMessageCount  *int    `json:"original_message_count"`
		CompactedMessageCount *int    `json:"compacted_message_count"`
		OriginalTokenCount    *int    `json:"original_token_count"`
		CompactedTokenCount   *int    `json:"compacted_token_count"`
		MaxContextTokens      *int    `json:"max_context_tokens"`
		Error                 *string `json:"error"`
	}
)

// told are the events of the feed of which a converter makes something. Those of members
// tell whom a broadcast is for.
var told = []team.EventType{
	team.RunStarted, team.RunFinished, team.RunError, team.TextChunk, team.ToolCallChunk, team.ToolCallResult,
	team.Retry, team.Compacted, team.MailSent,
	team.MemberCreated, team.MemberJoined, team.MemberStopped, team.MemberRemoved,
}

// converter makes envelopes of a team's feed, in its order. It is for one reader.
type converter struct {
	team    team.TeamID
	texts   stream.Texts
	roles   map[team.AgentID]string
	present []team.AgentID            // members who have not left, in order of joining
	people  map[team.AgentID]bool     // seats, not agents
	runs    map[team.AgentID]string   // run that is open
	calls   map[team.AgentID][]string // calls without a result, in their order
}

func newConverter(id team.TeamID) *converter {
	return &converter{team: id, roles: map[team.AgentID]string{}, people: map[team.AgentID]bool{}, runs: map[team.AgentID]string{}, calls: map[team.AgentID][]string{}}
}

// know makes known who was in the team before the feed's part that is converted.
func (c *converter) know(members []team.Member) {
	for _, m := range members {
		c.roles[m.AgentID], c.people[m.AgentID] = m.Role, m.Backend == team.Person
		if m.State != team.Stopped && m.Backend != team.Person {
			c.present = append(c.present, m.AgentID)
		}
	}
}

// convert returns the envelopes of an item; of many there are none.
func (c *converter) convert(i stream.Item) []Envelope {
	if i.Delta != nil {
		return c.pieces(c.texts.Delta(*i.Delta), nil)
	}
	all := c.entry(*i.Entry)
	switch e := i.Entry; e.Event.Event.Type {
	case team.RunStarted, team.ToolCallChunk, team.ToolCallResult, team.Retry, team.Compacted:
		all = append(all, c.pieces(c.texts.Run(e.AgentID, e.RunID), nil)...)
	}
	return all
}

func (c *converter) entry(e client.Entry) []Envelope {
	at, body := &e.Event.Event.Timestamp, e.Event.Event
	if e.RoleName != "" {
		c.roles[e.AgentID] = e.RoleName
	}
	one := func(event any) []Envelope { return []Envelope{c.envelope(e.AgentID, event)} }
	of := func(name team.EventType) base { return base{Type: string(name), Timestamp: at} }
	switch body.Type {
	case team.RunStarted:
		c.runs[e.AgentID] = e.RunID
		return one(runStarted{of(team.RunStarted), body.ThreadID, e.RunID, string(e.AgentID), e.RunID, nil})
	case team.RunFinished:
		return append(c.cut(e.AgentID, at), one(runFinished{of(team.RunFinished), body.ThreadID, e.RunID, body.Result})...)
	case team.RunError:
		return append(c.cut(e.AgentID, at), one(runError{of(team.RunError), body.Message, orNull(body.Code), e.RunID})...)
	case team.TextChunk:
		return c.pieces(c.texts.Stored(e), at)
	case team.ToolCallChunk:
		return c.toolCall(e)
	case team.ToolCallResult:
		c.calls[e.AgentID] = slices.DeleteFunc(c.calls[e.AgentID], func(id string) bool { return id == body.ToolCallID })
		return one(toolCallResult{of(team.ToolCallResult), body.ToolCallID, body.Content, "tool"})
	case team.Retry:
		var r team.Retrying
		_ = json.Unmarshal(body.Value, &r) // what is no such value tells that the tries are over
		return one(retry{of(team.Retry), e.RunID, "openai", r.Tried, r.Of, r.WaitSeconds, body.Message})
	case team.Compacted:
		return one(compactionFinished{base: of(team.Compacted), RunID: e.RunID, Phase: "before_model", Mode: "regular", Success: true, TriggerReason: body.Message})
	case team.MailSent:
		return c.mail(e)
	default:
		c.member(e)
	}
	return nil
}

// noResult is the result of a call whose run ended before it had one.
const noResult = "The run ended before this call did; it may or may not have taken effect."

// cut returns what ends the text and the calls that an agent has open, since its run is over.
func (c *converter) cut(a team.AgentID, at *int64) []Envelope {
	all := c.pieces(c.texts.Cut(a), at)
	for _, id := range c.calls[a] {
		all = append(all, c.envelope(a, toolCallResult{base{Type: string(team.ToolCallResult), Timestamp: at}, id, noResult, "tool"}))
	}
	delete(c.calls, a)
	delete(c.runs, a)
	return all
}

// close returns what ends all that is open, since nothing more is told of a goal that has come
// to that end: its runs are over, or are being ended.
func (c *converter) close(end team.Status) (all []Envelope) {
	for _, a := range slices.Sorted(maps.Keys(c.runs)) {
		id, code := c.runs[a], team.RunStopped
		all = append(all, c.cut(a, nil)...)
		if end == team.TeamStopped || end == team.TeamFailed {
			all = append(all, c.envelope(a, runError{base{Type: string(team.RunError)}, "the goal is " + string(end), &code, id}))
		} else { // nobody stops the last run of a goal that is finished, which is mostly the leader's
			all = append(all, c.envelope(a, runFinished{base{Type: string(team.RunFinished)}, string(a), id, json.RawMessage("null")}))
		}
	}
	return append(all, c.pieces(c.texts.CutAll(), nil)...)
}

func (c *converter) envelope(a team.AgentID, event any) Envelope {
	return Envelope{TeamID: c.team, AgentID: a, RoleName: orNull(c.roles[a]), Event: event}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (c *converter) pieces(pieces []stream.Piece, at *int64) (all []Envelope) {
	for _, p := range pieces {
		var event any
		switch p.Kind {
		case stream.Begin:
			event = textStart{base{Type: "TEXT_MESSAGE_START", Timestamp: at}, p.MessageID, "assistant", p.RunID}
		case stream.More:
			event = textContent{base{Type: "TEXT_MESSAGE_CONTENT", Timestamp: at}, p.MessageID, p.Text}
		case stream.End:
			event = textEnd{base{Type: "TEXT_MESSAGE_END", Timestamp: at}, p.MessageID}
		}
		all = append(all, c.envelope(p.AgentID, event))
	}
	return all
}

func (c *converter) toolCall(e client.Entry) []Envelope {
	at, body := &e.Event.Event.Timestamp, e.Event.Event
	c.calls[e.AgentID] = append(c.calls[e.AgentID], body.ToolCallID)
	all := []any{toolCallStart{base{Type: "TOOL_CALL_START", Timestamp: at}, body.ToolCallID, body.ToolCallName, body.MessageID}}
	if args := argsOf(body); args != "" {
		all = append(all, toolCallArgs{base{Type: "TOOL_CALL_ARGS", Timestamp: at}, body.ToolCallID, args})
	}
	all = append(all, toolCallEnd{base{Type: "TOOL_CALL_END", Timestamp: at}, body.ToolCallID})
	envelopes := make([]Envelope, len(all))
	for i, event := range all {
		envelopes[i] = c.envelope(e.AgentID, event)
	}
	return envelopes
}

// question is how pages of this wire are asked something.
type question struct {
	Question string   `json:"question"`
	Header   string   `json:"header"` // stands before the answer that the page sends
	Type     string   `json:"type"`   // choice or text
	Options  []option `json:"options,omitempty"`
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// argsOf are the arguments of a call. Those of ask_user have questions besides, from which
// pages make a box to answer in.
func argsOf(body team.EventBody) string {
	var in struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
	}
	var all map[string]any
	if body.ToolCallName != "ask_user" || json.Unmarshal([]byte(body.Delta), &in) != nil || in.Question == "" || json.Unmarshal([]byte(body.Delta), &all) != nil || all["questions"] != nil {
		return body.Delta
	}
	q := question{Question: in.Question, Header: "Answer", Type: "text"}
	for _, c := range in.Choices {
		q.Type, q.Options = "choice", append(q.Options, option{Label: c})
	}
	all["questions"] = []question{q}
	args, err := marshal(all)
	if err != nil {
		return body.Delta
	}
	return strings.TrimSpace(string(args))
}

// mail is what people and members write to each other; what the team's own programs write is
// left out. Each receiver of a broadcast gets an envelope. Mail to a person is the sender's: pages
// take whoever has an envelope for an agent at work, and of a person's run no end is told.
func (c *converter) mail(e client.Entry) (all []Envelope) {
	var m team.Message
	if json.Unmarshal(e.Event.Event.Value, &m) != nil {
		return nil
	}
	to := []team.AgentID{m.To}
	if m.To == team.Everyone {
		to = slices.DeleteFunc(slices.Clone(c.present), func(a team.AgentID) bool { return a == m.From })
		if m.From != team.Leader && !slices.Contains(to, team.Leader) {
			to = slices.Insert(to, 0, team.Leader) // always there, also while no process leads
		}
	}
	at := &e.Event.Event.Timestamp
	for _, a := range to {
		envelope := Envelope{TeamID: c.team, AgentID: a}
		if a == team.UserAgent || c.people[a] {
			envelope.AgentID = m.From
		}
		switch m.Type {
		case team.MsgUser:
			envelope.RoleName = orNull("user")
			envelope.Event = userMessage{base{Type: "USER_MESSAGE", Timestamp: at}, m.Content, a}
		case team.MsgMessage, team.MsgBroadcast:
			envelope.Event = teamMessage{base{Type: "TEAM_MESSAGE", Timestamp: at}, m.Content, m.From, a}
		default:
			return nil
		}
		all = append(all, envelope)
	}
	return all
}

// member takes in who is there.
func (c *converter) member(e client.Entry) {
	var m team.Member
	if json.Unmarshal(e.Event.Event.Value, &m) != nil || m.AgentID == "" {
		return
	}
	if c.people[m.AgentID] = m.Backend == team.Person; m.Backend == team.Person {
		return
	}
	c.present = slices.DeleteFunc(c.present, func(a team.AgentID) bool { return a == m.AgentID })
	if t := e.Event.Event.Type; t != team.MemberStopped && t != team.MemberRemoved {
		c.present = append(c.present, m.AgentID)
	}
}
