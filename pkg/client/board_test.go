package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A person outside a seat has the leader's rights, and no task to complete.
func TestPersonOutsideSeat(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	r.claim(t, "T-001", "alice")
	_, err := r.Board().Complete(t.Context(), "T-001", "", "done")
	wantCode(t, "complete without a seat", err, team.PermissionDenied)
	if task, err := r.Board().Release(t.Context(), "T-001", "", "not now"); err != nil || task.Status != team.Pending {
		t.Errorf("released %+v, %v", task, err)
	}
	_, err = r.Board().Complete(t.Context(), "T-001", "alice", "done")
	wantCode(t, "complete what was taken away", err, team.Conflict)
	r.claim(t, "T-002", "alice")
	if task, err := r.Board().Fail(t.Context(), "T-002", "", "given up"); err != nil || task.Status != team.Failed {
		t.Errorf("failed %+v, %v", task, err)
	}
	_, err = r.Board().Release(t.Context(), "T-001", "nobody", "")
	wantCode(t, "release as a stranger", err, team.NotFound)
}

func TestCancel(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	r.claim(t, "T-001", "alice")
	_, err := r.Board().Cancel(t.Context(), "T-001", "alice", "")
	wantCode(t, "cancel from a seat", err, team.PermissionDenied)
	for _, id := range []team.TaskID{"T-001", "T-002"} {
		if task, err := r.Board().Cancel(t.Context(), id, "", "no longer needed"); err != nil || task.Status != team.Cancelled || task.Reason != "no longer needed" {
			t.Errorf("cancelled %+v, %v", task, err)
		}
	}
	_, err = r.Board().Cancel(t.Context(), "T-001", "", "")
	wantCode(t, "cancel again", err, team.InvalidState)
	_, err = r.Board().Complete(t.Context(), "T-001", "alice", "done")
	wantCode(t, "complete what was cancelled", err, team.InvalidState)
}

func TestEdit(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	title := "重新命名 🚀"
	edit := team.Edit{Title: &title, AddDependencies: []team.TaskID{"T-001"}}
	for _, want := range []bool{true, false} {
		if task, changed, err := r.Board().Edit(t.Context(), "T-002", "", edit); err != nil || changed != want || task.Title != title {
			t.Errorf("edited %+v, changed %v, %v; want %v", task, changed, err, want)
		}
	}
	if v, err := r.Board().Task(t.Context(), "T-002"); err != nil || v.Title != title || !v.IsBlocked || len(v.WaitingFor) != 1 {
		t.Errorf("afterwards it is %+v, %v", v, err)
	}
	_, _, err := r.Board().Edit(t.Context(), "T-001", "", team.Edit{AddDependencies: []team.TaskID{"T-002"}})
	wantCode(t, "a cycle", err, team.InvalidArgument)
	r.claim(t, "T-001", "alice")
	_, _, err = r.Board().Edit(t.Context(), "T-002", "alice", team.Edit{Title: &title})
	wantCode(t, "edit from a seat", err, team.PermissionDenied)
	_, _, err = r.Board().Edit(t.Context(), "T-001", "", team.Edit{Title: &title})
	wantCode(t, "edit of a task in progress", err, team.Conflict)
	_, _, err = r.Board().Edit(t.Context(), "T-009", "", team.Edit{Title: &title})
	wantCode(t, "edit of no task", err, team.NotFound)
	_, err = r.Board().Task(t.Context(), "T-009")
	wantCode(t, "no task", err, team.NotFound)
}

// A team whose goal has ended is led again once there is work for it, and not for
// work that was refused.
func TestAddTasksActivates(t *testing.T) {
	r := newRig(t)
	if _, err := r.registry.End(t.Context(), r.bt, team.Ending{Status: team.TeamFinished, Summary: "done"}); err != nil {
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
		_, _, err := r.Board().Add(t.Context(), "", team.NewTask{Title: "good"}, tt.task)
		wantCode(t, name, err, tt.want)
		if got := record(t, r.Team).Status; got != team.TeamFinished {
			t.Fatalf("%s: the team is %s, want finished", name, got)
		}
	}
	// The board's own goal is over too: it was closed, and stays so.
	if err := r.board.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", team.MaxTextBytes)
	_, _, err := r.Board().Add(t.Context(), "", slices.Repeat([]team.NewTask{{Title: "x", Description: big}}, 9)...)
	wantCode(t, "too much for one call", err, team.InvalidArgument)
	_, _, err = r.Board().Add(t.Context(), "", team.NewTask{Title: "x", Dependencies: []team.TaskID{"T-009"}})
	wantCode(t, "unknown dependency on a closed board", err, team.NotFound)
	_, err = r.board.Create(t.Context(), team.Leader, team.NewTask{Title: "slips in"})
	wantCode(t, "after refused tasks the board is open", err, team.InvalidState)
	r.add(t, 1)
	if got := record(t, r.Team).Status; got != team.Active {
		t.Errorf("with a new task the team is %s, want active", got)
	}
	tasks, err := r.Board().Tasks(t.Context())
	if err != nil || len(tasks) != 1 || tasks[0].ID != "T-001" || tasks[0].CreatedBy != team.UserAgent {
		t.Errorf("tasks are %+v, %v; want the one that was not refused", tasks, err)
	}
}

