package teamtool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type sendResult struct {
	MessageID   string         `json:"message_id"`
	DeliveredTo []team.AgentID `json:"delivered_to"`
	Note        string         `json:"note"`
}

// inbox returns the messages that are stored for a member.
func (d *desk) inbox(a team.AgentID) (all []team.Message) {
	d.t.Helper()
	err := d.broker.Messages.Read(d.t.Context(), 1, func(m broker.Msg) error {
		var msg team.Message
		err := json.Unmarshal(m.Data, &msg)
		if msg.From != subject.Sender(m.Subject) {
			d.t.Errorf("a message of %s came on %s", msg.From, m.Subject)
		}
		all = append(all, msg)
		return err
	}, subject.Mail("t", a)...)
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

func TestSendMessage(t *testing.T) {
	d := newDesk(t)
	var s sendResult
	d.ok(&s, "coder-1", "send_message", `{"to":"coder-2","content":"在哪里? 🧭\nsecond line","in_reply_to":"m0"}`)
	if s.MessageID == "" || !slices.Equal(s.DeliveredTo, []team.AgentID{"coder-2"}) {
		t.Errorf("sent %+v", s)
	}
	got := d.inbox("coder-2")
	if len(got) != 1 || got[0].From != "coder-1" || got[0].Type != team.MsgMessage || got[0].Summary != "在哪里? 🧭" || got[0].InReplyTo != "m0" || got[0].ID != s.MessageID {
		t.Errorf("received %+v", got)
	}
	d.ok(&s, "coder-1", "SendMessage", `{"to":"leader","content":"hi","summary":"a greeting"}`)
	d.refused(team.NotFound, "coder-1", "send_message", `{"to":"coder-7","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"no one > *","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":">","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"coder-1","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"*","content":"hi","await_reply":true}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"leader","content":" "}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"leader"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"leader","content":"hi","from":"leader"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", fmt.Sprintf(`{"to":"leader","content":%q}`, strings.Repeat("x", 1<<20+1)))
	if res := d.call("coder-1", "send_message", fmt.Sprintf(`{"to":"leader","content":%q}`, strings.Repeat("x", 1<<20))); res.IsError || !strings.Contains(res.Content, "where the whole is: stored:") {
		t.Errorf("of a long text: %s", res.Content)
	}
	if n := len(d.inbox(team.Leader)); n != 2 {
		t.Errorf("the leader has %d messages, want 2: what is refused is not sent", n)
	}
}

// Each type of message is for some senders only, and has what belongs to it.
func TestMessageTypes(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "coder-1", "send_message", `{"to":"coder-2","content":"hi","type":"message"}`)
	for arguments, code := range map[string]team.Code{
		`{"to":"leader","content":"x","type":"user_message"}`:                                                         team.PermissionDenied,
		`{"to":"leader","content":"x","type":"watchdog"}`:                                                             team.PermissionDenied,
		`{"to":"leader","content":"x","type":"task_assigned"}`:                                                        team.PermissionDenied,
		`{"to":"leader","content":"x","type":"task_notification"}`:                                                    team.PermissionDenied,
		`{"to":"leader","content":"x","type":"plan_approval_request","request_id":"r"}`:                               team.PermissionDenied,
		`{"to":"leader","content":"x","type":"plan_approval_response","request_id":"r","approve":true}`:               team.PermissionDenied,
		`{"to":"coder-2","content":"x","type":"shutdown_request"}`:                                                    team.PermissionDenied,
		`{"to":"leader","content":"x","type":"order"}`:                                                                team.InvalidArgument,
		`{"to":"leader","content":"x","request_id":"r"}`:                                                              team.InvalidArgument,
		`{"to":"leader","content":"x","approve":false}`:                                                               team.InvalidArgument,
		`{"to":"leader","content":"x","type":"shutdown_response"}`:                                                    team.InvalidArgument,
		`{"to":"leader","content":"x","type":"shutdown_response","request_id":"r"}`:                                   team.InvalidArgument,
		`{"to":"leader","content":"x","type":"shutdown_response","approve":true}`:                                     team.InvalidArgument,
		`{"to":"leader","content":"x","type":"shutdown_response","request_id":"r","approve":true}`:                    team.NotFound,
		`{"to":"leader","content":"x","type":"shutdown_response","request_id":"r","approve":true,"await_reply":true}`: team.InvalidArgument,
	} {
		d.refused(code, "coder-1", "send_message", arguments)
	}
	for arguments, code := range map[string]team.Code{
		`{"to":"coder-1","content":"x","type":"shutdown_response","request_id":"r","approve":true}`:      team.PermissionDenied,
		`{"to":"coder-1","content":"x","type":"plan_approval_response","request_id":"r"}`:                team.InvalidArgument,
		`{"to":"coder-1","content":"x","type":"plan_approval_response","request_id":"r","approve":true}`: team.NotFound,
		`{"to":"coder-1","content":"x","type":"shutdown_request","request_id":"r"}`:                      team.InvalidArgument,
		`{"to":"coder-1","content":"x","type":"shutdown_request","approve":true}`:                        team.InvalidArgument,
		`{"to":"coder-1","content":"x","type":"shutdown_request","await_reply":true}`:                    team.InvalidArgument,
		`{"to":"user","content":"x","type":"shutdown_request"}`:                                          team.InvalidArgument,
		`{"to":"leader","content":"x","type":"shutdown_request"}`:                                        team.InvalidArgument,
		`{"to":"coder-7","content":"x","type":"shutdown_request"}`:                                       team.NotFound,
	} {
		d.refused(code, team.Leader, "send_message", arguments)
	}
	if got := d.inbox(team.Leader); len(got) != 0 {
		t.Errorf("what is refused was sent: %+v", got)
	}
	var s struct {
		RequestID string `json:"request_id"`
	}
	d.ok(&s, team.Leader, "send_message", `{"to":"coder-1","content":"you are not needed any more","type":"shutdown_request"}`)
	if got := d.inbox("coder-1"); len(got) != 1 || got[0].Type != team.MsgShutdownRequest || got[0].RequestID != s.RequestID || s.RequestID == "" {
		t.Errorf("coder-1 was sent %+v, the leader told %+v", got, s)
	}
}

// An answer to a request to shut down is carried out by the agent, once it is stored.
func TestShutdownResponse(t *testing.T) {
	d := newDesk(t)
	for _, approve := range []bool{true, false} {
		res := d.call("coder-1", "send_message", fmt.Sprintf(`{"to":"leader","content":"why","type":"shutdown_response","request_id":"asked","approve":%t}`, approve))
		if v := res.Effects.Verdict; v == nil || *v != (team.Verdict{RequestID: "asked", Approve: approve, Reason: "why"}) {
			t.Errorf("answered %t: %s", approve, res.Content)
		}
	}
	if got := d.inbox(team.Leader); len(got) != 0 {
		t.Errorf("sent by the tool: %+v", got)
	}
}

// A model is told of the types and arguments that its member may use, and of no other.
func TestTypesShown(t *testing.T) {
	d := newDesk(t)
	for who, want := range map[team.AgentID]struct{ shown, hidden []string }{
		team.Leader: {[]string{"shutdown_request"}, []string{"shutdown_response", "request_id", "approve"}},
		"coder-1":   {[]string{"shutdown_response", "request_id", "approve"}, nil},
	} {
		for _, spec := range d.sets[who].Specs() {
			if spec.Name != "send_message" {
				continue
			}
			for _, word := range want.shown {
				if !strings.Contains(string(spec.Schema), word) {
					t.Errorf("%s is not told of %s: %s", who, word, spec.Schema)
				}
			}
			for _, word := range want.hidden {
				if strings.Contains(string(spec.Schema), word) {
					t.Errorf("%s is told of %s: %s", who, word, spec.Schema)
				}
			}
		}
	}
}

func TestAwaitReply(t *testing.T) {
	d := newDesk(t)
	res := d.call("coder-1", "send_message", `{"to":"coder-2","content":"?"}`)
	if res.Effects.Await != nil {
		t.Error("waits for an answer that it did not ask for")
	}
	res = d.call("coder-1", "send_message", `{"to":"coder-2","content":"?","await_reply":true}`)
	a := res.Effects.Await
	if a == nil {
		t.Fatal("the agent is not told to wait")
	}
	if a.From != "coder-2" || a.MessageID == "" || time.Until(a.Until) > 10*time.Minute || time.Until(a.Until) < 9*time.Minute {
		t.Errorf("awaits %+v", a)
	}
	// A person takes as long as it takes.
	if _, err := roster.New(d.broker).Put(t.Context(), team.Member{AgentID: "ann", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Person}); err != nil {
		t.Fatal(err)
	}
	res = d.call("coder-1", "send_message", `{"to":"ann","content":"?","await_reply":true}`)
	if a := res.Effects.Await; a == nil || a.From != "ann" || !a.OfPerson() {
		t.Errorf("of a question to a seat: %s", res.Content)
	}
}

// A question of a teammate names the task that it holds; the leader waits on without it.
func TestQuestionNamesItsTask(t *testing.T) {
	d := newDesk(t)
	for _, who := range []team.AgentID{"coder-1", team.Leader} {
		d.ok(nil, who, "create_task", `{"title":"for `+string(who)+`"}`)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"T-001"}`)
	d.ok(nil, team.Leader, "claim_task", `{"task_id":"T-002"}`)
	for _, who := range []team.AgentID{"coder-1", team.Leader, "coder-2"} {
		d.ok(nil, who, "ask_user", `{"question":"Which?"}`)
	}
	d.ok(nil, "coder-1", "send_message", `{"to":"user","content":"done soon"}`)
	got := map[team.AgentID]string{}
	for _, m := range d.inbox(team.UserAgent) {
		got[m.From] += "[" + string(m.TaskID) + "]"
	}
	if want := (map[team.AgentID]string{"coder-1": "[T-001][]", team.Leader: "[]", "coder-2": "[]"}); !maps.Equal(got, want) {
		t.Errorf("the messages are for %v, want %v", got, want)
	}
}

// Mail to a member that has stopped is kept, and says so. Nobody can wait for its answer.
func TestSendToStopped(t *testing.T) {
	d := newDesk(t)
	res := d.call("coder-1", "send_message", `{"to":"gone-1","content":"for when you are back"}`)
	if res.IsError || !strings.Contains(res.Content, "gone-1 has stopped: it reads this only if it comes back") || len(d.inbox("gone-1")) != 1 {
		t.Errorf("%s; its inbox: %+v", res.Content, d.inbox("gone-1"))
	}
	d.refused(team.InvalidState, "coder-1", "send_message", `{"to":"gone-1","content":"?","await_reply":true}`)
	d.refused(team.InvalidState, team.Leader, "send_message", `{"to":"gone-1","content":"?","type":"shutdown_request"}`)
	if n := len(d.inbox("gone-1")); n != 1 {
		t.Errorf("a question that is refused was sent: %d messages", n)
	}
}

// A person is asked by mail to user, whose answer the agent awaits without a limit.
func TestAskUser(t *testing.T) {
	d := newDesk(t)
	for who, args := range map[team.AgentID]string{"coder-1": `{"question":"Which?","choices":["red","blue"]}`, team.Leader: `{"question":"Why?"}`} {
		res := d.call(who, "ask_user", args)
		if a := res.Effects.Await; a == nil || a.From != team.UserAgent || !a.OfPerson() || a.About == "" {
			t.Fatalf("%s asks: %s", who, res.Content)
		}
	}
	for _, args := range []string{`{}`, `{"question":" "}`, `{"question":"?","choices":["one"]}`, `{"question":"?","choices":["a","A"]}`, `{"question":"?","choices":["a","` + strings.Repeat("b", 201) + `"]}`} {
		d.refused(team.InvalidArgument, "coder-1", "ask_user", args)
	}
	got := d.inbox(team.UserAgent)
	if len(got) != 2 || slices.IndexFunc(got, func(m team.Message) bool {
		return m.From == "coder-1" && slices.Equal(m.Choices, []string{"red", "blue"}) && m.Asks()
	}) < 0 {
		t.Errorf("the person got %+v", got)
	}
}

// Urgent is the leader's, and a teammate is not told of it.
func TestUrgent(t *testing.T) {
	d := newDesk(t)
	d.refused(team.PermissionDenied, "coder-1", "send_message", `{"to":"coder-2","content":"hi","urgent":true}`)
	d.ok(nil, team.Leader, "send_message", `{"to":"coder-2","content":"stop","urgent":true}`)
	if got := d.inbox("coder-2"); len(got) != 1 || !got[0].Urgent {
		t.Errorf("coder-2 got %+v", got)
	}
	for who, want := range map[team.AgentID]bool{team.Leader: true, "coder-1": false} {
		for _, s := range d.sets[who].Specs() {
			if s.Name == "send_message" && strings.Contains(string(s.Schema), `"urgent"`) != want {
				t.Errorf("%s is told %s", who, s.Schema)
			}
		}
	}
}

// Each of a member's messages can be read again, by its number or id, and nobody else's.
func TestReadMail(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "tester-1", "send_message", `{"to":"coder-2","content":"not yours"}`)
	var one, all sendResult
	d.ok(&one, "tester-1", "send_message", `{"to":"coder-1","content":"the whole\ntext","in_reply_to":"m0"}`)
	d.ok(&all, team.Leader, "broadcast", `{"content":"to all"}`)
	for range 20 {
		d.ok(nil, "tester-1", "send_message", `{"to":"leader","content":"for the leader"}`)
	}
	for args, want := range map[string]string{
		`{"id":"2"}`:                                   `{"number":2,"id":"` + one.MessageID + `","from":"tester-1","type":"message","in_reply_to":"m0","content":"the whole\ntext"}`,
		`{"id":"` + all.MessageID + `"}`:               `{"number":3,"id":"` + all.MessageID + `","from":"leader","type":"broadcast","content":"to all"}`,
		`{"id":"` + team.ShortID(all.MessageID) + `"}`: `{"number":3,"id":"` + all.MessageID + `","from":"leader","type":"broadcast","content":"to all"}`,
		`{}`:          "2 tester-1 message: the whole\n3 leader broadcast: to all",
		`{"after":2}`: "3 leader broadcast: to all",
		`{"after":3}`: "no mail behind that number",
	} {
		if res := d.call("coder-1", "read_mail", args); res.IsError || res.Content != want {
			t.Errorf("read_mail %s: %s\nwant %s", args, res.Content, want)
		}
	}
	for _, id := range []string{"1", "4", "999", "nothing"} {
		d.refused(team.NotFound, "coder-1", "read_mail", `{"id":"`+id+`"}`)
	}
	for told, id := range map[string]string{team.ShortID(one.MessageID): one.MessageID, one.MessageID: one.MessageID, "prompt-1": "prompt-1"} {
		d.ok(&all, "coder-1", "send_message", `{"to":"tester-1","content":"an answer","in_reply_to":"`+told+`"}`)
		if res := d.call("tester-1", "read_mail", `{"id":"`+all.MessageID+`"}`); !strings.Contains(res.Content, `"in_reply_to":"`+id+`"`) {
			t.Errorf("an answer to %q is %s", told, res.Content)
		}
	}
	d.ok(nil, "coder-1", "send_message", `{"to":"leader","content":"the 21st"}`)
	if res := d.call(team.Leader, "read_mail", `{}`); !strings.HasSuffix(res.Content, "23 tester-1 message: for the leader\n1 more; list them with after: 23") {
		t.Errorf("the leader's list ends otherwise:\n%s", res.Content)
	}
}

