package usage

import (
	"encoding/json"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// Call is one call of a model: an answer with all its tries, be it a turn or a summary that makes a conversation
// shorter; or failed tries without an answer, all of whose tokens are wasted.
type Call struct {
	Agent team.AgentID // who it is counted to: the owner of a subagent
	Alias string       // of the model, in the settings of the agent's process; "" = not recorded
	Model string       // as its endpoint names it; "" = there was no answer
	Task  team.TaskID  // that the agent held; "" = none
	model.Usage
}

// callOf returns the call that r records; ok is false if it records none.
func callOf(r journal.Record) (c Call, ok bool) {
	c.Agent, c.Task = r.Agent.Owner(), r.TaskID
	switch {
	case r.Kind == journal.Turn, r.Kind == journal.Compact && len(r.Turn) > 0:
		var turn struct {
			Usage model.Usage `json:"usage"`
			Alias string      `json:"alias"`
			Model string      `json:"model"`
		}
		ok = json.Unmarshal(r.Turn, &turn) == nil
		c.Usage, c.Alias, c.Model = turn.Usage, turn.Alias, turn.Model
	case r.Kind == journal.Refused && r.Refusal != nil:
		ok = len(r.Refusal.Usage) == 0 || json.Unmarshal(r.Refusal.Usage, &c.Usage) == nil
		c.Alias = r.Refusal.Alias
	}
	if !ok {
		return Call{}, false
	}
	if c.Alias == "" && c.tokens() > 0 && c.Cost == 0 && c.Unpriced == 0 {
		c.Unpriced = 1 // from before prices were recorded, with which the alias came
	}
	return c, true
}

func (c Call) tokens() int {
	return c.PromptTokens + c.CompletionTokens + c.WastedPrompt + c.WastedCompletion
}
