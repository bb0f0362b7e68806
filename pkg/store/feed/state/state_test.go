package state_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/store/feed/state/statetest"
	"agentteam/pkg/team"
)

func to(t *state.Team, i statetest.Input) []state.Change {
	if i.Delta != nil {
		return t.Write(*i.Delta, noon)
	}
	return t.Apply(*i.Entry)
}

// TestOrderOfChanges: whatever is missing, late or there twice, each run, text and call begins
// once and ends once, an agent has one text open, and nothing is reported of a run that was not.
func TestOrderOfChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := watcher{t, map[string]string{}, map[team.AgentID]string{}, map[string]bool{}, map[*state.Call]string{}, map[string]*state.Call{}}
		s := state.New()
		for _, i := range statetest.Faulty(t, statetest.Feed(t)) {
			w.see(to(s, i))
		}
		w.see(s.Close())
		for run, how := range w.runs {
			if how != "over" {
				t.Errorf("the run %s has not ended", run)
			}
		}
		for c, how := range w.calls {
			if how == "open" && !c.Late {
				t.Errorf("the call %+v has not ended", *c)
			}
		}
		if len(w.open) > 0 {
			t.Errorf("these texts have not ended: %v", w.open)
		}
		if more := s.Close(); len(more) > 0 {
			t.Errorf("closed twice: %+v", more)
		}
	})
}

// watcher holds changes against the rules that encoders rely on.
type watcher struct {
	*rapid.T
	runs  map[string]string       // open or over
	open  map[team.AgentID]string // text
	texts map[string]bool         // that were begun
	calls map[*state.Call]string  // open, left (its run has ended), or answered
	ids   map[string]*state.Call  // by agent and id, the newest
}

func (w *watcher) of(o state.Of) {
	if how := w.runs[o.RunID]; how == "" || o.Late != (how == "over") {
		w.Errorf("a change of the run %+v, which is %q", o, how)
	}
}

func (w *watcher) see(changes []state.Change) {
	for _, c := range changes {
		switch c := c.(type) {
		case state.RunBegan:
			if c.First != (w.runs[c.RunID] == "") {
				w.Errorf("%+v, which is %q", c, w.runs[c.RunID])
			}
			w.runs[c.RunID] = "open"
		case state.RunEnded:
			w.of(c.Of)
			w.runs[c.RunID] = "over"
		case state.Chunk:
			w.of(c.Of)
			w.piece(c)
		case state.CallBegan:
			w.of(c.Of)
			key := fmt.Sprint(c.AgentID, c.Call.ID)
			if o := w.ids[key]; o != nil && w.calls[o] == "open" {
				w.calls[o] = "answered" // its id is used again, so nothing answers it
			}
			w.calls[c.Call], w.ids[key] = "open", c.Call
		case state.CallEnded:
			w.of(c.Of)
			how := w.calls[c.Call]
			if c.Call != nil && (how == "" || how == "answered" || how == "left" && !c.Answered) {
				w.Errorf("the call %+v ends, which is %q", *c.Call, how)
			}
			if w.calls[c.Call] = "answered"; !c.Answered {
				w.calls[c.Call] = "left"
			}
		}
	}
}

func (w *watcher) piece(p state.Chunk) {
	open := w.open[p.AgentID]
	switch p.Kind {
	case state.Begin:
		if open != "" || w.texts[p.MessageID] && !p.Late {
			w.Errorf("%+v begins while %q is open, or for the second time", p, open)
		}
		w.open[p.AgentID], w.texts[p.MessageID] = p.MessageID, true
	case state.More:
		if open != p.MessageID || p.Text == "" {
			w.Errorf("%+v while %q is open", p, open)
		}
	case state.End:
		if open != p.MessageID {
			w.Errorf("%+v while %q is open", p, open)
		}
		delete(w.open, p.AgentID)
	}
}

// TestSame: the same inputs make the same state and changes, with a snapshot anywhere between
// them, and in as many goes as one likes.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, parts := state.New(), state.New()
		for i, in := range statetest.Feed(t) {
			if rapid.IntRange(0, 3).Draw(t, "reset") == 0 {
				parts.Apply(reset())
				parts.KnowMembers(slices.Collect(maps.Values(in.Members)))
				parts.KnowTasks(slices.Collect(maps.Values(in.Tasks)), nil)
			}
			if want, got := show(to(whole, in)), show(to(parts, in)); want != got {
				t.Fatalf("input %d makes %s\nwith a reset before it %s", i, want, got)
			}
		}
		if want, got := show(whole), show(parts); want != got {
			t.Errorf("without resets %s\nwith resets %s", want, got)
		}
	})
}

