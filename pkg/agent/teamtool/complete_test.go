package teamtool_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/team"
)

// A task with a check is completed only once that passes; what it said goes back to
// the agent, and the last attempt fails the task.
func TestCompleteWithCheck(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "leader", "create_task", `{"title":"Report","check":"grep 数 deliverables/T-001-report.md"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	const complete = `{"task_id":"1","status":"completed","result_summary":"done"}`

	res := d.call("coder-1", "update_task", complete)
	if !res.IsError || !strings.Contains(res.Content, "No such file") || !strings.Contains(res.Content, "attempt 1 of 3") {
		t.Errorf("a failing check answered %s", res.Content)
	}
	if task := d.task("T-001"); task.Status != team.InProgress || task.Attempts != 1 || !strings.Contains(task.Reason, "check failed") {
		t.Errorf("after it: %+v", task)
	}
	d.deliver("T-001-report.md", "没有")
	if res := d.call("coder-1", "update_task", complete); !res.IsError || res.Code != team.InvalidState ||
		res.Content != "the check of T-001, `grep 数 deliverables/T-001-report.md`, failed:\nexit status 1\n[fix it and complete the task again; this was attempt 2 of 3]" {
		t.Errorf("a failing check answered %s", res.Content)
	}
	d.deliver("T-001-report.md", "数 42 📦")
	d.ok(nil, "coder-1", "update_task", complete)

	task := d.task("T-001")
	if task.Status != team.Completed || task.Attempts != 2 || !strings.HasPrefix(task.Digest, "sha256:") {
		t.Errorf("completed: %+v", task)
	}
	r, err := d.broker.Files.Open(t.Context(), completion.Name(task))
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := io.ReadAll(r); err != nil || string(stored) != "数 42 📦" {
		t.Errorf("stored %q, %v", stored, err)
	}
}

// Artifacts are stored with the result; without status completed, or with one that is not there, nothing happens.
func TestArtifacts(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "leader", "create_task", `{"title":"Report"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.deliver("a.txt", "数 42")
	d.refused(team.InvalidArgument, "coder-1", "update_task", `{"task_id":"1","status":"pending","artifacts":["deliverables/a.txt"]}`)
	d.refused(team.NotFound, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"done","artifacts":["deliverables/b.txt"]}`)
	if task := d.task("T-001"); task.Status != team.InProgress || task.Artifacts != nil {
		t.Errorf("after it: %+v", task)
	}
	d.ok(nil, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"done","artifacts":["deliverables/a.txt"]}`)
	task := d.task("T-001")
	if task.Status != team.Completed || len(task.Artifacts) != 1 || task.Artifacts[0].Path != "deliverables/a.txt" || task.Artifacts[0].Bytes != 6 {
		t.Errorf("completed: %+v", task)
	}
}

func TestCheckFailsForGood(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "leader", "create_task", `{"title":"Impossible","check":"echo never; false"}`)
	d.ok(nil, "leader", "create_task", `{"title":"Next"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	var last string
	for range team.MaxAttempts {
		last = d.call("coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":"done"}`).Content
	}
	if !strings.Contains(last, "never") || !strings.Contains(last, "last of 3 attempts") {
		t.Errorf("the last attempt was answered %s", last)
	}
	if task := d.task("T-001"); task.Status != team.Failed || !strings.Contains(task.Reason, "check failed") {
		t.Errorf("after it: %+v", task)
	}
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"2"}`) // its hand is free
}

// What is sure to be refused does not cost a check, nor an attempt.
func TestNoCheckForNothing(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "leader", "create_task", `{"title":"Report","check":"touch checked; false"}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	d.refused(team.InvalidArgument, "coder-1", "update_task", `{"task_id":"1","status":"completed","result_summary":" "}`)
	d.refused(team.PermissionDenied, "coder-2", "update_task", `{"task_id":"1","status":"completed","result_summary":"mine"}`)
	if _, err := os.Stat(filepath.Join(d.dir, "checked")); err == nil {
		t.Error("the check was run")
	}
	if task := d.task("T-001"); task.Attempts != 0 {
		t.Errorf("%d attempts were counted", task.Attempts)
	}
}

func TestCompleteNeedsDeliverable(t *testing.T) {
	d := newDesk(t)
	d.ok(nil, "leader", "create_task", `{"title":"Report","deliverable_required":true}`)
	d.ok(nil, "coder-1", "claim_task", `{"task_id":"1"}`)
	const complete = `{"task_id":"1","status":"completed","result_summary":"done"}`
	d.refused(team.InvalidState, "coder-1", "update_task", complete)
	d.deliver("T-001-report.md", "")
	d.refused(team.InvalidState, "coder-1", "update_task", complete)
	if task := d.task("T-001"); task.Status != team.InProgress || task.Attempts != 0 {
		t.Errorf("after a missing deliverable: %+v", task)
	}
	d.deliver("T-001-report.md", "42")
	d.ok(nil, "coder-1", "update_task", complete)
}

func (d *desk) deliver(name, content string) {
	d.t.Helper()
	dir := filepath.Join(d.dir, "deliverables")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}
