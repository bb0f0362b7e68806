package agui

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/wI2L/jsondiff"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/team"
)

// base is what each event has.
type base struct {
	Type          string `json:"type"`
	Timestamp     int64  `json:"timestamp,omitempty"`     // milliseconds since 1970; none of a text that is being written
	SubagentRunID string `json:"subagentRunId,omitempty"` // whose it is; "" = the leader's
}

// The events that are told; the names of their fields are the protocol's.
type (
	runStarted struct {
		base
		ThreadID string `json:"threadId"`
		RunID    string `json:"runId"`
	}
	runFinished struct {
		base
		ThreadID string  `json:"threadId"`
		RunID    string  `json:"runId"`
		Result   result  `json:"result"`
		Outcome  outcome `json:"outcome"`
	}
	runError struct {
		base
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	}
	subagentStarted struct {
		base
		Name        string `json:"name"` // the member's
		Description string `json:"description,omitempty"`
	}
	subagentFinished struct {
		base
		Outcome *outcome `json:"outcome,omitempty"` // none of one that was still at work at the end of the goal
	}
	textStart struct {
		base
		MessageID string `json:"messageId"`
		Role      string `json:"role"`
	}
	textContent struct {
		base
		MessageID string `json:"messageId"`
		Delta     string `json:"delta"`
	}
	textEnd struct {
		base
		MessageID string `json:"messageId"`
	}
	toolCallStart struct {
		base
		ToolCallID      string `json:"toolCallId"`
		ToolCallName    string `json:"toolCallName"`
		ParentMessageID string `json:"parentMessageId"`
	}
	toolCallArgs struct {
		base
		ToolCallID string `json:"toolCallId"`
		Delta      string `json:"delta"`
	}
	toolCallEnd struct {
		base
		ToolCallID string `json:"toolCallId"`
	}
	toolCallResult struct {
		base
		MessageID  string `json:"messageId"`
		ToolCallID string `json:"toolCallId"`
		Content    string `json:"content"`
		Role       string `json:"role"`
	}
	stateSnapshot struct {
		base
		Snapshot state `json:"snapshot"`
	}
	stateDelta struct {
		base
		Delta jsondiff.Patch `json:"delta"`
	}
	custom struct {
		base
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
)

// subagent is the run of a member that an event is of; "" = the leader's.
func (b base) subagent() string { return b.SubagentRunID }

// withoutSubagents tells clients that know no subagents of members' runs: each event of one is
// the value of an event that they may ignore.
func withoutSubagents(write func(any) error) func(any) error {
	return func(event any) error {
		if e, ok := event.(interface{ subagent() string }); ok && e.subagent() != "" {
			data, err := json.Marshal(event)
			if err != nil {
				return err
			}
			event = custom{base{Type: "CUSTOM"}, "subagent", data}
		}
		return write(event)
	}
}

// result is what came of a goal.
type result struct {
	Status  team.Status `json:"status"`
	Summary string      `json:"summary"`
}

type outcome struct {
	Type string `json:"type"`
}

var success = outcome{"success"}

// state is the board.
type state struct {
	Team  team.TeamID          `json:"team"`
	Goal  string               `json:"goal"`
	Tasks map[team.TaskID]task `json:"tasks"`
}

// task is a task as the state has it.
type task struct {
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	Status       team.TaskStatus `json:"status"`
	Priority     int             `json:"priority"`
	Dependencies []team.TaskID   `json:"dependencies"`
	Role         string          `json:"role,omitempty"`
	Assignee     team.AgentID    `json:"assignee,omitempty"`
	ReservedFor  team.AgentID    `json:"reservedFor,omitempty"`
	Summary      string          `json:"resultSummary,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Deliverable  string          `json:"deliverablePath,omitempty"` // if there is one
}

func taskOf(t team.Task) task {
	v := task{Title: t.Title, Description: t.Description, Status: t.Status, Priority: t.Priority, Dependencies: t.Dependencies,
		Role: t.Role, Assignee: t.Assignee, ReservedFor: t.ReservedFor, Summary: t.ResultSummary, Reason: t.Reason}
	if v.Dependencies == nil {
		v.Dependencies = []team.TaskID{}
	}
	if t.Digest != "" {
		v.Deliverable = t.DeliverablePath
	}
	return v
}

// told are the events of the feed of which a run tells something.
var told = []team.EventType{
	team.RunStarted, team.RunFinished, team.RunError, team.TextChunk, team.ToolCallChunk, team.ToolCallResult, team.MailSent,
	team.TaskCreated, team.TaskUpdated, team.TaskClaimed, team.TaskAssigned, team.TaskAdopted, team.TaskReleased,
	team.TaskCompleted, team.TaskFailed, team.TaskCancelled,
}

// run tells one goal. It is for one goroutine.
type run struct {
	thread, id string
	write      func(event any) error

	state state
	texts stream.Texts
	roles map[team.AgentID]string

	open  map[string]bool   // runs of members by id: true until they end, then false
	calls map[string]string // of calls without a result, by agent and the agent's own id: the id they were told with
}

func newRun(thread, id string, write func(any) error) *run {
	return &run{thread: thread, id: id, write: write, roles: map[team.AgentID]string{}, open: map[string]bool{}, calls: map[string]string{}}
}

// know makes known who is in the team.
func (r *run) know(members []team.Member) {
	for _, m := range members {
		r.roles[m.AgentID] = m.Role
	}
}

// begin tells that the run has begun, and the board as it is.
func (r *run) begin(record team.Team, tasks []team.Task) error {
	r.state = state{Team: record.ID, Goal: record.Goal, Tasks: map[team.TaskID]task{}}
	for _, t := range tasks {
		r.state.Tasks[t.ID] = taskOf(t)
	}
	if err := r.write(runStarted{base{Type: "RUN_STARTED"}, r.thread, r.id}); err != nil {
		return err
	}
	return r.write(stateSnapshot{base{Type: "STATE_SNAPSHOT"}, r.state})
}

// reset tells the board anew, since part of the feed is missing.
func (r *run) reset(tasks []team.TaskView) error {
	r.state.Tasks = map[team.TaskID]task{}
	for _, v := range tasks {
		r.state.Tasks[v.ID] = taskOf(v.Task)
	}
	return r.write(stateSnapshot{base{Type: "STATE_SNAPSHOT"}, r.state})
}

// take tells what an item of the feed tells.
func (r *run) take(i stream.Item) error {
	if d := i.Delta; d != nil {
		return r.written(*d)
	}
	e := i.Entry
	if e.RoleName != "" {
		r.roles[e.AgentID] = e.RoleName
	}
	at, body := e.Event.Event.Timestamp, e.Event.Event
	switch body.Type {
	case team.RunStarted:
		return r.pieces(e.AgentID, e.RunID, at, func() []stream.Piece { return r.texts.Run(e.AgentID, e.RunID) })
	case team.RunFinished, team.RunError:
		return r.left(e.AgentID, e.RunID, at, body)
	case team.TextChunk:
		return r.pieces(e.AgentID, e.RunID, at, func() []stream.Piece { return r.texts.Stored(*e) })
	case team.ToolCallChunk, team.ToolCallResult:
		b, ok, err := r.of(e.AgentID, e.RunID, at)
		if !ok || err != nil {
			return err
		}
		if err := r.tool(b, e.AgentID, body); err != nil {
			return err
		}
		return r.pieces(e.AgentID, e.RunID, at, func() []stream.Piece { return r.texts.Run(e.AgentID, e.RunID) })
	case team.MailSent:
		return r.mail(body)
	}
	var t team.Task
	if json.Unmarshal(body.Value, &t) != nil || t.ID == "" {
		return nil
	}
	return r.changed(t, at)
}

// of returns what the events of an agent's run have in common, and tells of a member's run
// that it has begun if that was not told. ok is false for a run that has ended.
func (r *run) of(a team.AgentID, id string, at int64) (b base, ok bool, err error) {
	b = base{Timestamp: at}
	if a == team.Leader {
		return b, true, nil
	}
	id = cmp.Or(id, string(a))
	b.SubagentRunID = id
	open, known := r.open[id]
	if known {
		return b, open, nil
	}
	r.open[id] = true
	b.Type = "SUBAGENT_STARTED"
	err = r.write(subagentStarted{b, string(a), r.roles[a]})
	b.Type = ""
	return b, true, err
}

func (b base) typed(name string) base { b.Type = name; return b }

// left tells that an agent's run is over.
func (r *run) left(a team.AgentID, id string, at int64, body team.EventBody) error {
	if err := r.pieces(a, id, at, func() []stream.Piece { return r.texts.Cut(a) }); err != nil {
		return err
	}
	b, ok, err := r.of(a, id, at)
	if !ok || err != nil || a == team.Leader { // whose next run goes on with the goal
		return err
	}
	r.open[b.SubagentRunID] = false
	if body.Type == team.RunError {
		return r.write(runError{b.typed("SUBAGENT_ERROR"), body.Message, body.Code})
	}
	return r.write(subagentFinished{b.typed("SUBAGENT_FINISHED"), &success})
}

// written tells a piece of a text that is being written. A run that is known by nothing else
// is not begun by it.
func (r *run) written(d team.Delta) error {
	pieces := r.texts.Delta(d)
	if len(pieces) == 0 {
		return nil
	}
	return r.pieces(d.AgentID, d.RunID, 0, func() []stream.Piece { return pieces })
}

// pieces tells the pieces of an agent's text.
func (r *run) pieces(a team.AgentID, id string, at int64, f func() []stream.Piece) error {
	b, ok, err := r.of(a, id, at)
	if !ok || err != nil {
		return err
	}
	for _, p := range f() {
		if err := r.piece(b, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) piece(b base, p stream.Piece) error {
	if b.SubagentRunID != "" && p.RunID != "" { // it may be the end of a text of the run before
		b.SubagentRunID = p.RunID
	}
	switch p.Kind {
	case stream.Begin:
		return r.write(textStart{b.typed("TEXT_MESSAGE_START"), p.MessageID, "assistant"})
	case stream.More:
		return r.write(textContent{b.typed("TEXT_MESSAGE_CONTENT"), p.MessageID, p.Text})
	}
	return r.write(textEnd{b.typed("TEXT_MESSAGE_END"), p.MessageID})
}

// tool tells a call of a tool, or its result. Ids of calls are an agent's own, and some
// models use one again and again, so they are told with the names of agent and message. A
// result whose call was not told, since it was made before this run, is left out.
func (r *run) tool(b base, a team.AgentID, body team.EventBody) error {
	own := string(a) + "/" + body.ToolCallID
	id := string(a) + "/" + body.MessageID + "/" + body.ToolCallID
	if body.Type == team.ToolCallResult {
		id, told := r.calls[own]
		if !told {
			return nil
		}
		delete(r.calls, own)
		return r.write(toolCallResult{b.typed("TOOL_CALL_RESULT"), body.MessageID, id, body.Content, "tool"})
	}
	r.calls[own] = id
	if err := r.write(toolCallStart{b.typed("TOOL_CALL_START"), id, body.ToolCallName, body.MessageID}); err != nil {
		return err
	}
	if body.Delta != "" {
		if err := r.write(toolCallArgs{b.typed("TOOL_CALL_ARGS"), id, body.Delta}); err != nil {
			return err
		}
	}
	return r.write(toolCallEnd{b.typed("TOOL_CALL_END"), id})
}

// mail tells what people and members write to each other; what the team's own programs
// write is left out.
func (r *run) mail(body team.EventBody) error {
	var m team.Message
	_ = json.Unmarshal(body.Value, &m) // of a message that cannot be read the type is none of these
	switch m.Type {
	case team.MsgUser, team.MsgMessage, team.MsgBroadcast:
		return r.write(custom{base{Type: "CUSTOM", Timestamp: body.Timestamp}, "mail", body.Value})
	}
	return nil
}

// changed tells how a task has changed, if the state has anything of that.
func (r *run) changed(t team.Task, at int64) error {
	one := func() state { return state{Tasks: map[team.TaskID]task{}} }
	before, after := one(), one()
	if had, ok := r.state.Tasks[t.ID]; ok {
		before.Tasks[t.ID] = had
	}
	after.Tasks[t.ID] = taskOf(t)
	patch, err := jsondiff.Compare(before, after)
	if err != nil || len(patch) == 0 {
		return err
	}
	r.state.Tasks[t.ID] = after.Tasks[t.ID]
	return r.write(stateDelta{base{Type: "STATE_DELTA", Timestamp: at}, patch})
}

// close ends all that is open.
func (r *run) close() error {
	for _, p := range r.texts.CutAll() {
		b := base{}
		if p.AgentID != team.Leader {
			b.SubagentRunID = cmp.Or(p.RunID, string(p.AgentID))
		}
		if err := r.piece(b, p); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		if !r.open[id] {
			continue
		}
		if err := r.write(subagentFinished{base{Type: "SUBAGENT_FINISHED", SubagentRunID: id}, nil}); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the run.
func (r *run) finish(record team.Team) error {
	if err := r.close(); err != nil {
		return err
	}
	return r.write(runFinished{base{Type: "RUN_FINISHED"}, r.thread, r.id, result{record.Status, record.Summary}, success})
}

// fail ends the run with an error.
func (r *run) fail(message, code string) error {
	if err := r.close(); err != nil {
		return err
	}
	if strings.TrimSpace(message) == "" {
		message = "the goal has failed"
	}
	return r.write(runError{base{Type: "RUN_ERROR"}, message, code})
}
