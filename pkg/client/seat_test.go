package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentteam/pkg/board"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/control"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// add puts n tasks on the board.
func (r *rig) add(t *testing.T, n int) []team.Task {
	t.Helper()
	tasks := make([]team.NewTask, n)
	for i := range tasks {
		tasks[i].Title = "做 🎯"
	}
	created, _, err := r.AddTasks(t.Context(), "", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// claim claims a task for a seat.
func (r *rig) claim(t *testing.T, id team.TaskID, as team.AgentID) team.Task {
	t.Helper()
	task, err := r.Claim(t.Context(), id, as)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// However many terminals claim for a person at once, the seat holds one task.
func TestSeatHoldsOne(t *testing.T) {
	r := newRig(t)
	tasks := r.add(t, 16)
	var wg sync.WaitGroup
	won := make(chan team.TaskID, len(tasks))
	for _, task := range tasks {
		wg.Go(func() {
			_, err := r.Claim(t.Context(), task.ID, "alice")
			switch {
			case err == nil:
				won <- task.ID
			case !errors.Is(err, team.Busy):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if close(won); len(won) != 1 {
		t.Fatalf("%d claims won, want 1", len(won))
	}
	views, err := r.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, v := range views {
		if v.Status == team.InProgress {
			held++
		}
	}
	if held != 1 {
		t.Errorf("the seat holds %d tasks, want 1", held)
	}
	_, err = r.Complete(t.Context(), <-won, "alice", "done")
	wantCode(t, "the seat completes its task", err, "")
}

func TestSeatRights(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	first := r.add(t, 1)[0].ID
	created, _, err := r.AddTasks(ctx, "", team.NewTask{Title: "second", Dependencies: []team.TaskID{first}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Claim(ctx, created[0].ID, "alice")
	wantCode(t, "a blocked task", err, team.Blocked)
	_, err = r.Claim(ctx, "T-099", "alice")
	wantCode(t, "an unknown task", err, team.NotFound)
	_, err = r.Claim(ctx, first, team.Leader)
	wantCode(t, "in the leader's place", err, team.Unavailable)
	if agents, err := r.Agents(ctx, true); err != nil || len(agents) != 0 {
		t.Errorf("refused claims left seats: %+v, %v", agents, err)
	}
	_, err = r.Claim(ctx, first, "alice")
	wantCode(t, "a free task", err, "")
	_, err = r.Claim(ctx, first, "bob")
	wantCode(t, "a task that another holds", err, team.Conflict)
	_, err = r.Complete(ctx, first, "", "by nobody")
	wantCode(t, "completing without a seat", err, team.PermissionDenied)
	_, err = r.Release(ctx, first, "", "taken back")
	wantCode(t, "a person takes a task back", err, "")
	_, err = r.Complete(ctx, first, "alice", "late")
	wantCode(t, "completing a task that was taken back", err, team.Conflict)
	_, err = r.Claim(ctx, first, "bob")
	wantCode(t, "what was put back", err, "")
	for what, do := range map[string]func() error{
		"completing": func() error { _, err := r.Complete(ctx, first, "alice", "late"); return err },
		"releasing":  func() error { _, err := r.Release(ctx, first, "alice", ""); return err },
		"failing":    func() error { _, err := r.Fail(ctx, first, "alice", ""); return err },
	} {
		err := do()
		wantCode(t, what+" a task that another has taken since", err, team.Conflict)
		if err == nil || !strings.Contains(err.Error(), "it is held by bob") {
			t.Errorf("%s a task that another has taken since: %v", what, err)
		}
	}
	created, _, err = r.AddTasks(ctx, "", team.NewTask{Title: "third"})
	if err != nil {
		t.Fatal(err)
	}
	r.claim(t, created[0].ID, "carol")
	_, err = r.Complete(ctx, first, "carol", "by a stranger")
	wantCode(t, "completing a task that one never held", err, team.PermissionDenied)
}

// made says whether there is a member of this name, in whatever state.
func (r *rig) made(t *testing.T, name team.AgentID) bool {
	t.Helper()
	_, err := r.roster.Get(t.Context(), name)
	if err != nil && !errors.Is(err, team.NotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// Of many persons who claim one task at once, the winner alone has a seat afterwards.
func TestLostClaimsLeaveNoSeats(t *testing.T) {
	r := newRig(t)
	for _, task := range r.add(t, 8) {
		var wg sync.WaitGroup
		var won atomic.Value
		for i := range 8 {
			name := team.AgentID(fmt.Sprintf("%s-p%d", strings.ToLower(string(task.ID)), i))
			wg.Go(func() {
				switch _, err := r.Claim(t.Context(), task.ID, name); {
				case err == nil:
					won.Store(name)
				default:
					wantCode(t, "lost claim", err, team.Conflict)
				}
			})
		}
		wg.Wait()
		members, err := r.roster.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		members = slices.DeleteFunc(members, func(m team.Member) bool {
			return !strings.HasPrefix(string(m.AgentID), strings.ToLower(string(task.ID)))
		})
		if len(members) != 1 || members[0].AgentID != won.Load() {
			t.Fatalf("%s was won by %v, and members are %+v", task.ID, won.Load(), members)
		}
	}
}

// A seat that was made for a claim which was then lost is as it was before, unless
// somebody has used it since.
func TestSeatMadeInVain(t *testing.T) {
	for name, tt := range map[string]struct {
		stopped bool // there was a member of that name once
		used    bool // another terminal claims for the seat meanwhile
		want    team.Code
	}{
		"new": {want: team.Conflict}, "stopped before": {stopped: true, want: team.Conflict},
		"used meanwhile": {used: true, want: team.Busy}, "stopped before, used meanwhile": {stopped: true, used: true, want: team.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			tasks := r.add(t, 3)
			var before team.Member
			var err error
			if tt.stopped {
				before, err = r.roster.Put(t.Context(), team.Member{AgentID: "alice", Role: "coder", Backend: team.Pool, State: team.Stopped, Incarnation: 4})
				if err != nil {
					t.Fatal(err)
				}
			}
			other := connect(t, r.bt.Conn.Server())
			terminal, err := other.Open(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			brokertest.Intercept(t, r.bt.Conn, "t", subject.KeyMember("alice"), func(_ int, w brokertest.Write) ([]byte, bool) {
				answer := w.Store(t, r.bt.Conn)
				if _, err := r.board.Claim(t.Context(), tasks[0].ID, team.Holder{Agent: "coder-9", Incarnation: 1}); err != nil {
					t.Error(err)
				}
				if tt.used {
					if _, err := terminal.Claim(t.Context(), tasks[1].ID, "alice"); err != nil {
						t.Error(err)
					}
				}
				return answer, false
			})
			_, err = r.Claim(t.Context(), tasks[0].ID, "alice")
			wantCode(t, "the lost claim", err, tt.want)
			now, err := r.roster.Get(t.Context(), "alice")
			switch {
			case tt.used:
				if err != nil || now.Backend != team.Person || now.State != team.Joined || now.Claim.Task != tasks[1].ID {
					t.Errorf("the seat in use is now %+v, %v", now, err)
				}
				return
			case tt.stopped:
				if err != nil || now.Backend != before.Backend || now.State != team.Stopped || now.Role != before.Role || now.Claim != nil || now.Incarnation <= before.Incarnation {
					t.Errorf("the member that was there is now %+v, %v", now, err)
				}
			case team.CodeOf(err) != team.NotFound:
				t.Errorf("there is a seat: %+v, %v", now, err)
			}
			if task := r.claim(t, tasks[2].ID, "alice"); !r.made(t, "alice") || task.Assignee != "alice" {
				t.Errorf("the next claim: %+v", task)
			}
		})
	}
}

// A seat takes a task from whoever holds it if it is assigned, and the record says who
// did it.
func TestAssignToSeat(t *testing.T) {
	r := newRig(t)
	tasks := r.add(t, 3)
	r.claim(t, tasks[0].ID, "bob")
	if task, seated, err := r.Assign(t.Context(), tasks[0].ID, "carol"); err != nil || !seated || task.Assignee != "carol" || task.Epoch != 2 || task.UpdatedBy != team.UserAgent {
		t.Errorf("assigned %+v, seated %v, %v", task, seated, err)
	}
	_, err := r.Complete(t.Context(), tasks[0].ID, "bob", "late")
	wantCode(t, "completing what was given to another", err, team.Conflict)
	if task, seated, err := r.Assign(t.Context(), tasks[1].ID, "bob"); err != nil || seated || task.Assignee != "bob" || task.UpdatedBy != team.UserAgent {
		t.Errorf("assigned %+v, seated %v, %v", task, seated, err)
	}
	_, _, err = r.Assign(t.Context(), tasks[2].ID, "bob")
	wantCode(t, "assign to a seat that is busy", err, team.Busy)
	_, _, err = r.Assign(t.Context(), "T-099", "bob")
	wantCode(t, "assign no task to a seat that is busy", err, team.NotFound)
	if _, err := r.Complete(t.Context(), tasks[0].ID, "carol", "done"); err != nil {
		t.Error(err)
	}
	if err := r.Stop(t.Context(), "bob", 0); err != nil {
		t.Error(err)
	}
	for id, want := range map[team.TaskID][]string{
		tasks[0].ID: {"user created", "bob claimed", "user reassigned from bob to carol", "carol completed"},
		tasks[1].ID: {"user created", "user assigned to bob", "user taken from bob"},
	} {
		steps, _, err := r.History(t.Context(), id)
		var got []string
		for _, s := range steps {
			got = append(got, fmt.Sprintf("%s %s", s.By, s.What))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("the history of %s is %q, %v; want %q", id, got, err, want)
		}
	}
}

// Of a member that is busy it is not said so if there is no such task, and what is
// said is meant for the person who asked.
func TestAssignToBusyAgent(t *testing.T) {
	r := newRig(t)
	id := r.add(t, 1)[0].ID
	m := r.join(t)
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, map[subject.Verb]control.Handler{
		subject.Assign: func(context.Context, []byte) (any, error) {
			return nil, team.Errorf(team.Busy, "%s already holds T-005 (x)", m.AgentID).WithHint("complete or release it first")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Assign(t.Context(), id, m.AgentID)
	wantCode(t, "a task", err, team.Busy)
	if hint := team.HintOf(err); !strings.Contains(hint, "choose another member") || err.Error() != "coder-1 already holds T-005 (x)" {
		t.Errorf("a task: %v, hint %q", err, hint)
	}
	_, _, err = r.Assign(t.Context(), "T-099", m.AgentID)
	wantCode(t, "no task", err, team.NotFound)
}

// A seat whose task cannot be read may still hold it, and takes no other. Stopped and
// taken again, it is another incarnation and begins anew.
func TestSeatOfDamagedTask(t *testing.T) {
	r := newRig(t)
	tasks := r.add(t, 2)
	held := r.claim(t, tasks[0].ID, "alice")
	if _, err := r.bt.Bucket.Put(t.Context(), subject.KeyTask(held.ID), []byte("{"), held.Revision); err != nil {
		t.Fatal(err)
	}
	_, err := r.Claim(t.Context(), tasks[1].ID, "alice")
	wantCode(t, "claim of another", err, team.InvalidState)
	if hint := team.HintOf(err); !strings.Contains(hint, "teamctl stop alice") {
		t.Errorf("hint %q", hint)
	}
	if err := r.Stop(t.Context(), "alice", 0); err != nil {
		t.Errorf("stopping the seat: %v", err)
	}
	if task := r.claim(t, tasks[1].ID, "alice"); task.Incarnation == held.Incarnation {
		t.Errorf("it is still incarnation %d", task.Incarnation)
	}
}

// An assignment that was cut off takes the task from its holder if it is repeated, and
// not because the seat is used for something else an hour later, or wants that task
// without taking it from anybody.
func TestCutOffAssignment(t *testing.T) {
	for _, next := range []string{"assigned", "claimed", "used for another", "stopped"} {
		t.Run(next, func(t *testing.T) {
			r := newRig(t)
			tasks := r.add(t, 2)
			held := r.claim(t, tasks[0].ID, "bob")
			seat, err := r.roster.Put(t.Context(), team.Member{AgentID: "erin", Role: "person", Backend: team.Person, State: team.Joined, Incarnation: 1,
				Claim: &team.SeatClaim{Task: held.ID, Revision: held.Revision, Op: "x", By: team.UserAgent, Take: true}})
			if err != nil {
				t.Fatal(err)
			}
			want := held.Assignee
			switch next {
			case "assigned":
				want = seat.AgentID
				task, _, err := r.Assign(t.Context(), held.ID, "erin")
				if wantCode(t, "the assignment, repeated", err, ""); task.UpdatedBy != team.UserAgent {
					t.Errorf("it was assigned by %s", task.UpdatedBy)
				}
			case "claimed":
				_, err := r.Claim(t.Context(), held.ID, "erin")
				wantCode(t, "a claim of what another holds", err, team.Conflict)
			case "used for another":
				r.claim(t, tasks[1].ID, "erin")
			case "stopped":
				wantCode(t, "the stop", r.Stop(t.Context(), "erin", 0), "")
			}
			if task, err := r.board.Get(t.Context(), held.ID); err != nil || task.Assignee != want || task.Status != team.InProgress || task.Revision == held.Revision {
				t.Errorf("the task is %s's at revision %d, %v; want %s, and that nobody can carry the assignment out any more", task.Assignee, task.Revision, err, want)
			}
		})
	}
}

// What an assignment returns is the task as it is afterwards.
func TestAssignedTask(t *testing.T) {
	r := newRig(t)
	id := r.add(t, 1)[0].ID
	r.claim(t, id, "bob")
	if _, err := r.Release(t.Context(), id, "", "an old reason"); err != nil {
		t.Fatal(err)
	}
	m := r.join(t)
	hand := board.NewHand(t.Context(), r.board, m.Holder())
	stop, err := control.Serve(t.Context(), r.bt.Conn, control.Membership{Team: "t", AgentID: m.AgentID}, map[subject.Verb]control.Handler{
		subject.Assign: func(ctx context.Context, data []byte) (any, error) {
			var a team.Assignment
			if err := json.Unmarshal(data, &a); err != nil {
				return nil, err
			}
			task, _, err := hand.Assign(ctx, a)
			return task, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	task, _, err := r.Assign(t.Context(), id, m.AgentID)
	now, gerr := r.board.Get(t.Context(), id)
	if err != nil || gerr != nil || task.Reason != "" || task.Revision != now.Revision || !task.HeldBy(m.Holder()) {
		t.Errorf("assigned %+v, %v; want %+v, %v", task, err, now, gerr)
	}
}
