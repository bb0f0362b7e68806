package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/control"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// person is one outside a seat: the leader's rights, and no task in the hand.
var person = team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}

// Tasks returns all tasks in order of id.
func (t *Team) Tasks(ctx context.Context) ([]team.TaskView, error) {
	all, err := t.board.All(ctx)
	if err != nil {
		return nil, err
	}
	return team.View(all), nil
}

// Task returns one task. Errors: NotFound.
func (t *Team) Task(ctx context.Context, id team.TaskID) (team.TaskView, error) {
	all, err := t.Tasks(ctx)
	if err != nil {
		return team.TaskView{}, err
	}
	for _, v := range all {
		if v.ID == id {
			return v, nil
		}
	}
	_, err = t.board.Get(ctx, id) // the board's own words for what is not there
	return team.TaskView{}, err
}

// View returns a task, as another call returned it, as it is printed: with what
// follows from its neighbours.
func (t *Team) View(ctx context.Context, task team.Task) (team.TaskView, error) {
	all, err := t.board.All(ctx)
	if err != nil {
		return team.TaskView{}, err
	}
	at := slices.IndexFunc(all, func(o team.Task) bool { return o.ID == task.ID })
	if at < 0 {
		return team.TaskView{}, team.Errorf(team.InvalidState, "%s was stored and is gone", task.ID)
	}
	all[at] = task
	return team.View(all)[at], nil
}

// AddTasks puts tasks on the board. A team whose goal has ended becomes active
// again, so that somebody leads it. Errors: those of [board.Board.Create]; NotFound
// for a role that the team does not have.
func (t *Team) AddTasks(ctx context.Context, tasks ...team.NewTask) ([]team.Task, error) {
	record, err := t.Record(ctx)
	if err != nil {
		return nil, err
	}
	tasks = slices.Clone(tasks)
	for i, n := range tasks {
		if n.Role == "" {
			continue
		}
		role, err := record.Role(n.Role)
		if err != nil {
			return nil, err
		}
		tasks[i].Role = role.Name
	}
	if err := t.board.Reopen(ctx); err != nil {
		return nil, err
	}
	created, err := t.board.Create(ctx, team.UserAgent, tasks...)
	if err != nil {
		return nil, err
	}
	// Last, so that a team is not woken for tasks that were refused.
	_, err = t.client.registry.Activate(ctx, t.team)
	return created, err
}

// Edit changes what a pending task says, with a person's rights unless as is set.
func (t *Team) Edit(ctx context.Context, id team.TaskID, as team.AgentID, e team.Edit) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Edit(ctx, id, a, e)
}

// Claim gives a task to a member: a running one is asked, and its answer is
// returned; for a name that nobody runs under, a person's seat is made on first
// use and claims. Errors: those of the claim; Unavailable if the member has a
// process that does not answer.
func (t *Team) Claim(ctx context.Context, id team.TaskID, as team.AgentID) (team.Task, error) {
	m, err := t.roster.Get(ctx, as)
	switch {
	case errors.Is(err, team.NotFound), err == nil && m.State == team.Stopped:
		// Before a seat is made for it: a claim that is lost changes nothing.
		task, err := t.board.Get(ctx, id)
		if err == nil {
			err = t.board.Claimable(ctx, task, team.Holder{Agent: as})
		}
		seat := m
		if err == nil {
			seat, err = t.sit(ctx, m, as)
		}
		if errors.Is(err, team.Conflict) {
			// Another terminal may have made the seat meanwhile, and claimed.
			if now, gerr := t.roster.Get(ctx, as); gerr == nil && now.Revision != m.Revision {
				return t.Claim(ctx, id, as)
			}
		}
		if err != nil {
			return team.Task{}, err
		}
		m = seat
	case err != nil:
		return team.Task{}, err
	case m.Backend != team.Person:
		var task team.Task
		err := control.Request(ctx, t.team.Conn, t.team.ID, as, subject.Assign, id, &task, 15*time.Second)
		if control.Nobody(err) {
			return task, team.Errorf(team.Unavailable, "the process of %s does not answer", as).WithHint("it may be restarting: try again, or choose another name")
		}
		return task, err
	}
	return t.claimSeat(ctx, id, m)
}

// sit makes a person's seat: a member without a process.
func (t *Team) sit(ctx context.Context, m team.Member, as team.AgentID) (team.Member, error) {
	if as == team.Leader {
		return m, team.Errorf(team.Unavailable, "the leader does not answer").WithHint("a person cannot sit in the leader's place")
	}
	m.AgentID, m.Backend, m.State, m.Role = as, team.Person, team.Joined, "person"
	m.Incarnation++
	if m.JoinedAt.IsZero() {
		m.JoinedAt = time.Now().UTC()
	}
	return t.roster.Put(ctx, m)
}

