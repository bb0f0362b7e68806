package teamwire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/api/stream/streamtest"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

const (
	ann = "user_id=ann&session_id=day+1"
	who = `"user_id":"ann","session_id":"day 1"`
)

// TestRoutes is each route with what it answers, in the order in which a page would ask.
func TestRoutes(t *testing.T) {
	r := newRig(t)
	r.tell("GET", "/health", "")
	for _, path := range []string{"teammates", "tasks", "status", "history", "history?raw=true", "subscribe"} {
		path, raw, _ := strings.Cut(path, "?")
		r.tell("GET", "/team/"+path+"?"+ann+"&"+raw, "") // of a session that nobody knows
	}
	r.tell("GET", "/team/sessions?user_id=ann", "")
	r.tell("POST", "/team/stop", "{"+who+"}")
	r.tell("POST", "/team/user-message", "{"+who+`,"content":"hello"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"user","content":"hello"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-001"}`)
	r.tell("PATCH", "/team/tasks/T-001?"+ann, `{"status":"completed"}`)
	r.tell("POST", "/team/tasks", "{"+who+`,"title":"after it","dependencies":["T-001"]}`)

	r.tell("POST", "/team/tasks", "{"+who+`,"title":"first <b>","unknown":1}`) // makes the team
	r.tell("POST", "/team/tasks", "{"+who+`,"title":"second","description":"the rest","priority":2,"dependencies":["T-001"]}`)
	r.tell("GET", "/team/sessions?user_id=ann", "")
	r.tell("GET", "/team/sessions?user_id=bob", "")
	r.tell("GET", "/team/status?"+ann, "")
	r.tell("GET", "/team/tasks?"+ann, "")
	r.tell("GET", "/team/tasks?"+ann+"&status=completed", "")
	r.tell("GET", "/team/tasks?"+ann+"&status=no+such", "")
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"api","content":"hello"}`) // no seat yet
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-002"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-001"}`)
	r.tell("POST", "/team/tasks", "{"+who+`,"title":"third"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-003","assignee_agent_id":null}`) // one at a time
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-001","assignee_agent_id":"carl"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-999"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"no task"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-003","assignee_agent_id":"No Name"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-003","assignee_agent_id":"codr-1"}`)
	r.tell("POST", "/team/tasks", "{"+who+`,"title":"after what is not there","dependencies":["T-999"]}`)
	r.tell("PATCH", "/team/tasks/T-003?"+ann, `{"status":"pending"}`)   // which it is
	r.tell("PATCH", "/team/tasks/T-003?"+ann, `{"status":"completed"}`) // which nobody holds
	r.tell("PATCH", "/team/tasks/T-999?"+ann, `{"status":"completed"}`)
	r.tell("PATCH", "/team/tasks/nothing?"+ann, `{"status":"completed"}`)
	r.tell("PATCH", "/team/tasks/T-001?"+ann, `{"status":"finished"}`)
	r.tell("PATCH", "/team/tasks/T-001?"+ann, `{"status":"completed","result_summary":"It is done."}`)
	r.tell("PATCH", "/team/tasks/T-001?"+ann, `{"status":"completed","result_summary":"It is done."}`) // again
	r.tell("PATCH", "/team/tasks/T-001?"+ann, `{"status":"completed","result_summary":"Otherwise."}`)
	r.tell("PATCH", "/team/tasks/T-001?"+ann, `{"status":"pending"}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"task_id":"T-001"}`)
	r.tell("PATCH", "/team/tasks/T-003?"+ann, `{"status":"cancelled"}`)
	r.tell("GET", "/team/tasks?"+ann, "")

	c := r.cast("ann", "day 1")
	c.Member("coder-1", "coder", team.Joined)
	_, err := r.session().Board().Seating("carl").Claim(t.Context(), "T-002", "carl")
	r.ok(err)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"carl","to_agent_id":"coder-1","content":"one"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"user","to_agent_id":null,"content":"all"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"coder-1","content":"as an agent"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"user","to_agent_id":"nobody","content":"one"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"user","to_agent_id":"No Name","content":"one"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"user","content":""}`)
	r.tell("POST", "/team/user-message", "{"+who+`,"content":"to whom it concerns"}`)
	r.tell("POST", "/team/user-message", "{"+who+`,"content":"one","to_agent_id":"coder-1"}`)
	r.tell("POST", "/team/user-message", "{"+who+`,"content":"one","to_agent_id":"nobody"}`)
	r.tell("GET", "/team/history?"+ann, "")
	c.Member("coder-1", "coder", team.Stopped)
	r.tell("POST", "/team/stop", "{"+who+"}")
	r.tell("POST", "/team/stop", "{"+who+"}")
	r.tell("POST", "/team/user-message", "{"+who+`,"content":"too late"}`)
	r.tell("POST", "/team/message", "{"+who+`,"from_agent_id":"user","content":"too late"}`)
	r.tell("GET", "/team/teammates?"+ann, "")
	r.tell("GET", "/team/tasks?"+ann+"&status=completed", "") // still readable
	r.golden("routes.golden")
}

