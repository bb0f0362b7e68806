package teamtool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestCreateTask(t *testing.T) {
	d := newDesk(t)
	var v team.TaskView
	d.ok(&v, "coder-1", "create_task", `{"title":"Count 行数 🧮","description":"all files","priority":2,"role":"tester"}`)
	if v.ID != "T-001" || v.Status != team.Pending || v.Priority != 2 || v.CreatedBy != "coder-1" || v.DeliverablePath != "deliverables/T-001-count-行数.md" || v.IsBlocked || v.Revision == 0 {
		t.Errorf("created %+v", v)
	}
	d.ok(&v, team.Leader, "TaskCreate", `{"title":"Report","dependencies":["1","T-1"]}`)
	if v.ID != "T-002" || !v.IsBlocked || !slices.Equal(v.WaitingFor, []team.TaskID{"T-001"}) || !slices.Equal(v.Dependencies, []team.TaskID{"T-001"}) {
		t.Errorf("created %+v", v)
	}
	d.ok(&v, "coder-1", "get_task", `{"task_id":"1"}`)
	if !slices.Equal(v.Blocks, []team.TaskID{"T-002"}) {
		t.Errorf("T-001 blocks %v", v.Blocks)
	}
	for _, bad := range []string{
		`{}`, `{"title":""}`, `{"title":"  "}`, `{"title":"two\nlines"}`, `{"title":"x","priority":3}`, `{"title":"x","priority":"urgent"}`,
		`{"title":"x","dependencies":["one"]}`, `{"title":"x","owner":"me"}`,
		fmt.Sprintf(`{"title":"x","description":%q}`, strings.Repeat("長", 22<<10)),
	} {
		d.refused(team.InvalidArgument, team.Leader, "create_task", bad)
	}
	d.refused(team.NotFound, team.Leader, "create_task", `{"title":"x","dependencies":["T-099"]}`)
	d.refused(team.NotFound, team.Leader, "create_task", `{"title":"x","role":"unknown"}`)
	d.ok(nil, team.Leader, "create_task", fmt.Sprintf(`{"title":"long","description":%q}`, strings.Repeat("x", 64<<10)))
	if n := len(d.task("T-003").Description); n != 64<<10 { // and a call that was refused took no number
		t.Errorf("the description has %d bytes", n)
	}
}

