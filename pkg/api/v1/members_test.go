package v1_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/model"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// standby serves the pool: each order is taken, and its member joins and is heard.
func (r *rig) standby(t testing.TB) {
	t.Helper()
	stop, err := control.ServePool(t.Context(), r.bt.Conn, nil, func(_ context.Context, o control.Order) error {
		m, err := r.roster.Get(t.Context(), o.Agent)
		if err != nil {
			return err
		}
		m.State = team.Joined
		if m, err = r.roster.Put(t.Context(), m); err != nil {
			return err
		}
		roster.NewHeart(r.roster, m, team.DefaultLease).Set(func(b *team.Heartbeat) { b.State = team.Idle })
		return nil
	})
	if err == nil {
		t.Cleanup(stop)
		err = r.bt.Conn.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// says opens a member's journal, and returns what has its model say something.
func (r *rig) says(t testing.TB, m team.Member) func(texts ...string) {
	t.Helper()
	j, _, err := journal.Open(t.Context(), r.bt, m.AgentID, m.Incarnation, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			reply, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", Content: text}, Usage: model.Usage{PromptTokens: 9}})
			if err == nil {
				_, err = j.Append(t.Context(), journal.Record{Kind: journal.Turn, Turn: reply})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A spawn that finds no process says what is missing, and leaves no member.
func TestSpawnWithoutStandbys(t *testing.T) {
	r := newRig(t)
	r.all(t, []ask{
		{name: "spawn", do: "POST /v1/teams/t/members", body: `{"role":"coder","agent_id":"ann"}`, want: 503, code: team.Unavailable, says: []string{"no standby is free", "no leader process", "!internal", "!responders"}},
		{name: "all", do: "GET /v1/teams/t/members?all=true", want: 200, says: []string{`"members":[]`}},
		{name: "get", do: "GET /v1/teams/t/members/ann", want: 404, code: team.NotFound, says: []string{"its spawn has failed"}},
		{name: "stop", do: "DELETE /v1/teams/t/members/ann", want: 404, code: team.NotFound},
	})
	r.standby(t)
	r.do(t, ask{name: "again", do: "POST /v1/teams/t/members", body: `{"role":"coder","agent_id":"ann"}`, want: 201, says: []string{`"agent_id":"ann"`}})
	r.do(t, ask{name: "it is there", do: "GET /v1/teams/t/members/ann", want: 200})
}

func TestMembers(t *testing.T) {
	r := newRig(t)
	r.standby(t)
	r.all(t, []ask{
		{name: "none", do: "GET /v1/teams/t/members", want: 200, says: []string{`"members":[]`}},
		{name: "of no team", do: "GET /v1/teams/green/members", want: 404, code: team.NotFound},
		{name: "spawn one", do: "POST /v1/teams/t/members", body: `{"role":"general-purpose","prompt":"Begin."}`, want: 201, says: []string{`"agent_id":"coder-1"`, `"role":"coder"`, `"prompt":"Begin."`}},
		{name: "spawn two", do: "POST /v1/teams/t/members", body: `{"role":"tester","count":2,"plan_mode":true,"approver":"human"}`, want: 201, says: []string{`"tester-1"`, `"tester-2"`, `"plan_mode":true`, `"approver":"human"`}},
		{name: "spawn by name", do: "POST /v1/teams/t/members", body: `{"role":"coder","name":"ann"}`, want: 201, says: []string{`"agent_id":"ann"`}},
		{name: "spawn the same name", do: "POST /v1/teams/t/members", body: `{"role":"coder","name":"ann"}`, want: 409, code: team.Conflict},
		{name: "one name for two", do: "POST /v1/teams/t/members", body: `{"role":"coder","name":"bob","count":2}`, want: 422, code: team.InvalidArgument},
		{name: "no role", do: "POST /v1/teams/t/members", body: `{"role":"poet"}`, want: 404, code: team.NotFound},
		{name: "a role left out", do: "POST /v1/teams/t/members", body: `{}`, want: 422, code: team.InvalidArgument, says: []string{"role"}},
		{name: "a bad name", do: "POST /v1/teams/t/members", body: `{"role":"coder","name":"A.B"}`, want: 422, code: team.InvalidArgument, says: []string{"A.B"}},
		{name: "none at all", do: "POST /v1/teams/t/members", body: `{"role":"coder","count":0}`, want: 422, code: team.InvalidArgument, says: []string{"body.count"}},
		{name: "too many", do: "POST /v1/teams/t/members", body: `{"role":"coder","count":10}`, want: 409, code: team.InvalidState, says: []string{"max_teammates"}},
		{name: "a prompt too long", do: "POST /v1/teams/t/members", body: `{"role":"coder","prompt":"` + strings.Repeat("x", team.MaxTextBytes+1) + `"}`, want: 422, code: team.InvalidArgument},
		{name: "a bad approver", do: "POST /v1/teams/t/members", body: `{"role":"coder","approver":"dog"}`, want: 422, code: team.InvalidArgument},
		{name: "with a key", do: "POST /v1/teams/t/members", body: `{"role":"tester","prompt":"Once."}`, header: []string{"Idempotency-Key", "键 1"}, want: 201, says: []string{`"agent_id":"tester-`, `"existed":false`}},
		{name: "again", do: "POST /v1/teams/t/members", body: `{"role":"tester","prompt":"Once."}`, header: []string{"Idempotency-Key", "键 1"}, want: 200, says: []string{`"agent_id":"tester-`, `"existed":true`}},
		{name: "another prompt under the key", do: "POST /v1/teams/t/members", body: `{"role":"tester","prompt":"Twice."}`, header: []string{"Idempotency-Key", "键 1"}, want: 409, code: team.Conflict},
		{name: "a key that is too long", do: "POST /v1/teams/t/members", body: `{"role":"tester"}`, header: []string{"Idempotency-Key", strings.Repeat("k", 257)}, want: 422, code: team.InvalidArgument},
		{name: "to no team", do: "POST /v1/teams/green/members", body: `{"role":"coder"}`, want: 404, code: team.NotFound},
		{name: "one", do: "GET /v1/teams/t/members/ann", want: 200, says: []string{`"agent_id":"ann"`, `"state":"`}},
		{name: "nobody", do: "GET /v1/teams/t/members/eve", want: 404, code: team.NotFound},
		{name: "a bad name", do: "GET /v1/teams/t/members/A*", want: 422, code: team.InvalidArgument},
		{name: "the leader alone", do: "DELETE /v1/teams/t/members/leader", want: 422, code: team.InvalidArgument},
		{name: "stop nobody", do: "DELETE /v1/teams/t/members/eve", want: 404, code: team.NotFound},
		{name: "two ways at once", do: "DELETE /v1/teams/t/members/ann?force=true&drain=true", want: 422, code: team.InvalidArgument},
		{name: "too long", do: "DELETE /v1/teams/t/members/ann?timeout=100", want: 422, code: team.InvalidArgument, says: []string{"query.timeout"}},
		{name: "stop by force", do: "DELETE /v1/teams/t/members/ann?force=true&reason=enough", want: 200, says: []string{`"state":"stopped"`}},
		{name: "those who are there", do: "GET /v1/teams/t/members", want: 200, says: []string{"coder-1", "!ann"}},
		{name: "all", do: "GET /v1/teams/t/members?all=true", want: 200, says: []string{"coder-1", "ann"}},
	})
}

// What a member has under way beside its conversation is shown with it, in lists too.
func TestJobsOfMembers(t *testing.T) {
	r := newRig(t)
	m, err := r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	m.State = team.Joined
	if m, err = r.roster.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID, Role: m.Role}, control.Handlers{Ping: func() team.Heartbeat {
		return team.Heartbeat{AgentID: m.AgentID, Incarnation: m.Incarnation, State: team.Running, Tokens: 100, Jobs: []team.Job{
			{ID: "a1b2c3d", Kind: team.JobSubagent, Type: "explorer", About: "look <for> it", Turns: 2, Tokens: 50, Asked: "r1"},
			{ID: "b2c3d4e", Kind: team.JobCommand, About: "make watch", Background: true, Still: 90}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs := []string{`"id":"a1b2c3d","kind":"subagent","about":"look <for> it","type":"explorer"`, `"asked":"r1"`, `"id":"b2c3d4e","kind":"command","about":"make watch","background":true`, `"still":90`, `"tokens":150`}
	r.all(t, []ask{
		{name: "one", do: "GET /v1/teams/t/members/coder-1", want: 200, says: jobs},
		{name: "all", do: "GET /v1/teams/t/members", want: 200, says: jobs},
	})
}

// A member that has work may refuse to leave.
func TestRefusal(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	m := r.join(t, "coder")
	box := mailbox.New(r.bt, mailbox.Options{Members: r.roster})
	go func() {
		_ = box.Receive(t.Context(), m.AgentID, m.Incarnation, mailbox.Mark{}, func(d mailbox.Delivery) error {
			d.Ack()
			if d.Type == team.MsgShutdownRequest {
				no := false
				_, _, err := box.Send(t.Context(), team.Message{Type: team.MsgShutdownResponse, From: m.AgentID, To: d.From, RequestID: d.RequestID, Approve: &no, Content: "还没做完"})
				return err
			}
			return nil
		})
	}()
	r.do(t, ask{do: "DELETE /v1/teams/t/members/" + string(m.AgentID) + "?timeout=20&reason=done", want: 409, code: team.Conflict, says: []string{"还没做完"}})
}

func TestTranscript(t *testing.T) {
	r := newRig(t)
	m := r.join(t, "coder")
	says := r.says(t, m)
	says("one 一", "two", "three")
	path := "/v1/teams/t/members/" + string(m.AgentID) + "/transcript"
	r.all(t, []ask{
		{name: "all", do: "GET " + path, want: 200, says: []string{"one 一", "two", "three", `!"next"`}},
		{name: "a page", do: "GET " + path + "?limit=2", want: 200, says: []string{"one 一", "!three", `"next":"2"`}},
		{name: "the next", do: "GET " + path + "?limit=2&page=2", want: 200, says: []string{"!one 一", "three", `!"next"`}},
		{name: "behind the end", do: "GET " + path + "?page=99", want: 200, says: []string{`"entries":[]`}},
		{name: "a bad page", do: "GET " + path + "?page=-1", want: 422, code: team.InvalidArgument, says: []string{"query.page"}},
		{name: "of nobody", do: "GET /v1/teams/t/members/eve/transcript", want: 404, code: team.NotFound},
		{name: "a stream of nobody", do: "GET /v1/teams/t/members/eve/transcript", header: []string{"Accept", "text/event-stream"}, want: 404, code: team.NotFound},
		{name: "of no team", do: "GET /v1/teams/green/members/eve/transcript", want: 404, code: team.NotFound},
	})
	events := r.stream(t, path, "Last-Event-ID", "1")
	if id, data := events(); id != "2" || !strings.Contains(data, "two") {
		t.Errorf("the first is %s: %s", id, data)
	}
	events()
	says("four")
	if id, data := events(); id != "4" || !strings.Contains(data, "four") {
		t.Errorf("what comes is %s: %s", id, data)
	}
}

// stream opens a stream and returns its events, one at each call.
func (r *rig) stream(t *testing.T, path string, header ...string) func() (id, data string) {
	t.Helper()
	req, err := http.NewRequestWithContext(brokertest.Context(t), http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || ct != "text/event-stream" {
		t.Fatalf("%d of type %s", resp.StatusCode, ct)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() (id, data string) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case lines.Text() == "event: ready":
				lines.Scan() // its data
			case name == "id":
				id = value
			case name == "data":
				data = value
			case lines.Text() == "" && data != "":
				return id, data
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return "", ""
	}
}

func TestMail(t *testing.T) {
	r := newRig(t)
	send := "POST /v1/teams/t/messages"
	r.do(t, ask{do: "DELETE /v1/teams/t/goal?timeout=0", want: 200})
	r.do(t, ask{name: "to a team at rest", do: send, body: `{"to":"leader","text":"hello"}`, want: 409, code: team.InvalidState})
	r.goal(t)
	m := r.join(t, "coder")
	sent := r.do(t, ask{name: "send", do: send, body: `{"to":"` + string(m.AgentID) + `","text":"请看 🎯","summary":"看","urgent":true}`, want: 201, says: []string{`"delivered_to":["` + string(m.AgentID) + `"]`, `"existed":false`}})
	id := sent.str(t, "message_id")
	if at := sent.Header.Get("Location"); at != "/v1/teams/t/messages/"+id {
		t.Errorf("it is at %s", at)
	}
	r.all(t, []ask{
		{name: "to everyone", do: send, body: `{"to":"*","text":"all"}`, want: 201, says: []string{`"leader"`, string(m.AgentID)}},
		{name: "with a key", do: send, body: `{"to":"leader","text":"once"}`, header: []string{"Idempotency-Key", "k"}, want: 201, says: []string{`"existed":false`}},
		{name: "with the key again", do: send, body: `{"to":"leader","text":"once"}`, header: []string{"Idempotency-Key", "k"}, want: 200, says: []string{`"existed":true`}},
		{name: "another with the key", do: send, body: `{"to":"leader","text":"twice"}`, header: []string{"Idempotency-Key", "k"}, want: 409, code: team.Conflict},
		{name: "a long one", do: send, body: `{"to":"leader","text":"` + strings.Repeat("长", team.MaxTextBytes) + `"}`, want: 201, says: []string{`"stored":"stored:`}},
		{name: "an answer", do: send, body: `{"to":"leader","text":"x","reply_to":"` + id + `"}`, want: 201},
		{name: "an answer to none", do: send, body: `{"to":"leader","text":"x","reply_to":"nought"}`, want: 404, code: team.NotFound},
		{name: "to nobody", do: send, body: `{"to":"eve","text":"x"}`, want: 404, code: team.NotFound, says: []string{"eve"}},
		{name: "to a bad name", do: send, body: `{"to":"A B","text":"x"}`, want: 422, code: team.InvalidArgument},
		{name: "to none", do: send, body: `{"text":"x"}`, want: 422, code: team.InvalidArgument, says: []string{"property to"}},
		{name: "nothing", do: send, body: `{"to":"leader","text":" "}`, want: 422, code: team.InvalidArgument, says: []string{"empty"}},
		{name: "as an agent", do: send, body: `{"to":"leader","text":"x","as":"` + string(m.AgentID) + `"}`, want: 403, code: team.PermissionDenied},
		{name: "as nobody", do: send, body: `{"to":"leader","text":"x","as":"eve"}`, want: 404, code: team.NotFound},
		{name: "a summary too long", do: send, body: `{"to":"leader","text":"x","summary":"` + strings.Repeat("s", 513) + `"}`, want: 422, code: team.InvalidArgument},
		{name: "an unknown field", do: send, body: `{"to":"leader","text":"x","contents":"y"}`, want: 422, code: team.InvalidArgument, says: []string{"body.contents"}},
		{name: "to no team", do: "POST /v1/teams/green/messages", body: `{"to":"leader","text":"x"}`, want: 404, code: team.NotFound},

		{name: "a message", do: "GET /v1/teams/t/messages/" + id, want: 200, says: []string{"请看 🎯", `"summary":"看"`, `"status":"pending"`}},
		{name: "no message", do: "GET /v1/teams/t/messages/nought", want: 404, code: team.NotFound},
		{name: "an inbox", do: "GET /v1/teams/t/inbox/" + string(m.AgentID), want: 200, says: []string{"请看 🎯", `"content":"all"`}},
		{name: "a page of it", do: "GET /v1/teams/t/inbox/" + string(m.AgentID) + "?limit=1", want: 200, says: []string{"请看 🎯", `!"content":"all"`, `"next":"1"`}},
		{name: "the next", do: "GET /v1/teams/t/inbox/" + string(m.AgentID) + "?limit=1&page=1", want: 200, says: []string{"!请看 🎯", `"content":"all"`, `!"next"`}},
		{name: "the person's", do: "GET /v1/teams/t/inbox/user", want: 200, says: []string{`"messages":[]`}},
		{name: "nobody's", do: "GET /v1/teams/t/inbox/eve", want: 404, code: team.NotFound},
		{name: "a bad page", do: "GET /v1/teams/t/inbox/user?page=x", want: 422, code: team.InvalidArgument, says: []string{"query.page"}},
		{name: "no questions", do: "GET /v1/teams/t/questions", want: 200, says: []string{`"messages":[]`}},
	})
	q := r.post(t, team.Message{Type: team.MsgMessage, From: m.AgentID, To: team.UserAgent, Content: "哪个?", AwaitReply: true, Choices: []string{"red", "blue"}})
	at := "POST /v1/teams/t/messages/" + q.ID + "/answer"
	r.all(t, []ask{
		{name: "a question", do: "GET /v1/teams/t/questions", want: 200, says: []string{"哪个?", `"choices":["red","blue"]`, `"open":true`}},
		{name: "none of its choices", do: at, body: `{"text":"green"}`, want: 422, code: team.InvalidArgument, says: []string{"red"}},
		{name: "no answer", do: at, body: `{}`, want: 422, code: team.InvalidArgument},
		{name: "answer", do: at, body: `{"text":"2"}`, want: 201, says: []string{`"content":"blue"`}},
		{name: "answer again", do: at, body: `{"text":"red"}`, want: 409, code: team.Conflict},
		{name: "answer with a key", do: at, body: `{"text":"red"}`, header: []string{"Idempotency-Key", "k"}, want: 422, code: team.InvalidArgument},
		{name: "answer no question", do: "POST /v1/teams/t/messages/" + id + "/answer", body: `{"text":"x"}`, want: 403, code: team.PermissionDenied},
		{name: "answer nought", do: "POST /v1/teams/t/messages/nought/answer", body: `{"text":"x"}`, want: 404, code: team.NotFound},
		{name: "no open question", do: "GET /v1/teams/t/questions", want: 200, says: []string{`"messages":[]`}},
		{name: "all questions", do: "GET /v1/teams/t/questions?all=true", want: 200, says: []string{"哪个?"}},
		{name: "questions to nobody", do: "GET /v1/teams/t/questions?as=eve", want: 404, code: team.NotFound},
	})
}

func TestApprovals(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	m, err := r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool, PlanMode: true, Approver: team.ByHuman}, roster.Limit{Team: 10})
	if err == nil {
		m.State = team.Joined
		m, err = r.roster.Put(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	box := mailbox.New(r.bt, mailbox.Options{Members: r.roster})
	plans := approval.New(r.bt.Bucket, approval.Options{Tasks: r.board, Members: r.roster, Post: box})
	gate, err := plans.Gate(t.Context(), m, noTask{})
	if err != nil {
		t.Fatal(err)
	}
	submit := func(plan string) string {
		t.Helper()
		a, err := gate.Submit(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	id := submit("先数到十")
	path := "/v1/teams/t/approvals"
	r.all(t, []ask{
		{name: "list", do: "GET " + path, want: 200, says: []string{id, "先数到十"}},
		{name: "of no team", do: "GET /v1/teams/green/approvals", want: 404, code: team.NotFound},
		{name: "one", do: "GET " + path + "/" + id, want: 200, says: []string{`"status":"pending"`}},
		{name: "none", do: "GET " + path + "/nought", want: 404, code: team.NotFound},
		{name: "reject without a word", do: "POST " + path + "/" + id + "/decide", body: `{"approve":false}`, want: 422, code: team.InvalidArgument, says: []string{"feedback"}},
		{name: "no decision", do: "POST " + path + "/" + id + "/decide", body: `{"feedback":"x"}`, want: 422, code: team.InvalidArgument, says: []string{"approve"}},
		{name: "a word for a truth", do: "POST " + path + "/" + id + "/decide", body: `{"approve":"yes"}`, want: 422, code: team.InvalidArgument, says: []string{"body.approve"}},
		{name: "on none", do: "POST " + path + "/nought/decide", body: `{"approve":true}`, want: 404, code: team.NotFound},
		{name: "reject", do: "POST " + path + "/" + id + "/decide", body: `{"approve":false,"feedback":"倒着数"}`, want: 200, says: []string{`"status":"rejected"`, "倒着数"}},
		{name: "twice", do: "POST " + path + "/" + id + "/decide", body: `{"approve":true}`, want: 409, code: team.Conflict},
		{name: "none waits", do: "GET " + path, want: 200, says: []string{`"approvals":[]`}},
		{name: "all", do: "GET " + path + "?all=true", want: 200, says: []string{id}},
	})
	id = submit("倒着数")
	r.do(t, ask{name: "approve", do: "POST " + path + "/" + id + "/decide", body: `{"approve":true}`, want: 200, says: []string{`"status":"approved"`}})
}

// A call that a person has to allow is decided on as a plan is, with how far that goes; always
// adds its rule to the team.
func TestPermissions(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	m, err := r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10})
	if err == nil {
		m.State = team.Joined
		m, err = r.roster.Put(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	plans := approval.New(r.bt.Bucket, approval.Options{Tasks: r.board, Members: r.roster, Post: mailbox.New(r.bt, mailbox.Options{Members: r.roster})})
	gate := plans.Permissions(m, noTask{}, func(context.Context, tool.Request) (approval.Judgement, error) {
		return approval.Judgement{Answer: permission.Ask, Why: "推送", Dir: "/w", Always: "Bash(git push)"}, nil
	})
	call := func(command string) (id string) {
		t.Helper()
		err := gate.Pass(t.Context(), tool.Request{Called: "bash", Tool: "bash", Arguments: []byte(`{"command":"` + command + `"}`)})
		waiting, lerr := plans.Waiting(t.Context())
		if err == nil || lerr != nil || len(waiting) != 1 {
			t.Fatalf("%s: %v, %v, %v", command, err, waiting, lerr)
		}
		return waiting[0].ID
	}
	path := "/v1/teams/t/approvals"
	decide := func(id string) string { return "POST " + path + "/" + id + "/decide" }
	id := call("git push")
	r.all(t, []ask{
		{name: "list", do: "GET " + path, want: 200, says: []string{id, `"kind":"permission"`, `"arguments":"{\"command\":\"git push\"}"`, `"dir":"/w"`, "推送", `"rule":"Bash(git push)"`}},
		{name: "no such scope", do: decide(id), body: `{"approve":true,"scope":"ever"}`, want: 422, code: team.InvalidArgument, says: []string{"scope"}},
		{name: "by no seat", do: decide(id), body: `{"approve":true,"as":"ann"}`, want: 404, code: team.NotFound},
		{name: "by an agent", do: decide(id), body: `{"approve":true,"as":"` + string(m.AgentID) + `"}`, want: 403, code: team.PermissionDenied},
		{name: "by the leader", do: decide(id), body: `{"approve":true,"as":"leader"}`, want: 404, code: team.NotFound},
		{name: "refuse without a word", do: decide(id), body: `{"approve":false}`, want: 200, says: []string{`"status":"rejected"`}},
	})
	id = call("git pull")
	r.do(t, ask{name: "allow always", do: decide(id), body: `{"approve":true,"scope":"always"}`, want: 200, says: []string{`"scope":"always"`, `"status":"approved"`}})
	r.do(t, ask{name: "again", do: decide(id), body: `{"approve":true,"scope":"always"}`, want: 409, code: team.Conflict})
	r.do(t, ask{name: "the team allows it", do: "GET /v1/teams/t", want: 200, says: []string{`"allow":["Bash(git push)"]`, `"given":{"Bash(git push)":{"approval":"` + id + `","by":"user"}}`}})
}

// noTask is the hand of a member without a task.
type noTask struct{}

func (noTask) Task() (team.Task, bool) { return team.Task{}, false }

func TestEvents(t *testing.T) {
	r := newRig(t)
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"一"},{"title":"two"},{"title":"three"}]}`, want: 201})
	path := "/v1/teams/t/events"
	first := r.do(t, ask{name: "a page", do: "GET " + path + "?limit=2&type=TASK_CREATED", want: 200, says: []string{"一", "two", "!three", `"more":true`}})
	cursor := first.str(t, "next")
	r.all(t, []ask{
		{name: "the next", do: "GET " + path + "?type=task_created&after=" + cursor, want: 200, says: []string{"!two", "three", `"more":false`}},
		{name: "of nobody", do: "GET " + path + "?agent=eve", want: 200, says: []string{`"events":[]`}},
		{name: "a bad type", do: "GET " + path + "?type=COLOUR", want: 422, code: team.InvalidArgument, says: []string{"COLOUR"}},
		{name: "a bad agent", do: "GET " + path + "?agent=A*", want: 422, code: team.InvalidArgument},
		{name: "a bad cursor", do: "GET " + path + "?after=rubbish", want: 422, code: team.InvalidArgument, says: []string{"rubbish"}},
		{name: "a bad cursor in a stream", do: "GET " + path + "?after=rubbish&follow=true", want: 422, code: team.InvalidArgument, says: []string{"rubbish"}},
		{name: "a bad cursor of a browser", do: "GET " + path, header: []string{"Last-Event-ID", "rubbish", "Accept", "text/event-stream"}, want: 422, code: team.InvalidArgument},
		{name: "a bad truth", do: "GET " + path + "?live=perhaps", want: 422, code: team.InvalidArgument, says: []string{"query.live"}},
		{name: "too many", do: "GET " + path + "?limit=5000", want: 422, code: team.InvalidArgument, says: []string{"query.limit"}},
		{name: "an unknown parameter", do: "GET " + path + "?colour=red", want: 422, code: team.InvalidArgument, says: []string{"query.colour"}},
		{name: "of no team", do: "GET /v1/teams/green/events", want: 404, code: team.NotFound},
		{name: "a stream of no team", do: "GET /v1/teams/green/events?follow=true", want: 404, code: team.NotFound},
	})
	events := r.stream(t, path+"?type=TASK_CREATED&live=false", "Last-Event-ID", cursor)
	id, data := events()
	if !strings.Contains(data, "three") || id == "" {
		t.Errorf("the first behind the cursor is %s: %s", id, data)
	}
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"four"}]}`, want: 201})
	if next, data := events(); !strings.Contains(data, "four") || next == id {
		t.Errorf("what comes is %s: %s", next, data)
	}
	r.do(t, ask{name: "a page behind its id", do: "GET " + path + "?type=TASK_CREATED&after=" + id, want: 200, says: []string{"four", "!three"}})
}