// TestTaskOfAnAgent: what an agent holds, or has done, is not for PATCH to say; giving it up is.
func TestTaskOfAnAgent(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.ask("POST", "/team/tasks", "{"+who+`,"title":"x"}`)
	}
	c, coder := r.cast("ann", "day 1"), team.Holder{Agent: "coder-1", Incarnation: 1}
	c.Member("coder-1", "coder", team.Joined)
	done, err := c.Board.Claim(t.Context(), "T-001", coder)
	r.ok(err)
	_, err = c.Board.Complete(t.Context(), "T-001", coder, done.Epoch, team.Done{Summary: "by the agent"})
	r.ok(err)
	_, err = c.Board.Claim(t.Context(), "T-002", coder)
	r.ok(err)
	for _, tt := range []struct {
		task, status string
		code         int
		detail       string
	}{
		{"T-001", "completed", 409, "T-001 is completed by coder-1, which is no seat and acts for itself"},
		{"T-001", "failed", 409, "T-001 is already completed"},
		{"T-001", "cancelled", 409, "T-001 is already completed"},
		{"T-002", "in_progress", 409, "T-002 is held by coder-1, which is no seat and acts for itself"},
		{"T-002", "completed", 409, "T-002 is held by coder-1, which is no seat and acts for itself"},
		{"T-002", "failed", 409, "T-002 is held by coder-1, which is no seat and acts for itself"},
		{"T-002", "pending", 409, "T-002 is held by coder-1, which is no seat and acts for itself"},
		{"T-002", "cancelled", 200, `"status":"cancelled"`},
		{"T-003", "in_progress", 409, "T-003 is pending: claim it first"},
	} {
		code, body := r.ask("PATCH", "/team/tasks/"+tt.task+"?"+ann, `{"status":"`+tt.status+`"}`)
		if code != tt.code || !strings.Contains(body, tt.detail) {
			t.Errorf("%s to %s = %d %s, want %d %s", tt.task, tt.status, code, body, tt.code, tt.detail)
		}
	}
}

// TestRepeatedChange: a change that comes again is no error, unless it says other words.
func TestRepeatedChange(t *testing.T) {
	r := newRig(t)
	for n, status := range []string{"completed", "failed", "pending", "cancelled"} {
		r.ask("POST", "/team/tasks", "{"+who+`,"title":"x"}`)
		id := fmt.Sprintf("T-%03d", n+1)
		r.ask("POST", "/team/tasks/claim", "{"+who+`,"task_id":"`+id+`"}`)
		for _, tt := range []struct {
			summary string
			code    int
		}{{"so it is", 200}, {"so it is", 200}, {"", 200}, {"otherwise", http.StatusConflict}} {
			code, body := r.ask("PATCH", "/team/tasks/"+id+"?"+ann, `{"status":"`+status+`","result_summary":"`+tt.summary+`"}`)
			if code != tt.code {
				t.Errorf("%s, %q: %d %s, want %d", status, tt.summary, code, body, tt.code)
			}
		}
		if status == "pending" { // the seat takes one task at a time
			r.ask("PATCH", "/team/tasks/"+id+"?"+ann, `{"status":"cancelled"}`)
		}
	}
}