// The model is told what follows from its call, not its own words again.
func TestBriefResults(t *testing.T) {
	d := newDesk(t)
	got := d.call(team.Leader, "create_task", `{"title":"Count","description":"all of them"}`).Content
	if want := `{"id":"T-001","status":"pending"}`; got != want {
		t.Errorf("create_task answered %s, want %s", got, want)
	}
	got = d.call(team.Leader, "create_task", `{"title":"Report","dependencies":["1"]}`).Content
	if !strings.Contains(got, `"waiting_for":["T-001"]`) {
		t.Errorf("create_task answered %s", got)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	got = d.call("coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"a long story"}`).Content
	if !strings.Contains(got, `"status":"completed"`) || strings.Contains(got, "story") || strings.Contains(got, "null") {
		t.Errorf("update_task answered %s", got)
	}
}

func TestWhoMayCreate(t *testing.T) {
	d := newDesk(t)
	d.refused(team.PermissionDenied, "coder-1", "create_task", `{"title":"x","assignee":"coder-2"}`)
	d.refused(team.PermissionDenied, "coder-1", "create_task", `{"title":"x","check":"true"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"x","check":"true"}`)
	if c := d.task("T-001").Check; c != "true" {
		t.Errorf("check %q", c)
	}
	d.record.Policies.Create = "leader"
	d.refused(team.PermissionDenied, "coder-1", "create_task", `{"title":"x"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"y"}`)
	if err := d.board.Close(t.Context()); err == nil {
		t.Fatal("closed a board with open tasks")
	}
	for _, id := range []string{"1", "2"} {
		d.ok(nil, team.Leader, "update_task", `{"task_id":"`+id+`","status":"cancelled"}`)
	}
	if err := d.board.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.refused(team.InvalidState, team.Leader, "create_task", `{"title":"too late"}`)
}

// A new task is reserved for its assignee, whatever its role, from the moment it is there;
// what an agent creates for itself it takes at once, if it can.
func TestCreateAndAssign(t *testing.T) {
	d := newDesk(t)
	var v team.TaskView
	d.pulse.Hear(team.Heartbeat{AgentID: "tester-1", Incarnation: 1, N: 1, State: team.Running, Task: "T-009"})
	res := d.call(team.Leader, "create_task", `{"title":"x","assignee":"tester-1","role":"coder"}`)
	if want := `{"id":"T-001","status":"pending","reserved_for":"tester-1","why":"reserved for tester-1, which is busy with T-009"}`; res.Content != want {
		t.Errorf("created %s, want %s", res.Content, want)
	}
	d.refused(team.Conflict, "coder-1", "claim_task", `{"task_id":"1"}`)
	if got := d.call("coder-1", "list_tasks", `{"claimable":true}`).Content; got != "(no tasks)" {
		t.Errorf("coder-1 could claim %s", got)
	}
	if got, want := d.call("tester-1", "list_tasks", `{"claimable":true}`).Content, "T-001 pending, reserved for tester-1: x"; got != want {
		t.Errorf("tester-1 could claim %s, want %s", got, want)
	}
	d.ok(nil, "tester-1", "claim_task", `{"task_id":"1"}`)
	d.ok(&v, "coder-1", "create_task", `{"title":"z","assignee":"coder-1"}`)
	if v.Assignee != "coder-1" {
		t.Errorf("created %+v", v)
	}
	d.ok(&v, "coder-1", "create_task", `{"title":"later","assignee":"coder-1"}`)
	if v.Status != team.Pending || v.ReservedFor != "coder-1" {
		t.Errorf("created by one that is busy: %+v", v)
	}
	d.refused(team.NotFound, team.Leader, "create_task", `{"title":"y","assignee":"nobody-1"}`)
	d.refused(team.Unavailable, team.Leader, "create_task", `{"title":"y","assignee":"gone-1"}`)
	d.refused(team.PermissionDenied, "coder-1", "create_tasks", `{"tasks":[{"key":"a","title":"A","assignee":"coder-2"}]}`)
	d.refused(team.NotFound, team.Leader, "create_tasks", `{"tasks":[{"key":"a","title":"A"},{"key":"b","title":"B","assignee":"nobody-1"}]}`)
	res = d.call(team.Leader, "create_tasks", `{"tasks":[{"key":"a","title":"A"},{"key":"b","title":"B","assignee":"coder-2","dependencies":["a"]}]}`)
	if want := `[{"key":"a","id":"T-004"},{"key":"b","id":"T-005","reserved_for":"coder-2","dependencies":["T-004"]}]`; res.Content != want {
		t.Errorf("planned %s, want %s", res.Content, want)
	}
}

func TestGetTask(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"x"}`)
	for _, id := range []string{"1", "#1", "T-1", "T-001", "t-1", " 1 "} {
		var v team.TaskView
		d.ok(&v, "coder-1", "TaskGet", fmt.Sprintf(`{"task_id":%q}`, id))
		if v.ID != "T-001" {
			t.Errorf("%q is %s", id, v.ID)
		}
	}
	d.refused(team.NotFound, "coder-1", "get_task", `{"task_id":"T-002"}`)
	for _, id := range []string{"", "one", "T-", "0", "-1", "T-001.md"} {
		d.refused(team.InvalidArgument, "coder-1", "get_task", fmt.Sprintf(`{"task_id":%q}`, id))
	}
}

func TestListTasks(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"done"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"held"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"free"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"blocked","dependencies":["3"]}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"for testers","role":"tester"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"cancelled"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.ok(nil, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"ok"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"2"}`)
	d.ok(nil, team.Leader, "update_task", `{"task_id":"6","status":"deleted"}`)
	for arguments, want := range map[string]string{
		`{}`:                     "[T-001 T-002 T-003 T-004 T-005]",
		``:                       "[T-001 T-002 T-003 T-004 T-005]",
		`{"status":"pending"}`:   "[T-003 T-004 T-005]",
		`{"status":"completed"}`: "[T-001]",
		`{"status":"cancelled"}`: "[T-006]",
		`{"status":"deleted"}`:   "[T-006]",
		`{"assignee":"coder-1"}`: "[T-001 T-002]",
		`{"assignee":"coder-1","status":"in_progress"}`: "[T-002]",
		`{"assignee":"nobody"}`:                         "[]",
		`{"claimable":true}`:                            "[T-003]",
		`{"claimable":true,"status":"completed"}`:       "[]",
	} {
		var list team.Page
		d.ok(&list, "coder-2", "list_tasks", arguments)
		ids := make([]team.TaskID, len(list.Tasks))
		for i, v := range list.Tasks {
			ids[i] = v.ID
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("list_tasks %s = %s, want %s", arguments, got, want)
		}
	}
	var list team.Page
	if d.ok(&list, "tester-1", "TaskList", `{"claimable":true}`); len(list.Tasks) != 2 {
		t.Errorf("a tester could claim %v", list)
	}
	const lines = `T-001 completed (coder-1): done - ok
T-002 in_progress (coder-1): held
T-003 pending: free
T-004 pending, waits for T-003: blocked
T-005 pending, for a tester: for testers`
	if res := d.call("coder-2", "list_tasks", `{}`); res.Content != lines {
		t.Errorf("the list is\n%s\nwant\n%s", res.Content, lines)
	}
	if res := d.call("coder-2", "list_tasks", `{"assignee":"nobody"}`); res.Content != "(no tasks)" {
		t.Errorf("an empty list is %q", res.Content)
	}
	d.refused(team.InvalidArgument, "coder-2", "list_tasks", `{"status":"done"}`)
}

