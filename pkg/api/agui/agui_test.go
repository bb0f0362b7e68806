package agui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/api/agui"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/api/stream/streamtest"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

var update = flag.Bool("update", false, "write the golden files")

// serve serves AG-UI, and returns the base URL.
func serve(t *testing.T, c *client.Client) string {
	t.Helper()
	hub := stream.New(c, stream.HubOptions{})
	h, err := agui.New(agui.Options{Client: c, Hub: hub})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(agui.Path, h)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { hub.Close(); srv.Close() })
	return srv.URL
}

// newRed makes a team red on a NATS server, without a leader.
func newRed(t *testing.T) (c *client.Client, nats string) {
	t.Helper()
	nats = brokertest.Server(t)
	c, err := client.Connect(t.Context(), client.Options{URL: nats})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Make(t.Context(), client.NewTeam{ID: "red"}); err != nil {
		t.Fatal(err)
	}
	return c, nats
}

func post(t *testing.T, ctx context.Context, url, id, body string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, brokertest.Longest)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/teams/"+id+"/agui", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// events reads a stream to its end.
func events(t *testing.T, resp *http.Response) (all []string) {
	t.Helper()
	if typ := resp.Header.Get("Content-Type"); typ != "text/event-stream" {
		data, _ := io.ReadAll(resp.Body)
		t.Fatalf("the answer is %s %s: %s", resp.Status, typ, data)
	}
	s := bufio.NewScanner(resp.Body)
	for s.Buffer(nil, 4<<20); s.Scan(); {
		if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			all = append(all, data)
		} else if s.Text() != "" {
			t.Errorf("the line %q is no data", s.Text())
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return all
}

// golden compares a stream with a file, after its order was checked, and returns the state at
// its end.
func golden(t *testing.T, name string, all []string) (state any) {
	t.Helper()
	state, err := check(all)
	if err != nil {
		t.Error(err)
	}
	got, file := streamtest.Stable(strings.Join(all, "\n")+"\n"), filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
	return state
}

const input = `{"threadId":"thread-1","runId":"run-1","state":{"x":1},"tools":[],"forwardedProps":{},
	"context":[{"description":"Language","value":"Go"}],
	"messages":[{"id":"1","role":"user","content":"something else"},{"id":"2","role":"assistant","content":"Yes."},
		{"id":"3","role":"user","content":[{"type":"text","text":"count"},{"type":"text","text":"the files"}]},{"id":"4","role":"assistant","content":null}]}`

// TestRun is a whole run: texts of the leader and of a member, calls, mail, the board.
func TestRun(t *testing.T) {
	c, nats := newRed(t)
	cast := streamtest.Open(t, nats, "red")
	ctx, coder := t.Context(), team.Holder{Agent: "coder-1", Incarnation: 1}
	ok := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(cast.Board.Create(ctx, team.UserAgent, team.NewTask{Title: "there before"}, team.NewTask{Title: "changed since"}))
	resp := post(t, ctx, serve(t, c), "red", input)
	begun := team.EventBody{Type: team.RunStarted}
	cast.Runs(team.Leader, begun)
	cast.Member("coder-1", "coder", team.Joined)
	cast.Says(team.Leader, "I <ask> coder-1.", "send_message")
	cast.Hears(team.Leader, "send_message", `{"message_id":"m"}`)
	cast.Mails(team.Leader, "coder-1", team.MsgMessage, "begin")
	cast.Runs("coder-1", begun)
	ok(cast.Board.Create(ctx, team.Leader, team.NewTask{Title: "new/one~", Dependencies: []team.TaskID{"T-001"}, Priority: 1}))
	claimed, err := cast.Board.Claim(ctx, "T-002", coder)
	ok(claimed, err)
	cast.Says("coder-1", "", "read_file")
	cast.Hears("coder-1", "read_file", "text")
	for _, sub := range []team.AgentID{"coder-1.a1b2c3d", "leader.a2b3c4d"} { // beneath their owners
		cast.Runs(sub, begun)
		cast.Says(sub, "I have looked for "+string(sub.Owner())+".", "")
		cast.Runs(sub, team.EventBody{Type: team.RunFinished})
	}
	ok(cast.Board.Complete(ctx, "T-002", coder, claimed.Epoch, team.Done{Summary: "7 files"}))
	cast.Says("coder-1", "Done.", "")
	cast.Mails("coder-1", team.Leader, team.MsgIdle, "coder-1 is idle")
	cast.Runs("coder-1", team.EventBody{Type: team.RunFinished})
	cast.Runs("tester-1", begun) // which goes on to the end
	ok(cast.Board.Cancel(ctx, "T-003", team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, "no need"))
	cast.Ends(team.TeamFinished, "There are 7.")
	state := golden(t, "run.golden", events(t, resp))

	red, err := c.Open(ctx, "red")
	ok(red, err)
	tasks, err := red.Board().Tasks(ctx)
	ok(tasks, err)
	told := state.(map[string]any)["tasks"].(map[string]any)
	for _, v := range tasks {
		if got := told[string(v.ID)].(map[string]any)["status"]; got != string(v.Status) {
			t.Errorf("the state says that %s is %v, the board %s", v.ID, got, v.Status)
		}
	}
	if len(told) != len(tasks) {
		t.Errorf("the state has %q, the board %d tasks", slices.Collect(maps.Keys(told)), len(tasks))
	}
	if record, err := red.Record(ctx); err != nil || record.Goal != "count\nthe files\n\nContext:\n- Language: Go" {
		t.Errorf("the goal is %q (%v)", record.Goal, err)
	}
}

// TestWithoutSubagents: a client that knows no subagents is told of members' runs by events that
// it may ignore.
func TestWithoutSubagents(t *testing.T) {
	c, nats := newRed(t)
	url := serve(t, c)
	ask := func(subagents string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(brokertest.Context(t), "POST", url+"/v1/teams/red/agui?subagents="+subagents, strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	if resp := ask("maybe"); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another word: %s", resp.Status)
	}
	resp := ask("false")
	cast := streamtest.Open(t, nats, "red")
	begun := team.EventBody{Type: team.RunStarted}
	cast.Runs(team.Leader, begun)
	cast.Says(team.Leader, "I lead.", "")
	cast.Member("coder-1", "coder", team.Joined)
	cast.Runs("coder-1", begun)
	cast.Says("coder-1", "I code.", "read_file")
	cast.Member("coder-1", "coder", team.Stopped) // at work
	cast.Ends(team.TeamFinished, "done")
	types := map[string]int{}
	for _, e := range events(t, resp) {
		var v struct {
			Type, Name    string
			SubagentRunID string
			Value         struct{ Type, Code string }
		}
		if err := json.Unmarshal([]byte(e), &v); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(v.Type, "SUBAGENT") || v.SubagentRunID != "" {
			t.Errorf("told is %s", e)
		}
		if v.Name == "subagent" {
			v.Type = "subagent " + v.Value.Type + v.Value.Code
		}
		types[v.Type]++
	}
	for _, want := range []string{"RUN_STARTED", "TEXT_MESSAGE_CONTENT", "subagent SUBAGENT_STARTED", "subagent TEXT_MESSAGE_CONTENT", "subagent TOOL_CALL_START", "subagent SUBAGENT_ERRORstopped", "RUN_FINISHED"} {
		if types[want] != 1 {
			t.Errorf("%s is there %d times in %v", want, types[want], types)
		}
	}
}

// TestFails: a goal that fails, while a member is at work, ends with an error; and the
// message to a team at work is mail to its leader.
func TestFails(t *testing.T) {
	c, nats := newRed(t)
	url := serve(t, c)
	first := post(t, t.Context(), url, "red", input)
	second := post(t, t.Context(), url, "red", strings.ReplaceAll(input, "run-1", "run-2"))
	cast := streamtest.Open(t, nats, "red")
	if n := cast.Goals(); n != 1 {
		t.Errorf("the team has had %d goals", n)
	}
	cast.Says("coder-1", "I was here before the second.", "") // whose beginning nobody has told
	cast.Hears("leader", "read_file", "of a call that was made before")
	for range 2 { // by a model that gives all calls the same id
		cast.Says("leader", "", "read_file")
		cast.Hears("leader", "read_file", "text")
	}
	cast.Hears("leader", "read_file", "once more")
	cast.Runs("coder-1", team.EventBody{Type: team.RunError, Message: "the connection was lost", Code: "unavailable"})
	cast.Ends(team.TeamFailed, "nobody can count")
	golden(t, "failed.golden", events(t, first))
	all := events(t, second)
	if _, err := check(all); err != nil {
		t.Error(err)
	}
	if n := strings.Count(strings.Join(all, "\n"), `"user_message"`); n != 1 {
		t.Errorf("the second run tells %d messages of the user", n)
	}
}

func TestRefused(t *testing.T) {
	c, _ := newRed(t)
	url := serve(t, c)
	var log strings.Builder
	with := func(rest string) string { return `{"threadId":"t","runId":"r",` + rest + "}" }
	for _, q := range [][2]string{
		{"blue", input}, {"No%20Team", input},
		{"red", ""}, {"red", "[]"}, {"red", "{"}, {"red", "{}"}, {"red", `{"threadId":7}`}, {"red", `{"threadId":"","runId":"r"}`},
		{"red", `{"threadId":"t","runId":"` + strings.Repeat("x", 600) + `"}`}, {"red", with(`"messages":{}`)}, {"red", with(`"messages":[]`)}, {"red", with(`"messages":null`)}, {"red", with(`"messages":[{"role":"assistant","content":"x"}]`)},
		{"red", with(`"messages":[{"role":"user","content":" "}]`)}, {"red", with(`"messages":[{"role":"user"}]`)},
		{"red", with(`"messages":[{"role":"user","content":7}]`)},
		{"red", with(`"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]`)},
		{"red", with(`"messages":[{"role":"user","content":"a\u0000"}]`)},
		{"red", with(`"messages":[{"role":"user","content":"x"}],"resume":[{"interruptId":"1"}]`)},
	} {
		resp := post(t, t.Context(), url, q[0], q[1])
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if typ := resp.Header.Get("Content-Type"); typ != "application/problem+json" {
			t.Errorf("%q is answered with %s", q, typ)
		}
		short := q[1]
		if short == input {
			short = "a good one"
		}
		fmt.Fprintf(&log, ">>> %s %s\n<<< %d %s", q[0], short, resp.StatusCode, data)
	}
	file := filepath.Join("testdata", "refused.golden")
	if *update {
		if err := os.WriteFile(file, []byte(log.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if log.String() != string(want) {
		t.Errorf("%s differs; got:\n%s", file, log.String())
	}
	red, err := c.Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if record, err := red.Record(t.Context()); err != nil || record.GoalNumber != 0 {
		t.Errorf("a request that was refused has set a goal: %q (%v)", record.Goal, err)
	}
}

// A key would not be kept here: a request with one is refused, and sets no goal.
func TestKeyIsRefused(t *testing.T) {
	c, _ := newRed(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serve(t, c)+"/v1/teams/red/agui", strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	red, err := c.Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if record, err := red.Record(t.Context()); err != nil || record.GoalNumber != 0 || resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("answered %s, and the goal is %q (%v)", resp.Status, record.Goal, err)
	}
}

// TestMethods: what is no POST is told so.
func TestMethods(t *testing.T) {
	c, _ := newRed(t)
	url := serve(t, c) + "/v1/teams/red/agui"
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW"} {
		req, err := http.NewRequestWithContext(brokertest.Context(t), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s, %v", method, resp.Status, resp.Header)
		}
	}
}

// TestClientLeaves: the goal goes on.
func TestClientLeaves(t *testing.T) {
	c, _ := newRed(t)
	ctx, leave := context.WithCancel(t.Context())
	post(t, ctx, serve(t, c), "red", input)
	leave()
	red, err := c.Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if record, err := red.Record(t.Context()); err != nil || !record.AtWork() {
		t.Errorf("the team is %s (%v)", record.Status, err)
	}
}

// script has the leader and a teammate talk and work, by a model that is only a script.
const script = `
agents:
  - match: {role: leader}
    rules:
      - name: count
        since: '(?s)<mail from="user".*?count'
        steps:
          - say: "I put it on the board and ask a teammate."
            calls:
              - tool: create_task
                args: {title: "Count them"}
              - tool: spawn_teammate
                args: {role: explorer, name: scout-1}
          - await: 'completed: seven'
            waiting: "Waiting for scout-1."
            calls:
              - tool: finish_team
                args: {summary: "There are seven."}
      - name: idle
        say: "Nothing to do."
  - match: {name: "scout-*"}
    rules:
      - name: work
        since: '<task id="(?P<id>[^"]+)"'
        steps:
          - say: "I count, and this takes some words to say."
            calls:
              - tool: update_task
                args: {task_id: '{{.Match.id}}', status: completed, result_summary: "seven"}
          - say: "Done."
            await: 'id'
      - name: idle
        say: "Nothing to do."
`

// TestRealTeam: whatever a team of real processes does, the order holds.
func TestRealTeam(t *testing.T) {
	cluster := teamtest.Start(t, script)
	cluster.Leader()
	cluster.Teammates(1)
	cluster.Team("red")
	all := events(t, post(t, t.Context(), serve(t, cluster.Client), "red", input))
	state, err := check(all)
	if err != nil {
		t.Fatalf("%v in\n%s", err, strings.Join(all, "\n"))
	}
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{`"SUBAGENT_STARTED"`, `"name":"scout-1"`, "STATE_DELTA", "this takes some words", `"summary":"There are seven."`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if !strings.Contains(string(data), `"status":"completed"`) || !strings.Contains(string(data), `"resultSummary":"seven"`) {
		t.Errorf("the state is %s", data)
	}
}