func reset() feed.Entry {
	return feed.Entry{Time: noon, Event: team.Event{Event: team.EventBody{Type: team.Custom, Name: "reset", Value: json.RawMessage(`{}`)}}}
}

// show is a value as text.
func show(v any) string {
	if t, ok := v.(*state.Team); ok {
		drafts := make([]state.Draft, 0)
		for _, d := range t.Drafts() {
			drafts = append(drafts, *d)
		}
		v = []any{*t, drafts}
	}
	data, _ := json.Marshal(v)
	return string(data)
}

// TestSnapshot: a snapshot where entries are missing puts right what they would have changed.
func TestSnapshot(t *testing.T) {
	s := state.New()
	s.KnowMembers([]team.Member{{AgentID: "a", State: team.Joined}, {AgentID: "b", State: team.Joined}, {AgentID: "carl", State: team.Joined, Backend: team.Person}})
	s.KnowTasks([]team.Task{
		{ID: "T-001", Status: team.InProgress, Assignee: "a"}, {ID: "T-002", Status: team.Pending},
	}, func(id team.TaskID) bool { return id != "T-002" })
	if a := s.Member("a"); !a.Here || a.Task != "T-001" || a.Idle || !s.Tasks["T-002"].Earlier || !s.IsPerson("carl") {
		t.Errorf("at first: %+v, %+v", a, s.Tasks)
	}
	begins(s, "r1")
	s.KnowMembers([]team.Member{{AgentID: "b", State: team.Lost}, {AgentID: "c", State: team.Joined}})
	s.KnowTasks([]team.Task{{ID: "T-001", Status: team.InProgress, Assignee: "c"}}, nil)
	if got, want := fmt.Sprint(s.Agents()), "[b c]"; got != want {
		t.Errorf("agents are %s, want %s", got, want)
	}
	if a, b, c := s.Member("a"), s.Member("b"), s.Member("c"); a.Here || a.Task != "" || !b.Lost || c.Task != "T-001" || len(s.Tasks) != 1 {
		t.Errorf("then: %+v\n%+v\n%+v\n%+v", a, b, c, s.Tasks)
	}
	if changes := s.Close(); len(changes) == 0 {
		t.Error("the run that was open is forgotten")
	}
}

