package team_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestView(t *testing.T) {
	made := func(id team.TaskID, s team.TaskStatus, deps ...team.TaskID) team.Task {
		task := team.NewTask{Title: "x", Dependencies: deps}.Task(id, "leader", at)
		task.Status, task.Revision = s, 40
		return task
	}
	tasks := []team.Task{
		made("T-001", team.Completed),
		made("T-002", team.InProgress),
		made("T-003", team.Failed),
		made("T-004", team.Pending, "T-001"),
		made("T-005", team.Pending, "T-001", "T-002"),
		made("T-006", team.Pending, "T-003"),
		made("T-007", team.Cancelled, "T-002"),
	}
	views := map[team.TaskID]team.TaskView{}
	for i, v := range team.View(tasks) {
		if v.ID != tasks[i].ID || v.Revision != 40 {
			t.Errorf("view %d is of %s at revision %d", i, v.ID, v.Revision)
		}
		views[v.ID] = v
	}
	status := func(id team.TaskID) team.TaskStatus { return views[id].Status }
	for id, want := range map[team.TaskID]struct {
		blocked, claimable bool
		waiting, blocks    string
		dead               team.TaskID
	}{
		"T-001": {blocks: "T-004 T-005"},
		"T-002": {blocks: "T-005"},
		"T-003": {blocks: "T-006"},
		"T-004": {claimable: true},
		"T-005": {blocked: true, waiting: "T-002"},
		"T-006": {blocked: true, waiting: "T-003", dead: "T-003"},
		"T-007": {waiting: "T-002"}, // blocked only while it is pending
	} {
		v := views[id]
		if v.IsBlocked != want.blocked || v.Claimable("coder-1", "coder") != want.claimable || join(v.WaitingFor) != want.waiting || join(v.Blocks) != want.blocks {
			t.Errorf("%s: blocked %v, claimable %v, waits for %v, blocks %v, want %+v", id, v.IsBlocked, v.Claimable("coder-1", "coder"), v.WaitingFor, v.Blocks, want)
		}
		if by, dead := v.Dead(status); by != want.dead || dead != (want.dead != "") {
			t.Errorf("%s: dead by %q, %v, want %q", id, by, dead, want.dead)
		}
	}
}

func join(ids []team.TaskID) string {
	var s []string
	for _, id := range ids {
		s = append(s, string(id))
	}
	return strings.Join(s, " ")
}

func TestClaimableByRole(t *testing.T) {
	v := team.View([]team.Task{team.NewTask{Title: "x", Role: "tester"}.Task("T-001", "leader", at)})[0]
	if v.Claimable("coder-1", "coder") || !v.Claimable("tester-1", "tester") {
		t.Error("a task for testers is claimable by testers only")
	}
	v.ReservedFor = "coder-1"
	if !v.Claimable("coder-1", "coder") || v.Claimable("tester-1", "tester") {
		t.Error("a task that is reserved is claimable by that member only, whatever its role")
	}
}

// A program that reads the JSON must find lists and objects, never null.
func TestViewJSON(t *testing.T) {
	data, err := json.Marshal(team.View([]team.Task{pending()})[0])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"id": `"T-001"`, "dependencies": "[]", "waiting_for": "[]", "blocks": "[]", "metadata": "{}",
		"is_blocked": "false", "revision": "0", "claimed_at": "null", "completed_at": "null", "assignee": `""`, "epoch": "0"} {
		if got := string(m[key]); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if !slices.Equal([]string{string(m["status"]), string(m["priority"])}, []string{`"pending"`, "0"}) {
		t.Errorf("status %s, priority %s", m["status"], m["priority"])
	}
}