// TestNoSession: a team that has the name of a session and was not made as one is nobody's. A
// stream tells an error that is none of the fields in its frames, as clients of it expect.
func TestNoSession(t *testing.T) {
	r := newRig(t)
	_, err := r.client.Make(t.Context(), client.NewTeam{ID: team.SessionTeam("ann", "day 1")})
	r.ok(err)
	for _, q := range []struct {
		path, rest string
		status     int
		body       string
	}{
		{"stream", `,"message":"x"`, 200, `data: {"type":"error","envelope":null,"session_id":"day 1","error":"team `},
		{"query", `,"message":"x"`, 409, `{"detail":"team `},
		{"tasks", `,"title":"x"`, 409, `{"detail":"team `},
		{"message", `,"from_agent_id":"user","content":"x"`, 404, `{"detail":"user \"ann\" has no session`},
		{"user-message", `,"content":"x"`, 404, `{"detail":"No active team`},
		{"stop", "", 200, `{"status":"no_active_team"}`},
	} {
		status, body := r.ask("POST", "/team/"+q.path, "{"+who+q.rest+"}")
		if status != q.status || !strings.HasPrefix(body, q.body) {
			t.Errorf("%s = %d %s, want %d %s", q.path, status, body, q.status, q.body)
		}
	}
}

// TestInfo is apart, since it tells the version.
func TestInfo(t *testing.T) {
	r := newRig(t)
	status, body := r.ask("GET", "/", "")
	var info struct {
		Service, Version, Status string
		Endpoints                map[string]string
	}
	r.ok(json.Unmarshal([]byte(body), &info))
	if status != 200 || info.Service != "agentteam" || info.Version == "" || info.Status != "running" ||
		info.Endpoints["stream"] != "/team/stream" || info.Endpoints["files"] != "/files/tree" || info.Endpoints["v1"] != "/v1/openapi.json" {
		t.Errorf("GET / = %d %s", status, body)
	}
}

func TestMalformed(t *testing.T) {
	r := newRig(t)
	for _, q := range [][2]string{
		{"POST", ""}, {"POST", "{"}, {"POST", "[]"}, {"POST", "null"}, {"POST", "{}"}, {"POST", `{"user_id":1,"session_id":null,"message":["x"]}`},
		{"POST", "{" + who + `,"message":" "}`}, {"POST", "{" + who + `,"message":"x","variables":[]}`},
		{"POST", "{" + who + `,"message":"x","variables":{"template":{"b":1,"a":null},"runtime_vars":"x"}}`},
		{"POST", "{" + who + `,"message":"x","variables":{"sandbox_env":{"HOME":"/"}}}`},
		{"POST", "{" + who + `,"message":"a\u0000b"}`}, {"POST", `{"user_id":"\u0007","session_id":"s","message":"x"}`},
	} {
		r.tell(q[0], "/team/stream", q[1])
	}
	r.tell("POST", "/team/query", "{"+who+"}")
	r.tell("POST", "/team/tasks", "{"+who+`,"title":7,"description":null,"priority":"high","dependencies":["T-001",2]}`)
	r.tell("POST", "/team/tasks", "{"+who+`,"title":"x","priority":1.5,"dependencies":null}`)
	r.tell("POST", "/team/tasks", "{"+who+`,"title":" "}`)
	r.tell("POST", "/team/tasks", "{"+who+`,"title":"x","dependencies":["nothing"]}`)
	r.tell("POST", "/team/tasks/claim", "{"+who+`,"assignee_agent_id":7}`)
	r.tell("PATCH", "/team/tasks/T-001", "{}")
	r.tell("POST", "/team/message", "{}")
	r.tell("POST", "/team/user-message", "{"+who+`,"content":"x","to_agent_id":null}`)
	r.tell("POST", "/team/stop", "[1]")
	for _, path := range []string{"teammates", "tasks?user_id=a", "status", "subscribe?" + ann + "&after=x", "history?" + ann + "&after=1.5&raw=perhaps", "sessions"} {
		r.tell("GET", "/team/"+path, "")
	}
	r.tell("GET", "/files/content", "")
	r.tell("GET", "/team/stream", "")
	r.tell("DELETE", "/team/tasks", "")
	r.tell("GET", "/team/nothing", "")
	r.golden("malformed.golden")
	resp := r.send(t.Context(), "DELETE", "/team/tasks", "")
	if resp.Body.Close(); resp.Header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("what is allowed is %q", resp.Header.Get("Allow"))
	}
	if _, body := r.ask("GET", "/team/sessions?user_id=ann", ""); strings.TrimSpace(body) != "[]" {
		t.Errorf("requests that were refused have made a team: %s", body)
	}
}