// The leader's list says why nobody takes a task that is free.
func TestListTasksSaysWhy(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"for testers","role":"tester"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"for coders","role":"coder"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"later","dependencies":["1"]}`)
	d.record.Roles["writer"] = team.Role{Name: "writer"}
	d.ok(nil, team.Leader, "create_task", `{"title":"for nobody","role":"writer"}`)
	d.pulse.Hear(team.Heartbeat{AgentID: "tester-1", Incarnation: 1, N: 1, State: team.Running, Task: "T-009"})
	d.pulse.Hear(team.Heartbeat{AgentID: "coder-1", Incarnation: 1, N: 1, State: team.Idle})
	const lines = `T-001 pending, tester-1: busy with T-009, for a tester: for testers
T-002 pending, for a coder: for coders
T-003 pending, waits for T-001: later
T-004 pending, nobody has the role writer, for a writer: for nobody`
	if res := d.call(team.Leader, "list_tasks", `{}`); res.Content != lines {
		t.Errorf("the list is\n%s\nwant\n%s", res.Content, lines)
	}
}

func TestClaimTask(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"b","dependencies":["1"]}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"c","role":"tester"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"d"}`)
	d.refused(team.Blocked, "coder-1", "claim_task", `{"task_id":"2"}`)
	d.refused(team.PermissionDenied, "coder-1", "claim_task", `{"task_id":"3"}`)
	d.refused(team.NotFound, "coder-1", "claim_task", `{"task_id":"9"}`)
	d.refused(team.InvalidArgument, "coder-1", "claim_task", `{}`)
	var v team.TaskView
	d.ok(&v, "coder-1", "claim_task", `{"task_id":"#1"}`)
	if v.Status != team.InProgress || v.Assignee != "coder-1" || v.Epoch != 1 {
		t.Errorf("claimed %+v", v)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`) // again is no error
	d.refused(team.Busy, "coder-1", "claim_task", `{"task_id":"4"}`)
	d.refused(team.Conflict, "coder-2", "claim_task", `{"task_id":"1"}`)
	d.ok(nil, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"ok"}`)
	d.refused(team.Conflict, "coder-2", "claim_task", `{"task_id":"1"}`)        // the race for it was lost
	d.ok(&v, "coder-2", "TaskUpdate", `{"task_id":"2","status":"in_progress"}`) // unblocked now
	if v.Assignee != "coder-2" {
		t.Errorf("claimed %+v", v)
	}
}

