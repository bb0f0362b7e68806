package teamtool_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
)

// A whole plan goes onto the board by one call, its dependencies by the call's own keys or
// by ids.
func TestCreateTasks(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"before"}`)
	const plan = `{"tasks":[
		{"key":"report","title":"Write the report","description":"all of it","priority":1,"dependencies":["count","2","1"],"deliverable_required":true},
		{"key":"count","title":"Count","check":"test -s count","role":"tester"},
		{"key":"2","title":"A key that looks like an id is the key"}]}`
	res := d.call(team.Leader, "create_tasks", plan)
	if want := `[{"key":"report","id":"T-002","dependencies":["T-001","T-003","T-004"]},{"key":"count","id":"T-003"},{"key":"2","id":"T-004"}]`; res.Content != want {
		t.Errorf("create_tasks answered %s, want %s", res.Content, want)
	}
	report, count := d.task("T-002"), d.task("T-003")
	if !slices.Equal(report.Dependencies, []team.TaskID{"T-001", "T-003", "T-004"}) || report.Priority != 1 || !report.DeliverableReq ||
		report.Description != "all of it" || report.CreatedBy != team.Leader || count.Check != "test -s count" || count.Role != "tester" {
		t.Errorf("on the board: %+v\n%+v", report, count)
	}
}

// If anything is wrong with a plan, none of its tasks is created, and the error says what
// and where.
func TestCreateTasksAllOrNone(t *testing.T) {
	d := newDesk(t)
	good := `{"key":"a","title":"A"},`
	for name, tt := range map[string]struct {
		tasks string
		code  team.Code
		says  string
	}{
		"no tasks":           {``, team.InvalidArgument, "no tasks"},
		"unknown key":        {good + `{"key":"b","title":"B","dependencies":["c"]}`, team.NotFound, `task 2 (b): the dependency \"c\"`},
		"unknown id":         {good + `{"key":"b","title":"B","dependencies":["T-099"]}`, team.NotFound, "T-099"},
		"cycle":              {`{"key":"a","title":"A","dependencies":["b"]},{"key":"b","title":"B","dependencies":["a"]}`, team.InvalidArgument, "wait for itself"},
		"itself":             {`{"key":"a","title":"A","dependencies":["a"]}`, team.InvalidArgument, "wait for itself"},
		"same key":           {good + `{"key":"a","title":"B"}`, team.InvalidArgument, "task 2 (a): task 1 has the same key"},
		"no key":             {good + `{"title":"B"}`, team.InvalidArgument, "key"},
		"empty key":          {good + `{"key":"","title":"B"}`, team.InvalidArgument, "task 2 (B): its key is empty"},
		"no title":           {good + `{"key":"b","title":""}`, team.InvalidArgument, "task 2"},
		"unknown role":       {good + `{"key":"b","title":"B","role":"wizard"}`, team.NotFound, "task 2 (b)"},
		"more than one call": {good + fmt.Sprintf(`{"key":"b","title":"B","description":%q}`, strings.Repeat("long ", 20<<10)), team.InvalidArgument, "description"},
	} {
		arguments := `{"tasks":[` + tt.tasks + `]}`
		d.refused(tt.code, team.Leader, "create_tasks", arguments)
		if got := d.call(team.Leader, "create_tasks", arguments).Content; !strings.Contains(got, tt.says) {
			t.Errorf("%s: %s, want %q in it", name, got, tt.says)
		}
	}
	d.refused(team.PermissionDenied, "coder-1", "create_tasks", `{"tasks":[`+good+`{"key":"b","title":"B","check":"true"}]}`)
	if res := d.call(team.Leader, "list_tasks", `{}`); res.Content != "(no tasks)" {
		t.Errorf("on the board: %s", res.Content)
	}
	d.record.Policies.Create = "leader"
	d.refused(team.PermissionDenied, "coder-1", "create_tasks", `{"tasks":[{"key":"a","title":"A"}]}`)
}

