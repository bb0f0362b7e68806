package teamtool_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// A plan is made, changed, worked through and read with Claude's tools; the board has what
// ours would have written.
func TestClaudeTasks(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "TaskCreate", `{"subject":"Look","description":"Read it.","activeForm":"Looking","metadata":{"priority":"high","area":"api"}}`)
	if task := d.task("T-001"); task.Title != "Look" || task.Priority != 1 || string(task.Metadata) != `{"activeForm":"Looking","area":"api"}` {
		t.Errorf("made %+v with %s", task, task.Metadata)
	}
	res := d.call(team.Leader, "TaskCreate", `{"subject":"Build","blockedBy":["1"]}`)
	if want := `{"id":"T-002","status":"pending","blockedBy":["T-001"]}`; res.Content != want {
		t.Errorf("TaskCreate: %s, want %s", res.Content, want)
	}
	d.ok(nil, team.Leader, "TeamFanout", `{"team_name":"t","tasks":[{"subject":"Test"},{"key":"b","title":"Ship","instruction":"Now.","blockedBy":["1","T-002"]}]}`)
	if task := d.task("T-004"); task.Description != "Now." || !slices.Equal(task.Dependencies, []team.TaskID{"T-002", "T-003"}) {
		t.Errorf("planned %+v", task)
	}
	d.ok(nil, team.Leader, "TaskUpdate", `{"taskId":"3","addBlocks":["2"],"addBlockedBy":["1"],"subject":"Try","metadata":{"priority":"critical"}}`)
	if a, b := d.task("T-003"), d.task("T-002"); a.Title != "Try" || a.Priority != 2 || !slices.Contains(a.Dependencies, "T-001") || !slices.Contains(b.Dependencies, "T-003") {
		t.Errorf("changed %+v, which blocks %+v", a, b)
	}
	if got := d.call("coder-1", "TaskList", `{}`).Content; !strings.Contains(got, "\nT-003 pending, blockedBy T-001: Try") {
		t.Errorf("TaskList:\n%s", got)
	}
	// What a task says is changed, it is claimed, and its owner notes what it does, at once.
	d.ok(nil, "coder-1", "TaskUpdate", `{"taskId":"1","status":"in_progress","owner":"coder-1","activeForm":"Reading"}`)
	if task := d.task("T-001"); task.Assignee != "coder-1" || string(task.Metadata) != `{"activeForm":"Reading","area":"api"}` {
		t.Errorf("claimed %+v with %s", task, task.Metadata)
	}
	d.ok(nil, "coder-1", "TaskUpdate", `{"taskId":"1","status":"in_progress"}`) // again: it is its own
	var got map[string]any
	if err := json.Unmarshal([]byte(d.call("coder-2", "TaskGet", `{"taskId":"1"}`).Content), &got); err != nil || got["subject"] != "Look" || got["owner"] != "coder-1" || got["title"] != nil {
		t.Errorf("TaskGet: %v, %v", got, err)
	}
	d.ok(nil, "coder-1", "TaskUpdate", `{"taskId":"1","status":"completed","metadata":{"area":null}}`)
	if task := d.task("T-001"); task.Status != team.Completed || task.ResultSummary == "" || string(task.Metadata) != `{"activeForm":"Reading"}` {
		t.Errorf("completed %+v with %s", task, task.Metadata)
	}
	d.ok(nil, team.Leader, "TaskUpdate", `{"taskId":"3","owner":"tester-1"}`) // assigned
	d.ok(nil, "tester-1", "TaskUpdate", `{"taskId":"3","status":"pending"}`)
	d.ok(nil, team.Leader, "TaskUpdate", `{"taskId":"3","status":"deleted"}`)
	if task := d.task("T-003"); task.Status != team.Cancelled {
		t.Errorf("deleted: %+v", task)
	}
}