// What a member was spawned with is the first of its mail.
func TestReadPrompt(t *testing.T) {
	d := newDesk(t)
	var sent sendResult
	d.ok(&sent, "coder-1", "send_message", `{"to":"tester-1","content":"hi"}`)
	const prompt = `{"number":0,"id":"prompt-1","from":"leader","type":"message","content":"Be brief.\nAnd kind."}`
	for args, want := range map[string]string{
		`{}`: "0 leader message: Be brief.\n1 coder-1 message: hi", `{"after":1}`: "no mail behind that number", `{"id":"0"}`: prompt, `{"id":"prompt-1"}`: prompt,
	} {
		if res := d.call("tester-1", "read_mail", args); res.IsError || res.Content != want {
			t.Errorf("read_mail %s: %s\nwant %s", args, res.Content, want)
		}
	}
}

// A message to models carries how many there were in a row, and its sender learns when it wakes no member. One
// to a person, and a question, wake as ever.
func TestExchange(t *testing.T) {
	d := newDesk(t)
	var talks team.Talks
	d.exchange = func(_ context.Context, to team.AgentID) (team.Exchange, error) { return talks.Next(to, 3), nil }
	for n := 1; n <= 8; n++ {
		var s sendResult
		res := d.ok(&s, "coder-1", "send_message", `{"to":"coder-2","content":"thank you"}`)
		if held := strings.Contains(s.Note, "wakes no idle member"); held != (n >= team.HeldFrom) {
			t.Errorf("message %d: %q", n, s.Note)
		}
		talks = talks.Sent(*res.Effects.Sent)
	}
	if res := d.ok(nil, "coder-1", "send_message", `{"to":"coder-2","content":"which?","await_reply":true}`); !res.Effects.Sent.Question || strings.Contains(res.Content, "wakes") {
		t.Errorf("a question: %s, %+v", res.Content, res.Effects.Sent)
	}
	if res := d.ok(nil, "coder-1", "send_message", `{"to":"user","content":"thank you"}`); res.Effects.Sent != nil {
		t.Errorf("to the user: %+v", res.Effects.Sent)
	}
	for n, m := range d.inbox("coder-2") {
		if m.Exchange == nil || m.Exchange.N != n+1 || m.Exchange.BoardSeq != 3 {
			t.Errorf("message %d: %+v", n+1, m.Exchange)
		}
	}
}