// TestMember: what a member is at, for how long, and what it waits for.
func TestMember(t *testing.T) {
	s, at := state.New(), noon
	tell := func(b team.EventBody, value any) state.Member {
		if value != nil {
			b.Value, _ = json.Marshal(value)
		}
		at = at.Add(time.Second)
		changes := s.Apply(feed.Entry{Time: at, Event: team.Event{AgentID: "a", RoleName: "coder", RunID: "r", Event: b}})
		if c, ok := changes[len(changes)-1].(state.MemberChanged); !ok || c.After != s.Member("a") {
			t.Errorf("%s makes %+v", b.Type, changes)
		}
		return s.Member("a")
	}
	if m := tell(team.EventBody{Type: team.MemberJoined}, team.Member{AgentID: "a", Color: "blue", State: team.Joined}); !m.Here || m.Colour != "blue" || m.Role != "coder" || m.Joined != 1 {
		t.Errorf("joined: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.RunStarted}, nil); m.Idle || m.Run != "r" || m.Since != at {
		t.Errorf("in a run: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.ToolCallChunk, ToolCallID: "1", ToolCallName: "ask_user", Delta: "{}"}, nil); m.Call == nil || m.Asks != team.UserAgent {
		t.Errorf("asks: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.ToolCallChunk, ToolCallID: "2", ToolCallName: "bash", Delta: "{}"}, nil); m.Call.ID != "2" || len(s.Calls("a")) != 2 {
		t.Errorf("calls: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.ToolCallResult, ToolCallID: "2"}, nil); m.Call.ID != "1" || m.Since != m.Call.Began {
		t.Errorf("one of two has ended: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.RunError, Message: "cut"}, nil); m.Call != nil || !m.Idle || m.Run != "" || !s.Calls("a")[0].Over {
		t.Errorf("its run has ended: %+v", m)
	}
	for n := 1; n < 3; n++ {
		if m := tell(team.EventBody{Type: team.Retry, Message: "no\nmodel"}, nil); m.Trouble != "no model" || m.Refused != n {
			t.Errorf("refused: %+v", m)
		}
	}
	if m := tell(team.EventBody{Type: team.MemberParked}, team.Member{State: team.WaitingRepair, LastError: "it is damaged"}); !m.Parked || !m.Damaged || m.Trouble != "it is damaged" {
		t.Errorf("parked: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.MemberResumed}, team.Member{State: team.Joined}); m.Parked || m.Trouble != "" {
		t.Errorf("resumed: %+v", m)
	}
	if m := tell(team.EventBody{Type: team.MemberStopped}, team.Member{State: team.Stopped}); m.Here || m.Joined != 0 || len(s.Agents()) != 0 {
		t.Errorf("stopped: %+v", m)
	}
}

// TestResultByTheNextProcess: a process answers the calls of the one that it replaces before it
// has a run. The result is of the run of the call, and no run begins with it.
func TestResultByTheNextProcess(t *testing.T) {
	for name, over := range map[string]bool{"its run is open": false, "its run is over": true} {
		t.Run(name, func(t *testing.T) {
			s := state.New()
			begins(s, "r1")
			entry(s, "r1", team.EventBody{Type: team.ToolCallChunk, ToolCallID: "1", ToolCallName: "bash"})
			if over {
				ends(s, "r1")
			}
			changes := entry(s, "", team.EventBody{Type: team.ToolCallResult, ToolCallID: "1", Content: "lost"})
			if c, ok := changes[0].(state.CallEnded); !ok || c.Of != (state.Of{AgentID: "a", RunID: "r1", Late: over}) || c.Content != "lost" {
				t.Errorf("the result makes %+v", changes)
			}
			if len(s.Close()) == 0 == !over {
				t.Error("the run of the call has not ended, or another one had begun")
			}
		})
	}
}

// TestWaitingForPeople: questions and plans are there until they are answered or of no use.
func TestWaitingForPeople(t *testing.T) {
	s := state.New()
	tell := func(kind team.EventType, value any) {
		data, _ := json.Marshal(value)
		s.Apply(feed.Entry{Time: noon, Event: team.Event{AgentID: "a", Event: team.EventBody{Type: kind, Value: data}}})
	}
	ask := func(id string, task team.TaskID) {
		tell(team.MailSent, team.Message{ID: id, Type: team.MsgMessage, From: "a", To: team.UserAgent, AwaitReply: true, TaskID: task})
	}
	ids := func() string { return fmt.Sprint(slices.Sorted(maps.Keys(s.Questions))) }
	ask("q1", "")
	ask("q2", "T-001")
	ask("q3", "T-002")
	tell(team.MailSent, team.Message{ID: "m", Type: team.MsgMessage, From: "a", To: "b", AwaitReply: true})
	if got := ids(); got != "[q1 q2 q3]" {
		t.Errorf("open are %s", got)
	}
	tell(team.MailSent, team.Message{Type: team.MsgUser, From: team.UserAgent, To: "a", InReplyTo: "q1"})
	tell(team.TaskReleased, team.Task{ID: "T-002", Status: team.Pending, Assignee: "a"})
	if got := ids(); got != "[q2 q3]" {
		t.Errorf("after an answer and a release: %s", got)
	}
	tell(team.TaskClaimed, team.Task{ID: "T-002", Status: team.InProgress, Assignee: "b"})
	if s.Members["a"].Asks != "" || s.Members["b"].Asks != team.UserAgent {
		t.Errorf("once b holds the task, a asks %q and b %q", s.Members["a"].Asks, s.Members["b"].Asks)
	}
	tell(team.MailSent, team.Message{Type: team.MsgUser, From: team.UserAgent, To: "a"}) // which has the task no more
	if got := ids(); got != "[q3]" {                                                     // of T-001 nothing is known
		t.Errorf("after a word to the holder before: %s", got)
	}
	tell(team.TaskCompleted, team.Task{ID: "T-002", Status: team.Completed, Assignee: "b"})
	if got := ids(); got != "[]" {
		t.Errorf("after the end of a task: %s", got)
	}
	tell(team.ApprovalRequested, team.Approval{ID: "p", AgentID: "a", Status: team.PlanPending})
	if len(s.Plans) != 1 {
		t.Errorf("plans are %+v", s.Plans)
	}
	tell(team.ApprovalApproved, team.Approval{ID: "p", AgentID: "a", Status: team.PlanApproved})
	if len(s.Plans) != 0 {
		t.Errorf("a plan that is decided on waits: %+v", s.Plans)
	}
}
