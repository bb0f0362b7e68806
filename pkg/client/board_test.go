package client_test

import (
	"testing"

	"agentteam/pkg/team"
)

// A person outside a seat has the leader's rights, and no task to complete.
func TestPersonOutsideSeat(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	r.claim(t, "T-001", "alice")
	_, err := r.Complete(t.Context(), "T-001", "", "done")
	wantCode(t, "complete without a seat", err, team.PermissionDenied)
	if task, err := r.Release(t.Context(), "T-001", "", "not now"); err != nil || task.Status != team.Pending {
		t.Errorf("released %+v, %v", task, err)
	}
	_, err = r.Complete(t.Context(), "T-001", "alice", "done")
	wantCode(t, "complete what was taken away", err, team.Conflict)
	r.claim(t, "T-002", "alice")
	if task, err := r.Fail(t.Context(), "T-002", "", "given up"); err != nil || task.Status != team.Failed {
		t.Errorf("failed %+v, %v", task, err)
	}
	_, err = r.Release(t.Context(), "T-001", "nobody", "")
	wantCode(t, "release as a stranger", err, team.NotFound)
}

func TestCancel(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	r.claim(t, "T-001", "alice")
	_, err := r.Cancel(t.Context(), "T-001", "alice", "")
	wantCode(t, "cancel from a seat", err, team.PermissionDenied)
	for _, id := range []team.TaskID{"T-001", "T-002"} {
		if task, err := r.Cancel(t.Context(), id, "", "no longer needed"); err != nil || task.Status != team.Cancelled || task.Reason != "no longer needed" {
			t.Errorf("cancelled %+v, %v", task, err)
		}
	}
	_, err = r.Cancel(t.Context(), "T-001", "", "")
	wantCode(t, "cancel again", err, team.InvalidState)
	_, err = r.Complete(t.Context(), "T-001", "alice", "done")
	wantCode(t, "complete what was cancelled", err, team.InvalidState)
}

func TestEdit(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	title := "重新命名 🚀"
	edit := team.Edit{Title: &title, AddDependencies: []team.TaskID{"T-001"}}
	if task, err := r.Edit(t.Context(), "T-002", "", edit); err != nil || task.Title != title {
		t.Errorf("edited %+v, %v", task, err)
	}
	if v, err := r.Task(t.Context(), "T-002"); err != nil || v.Title != title || !v.IsBlocked || len(v.WaitingFor) != 1 {
		t.Errorf("afterwards it is %+v, %v", v, err)
	}
	_, err := r.Edit(t.Context(), "T-001", "", team.Edit{AddDependencies: []team.TaskID{"T-002"}})
	wantCode(t, "a cycle", err, team.InvalidArgument)
	r.claim(t, "T-001", "alice")
	_, err = r.Edit(t.Context(), "T-002", "alice", team.Edit{Title: &title})
	wantCode(t, "edit from a seat", err, team.PermissionDenied)
	_, err = r.Edit(t.Context(), "T-001", "", team.Edit{Title: &title})
	wantCode(t, "edit of a task in progress", err, team.Conflict)
	_, err = r.Edit(t.Context(), "T-009", "", team.Edit{Title: &title})
	wantCode(t, "edit of no task", err, team.NotFound)
	_, err = r.Task(t.Context(), "T-009")
	wantCode(t, "no task", err, team.NotFound)
}

// A team whose goal has ended is led again once there is work for it, and not for
// work that was refused.
func TestAddTasksActivates(t *testing.T) {
	r := newRig(t)
	if _, err := r.registry.End(t.Context(), r.bt, team.TeamFinished, "done"); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		task team.NewTask
		want team.Code
	}{
		"no title":           {team.NewTask{}, team.InvalidArgument},
		"unknown role":       {team.NewTask{Title: "x", Role: "poet"}, team.NotFound},
		"unknown dependency": {team.NewTask{Title: "x", Dependencies: []team.TaskID{"T-009"}}, team.NotFound},
	} {
		_, err := r.AddTasks(t.Context(), team.NewTask{Title: "good"}, tt.task)
		wantCode(t, name, err, tt.want)
		if got := record(t, r.Team).Status; got != team.TeamFinished {
			t.Fatalf("%s: the team is %s, want finished", name, got)
		}
	}
	r.add(t, 1)
	if got := record(t, r.Team).Status; got != team.Active {
		t.Errorf("with a new task the team is %s, want active", got)
	}
	tasks, err := r.Tasks(t.Context())
	if err != nil || len(tasks) != 1 || tasks[0].ID != "T-001" || tasks[0].CreatedBy != team.UserAgent {
		t.Errorf("tasks are %+v, %v; want the one that was not refused", tasks, err)
	}
}
