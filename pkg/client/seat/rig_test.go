package seat_test

import (
	"testing"

	"agentteam/pkg/client/seat"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// person is one outside a seat.
var person = team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}

// rig is the seats of a team as one terminal has them, and the stores below.
type rig struct {
	*seat.Seats
	bt     *broker.Storage
	board  *board.Board
	roster *roster.Roster
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return terminal(brokertest.Team(t, "t"))
}

func terminal(bt *broker.Storage) *rig {
	b, r := board.New(bt.Bucket, board.Options{}), roster.New(bt)
	return &rig{seat.New(b, r), bt, b, r}
}

// another is a second terminal, with a connection of its own.
func (r *rig) another(t *testing.T) *rig {
	t.Helper()
	bt, err := brokertest.Connect(t, r.bt.Conn.Server()).Open(t.Context(), r.bt.ID)
	if err != nil {
		t.Fatal(err)
	}
	return terminal(bt)
}

// add puts n tasks on the board.
func (r *rig) add(t *testing.T, n int) []team.Task {
	t.Helper()
	tasks := make([]team.NewTask, n)
	for i := range tasks {
		tasks[i].Title = "做 🎯"
	}
	created, err := r.board.Create(t.Context(), team.UserAgent, tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// take claims a task for a seat.
func (r *rig) take(t *testing.T, id team.TaskID, name team.AgentID) (team.Task, error) {
	task, _, err := r.Take(t.Context(), name, team.SeatClaim{Task: id}, true)
	return task, err
}

// assign gives a task to a seat, also from somebody else who holds it.
func (r *rig) assign(t *testing.T, id team.TaskID, name team.AgentID) (task team.Task, isNew bool, err error) {
	return r.Take(t.Context(), name, team.SeatClaim{Task: id, By: team.UserAgent, Take: true}, true)
}

// claim is take, which must succeed.
func (r *rig) claim(t *testing.T, id team.TaskID, name team.AgentID) team.Task {
	t.Helper()
	task, err := r.take(t, id, name)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// complete completes a task for a seat.
func (r *rig) complete(t *testing.T, id team.TaskID, name team.AgentID) error {
	t.Helper()
	m, err := r.roster.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.board.Complete(t.Context(), id, seat.Holder(m), 0, team.Done{Summary: "done"})
	return err
}

// held returns the tasks in progress, all of which must be by's.
func (r *rig) held(t *testing.T, by team.AgentID) (ids []team.TaskID) {
	t.Helper()
	tasks, err := r.board.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Status != team.InProgress {
			continue
		}
		if task.Assignee != by {
			t.Errorf("%s is held by %s, want %s", task.ID, task.Assignee, by)
		}
		ids = append(ids, task.ID)
	}
	return ids
}

// wantCode checks that err carries the code; "" stands for no error.
func wantCode(t *testing.T, what string, err error, want team.Code) {
	t.Helper()
	if got := team.CodeOf(err); got != want || want == "" && err != nil {
		t.Errorf("%s: code %q (%v), want %q", what, got, err, want)
	}
}
