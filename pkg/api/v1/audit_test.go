package v1_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

const arguments = `{"key":"sk-canary"}`

// calls has an agent make calls of tools, of which those that are named in open do not end.
func (r *rig) calls(t *testing.T, a team.AgentID, tools []string, open ...string) *journal.Journal {
	t.Helper()
	j, _, err := journal.Open(t.Context(), r.bt, a, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var reply model.Reply
	records := make([]journal.Record, 1, len(tools)+1)
	for i, tool := range tools {
		id := fmt.Sprintf("%s %d/%s", a, i, tool)
		reply.Message.ToolCalls = append(reply.Message.ToolCalls, model.ToolCall{ID: id, Name: tool, Arguments: arguments})
		if !slices.Contains(open, tool) {
			records = append(records, ended(id, tool))
		}
	}
	data, err := json.Marshal(reply)
	if err != nil {
		t.Fatal(err)
	}
	records[0] = journal.Record{Kind: journal.Turn, Turn: data}
	for _, record := range records {
		if _, err := j.Append(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func ended(id, tool string) journal.Record {
	return journal.Record{Kind: journal.Result, Result: &journal.ToolResult{CallID: id, Name: tool, Content: "sk-canary", Account: &team.Account{Arguments: team.DigestOf(arguments), Sandbox: team.Confined}}}
}

func TestAudit(t *testing.T) {
	r := newRig(t)
	name := string(r.join(t, "coder").AgentID)
	r.all(t, []ask{
		{name: "of nobody yet", do: "GET /v1/teams/t/audit", want: 200, says: []string{`"entries":[]`, "!next"}},
		{name: "of a leader that is not there", do: "GET /v1/teams/t/audit?agent=leader", want: 200, says: []string{`"entries":[]`}},
	})
	r.calls(t, team.Leader, []string{"bash", "grep"})
	r.calls(t, team.AgentID(name), []string{"bash"})
	later := url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	r.all(t, []ask{
		{name: "all", do: "GET /v1/teams/t/audit", want: 200, says: []string{`"agent_id":"leader"`, `"agent_id":"` + name + `"`, `"outcome":"ok"`, `"sandbox":"confined"`, `"arguments":"sha256:`, "!canary", "!next"}},
		{name: "of an agent", do: "GET /v1/teams/t/audit?agent=" + name, want: 200, says: []string{name, "!leader"}},
		{name: "of a tool", do: "GET /v1/teams/t/audit?tool=grep", want: 200, says: []string{"leader", "!" + name, `!"bash"`}},
		{name: "since", do: "GET /v1/teams/t/audit?since=2026-01-01T00:00:00Z", want: 200, says: []string{"leader", name}},
		{name: "since later", do: "GET /v1/teams/t/audit?since=" + later, want: 200, says: []string{`"entries":[]`}},
		{name: "since nonsense", do: "GET /v1/teams/t/audit?since=10m", want: 422, code: team.InvalidArgument, says: []string{"query.since"}},
		{name: "of no name", do: "GET /v1/teams/t/audit?agent=A*", want: 422, code: team.InvalidArgument},
		{name: "of nobody", do: "GET /v1/teams/t/audit?agent=zoe", want: 404, code: team.NotFound, says: []string{"zoe"}},
		{name: "no page", do: "GET /v1/teams/t/audit?page=x", want: 422, code: team.InvalidArgument, says: []string{"query.page"}},
		{name: "no call of a page", do: "GET /v1/teams/t/audit?page=1.*", want: 422, code: team.InvalidArgument, says: []string{"query.page"}},
	})
}

// A call that ends between two pages is on both, and no other is left out for it.
func TestAuditPages(t *testing.T) {
	r := newRig(t)
	j := r.calls(t, "a", []string{"one", "two", "three", "four"}, "one", "two")
	var got []string
	for page := ""; ; {
		a := r.do(t, ask{do: "GET /v1/teams/t/audit?limit=1&page=" + page, want: 200})
		var body struct {
			Entries []audit.Entry
			Next    string
		}
		if err := json.Unmarshal([]byte(a.text), &body); err != nil || len(body.Entries) != 1 {
			t.Fatalf("%v: %s", err, a.text)
		}
		got = append(got, fmt.Sprint(body.Entries[0].Tool, " ", body.Entries[0].Outcome))
		if len(got) == 1 {
			if _, err := j.Append(t.Context(), ended("a 0/one", "one")); err != nil {
				t.Fatal(err)
			}
		}
		if page = body.Next; page == "" {
			break
		}
	}
	if want := "one unknown, two unknown, three ok, four ok, one ok"; strings.Join(got, ", ") != want {
		t.Errorf("the pages have %s, want %s", strings.Join(got, ", "), want)
	}
}