// Who takes a task by a call has no block of it: the call's result has how it came back, and where its work is,
// which the claim has removed from the record.
func TestClaimReturned(t *testing.T) {
	d := newDesk(t)
	work := team.Try{By: "coder-1", Epoch: 1, Commit: strings.Repeat("1", 40), Base: strings.Repeat("2", 40)}
	for i, call := range []struct{ tool, arguments string }{
		{"claim_task", `{"task_id":"1"}`}, {"update_task", `{"task_id":"2","status":"in_progress"}`}, {"TaskUpdate", `{"task_id":"3","owner":"coder-2"}`},
	} {
		id := team.TaskID(fmt.Sprintf("T-%03d", i+1))
		d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
		d.ok(nil, "coder-1", "claim_task", `{"task_id":"`+string(id)+`"}`)
		if _, err := d.hands["coder-1"].GiveBack(t.Context(), id, team.GiveBack{Freed: team.Freed{Reason: "it conflicts:\n+both differences", Work: &work}, Merge: true}); err != nil {
			t.Fatal(err)
		}
		d.ok(nil, "tester-1", "claim_task", `{"task_id":"`+string(id)+`"}`)
		d.ok(nil, "tester-1", "release_task", `{"task_id":"`+string(id)+`","reason":"no tools"}`)
		got := d.call("coder-2", call.tool, call.arguments)
		if want := `"earlier":[{"by":"tester-1","reason":"no tools"},{"by":"coder-1","reason":"it conflicts:\n+both differences","commit":"` +
			work.Commit + `","branch":"returned/` + string(id) + `/1"}]`; got.IsError || !strings.Contains(got.Content, want) {
			t.Errorf("%s answered %s, want %s in it", call.tool, got.Content, want)
		}
		if got := d.call("coder-2", "get_task", `{"task_id":"`+string(id)+`"}`).Content; !strings.Contains(got, `"branch":"returned/`+string(id)+`/1"`) {
			t.Errorf("get_task answered %s", got)
		}
		d.ok(nil, "coder-2", "update_task", `{"task_id":"`+string(id)+`","status":"completed","result_summary":"ok"}`)
	}
}

func TestCompleteTask(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	complete := `{"task_id":"1","status":"completed","result_summary":"it is done ✅"}`
	d.refused(team.PermissionDenied, "coder-1", "update_task", complete)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.refused(team.InvalidArgument, "coder-1", "update_task", `{"task_id":"1","status":"completed"}`)
	d.refused(team.InvalidArgument, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":" "}`)
	d.refused(team.PermissionDenied, "coder-2", "update_task", complete)
	d.refused(team.PermissionDenied, team.Leader, "update_task", complete) // not even the leader completes for another
	var v team.TaskView
	d.ok(&v, "coder-1", "update_task_status", complete)
	if v.Status != team.Completed || v.ResultSummary != "it is done ✅" || v.CompletedAt == nil {
		t.Errorf("completed %+v", v)
	}
	d.refused(team.InvalidState, "coder-1", "update_task", complete)
}

// One who lost its task meanwhile is told so, and is free for another.
func TestFormerHolder(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"b"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	if err := d.board.Reap(t.Context(), "T-001", 1, team.Freed{Reason: "not heard", Attempt: true}); err != nil {
		t.Fatal(err)
	}
	d.ok(nil, "coder-2", "claim_task", `{"task_id":"1"}`)
	d.refused(team.Conflict, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"late"}`)
	d.refused(team.Conflict, "coder-1", "release_task", `{"task_id":"1"}`)
	if got := d.task("T-001"); got.Assignee != "coder-2" || got.Status != team.InProgress {
		t.Errorf("after the late write: %+v", got)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"2"}`)
}

func TestFailAndRelease(t *testing.T) {
	d := newDesk(t)
	for range 4 {
		d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	}
	var v team.TaskView
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.ok(&v, "coder-1", "update_task", `{"task_id":"1","status":"failed","reason":"no compiler"}`)
	if v.Status != team.Failed || v.Reason != "no compiler" {
		t.Errorf("failed %+v", v)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"2"}`) // free again
	d.ok(&v, "coder-1", "release_task", `{"task_id":"2","reason":"too hard"}`)
	if v.Status != team.Pending || v.Reason != "too hard" || v.Attempts != 0 {
		t.Errorf("released %+v", v)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"3"}`)
	d.ok(&v, "coder-1", "update_task", `{"task_id":"3","status":"pending"}`)
	if v.Status != team.Pending {
		t.Errorf("released %+v", v)
	}
	d.refused(team.PermissionDenied, "coder-2", "release_task", `{"task_id":"3"}`)
	d.refused(team.PermissionDenied, "coder-2", "update_task", `{"task_id":"4","status":"failed"}`)
	d.refused(team.InvalidArgument, "coder-2", "release_task", `{"task_id":"x"}`)

	d.ok(nil, "coder-1", "claim_task", `{"task_id":"3"}`)
	d.ok(&v, team.Leader, "release_task", `{"task_id":"3","reason":"more urgent things"}`) // the leader takes it back
	if v.Status != team.Pending {
		t.Errorf("taken back %+v", v)
	}
	d.refused(team.InvalidState, team.Leader, "release_task", `{"task_id":"3"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"3"}`)
	d.ok(&v, team.Leader, "update_task", `{"task_id":"3","status":"failed","reason":"moot"}`)
	if v.Status != team.Failed {
		t.Errorf("failed by the leader %+v", v)
	}
}

