package v1_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

func TestTeams(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("长", team.MaxTextBytes)
	r.all(t, []ask{
		{name: "a list", do: "GET /v1/teams", want: 200, says: []string{`"id":"t"`}},
		{name: "make", do: "POST /v1/teams", body: `{"id":"red","description":"红 队","max_teammates":3,"policies":{"approver":"human","plan_mode":true}}`, want: 201,
			says: []string{`"id":"red"`, `"description":"红 队"`, `"max_teammates":3`, `"approver":"human"`, `"plan_mode":true`, `"create":"all"`, r.dir}},
		{name: "make again", do: "POST /v1/teams", body: `{"id":"red","description":"红 队","max_teammates":3,"policies":{"approver":"human","plan_mode":true}}`, want: 409, code: team.Conflict},
		{name: "make again with a key", do: "POST /v1/teams", body: `{"id":"red","description":"红 队","max_teammates":3,"policies":{"approver":"human","plan_mode":true}}`, header: []string{"Idempotency-Key", "k"}, want: 200, says: []string{`"id":"red"`}},
		{name: "another with a key", do: "POST /v1/teams", body: `{"id":"red","description":"other"}`, header: []string{"Idempotency-Key", "k"}, want: 409, code: team.Conflict},
		{name: "in a folder below that of nobody knows whom", do: "POST /v1/teams", body: `{"id":"green","workspace":"rel/../../x"}`, want: 422, code: "invalid_argument", says: []string{"is not an absolute path"}},
		{name: "a new one with a key", do: "POST /v1/teams", body: `{"id":"blue","workspace":"/elsewhere"}`, header: []string{"Idempotency-Key", "k"}, want: 201, says: []string{"/elsewhere"}},
		{name: "a bad name", do: "POST /v1/teams", body: `{"id":"Red!"}`, want: 422, code: team.InvalidArgument, says: []string{"Red!"}},
		{name: "a reserved name", do: "POST /v1/teams", body: `{"id":"all"}`, want: 422, code: team.InvalidArgument, says: []string{"reserved"}},
		{name: "no name", do: "POST /v1/teams", body: `{}`, want: 422, code: team.InvalidArgument, says: []string{"body: expected required property id"}},
		{name: "an unknown field", do: "POST /v1/teams", body: `{"id":"x","colour":"red"}`, want: 422, code: team.InvalidArgument, says: []string{"body.colour: unexpected property"}},
		{name: "an unknown field within", do: "POST /v1/teams", body: `{"id":"x","policies":{"colour":1}}`, want: 422, code: team.InvalidArgument, says: []string{"body.policies.colour"}},
		{name: "a wrong type", do: "POST /v1/teams", body: `{"id":7,"max_teammates":"three"}`, want: 422, code: team.InvalidArgument, says: []string{`"location":"body.id"`, `"location":"body.max_teammates"`, "1 more"}},
		{name: "an unknown policy", do: "POST /v1/teams", body: `{"id":"x","policies":{"approver":"dog"}}`, want: 422, code: team.InvalidArgument, says: []string{"body.policies.approver", `one of \"leader, human`}},
		{name: "with an isolation", do: "POST /v1/teams", body: `{"id":"apart","isolation":"shared"}`, want: 201, says: []string{`"isolation":"shared"`}},
		{name: "too many", do: "POST /v1/teams", body: `{"id":"x","max_teammates":1001}`, want: 422, code: team.InvalidArgument, says: []string{"0 to 1000"}},
		{name: "too long", do: "POST /v1/teams", body: `{"id":"x","description":"` + long + `"}`, want: 422, code: team.InvalidArgument, says: []string{"65536"}},
		{name: "no JSON", do: "POST /v1/teams", body: `{"id":"x"`, want: 400, code: team.InvalidArgument, says: []string{"body: this is no JSON", "byte 9"}},
		{name: "rubbish behind", do: "POST /v1/teams", body: `{"id":"x"} more`, want: 400, code: team.InvalidArgument},
		{name: "no UTF-8", do: "POST /v1/teams", body: "{\"id\":\"x\xff\"}", want: 400, code: team.InvalidArgument, says: []string{"byte 8 is not UTF-8"}},
		{name: "no body", do: "POST /v1/teams", want: 400, code: team.InvalidArgument, says: []string{"required"}},
		{name: "a list", do: "POST /v1/teams", body: `[]`, want: 422, code: team.InvalidArgument},
		{name: "another type of body", do: "POST /v1/teams", body: `id=x`, header: []string{"Content-Type", "application/x-www-form-urlencoded"}, want: 415, code: team.InvalidArgument},
		{name: "a body beyond limits", do: "POST /v1/teams", body: `{"id":"` + strings.Repeat("x", 1<<20) + `"}`, want: 413, code: team.InvalidArgument, says: []string{"1048576"}},

		{name: "one", do: "GET /v1/teams/red", want: 200, says: []string{`"status":"active"`}},
		{name: "head", do: "HEAD /v1/teams/red", want: 200},
		{name: "none", do: "GET /v1/teams/green", want: 404, code: team.NotFound},
		{name: "no name at all", do: "GET /v1/teams/Gr%2F%00n", want: 422, code: team.InvalidArgument},
		{name: "an unknown parameter", do: "GET /v1/teams/red?colour=1", want: 422, code: team.InvalidArgument, says: []string{"query.colour"}},

		{name: "edit", do: "PATCH /v1/teams/red", body: `{"max_teammates":4,"policies":{"approver":"leader"}}`, want: 200, says: []string{`"max_teammates":4`, `"approver":"leader"`, `"plan_mode":true`, "红 队"}},
		{name: "edit the isolation", do: "PATCH /v1/teams/red", body: `{"isolation":"shared"}`, want: 200, says: []string{`"isolation":"shared"`, `"max_teammates":4`}},
		{name: "edit it to nonsense", do: "PATCH /v1/teams/red", body: `{"isolation":"own"}`, want: 422, code: team.InvalidArgument, says: []string{"worktree"}},
		{name: "edit nothing", do: "PATCH /v1/teams/red", body: `{}`, want: 422, code: team.InvalidArgument, says: []string{"nothing"}},
		{name: "edit to nonsense", do: "PATCH /v1/teams/red", body: `{"policies":{"respawn":"maybe"}}`, want: 422, code: team.InvalidArgument},
		{name: "edit to null, which leaves it", do: "PATCH /v1/teams/red", body: `{"max_teammates":null}`, want: 422, code: team.InvalidArgument, says: []string{"nothing"}},
		{name: "edit none", do: "PATCH /v1/teams/green", body: `{"max_teammates":4}`, want: 404, code: team.NotFound},
		{name: "edit at a revision", do: "PATCH /v1/teams/red", body: `{"max_teammates":4}`, header: []string{"If-Match", `"1"`}, want: 422, code: team.InvalidArgument, says: []string{"header.If-Match"}},

		{name: "remove one at work", do: "DELETE /v1/teams/red", want: 409, code: team.Conflict},
		{name: "remove by force", do: "DELETE /v1/teams/red?force=true&timeout=0", want: 200, says: []string{`"team":"red"`, `"ended":[]`}},
		{name: "remove again", do: "DELETE /v1/teams/red", want: 404, code: team.NotFound},
		{name: "a bad truth", do: "DELETE /v1/teams/red?force=perhaps", want: 422, code: team.InvalidArgument, says: []string{"query.force: invalid boolean"}},
		{name: "a bad time", do: "DELETE /v1/teams/red?timeout=61", want: 422, code: team.InvalidArgument, says: []string{"query.timeout"}},
		{name: "a key where none is", do: "DELETE /v1/teams/red", header: []string{"Idempotency-Key", "k"}, want: 422, code: team.InvalidArgument, says: []string{"Idempotency-Key"}},

		{name: "no path", do: "GET /v1/nothing", want: 404, code: team.NotFound},
		{name: "a method that is not there", do: "PUT /v1/teams/t", body: `{}`, want: 405, code: team.InvalidArgument, says: []string{"PUT", "GET, HEAD, PATCH"}},

		{name: "roles of new teams", do: "GET /v1/roles", want: 200, says: []string{`"name":"coder"`, `"name":"tester"`}},
		{name: "roles", do: "GET /v1/teams/t/roles", want: 200, says: []string{`"name":"coder"`}},
		{name: "roles of none", do: "GET /v1/teams/green/roles", want: 404, code: team.NotFound},
		{name: "a role", do: "GET /v1/teams/t/roles/coder", want: 200, says: []string{`"instructions":"Work."`}},
		{name: "a role by its name elsewhere", do: "GET /v1/teams/t/roles/general-purpose", want: 200, says: []string{`"name":"coder"`}},
		{name: "no role", do: "GET /v1/teams/t/roles/poet", want: 404, code: team.NotFound, says: []string{"coder, tester"}},

		{name: "usage", do: "GET /v1/teams/t/usage", want: 200, says: []string{`"by":"agent"`, `"rows":[]`, `"model_calls":0`}},
		{name: "usage by task", do: "GET /v1/teams/t/usage?by=task", want: 200, says: []string{`"by":"task"`}},
		{name: "usage of no goal", do: "GET /v1/teams/t/usage?goal=9", want: 404, code: team.NotFound},
		{name: "usage by nonsense", do: "GET /v1/teams/t/usage?by=colour", want: 422, code: team.InvalidArgument, says: []string{"query.by"}},
		{name: "usage of none", do: "GET /v1/teams/green/usage", want: 404, code: team.NotFound},
		{name: "status without a leader process", do: "GET /v1/status", want: 503, code: team.Unavailable},
	})
}

