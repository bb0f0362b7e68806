package agent

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// A leader that answers a question with plain text is told, once, that nobody gets it.
func TestTextIsNoAnswer(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		waits := team.Heartbeat{AgentID: "coder-1", State: team.WaitingAnswer, Awaits: team.Leader, Asked: "m1", About: "Which colour?"}
		r.team.asking = func() []team.Heartbeat { return []team.Heartbeat{waits} }
		r.says("Blue, I think.", "As I said.", "!send", "Done.", "There is nothing to say.")
		r.start()
		r.post(1, "coder-1", team.MsgMessage, "Which colour?")
		r.wantKinds("start mail turn note turn end")
		if !strings.Contains(r.notes(), `not sent to coder-1, which waits for your answer to mail m1 ("Which colour?")`) {
			t.Errorf("the leader was told %q", r.notes())
		}
		waits.Asked = "m2" // another question is another reminder
		r.post(2, "coder-1", team.MsgMessage, "And which size?")
		r.wantKinds("start mail turn note turn end mail turn result turn note turn end")
	})
}

// A call that names the member has answered it; what the model has not seen cannot be.
func TestAsked(t *testing.T) {
	waits := team.Heartbeat{AgentID: "coder-1", Asked: "m1"}
	question := mailRecord(1, "coder-1", team.MsgMessage, "Which colour?")
	answered := turnRecord("", "send")
	answered.Turn = []byte(`{"message":{"role":"assistant","tool_calls":[{"id":"a","name":"send_message","arguments":"{\"to\": \"coder-1\"}"}]}}`)
	other := turnRecord("", "send")
	other.Turn = []byte(`{"message":{"role":"assistant","tool_calls":[{"id":"a","name":"send_message","arguments":"{\"to\": \"coder-10\"}"}]}}`)
	if !fold(t, question, turnRecord("Blue.")).asked(waits) || !fold(t, question, other).asked(waits) {
		t.Error("a question without an answer is not known")
	}
	if fold(t, question, answered).asked(waits) || fold(t, turnRecord("Blue.")).asked(waits) || fold(t, question).asked(team.Heartbeat{AgentID: "coder-1"}) {
		t.Error("it is reminded of what it has answered, or cannot know")
	}
}
