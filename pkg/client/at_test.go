package client_test

import (
	"context"
	"errors"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/team"
)

// A change that asks for a revision is made at that revision only: by whichever way it
// reaches the board, a task that was written since stays as it is.
func TestAt(t *testing.T) {
	r := newRig(t)
	ann := r.join(t)
	r.answer(t, ann)
	for name, tt := range map[string]struct {
		held   bool // by a seat, to begin with
		change func(at team.TaskID, revision uint64) (team.Task, error)
	}{
		"edit": {false, func(id team.TaskID, rev uint64) (team.Task, error) {
			task, _, err := r.Board().At(rev).Edit(t.Context(), id, "", team.Edit{Title: new("other")})
			return task, err
		}},
		"edit of dependencies": {false, func(id team.TaskID, rev uint64) (team.Task, error) {
			task, _, err := r.Board().At(rev).Edit(t.Context(), id, "", team.Edit{AddDependencies: []team.TaskID{"T-001"}})
			return task, err
		}},
		"claim by a seat": {false, func(id team.TaskID, rev uint64) (team.Task, error) {
			return r.Board().Seating("bob").At(rev).Claim(t.Context(), id, "bob")
		}},
		"claim by an agent": {false, func(id team.TaskID, rev uint64) (team.Task, error) {
			return r.Board().At(rev).Claim(t.Context(), id, ann.AgentID)
		}},
		"assign to an agent": {false, func(id team.TaskID, rev uint64) (team.Task, error) {
			task, _, err := r.Board().At(rev).Assign(t.Context(), id, ann.AgentID)
			return task, err
		}},
		"assign to a new seat": {false, func(id team.TaskID, rev uint64) (team.Task, error) {
			task, _, err := r.Board().Seating("carol").At(rev).Assign(t.Context(), id, "carol")
			return task, err
		}},
		"assign from a seat to an agent": {true, func(id team.TaskID, rev uint64) (team.Task, error) {
			task, _, err := r.Board().At(rev).Assign(t.Context(), id, ann.AgentID)
			return task, err
		}},
		"assign from a seat to another": {true, func(id team.TaskID, rev uint64) (team.Task, error) {
			task, _, err := r.Board().Seating("dave").At(rev).Assign(t.Context(), id, "dave")
			return task, err
		}},
		"complete": {true, func(id team.TaskID, rev uint64) (team.Task, error) {
			return r.Board().At(rev).Complete(t.Context(), id, "holder", "done")
		}},
		"fail": {true, func(id team.TaskID, rev uint64) (team.Task, error) {
			return r.Board().At(rev).Fail(t.Context(), id, "holder", "cannot")
		}},
		"release": {true, func(id team.TaskID, rev uint64) (team.Task, error) {
			return r.Board().At(rev).Release(t.Context(), id, "", "")
		}},
		"cancel": {true, func(id team.TaskID, rev uint64) (team.Task, error) {
			return r.Board().At(rev).Cancel(t.Context(), id, "", "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r.add(t, 1) // of which another may come to depend
			task := r.add(t, 1)[0]
			if tt.held {
				task = r.claim(t, task.ID, "holder")
			}
			stale := task.Revision
			task, _, err := r.Board().Edit(t.Context(), task.ID, "", team.Edit{Metadata: []byte(`{"n":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tt.change(task.ID, stale); !errors.Is(err, team.ErrRevision) || !errors.Is(err, team.Conflict) {
				t.Errorf("at revision %d, of a task at %d: %v", stale, task.Revision, err)
			}
			if now, err := r.Board().Task(t.Context(), task.ID); err != nil || now.Revision != task.Revision {
				t.Errorf("it was written all the same: %+v, %v", now, err)
			}
			after, err := tt.change(task.ID, task.Revision)
			if err != nil || after.Revision <= task.Revision {
				t.Errorf("at its own revision: %+v, %v", after, err)
			}
			if _, err := r.Board().Cancel(t.Context(), task.ID, "", ""); err != nil && tt.held == (after.Status == team.InProgress) {
				t.Fatal(err) // so that no member holds it when the next one is to be taken
			}
		})
	}
}

// What an agent's process answers tells no revision; whoever asked finds out.
func TestAtByAgentRace(t *testing.T) {
	r := newRig(t)
	ann := r.join(t)
	task := r.add(t, 1)[0]
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: ann.AgentID}, control.Handlers{
		Assign: func(ctx context.Context, a team.Assignment) (team.Task, error) {
			if _, _, err := r.Board().Edit(ctx, task.ID, "", team.Edit{Title: new("meanwhile")}); err != nil {
				return team.Task{}, err
			}
			return r.board.Assign(ctx, a, ann.Holder())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Board().At(task.Revision).Claim(t.Context(), task.ID, ann.AgentID); !errors.Is(err, team.ErrRevision) {
		t.Errorf("claimed at a revision that an edit has moved: %v", err)
	}
	if now, err := r.Board().Task(t.Context(), task.ID); err != nil || now.Status != team.Pending {
		t.Errorf("it was taken all the same: %+v, %v", now, err)
	}
}