// What is wrong is said in the words of the call, and nothing is done.
func TestClaudeErrors(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "create_task", `{"title":"a"}`)
	for _, tt := range []struct {
		who             team.AgentID
		tool, arguments string
		code            team.Code
		says            []string
	}{
		{"coder-1", "TaskUpdate", `{}`, team.InvalidArgument, []string{"taskId: missing"}},
		{"coder-1", "TaskUpdate", `{"taskId":"1"}`, team.InvalidArgument, []string{"TaskUpdate changes nothing", "besides taskId"}},
		{"coder-1", "TaskUpdate", `{"taskId":"1","status":"gone"}`, team.InvalidArgument, []string{"gone"}},
		{"coder-1", "TaskUpdate", `{"taskId":"1","owner":"coder-2"}`, team.PermissionDenied, nil},
		{"coder-1", "TaskUpdate", `{"taskId":"1","task_id":"1","status":"completed"}`, team.InvalidArgument, []string{"taskId and task_id are names of one argument"}},
		{"leader", "TaskUpdate", `{"taskId":"1","metadata":{"priority":"huge"}}`, team.InvalidArgument, []string{"metadata.priority", "normal, high or critical"}},
		{"leader", "TaskCreate", `{"description":"x"}`, team.InvalidArgument, []string{"subject: missing", "subject, "}},
		{"leader", "TeamFanout", `{"tasks":[{"description":"x"}]}`, team.InvalidArgument, []string{"subject"}},
		{"leader", "TeamFanout", `{"team_name":"other","tasks":[{"subject":"x"}]}`, team.InvalidArgument, []string{`"other"`, `"t"`}},
		{"leader", "Task", `{"subagent_type":"coder","prompt":"x","description":"y"}`, team.InvalidArgument, []string{"team_name", "subagent"}},
		{"leader", "Task", `{"mode":"parallel","tasks":[{"prompt":"a"}],"description":"y"}`, team.InvalidArgument, []string{"no tasks", "TeamFanout"}},
		{"leader", "Task", `{"mode":"parallel","prompt":"a"}`, team.InvalidArgument, []string{`no mode "parallel"`, "TeamFanout"}},
		{"leader", "Task", `{"team_name":"t","prompt":"x","mode":"fanout"}`, team.InvalidArgument, []string{"fanout", "TeamFanout"}},
		{"leader", "Task", `{"team_name":"other","name":"anna","prompt":"x"}`, team.InvalidArgument, []string{`"other"`, `"t"`}},
		{"leader", "TeamDelete", `{"team_name":"other"}`, team.InvalidArgument, []string{`"other"`}},
		{"leader", "TeamDelete", `{"team_name":"t"}`, team.InvalidState, []string{"1 task open, such as T-001 pending"}},
		{"leader", "spawn_teammate", `{}`, team.InvalidArgument, []string{"role: missing"}},
		{"coder-1", "SendMessage", `{"message":"hi"}`, team.InvalidArgument, []string{"to: missing"}},
		{"coder-1", "SendMessage", `{"type":"broadcast"}`, team.InvalidArgument, []string{"message: missing"}},
		{"coder-1", "SendMessage", `{"to":"leader","message":"hi","summary":"s","approve":true}`, team.InvalidArgument, []string{"approve"}},
		{"coder-1", "SendMessage", `{"to":"leader","message":"hi","summary":"s","request_id":"r"}`, team.InvalidArgument, []string{"request_id"}},
		{"coder-1", "SendMessage", `{"type":"shutdown_response"}`, team.InvalidArgument, []string{"request_id and approve"}},
		{"coder-1", "SendMessage", `{"to":"leader","message":{"type":"shutdown_response","approve":true,"request_id":"r"}}`, team.NotFound, nil},
		{"coder-1", "send_message", `{}`, team.InvalidArgument, []string{"to, content: missing"}},
		{"coder-1", "SendMessage", `{"to":"leader","message":"hi","team_name":"other"}`, team.InvalidArgument, []string{`"other"`}},
		{"coder-1", "claim_task", `{"task_id":"1","assignee_agent_id":"coder-2"}`, team.PermissionDenied, nil},
		{"coder-1", "TeamDelete", `{}`, team.PermissionDenied, []string{"you may not use TeamDelete"}},
		{"coder-1", "Task", `{}`, team.PermissionDenied, []string{"you may not use Task"}},
	} {
		d.refused(tt.code, tt.who, tt.tool, tt.arguments)
		got := strings.ReplaceAll(d.call(tt.who, tt.tool, tt.arguments).Content, `\"`, `"`)
		for _, want := range tt.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s: %s, want %q in it", tt.tool, tt.arguments, got, want)
			}
		}
		for _, native := range []string{"task_id:", "update_task", "send_message", "title"} {
			if tt.tool != "send_message" && tt.code != team.PermissionDenied && strings.Contains(got, native) {
				t.Errorf("%s %s is answered in other words: %s", tt.tool, tt.arguments, got)
			}
		}
	}
	if len(d.crew.removed) != 0 || len(d.crew.spawned) != 0 || d.record.Description != "" || d.task("T-001").Status != team.Pending {
		t.Error("something was done all the same")
	}
}