func TestGoal(t *testing.T) {
	r := newRig(t)
	r.all(t, []ask{
		{name: "none yet", do: "GET /v1/teams/t/goal", want: 404, code: team.NotFound},
		{name: "of no team", do: "GET /v1/teams/green/goal", want: 404, code: team.NotFound},
		{name: "an empty one", do: "POST /v1/teams/t/goal", body: `{"goal":"  "}`, want: 422, code: team.InvalidArgument},
		{name: "none at all", do: "POST /v1/teams/t/goal", body: `{}`, want: 422, code: team.InvalidArgument, says: []string{"goal"}},
		{name: "for no team", do: "POST /v1/teams/green/goal", body: `{"goal":"x"}`, want: 404, code: team.NotFound},
		{name: "with a long key", do: "POST /v1/teams/t/goal", body: `{"goal":"x"}`, header: []string{"Idempotency-Key", strings.Repeat("k", 300)}, want: 422, code: team.InvalidArgument, says: []string{"1 to 256"}},
		{name: "set", do: "POST /v1/teams/t/goal", body: `{"goal":"数到十"}`, header: []string{"Idempotency-Key", "a"}, want: 201, says: []string{`"started":true`, `"existed":false`, `"goal":"数到十"`, `"goal_number":1`}},
		{name: "again", do: "POST /v1/teams/t/goal", body: `{"goal":"数到十"}`, header: []string{"Idempotency-Key", "a"}, want: 200, says: []string{`"started":true`, `"existed":true`, `"goal_number":1`}},
		{name: "another with its key", do: "POST /v1/teams/t/goal", body: `{"goal":"other"}`, header: []string{"Idempotency-Key", "a"}, want: 409, code: team.Conflict},
		{name: "while it is at work", do: "POST /v1/teams/t/goal", body: `{"goal":"and back"}`, want: 409, code: team.Conflict, says: []string{"at work", "数到十"}},
		{name: "as mail", do: "POST /v1/teams/t/goal", body: `{"goal":"and back","add":true}`, want: 202, says: []string{`"started":false`, `"goal":"数到十"`}},
		{name: "show", do: "GET /v1/teams/t/goal", want: 200, says: []string{`"status":"active"`, `"summary":""`, `"finished_at":null`, `"usage":{`}},
		{name: "usage of its goal", do: "GET /v1/teams/t/usage?by=role&split=alias&goal=-1", want: 200, says: []string{`"by":"role"`, `"rows":[]`}},
		{name: "wait a little", do: "GET /v1/teams/t/goal?wait=1", want: 200, says: []string{`"status":"active"`}},
		{name: "wait for long", do: "GET /v1/teams/t/goal?wait=31", want: 422, code: team.InvalidArgument, says: []string{"query.wait"}},
		{name: "wait for a word", do: "GET /v1/teams/t/goal?wait=ever", want: 422, code: team.InvalidArgument, says: []string{"query.wait"}},
		{name: "stop", do: "DELETE /v1/teams/t/goal?timeout=0", want: 200, says: []string{`"status":"stopped"`}},
		{name: "stop again", do: "DELETE /v1/teams/t/goal?timeout=0", want: 200, says: []string{`"status":"stopped"`}},
		{name: "stop none", do: "DELETE /v1/teams/green/goal", want: 404, code: team.NotFound},
		{name: "the result", do: "GET /v1/teams/t/goal?wait=30", want: 200, says: []string{`"status":"stopped"`, `"summary":"stopped by a person"`, "!null,\"elapsed"}},
		{name: "repeated after its end", do: "POST /v1/teams/t/goal", body: `{"goal":"数到十"}`, header: []string{"Idempotency-Key", "a"}, want: 200, says: []string{`"status":"stopped"`}},
		{name: "the next", do: "POST /v1/teams/t/goal", body: `{"goal":"again","workspace":"/ws"}`, want: 201, says: []string{`"goal_number":2`}},
		{name: "in a folder that is no absolute path", do: "POST /v1/teams/t/goal", body: `{"goal":"x","workspace":"ws"}`, want: 422, code: "invalid_argument", says: []string{"is not an absolute path"}},
		{name: "in its workspace", do: "GET /v1/teams/t", want: 200, says: []string{`"workspace":"/ws"`}},
	})
	// While nobody leads the team, it says why.
	_, err := r.roster.Put(t.Context(), team.Member{AgentID: team.Leader, Role: "leader", State: team.Lost, Incarnation: 1, LastError: "workspace /ws: there is no such folder"})
	if err != nil {
		t.Fatal(err)
	}
	r.do(t, ask{do: "GET /v1/teams/t/goal", want: 200, says: []string{`"lost":"workspace /ws: there is no such folder"`}})
	// Who waits gets the end as it comes.
	got := make(chan answer, 1)
	go func() { got <- r.do(t, ask{do: "GET /v1/teams/t/goal?wait=30", want: 200}) }()
	r.do(t, ask{do: "DELETE /v1/teams/t/goal?timeout=0", want: 200})
	if a := brokertest.Receive(t, "who waits is answered", got); a.str(t, "status") != string(team.TeamStopped) {
		t.Errorf("waited for %s", a.text)
	}
	r.do(t, ask{do: "GET /v1/teams/t/goal", want: 200, says: []string{"!lost"}})
}

