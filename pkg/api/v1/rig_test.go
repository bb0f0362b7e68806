package v1_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/api/v1"
	"agentteam/pkg/client"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// rig is the API over a real NATS server, with a team t as its processes see it.
type rig struct {
	url    string // of the API
	nats   string // of the server
	router routers.Router
	client *client.Client
	team   *client.Team
	bt     *broker.Storage
	roster *roster.Roster
	board  *board.Board
	dir    string // workspace of new teams
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{nats: brokertest.Server(t), dir: t.TempDir()}
	c, err := client.Connect(t.Context(), client.Options{URL: r.nats})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r.client = c
	roles := map[string]team.Role{}
	for _, name := range []string{"coder", "tester"} {
		roles[name] = team.Role{Name: name, Description: "does the work of a " + name, Instructions: "Work."}
	}
	newTeam := func() (client.NewTeam, error) { return client.NewTeam{Roles: roles, Workspace: r.dir}, nil }
	hub := stream.New(c, stream.HubOptions{})
	t.Cleanup(hub.Close)
	h, err := v1.New(v1.Options{Client: c, Hub: hub, NewTeam: newTeam})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	r.url = srv.URL
	if r.router, err = legacy.NewRouter(document(t, r.url)); err != nil {
		t.Fatal(err)
	}
	n, _ := newTeam()
	n.ID = "t"
	if r.team, err = c.Make(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	conn := brokertest.Connect(t, r.nats)
	if r.bt, err = conn.Open(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	r.roster, r.board = roster.New(r.bt), board.New(r.bt.Bucket, board.Options{})
	return r
}

// ask is a request and what is expected of the answer.
type ask struct {
	name   string
	do     string   // method and path
	body   string   // JSON; "" = none
	header []string // name and value, in turn
	want   int
	code   team.Code // of a problem
	says   []string  // in the answer; with ! before it, not in it
}

// answer is what came back.
type answer struct {
	*http.Response
	text string
}

// do sends the request and checks the answer, also against what the API says of itself.
func (r *rig) do(t testing.TB, a ask) answer {
	t.Helper()
	method, path, _ := strings.Cut(a.do, " ")
	req, err := http.NewRequestWithContext(brokertest.Context(t), method, r.url+path, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(a.header); i += 2 {
		req.Header.Set(a.header[i], a.header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if resp.StatusCode != a.want {
		t.Errorf("%s (%s): status %d, want %d: %s", a.do, a.name, resp.StatusCode, a.want, text)
	}
	for _, s := range a.says {
		absent, not := strings.CutPrefix(s, "!")
		if not && strings.Contains(text, absent) || !not && !strings.Contains(text, s) {
			t.Errorf("%s (%s): says %s, and should not fit %q", a.do, a.name, text, s)
		}
	}
	if a.want >= 400 {
		var d struct {
			Title, Detail string
			Status        int
			Code          team.Code
		}
		if err := json.Unmarshal(data, &d); err != nil || d.Status != resp.StatusCode || d.Code != a.code || d.Title == "" || d.Detail == "" || strings.Contains(d.Detail, "\n") {
			t.Errorf("%s (%s): %v, a problem of code %q is %s", a.do, a.name, err, a.code, text)
		}
		if words := ours.FindAllString(text, -1); words != nil {
			t.Errorf("%s (%s): a problem tells %q: %s", a.do, a.name, words, text)
		}
		if ct := resp.Header.Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("%s (%s): a problem is of type %s", a.do, a.name, ct)
		}
	}
	r.fits(t, req, resp, data)
	return answer{resp, text}
}

// send sends a request and returns the status.
func (r *rig) send(t testing.TB, method, path, body string, header ...string) int {
	req, err := http.NewRequestWithContext(brokertest.Context(t), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// fits checks an answer against the OpenAPI.
func (r *rig) fits(t testing.TB, req *http.Request, resp *http.Response, data []byte) {
	t.Helper()
	if req.Method == http.MethodHead { // as GET, without a body
		return
	}
	route, params, err := r.router.FindRoute(req)
	if err != nil { // of a path that there is not, or that this router does not read
		if !strings.Contains(req.URL.EscapedPath(), "%") && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %v", req.Method, req.URL.Path, err)
		}
		return
	}
	opts := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: opts},
		Status:                 resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(data)), Options: opts,
	})
	if err != nil {
		t.Errorf("%s %s: the answer is not as the OpenAPI has it: %v", req.Method, req.URL.Path, err)
	}
}

// all does them in order.
func (r *rig) all(t *testing.T, asks []ask) {
	t.Helper()
	for _, a := range asks {
		r.do(t, a)
	}
}

// field is what stands in a JSON answer, by its path.
func (a answer) field(t testing.TB, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("no %v in %s", path, a.text)
			}
			v = l[p]
		}
	}
	return v
}

// text is a field that is a string.
func (a answer) str(t testing.TB, path ...any) string {
	t.Helper()
	s, ok := a.field(t, path...).(string)
	if !ok {
		t.Fatalf("%v is no string in %s", path, a.text)
	}
	return s
}

// join makes a member with a process, which takes what it is assigned.
func (r *rig) join(t testing.TB, role string) team.Member {
	t.Helper()
	m, err := r.roster.Create(t.Context(), team.Member{Role: role, Backend: team.Pool}, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	m.State = team.Joined
	if m, err = r.roster.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, control.Handlers{
		Assign: func(ctx context.Context, a team.Assignment) (team.Task, error) {
			return r.board.Assign(ctx, a, m.Holder())
		},
		Compact: func() {},
	})
	if err == nil {
		t.Cleanup(stop)
		err = r.bt.Conn.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// post is a member that writes.
func (r *rig) post(t testing.TB, m team.Message) team.Message {
	t.Helper()
	m, _, err := mailbox.New(r.bt, mailbox.Options{Members: r.roster}).Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// goal sets the team t a goal.
func (r *rig) goal(t testing.TB) {
	t.Helper()
	if _, err := r.team.Goals().Start(t.Context(), "count to ten", ""); err != nil {
		t.Fatal(err)
	}
}