// Mail by SendMessage in both of its forms, and by the names of other descriptions.
func TestClaudeMail(t *testing.T) {
	d := newDesk(t)
	for arguments, to := range map[string][]team.AgentID{
		`{"to":"coder-2","message":"hi","summary":"s"}`:                         {"coder-2"},
		`{"type":"message","recipient":"coder-2","content":"hi","summary":"s"}`: {"coder-2"},
		`{"to_agent_id":"coder-2","message":"hi","summary":"s"}`:                {"coder-2"},
		`{"to":"*","message":"hi","summary":"s"}`:                               {"coder-2", "leader", "tester-1"},
		`{"type":"broadcast","content":"hi","summary":"s"}`:                     {"coder-2", "leader", "tester-1"},
		`{"recipient":"coder-2","content":"hi"}`:                                {"coder-2"},
		`{"recipient":"coder-2","to":"","content":"hi","team_name":"t"}`:        {"coder-2"},
		`{"type":"broadcast","content":"hi","team_name":"t"}`:                   {"coder-2", "leader", "tester-1"},
	} {
		var s sendResult
		d.ok(&s, "coder-1", "SendMessage", arguments)
		if !slices.Equal(slices.Sorted(slices.Values(s.DeliveredTo)), to) {
			t.Errorf("%s went to %v, want %v", arguments, s.DeliveredTo, to)
		}
	}
	d.ok(nil, "coder-1", "send_message", `{"to_agent_id":"coder-2","content":"hi"}`)
	d.ok(nil, "coder-1", "message", `{"to_agent_id":"coder-2","content":"hi"}`)
	d.ok(nil, "coder-1", "send_message", `{"recipient":"coder-2","content":"hi","team_name":"t"}`)
	d.ok(nil, "coder-1", "broadcast", `{"message":"hi","team_name":"t"}`)
	d.ok(nil, team.Leader, "SendMessage", `{"type":"shutdown_request","recipient":"coder-2","content":"All is done."}`)
	mail := d.inbox("coder-2")
	if last := mail[len(mail)-1]; last.Type != team.MsgShutdownRequest || last.Content != "All is done." || last.RequestID == "" {
		t.Errorf("the request is %+v", last)
	}
}

