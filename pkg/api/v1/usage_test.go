package v1_test

import (
	"encoding/json"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// What calls have used is shown by two things at once, of one goal, and of each team in the list.
func TestUsage(t *testing.T) {
	r := newRig(t)
	call := func(a team.AgentID, incarnation uint64, alias string, prompt int) {
		t.Helper()
		reply, err := json.Marshal(model.Reply{Alias: alias, Usage: model.Usage{PromptTokens: prompt, Unpriced: 1}})
		if err != nil {
			t.Fatal(err)
		}
		j, _, err := journal.Open(t.Context(), r.bt, a, incarnation, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Turn, Turn: reply}); err != nil {
			t.Fatal(err)
		}
	}
	call("coder-1", 1, "strong", 7)
	r.do(t, ask{name: "a goal", do: "POST /v1/teams/t/goal", body: `{"goal":"count"}`, want: 201})
	call("coder-1", 2, "strong", 100)
	call("coder-1", 3, "new", 20)
	r.all(t, []ask{
		{name: "in parts", do: "GET /v1/teams/t/usage?split=alias", want: 200, says: []string{
			`"name":"coder-1","model_calls":3,"prompt_tokens":127,`, `"parts":[{"name":"strong","model_calls":2,"prompt_tokens":107,`, `{"name":"new","model_calls":1,"prompt_tokens":20,`}},
		{name: "of the goal", do: "GET /v1/teams/t/usage?by=alias&goal=1", want: 200, says: []string{
			`{"name":"strong","model_calls":1,"prompt_tokens":100,`, `"total":{"model_calls":2,"prompt_tokens":120,`}},
		{name: "of a goal below the newest", do: "GET /v1/teams/t/usage?goal=-2", want: 422, code: team.InvalidArgument, says: []string{"query.goal"}},
		{name: "of all teams", do: "GET /v1/teams", want: 200, says: []string{`"usage":{"model_calls":3,"prompt_tokens":127,`}},
	})
	call("coder-1", 4, "new", 1)
	r.do(t, ask{name: "of all teams, later", do: "GET /v1/teams", want: 200, says: []string{`"usage":{"model_calls":4,"prompt_tokens":128,`}})
}
