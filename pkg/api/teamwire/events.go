package teamwire

import (
	"encoding/json"
	"slices"
	"time"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// This file alone converts a team's feed into this wire's events. It omits entries without an equivalent (tasks,
// members, plans).

// Envelope is an event with the agent that it belongs to.
type Envelope struct {
	TeamID   team.TeamID  `json:"team_id"`
	AgentID  team.AgentID `json:"agent_id"`
	RoleName *string      `json:"role_name"`
	RunID    *string      `json:"run_id"` // that the agent is in; null between two
	Event    any          `json:"event"`  // one of the types below
}

// base has the fields of every event.
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
	text struct {
		base
		MessageID string `json:"message_id"`
		Delta     string `json:"delta,omitempty"` // none at its end
	}
	toolCallStart struct {
		base
		ToolCallID      string `json:"tool_call_id"`
		ToolCallName    string `json:"tool_call_name"`
		ParentMessageID string `json:"parent_message_id"`
	}
	toolCall struct {
		base
		ToolCallID string `json:"tool_call_id"`
		Delta      string `json:"delta,omitempty"` // of its arguments; none at its end
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

// reported are the events of the feed that a converter uses. Those of members show who receives a broadcast.
var reported = []team.EventType{
	team.RunStarted, team.RunFinished, team.RunError, team.TextChunk, team.ToolCallChunk, team.ToolCallResult,
	team.Retry, team.Compacted, team.MailSent,
	team.MemberCreated, team.MemberJoined, team.MemberStopped, team.MemberRemoved,
}

// converter converts a team's feed, in its order, into envelopes. It is for one reader.
type converter struct {
	id   team.TeamID
	team *state.Team
	runs map[team.AgentID]string // that are open
}

func newConverter(id team.TeamID) *converter {
	return &converter{id, state.New(), map[team.AgentID]string{}}
}

// know adds the members from before the converted part of the feed.
func (c *converter) know(members []team.Member) { c.team.KnowMembers(members) }

// convert returns the envelopes of an item; many items have none.
func (c *converter) convert(i stream.Item) (all []Envelope) {
	if i.Delta != nil {
		return c.envelopes(c.team.Write(*i.Delta, time.Time{}), nil, nil, "")
	}
	at, body := &i.Entry.Event.Event.Timestamp, i.Entry.Event.Event
	changes, written := c.team.Apply(*i.Entry), at
	switch body.Type {
	case team.RunStarted, team.ToolCallChunk, team.ToolCallResult, team.Retry, team.Compacted:
		written = nil // they make known what is being written
	}
	switch body.Type {
	case team.Retry:
		var r team.Retrying
		_ = json.Unmarshal(body.Value, &r) // what is no such value tells that the tries are over
		all = append(all, c.envelope(i.Entry.AgentID, retry{base{Type: string(team.Retry), Timestamp: at}, i.Entry.RunID, "openai", r.Tried, r.Of, r.WaitSeconds, body.Message}))
	case team.Compacted:
		all = append(all, c.envelope(i.Entry.AgentID, compactionFinished{base: base{Type: string(team.Compacted), Timestamp: at}, RunID: i.Entry.RunID,
			Phase: "before_model", Mode: "regular", Success: true, TriggerReason: body.Message}))
	}
	return append(all, c.envelopes(changes, at, written, "")...)
}

// close returns the events that end everything open, since no more events follow for a goal that has ended: its runs
// are over, or are being ended.
func (c *converter) close(end team.Status) []Envelope {
	return c.envelopes(c.team.Close(), nil, nil, end)
}

// noResult is the result of a call whose run ended before it had one.
const noResult = "The run ended before this call did; it may or may not have taken effect."

// envelopes returns the envelopes of changes at a time, of texts at another, or at the end of the goal.
func (c *converter) envelopes(changes []state.Change, at, written *int64, end team.Status) (all []Envelope) {
	tell := func(a team.AgentID, event any) { all = append(all, c.envelope(a, event)) }
	of := func(name string) base { return base{Type: name, Timestamp: at} }
	for _, change := range changes {
		switch x := change.(type) {
		case state.RunBegan:
			if c.runs[x.AgentID] = x.RunID; x.Started {
				tell(x.AgentID, runStarted{of("RUN_STARTED"), x.ThreadID, x.RunID, string(x.AgentID), x.RunID, nil})
			}
		case state.RunEnded:
			if x.Body.Type != "" || x.Started {
				tell(x.AgentID, runEnd(x, of, end))
			}
			delete(c.runs, x.AgentID)
		case state.Chunk:
			tell(x.AgentID, chunkOf(x, written))
		case state.CallBegan:
			tell(x.AgentID, toolCallStart{of("TOOL_CALL_START"), x.Call.ID, x.Call.Name, x.Call.MessageID})
			if args := argsOf(*x.Call); args != "" {
				tell(x.AgentID, toolCall{of("TOOL_CALL_ARGS"), x.Call.ID, args})
			}
			tell(x.AgentID, toolCall{of("TOOL_CALL_END"), x.Call.ID, ""})
		case state.CallEnded:
			content := noResult
			if x.Answered {
				content = x.Content
			}
			tell(x.AgentID, toolCallResult{of("TOOL_CALL_RESULT"), x.CallID, content, "tool"})
		case state.MailSent:
			all = append(all, c.mail(x.Message, at)...)
		}
	}
	return all
}

// runEnd returns the event of the end of a run, which may be that of the goal.
func runEnd(x state.RunEnded, of func(string) base, end team.Status) any {
	code := team.RunStopped
	switch {
	case x.Body.Type == team.RunError:
		return runError{of("RUN_ERROR"), x.Body.Message, orNull(x.Body.Code), x.RunID}
	case x.Body.Type == team.RunFinished:
		return runFinished{of("RUN_FINISHED"), x.Body.ThreadID, x.RunID, x.Body.Result}
	case end == team.TeamStopped || end == team.TeamFailed:
		return runError{of("RUN_ERROR"), "the goal is " + string(end), &code, x.RunID}
	} // nobody stops the last run of a goal that is finished, which is mostly the leader's
	return runFinished{of("RUN_FINISHED"), string(x.AgentID), x.RunID, json.RawMessage("null")}
}

func chunkOf(p state.Chunk, at *int64) any {
	switch p.Kind {
	case state.Begin:
		return textStart{base{Type: "TEXT_MESSAGE_START", Timestamp: at}, p.MessageID, "assistant", p.RunID}
	case state.More:
		return text{base{Type: "TEXT_MESSAGE_CONTENT", Timestamp: at}, p.MessageID, p.Text}
	}
	return text{base{Type: "TEXT_MESSAGE_END", Timestamp: at}, p.MessageID, ""}
}

func (c *converter) envelope(a team.AgentID, event any) Envelope {
	return Envelope{TeamID: c.id, AgentID: a, RoleName: orNull(c.team.Member(a).Role), RunID: orNull(c.runs[a]), Event: event}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// question is a question in the form of this wire's pages.
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

// argsOf returns the arguments of a call. Those of ask_user also have questions, for which pages make an input box.
func argsOf(call state.Call) string {
	var in struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
	}
	var all map[string]any
	if call.Name != "ask_user" || json.Unmarshal([]byte(call.Args), &in) != nil || in.Question == "" || json.Unmarshal([]byte(call.Args), &all) != nil || all["questions"] != nil {
		return call.Args
	}
	q := question{Question: in.Question, Header: "Answer", Type: "text"}
	for _, c := range in.Choices {
		q.Type, q.Options = "choice", append(q.Options, option{Label: c})
	}
	all["questions"] = []question{q}
	args, err := codec.Plain(all)
	if err != nil {
		return call.Args
	}
	return string(args)
}

// mail returns the envelopes of mail between people and members, not of mail from the team's own programs. Each
// receiver of a broadcast gets an envelope. Mail to a person belongs to its sender: pages show an agent with an
// envelope as at work, and a person's run never ends.
func (c *converter) mail(m team.Message, at *int64) (all []Envelope) {
	to := []team.AgentID{m.To}
	if m.To == team.Everyone {
		to = slices.DeleteFunc(c.team.Agents(), func(a team.AgentID) bool { return a == m.From })
		if m.From != team.Leader && !slices.Contains(to, team.Leader) {
			to = slices.Insert(to, 0, team.Leader) // always there, also while no process leads
		}
	}
	for _, a := range to {
		envelope := Envelope{TeamID: c.id, AgentID: a}
		if c.team.IsPerson(a) {
			envelope.AgentID = m.From
		}
		envelope.RunID = orNull(c.runs[envelope.AgentID])
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