// A leader names its team's purpose, spawns, collects and ends with Claude's tools.
func TestClaudeTeam(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "TeamCreate", `{"team_name":"t","description":"Migrates the API."}`)
	if d.record.Description != "Migrates the API." {
		t.Errorf("the team is for %q", d.record.Description)
	}
	d.ok(nil, team.Leader, "Task", `{"team_name":"t","name":"anna","subagent_type":"general-purpose","prompt":"Be brief.","description":"builds"}`)
	d.ok(nil, team.Leader, "TeamSpawn", `{"role_name":"tester"}`)
	want := []team.Member{{AgentID: "anna", Role: "coder", Prompt: "Be brief."}, {AgentID: "tester-9", Role: "tester"}}
	if !slices.EqualFunc(d.crew.spawned, want, func(a, b team.Member) bool { return a.AgentID == b.AgentID && a.Role == b.Role && a.Prompt == b.Prompt }) {
		t.Errorf("spawned %+v", d.crew.spawned)
	}

	rests := func(want bool) {
		t.Helper()
		res := d.call(team.Leader, "TeamCollect", `{"team_name":"t"}`)
		if res.Effects.Backoff != want || !strings.Contains(res.Content, "T-001") || strings.Contains(res.Content, "your turn ends") != want {
			t.Errorf("TeamCollect: %s", res.Content)
		}
	}
	d.ok(nil, team.Leader, "create_task", `{"title":"Look","assignee_agent_id":"coder-1"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1","assignee_agent_id":"coder-1"}`)
	rests(true)
	d.ok(nil, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"It is small."}`)
	rests(false)

	d.ok(nil, team.Leader, "TeamDelete", `{}`)
	if !strings.Contains(d.crew.summary, "It is small.") {
		t.Errorf("ended with %q", d.crew.summary)
	}
}

// A call of Task with a name, a team and a prompt makes a member of the general role; its
// mode is how it may work.
func TestClaudeTaskWithoutType(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "Task", `{"team_name":"t","name":"anna","prompt":"Build it.","mode":"acceptEdits","model":"opus"}`)
	d.ok(nil, team.Leader, "Task", `{"team_name":"t","name":"paul","prompt":"Plan it.","mode":"plan","subagent_type":""}`)
	delete(d.record.Roles, "coder")
	d.ok(nil, team.Leader, "Task", `{"team_name":"t","name":"rosa","prompt":"Try it."}`)
	want := []team.Member{{AgentID: "anna", Role: "coder", Prompt: "Build it."}, {AgentID: "paul", Role: "coder", Prompt: "Plan it.", PlanMode: true},
		{AgentID: "rosa", Role: "tester", Prompt: "Try it."}}
	if !reflect.DeepEqual(d.crew.spawned, want) {
		t.Errorf("spawned %+v", d.crew.spawned)
	}
}

// A team that is made under another name is the one that is led: it answers to both names,
// and the leader gets how it is set up.
func TestClaudeTeamName(t *testing.T) {
	d := newDesk(t)
	var made struct {
		TeamName string `json:"team_name"`
		TeamID   string `json:"team_id"`
		Lead     string `json:"lead_agent_id"`
		Members  []struct {
			AgentID string `json:"agent_id"`
		} `json:"members"`
	}
	d.ok(&made, team.Leader, "TeamCreate", `{"team_name":"Shop Migration","description":"Moves it."}`)
	if made.TeamName != "Shop Migration" || made.TeamID != "t" || made.Lead != "leader" || len(made.Members) != 4 || d.record.Description != "Moves it." {
		t.Errorf("made %+v of %+v", made, d.record)
	}
	for _, name := range []string{"t", "Shop Migration"} {
		d.ok(nil, team.Leader, "Task", `{"team_name":"`+name+`","prompt":"x"}`)
		d.ok(nil, team.Leader, "TeamFanout", `{"team_name":"`+name+`","tasks":[{"subject":"a"}]}`)
		d.ok(nil, "coder-1", "SendMessage", `{"team_name":"`+name+`","to":"*","message":"hi"}`)
		d.ok(nil, team.Leader, "TeamCollect", `{"team_name":"`+name+`"}`)
	}
}

// A team of idle members ends at the first call, also one that it is given under several names, and who works is named.
func TestClaudeTeamDeleteByName(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, team.Leader, "TeamCreate", `{"team_name":"one"}`)
	if got := d.call(team.Leader, "TeamCreate", `{"name":"two"}`).Content; !strings.Contains(got, "called one, too") {
		t.Errorf("made again: %s", got)
	}
	if got := d.call(team.Leader, "TeamDelete", `{"name":"three"}`).Content; !strings.Contains(got, `use team_name \"two\"`) {
		t.Errorf("another team: %s", got)
	}
	d.pulse.Hear(team.Heartbeat{AgentID: "coder-1", Incarnation: 1, N: 1, State: team.Idle})
	d.pulse.Hear(team.Heartbeat{AgentID: "coder-2", Incarnation: 1, N: 1, State: team.WaitingApproval})
	if got := d.call(team.Leader, "TeamDelete", `{"name":"two"}`).Content; !strings.Contains(got, "not all members are idle: coder-2 (waiting_approval)") || d.crew.summary != "" {
		t.Errorf("one works: %s", got)
	}
	d.pulse.Hear(team.Heartbeat{AgentID: "coder-2", Incarnation: 1, N: 2, State: team.Idle})
	res := d.call(team.Leader, "TeamDelete", `{"name":"one","summary":"All is moved."}`)
	if !res.Effects.Ends || !strings.Contains(res.Content, "teamctl teams rm") || d.crew.summary != "All is moved." {
		t.Errorf("ended: %s", res.Content)
	}
}
