package usage

import (
	"encoding/json"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// Call is one call of a model: an answer with the tries it took, be it a turn or a
// summary that makes a conversation shorter; or tries that gave none, all of whose
// tokens are wasted.
type Call struct {
	Agent team.AgentID
	Alias string      // of the model, in the settings of the agent's process; "" = not recorded
	Task  team.TaskID // that the agent held; "" = none
	model.Usage
}

// ledger makes calls of records. It is given those of all agents, each agent's in
// their order.
type ledger map[team.AgentID]*page

// page is what a ledger knows of one agent. All of it is there for records that do
// not name their task: those of programs before that was recorded.
type page struct {
	names bool           // the records of this incarnation name their tasks
	task  team.TaskID    // the last that the agent was told to work on, in this run
	await *journal.Await // the answer that it waits for, and for which it may end a run with the task in its hand
}

// call returns the call that r records; ok is false if it records none.
func (l ledger) call(r journal.Record) (c Call, ok bool) {
	p := l[r.Agent]
	if p == nil {
		p = new(page)
		l[r.Agent] = p
	}
	c.Agent = r.Agent
	switch {
	case r.Kind == journal.Turn, r.Kind == journal.Compact && len(r.Turn) > 0:
		var turn struct {
			Usage model.Usage `json:"usage"`
			Alias string      `json:"alias"`
		}
		ok = json.Unmarshal(r.Turn, &turn) == nil
		c.Usage, c.Alias = turn.Usage, turn.Alias
	case r.Kind == journal.Refused && r.Refusal != nil:
		ok = len(r.Refusal.Usage) == 0 || json.Unmarshal(r.Refusal.Usage, &c.Usage) == nil
		c.Alias = r.Refusal.Alias
	default:
		p.follow(r)
	}
	if !ok {
		return Call{}, false
	}
	c.Task = p.taskOf(r)
	if c.Alias == "" && c.tokens() > 0 && c.Cost == 0 && c.Unpriced == 0 {
		c.Unpriced = 1 // from before prices were recorded, with which the alias came
	}
	return c, true
}

func (c Call) tokens() int {
	return c.PromptTokens + c.CompletionTokens + c.WastedPrompt + c.WastedCompletion
}

// follow takes in a record that is no call.
func (p *page) follow(r journal.Record) {
	switch {
	case r.Kind == journal.Start:
		p.names = false
	case r.Kind == journal.Task && r.Task != nil:
		p.task, p.await = r.Task.ID, nil
	case r.Kind == journal.Result && r.Result != nil && r.Result.Await != nil:
		p.await = r.Result.Await
	case r.Kind == journal.Mail && r.Message != nil:
		if p.await != nil && r.Message.From == p.await.From && r.Message.Wakes() {
			p.await = nil
		}
	case r.Kind == journal.End:
		if p.await == nil || p.await.Over(r.At) {
			p.task = ""
		}
	}
}

// taskOf returns the task that the agent held when it made the call of r. A program
// that names it in some records leaves it out of others only if there is none.
func (p *page) taskOf(r journal.Record) team.TaskID {
	switch {
	case r.TaskID != "":
		p.names = true
		return r.TaskID
	case p.names:
		return ""
	}
	return p.task
}