// A plan's assignees that are not there, or have stopped, are spawned as the role of their task,
// each once; the others stay as they are.
func TestCreateTasksSpawns(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_tasks", `{"tasks":[
		{"key":"a","title":"A","role":"tester","assignee":"ann"},{"key":"b","title":"B","role":"tester","assignee":"ann","dependencies":["a"]},
		{"key":"c","title":"C","role":"coder","assignee":"gone-1"},{"key":"d","title":"D","role":"coder","assignee":"coder-1"},{"key":"e","title":"E","role":"coder"}]}`)
	got := map[team.AgentID]string{}
	for _, m := range d.crew.spawned {
		got[m.AgentID] += m.Role
	}
	if want := map[team.AgentID]string{"ann": "tester", "gone-1": "coder"}; !maps.Equal(got, want) {
		t.Errorf("spawned %v, want %v", got, want)
	}
	if a, b, c := d.task("T-001"), d.task("T-002"), d.task("T-003"); a.ReservedFor != "ann" || b.ReservedFor != "ann" || c.ReservedFor != "gone-1" {
		t.Errorf("reserved for %q, %q and %q", a.ReservedFor, b.ReservedFor, c.ReservedFor)
	}
}

// If a plan cannot be created, or one of its members cannot be spawned, none of its tasks is there,
// and those who were spawned leave.
func TestCreateTasksSpawnsAllOrNone(t *testing.T) {
	for name, tt := range map[string]struct {
		tasks   string
		code    team.Code
		leave   []team.AgentID
		spawned int
	}{
		"one finds no process":   {`{"key":"a","title":"A","role":"tester","assignee":"ann"},{"key":"b","title":"B","role":"coder","assignee":"bad"}`, team.Unavailable, []team.AgentID{"ann"}, 2},
		"the board refuses it":   {`{"key":"a","title":"A","role":"tester","assignee":"ann","dependencies":["T-099"]}`, team.NotFound, []team.AgentID{"ann"}, 1},
		"a wrong task":           {`{"key":"a","title":"A","role":"tester","assignee":"ann"},{"key":"b","title":""}`, team.InvalidArgument, []team.AgentID{"ann"}, 1},
		"two roles":              {`{"key":"a","title":"A","role":"tester","assignee":"ann"},{"key":"b","title":"B","role":"coder","assignee":"ann"}`, team.InvalidArgument, nil, 0},
		"no role":                {`{"key":"a","title":"A","assignee":"ann"}`, team.NotFound, nil, 0},
		"a role that is not":     {`{"key":"a","title":"A","role":"wizard","assignee":"ann"}`, team.NotFound, nil, 0},
		"a name that is none":    {`{"key":"a","title":"A","role":"coder","assignee":"Ann B"}`, team.InvalidArgument, nil, 0},
		"a role, but no process": {`{"key":"b","title":"B","role":"coder","assignee":"bad"}`, team.Unavailable, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.crew.unspawnable = "bad"
			d.refused(tt.code, team.Leader, "create_tasks", `{"tasks":[`+tt.tasks+`]}`)
			if len(d.crew.spawned) != tt.spawned || !slices.Equal(d.crew.removed, tt.leave) {
				t.Errorf("spawned %v, removed %v", d.crew.spawned, d.crew.removed)
			}
			if res := d.call(team.Leader, "list_tasks", `{}`); res.Content != "(no tasks)" {
				t.Errorf("on the board: %s", res.Content)
			}
		})
	}
	d := newDesk(t)
	d.refused(team.PermissionDenied, "coder-1", "create_tasks", `{"tasks":[{"key":"a","title":"A","role":"tester","assignee":"ann"}]}`)
	if d.crew.spawned != nil {
		t.Errorf("a teammate spawned %v", d.crew.spawned)
	}
}

// A page of a hundred tasks, however much was written into them, has at most 5,000 tokens,
// and says how many there are besides.
func TestListIsShort(t *testing.T) {
	d := newDesk(t)
	tasks := make([]team.NewTask, 230)
	for i := range tasks {
		tasks[i] = team.NewTask{Title: strings.Repeat("Build the 编译器 for the 🧭 of ", 12), Description: strings.Repeat("word ", 200)}
		if i > 5 {
			tasks[i].After = []int{0, 1, 2, 3, 4}
		}
	}
	if _, err := d.board.Create(t.Context(), team.Leader, tasks...); err != nil {
		t.Fatal(err)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.ok(nil, "coder-1", "update_task", fmt.Sprintf(`{"task_id":"1","status":"completed","result_summary":%q}`, strings.Repeat("数 results ", 4000)))
	seen := map[string]bool{}
	for page, more := range []string{"[130 more: go on with page 2]", "[30 more: go on with page 3]", ""} {
		text := d.call(team.Leader, "list_tasks", fmt.Sprintf(`{"page":%d}`, page+1)).Content
		if n := tokens.Count(text); n > 5000 {
			t.Errorf("page %d has %d tokens", page+1, n)
		}
		if last := text[strings.LastIndex(text, "\n")+1:]; more != "" && last != more {
			t.Errorf("page %d ends with %q", page+1, last)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "T-") {
				seen[line[:5]] = true
			}
		}
	}
	if len(seen) != 230 {
		t.Errorf("%d tasks were listed", len(seen))
	}
	if text := d.call(team.Leader, "list_tasks", `{"page":4}`).Content; !strings.Contains(text, "230") {
		t.Errorf("page 4: %s", text)
	}
	d.refused(team.InvalidArgument, team.Leader, "list_tasks", `{"page":-1}`)
}