// A call that is repeated with its key adds nothing, and wakes no team for what is
// over.
func TestAddTasksOnce(t *testing.T) {
	r := newRig(t)
	plan := []team.NewTask{{Title: "first"}, {Title: "second", After: []int{0}}}
	add := func(again bool) {
		t.Helper()
		created, existed, err := r.Board().Add(t.Context(), "键 1", plan...)
		if err != nil || existed != again || len(created) != 2 || created[0].ID != "T-001" || !slices.Equal(created[1].Dependencies, []team.TaskID{"T-001"}) {
			t.Errorf("added %+v, %v", created, err)
		}
	}
	add(false)
	add(true)
	if _, err := r.registry.End(t.Context(), r.bt, team.Ending{Status: team.TeamStopped, Summary: "stopped by a person"}); err != nil {
		t.Fatal(err)
	}
	add(true)
	if got := record(t, r.Team).Status; got != team.TeamStopped {
		t.Errorf("repeated after a stop the team is %s, want stopped", got)
	}
	if _, _, err := r.board.CreateOnce(t.Context(), team.UserAgent, "killed before it was woken", plan...); err != nil {
		t.Fatal(err)
	}
	if _, existed, err := r.Board().Add(t.Context(), "killed before it was woken", plan...); err != nil || !existed {
		t.Errorf("existed: %v, %v", existed, err)
	}
	if got := record(t, r.Team).Status; got != team.Active {
		t.Errorf("repeated with tasks that were added since, the team is %s, want active", got)
	}
	for _, id := range []team.TaskID{"T-001", "T-002", "T-003", "T-004"} {
		if _, err := r.Board().Cancel(t.Context(), id, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.registry.End(t.Context(), r.bt, team.Ending{Status: team.TeamFinished, Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	if err := r.board.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(true)
	if got := record(t, r.Team).Status; got != team.TeamFinished {
		t.Errorf("repeated when all is over the team is %s, want finished", got)
	}
	_, _, err := r.Board().Add(t.Context(), strings.Repeat("k", 257), plan...)
	wantCode(t, "a long key", err, team.InvalidArgument)
}

// A team is made, and gets roles, only for tasks that it can take.
func TestMakeFor(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	known := client.NewTeam{ID: "t", Roles: roles("poet")}
	other := client.NewTeam{ID: "other", Roles: roles("poet")}
	for name, tt := range map[string]struct {
		n     client.NewTeam
		tasks []team.NewTask
		want  team.Code
	}{
		"no task":                   {other, nil, team.InvalidArgument},
		"unknown role, no team":     {other, []team.NewTask{{Title: "x", Role: "poet"}, {Title: "x", Role: "critic"}}, team.NotFound},
		"unknown role":              {known, []team.NewTask{{Title: "x", Role: "poet"}, {Title: "x", Role: "critic"}}, team.NotFound},
		"a dependency, but no team": {other, []team.NewTask{{Title: "x", Dependencies: []team.TaskID{"T-001"}}}, team.NotFound},
		"unknown dependency":        {known, []team.NewTask{{Title: "x", Dependencies: []team.TaskID{"T-001", "T-002"}}}, team.NotFound},
	} {
		_, err := r.client.MakeFor(t.Context(), tt.n, tt.tasks)
		wantCode(t, name, err, tt.want)
		if hint := team.HintOf(err); hint == "" || strings.Contains(hint, "teamctl run") {
			t.Errorf("%s: hint %q", name, hint)
		}
	}
	_, err := r.client.Open(t.Context(), "other")
	wantCode(t, "the team that was refused", err, team.NotFound)
	if _, ok := record(t, r.Team).Roles["poet"]; ok {
		t.Error("the team got a role for tasks that were refused")
	}
	good := []team.NewTask{{Title: "x", Role: "poet", Dependencies: []team.TaskID{"T-001"}}, {Title: "y", Role: "coder"}}
	tm, err := r.client.MakeFor(t.Context(), known, good)
	if err == nil {
		_, _, err = tm.Board().Add(t.Context(), "", good...)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := r.client.MakeFor(t.Context(), other, []team.NewTask{{Title: "x", Role: "poet"}}); err != nil {
		t.Error(err)
	}
}

// answer serves assignments in the place of a member's process.
func (r *rig) answer(t *testing.T, m team.Member) {
	t.Helper()
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, control.Handlers{
		Assign: func(ctx context.Context, a team.Assignment) (team.Task, error) {
			return r.board.Assign(ctx, a, m.Holder())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An assignment takes a task from whoever holds it; a claim does not, for whomever it
// is made.
func TestAssign(t *testing.T) {
	r := newRig(t)
	r.add(t, 3)
	ann, bob := r.join(t), r.join(t)
	r.answer(t, ann)
	r.answer(t, bob)
	if task, _, err := r.Board().Assign(t.Context(), "T-001", ann.AgentID); err != nil || task.Assignee != ann.AgentID {
		t.Fatalf("assigned %+v, %v", task, err)
	}
	_, err := r.Board().Claim(t.Context(), "T-001", bob.AgentID)
	wantCode(t, "claim of what another holds", err, team.Conflict)
	if task, seated, err := r.Board().Assign(t.Context(), "T-001", bob.AgentID); err != nil || seated || task.Assignee != bob.AgentID || task.Epoch != 2 {
		t.Errorf("assigned to another: %+v, %v", task, err)
	}
	_, _, err = r.Board().Assign(t.Context(), "T-002", "alice")
	wantCode(t, "assign to a name that nobody has", err, team.NotFound)
	if task, seated, err := r.Board().Seating("alice").Assign(t.Context(), "T-002", "alice"); err != nil || !seated || task.Assignee != "alice" {
		t.Errorf("assigned to a seat: %+v, %v", task, err)
	}
	for id, want := range map[team.TaskID]team.Code{"T-009": team.NotFound, "T-002": ""} {
		_, _, err := r.Board().Assign(t.Context(), id, bob.AgentID)
		wantCode(t, "assign "+string(id), err, want)
	}
	if _, err := r.Board().Cancel(t.Context(), "T-003", "", ""); err != nil {
		t.Fatal(err)
	}
	for _, to := range []team.AgentID{ann.AgentID, "carol"} {
		_, _, err := r.Board().Seating("carol").Assign(t.Context(), "T-003", to)
		wantCode(t, "assign what is over", err, team.InvalidState)
	}
	if r.made(t, "carol") {
		t.Error("a seat was made for an assignment that was refused")
	}
}

func TestHistory(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	r.claim(t, "T-001", "alice")
	if _, err := r.Board().Release(t.Context(), "T-001", "", "lunch 🍜"); err != nil {
		t.Fatal(err)
	}
	steps, whole, err := r.Board().History(t.Context(), "T-001")
	var got []string
	for _, s := range steps {
		got = append(got, fmt.Sprintf("%s %s %s", s.By, s.What, s.Why))
	}
	if want := []string{"user created ", "alice claimed ", "user taken from alice lunch 🍜"}; err != nil || !whole || !slices.Equal(got, want) {
		t.Errorf("the history is %q, whole %v, %v; want %q", got, whole, err, want)
	}
	for range 40 { // 80 writes, of which the bucket keeps 64
		r.claim(t, "T-002", "alice")
		if _, err := r.Board().Release(t.Context(), "T-002", "alice", ""); err != nil {
			t.Fatal(err)
		}
	}
	if steps, whole, err := r.Board().History(t.Context(), "T-002"); err != nil || whole || len(steps) != 64 {
		t.Errorf("of 81 copies %d are told, whole %v, %v", len(steps), whole, err)
	}
	_, _, err = r.Board().History(t.Context(), "T-009")
	wantCode(t, "history of no task", err, team.NotFound)
}

// A record that cannot be read is named, and hides no other.
func TestBadRecord(t *testing.T) {
	r := newRig(t)
	r.add(t, 3)
	v, err := r.Board().Task(t.Context(), "T-002")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bt.Bucket.Put(t.Context(), subject.KeyTask("T-002"), []byte("{"), v.Revision); err != nil {
		t.Fatal(err)
	}
	b, err := r.Board().Snapshot(t.Context())
	if err != nil || len(b.Tasks) != 2 || len(b.Bad) != 1 || b.Bad[0].Key != "task.T-002" {
		t.Errorf("the board is %+v, %v", b, err)
	}
	_, err = r.Board().Task(t.Context(), "T-002")
	wantCode(t, "get", err, team.InvalidState)
	_, err = r.Board().Task(t.Context(), "T-004")
	wantCode(t, "get what is not there", err, team.NotFound)
}

// What is refused for itself leaves the board of an ended goal closed.
func TestTooLargeForAClosedBoard(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	if err := r.board.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := make([]team.NewTask, 10)
	for i := range big {
		big[i] = team.NewTask{Title: "x", Description: strings.Repeat("x", 60<<10)}
	}
	_, _, err := r.Board().Add(t.Context(), "", big...)
	wantCode(t, "tasks that are too large for one call", err, team.InvalidArgument)
	_, err = r.board.Create(t.Context(), team.Leader, team.NewTask{Title: "y"})
	wantCode(t, "a task for a board that is closed", err, team.InvalidState)
}

// A record of the team that cannot be read keeps no person from the board; one that is not there does.
func TestBoardWithoutRecord(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	v, err := r.bt.Bucket.Get(t.Context(), subject.KeyTeam)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := r.bt.Bucket.Put(t.Context(), subject.KeyTeam, []byte("{"), v.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Board().Cancel(t.Context(), "T-001", "", "no longer needed"); err != nil {
		t.Errorf("with a damaged record: %v", err)
	}
	if err := r.bt.Bucket.Delete(t.Context(), subject.KeyTeam, revision); err != nil {
		t.Fatal(err)
	}
	_, err = r.Board().Cancel(t.Context(), "T-001", "", "")
	wantCode(t, "without a record", err, team.NotFound)
}
