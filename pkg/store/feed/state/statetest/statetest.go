// Package statetest generates feeds for tests of packages that fold feeds.
package statetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// Input is an entry of a feed, or a chunk of a text that is being written, and the records before it.
type Input struct {
	Entry   *feed.Entry
	Delta   *team.Delta
	Members map[team.AgentID]team.Member
	Tasks   map[team.TaskID]team.Task
}

// source generates possible events of a team, in order.
type source struct {
	*rapid.T
	members map[team.AgentID]team.Member
	tasks   map[team.TaskID]team.Task
	ids     int
	now     time.Time
	runs    map[team.AgentID]string
	calls   map[team.AgentID][]string
	text    map[team.AgentID]team.Delta // that is being written; its Text is the whole
	all     []Input
}

func (s *source) id() string {
	s.ids++
	return fmt.Sprintf("%04d", s.ids)
}

func (s *source) put(i Input) {
	i.Members, i.Tasks = maps.Clone(s.members), maps.Clone(s.tasks)
	s.all = append(s.all, i)
}

func (s *source) tell(a team.AgentID, b team.EventBody, value any) {
	if value != nil {
		b.Value, _ = json.Marshal(value)
	}
	s.now = s.now.Add(time.Second)
	s.put(Input{Entry: &feed.Entry{Time: s.now, Event: team.Event{AgentID: a, RoleName: "coder", RunID: s.runs[a], Event: b.Stamp(s.now)}}})
}

// step generates one act of one agent.
func (s *source) step() {
	a := rapid.SampledFrom([]team.AgentID{"leader", "coder-1", "coder-2"}).Draw(s.T, "agent")
	if _, there := s.members[a]; !there {
		m := team.Member{AgentID: a, State: team.Joined, Incarnation: 1}
		s.tell(a, team.EventBody{Type: team.MemberJoined}, m)
		s.members[a] = m
		return
	}
	if s.runs[a] == "" {
		s.runs[a] = s.id()
		s.tell(a, team.EventBody{Type: team.RunStarted}, nil)
		return
	}
	switch rapid.IntRange(0, 9).Draw(s.T, "what") {
	case 0, 1:
		s.piece(a)
	case 2, 3:
		s.turn(a)
	case 4, 5:
		if c := s.calls[a]; len(c) > 0 {
			s.calls[a] = c[1:]
			s.tell(a, team.EventBody{Type: team.ToolCallResult, MessageID: s.id(), ToolCallID: c[0], Content: "ok"}, nil)
		}
	case 6:
		s.tell(a, team.EventBody{Type: team.Retry, Message: "no model"}, team.Retrying{Tried: rapid.IntRange(0, 1).Draw(s.T, "tried")})
	case 7:
		t := team.Task{ID: team.MakeTaskID(rapid.IntRange(1, 4).Draw(s.T, "task")), Status: team.InProgress, Assignee: a, UpdatedAt: s.now.Add(time.Second)}
		what := team.TaskClaimed
		if s.tasks[t.ID].Status == team.InProgress {
			t.Status, what = team.Completed, team.TaskCompleted
		}
		s.tell(a, team.EventBody{Type: what}, t)
		s.tasks[t.ID] = t
	case 8:
		q := team.Message{ID: s.id(), Type: team.MsgMessage, From: a, To: team.UserAgent, AwaitReply: true}
		s.tell(a, team.EventBody{Type: team.MailSent, MessageID: q.ID}, q)
		if rapid.Bool().Draw(s.T, "answered") {
			s.tell(team.UserAgent, team.EventBody{Type: team.MailSent}, team.Message{Type: team.MsgUser, From: team.UserAgent, To: a, InReplyTo: q.ID})
		}
	default:
		delete(s.text, a)
		end := rapid.SampledFrom([]team.EventType{team.RunFinished, team.RunError}).Draw(s.T, "end")
		s.tell(a, team.EventBody{Type: end}, nil)
		s.runs[a] = ""
	}
}

// piece generates a chunk of an agent's text, which may belong to another try.
func (s *source) piece(a team.AgentID) {
	d, going := s.text[a]
	if !going || rapid.IntRange(0, 5).Draw(s.T, "again") == 0 {
		d = team.Delta{AgentID: a, RunID: s.runs[a], MessageID: d.MessageID}
		if !going {
			d.MessageID = s.id()
		}
	}
	more := rapid.StringMatching(`[a-c]{1,4}`).Draw(s.T, "more")
	d.Offset, d.Text = len(d.Text), d.Text+more
	s.text[a] = d
	told := d
	told.Text = more
	s.put(Input{Delta: &told})
}

// turn generates an agent's turn, with the text that it was writing, or another, and calls.
func (s *source) turn(a team.AgentID) {
	d := s.text[a]
	if d.MessageID == "" {
		d.MessageID = s.id()
	}
	delete(s.text, a)
	s.tell(a, team.EventBody{Type: team.TextChunk, MessageID: d.MessageID, Delta: d.Text + "!", Tokens: 3}, nil)
	first := rapid.IntRange(0, 3).Draw(s.T, "call")
	for n := range rapid.IntRange(0, 2).Draw(s.T, "calls") {
		id := fmt.Sprint("call-", (first+n)%4) // some models use one again and again
		s.calls[a] = append(s.calls[a], id)
		s.tell(a, team.EventBody{Type: team.ToolCallChunk, MessageID: d.MessageID, ToolCallID: id, ToolCallName: "bash", Delta: "{}"}, nil)
	}
}

// Feed returns the events of a team, in order and complete.
func Feed(t *rapid.T) []Input {
	s := &source{T: t, members: map[team.AgentID]team.Member{}, tasks: map[team.TaskID]team.Task{}, now: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC),
		runs: map[team.AgentID]string{}, calls: map[team.AgentID][]string{}, text: map[team.AgentID]team.Delta{}}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		s.step()
	}
	return s.all
}

// Faulty returns a feed of which some inputs are missing, twice there or in another place. Only inputs from the log of events
// change their place: the others of an agent have one order.
func Faulty(t *rapid.T, all []Input) []Input {
	for range rapid.IntRange(0, 8).Draw(t, "faults") {
		i := rapid.IntRange(0, len(all)-1).Draw(t, "of")
		without := slices.Delete(slices.Clone(all), i, i+1)
		switch x := all[i]; rapid.IntRange(0, 2).Draw(t, "fault") {
		case 0:
			if len(without) > 0 {
				all = without
			}
		case 1:
			all = slices.Insert(slices.Clone(all), i, x)
		case 2:
			if x.Entry != nil && slices.Contains([]team.EventType{team.RunStarted, team.RunFinished, team.RunError}, x.Entry.Event.Event.Type) {
				all = slices.Insert(without, rapid.IntRange(0, len(without)).Draw(t, "to"), x)
			}
		}
	}
	return all
}
