package audit

import (
	"encoding/json"
	"slices"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// callLog makes entries from the records of one journal, in their order.
type callLog struct {
	entries []Entry
	open    []Entry // calls without a result
}

// add adds a record.
func (t *callLog) add(r journal.Record) {
	switch r.Kind {
	case journal.Turn:
		t.turn(r)
	case journal.Result:
		t.result(r)
	case journal.Note:
		for _, seq := range r.Unreadable {
			t.lost(r.Agent, seq, r)
		}
	}
}

// lost adds an entry for an unreadable record; time and incarnation come from by, the note or the readable part.
func (t *callLog) lost(a team.AgentID, seq uint64, by journal.Record) {
	t.entries = append(t.entries, Entry{Seq: seq, At: by.At, Agent: a, Incarnation: by.Incarnation, Outcome: Unreadable})
}

func (t *callLog) turn(r journal.Record) {
	t.close()
	var reply model.Reply
	_ = json.Unmarshal(r.Turn, &reply) // the agent itself is parked by a turn without its form
	for _, c := range reply.Message.ToolCalls {
		e := entryOf(r, c.ID, c.Name)
		e.Arguments, e.Outcome = team.DigestOf(c.Arguments), Unknown
		t.open = append(t.open, e)
	}
}

func (t *callLog) result(r journal.Record) {
	res := r.Result
	e := entryOf(r, res.CallID, res.Name)
	if k := slices.IndexFunc(t.open, func(e Entry) bool { return e.Call == res.CallID }); k >= 0 {
		e.Arguments = t.open[k].Arguments
		t.open = slices.Delete(t.open, k, k+1)
	}
	e.Result, e.Outcome = team.DigestOf(res.Content), OK
	if res.IsError {
		e.Outcome = Failed
	}
	if o := res.Outcome; o != nil { // the hold is over
		e.Task = o.Task
	}
	if a := res.Account; a != nil {
		if a.Tool != "" {
			e.Tool, e.Called = a.Tool, e.Tool
		}
		e.Arguments, e.Code, e.Exit, e.Sandbox, e.Rule, e.Grants, e.Change, e.Also = a.Arguments, a.Code, a.Exit, a.Sandbox, a.Rule, a.Grants, a.Change, a.Also
		switch a.State {
		case "":
		case team.CallNotRun:
			e.Outcome = NotRun
		default:
			e.Outcome = Unknown
		}
	}
	t.entries = append(t.entries, e)
}

// close makes entries of the calls that have no result.
func (t *callLog) close() {
	t.entries, t.open = append(t.entries, t.open...), nil
}

func entryOf(r journal.Record, call, tool string) Entry {
	return Entry{Seq: r.Seq, At: r.At, Agent: r.Agent, Incarnation: r.Incarnation, RunID: r.RunID, Task: r.TaskID,
		Call: team.Clean(call, maxTool), Tool: team.Clean(tool, maxTool)}
}
