package v1_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "agentteam/pkg/api/v1"
	"agentteam/pkg/team"
)

func TestTasks(t *testing.T) {
	r := newRig(t)
	ann := r.join(t, "coder")
	long := strings.Repeat("长", team.MaxTextBytes)
	plan := `{"tasks":[{"name":"tests","title":"Run all tests","priority":"high"},{"title":"标签 🏷","depends_on":["tests"],"role":"general-purpose","description":"d","check":"true","metadata":{"n":1}}]}`
	r.all(t, []ask{
		{name: "none", do: "GET /v1/teams/t/tasks", want: 200, says: []string{`"tasks":[]`, `"total":0`}},
		{name: "none in a graph", do: "GET /v1/teams/t/graph", want: 200, says: []string{`"nodes":[]`, `"edges":[]`}},
		{name: "add", do: "POST /v1/teams/t/tasks", body: plan, header: []string{"Idempotency-Key", "计划 1"}, want: 201, says: []string{`"T-001"`, `"T-002"`, `"dependencies":["T-001"]`, `"existed":false`, `"priority":1`, `"role":"coder"`, `"metadata":{"n":1}`}},
		{name: "add again", do: "POST /v1/teams/t/tasks", body: plan, header: []string{"Idempotency-Key", "计划 1"}, want: 200, says: []string{`"T-001"`, `"existed":true`, "!T-003"}},
		{name: "add to one of the board", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"third","depends_on":["T-001","t-2"],"priority":2}]}`, want: 201, says: []string{`"T-003"`, `"dependencies":["T-001","T-002"]`, `"is_blocked":true`}},
		{name: "add for a member", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"fourth","assignee":"` + string(ann.AgentID) + `"}]}`, want: 201, says: []string{`"assignee":"` + string(ann.AgentID) + `"`, `"status":"in_progress"`}},
		{name: "add for a seat", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"fifth","assignee":"zoe","seat":true}]}`, want: 201, says: []string{`"assignee":"zoe"`}},
		{name: "add for a name that nobody has", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"sixth","assignee":"zeo"},{"title":"x","assignee":"new","seat":true}]}`, want: 404, code: team.NotFound, says: []string{"zeo"}},
		{name: "no tasks", do: "POST /v1/teams/t/tasks", body: `{"tasks":[]}`, want: 422, code: team.InvalidArgument, says: []string{"no tasks"}},
		{name: "a null", do: "POST /v1/teams/t/tasks", body: `{"tasks":null}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks"}},
		{name: "no title", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"},{}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[1]", "title"}},
		{name: "an empty title", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"},{"title":" "}]}`, want: 422, code: team.InvalidArgument, says: []string{"task 2"}},
		{name: "a title too long", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"` + strings.Repeat("x", 513) + `"}]}`, want: 422, code: team.InvalidArgument, says: []string{"512"}},
		{name: "a description too long", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","description":"` + long + `"}]}`, want: 422, code: team.InvalidArgument, says: []string{"65536"}},
		{name: "an unknown field", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","depends":["T-001"]}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].depends: unexpected property"}},
		{name: "a wrong priority", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","priority":"urgent"}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].priority"}},
		{name: "a wrong number", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","priority":3}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].priority"}},
		{name: "metadata that is no object", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","metadata":[1]}]}`, want: 422, code: team.InvalidArgument, says: []string{"metadata"}},
		{name: "an unknown name", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","depends_on":["nobody"]}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].dependencies[0]"}},
		{name: "a name twice", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"name":"a","title":"x"},{"name":"a","title":"y"}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[1].name"}},
		{name: "a name like an id", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"name":"T-7","title":"x"}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].name"}},
		{name: "a circle", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"name":"a","title":"x","depends_on":["b"]},{"name":"b","title":"y","depends_on":["a"]}]}`, want: 422, code: team.InvalidArgument, says: []string{"cycle"}},
		{name: "on no task", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","depends_on":["T-999"]}]}`, want: 404, code: team.NotFound, says: []string{"T-999"}},
		{name: "for no role", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","role":"poet"}]}`, want: 404, code: team.NotFound, says: []string{"poet"}},
		{name: "for a bad name", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","assignee":"A B"}]}`, want: 422, code: team.InvalidArgument, says: []string{"body.tasks[0].assignee"}},
		{name: "a key too long", do: "POST /v1/teams/t/tasks", body: plan, header: []string{"Idempotency-Key", strings.Repeat("k", 257)}, want: 422, code: team.InvalidArgument, says: []string{"256"}},
		{name: "to no team", do: "POST /v1/teams/green/tasks", body: plan, want: 404, code: team.NotFound},

		{name: "all", do: "GET /v1/teams/t/tasks", want: 200, says: []string{`"total":5`, `"by_status":{"in_progress":2,"pending":3}`, `"why":"`}},
		{name: "a page", do: "GET /v1/teams/t/tasks?limit=2", want: 200, says: []string{`"T-002"`, `!"id":"T-003"`, `"next":"`}},
		{name: "blocked", do: "GET /v1/teams/t/tasks?status=blocked", want: 200, says: []string{`"total":2`}},
		{name: "merging", do: "GET /v1/teams/t/tasks?status=merging", want: 200, says: []string{`"tasks":[]`, `"total":0`}},
		{name: "merging or not", do: "GET /v1/teams/t/tasks?status=merging,in_progress", want: 200, says: []string{`"total":2`}},
		{name: "merging with another", do: "GET /v1/teams/t/tasks?status=merging,failed", want: 422, code: team.InvalidArgument, says: []string{"in_progress"}},
		{name: "claimable", do: "GET /v1/teams/t/tasks?claimable=true", want: 200, says: []string{`"total":1`, `"T-001"`}},
		{name: "of a member", do: "GET /v1/teams/t/tasks?assignee=zoe&status=in_progress,completed", want: 200, says: []string{`"total":1`, `"T-005"`}},
		{name: "by a text", do: "GET /v1/teams/t/tasks?text=%E6%A0%87%E7%AD%BE", want: 200, says: []string{`"total":1`, `"T-002"`}},
		{name: "by ids", do: "GET /v1/teams/t/tasks?ids=T-001,3", want: 200, says: []string{`"total":2`}},
		{name: "for a role", do: "GET /v1/teams/t/tasks?role=coder", want: 200, says: []string{`"total":1`}},
		{name: "a wrong status", do: "GET /v1/teams/t/tasks?status=done", want: 422, code: team.InvalidArgument, says: []string{"done", "completed"}},
		{name: "two that exclude each other", do: "GET /v1/teams/t/tasks?status=blocked,failed", want: 422, code: team.InvalidArgument},
		{name: "a wrong id", do: "GET /v1/teams/t/tasks?ids=T-x", want: 422, code: team.InvalidArgument, says: []string{"T-x"}},
		{name: "a wrong member", do: "GET /v1/teams/t/tasks?assignee=A*", want: 422, code: team.InvalidArgument},
		{name: "a wrong page", do: "GET /v1/teams/t/tasks?page=rubbish", want: 422, code: team.InvalidArgument, says: []string{"rubbish"}},
		{name: "a page of none", do: "GET /v1/teams/t/tasks?limit=0", want: 422, code: team.InvalidArgument, says: []string{"query.limit"}},
		{name: "a page too long", do: "GET /v1/teams/t/tasks?limit=1001", want: 422, code: team.InvalidArgument, says: []string{"query.limit"}},
		{name: "a page of words", do: "GET /v1/teams/t/tasks?limit=ten", want: 422, code: team.InvalidArgument, says: []string{"query.limit: invalid integer"}},
		{name: "of no team", do: "GET /v1/teams/green/tasks", want: 404, code: team.NotFound},

		{name: "one", do: "GET /v1/teams/t/tasks/T-002", want: 200, says: []string{`"waiting_for":["T-001"]`, `"why":"`}},
		{name: "one by number", do: "GET /v1/teams/t/tasks/2", want: 200, says: []string{`"id":"T-002"`}},
		{name: "none of that id", do: "GET /v1/teams/t/tasks/T-999", want: 404, code: team.NotFound},
		{name: "no id", do: "GET /v1/teams/t/tasks/x", want: 422, code: team.InvalidArgument, says: []string{"T-001"}},
		{name: "its history", do: "GET /v1/teams/t/tasks/T-002/history", want: 200, says: []string{`"whole":true`, `"to":"pending"`}},
		{name: "no history", do: "GET /v1/teams/t/tasks/T-999/history", want: 404, code: team.NotFound},
		{name: "a graph", do: "GET /v1/teams/t/graph", want: 200, says: []string{`{"from":"T-001","to":"T-002"}`}},
		{name: "no graph", do: "GET /v1/teams/green/graph", want: 404, code: team.NotFound},
	})
	next := r.do(t, ask{do: "GET /v1/teams/t/tasks?limit=4", want: 200}).str(t, "next")
	r.do(t, ask{name: "the page behind", do: "GET /v1/teams/t/tasks?limit=4&page=" + next, want: 200, says: []string{`"id":"T-005"`, `!"id":"T-004"`, `!"next"`}})
}

