package v1_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

// The document leaves nothing to be guessed: groups, descriptions, examples, the array of each
// list, and the words of whatever takes only some.
func TestDocumentSaysItAll(t *testing.T) {
	r := newRig(t)
	doc := document(t, r.url)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s %s: summary %q, description %q, tags %v", method, path, op.Summary, op.Description, op.Tags)
			}
			if tag := doc.Tags.Get(strings.Join(op.Tags, "")); tag == nil || tag.Description == "" {
				t.Errorf("%s %s: its tag %v is not described", method, path, op.Tags)
			}
			for _, p := range op.Parameters {
				if p.Value.In == "path" && len(p.Value.Schema.Value.Examples) == 0 && p.Value.Example == nil {
					t.Errorf("%s %s: %s has no example", method, path, p.Value.Name)
				}
			}
			if op.RequestBody != nil {
				described(t, op)
			}
			for _, name := range arrays(op) {
				if !strings.Contains(op.Description, "`"+name+"`") {
					t.Errorf("%s %s: its description does not name the array %s", method, path, name)
				}
			}
		}
	}
	words := map[string]string{ // fields by name, and one of their words
		"status": "", "state": "waiting_answer", "backend": "pool", "approver": "human", "create": "leader", "respawn": "release", "dialect": "claude",
		"code": "", "type": "", "kind": "teammate", "priority": "", "scope": "task", "outcome": "not_run",
	}
	plain := []string{"EventBody.code", "Document.status", "Plan.kind", "Approval.kind", "Job.kind", "Span.kind", "Job.type"} // other things of the same name
	seen := map[string]bool{}
	for name, s := range doc.Components.Schemas {
		for field, p := range s.Value.Properties {
			word, known := words[field]
			if !known || slices.Contains(plain, name+"."+field) {
				continue
			}
			if p.Value.Enum == nil || word != "" && !slices.Contains(p.Value.Enum, any(word)) {
				t.Errorf("%s.%s has the words %v", name, field, p.Value.Enum)
			}
			seen[field] = true
		}
	}
	if len(seen) != len(words) {
		t.Errorf("only %v are there", seen)
	}
	if by := doc.Components.Schemas["UsageTable"].Value.Properties["by"].Value; len(by.Enum) != len(usage.Bys()) {
		t.Errorf("UsageTable.by has the words %v", by.Enum)
	}
	for path, parameter := range map[string]string{"/v1/teams/{team}/tasks": "status", "/v1/teams/{team}/events": "type"} {
		if p := doc.Paths.Find(path).Get.Parameters.GetByInAndName("query", parameter); p.Schema.Value.Items.Value.Enum == nil {
			t.Errorf("%s: the parameter %s names no words", path, parameter)
		}
	}
}

// described checks the fields of a request, of which those that must be there have examples.
func described(t *testing.T, op *openapi3.Operation) {
	t.Helper()
	for _, m := range op.RequestBody.Value.Content {
		for name, p := range m.Schema.Value.Properties {
			needs := slices.Contains(m.Schema.Value.Required, name) && p.Value.Items == nil
			if p.Value.Description == "" && p.Ref == "" && name != "title" && name != "description" {
				t.Errorf("%s: the field %s has no description", op.OperationID, name)
			}
			if needs && len(p.Value.Examples) == 0 && p.Value.Example == nil {
				t.Errorf("%s: the field %s has no example", op.OperationID, name)
			}
		}
	}
}

// arrays are those at the top of an operation's answer.
func arrays(op *openapi3.Operation) (names []string) {
	for _, status := range []int{http.StatusOK, http.StatusCreated} {
		resp := op.Responses.Status(status)
		if resp == nil || resp.Value.Content["application/json"] == nil {
			continue
		}
		s := resp.Value.Content["application/json"].Schema.Value
		for name, p := range s.Properties {
			if p.Value.Items != nil && slices.Contains(s.Required, name) {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// Requests may say by the names of answers what they say, and by the older names too, but not by
// both at once.
func TestNamesOfRequests(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	for _, field := range []string{"dependencies", "depends_on"} {
		body := `{"tasks":[{"name":"a","title":"x"},{"title":"y","` + field + `":["a"]}]}`
		got := r.do(t, ask{do: "POST /v1/teams/t/tasks", body: body, want: 201})
		if len(got.field(t, "tasks", 1, "dependencies").([]any)) != 1 {
			t.Errorf("%s adds %s", body, got.text)
		}
	}
	m := r.join(t, "coder")
	for i, field := range []string{"assignee", "to"} {
		r.do(t, ask{do: fmt.Sprintf("POST /v1/teams/t/tasks/T-00%d/assign", 1+2*i), body: `{"` + field + `":"` + string(m.AgentID) + `"}`, want: 200})
	}
	first := r.do(t, ask{do: "POST /v1/teams/t/messages", body: `{"to":"leader","content":"one"}`, want: 201})
	id := first.str(t, "message_id")
	r.all(t, []ask{
		{name: "older names", do: "POST /v1/teams/t/messages", body: `{"to":"leader","text":"two","reply_to":"` + id + `"}`, want: 201},
		{name: "names of answers", do: "POST /v1/teams/t/messages", body: `{"to":"leader","content":"two","in_reply_to":"` + id + `"}`, want: 201},
		{name: "both", do: "POST /v1/teams/t/messages", body: `{"to":"leader","content":"two","text":"two"}`, want: 422, code: team.InvalidArgument, says: []string{"body.text", "content"}},
		{name: "both in a list", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","dependencies":[],"depends_on":[]}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].depends_on"}},
		{name: "a page by its other name", do: "GET /v1/teams/t/inbox/leader?limit=1&after=1", want: 200, says: []string{"one"}},
		{name: "a page by both", do: "GET /v1/teams/t/inbox/leader?after=1&page=1", want: 422, code: team.InvalidArgument, says: []string{"query.after"}},
		{name: "events by the other name", do: "GET /v1/teams/t/events?page=rubbish", want: 422, code: team.InvalidArgument, says: []string{"rubbish"}},
	})
	page := r.do(t, ask{do: "GET /v1/teams/t/tasks?limit=1", want: 200})
	rest := r.do(t, ask{do: "GET /v1/teams/t/tasks?after=" + page.str(t, "next"), want: 200})
	var got struct{ Tasks []json.RawMessage }
	if err := json.Unmarshal([]byte(rest.text), &got); err != nil || len(got.Tasks) != 3 {
		t.Errorf("the second page has %d tasks (%v)", len(got.Tasks), err)
	}
}
