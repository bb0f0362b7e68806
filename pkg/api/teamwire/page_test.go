package teamwire_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/api/teamwire"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// shown is what a page makes of a history.
func (r *rig) shown() map[team.AgentID]teamwire.Agent {
	r.t.Helper()
	status, body := r.ask("GET", "/team/history?"+ann, "")
	var h struct {
		Snapshot map[team.AgentID]teamwire.Agent
	}
	if err := json.Unmarshal([]byte(body), &h); err != nil || status != http.StatusOK {
		r.t.Fatalf("%d, %v in %s", status, err, body)
	}
	return h.Snapshot
}

// TestStoppedAtWork: whoever is stopped at work is shown as active no longer, nor is its tool
// call; and a stream says so before it is complete.
func TestStoppedAtWork(t *testing.T) {
	r := newRig(t)
	goal := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"count the files"}`)
	defer goal.Body.Close()
	follower := r.send(t.Context(), "GET", "/team/subscribe?"+ann, "")
	defer follower.Body.Close()
	c := r.cast("ann", "day 1")
	c.Member(team.Leader, "leader", team.Joined)
	c.Runs(team.Leader, team.EventBody{Type: team.RunStarted})
	c.Says(team.Leader, "I count.", "bash")
	c.Member("coder-1", "coder", team.Joined)
	c.Runs("coder-1", team.EventBody{Type: team.RunStarted})
	c.Says("coder-1", "", "read_file")
	c.Hears("coder-1", "read_file", "text")
	c.Member("coder-1", "coder", team.Lost)
	c.Ends(team.TeamStopped, "stopped by a person")
	for name, resp := range map[string]*http.Response{"stream": goal, "subscribe": follower} {
		all := lines(t, resp)
		text := strings.Join(all, "\n")
		for _, want := range []string{`"RUN_ERROR"`, `"code":"stopped"`} {
			if n := strings.Count(text, want); n != 2 {
				t.Errorf("%s: %q is there %d times in\n%s", name, want, n, text)
			}
		}
		end := func(what string) int {
			return slices.IndexFunc(all, func(l string) bool { return strings.Contains(l, what) && strings.Contains(l, `"agent_id":"leader"`) })
		}
		if result, over := end("TOOL_CALL_RESULT"), end("RUN_ERROR"); result < 0 || over < result || !strings.Contains(all[len(all)-1], `"complete"`) || over != len(all)-2 {
			t.Errorf("%s: the leader's call ends at %d, its run at %d of\n%s", name, result, over, text)
		}
	}
	c.Member(team.Leader, "leader", team.Stopped)
	for who, a := range r.shown() {
		data, err := json.Marshal(a.Blocks)
		if err != nil || a.IsActive || strings.Contains(string(data), `"result":null`) {
			t.Errorf("%s is shown as active: %v, with %s (%v)", who, a.IsActive, data, err)
		}
	}
}

// TestQuestions: a question is told in a form of which a page makes a box to answer in, and mail
// to a person makes no agent of the person.
func TestQuestions(t *testing.T) {
	r := newRig(t)
	r.ask("POST", "/team/tasks", "{"+who+`,"title":"first"}`)
	c := r.cast("ann", "day 1")
	for _, args := range []string{`{"question":"Which <db>?","choices":["pg","lite"]}`, `{"question":"Why?"}`, `{"questions":[]}`, `no JSON`} {
		turn, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", ToolCalls: []model.ToolCall{{ID: args, Name: "ask_user", Arguments: args}}}})
		r.ok(err)
		c.Writes("coder-1", journal.Record{Kind: journal.Turn, Turn: turn})
	}
	c.Mails("coder-1", team.UserAgent, team.MsgMessage, "Which?")
	all := r.shown()
	if len(all) != 1 {
		t.Errorf("shown are %v", all)
	}
	var got []string
	for _, b := range all["coder-1"].Blocks {
		b := b.(map[string]any)
		if b["kind"] == "tool_call" {
			got = append(got, b["args"].(string))
		}
	}
	want := []string{
		`{"choices":["pg","lite"],"question":"Which <db>?","questions":[{"question":"Which <db>?","header":"Answer","type":"choice","options":[{"label":"pg","description":""},{"label":"lite","description":""}]}]}`,
		`{"question":"Why?","questions":[{"question":"Why?","header":"Answer","type":"text"}]}`, `{"questions":[]}`, `no JSON`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the arguments are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPriorities: any whole number is taken, since clients of this wire may send any, and counts
// as the nearest priority that there is.
func TestPriorities(t *testing.T) {
	r := newRig(t)
	for sent, want := range map[string]string{"9": "2", "-1": "0", "1": "1"} {
		status, body := r.ask("POST", "/team/tasks", "{"+who+`,"title":"x","priority":`+sent+"}")
		if status != http.StatusOK || !strings.Contains(body, `"priority":`+want+",") {
			t.Errorf("priority %s: %d %s", sent, status, body)
		}
	}
}

// TestMessageAfterTheEnd: a team whose goal has ended takes no messages, until a task has made it
// active again.
func TestMessageAfterTheEnd(t *testing.T) {
	r := newRig(t)
	goal := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"count the files"}`)
	defer goal.Body.Close()
	c := r.cast("ann", "day 1")
	c.Ends(team.TeamFinished, "7")
	say := func(want int) {
		t.Helper()
		if status, body := r.ask("POST", "/team/user-message", "{"+who+`,"content":"hello"}`); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
	}
	say(http.StatusNotFound)
	r.ask("POST", "/team/tasks", "{"+who+`,"title":"first"}`)
	say(http.StatusOK)
}