func TestChanges(t *testing.T) {
	r := newRig(t)
	ann := r.join(t, "coder")
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[` + strings.Repeat(`{"title":"x"},`, 7) + `{"title":"checked","check":"test -e ok || { echo 少了; false; }"}]}`, want: 201})
	task := func(n int) string { return fmt.Sprintf("/v1/teams/t/tasks/T-%03d", n) }
	read := r.do(t, ask{do: "GET " + task(1), want: 200}).Header.Get("ETag")
	edited := r.do(t, ask{name: "edit at its revision", do: "PATCH " + task(1), body: `{"title":"new","description":"d","priority":"critical","add_dependencies":["T-003"],"metadata":{"a":1}}`, header: []string{"If-Match", read}, want: 200,
		says: []string{`"title":"new"`, `"priority":2`, `"dependencies":["T-003"]`}})
	if tag := edited.Header.Get("ETag"); tag == read || tag == "" {
		t.Errorf("the tag was %s and is %s", read, tag)
	}
	match := func(tag string) []string { return []string{"If-Match", tag} }
	r.all(t, []ask{
		{name: "edit at an old one", do: "PATCH " + task(1), body: `{"title":"lost"}`, header: match(read), want: 412, code: team.Conflict, says: []string{"revision"}},
		{name: "edit at an old one, of dependencies", do: "PATCH " + task(1), body: `{"remove_dependencies":["T-003"]}`, header: match(read), want: 412, code: team.Conflict},
		{name: "cancel at an old one", do: "POST " + task(1) + "/cancel", header: match(read), want: 412, code: team.Conflict},
		{name: "claim at an old one", do: "POST " + task(1) + "/claim", body: `{"as":"bob","seat":true}`, header: match(read), want: 412, code: team.Conflict},
		{name: "it stands", do: "GET " + task(1), want: 200, says: []string{`"title":"new"`, `"status":"pending"`}},
		{name: "edit at any", do: "PATCH " + task(1), body: `{"remove_dependencies":["3"]}`, header: match("*"), want: 200, says: []string{`"dependencies":[]`}},
		{name: "a weak tag", do: "PATCH " + task(1), body: `{"title":"x"}`, header: match(`W/"5"`), want: 422, code: team.InvalidArgument, says: []string{"header.If-Match"}},
		{name: "no tag", do: "PATCH " + task(1), body: `{"title":"x"}`, header: match(`5`), want: 422, code: team.InvalidArgument},
		{name: "two tags", do: "PATCH " + task(1), body: `{"title":"x"}`, header: match(`"5", "6"`), want: 422, code: team.InvalidArgument},
		{name: "edit nothing", do: "PATCH " + task(1), body: `{}`, want: 422, code: team.InvalidArgument, says: []string{"nothing"}},
		{name: "edit to a circle", do: "PATCH " + task(1), body: `{"add_dependencies":["T-001"]}`, want: 422, code: team.InvalidArgument},
		{name: "edit to an unknown one", do: "PATCH " + task(1), body: `{"add_dependencies":["T-099"]}`, want: 404, code: team.NotFound},
		{name: "edit a bad id", do: "PATCH " + task(1), body: `{"add_dependencies":["x"]}`, want: 422, code: team.InvalidArgument},
		{name: "edit an unknown field", do: "PATCH " + task(1), body: `{"status":"completed"}`, want: 422, code: team.InvalidArgument, says: []string{"body.status"}},
		{name: "edit no task", do: "PATCH " + task(99), body: `{"title":"x"}`, want: 404, code: team.NotFound},
		{name: "with a key", do: "PATCH " + task(1), body: `{"title":"x"}`, header: []string{"Idempotency-Key", "k"}, want: 422, code: team.InvalidArgument, says: []string{"header.Idempotency-Key"}},

		{name: "claim for a name that nobody has", do: "POST " + task(1) + "/claim", body: `{"as":"bob"}`, want: 404, code: team.NotFound, says: []string{"bob"}},
		{name: "claim", do: "POST " + task(1) + "/claim", body: `{"as":"bob","seat":true}`, want: 200, says: []string{`"assignee":"bob"`, `"status":"in_progress"`}},
		{name: "claim what another has", do: "POST " + task(1) + "/claim", body: `{"as":"eve","seat":true}`, want: 409, code: team.Conflict, says: []string{"bob"}},
		{name: "claim a second", do: "POST " + task(2) + "/claim", body: `{"as":"bob"}`, want: 409, code: team.Busy},
		{name: "claim for nobody", do: "POST " + task(2) + "/claim", body: `{"as":""}`, want: 422, code: team.InvalidArgument},
		{name: "claim without a name", do: "POST " + task(2) + "/claim", body: `{}`, want: 422, code: team.InvalidArgument, says: []string{"as"}},
		{name: "claim without a body", do: "POST " + task(2) + "/claim", want: 400, code: team.InvalidArgument},
		{name: "claim for an agent", do: "POST " + task(2) + "/claim", body: `{"as":"` + string(ann.AgentID) + `"}`, want: 200, says: []string{`"assignee":"` + string(ann.AgentID) + `"`}},
		{name: "edit in progress", do: "PATCH " + task(1), body: `{"title":"x"}`, want: 409, code: team.Conflict},
		{name: "metadata in progress", do: "PATCH " + task(1), body: `{"metadata":{"b":2},"as":"bob"}`, want: 200, says: []string{`"b":2`}},
		{name: "edit for an agent", do: "PATCH " + task(2), body: `{"metadata":{},"as":"` + string(ann.AgentID) + `"}`, want: 403, code: team.PermissionDenied},

		{name: "complete for nobody", do: "POST " + task(1) + "/complete", body: `{"as":"","summary":"x"}`, want: 422, code: team.InvalidArgument},
		{name: "complete without a summary", do: "POST " + task(1) + "/complete", body: `{"as":"bob","summary":" "}`, want: 422, code: team.InvalidArgument, says: []string{"summary"}},
		{name: "complete by a stranger", do: "POST " + task(1) + "/complete", body: `{"as":"eve","summary":"x"}`, want: 404, code: team.NotFound},
		{name: "complete for an agent", do: "POST " + task(2) + "/complete", body: `{"as":"` + string(ann.AgentID) + `","summary":"x"}`, want: 403, code: team.PermissionDenied},
		{name: "complete", do: "POST " + task(1) + "/complete", body: `{"as":"bob","summary":"做好了"}`, want: 200, says: []string{`"status":"completed"`, "做好了"}},
		{name: "complete again", do: "POST " + task(1) + "/complete", body: `{"as":"bob","summary":"x"}`, want: 409, code: team.InvalidState},

		{name: "assign to a name that nobody has", do: "POST " + task(3) + "/assign", body: `{"to":"carol"}`, want: 404, code: team.NotFound, says: []string{"carol"}},
		{name: "assign to a seat", do: "POST " + task(3) + "/assign", body: `{"to":"carol","seat":true}`, want: 200, says: []string{`"seat_created":true`, `"assignee":"carol"`}},
		{name: "assign to one who is busy", do: "POST " + task(4) + "/assign", body: `{"to":"carol"}`, want: 200, says: []string{`"status":"pending"`, `"reserved_for":"carol"`, `"seat_created":false`}},
		{name: "assign from a seat", do: "POST " + task(3) + "/assign", body: `{"to":"` + string(ann.AgentID) + `"}`, want: 200, says: []string{`"assignee":"` + string(ann.AgentID) + `"`}},
		{name: "assign to a bad name", do: "POST " + task(3) + "/assign", body: `{"to":"*"}`, want: 422, code: team.InvalidArgument},
		{name: "assign none", do: "POST " + task(99) + "/assign", body: `{"to":"carol"}`, want: 404, code: team.NotFound},
		{name: "assign what is over", do: "POST " + task(1) + "/assign", body: `{"to":"carol"}`, want: 409, code: team.Conflict},

		{name: "release a reservation", do: "POST " + task(4) + "/release", want: 200, says: []string{`!"reserved_for"`}},
		{name: "release by a stranger", do: "POST " + task(3) + "/release", body: `{"as":"carol"}`, want: 409, code: team.Conflict},
		{name: "release", do: "POST " + task(3) + "/release", body: `{"reason":"等一下"}`, want: 200, says: []string{`"status":"pending"`, "等一下"}},
		{name: "release what is over", do: "POST " + task(1) + "/release", want: 409, code: team.InvalidState},
		{name: "claim it anew", do: "POST " + task(3) + "/claim", body: `{"as":"fay","seat":true}`, want: 200},
		{name: "fail with a long reason", do: "POST " + task(3) + "/fail", body: `{"reason":"` + strings.Repeat("x", team.MaxTextBytes+1) + `"}`, want: 422, code: team.InvalidArgument},
		{name: "fail", do: "POST " + task(3) + "/fail", body: `{"reason":"cannot"}`, want: 200, says: []string{`"status":"failed"`}},
		{name: "fail again", do: "POST " + task(3) + "/fail", body: `{"reason":"cannot"}`, want: 409, code: team.InvalidState},
		{name: "fail with a list", do: "POST " + task(4) + "/fail", body: `["x"]`, want: 422, code: team.InvalidArgument},
		{name: "cancel", do: "POST " + task(4) + "/cancel", body: `{"reason":"not needed"}`, want: 200, says: []string{`"status":"cancelled"`}},
		{name: "cancel by a seat", do: "POST " + task(5) + "/cancel", body: `{"as":"carol"}`, want: 403, code: team.PermissionDenied},
		{name: "cancel none", do: "POST " + task(99) + "/cancel", want: 404, code: team.NotFound},
		{name: "no such verb", do: "POST " + task(5) + "/paint", want: 404, code: team.NotFound},

		{name: "claim one with a check", do: "POST " + task(8) + "/claim", body: `{"as":"bob"}`, want: 200},
		{name: "a check that fails", do: "POST " + task(8) + "/complete", body: `{"as":"bob","summary":"x"}`, want: 409, code: team.InvalidState, says: []string{"少了", "attempt 1 of 3"}},
	})
}

// Of many who change a task that all have read at one revision, one does.
func TestLostRace(t *testing.T) {
	r := newRig(t)
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201})
	tag := r.do(t, ask{do: "GET /v1/teams/t/tasks/1", want: 200}).Header.Get("ETag")
	const writers = 8
	var wg sync.WaitGroup
	status := make([]int, writers)
	for i := range writers {
		wg.Go(func() {
			status[i] = r.send(t, "PATCH", "/v1/teams/t/tasks/1", fmt.Sprintf(`{"title":"by %d"}`, i), "If-Match", tag)
		})
	}
	wg.Wait()
	won := 0
	for _, s := range status {
		switch s {
		case 200:
			won++
		case 412:
		default:
			t.Errorf("a writer got %d", s)
		}
	}
	if won != 1 {
		t.Errorf("%d writers of %v have won", won, status)
	}
}

// A repetition gives no task to anybody again, whatever it says: a person may have put it back since.
func TestTasksOnce(t *testing.T) {
	r := newRig(t)
	key := []string{"Idempotency-Key", "k"}
	again := func(name, assignee string) ask {
		return ask{name: name, do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"kept","assignee":"` + assignee + `","seat":true}]}`, header: key, want: 200, says: []string{`"existed":true`, `"status":"pending"`}}
	}
	r.all(t, []ask{
		{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"kept","assignee":"yan","seat":true}]}`, header: key, want: 201, says: []string{`"assignee":"yan"`}},
		{name: "it is put back", do: "POST /v1/teams/t/tasks/1/release", body: `{}`, want: 200, says: []string{`"status":"pending"`}},
		again("again", "yan"),
		again("for somebody else", "zoe"),
		{name: "for a name that is not there", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"kept","assignee":"xeo"}]}`, header: key, want: 200, says: []string{`"existed":true`, `"status":"pending"`}},
		{name: "no seat was made", do: "GET /v1/teams/t/members", want: 200, says: []string{"!zoe"}},
	})
}

func TestPageOf(t *testing.T) {
	all, wanted := []int{1, 2, 3, 4, 5, 6}, map[int]bool{1: true, 2: true, 4: true, 6: true}
	var got []int
	for page, n := "0", 0; page != "" && n < 9; n++ {
		from, _ := strconv.Atoi(page)
		part, next := v1.PageOf(all, from, 1, func(n int) bool { return wanted[n] })
		for _, n := range part { // who reads it decides on it
			got = append(got, n)
			delete(wanted, n)
		}
		page = next
	}
	if !slices.Equal(got, []int{1, 2, 4, 6}) {
		t.Errorf("the pages hold %v", got)
	}
}
