package v1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"agentteam/pkg/team"
)

// bodies are requests that are as they must be, by operation. That an operation which takes a
// body is missing here is an error of its test.
var bodies = map[string]string{
	"add-team":        `{"id":"red"}`,
	"edit-team":       `{"max_teammates":4}`,
	"set-goal":        `{"goal":"count"}`,
	"spawn-members":   `{"role":"coder"}`,
	"add-tasks":       `{"tasks":[{"title":"x"}]}`,
	"edit-task":       `{"title":"x"}`,
	"claim-task":      `{"as":"ann"}`,
	"complete-task":   `{"as":"ann","result_summary":"x"}`,
	"fail-task":       `{"reason":"x"}`,
	"release-task":    `{"reason":"x"}`,
	"cancel-task":     `{"reason":"x"}`,
	"assign-task":     `{"assignee":"ann"}`,
	"undo-task":       `{"as":"ann"}`,
	"send-message":    `{"to":"leader","content":"x"}`,
	"answer-question": `{"content":"x"}`,
	"decide-approval": `{"approve":true}`,
}

// misuse is one operation that is asked for wrongly in every way that all have in common: what
// is refused must name its place, and nothing may be done.
type misuse struct {
	*rig
	op     *openapi3.Operation
	method string
	path   string // of something that is there
	body   string // with which it would be done; "" = it takes none
}

// Every operation tells what is wrong with a request for it. The list is the description of the
// API itself, so that none is forgotten.
func TestMisuse(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201})
	before := r.do(t, ask{do: "GET /v1/teams/t/tasks/1", want: 200})
	asked := 0
	for path, item := range document(t, r.url).Paths.Map() {
		for method, op := range item.Operations() {
			m := misuse{r, op, method, strings.NewReplacer("{team}", "t", "{task}", "T-001", "{name}", "leader", "{role}", "coder").Replace(path), ""}
			if op.RequestBody != nil {
				if m.body = bodies[op.OperationID]; m.body == "" {
					t.Errorf("%s has no request in this test", op.OperationID)
					continue
				}
			}
			asked++
			t.Run(op.OperationID, func(t *testing.T) {
				m.places(t, path)
				m.headers(t)
				m.query(t)
				if m.body != "" {
					m.bodies(t)
				}
			})
		}
	}
	if asked < 30 {
		t.Errorf("only %d operations were asked for", asked)
	}
	after := r.do(t, ask{do: "GET /v1/teams/t/tasks", want: 200})
	if n, _ := after.field(t, "total").(float64); n != 1 || before.Header.Get("ETag") != r.do(t, ask{do: "GET /v1/teams/t/tasks/1", want: 200}).Header.Get("ETag") {
		t.Errorf("something was done: %s", after.text)
	}
	if n := len(r.do(t, ask{do: "GET /v1/teams", want: 200}).field(t, "teams").([]any)); n != 1 {
		t.Errorf("there are %d teams", n)
	}
}

// refused asks with a path, a body and headers, and checks the refusal.
func (m misuse) refused(t *testing.T, what, path, body string, header []string, want int, code team.Code, says ...string) {
	t.Helper()
	m.do(t, ask{name: what, do: m.method + " " + path, body: body, header: header, want: want, code: code, says: says})
}

// places are ids that are none, and of what is not there.
func (m misuse) places(t *testing.T, template string) {
	for name, wrong := range map[string]struct{ none, absent string }{
		"team":     {"Gr%2Fn", "green"},
		"task":     {"T-x", "T-099"},
		"name":     {"A%2A", "nobody"},
		"role":     {"", "poet"},
		"message":  {strings.Repeat("m", 513), "nought"},
		"approval": {strings.Repeat("a", 513), "nought"},
	} {
		if !strings.Contains(template, "{"+name+"}") {
			continue
		}
		at := func(id string) string {
			path := strings.ReplaceAll(template, "{"+name+"}", id)
			return strings.NewReplacer("{team}", "t", "{task}", "T-001", "{name}", "leader", "{role}", "coder", "{message}", "nought", "{approval}", "nought").Replace(path)
		}
		if wrong.none != "" {
			m.refused(t, name+" that is none", at(wrong.none), m.body, nil, 422, team.InvalidArgument)
		}
		if m.op.OperationID != "list-questions" {
			m.refused(t, name+" that is not there", at(wrong.absent), m.body, nil, 404, team.NotFound)
		}
	}
}