// play is what the agents do in the tests of streams.
func play(c *streamtest.Cast) {
	c.Member("leader", "leader", team.Joined)
	c.Member("coder-1", "coder", team.Joined)
	c.Runs("leader", team.EventBody{Type: team.RunStarted})
	c.Says("leader", "I ask <coder-1>.", "send_message")
	c.Hears("leader", "send_message", `{"message_id":"m"}`)
	c.Mails("leader", "coder-1", team.MsgMessage, "begin")
	c.Runs("coder-1", team.EventBody{Type: team.RunStarted})
	c.Runs("coder-1", team.EventBody{Type: team.Retry, Message: "429: slow down", Value: json.RawMessage(`{"tried":1,"of":8,"wait_seconds":2}`)})
	c.Writes("coder-1", journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Advice: "park", Reason: "key", Cause: "401: no such key"}})
	c.Writes("coder-1", journal.Record{Kind: journal.Compact, Text: "the window is full", Context: json.RawMessage(`{"messages":[]}`)})
	c.Says("coder-1", "", "read_file")
	c.Hears("coder-1", "read_file", "text")
	c.Says("coder-1", "Done.", "")
	c.Mails("coder-1", team.Everyone, team.MsgBroadcast, "it is done")
	c.Mails("coder-1", team.Leader, team.MsgIdle, "coder-1 is idle") // for which the wire has no word
	c.Runs("coder-1", team.EventBody{Type: team.RunError, Message: "the connection was lost", Code: "unavailable"})
	c.Runs("leader", team.EventBody{Type: team.RunFinished, Result: json.RawMessage(`{"turns":1}`)})
}

// lines reads a stream to its end.
func lines(t *testing.T, resp *http.Response) (all []string) {
	t.Helper()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if s.Text() != "" {
			all = append(all, s.Text())
		}
	}
	return all
}