func TestBroadcast(t *testing.T) {
	d := newDesk(t)
	var s sendResult
	d.ok(&s, "coder-2", "send_message", `{"to":"*","content":"the build is green"}`)
	if got := d.inbox("coder-1"); len(got) != 1 || got[0].To != team.Everyone || got[0].Type != team.MsgBroadcast {
		t.Errorf("a message to * came as %+v", got)
	}
	d.ok(&s, "coder-1", "broadcast", `{"content":"the build is broken"}`)
	if !slices.Equal(s.DeliveredTo, []team.AgentID{team.Leader, "coder-2", "tester-1"}) {
		t.Errorf("delivered to %v", s.DeliveredTo)
	}
	if got := d.inbox("tester-1")[1:]; len(got) != 1 || got[0].To != team.Everyone || got[0].Type != team.MsgBroadcast {
		t.Errorf("received %+v", got)
	}
	d.refused(team.InvalidArgument, "coder-1", "broadcast", `{"content":""}`)
}

type teammate struct {
	AgentID team.AgentID     `json:"agent_id"`
	Role    string           `json:"role"`
	State   team.MemberState `json:"state"`
	Task    team.TaskID      `json:"task"`
	You     bool             `json:"you"`
}

func TestListTeammates(t *testing.T) {
	d := newDesk(t)
	d.pulse.Hear(team.Heartbeat{AgentID: "coder-2", Incarnation: 1, N: 1, State: team.Running, Task: "T-007"})
	var list []teammate
	d.ok(&list, "coder-1", "TeamStatus", ``)
	want := []teammate{
		{team.Leader, "leader", team.Joined, "", false}, {"coder-1", "coder", team.Joined, "", true},
		{"coder-2", "coder", team.Running, "T-007", false}, {"tester-1", "tester", team.Joined, "", false},
	}
	if !slices.Equal(list, want) {
		t.Errorf("list_teammates = %+v\nwant %+v", list, want)
	}
	d.refused(team.InvalidArgument, "coder-1", "list_teammates", `{"all":true}`)
}