// headers are those of which the operation would be of no effect, or malformed.
func (m misuse) headers(t *testing.T) {
	if m.method == http.MethodGet {
		return
	}
	takes := func(name string) bool { return m.op.Parameters.GetByInAndName("header", name) != nil }
	if !takes("Idempotency-Key") {
		m.refused(t, "a key", m.path, m.body, []string{"Idempotency-Key", "k"}, 422, team.InvalidArgument, "header.Idempotency-Key")
	} else {
		m.refused(t, "a key too long", m.path, m.body, []string{"Idempotency-Key", strings.Repeat("k", 257)}, 422, team.InvalidArgument, "256")
	}
	if !takes("If-Match") {
		m.refused(t, "a revision", m.path, m.body, []string{"If-Match", `"1"`}, 422, team.InvalidArgument, "header.If-Match")
		return
	}
	for _, tag := range []string{`5`, `"x"`, `W/"5"`, `"0"`, `"-1"`, `"5", "6"`, `"99999999999999999999"`} {
		m.refused(t, "a tag "+tag, m.path, m.body, []string{"If-Match", tag}, 422, team.InvalidArgument, "header.If-Match")
	}
}

// query are parameters that are not known, and values that are none.
func (m misuse) query(t *testing.T) {
	m.refused(t, "an unknown parameter", m.path+"?colour=red", m.body, nil, 422, team.InvalidArgument, "query.colour")
	for _, p := range m.op.Parameters {
		if p.Value.In != "query" {
			continue
		}
		s, name := p.Value.Schema.Value, p.Value.Name
		var wrong []string
		switch {
		case s.Type.Is("integer"):
			wrong = []string{"ten", "1.5", "99999999999999999999"}
			if s.Min == nil || s.Max == nil {
				t.Errorf("%s has no limits", name)
			} else {
				wrong = append(wrong, fmt.Sprint(*s.Min-1), fmt.Sprint(*s.Max+1))
			}
		case s.Type.Is("boolean"):
			wrong = []string{"perhaps"}
		case len(s.Enum) > 0:
			wrong = []string{"colour"}
		}
		for _, v := range wrong {
			m.refused(t, name+"="+v, m.path+"?"+name+"="+v, m.body, nil, 422, team.InvalidArgument, "query."+name)
		}
	}
}

