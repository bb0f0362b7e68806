package teamtool_test

import (
	"context"
	"strings"
	"testing"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// planner gives coder-1 a set of all tools in plan mode, behind other gates first, and returns
// its gate.
func (d *desk) planner(first ...tool.Gate) *approval.Gate {
	d.t.Helper()
	return d.gated(team.Member{AgentID: "coder-1", Role: "coder", Incarnation: 1, PlanMode: true}, first...)
}

// gated gives a member a set of all tools, behind other gates first, and returns its gate.
func (d *desk) gated(self team.Member, first ...tool.Gate) *approval.Gate {
	d.t.Helper()
	r := roster.New(d.broker)
	box := mailbox.New(d.broker, mailbox.Options{Members: r})
	plans := approval.New(d.broker.Bucket, approval.Options{Tasks: d.board, Members: r, Post: box})
	gate, err := plans.Gate(d.t.Context(), self, d.hands[self.AgentID])
	if err != nil {
		d.t.Fatal(err)
	}
	ws, err := workspace.Open(d.dir, command.Plain{}, workspace.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { ws.Close() })
	crew := teamtool.New(teamtool.Options{Self: self, Team: func(context.Context) (team.Team, error) { return d.record, nil },
		Board: d.board, Slot: d.hands[self.AgentID], Mailbox: box, Roster: r, Plans: plans, Gate: gate,
		List: func(ctx context.Context, q team.Query) (team.Page, error) {
			return index.List(ctx, d.broker, d.board, q)
		},
		Inherited: func(ctx context.Context, t team.Task) (in team.Inherited, err error) {
			var plan team.Approval
			in.Note, plan, err = gate.Taken(ctx, t)
			in.Plan, in.Await = plan.Plan, plan.Await()
			return in, err
		},
		Verify: func(ctx context.Context, t team.Task, _ []string) (digest string, kept []team.Artifact, err error) {
			digest, err = completion.Verify(ctx, t, ws, d.broker.Files)
			return digest, nil, err
		},
	})
	set, err := tool.NewSet(nil, append(ws.Tools(), crew...)...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.sets[self.AgentID] = set.Behind(first...).Behind(gate.Pass)
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

// A plain member that claims a task whose plan waits reads that in the answer to its call, and waits for the decision.
func TestClaimOfGatedTask(t *testing.T) {
	for name, claim := range map[string]string{"claim_task": `{"task_id":"1"}`, "update_task": `{"task_id":"1","status":"in_progress"}`} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.gated(team.Member{AgentID: "coder-2", Role: "coder", Incarnation: 1})
			d.refused(team.InvalidState, "coder-2", "submit_plan", `{"plan":"for nothing"}`)
			d.ok(nil, team.Leader, "create_task", `{"title":"x"}`)
			planner := team.Member{AgentID: "coder-1", Role: "coder", Incarnation: 1, PlanMode: true}
			hand, r := board.NewClaimSlot(t.Context(), d.board, planner.Holder()), roster.New(d.broker)
			if _, err := hand.Claim(t.Context(), "T-001"); err != nil {
				t.Fatal(err)
			}
			gate, err := approval.New(d.broker.Bucket, approval.Options{Tasks: d.board, Members: r, Post: mailbox.New(d.broker, mailbox.Options{Members: r})}).Gate(t.Context(), planner, hand)
			if err == nil {
				_, err = gate.Submit(t.Context(), "first the lexer")
			}
			if err == nil {
				_, err = hand.Release(t.Context(), "T-001", team.Freed{Reason: "lost"})
			}
			if err != nil {
				t.Fatal(err)
			}
			d.refused(team.PermissionDenied, team.Leader, "claim_task", `{"task_id":"1"}`)
			res := d.call("coder-2", name, claim)
			if w := res.Effects.Await; res.IsError || w == nil || w.Plan == "" || w.From != team.Leader || w.Task != "T-001" {
				t.Errorf("it waits for %+v: %s", w, res.Content)
			}
			if !strings.Contains(res.Content, "The plan of coder-1 for this task is submitted again in your name") || !strings.Contains(res.Content, "first the lexer") {
				t.Errorf("it reads %s", res.Content)
			}
			d.refused(team.PermissionDenied, "coder-2", "write_file", `{"path":"x","content":"x"}`)
			d.ok(nil, team.Leader, "approve_plan", `{"request_id":"`+res.Effects.Await.Plan+`","approve":true}`)
			d.ok(nil, "coder-2", "write_file", `{"path":"x","content":"x"}`)
			if res := d.call(team.Leader, "get_task", `{"task_id":"1"}`); !strings.Contains(res.Content, `"needs_plan_approved_by":"leader"`) {
				t.Errorf("get_task shows %s", res.Content)
			}
		})
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
	if err := gate.Requeue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res := d.call("coder-1", "write_file", `{"path":"y","content":"y"}`); res.Code != team.PermissionDenied || !strings.Contains(res.Content, "submit_plan") {
		t.Errorf("after it was idle: %s", res.Content)
	}
}
