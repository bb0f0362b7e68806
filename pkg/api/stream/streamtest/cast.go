// Package streamtest simulates the agents of a team, for tests of readers of a team's feed: there is no agent, and
// everything happens in the order of the test.
package streamtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Cast simulates the agents of one team. Errors end the test.
type Cast struct {
	Board *board.Board

	t        testing.TB
	registry *registry.Registry
	storage  *broker.Storage
	journals map[team.AgentID]*journal.Journal
}

// Open returns the cast of an existing team, on the NATS server at url.
func Open(t testing.TB, url string, id team.TeamID) *Cast {
	t.Helper()
	conn := brokertest.Connect(t, url)
	c := &Cast{t: t, journals: map[team.AgentID]*journal.Journal{}}
	var err error
	c.registry, err = registry.Open(t.Context(), conn)
	c.ok(err)
	c.storage, err = conn.Open(t.Context(), id)
	c.ok(err)
	c.Board = board.New(c.storage.Bucket, board.Options{})
	return c
}

func (c *Cast) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// Member writes the record of a member in a state.
func (c *Cast) Member(a team.AgentID, role string, state team.MemberState) {
	c.t.Helper()
	r := roster.New(c.storage)
	m, err := r.Get(c.t.Context(), a)
	if !errors.Is(err, team.NotFound) {
		c.ok(err)
	}
	m.AgentID, m.Role, m.State, m.Backend, m.Incarnation = a, role, state, team.Pool, 1
	_, err = r.Put(c.t.Context(), m)
	c.ok(err)
}

// Runs emits an event of an agent's run, whose id is made of the agent's name.
func (c *Cast) Runs(a team.AgentID, b team.EventBody) {
	c.t.Helper()
	b.ThreadID = string(a)
	runlog.New(c.storage, nil).Emit(c.t.Context(), team.Event{AgentID: a, RunID: runOf(a), Event: b})
}

func runOf(a team.AgentID) string { return "run-of-" + string(a) }

// Writes appends to an agent's journal.
func (c *Cast) Writes(a team.AgentID, r journal.Record) {
	c.t.Helper()
	j := c.journals[a]
	if j == nil {
		var err error
		j, _, err = journal.Open(c.t.Context(), c.storage, a, 1, journal.Options{})
		c.ok(err)
		c.journals[a] = j
	}
	r.RunID = runOf(a)
	_, err := j.Append(c.t.Context(), r)
	c.ok(err)
}

// Says writes a turn with a text and, unless tool is "", a call of that tool.
func (c *Cast) Says(a team.AgentID, text, tool string) {
	c.t.Helper()
	m := model.Message{Role: "assistant", Content: text}
	if tool != "" {
		m.ToolCalls = []model.ToolCall{{ID: "call-" + tool, Name: tool, Arguments: `{"path":"<a>"}`}}
	}
	data, err := json.Marshal(model.Reply{Message: m})
	c.ok(err)
	c.Writes(a, journal.Record{Kind: journal.Turn, Turn: data})
}

// Hears writes the result of the call of [Cast.Says].
func (c *Cast) Hears(a team.AgentID, tool, result string) {
	c.t.Helper()
	c.Writes(a, journal.Record{Kind: journal.Result, Result: &journal.ToolResult{CallID: "call-" + tool, Name: tool, Content: result}})
}

// Mails sends a message.
func (c *Cast) Mails(from, to team.AgentID, kind team.MessageType, text string) {
	c.t.Helper()
	box := mailbox.New(c.storage, mailbox.Options{Members: roster.New(c.storage)})
	_, _, err := box.Send(c.t.Context(), team.Message{Type: kind, From: from, To: to, Content: text})
	c.ok(err)
}

// Goals returns how many goals the team has had.
func (c *Cast) Goals() int {
	c.t.Helper()
	record, err := registry.Record(c.t.Context(), c.storage)
	c.ok(err)
	return record.GoalNumber
}

// AtWork waits until the team works on a goal with a number above after.
func (c *Cast) AtWork(after int) {
	c.t.Helper()
	there := errors.New("there")
	err := c.storage.Bucket.Watch(c.t.Context(), func(e broker.Entry) error {
		if record, err := registry.Decode(e); err == nil && record.AtWork() && record.GoalNumber > after {
			return there
		}
		return nil
	}, nil, subject.KeyTeam)
	if !errors.Is(err, there) {
		c.t.Fatal(err)
	}
}

// Ends ends the team's goal.
func (c *Cast) Ends(status team.Status, summary string) {
	c.t.Helper()
	_, err := c.registry.End(c.t.Context(), c.storage, team.Ending{Status: status, Summary: summary})
	c.ok(err)
}

var (
	ulids = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	times = regexp.MustCompile(`("timestamp":)\d+|("[a-z]+_at":)"[^"]+"`)
)

// Stable returns a text for golden files, with the parts that differ between runs replaced: ids by their order, times
// by 1.
func Stable(s string) string {
	seen := map[string]string{}
	s = ulids.ReplaceAllStringFunc(s, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("ID-%d", len(seen)+1)
		}
		return seen[id]
	})
	return times.ReplaceAllString(s, "${1}${2}1")
}
