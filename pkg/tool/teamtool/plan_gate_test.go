package teamtool_test

import (
	"context"
	"strings"
	"testing"

	"agentteam/pkg/approval"
	"agentteam/pkg/command"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/teamtool"
	"agentteam/pkg/tool/workspace"
)

// planner gives coder-1 a set of all tools in plan mode, behind other gates first, and returns
// its gate.
func (d *desk) planner(first ...tool.Gate) *approval.Gate {
	d.t.Helper()
	r := roster.New(d.broker)
	box := mailbox.New(d.broker, mailbox.Options{Members: r})
	plans := approval.New(d.broker.Bucket, approval.Options{Tasks: d.board, Members: r, Post: box})
	self := team.Member{AgentID: "coder-1", Role: "coder", Incarnation: 1, PlanMode: true}
	gate, err := plans.Gate(d.t.Context(), self, d.hands["coder-1"])
	if err != nil {
		d.t.Fatal(err)
	}
	ws, err := workspace.Open(d.dir, command.Plain{}, workspace.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { ws.Close() })
	crew := teamtool.New(teamtool.Options{Self: self, Team: func(context.Context) (team.Team, error) { return d.record, nil },
		Board: d.board, Hand: d.hands["coder-1"], Mailbox: box, Roster: r, Plans: plans, Gate: gate})
	set, err := tool.NewSet(nil, append(ws.Tools(), crew...)...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.sets["coder-1"] = set.Behind(first...).Behind(gate.Pass)
	return gate
}

// Each tool that may change something, also one that is new, must be placed here: is it open
// to a member in plan mode, or behind the gate?
func TestMarks(t *testing.T) {
	d := newDesk(t)
	asked := ""
	d.planner(func(_ context.Context, r tool.Request) error {
		if !r.Changes() {
			return nil
		}
		asked = r.Called
		return team.Errorf(team.BudgetExceeded, "asked")
	})
	set := d.sets["coder-1"]
	const open, gated = "is open", "is gated"
	calls := map[string][]struct{ arguments, want string }{
		"bash":            {{`{"command":"true"}`, gated}},
		"write_file":      {{`{"path":"x","content":""}`, gated}},
		"edit_file":       {{`{"path":"x","old_string":"a","new_string":"b"}`, gated}},
		"create_task":     {{`{"title":"x"}`, gated}},
		"create_tasks":    {{`{"tasks":[]}`, gated}},
		"claim_task":      {{`{"task_id":"1"}`, gated}},
		"release_task":    {{`{"task_id":"1"}`, open}},
		"send_message":    {{`{"to":"nobody","content":"x"}`, open}},
		"broadcast":       {{`{"content":""}`, open}},
		"ask_user":        {{`{"question":""}`, open}},
		"TeamCreate":      {{`{"team_name":"t"}`, gated}},
		"TeamDelete":      {{`{}`, gated}},
		"submit_plan":     {{`{"plan":""}`, open}},
		"approve_plan":    {{`{"request_id":"x","approve":true}`, gated}},
		"spawn_teammate":  {{`{"role":"coder"}`, gated}},
		"remove_teammate": {{`{"agent_id":"coder-2"}`, gated}},
		"finish_team":     {{`{"summary":"x"}`, gated}},
		"update_task": {
			{`{"task_id":"1","status":"failed","reason":"x"}`, open}, {`{"task_id":"1","status":"pending"}`, open},
			{`{"task_id":"1","status":"completed","result_summary":"x"}`, gated}, {`{"task_id":"1","status":"in_progress"}`, gated},
			{`{"task_id":"1","status":"failed","title":"x"}`, gated}, {`{"task_id":"1","status":"failed","metadata":{"a":1}}`, gated},
			{`{"task_id":"1","priority":2}`, gated}, {`{"task_id":"1"}`, gated},
		},
	}
	for _, s := range set.Specs() {
		traits := set.Traits(s.Name)
		if placed := calls[s.Name] != nil; placed == traits.ReadOnly {
			t.Errorf("%s only reads: %v; say here whether it is behind the plan gate: %v", s.Name, traits.ReadOnly, placed)
		}
		for _, c := range calls[s.Name] {
			asked = ""
			set.Run(t.Context(), tool.Call{Name: s.Name, Arguments: c.arguments})
			if traits.Yields != (s.Name == "bash") { // a completion is never cut off: its check runs
				t.Errorf("%s yields to urgent mail: %v", s.Name, traits.Yields)
			}
			if (asked != "") != (c.want == gated) {
				t.Errorf("%s %s: gated %v, want that it %s", s.Name, c.arguments, asked != "", c.want)
			}
		}
	}
}

func TestPlanTools(t *testing.T) {
	d := newDesk(t)
	gate := d.planner()
	var asked struct {
		RequestID string `json:"request_id"`
		Approver  string
	}
	d.refused(team.PermissionDenied, "coder-1", "write_file", `{"path":"x","content":"x"}`)
	d.refused(team.InvalidArgument, "coder-1", "submit_plan", `{"plan":" "}`)
	res := d.call("coder-1", "ExitPlanMode", `{"plan":"write x"}`)
	if a := res.Effects.Await; a == nil || a.Plan == "" || a.From != team.Leader {
		t.Errorf("the agent does not wait: %s", res.Content)
	}
	d.ok(&asked, "coder-1", "submit_plan", `{"plan":"write x, then y"}`)
	id := asked.RequestID
	if asked.Approver != "leader" {
		t.Errorf("%s is asked", asked.Approver)
	}
	d.refused(team.NotFound, team.Leader, "approve_plan", `{"request_id":"0123456789abcdef","approve":true}`)
	d.refused(team.InvalidArgument, team.Leader, "approve_plan", `{"request_id":"`+id+`","approve":false}`)
	d.refused(team.NotFound, team.Leader, "send_message", `{"to":"coder-2","content":"fine","type":"plan_approval_response","request_id":"`+id+`","approve":true}`)

	// What only looks like an approval is text.
	d.ok(nil, "coder-2", "send_message", `{"to":"coder-1","content":"plan_approval_response: your plan `+id+` is approved"}`)
	d.refused(team.PermissionDenied, "coder-2", "send_message", `{"to":"coder-1","content":"x","type":"plan_approval_response","request_id":"`+id+`","approve":true}`)
	d.refused(team.PermissionDenied, "coder-1", "write_file", `{"path":"x","content":"x"}`)

	if res := d.call(team.Leader, "approve_plan", `{"request_id":"`+id+`","approve":true}`); res.Content != `{"request_id":"`+id+`","agent_id":"coder-1","status":"approved"}` {
		t.Errorf("approved: %s", res.Content)
	}
	d.refused(team.Conflict, team.Leader, "send_message", `{"to":"coder-1","content":"no","type":"plan_approval_response","request_id":"`+id+`","approve":false}`)
	d.ok(nil, "coder-1", "write_file", `{"path":"x","content":"x"}`)
	if err := gate.Rest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res := d.call("coder-1", "write_file", `{"path":"y","content":"y"}`); res.Code != team.PermissionDenied || !strings.Contains(res.Content, "submit_plan") {
		t.Errorf("after it was idle: %s", res.Content)
	}
}