// bodies are those that are none, and fields that are not known or of another type.
func (m misuse) bodies(t *testing.T) {
	json422 := func(what, body string, says ...string) {
		t.Helper()
		m.refused(t, what, m.path, body, nil, 422, team.InvalidArgument, says...)
	}
	for what, body := range map[string]string{"half": m.body[:len(m.body)-1], "two": m.body + m.body, "text": "id=red", "no UTF-8": strings.Replace(m.body, ":", ":\"\xff\",\"x\":", 1)} {
		m.refused(t, what, m.path, body, nil, 400, team.InvalidArgument, "body")
	}
	if m.op.RequestBody.Value.Required {
		m.refused(t, "no body", m.path, "", nil, 400, team.InvalidArgument, "body")
	}
	m.refused(t, "another type of body", m.path, m.body, []string{"Content-Type", "text/plain"}, 415, team.InvalidArgument)
	m.refused(t, "too large", m.path, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`, nil, 413, team.InvalidArgument, "1048576")
	for _, body := range []string{`[]`, `"x"`, `7`, `true`} {
		json422("a body "+body, body)
	}
	json422("an unknown field", `{"colour":1,`+m.body[1:], "body.colour")

	schema := m.op.RequestBody.Value.Content["application/json"].Schema.Value
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(m.body), &fields); err != nil {
		t.Fatal(err)
	}
	for name, p := range schema.Properties {
		whole := maps.Clone(fields)
		whole[name] = json.RawMessage(wrongFor(p.Value))
		body, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		json422(name+" of another type", string(body), "body."+name)
	}
	for _, name := range schema.Required {
		whole := maps.Clone(fields)
		delete(whole, name)
		body, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		if string(body) == "{}" {
			body = []byte("{ }")
		}
		json422("without "+name, string(body), name)
	}
}

// wrongFor is a value that the schema does not take.
func wrongFor(s *openapi3.Schema) string {
	if s.Type.Includes("string") || s.Type == nil || s.Type.Includes("object") && s.Type.Includes("null") {
		return `[7]`
	}
	if s.Type.Includes("object") {
		return `[7]`
	}
	return `"x"`
}

// ours are words of this program that are none of its clients' business.
var ours = regexp.MustCompile(`\b(v1|client|huma|reflect|broker|struct|map)[.\[]|json: |Go (value|struct)|unmarshal|agentteam/pkg|\.go:|\$(KV|JS|SYS|O)\b|KV_|\b(at[-.]t|AT_t)|jetstream|nats:|/home/|/tmp/|/root/|goroutine|panic|%!`)

// A cursor that is none, or of another team, is refused by a page and by a stream alike; whoever
// reads at the same time goes on. Package stream tests one of the future.
func TestCursors(t *testing.T) {
	r := newRig(t)
	r.do(t, ask{do: "POST /v1/teams", body: `{"id":"red"}`, want: 201})
	for range 3 {
		r.do(t, ask{do: "POST /v1/teams/red/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201})
	}
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201})
	end := r.do(t, ask{do: "GET /v1/teams/t/events", want: 200}).str(t, "next")
	reader := r.stream(t, "/v1/teams/t/events?type=TASK_CREATED&after="+end)
	old := r.do(t, ask{do: "GET /v1/teams/red/events", want: 200}).str(t, "next")
	for _, tt := range []struct{ name, team, cursor, says string }{
		{"of another team", "t", old, "not of team t"},
		{"garbage", "t", "%00%ff%f0", "is not a cursor"},
		{"too long", "t", strings.Repeat("A", 5000), "cursor"},
	} {
		path := "GET /v1/teams/" + tt.team + "/events?after=" + tt.cursor
		r.do(t, ask{name: tt.name, do: path, want: 422, code: team.InvalidArgument, says: []string{tt.says}})
		if t.Failed() {
			return // what is not refused is followed without end
		}
		r.do(t, ask{name: tt.name + ", a stream", do: path + "&follow=true", want: 422, code: team.InvalidArgument, says: []string{tt.says}})
	}
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"still here"}]}`, want: 201})
	if _, data := reader(); !strings.Contains(data, "still here") {
		t.Errorf("the other reader got %s", data)
	}
	// A team that was deleted and made anew has another past: whoever comes back is told so.
	r.do(t, ask{do: "DELETE /v1/teams/red?force=true&timeout=0", want: 200})
	r.do(t, ask{do: "POST /v1/teams", body: `{"id":"red"}`, want: 201})
	r.do(t, ask{name: "of a team made anew", do: "GET /v1/teams/red/events?after=" + old, want: 200, says: []string{`"name":"reset"`, `"why":"made_anew"`}})
}

// Of requests that race with one key one does the thing and is answered so, the others get what
// it did. A request that comes later with another body gets no more than that, or is refused.
func TestKeys(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	r.do(t, ask{do: "POST /v1/teams", body: `{"id":"red"}`, want: 201})
	for _, tt := range []struct {
		path, body, other string
		otherStatus       int
	}{
		{"/v1/teams", `{"id":"blue"}`, `{"id":"blue","max_teammates":2}`, 409},
		{"/v1/teams/t/tasks", `{"tasks":[{"title":"x"},{"title":"y"}]}`, `{"tasks":[{"title":"z"}]}`, 200},
		{"/v1/teams/t/messages", `{"to":"leader","text":"x"}`, `{"to":"leader","text":"y"}`, 409},
		{"/v1/teams/red/goal", `{"goal":"x"}`, `{"goal":"y"}`, 409},
	} {
		const callers = 6
		status := make([]int, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				status[i] = r.send(t, "POST", tt.path, tt.body, "Idempotency-Key", "k", "Content-Type", "application/json")
			})
		}
		wg.Wait()
		slices.Sort(status)
		if want := []int{200, 200, 200, 200, 200, 201}; !slices.Equal(status, want) {
			t.Errorf("%s: answered %v, want %v", tt.path, status, want)
		}
		for body, want := range map[string]int{tt.body: 200, tt.other: tt.otherStatus} {
			if got := r.send(t, "POST", tt.path, body, "Idempotency-Key", "k", "Content-Type", "application/json"); got != want {
				t.Errorf("%s: %s is answered %d, want %d", tt.path, body, got, want)
			}
		}
	}
	r.all(t, []ask{
		{do: "GET /v1/teams/t/tasks", want: 200, says: []string{`"total":2`, "!\"z\""}},
		{do: "GET /v1/teams/red/goal", want: 200, says: []string{`"goal":"x"`, `"goal_number":1`}},
	})
}