func TestSpawnTeammate(t *testing.T) {
	d := newDesk(t)
	res := d.call(team.Leader, "spawn_teammate", `{"role":"general-purpose","prompt":"Be brief."}`)
	if res.Content != `{"agent_id":"coder-9","role":"coder"}` {
		t.Errorf("spawned %s", res.Content)
	}
	d.ok(nil, team.Leader, "TeamSpawn", `{"role":"tester","name":"tess","model":"small"}`)
	// A model that is not there is the role's, and the leader is told.
	if res = d.call(team.Leader, "spawn_teammate", `{"role":"tester","model":"huge"}`); res.IsError || !strings.Contains(res.Content, `"note":"there is no model \"huge\"`) {
		t.Errorf("spawned with an unknown model: %s", res.Content)
	}
	d.ok(nil, team.Leader, "spawn_teammate", `{"role":"tester","model":""}`)
	want := []team.Member{{AgentID: "coder-9", Role: "coder", Prompt: "Be brief."}, {AgentID: "tess", Role: "tester", Model: "small"}, {AgentID: "tester-9", Role: "tester"}, {AgentID: "tester-9", Role: "tester"}}
	if !reflect.DeepEqual(d.crew.spawned, want) {
		t.Errorf("asked for %+v", d.crew.spawned)
	}
	d.refused(team.InvalidArgument, team.Leader, "spawn_teammate", `{"role":"tester","name":"Tess!"}`)
	d.refused(team.InvalidArgument, team.Leader, "spawn_teammate", `{"role":"tester","name":"user"}`)
	d.refused(team.InvalidArgument, team.Leader, "spawn_teammate", `{}`)
	for _, code := range []team.Code{team.NotFound, team.InvalidState, team.Unavailable, team.Conflict} {
		d.crew.err = team.Errorf(code, "no")
		d.refused(code, team.Leader, "spawn_teammate", `{"role":"tester"}`)
	}
}