func TestStream(t *testing.T) {
	r := newRig(t)
	resp := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"count the files","variables":{"template":{"b":"2","a":"1"},"runtime_vars":{"dir":"."},"sandbox_env":{}}}`)
	defer resp.Body.Close()
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Connection": "keep-alive"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c := r.cast("ann", "day 1")
	play(c)
	c.Ends(team.TeamFinished, "There are 7.")
	got := lines(t, resp)
	r.log.WriteString(strings.Join(got, "\n\n") + "\n\n")
	r.golden("stream.golden")

	for _, after := range []int{0, 5, len(got) - 1, 1000} {
		want := append([]string{}, got[min(after, len(got)-1):]...)
		again := r.send(t.Context(), "GET", fmt.Sprintf("/team/subscribe?%s&after=%d", ann, after), "")
		if all := lines(t, again); strings.Join(all, "\n") != strings.Join(want, "\n") {
			t.Errorf("subscribe after %d gives\n%s\nwant\n%s", after, strings.Join(all, "\n"), strings.Join(want, "\n"))
		}
		again.Body.Close()
	}
	r.log.Reset()
	r.tell("GET", "/team/history?"+ann, "")
	r.tell("GET", "/team/history?raw=true&after=3&"+ann, "")
	r.golden("history.golden")
}

// TestFailed: a goal that fails ends its stream with an error, and another begins anew.
func TestFailed(t *testing.T) {
	r := newRig(t)
	body := "{" + who + `,"message":"count the files"}`
	resp := r.send(t.Context(), "POST", "/team/stream", body)
	defer resp.Body.Close()
	c := r.cast("ann", "day 1")
	c.Ends(team.TeamFailed, "nobody can count")
	all := lines(t, resp)
	if last := all[len(all)-1]; last != `data: {"type":"error","envelope":null,"session_id":"day 1","error":"nobody can count"}` {
		t.Errorf("the last frame is %s", last)
	}
	type answer struct {
		status int
		body   string
	}
	asked := make(chan answer, 1)
	ask := func() {
		status, body := r.ask("POST", "/team/query", body)
		asked <- answer{status, strings.TrimSpace(body)}
	}
	for _, how := range []struct {
		end    team.Status
		status int
		body   string
	}{
		{team.TeamFinished, 200, `{"session_id":"day 1","result":"so it is"}`},
		{team.TeamFailed, 409, `{"detail":"the goal is failed: so it is"}`},
		{team.TeamStopped, 409, `{"detail":"the goal is stopped: so it is"}`},
	} {
		number := c.Goals()
		go ask()
		c.AtWork(number)
		c.Ends(how.end, "so it is")
		if got := brokertest.Receive(t, "the query is answered", asked); got.status != how.status || got.body != how.body {
			t.Errorf("query of a goal that is %s = %d %s", how.end, got.status, got.body)
		}
	}
}

// TestWhileAtWork: a second message is mail to the leader, and follows the same goal.
func TestWhileAtWork(t *testing.T) {
	r := newRig(t)
	first := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"count the files"}`)
	defer first.Body.Close()
	_, body := r.ask("GET", "/team/status?"+ann, "")
	if strings.TrimSpace(body) != `{"running":true,"session_id":"day 1"}` {
		t.Errorf("status = %s", body)
	}
	second := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"and the folders"}`)
	defer second.Body.Close()
	third := r.send(t.Context(), "GET", "/team/subscribe?"+ann, "")
	defer third.Body.Close()
	c := r.cast("ann", "day 1")
	if n := c.Goals(); n != 1 {
		t.Errorf("the second message has set goal %d", n)
	}
	c.Runs("leader", team.EventBody{Type: team.RunStarted})
	c.Ends(team.TeamFinished, "7 and 2")
	for name, resp := range map[string]*http.Response{"first": first, "second": second, "third": third} {
		all := strings.Join(lines(t, resp), "\n")
		if had := strings.Contains(all, "count the files"); had != (name != "second") {
			t.Errorf("%s: it has the first goal: %v\n%s", name, had, all)
		}
		for _, want := range []string{"and the folders", "RUN_STARTED", `"type":"complete"`} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%s: %q is there %d times in\n%s", name, want, strings.Count(all, want), all)
			}
		}
	}
}

// TestStopping: a process that stops while a team is at work tells so, in each form of answer.
func TestStopping(t *testing.T) {
	r := newRig(t)
	goal := "{" + who + `,"message":"count the files"}`
	started := r.send(t.Context(), "POST", "/team/stream", goal)
	defer started.Body.Close()
	followed := r.send(t.Context(), "GET", "/team/subscribe?"+ann, "")
	defer followed.Body.Close()
	waited := make(chan *http.Response, 1)
	go func() { waited <- r.send(t.Context(), "POST", "/team/query", goal) }()
	in, mails := bufio.NewScanner(started.Body), 0
	for mails < 2 && in.Scan() { // of the goal, and of the query
		mails += strings.Count(in.Text(), `"USER_MESSAGE"`)
	}
	r.stop()
	var rest []string
	for in.Scan() {
		if in.Text() != "" {
			rest = append(rest, in.Text())
		}
	}
	for _, all := range [][]string{rest, lines(t, followed)} {
		if last := all[len(all)-1]; last != `data: {"type":"error","envelope":null,"session_id":"day 1","error":"This process is stopping; the team is not"}` {
			t.Errorf("the last frame is %s", last)
		}
	}
	resp := brokertest.Receive(t, "the query is answered", waited)
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 503 || strings.TrimSpace(string(body)) != `{"detail":"This process is stopping; the team is not"}` {
		t.Errorf("the query is answered %d %s (%v)", resp.StatusCode, body, err)
	}
}

// TestHead: who asks for the head of a stream is told that at once, and nothing is followed.
func TestHead(t *testing.T) {
	r := newRig(t)
	resp := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"count the files"}`)
	defer resp.Body.Close()
	for range 2 { // the second has the connection of the first, which is free if that has ended
		head := r.send(t.Context(), "HEAD", "/team/subscribe?"+ann, "")
		head.Body.Close()
		if head.StatusCode != 200 || head.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("it is %d %v", head.StatusCode, head.Header)
		}
	}
}

