package teamwire

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/store/feed/state/statetest"
	"agentteam/pkg/team"
)

// kinds are envelopes in a few words.
func kinds(all []Envelope) (words []string) {
	for _, e := range all {
		data, _ := json.Marshal(e.Event)
		var event struct{ Type, Delta string }
		_ = json.Unmarshal(data, &event)
		words = append(words, fmt.Sprint(e.AgentID, " ", event.Type, " ", event.Delta))
	}
	return words
}

// TestLive: a text is told while it is written, and not again once it is stored.
func TestLive(t *testing.T) {
	c := newConverter("red")
	c.know([]team.Member{{AgentID: "coder-1", Role: "coder"}})
	var got []Envelope
	delta := func(a team.AgentID, offset int, text string) {
		got = append(got, c.convert(stream.Item{Delta: &team.Delta{AgentID: a, MessageID: "m-" + string(a), Offset: offset, Text: text}})...)
	}
	entry := func(a team.AgentID, b team.EventBody) {
		got = append(got, c.convert(stream.Item{Entry: &client.Entry{Event: team.Event{AgentID: a, Event: b}}})...)
	}
	delta("coder-1", 0, "one ")
	delta("coder-2", 0, "never ended")
	delta("coder-1", 4, "two ")
	entry("coder-1", team.EventBody{Type: team.TextChunk, MessageID: "m-coder-1", Delta: "one two three"})
	entry("coder-2", team.EventBody{Type: team.RunError})
	delta("coder-3", 0, "cut")
	got = append(got, c.close(team.TeamStopped)...)
	want := []string{
		"coder-1 TEXT_MESSAGE_START ", "coder-1 TEXT_MESSAGE_CONTENT one ",
		"coder-2 TEXT_MESSAGE_START ", "coder-2 TEXT_MESSAGE_CONTENT never ended",
		"coder-1 TEXT_MESSAGE_CONTENT two ", "coder-1 TEXT_MESSAGE_CONTENT three", "coder-1 TEXT_MESSAGE_END ",
		"coder-2 TEXT_MESSAGE_END ", "coder-2 RUN_ERROR ",
		"coder-3 TEXT_MESSAGE_START ", "coder-3 TEXT_MESSAGE_CONTENT cut", "coder-3 TEXT_MESSAGE_END ",
	}
	if !slices.Equal(kinds(got), want) {
		t.Errorf("got %q", kinds(got))
	}
	if got[0].RoleName == nil || *got[0].RoleName != "coder" || got[2].RoleName != nil {
		t.Errorf("the roles are wrong: %+v", got)
	}
}

// TestBroadcast: each member who has not left by then gets an envelope of its own.
func TestBroadcast(t *testing.T) {
	c := newConverter("red")
	c.know([]team.Member{{AgentID: "coder-1"}, {AgentID: "carl", Backend: team.Person}, {AgentID: "gone", State: team.Stopped}})
	tell := func(typ team.EventType, value any) []Envelope {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return c.convert(stream.Item{Entry: &client.Entry{Event: team.Event{Event: team.EventBody{Type: typ, Value: data}}}})
	}
	tell(team.MemberJoined, team.Member{AgentID: "coder-2"})
	tell(team.MemberJoined, team.Member{AgentID: "tester-1"})
	tell(team.MemberStopped, team.Member{AgentID: "tester-1"})
	all := tell(team.MailSent, team.Message{Type: team.MsgBroadcast, From: "coder-1", To: team.Everyone, Content: "hi"})
	if got, want := kinds(all), []string{"leader TEAM_MESSAGE ", "coder-2 TEAM_MESSAGE "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAnyFeed: whatever happens, and whatever of it is missing, late or there twice, each run,
// text and call that begins ends once.
func TestAnyFeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		feed := statetest.Faulty(t, statetest.Feed(t))
		feed = feed[rapid.IntRange(0, len(feed)-1).Draw(t, "from"):]
		c := newConverter("red")
		var all []Envelope
		for _, i := range feed {
			all = append(all, c.convert(stream.Item{Entry: i.Entry, Delta: i.Delta})...)
		}
		texts, runs, calls := map[team.AgentID]string{}, map[string]string{}, map[string]bool{}
		for _, e := range append(all, c.close(team.TeamStopped)...) {
			fail := func() {
				t.Errorf("%s: %+v, while open are texts %v, runs %v, calls %v", e.AgentID, e.Event, texts, runs, calls)
			}
			switch x := e.Event.(type) {
			case textStart:
				if texts[e.AgentID] != "" {
					fail()
				}
				texts[e.AgentID] = x.MessageID
			case text:
				if texts[e.AgentID] != x.MessageID {
					fail()
				}
				if x.Type == "TEXT_MESSAGE_END" {
					delete(texts, e.AgentID)
				}
			case runStarted:
				if runs[x.RunID] != "" {
					fail()
				}
				runs[x.RunID] = "open"
			case runFinished, runError:
				id := endedBy(x)
				if runs[id] == "over" {
					fail()
				}
				runs[id] = "over"
			case toolCallStart:
				calls[string(e.AgentID)+x.ToolCallID] = true
			case toolCallResult:
				delete(calls, string(e.AgentID)+x.ToolCallID)
			}
		}
		for id, how := range runs {
			if how == "open" {
				t.Errorf("the run %s has no end", id)
			}
		}
		for a := range c.team.Members { // of what came after the end of its run the result may be missing
			for _, call := range c.team.Calls(a) {
				if call.Late {
					delete(calls, string(a)+call.ID)
				}
			}
		}
		if len(texts)+len(calls) > 0 {
			t.Errorf("the texts %v and the calls %v have no end", texts, calls)
		}
	})
}

func endedBy(event any) string {
	if x, ok := event.(runError); ok {
		return x.RunID
	}
	return event.(runFinished).RunID
}