// A model is offered by name where there is a choice.
func TestSpawnModels(t *testing.T) {
	for _, tt := range []struct {
		aliases []string
		want    any // of the argument's enum; nil: there is no such argument
	}{
		{nil, nil},
		{[]string{"big"}, nil},
		{[]string{"big", "small"}, []any{"big", "small"}},
	} {
		tools := teamtool.New(teamtool.Options{Self: team.Member{AgentID: team.Leader}, Aliases: tt.aliases})
		set, err := tool.NewSet(nil, tools...)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range set.Specs() {
			if spec.Name != "spawn_teammate" {
				continue
			}
			var schema struct {
				Properties map[string]map[string]any `json:"properties"`
			}
			if err := json.Unmarshal(spec.Schema, &schema); err != nil {
				t.Fatal(err)
			}
			if got := schema.Properties["model"]["enum"]; !reflect.DeepEqual(got, tt.want) || (tt.want == nil) != (schema.Properties["model"] == nil) {
				t.Errorf("with %v: %s", tt.aliases, spec.Schema)
			}
		}
	}
}

func TestRemoveTeammate(t *testing.T) {
	d := newDesk(t)
	d.refused(team.InvalidArgument, team.Leader, "remove_teammate", `{"agent_id":"leader"}`)
	d.refused(team.NotFound, team.Leader, "remove_teammate", `{"agent_id":"coder-7"}`)
	if res := d.call(team.Leader, "remove_teammate", `{"agent_id":"gone-1"}`); res.Content != `{"agent_id":"gone-1","state":"stopped"}` {
		t.Errorf("removed one that has left: %s", res.Content)
	}
	if _, err := roster.New(d.broker).Put(t.Context(), team.Member{AgentID: "ann", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Person}); err != nil {
		t.Fatal(err)
	}
	d.refused(team.PermissionDenied, team.Leader, "remove_teammate", `{"agent_id":"ann"}`)
	if len(d.crew.removed) != 0 {
		t.Errorf("removed %v all the same", d.crew.removed)
	}
	for want, answer := range map[string]spawn.Answer{
		`{"agent_id":"coder-2","state":"stopped"}`:                                  {RequestID: "r", Left: true},
		`{"agent_id":"coder-2","state":"refused","reason":"half of it is written"}`: {RequestID: "r", Refused: true, Reason: "half of it is written"},
		`{"agent_id":"coder-2","state":"asked","request_id":"r"}`:                   {RequestID: "r"},
	} {
		d.crew.answer = answer
		if res := d.call(team.Leader, "remove_teammate", `{"agent_id":"coder-2","reason":"we are done"}`); res.Content != want {
			t.Errorf("removed: %s, want %s", res.Content, want)
		}
	}
	d.crew.err = team.Errorf(team.Unavailable, "no")
	d.refused(team.Unavailable, team.Leader, "remove_teammate", `{"agent_id":"tester-1"}`)
}

