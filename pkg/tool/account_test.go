package tool_test

import (
	"context"
	"reflect"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Gates and the tool itself write into the account of the call that they are of, also of one that
// is refused, and not into another's, or into one that is closed.
func TestAccount(t *testing.T) {
	two := 2
	late := t.Context()
	run := tool.New("run", "", func(ctx context.Context, _ none) (tool.Output, error) {
		late = ctx
		tool.Note(ctx, func(a *team.Account) { a.Exit = &two })
		return tool.Output{Value: "ran"}, nil
	}, tool.Alias("exec"))
	var refusal error
	set := newSet(t, run).Behind(func(ctx context.Context, r tool.Request) error {
		tool.Note(ctx, func(a *team.Account) { a.Rule = "Run(*)" })
		return refusal
	})
	arguments := team.DigestOf("{}")
	for name, tt := range map[string]struct {
		call    string
		refusal error
		want    team.Account
	}{
		"run":             {"run", nil, team.Account{Arguments: arguments, Rule: "Run(*)", Exit: &two}},
		"by another name": {"exec", nil, team.Account{Arguments: arguments, Tool: "run", Rule: "Run(*)", Exit: &two}},
		"refused":         {"run", team.Errorf(team.PermissionDenied, "no"), team.Account{Arguments: arguments, Rule: "Run(*)", Code: team.PermissionDenied}},
		"unknown":         {"rum", nil, team.Account{Arguments: arguments, Code: team.NotFound}},
	} {
		refusal = tt.refusal
		r := set.Run(t.Context(), tool.Call{Name: tt.call, Arguments: "{}"})
		tool.Note(late, func(a *team.Account) { a.Rule = "too late" })
		if !reflect.DeepEqual(r.Account, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, r.Account, tt.want)
		}
	}
	tool.Note(t.Context(), func(*team.Account) { t.Error("there is no call") })
}
