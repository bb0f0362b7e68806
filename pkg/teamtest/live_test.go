package teamtest_test

import (
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// What a model writes is told while it writes, as a part of the text that the feed has in
// the end; what an endpoint breaks off is begun anew.
func TestTextsAreLive(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, `
agents:
- match: {role: leader}
  rules:
  - name: lead
    since: '<mail from="user"[^>]*>\s*Talk'
    steps:
    - say: 'I say 你好, and then I say some more, so that it can break off.'
      fault: {cut: true}
      calls:
      - {tool: finish_team, args: {summary: done}}
  - {name: wait, say: I wait.}
`)
	c.Leader()
	tm := c.Team("t")
	deltas := make(chan team.Delta, 1000)
	listening := make(chan error, 1)
	go func() {
		listening <- tm.Live(t.Context(), []team.AgentID{team.Leader}, func(d team.Delta) { deltas <- d })
	}()
	for round := 1; ; round++ { // until it listens
		teamtest.Wait(t, teamtest.Set(t, tm, "Talk"))
		if len(deltas) > 0 {
			break
		}
		if round == 20 {
			t.Fatal("no text was told while it was written")
		}
	}
	texts := map[string]team.Event{} // by message
	err := tm.Feed(t.Context(), client.FeedOptions{Types: []team.EventType{team.TextChunk}}, func(e client.Entry) error {
		texts[e.Event.Event.MessageID] = e.Event
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for len(deltas) > 0 {
		d := <-deltas
		whole, there := texts[d.MessageID]
		if !there || d.RunID != whole.RunID || d.AgentID != whole.AgentID || d.Incarnation == 0 || !strings.HasPrefix(whole.Event.Delta[min(d.Offset, len(whole.Event.Delta)):], d.Text) {
			t.Errorf("told while it was written: %+v; the feed has %+v", d, whole)
		}
	}
	select {
	case err := <-listening:
		t.Errorf("listening has ended: %v", err)
	default:
	}
}