func TestCancel(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"b"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.refused(team.PermissionDenied, "coder-1", "update_task", `{"task_id":"1","status":"cancelled"}`)
	var v team.TaskView
	d.ok(&v, team.Leader, "update_task", `{"task_id":"1","status":"deleted","reason":"not needed"}`)
	if v.Status != team.Cancelled || v.Reason != "not needed" {
		t.Errorf("cancelled %+v", v)
	}
	d.refused(team.InvalidState, team.Leader, "update_task", `{"task_id":"1","status":"cancelled"}`)
	d.refused(team.InvalidState, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"late"}`)
	d.ok(nil, team.Leader, "claim_task", `{"task_id":"2"}`)
	d.refused(team.InvalidArgument, team.Leader, "update_task", `{"task_id":"2","status":"cancelled","assignee":"coder-1"}`)
	d.ok(&v, team.Leader, "update_task", `{"task_id":"2","status":"cancelled"}`)
	if v.Status != team.Cancelled || v.Assignee != team.Leader {
		t.Errorf("cancelled %+v", v)
	}
	if held, ok := d.hands[team.Leader].Task(); ok {
		t.Errorf("the leader still holds %s", held.ID)
	}
}

// A priority is taken by its name, as people and the board write it, and by its number.
func TestPriorityByName(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_tasks", `{"tasks":[{"key":"a","title":"a","priority":"high"},{"key":"b","title":"b","priority":"2"},{"key":"c","title":"c","priority":2},{"key":"d","title":"d","priority":"normal"}]}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"e","priority":"critical"}`)
	d.ok(nil, team.Leader, "update_task", `{"task_id":"4","priority":"high"}`)
	for id, want := range map[team.TaskID]int{"T-001": 1, "T-002": 2, "T-003": 2, "T-004": 1, "T-005": 2} {
		if got := d.task(id).Priority; got != want {
			t.Errorf("%s has the priority %d, want %d", id, got, want)
		}
	}
	for _, bad := range []string{`"urgent"`, `3`, `1.5`, `true`} {
		d.refused(team.InvalidArgument, team.Leader, "create_task", `{"title":"f","priority":`+bad+`}`)
	}
}

func TestEditTask(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"b","dependencies":["1"]}`)
	d.ok(nil, team.Leader, "create_task", `{"title":"c"}`)
	var v team.TaskView
	d.ok(&v, team.Leader, "update_task", `{"task_id":"2","title":"B","description":"more","priority":1,"add_dependencies":["3"],"remove_dependencies":["1"],"metadata":{"activeForm":"B-ing"}}`)
	if v.Title != "B" || v.Description != "more" || v.Priority != 1 || !slices.Equal(v.Dependencies, []team.TaskID{"T-003"}) || string(v.Metadata) != `{"activeForm":"B-ing"}` {
		t.Errorf("edited %+v", v)
	}
	d.refused(team.InvalidArgument, team.Leader, "update_task", `{"task_id":"2"}`)
	d.refused(team.InvalidArgument, team.Leader, "update_task", `{"task_id":"2","reason":"none"}`)
	d.refused(team.InvalidArgument, team.Leader, "update_task", `{"task_id":"2","status":"done"}`)
	d.refused(team.InvalidArgument, team.Leader, "update_task", `{"task_id":"2","title":""}`)
	d.refused(team.InvalidArgument, team.Leader, "update_task", `{"task_id":"3","add_dependencies":["2"]}`) // a cycle
	d.refused(team.NotFound, team.Leader, "update_task", `{"task_id":"3","add_dependencies":["9"]}`)
	d.refused(team.NotFound, team.Leader, "update_task", `{"task_id":"9","title":"x"}`)
	d.refused(team.PermissionDenied, "coder-1", "update_task", `{"task_id":"3","title":"mine"}`)
	d.refused(team.PermissionDenied, "coder-1", "update_task", `{"task_id":"3","metadata":{"a":1}}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"3"}`)
	d.ok(&v, "coder-1", "update_task", `{"task_id":"3","metadata":{"a":1}}`)
	if string(v.Metadata) != `{"a":1}` {
		t.Errorf("metadata %s", v.Metadata)
	}
	d.refused(team.Conflict, team.Leader, "update_task", `{"task_id":"3","title":"while it is worked on"}`)
}