func TestFinishTeam(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"b"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.ok(nil, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"ok"}`)
	d.ok(nil, team.Leader, "update_task", `{"task_id":"2","status":"cancelled"}`)
	d.refused(team.InvalidArgument, team.Leader, "finish_team", `{"summary":""}`)
	d.refused(team.InvalidArgument, team.Leader, "finish_team", `{}`)
	d.crew.err = team.Errorf(team.Conflict, "mail is unread")
	d.refused(team.Conflict, team.Leader, "finish_team", `{"summary":"all is done"}`)
	d.crew.err = nil
	d.refused(team.InvalidArgument, team.Leader, "finish_team", `{"summary":"x","given_up":["the last"]}`)
	res := d.call(team.Leader, "finish_team", `{"summary":"all is done","given_up":["#2"]}`)
	if res.Content != `{"summary":"all is done","completed_tasks":1,"total_tasks":2}` || d.crew.summary != "all is done" || !slices.Equal(d.crew.givenUp, []team.TaskID{"T-002"}) {
		t.Errorf("finished: %s", res.Content)
	}
	if !res.Effects.Ends {
		t.Error("the leader's run goes on")
	}
}

// The leader's tools are known to a teammate and refused, under each of their names.
func TestLeadersTools(t *testing.T) {
	d := newDesk(t)
	for name, arguments := range map[string]string{
		"spawn_teammate": `{"role":"coder"}`, "TeamSpawn": `{"role":"coder"}`, "Task": `{"role":"coder"}`,
		"remove_teammate": `{"agent_id":"coder-2"}`, "approve_plan": `{"request_id":"x","approve":true}`, "finish_team": `{"summary":"x"}`, "TeamDelete": `{"summary":"x"}`,
	} {
		d.refused(team.PermissionDenied, "coder-1", name, arguments)
	}
	for _, s := range d.sets["coder-1"].Specs() {
		if slices.Contains([]string{"spawn_teammate", "remove_teammate", "approve_plan", "submit_plan", "finish_team"}, s.Name) {
			t.Errorf("a teammate is offered %s", s.Name)
		}
	}
	if n := len(d.sets[team.Leader].Specs()) - len(d.sets["coder-1"].Specs()); n != 4 {
		t.Errorf("the leader has %d tools more, want 4", n)
	}
}

// What NATS cannot take now is unavailable, and says so in time.
func TestNATSAway(t *testing.T) {
	d := newDesk(t)
	d.broker.Conn.Close()
	for name, arguments := range map[string]string{
		"list_tasks": `{}`, "create_task": `{"title":"x"}`, "claim_task": `{"task_id":"1"}`, "send_message": `{"to":"leader","content":"x"}`,
		"broadcast": `{"content":"x"}`, "list_teammates": `{}`,
	} {
		d.refused(team.Unavailable, "coder-1", name, arguments)
	}
}

// A teammate is told how to create tasks only where it may; what it is not told is known all
// the same, and refused in words that help.
func TestCreatorsAreTold(t *testing.T) {
	for _, dialect := range []team.Dialect{team.Native, team.Claude} {
		for _, tt := range []struct {
			who     team.AgentID
			leaders bool // only the leader creates
			want    bool
		}{{"coder-1", false, true}, {"coder-1", true, false}, {team.Leader, true, true}} {
			set, err := tool.NewSet(nil, teamtool.New(teamtool.Options{Self: team.Member{AgentID: tt.who}, LeaderCreates: tt.leaders})...)
			if err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(set.Speaking(dialect).Specs(), func(s tool.Spec) bool {
				return s.Name == "create_tasks" || s.Name == "TeamFanout" || s.Name == "TaskCreate"
			})
			if told != tt.want {
				t.Errorf("%s in %s, only the leader creates: %t; told %t", tt.who, dialect, tt.leaders, told)
			}
			if r := set.Run(t.Context(), tool.Call{Name: "TaskCreate", Arguments: `{}`}); r.Code == team.NotFound {
				t.Errorf("TaskCreate is not known: %s", r.Content)
			}
		}
	}
}
