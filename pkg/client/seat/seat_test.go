package seat_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentteam/pkg/client/seat"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Of many persons who claim one task at once, the winner alone has a seat afterwards.
func TestLostClaimsLeaveNoSeats(t *testing.T) {
	r := newRig(t)
	for _, task := range r.add(t, 8) {
		var wg sync.WaitGroup
		var won atomic.Value
		for i := range 8 {
			name := team.AgentID(fmt.Sprintf("%s-p%d", strings.ToLower(string(task.ID)), i))
			wg.Go(func() {
				switch _, err := r.take(t, task.ID, name); {
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
			other := r.another(t)
			brokertest.Intercept(t, r.bt.Conn, "t", subject.KeyMember("alice"), func(_ int, w brokertest.Write) ([]byte, bool) {
				answer := w.Store(t, r.bt.Conn)
				if _, err := r.board.Claim(t.Context(), tasks[0].ID, team.Holder{Agent: "coder-9", Incarnation: 1}); err != nil {
					t.Error(err)
				}
				if tt.used {
					if _, err := other.take(t, tasks[1].ID, "alice"); err != nil {
						t.Error(err)
					}
				}
				return answer, false
			})
			_, err = r.take(t, tasks[0].ID, "alice")
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
			if task := r.claim(t, tasks[2].ID, "alice"); task.Assignee != "alice" {
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
	if task, seated, err := r.assign(t, tasks[0].ID, "carol"); err != nil || !seated || task.Assignee != "carol" || task.Epoch != 2 || task.UpdatedBy != team.UserAgent {
		t.Errorf("assigned %+v, seated %v, %v", task, seated, err)
	}
	wantCode(t, "completing what was given to another", r.complete(t, tasks[0].ID, "bob"), team.Conflict)
	if task, seated, err := r.assign(t, tasks[1].ID, "bob"); err != nil || seated || task.Assignee != "bob" || task.UpdatedBy != team.UserAgent {
		t.Errorf("assigned %+v, seated %v, %v", task, seated, err)
	}
	_, _, err := r.assign(t, tasks[2].ID, "bob")
	wantCode(t, "assign to a seat that is busy", err, team.Busy)
	_, _, err = r.assign(t, "T-099", "bob")
	wantCode(t, "assign no task to a seat that is busy", err, team.NotFound)
	wantCode(t, "completing it", r.complete(t, tasks[0].ID, "carol"), "")
	if err := r.Stop(t.Context(), "bob", person); err != nil {
		t.Error(err)
	}
	for id, want := range map[team.TaskID][]string{
		tasks[0].ID: {"user created", "bob claimed", "user reassigned from bob to carol", "carol completed"},
		tasks[1].ID: {"user created", "user assigned to bob", "user taken from bob"},
	} {
		copies, err := r.board.History(t.Context(), id)
		steps, _ := explain.History(copies)
		var got []string
		for _, s := range steps {
			got = append(got, fmt.Sprintf("%s %s", s.By, s.What))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("the history of %s is %q, %v; want %q", id, got, err, want)
		}
	}
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
	_, err := r.take(t, tasks[1].ID, "alice")
	wantCode(t, "claim of another", err, team.InvalidState)
	if hint := team.HintOf(err); !strings.Contains(hint, "teamctl stop alice") {
		t.Errorf("hint %q", hint)
	}
	if err := r.Stop(t.Context(), "alice", person); err != nil {
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
				task, _, err := r.assign(t, held.ID, "erin")
				if wantCode(t, "the assignment, repeated", err, ""); task.UpdatedBy != team.UserAgent {
					t.Errorf("it was assigned by %s", task.UpdatedBy)
				}
			case "claimed":
				_, err := r.take(t, held.ID, "erin")
				wantCode(t, "a claim of what another holds", err, team.Conflict)
			case "used for another":
				r.claim(t, tasks[1].ID, "erin")
			case "stopped":
				wantCode(t, "the stop", r.Stop(t.Context(), "erin", person), "")
			}
			if task, err := r.board.Get(t.Context(), held.ID); err != nil || task.Assignee != want || task.Status != team.InProgress || task.Revision == held.Revision {
				t.Errorf("the task is %s's at revision %d, %v; want %s, and that nobody can carry the assignment out any more", task.Assignee, task.Revision, err, want)
			}
		})
	}
}

// A seat's rule is for persons; whoever asks learns that the member is an agent, and
// that nothing was changed.
func TestAgentIsNoSeat(t *testing.T) {
	r := newRig(t)
	id := r.add(t, 1)[0].ID
	m, err := r.roster.Put(t.Context(), team.Member{AgentID: "coder-1", Role: "coder", Backend: team.Pool, State: team.Joined, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.take(t, id, m.AgentID); !errors.Is(err, seat.ErrAgent) {
		t.Errorf("a claim for an agent: %v", err)
	}
	if err := r.Stop(t.Context(), m.AgentID, person); !errors.Is(err, seat.ErrAgent) {
		t.Errorf("the stop of an agent: %v", err)
	}
	if now, err := r.roster.Get(t.Context(), m.AgentID); err != nil || now.Revision != m.Revision {
		t.Errorf("the agent's record is %+v, %v", now, err)
	}
	wantCode(t, "the stop of nobody", r.Stop(t.Context(), "nobody", person), team.NotFound)
}
