package teamwire

import (
	"encoding/json"
	"net/http"
	"slices"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Agent is the output of one agent so far, as a page shows it.
type Agent struct {
	AgentID  team.AgentID `json:"agentId"`
	RoleName string       `json:"roleName"`
	Blocks   []any        `json:"blocks"` // of the types below, in order
	IsActive bool         `json:"isActive"`
}

type (
	textBlock struct {
		Kind    string       `json:"kind"` // text, user_message or team_message
		From    team.AgentID `json:"from,omitempty"`
		Content string       `json:"content"`
	}
	toolBlock struct {
		Kind     string  `json:"kind"` // tool_call
		ID       string  `json:"id"`
		Name     string  `json:"name"`
		Args     string  `json:"args"`
		ArgsDone bool    `json:"argsDone"`
		Result   *string `json:"result"`
	}
	errorBlock struct {
		Kind    string `json:"kind"` // error
		Message string `json:"message"`
	}
)

// snapshot is the result of a team's envelopes, by agent.
type snapshot map[team.AgentID]*Agent

// add adds the next envelope.
func (s snapshot) add(e Envelope) {
	a := s[e.AgentID]
	if a == nil {
		a = &Agent{AgentID: e.AgentID, RoleName: string(e.AgentID), Blocks: []any{}}
		s[e.AgentID] = a
	}
	if e.RoleName != nil && *e.RoleName != "user" {
		a.RoleName = *e.RoleName
	}
	a.IsActive = true
	switch event := e.Event.(type) {
	case text:
		if event.Delta == "" {
			break
		}
		if last, ok := a.last().(*textBlock); ok && last.Kind == "text" {
			last.Content += event.Delta
		} else {
			a.Blocks = append(a.Blocks, &textBlock{Kind: "text", Content: event.Delta})
		}
	case userMessage:
		a.Blocks = append(a.Blocks, &textBlock{Kind: "user_message", Content: event.Content})
	case teamMessage:
		a.Blocks = append(a.Blocks, &textBlock{Kind: "team_message", From: event.FromAgentID, Content: event.Content})
	case toolCallStart:
		a.Blocks = append(a.Blocks, &toolBlock{Kind: "tool_call", ID: event.ToolCallID, Name: event.ToolCallName})
	case toolCall:
		if b := a.call(event.ToolCallID); b != nil {
			b.Args, b.ArgsDone = b.Args+event.Delta, event.Delta == ""
		}
	case toolCallResult:
		if b := a.call(event.ToolCallID); b != nil {
			b.ArgsDone, b.Result = true, &event.Content
		}
	case runFinished:
		a.IsActive = false
	case runError:
		a.Blocks = append(a.Blocks, &errorBlock{"error", event.Message})
		a.IsActive = false
	}
}

func (a *Agent) last() any {
	if len(a.Blocks) == 0 {
		return nil
	}
	return a.Blocks[len(a.Blocks)-1]
}

// call returns the newest tool call of that id, nil if there is none.
func (a *Agent) call(id string) *toolBlock {
	for _, b := range slices.Backward(a.Blocks) {
		if b, ok := b.(*toolBlock); ok && b.ID == id {
			return b
		}
	}
	return nil
}

// history returns the past of a team: its result, or each envelope.
func (s *server) history(r *http.Request, in *input) (any, error) {
	n, after, raw := in.pair(), in.number("after"), in.flag("raw")
	if err := in.err(); err != nil {
		return nil, err
	}
	all, sum, count := []json.RawMessage{}, snapshot{}, 0
	t, err := s.open(r.Context(), n)
	if err == nil {
		err = s.past(r, t, func(e Envelope) error {
			if count++; !raw {
				sum.add(e)
				return nil
			}
			if count <= after {
				return nil
			}
			data, err := codec.Plain(e)
			all = append(all, data)
			return err
		})
	}
	switch {
	case unlessUnknown(err) != nil:
		return nil, err
	case raw:
		return all, nil
	}
	return struct {
		Snapshot   snapshot `json:"snapshot"`
		EventCount int      `json:"event_count"`
	}{sum, count}, nil
}

// past calls f for all envelopes so far.
func (s *server) past(r *http.Request, t *client.Team, f func(Envelope) error) error {
	c := newConverter(t.ID())
	return s.Hub.Follow(r.Context(), t.ID(), stream.Options{Types: reported}, func(i stream.Item) error {
		for _, e := range c.convert(i) {
			if err := f(e); err != nil {
				return err
			}
		}
		return nil
	})
}
