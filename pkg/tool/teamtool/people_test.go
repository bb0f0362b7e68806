package teamtool_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent"
	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/teamtool"
)

type sent struct {
	MessageID   string         `json:"message_id"`
	DeliveredTo []team.AgentID `json:"delivered_to"`
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
	var s sent
	d.ok(&s, "coder-1", "send_message", `{"to":"coder-2","content":"在哪里? 🧭\nsecond line","in_reply_to":"m0"}`)
	if s.MessageID == "" || !slices.Equal(s.DeliveredTo, []team.AgentID{"coder-2"}) {
		t.Errorf("sent %+v", s)
	}
	got := d.inbox("coder-2")
	if len(got) != 1 || got[0].From != "coder-1" || got[0].Type != team.MsgMessage || got[0].Summary != "在哪里? 🧭" || got[0].InReplyTo != "m0" || got[0].ID != s.MessageID {
		t.Errorf("received %+v", got)
	}
	d.ok(&s, "coder-1", "SendMessage", `{"to":"leader","content":"hi"}`)
	d.refused(team.NotFound, "coder-1", "send_message", `{"to":"coder-7","content":"hi"}`)
	d.refused(team.NotFound, "coder-1", "send_message", `{"to":"gone-1","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"no one > *","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":">","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"coder-1","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"*","content":"hi"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"leader","content":" "}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"leader"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", `{"to":"leader","content":"hi","from":"leader"}`)
	d.refused(team.InvalidArgument, "coder-1", "send_message", fmt.Sprintf(`{"to":"leader","content":%q}`, strings.Repeat("x", 64<<10+1)))
	d.ok(nil, "coder-1", "send_message", fmt.Sprintf(`{"to":"leader","content":%q}`, strings.Repeat("x", 64<<10)))
	if n := len(d.inbox(team.Leader)); n != 2 {
		t.Errorf("the leader has %d messages, want 2: what is refused is not sent", n)
	}
}

func TestAwaitReply(t *testing.T) {
	d := newDesk(t)
	res := d.call("coder-1", "send_message", `{"to":"coder-2","content":"?"}`)
	if w, ok := res.Value.(agent.Awaiter); ok && w.Awaits() != nil {
		t.Error("waits for an answer that it did not ask for")
	}
	res = d.call("coder-1", "send_message", `{"to":"coder-2","content":"?","await_reply":true}`)
	w, ok := res.Value.(agent.Awaiter)
	if !ok || w.Awaits() == nil {
		t.Fatal("the agent is not told to wait")
	}
	if a := w.Awaits(); a.From != "coder-2" || a.MessageID == "" || time.Until(a.Until) > 10*time.Minute || time.Until(a.Until) < 9*time.Minute {
		t.Errorf("awaits %+v", a)
	}
}

func TestBroadcast(t *testing.T) {
	d := newDesk(t)
	var s sent
	d.ok(&s, "coder-1", "broadcast", `{"content":"the build is broken"}`)
	if !slices.Equal(s.DeliveredTo, []team.AgentID{team.Leader, "coder-2", "tester-1"}) {
		t.Errorf("delivered to %v", s.DeliveredTo)
	}
	if got := d.inbox("tester-1"); len(got) != 1 || got[0].To != team.Everyone || got[0].Type != team.MsgBroadcast {
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
	d.pulse.Hear(team.Beat{AgentID: "coder-2", Incarnation: 1, N: 1, State: team.Running, Task: "T-007"})
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
	want := []team.Member{{AgentID: "coder-9", Role: "coder", Prompt: "Be brief."}, {AgentID: "tess", Role: "tester", Model: "small"}}
	if !reflect.DeepEqual(d.crew.spawned, want) {
		t.Errorf("asked for %+v", d.crew.spawned)
	}
	d.refused(team.InvalidArgument, team.Leader, "spawn_teammate", `{"role":"tester","model":"huge"}`)
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
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"b"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.ok(nil, "coder-2", "claim_task", `{"task_id":"2"}`)
	d.ok(nil, "coder-2", "update_task", `{"task_id":"2","status":"completed","result_summary":"ok"}`)
	d.pulse.Hear(team.Beat{AgentID: "coder-2", Incarnation: 1, N: 1, State: team.Running})
	d.refused(team.InvalidState, team.Leader, "remove_teammate", `{"agent_id":"coder-1"}`) // holds a task
	d.refused(team.InvalidState, team.Leader, "remove_teammate", `{"agent_id":"coder-2"}`) // runs
	d.refused(team.InvalidArgument, team.Leader, "remove_teammate", `{"agent_id":"leader"}`)
	d.refused(team.NotFound, team.Leader, "remove_teammate", `{"agent_id":"coder-7"}`)
	if len(d.crew.removed) != 0 {
		t.Errorf("removed %v all the same", d.crew.removed)
	}
	d.pulse.Hear(team.Beat{AgentID: "coder-2", Incarnation: 1, N: 2, State: team.Idle})
	if res := d.call(team.Leader, "remove_teammate", `{"agent_id":"coder-2"}`); res.Content != `{"agent_id":"coder-2","state":"stopped"}` {
		t.Errorf("removed: %s", res.Content)
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
	res := d.call(team.Leader, "TeamDelete", `{"summary":"all is done"}`)
	if res.Content != `{"summary":"all is done","completed_tasks":1,"total_tasks":2}` || d.crew.summary != "all is done" {
		t.Errorf("finished: %s", res.Content)
	}
	if e, ok := res.Value.(agent.Ender); !ok || !e.EndsRun() {
		t.Error("the leader's run goes on")
	}
}

// The leader's tools are known to a teammate and refused, under each of their names.
func TestLeadersTools(t *testing.T) {
	d := newDesk(t)
	for name, arguments := range map[string]string{
		"spawn_teammate": `{"role":"coder"}`, "TeamSpawn": `{"role":"coder"}`, "Task": `{"role":"coder"}`,
		"remove_teammate": `{"agent_id":"coder-2"}`, "finish_team": `{"summary":"x"}`, "TeamDelete": `{"summary":"x"}`,
	} {
		d.refused(team.PermissionDenied, "coder-1", name, arguments)
	}
	for _, s := range d.sets["coder-1"].Specs() {
		if slices.Contains([]string{"spawn_teammate", "remove_teammate", "finish_team"}, s.Name) {
			t.Errorf("a teammate is offered %s", s.Name)
		}
	}
	if n := len(d.sets[team.Leader].Specs()) - len(d.sets["coder-1"].Specs()); n != 3 {
		t.Errorf("the leader has %d tools more, want 3", n)
	}
}

func TestAllowedLeavesItsArgument(t *testing.T) {
	names := []string{"finish_team", "bash"}
	if got := teamtool.Allowed(team.Member{AgentID: "coder-1"}, names); !slices.Equal(got, []string{"bash"}) || names[0] != "finish_team" {
		t.Errorf("Allowed = %v, its argument is %v now", got, names)
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