// TestClientLeaves: the goal goes on without the client that has set it.
func TestClientLeaves(t *testing.T) {
	r := newRig(t)
	ctx, leave := context.WithCancel(t.Context())
	resp := r.send(ctx, "POST", "/team/stream", "{"+who+`,"message":"count the files"}`)
	leave()
	resp.Body.Close()
	_, body := r.ask("GET", "/team/status?"+ann, "")
	if !strings.Contains(body, `"running":true`) {
		t.Errorf("status = %s", body)
	}
}

// TestSlowClient: one that takes nothing in does not hold up another.
func TestSlowClient(t *testing.T) {
	r := newRig(t)
	resp := r.send(t.Context(), "POST", "/team/stream", "{"+who+`,"message":"count the files"}`)
	defer resp.Body.Close()
	slow, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	r.ok(err)
	defer slow.Close()
	_, err = fmt.Fprintf(slow, "GET /team/subscribe?%s HTTP/1.1\r\nHost: x\r\n\r\n", ann)
	r.ok(err)
	c := r.cast("ann", "day 1")
	for range 100 {
		c.Says("leader", strings.Repeat("words ", 20_000), "")
	}
	c.Ends(team.TeamFinished, "7")
	n := 0
	s := bufio.NewScanner(resp.Body)
	for s.Buffer(nil, 1<<20); s.Scan(); {
		n += strings.Count(s.Text(), `"TEXT_MESSAGE_END"`)
	}
	if n != 100 {
		t.Errorf("the quick client got %d of 100 texts: %v", n, s.Err())
	}
}

func TestFiles(t *testing.T) {
	r := newRig(t)
	write := func(name, text string) {
		r.ok(os.MkdirAll(filepath.Dir(filepath.Join(r.dir, name)), 0o755))
		r.ok(os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
	}
	write("main.go", "package main // <T>\n")
	write("Alpha.txt", "alpha")
	write("sub/b.md", "# b")
	write("picture.png", "\x89PNG\x00\xff")
	write("large.txt", strings.Repeat("ä", 600_000))
	outside := filepath.Join(t.TempDir(), "secret")
	r.ok(os.WriteFile(outside, []byte("secret"), 0o644))
	r.ok(os.Symlink(outside, filepath.Join(r.dir, "out")))
	r.ok(os.Symlink("main.go", filepath.Join(r.dir, "in")))
	write(".agentteam/api.token", "secret")
	r.ok(os.Symlink(".agentteam", filepath.Join(r.dir, "link")))
	write("api.token", "secret") // named by the settings
	r.ok(os.Link(outside, filepath.Join(r.dir, "hard")))
	r.ok(os.Symlink("api.token", filepath.Join(r.dir, "soft")))
	r.ok(syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o644))
	for _, path := range []string{"", "?path=.", "?path=sub", "?path=sub/..", "?path=nowhere", "?path=main.go", "?path=..", "?path=sub/../../x", "?path=/etc", "?path=out", "?path=.agentteam", "?path=link"} {
		r.tell("GET", "/files/tree"+path, "")
	}
	for _, path := range []string{"main.go", "sub/b.md", "./in", "picture.png", "nowhere", "main.go/x", "sub", "pipe", "out", "../secret", "/etc/passwd", ".agentteam/api.token", "link/api.token", "sub/../.agentteam/api.token", "api.token", "hard", "soft", "a%00b", strings.Repeat("x", 300)} {
		r.tell("GET", "/files/content?path="+path, "")
	}
	r.golden("files.golden")
	_, body := r.ask("GET", "/files/content?path=large.txt", "")
	var f struct {
		Content   string
		Size      int
		Truncated bool
	}
	r.ok(json.Unmarshal([]byte(body), &f))
	if len(f.Content) != 1<<20 || f.Size != 1_200_000 || !f.Truncated || strings.Contains(f.Content, "\uFFFD") {
		t.Errorf("a large file gives %d bytes of %d, truncated %v", len(f.Content), f.Size, f.Truncated)
	}
}