// claimSeat claims for a seat. What a process does by having one claim in flight,
// a seat does by writing its claim into its record first: whoever finds it open
// finishes it before the seat claims anything else, so it holds one task also if
// two terminals claim for it at once.
func (t *Team) claimSeat(ctx context.Context, id team.TaskID, seat team.Member) (team.Task, error) {
	for {
		held, err := t.settleSeat(ctx, seat)
		if err != nil {
			return team.Task{}, err
		}
		if held.ID == id {
			return held, nil
		}
		if held.ID != "" {
			return team.Task{}, team.Errorf(team.Busy, "%s already holds %s (%s)", seat.AgentID, held.ID, held.Title).
				WithHint("complete or release it first")
		}
		task, err := t.board.Get(ctx, id)
		if err != nil {
			return team.Task{}, err
		}
		if task.HeldBy(t.seatHolder(seat)) { // since the seat was read, by another terminal
			return task, nil
		}
		if err := t.board.Claimable(ctx, task, t.seatHolder(seat)); err != nil {
			return team.Task{}, err
		}
		seat.Claim = &team.SeatClaim{Task: id, Revision: task.Revision, Op: ulid.Make().String()}
		stored, err := t.roster.Put(ctx, seat)
		if err == nil {
			task, err = t.board.ClaimAt(ctx, task, t.seatHolder(stored))
		}
		if !errors.Is(err, team.Conflict) {
			return task, err
		}
		// Another terminal of the seat claims too, or has finished this very claim.
		if seat, err = t.roster.Get(ctx, seat.AgentID); err != nil {
			return team.Task{}, err
		}
	}
}

// seatHolder is a seat as a holder; a person may take a task of any role.
func (t *Team) seatHolder(seat team.Member) team.Holder {
	return team.Holder{Agent: seat.AgentID, Incarnation: seat.Incarnation}
}

// settleSeat returns the task that the seat holds, after finishing a claim that
// was left open.
func (t *Team) settleSeat(ctx context.Context, seat team.Member) (team.Task, error) {
	if seat.Claim == nil {
		return team.Task{}, nil
	}
	task, err := t.board.Get(ctx, seat.Claim.Task)
	if err != nil {
		return team.Task{}, err
	}
	h := t.seatHolder(seat)
	if task.Status == team.Pending && task.Revision == seat.Claim.Revision {
		task, err = t.board.ClaimAt(ctx, task, h)
		if errors.Is(err, team.Conflict) {
			return t.settleSeat(ctx, seat)
		}
		if err != nil {
			return team.Task{}, err
		}
	}
	if task.HeldBy(h) {
		return task, nil
	}
	return team.Task{}, nil
}

// actor resolves --as: nobody is a person with the leader's rights, a seat acts
// for itself, and for a running teammate nobody else acts.
func (t *Team) actor(ctx context.Context, as team.AgentID) (team.Actor, error) {
	if as == "" {
		return person, nil
	}
	m, err := t.roster.Get(ctx, as)
	if err != nil {
		return team.Actor{}, err
	}
	if m.Backend != team.Person {
		return team.Actor{}, team.Errorf(team.PermissionDenied, "%s is an agent and acts for itself", as).
			WithHint("leave --as out to take the task back, or write to it: teamctl send %s", as)
	}
	return team.Actor{Holder: t.seatHolder(m)}, nil
}

// Release puts a task back on the board, for its seat or with a person's rights.
func (t *Team) Release(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	task, err := t.board.Release(ctx, id, a, 0, reason, false)
	if err == nil {
		t.revoke(task)
	}
	return task, err
}

// Complete completes a task that a person's seat holds.
func (t *Team) Complete(ctx context.Context, id team.TaskID, as team.AgentID, summary string) (team.Task, error) {
	if as == "" {
		return team.Task{}, team.Errorf(team.PermissionDenied, "only its holder completes a task").WithHint("claim it first: teamctl tasks claim %s --as NAME", id)
	}
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Complete(ctx, id, a.Holder, 0, summary)
}

// Fail ends a task as failed.
func (t *Team) Fail(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	task, err := t.board.Fail(ctx, id, a, 0, reason)
	if err == nil {
		t.revoke(task)
	}
	return task, err
}

// Cancel cancels a task, with a person's rights unless as is set.
func (t *Team) Cancel(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	task, err := t.board.Cancel(ctx, id, a, reason)
	if err == nil {
		t.revoke(task)
	}
	return task, err
}

// revoke tells the process of a former holder; should it not hear, the board
// refuses its next write all the same.
func (t *Team) revoke(task team.Task) {
	if task.Assignee != "" {
		_ = control.Notify(t.team.Conn, t.team.ID, task.Assignee, subject.Revoked, task.ID)
	}
}
