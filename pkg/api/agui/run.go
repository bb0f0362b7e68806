package agui

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/wI2L/jsondiff"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/team"
)

// base has the fields of every event.
type base struct {
	Type          string `json:"type"`
	Timestamp     int64  `json:"timestamp,omitempty"`     // milliseconds since 1970; none of a text that is being written
	SubagentRunID string `json:"subagentRunId,omitempty"` // whose it is; "" = the leader's
}

// The events of the protocol; the names of their fields are the protocol's.
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
		Parent      string `json:"parentSubagentRunId,omitempty"` // of a member's subagent: that member's run
	}
	subagentFinished struct {
		base
		Outcome *outcome `json:"outcome,omitempty"` // none of one that was still at work at the end of the goal
	}
	text struct {
		base
		MessageID string `json:"messageId"`
		Role      string `json:"role,omitempty"`  // at its beginning
		Delta     string `json:"delta,omitempty"` // of a piece
	}
	toolCallStart struct {
		base
		ToolCallID      string `json:"toolCallId"`
		ToolCallName    string `json:"toolCallName"`
		ParentMessageID string `json:"parentMessageId"`
	}
	toolCall struct {
		base
		ToolCallID string `json:"toolCallId"`
		Delta      string `json:"delta,omitempty"` // of its arguments
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
		Snapshot board `json:"snapshot"`
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

// subagent returns the run of the member that an event belongs to; "" for the leader's.
func (b base) subagent() string { return b.SubagentRunID }

// withoutSubagents returns a writer for clients without subagents: it wraps each event of a member's run in an event
// that they may ignore.
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

// result is the outcome of a goal.
type result struct {
	Status  team.Status `json:"status"`
	Summary string      `json:"summary"`
}

type outcome struct {
	Type string `json:"type"`
}

var success = outcome{"success"}

// board is the state that clients keep.
type board struct {
	Team  team.TeamID          `json:"team"`
	Goal  string               `json:"goal"`
	Tasks map[team.TaskID]task `json:"tasks"`
}

// task is a task in that state.
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

// reported are the types of entries that a run turns into events.
var reported = []team.EventType{
	team.RunStarted, team.RunFinished, team.RunError, team.TextChunk, team.ToolCallChunk, team.ToolCallResult, team.MailSent,
	team.TaskCreated, team.TaskUpdated, team.TaskClaimed, team.TaskAssigned, team.TaskAdopted, team.TaskReleased,
	team.TaskCompleted, team.TaskFailed, team.TaskCancelled,
}

// run encodes one goal. It is for one goroutine.
type run struct {
	thread, id string
	write      func(event any) error
	record     team.Team
	team       *state.Team
	runs       map[team.AgentID]string // the newest run of each member but the leader
}

func newRun(thread, id string, write func(any) error) *run {
	return &run{thread: thread, id: id, write: write, team: state.New(), runs: map[team.AgentID]string{}}
}

// know adds the members of the team.
func (r *run) know(members []team.Member) { r.team.KnowMembers(members) }

// begin writes the beginning of the run, and the present board.
func (r *run) begin(record team.Team, tasks []team.Task) error {
	r.record = record
	if err := r.write(runStarted{base{Type: "RUN_STARTED"}, r.thread, r.id}); err != nil {
		return err
	}
	return r.snapshot(tasks)
}

// reset writes the board again, since a part of the feed is missing.
func (r *run) reset(views []team.TaskView) error {
	tasks := make([]team.Task, len(views))
	for i, v := range views {
		tasks[i] = v.Task
	}
	return r.snapshot(tasks)
}

func (r *run) snapshot(tasks []team.Task) error {
	r.team.KnowTasks(tasks, nil)
	b := board{r.record.ID, r.record.Goal, map[team.TaskID]task{}}
	for _, t := range tasks {
		b.Tasks[t.ID] = taskOf(t)
	}
	return r.write(stateSnapshot{base{Type: "STATE_SNAPSHOT"}, b})
}

// take writes the events of an item of the feed.
func (r *run) take(i stream.Item) error {
	if i.Delta != nil {
		return r.report(r.team.Write(*i.Delta, time.Time{}), team.EventBody{})
	}
	return r.report(r.team.Apply(*i.Entry), i.Entry.Event.Event)
}

// report writes the events for the changes of an entry.
func (r *run) report(changes []state.Change, body team.EventBody) error {
	for _, c := range changes {
		for _, event := range r.events(c, body) {
			if err := r.write(event); err != nil {
				return err
			}
		}
	}
	return nil
}

// events returns the events for a change. The leader's runs are one run, that of the goal; entries of a member's run
// after its end are left out.
func (r *run) events(c state.Change, body team.EventBody) []any {
	of := func(name string) base { return base{Type: name, Timestamp: body.Timestamp} }
	leads := false
	if c, ok := c.(interface{ Whose() state.Of }); ok {
		w := c.Whose()
		if leads = w.AgentID == team.Leader; w.Late && !leads {
			return nil
		}
		if !leads {
			of = func(name string) base { return base{name, body.Timestamp, cmp.Or(w.RunID, string(w.AgentID))} }
		}
	}
	switch c := c.(type) {
	case state.RunBegan:
		if c.First && !leads {
			return []any{r.started(c.AgentID, of("SUBAGENT_STARTED"))}
		}
	case state.RunEnded:
		switch {
		case leads: // whose next run goes on with the goal
		case c.Body.Type == team.RunError:
			return []any{runError{of("SUBAGENT_ERROR"), c.Body.Message, c.Body.Code}}
		case c.Body.Type == team.RunFinished:
			return []any{subagentFinished{of("SUBAGENT_FINISHED"), &success}}
		default:
			return []any{subagentFinished{of("SUBAGENT_FINISHED"), nil}}
		}
	case state.Chunk:
		switch c.Kind {
		case state.Begin:
			return []any{text{base: of("TEXT_MESSAGE_START"), MessageID: c.MessageID, Role: "assistant"}}
		case state.More:
			return []any{text{base: of("TEXT_MESSAGE_CONTENT"), MessageID: c.MessageID, Delta: c.Text}}
		}
		return []any{text{base: of("TEXT_MESSAGE_END"), MessageID: c.MessageID}}
	case state.CallBegan:
		return called(callID(c.AgentID, c.Call), *c.Call, of)
	case state.CallEnded:
		if c.Answered && c.Call != nil && (leads || !c.Call.Late) { // else its beginning was not written
			return []any{toolCallResult{of("TOOL_CALL_RESULT"), c.MessageID, callID(c.AgentID, c.Call), c.Content, "tool"}}
		}
	case state.MailSent:
		switch c.Type { // what the team's own programs write is left out
		case team.MsgUser, team.MsgMessage, team.MsgBroadcast:
			return []any{custom{of("CUSTOM"), "mail", body.Value}}
		}
	case state.TaskChanged:
		return changed(c, of("STATE_DELTA"))
	}
	return nil
}

// started returns the event of the beginning of a run: of a member or, beneath that, of a subagent of a member.
func (r *run) started(a team.AgentID, b base) subagentStarted {
	e := subagentStarted{base: b, Name: string(a), Description: r.team.Member(a).Role}
	if owner := a.Owner(); owner != a {
		e.Parent = r.runs[owner]
	} else {
		r.runs[a] = b.SubagentRunID
	}
	return e
}

// called returns the events of a call.
func called(id string, c state.Call, of func(string) base) []any {
	all := []any{toolCallStart{of("TOOL_CALL_START"), id, c.Name, c.MessageID}}
	if c.Args != "" {
		all = append(all, toolCall{of("TOOL_CALL_ARGS"), id, c.Args})
	}
	return append(all, toolCall{of("TOOL_CALL_END"), id, ""})
}

// changed returns the event of a changed task; none if its part of the board is unchanged.
func changed(c state.TaskChanged, b base) []any {
	before, after := board{Tasks: map[team.TaskID]task{}}, board{Tasks: map[team.TaskID]task{c.After.ID: taskOf(c.After.Task)}}
	if c.Before != nil {
		before.Tasks[c.Before.ID] = taskOf(c.Before.Task)
	}
	patch, err := jsondiff.Compare(before, after)
	if err != nil || len(patch) == 0 { // both can be written, so there is no error
		return nil
	}
	return []any{stateDelta{b, patch}}
}

// callID returns the id of a call for clients. Its own id is the agent's, and some models repeat ids.
func callID(a team.AgentID, c *state.Call) string {
	return string(a) + "/" + c.MessageID + "/" + c.ID
}

// finish ends the run.
func (r *run) finish(record team.Team) error {
	if err := r.report(r.team.Close(), team.EventBody{}); err != nil {
		return err
	}
	return r.write(runFinished{base{Type: "RUN_FINISHED"}, r.thread, r.id, result{record.Status, record.Summary}, success})
}

// fail ends the run with an error.
func (r *run) fail(message, code string) error {
	if err := r.report(r.team.Close(), team.EventBody{}); err != nil {
		return err
	}
	if strings.TrimSpace(message) == "" {
		message = "the goal has failed"
	}
	return r.write(runError{base{Type: "RUN_ERROR"}, message, code})
}