// A deliverable is read from where it was stored, else from the workspace, and from nowhere
// outside that.
func TestDeliverables(t *testing.T) {
	r := newRig(t)
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"one"},{"title":"two"}]}`, want: 201})
	claimed := r.do(t, ask{do: "POST /v1/teams/t/tasks/1/claim", body: `{"as":"alice","seat":true}`, want: 200})
	file := filepath.Join(r.dir, claimed.str(t, "deliverable_path"))
	r.all(t, []ask{
		{name: "none", do: "GET /v1/teams/t/deliverables", want: 200, says: []string{`"deliverables":[]`}},
		{name: "not there", do: "GET /v1/teams/t/tasks/1/deliverable", want: 404, code: team.NotFound},
		{name: "of no task", do: "GET /v1/teams/t/tasks/9/deliverable", want: 404, code: team.NotFound},
		{name: "no such artifact", do: "GET /v1/teams/t/tasks/1/deliverable?path=dist/a.txt", want: 404, code: team.NotFound, says: []string{"no artifact dist/a.txt"}},
		{name: "of a bad id", do: "GET /v1/teams/t/tasks/..%2f..%2fetc%2fpasswd/deliverable", want: 422, code: team.InvalidArgument},
		{name: "list of no team", do: "GET /v1/teams/green/deliverables", want: 404, code: team.NotFound},
	})
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte("<script>42</script>"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.do(t, ask{name: "a draft", do: "GET /v1/teams/t/tasks/1/deliverable", want: 200, says: []string{"<script>42</script>"}})
	r.do(t, ask{do: "POST /v1/teams/t/tasks/1/complete", body: `{"as":"alice","summary":"done"}`, want: 200})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	a := r.do(t, ask{name: "stored", do: "GET /v1/teams/t/tasks/1/deliverable", want: 200, says: []string{"<script>42</script>"}})
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment; filename=T-001-one.md",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if tag := a.Header.Get("ETag"); !strings.HasPrefix(tag, `"sha256:`) {
		t.Errorf("its tag is %s", tag)
	}
	r.do(t, ask{name: "listed", do: "GET /v1/teams/t/deliverables", want: 200, says: []string{`"task":"T-001"`, `"digest":"sha256:`, "!T-002"}})
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"three"}]}`, want: 201})
	r.do(t, ask{do: "POST /v1/teams/t/tasks/3/claim", body: `{"as":"alice","seat":true}`, want: 200})
	err = os.WriteFile(filepath.Join(r.dir, "deliverables", "T-003-three.md"), []byte("3"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	r.all(t, []ask{
		{do: "POST /v1/teams/t/tasks/3/complete", body: `{"as":"alice","summary":"done"}`, want: 200},
		{name: "a page of them", do: "GET /v1/teams/t/deliverables?limit=1", want: 200, says: []string{"T-001", "!T-003", `"next":"1"`}},
		{name: "the next", do: "GET /v1/teams/t/deliverables?limit=1&page=1", want: 200, says: []string{"!T-001", "T-003", `!"next"`}},
		{name: "behind the end", do: "GET /v1/teams/t/deliverables?page=2147483647", want: 200, says: []string{`"deliverables":[]`}},
		{name: "a bad page", do: "GET /v1/teams/t/deliverables?page=x", want: 422, code: team.InvalidArgument, says: []string{"query.page"}},
	})
	r.do(t, ask{name: "its head", do: "HEAD /v1/teams/t/tasks/1/deliverable", want: 200})

	secret := filepath.Join(t.TempDir(), "secret")
	two := r.do(t, ask{do: "GET /v1/teams/t/tasks/T-002", want: 200}).str(t, "deliverable_path")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(r.dir, two)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(r.dir, ".agentteam"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.do(t, ask{name: "a link that leads out", do: "GET /v1/teams/t/tasks/T-002/deliverable", want: 403, code: team.PermissionDenied, says: []string{"!" + secret}})

	// Nor is what the cluster keeps, nor what is no file.
	for what, link := range map[string]func(name string) error{
		"a link to a token": func(name string) error {
			if err := os.WriteFile(filepath.Join(r.dir, ".agentteam", "api.token"), []byte("secret"), 0o600); err != nil {
				return err
			}
			return os.Symlink("../.agentteam/api.token", name)
		},
		"a folder":       func(name string) error { return os.Mkdir(name, 0o755) },
		"a named pipe":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"a device":       func(name string) error { return os.Symlink("/dev/zero", name) },
		"a link to none": func(name string) error { return os.Symlink("nowhere", name) },
	} {
		name := filepath.Join(r.dir, two)
		err := os.RemoveAll(name)
		if err == nil {
			err = link(name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if status := r.send(t, "GET", "/v1/teams/t/tasks/T-002/deliverable", ""); status != 403 && status != 404 && status != 422 {
			t.Errorf("%s: %d", what, status)
		}
	}
}

// The list has pages, and what a client has already is not sent again.
func TestPagesOfTeams(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "c", "z"} {
		r.do(t, ask{do: "POST /v1/teams", body: `{"id":"` + id + `"}`, want: 201})
	}
	r.all(t, []ask{
		{name: "the first", do: "GET /v1/teams?limit=2", want: 200, says: []string{`"id":"a"`, `"id":"c"`, `!"id":"t"`, `"next":"t"`}},
		{name: "the second", do: "GET /v1/teams?limit=2&page=t", want: 200, says: []string{`!"id":"c"`, `"id":"t"`, `"id":"z"`, "!next"}},
		{name: "behind the last", do: "GET /v1/teams?page=zz", want: 200, says: []string{`"teams":[]`}},
		{name: "one that is gone", do: "GET /v1/teams?limit=1&page=b", want: 200, says: []string{`"id":"c"`, `"next":"t"`}},
		{name: "none", do: "GET /v1/teams?limit=0", want: 422, code: team.InvalidArgument},
		{name: "no name", do: "GET /v1/teams?page=No!", want: 422, code: team.InvalidArgument},
	})
	for _, path := range []string{"/v1/teams", "/v1/teams/t", "/v1/teams/t/tasks"} {
		tag := r.do(t, ask{do: "GET " + path, want: 200}).Header.Get("ETag")
		if tag == "" {
			t.Errorf("%s has no ETag", path)
		}
		for _, given := range []string{tag, "*", `"x", ` + tag} {
			if got := r.do(t, ask{do: "GET " + path, header: []string{"If-None-Match", given}, want: 304}); got.text != "" || got.Header.Get("ETag") != tag {
				t.Errorf("%s with %s: %q, ETag %q", path, given, got.text, got.Header.Get("ETag"))
			}
		}
		r.do(t, ask{do: "GET " + path, header: []string{"If-None-Match", `"other"`}, want: 200})
		r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201})
		r.do(t, ask{do: "PATCH /v1/teams/t", body: `{"description":"` + path + `"}`, want: 200})
		r.do(t, ask{name: "after a change", do: "GET " + path, header: []string{"If-None-Match", tag}, want: 200})
	}
	tag := r.do(t, ask{do: "GET /v1/teams/t/tasks/1", want: 200}).Header.Get("ETag")
	r.do(t, ask{do: "GET /v1/teams/t/tasks/1", header: []string{"If-None-Match", tag}, want: 304})
	r.do(t, ask{do: "PATCH /v1/teams/t/tasks/1", body: `{"title":"y"}`, header: []string{"If-Match", tag}, want: 200})
	r.do(t, ask{do: "GET /v1/teams/t/tasks/1", header: []string{"If-None-Match", tag}, want: 200, says: []string{`"title":"y"`}})
}
