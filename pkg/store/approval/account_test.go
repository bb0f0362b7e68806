package approval_test

import (
	"context"
	"reflect"
	"testing"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// account is what is noted of a call behind a gate.
func account(t *testing.T, gate tool.Gate) team.Account {
	t.Helper()
	set, err := tool.NewSet(nil, tool.New("bash", "", func(context.Context, struct {
		Command string `json:"command"`
	}) (tool.Output, error) {
		return tool.Output{}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	a := set.Behind(gate).Run(t.Context(), tool.Call{Name: "bash", Arguments: `{"command":"make"}`}).Account
	a.Arguments = ""
	return a
}

// Of each call it is known which rule has decided, at which level, and who has let it pass: with
// the first use of an approval and with every other.
func TestAccounts(t *testing.T) {
	r := newRig(t)
	planner := r.agent(1, "")
	r.task(planner)
	same := func(what string, gate tool.Gate, want team.Account) {
		t.Helper()
		if got := account(t, gate); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	same("no plan", planner.Pass, team.Account{Code: team.PermissionDenied})
	plan := planner.submit("make it")
	r.decide(plan.ID, yes)
	for range 2 {
		same("a plan", planner.Pass, team.Account{Grants: []team.Grant{{Approval: plan.ID, By: team.Leader}}})
	}

	a := r.asker(1)
	*a.j = approval.Judgement{Answer: permission.Allow, Rule: "Bash(make *)", Level: team.Confined}
	same("allowed", a.Pass, team.Account{Rule: "Bash(make *)", Sandbox: team.Confined})
	a.j.Answer = permission.Deny
	same("denied", a.Pass, team.Account{Rule: "Bash(make *)", Sandbox: team.Confined, Code: team.PermissionDenied})
	*a.j = approval.Judgement{Answer: permission.Ask, Level: team.Unconfined}
	asked := a.waits("make")
	same("asked", a.Pass, team.Account{Sandbox: team.Unconfined, Code: team.PermissionDenied})
	r.decide(asked.Plan, user(team.ForTask))
	for range 2 {
		same("a person", a.Pass, team.Account{Sandbox: team.Unconfined, Grants: []team.Grant{{Approval: asked.Plan, By: team.UserAgent}}})
	}
}