func TestAssign(t *testing.T) {
	d := newDesk(t)
	for range 3 {
		d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	}
	var v team.TaskView
	d.refused(team.PermissionDenied, "coder-1", "update_task", `{"task_id":"1","assignee":"coder-2"}`)
	d.ok(&v, team.Leader, "update_task", `{"task_id":"1","assignee":"coder-2","status":"in_progress"}`)
	if v.Assignee != "coder-2" || v.Status != team.InProgress {
		t.Errorf("assigned %+v", v)
	}
	d.ok(&v, team.Leader, "update_task", `{"task_id":"2","assignee":"coder-2"}`) // which is busy
	if v.Status != team.Pending || v.ReservedFor != "coder-2" {
		t.Errorf("assigned to a busy one %+v", v)
	}
	d.refused(team.Conflict, "coder-1", "update_task", `{"task_id":"2","assignee":"coder-1"}`)
	v = team.TaskView{}
	d.ok(&v, team.Leader, "update_task", `{"task_id":"2","status":"pending"}`)
	if v.ReservedFor != "" {
		t.Errorf("taken back %+v", v)
	}
	d.ok(&v, "coder-1", "update_task", `{"task_id":"2","assignee":"coder-1"}`)
	if v.Assignee != "coder-1" {
		t.Errorf("claimed %+v", v)
	}
	d.refused(team.Busy, team.Leader, "update_task", `{"task_id":"2","assignee":"coder-2"}`) // it is held, so it cannot wait
	d.crew.err = team.Errorf(team.Unavailable, "tester-1 does not answer")
	d.refused(team.Unavailable, team.Leader, "update_task", `{"task_id":"3","assignee":"tester-1"}`)
}

// A model has no commands of teamctl: what it is told to do about an error is what its tools
// can do, and the error that a person would be told of more still has a hint.
func TestHintsAreForModels(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_tasks", `{"tasks":[{"key":"a","title":"a"},{"key":"b","title":"b","dependencies":["a"]},{"key":"c","title":"c"},{"key":"d","title":"d","dependencies":["c"]}]}`)
	d.ok(nil, team.Leader, "update_task", `{"task_id":"3","status":"cancelled"}`)
	d.ok(nil, "coder-2", "claim_task", `{"task_id":"1"}`)
	for _, tt := range []struct {
		who             team.AgentID
		tool, arguments string
		says            string
	}{
		{"coder-1", "get_task", `{"task_id":"9"}`, "list_tasks"},
		{"coder-1", "TaskGet", `{"taskId":"9"}`, "TaskList"},
		{"coder-1", "claim_task", `{"task_id":"2"}`, "once they are completed"},
		{"coder-1", "claim_task", `{"task_id":"4"}`, "remove_dependencies"},
		{"coder-1", "TaskUpdate", `{"taskId":"4","owner":"coder-1"}`, "removeBlockedBy"},
		{team.Leader, "remove_teammate", `{"agent_id":"coder-7"}`, "list_teammates"},
		{team.Leader, "create_tasks", `{"tasks":[{"key":"x","title":"x","assignee":"coder-7"}]}`, "list_teammates"},
		{team.Leader, "approve_plan", `{"request_id":"x","approve":true}`, "plan_approval_request"},
		{"coder-1", "claim_task", `{"task_id":"1"}`, ""},
		{"coder-1", "create_tasks", `{"tasks":[{"key":"x","title":"x","check":"true"}]}`, ""},
		{"coder-1", "spawn_teammate", `{"role":"coder"}`, ""},
		{"coder-1", "send_message", `{"to":"nobody","content":"x"}`, ""},
		{"coder-1", "read_mail", `{"id":"x"}`, "read_mail"},
	} {
		res := d.call(tt.who, tt.tool, tt.arguments)
		if !res.IsError || strings.Contains(res.Content, "teamctl") || !strings.Contains(res.Content, tt.says) {
			t.Errorf("%s %s: %s, want %q in it", tt.tool, tt.arguments, res.Content, tt.says)
		}
	}
	for _, s := range d.sets {
		for _, spec := range s.Specs() {
			if strings.Contains(spec.Description+string(spec.Schema), "teamctl") {
				t.Errorf("a model is told of teamctl by %s", spec.Name)
			}
		}
	}
}
