package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/agent/control"
	"agentteam/pkg/client/seat"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// person is the actor for a person without a seat: the leader's rights, and no held task.
var person = team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}

// AbsentError reports which of several tasks names a role or a task that does not exist.
type AbsentError struct {
	Task       int         // its position in the call, from 0
	Dependency team.TaskID // what it names; "" = its role
	err        error
}

func (e *AbsentError) Error() string { return e.err.Error() }
func (e *AbsentError) Unwrap() error { return e.err }

// MakeFor is [Client.Make] for a team that will get these tasks. If they name an unknown role or
// task, nothing is made and no role is added. Errors: *AbsentError (NotFound) for an unknown role
// or task; NotFound for an unknown member; InvalidArgument.
func (c *Client) MakeFor(ctx context.Context, n NewTeam, tasks []team.NewTask) (*Team, error) {
	if err := team.ValidatePlan(tasks); err != nil {
		return nil, err
	}
	with := team.Team{Roles: map[string]team.Role{}}
	maps.Copy(with.Roles, n.Roles)
	t, err := c.Open(ctx, n.ID)
	if err == nil {
		var record team.Team
		if record, err = t.Record(ctx); err == nil {
			maps.Copy(with.Roles, record.Roles)
		}
	}
	absent := errors.Is(err, team.NotFound)
	if err != nil && !absent {
		return nil, err
	}
	known := map[team.TaskID]bool{}
	for i, task := range tasks {
		if a := task.ReservedFor; absent && a != "" && a != team.Leader && !slices.Contains(n.Seats, a) {
			return nil, noTaker(n.ID, a)
		}
		if task.Role != "" {
			if _, err := with.Role(task.Role); err != nil {
				return nil, &AbsentError{i, "", err}
			}
		}
		for _, d := range task.Dependencies {
			if known[d] {
				continue
			}
			var err error
			if absent {
				err = team.Errorf(team.NotFound, "dependency %s of %q does not exist: team %s is not there yet", d, task.Title, n.ID).
					WithHint("add that task first, or leave the dependency out")
			} else if _, err = t.board.Get(ctx, d); err != nil {
				err = fmt.Errorf("dependency %s of %q: %w", d, task.Title, err)
			}
			if errors.Is(err, team.NotFound) {
				err = &AbsentError{i, d, err}
			}
			if err != nil {
				return nil, err
			}
			known[d] = true
		}
	}
	return c.Make(ctx, n)
}

// Add puts tasks on the board, all or none. A team whose goal has ended becomes active again, so
// that a process leads it. A key other than "" makes the call repeatable: the same key again
// creates nothing and returns the tasks of the first call (see [board.Board.CreateOnce]), with
// existed set. A task that is reserved for a seat that does not exist yet is reserved for no
// member: assigning it makes the seat. Errors: those of the board; NotFound for a role that the
// team does not have, and for an unknown member, see [Board.Seating]; Unavailable for a member that
// will not take its reserved task.
func (t Board) Add(ctx context.Context, key string, tasks ...team.NewTask) (added []team.Task, existed bool, err error) {
	record, err := t.record(ctx)
	if err == nil {
		err = registry.MayWork(record)
	}
	if err != nil {
		return nil, false, err
	}
	if key != "" { // the request of a repetition need not be possible any more
		before, err := t.board.Created(ctx, key)
		if err != nil || before != nil {
			return before, before != nil, cmp.Or(err, t.activate(ctx, slices.DeleteFunc(slices.Clone(before), func(t team.Task) bool {
				return record.FinishedAt != nil && (!t.Untouched() || t.Revision <= record.EndSeq) // it existed when the goal was ended
			})))
		}
	}
	tasks = slices.Clone(tasks)
	for i, n := range tasks {
		if tasks[i].ReservedFor, err = t.reservable(ctx, record, n.ReservedFor); err != nil {
			return nil, false, err
		}
		if n.Role == "" {
			continue
		}
		role, err := record.Role(n.Role)
		if err != nil {
			return nil, false, err
		}
		tasks[i].Role = role.Name
	}
	added, existed, err = t.create(ctx, key, tasks)
	if errors.Is(err, team.InvalidState) { // a goal has ended, and with it the board was closed
		if err := t.board.Reopen(ctx); err != nil {
			return nil, false, err
		}
		if added, existed, err = t.create(ctx, key, tasks); err != nil && !errors.Is(err, team.Unavailable) {
			_ = t.board.Close(ctx) // as it was; it stays open if another caller has added tasks
		}
	}
	if err != nil {
		return nil, false, err
	}
	// Last, so that no team is woken for tasks that were refused.
	return added, existed, t.activate(ctx, added)
}

// activate makes the team active for added tasks, unless they have all ended.
func (t *core) activate(ctx context.Context, added []team.Task) error {
	if !slices.ContainsFunc(added, func(t team.Task) bool { return t.Status.Open() }) {
		return nil
	}
	_, err := t.client.registry.Activate(ctx, t.team)
	return err
}

// noTaker returns the error for a task to a name that no present member has.
func noTaker(id team.TeamID, a team.AgentID) error {
	return team.Errorf(team.NotFound, "team %s has no member %q now", id, a).
		WithHint("`teamctl agents` lists the members; for a person's seat of that name add --seat, over HTTP \"seat\": true")
}

// reservable returns the name of the member for which a new task is reserved, "" for the leader or
// a seat that does not exist yet. Errors: NotFound; Unavailable.
func (t *core) reservable(ctx context.Context, record team.Team, a team.AgentID) (team.AgentID, error) {
	if a == "" || a == team.Leader {
		return "", nil
	}
	m, err := t.roster.Get(ctx, a)
	if errors.Is(err, team.NotFound) || err == nil && m.State == team.Stopped {
		if !t.maySit(a) {
			return "", noTaker(t.id(), a)
		}
		return "", nil
	}
	if err == nil {
		if why := m.Absent(record.Policies); why != "" {
			err = team.Errorf(team.Unavailable, "%s %s", a, why).WithHint("choose another member")
		}
	}
	return a, err
}

func (t *core) create(ctx context.Context, key string, tasks []team.NewTask) (added []team.Task, existed bool, err error) {
	if key == "" {
		added, err = t.board.Create(ctx, team.UserAgent, tasks...)
		return added, false, err
	}
	return t.board.CreateOnce(ctx, team.UserAgent, key, tasks...)
}

// Edit changes a pending task, with a person's rights unless as is set. If the task has all these
// values already, changed is false and nothing is written.
func (t Board) Edit(ctx context.Context, id team.TaskID, as team.AgentID, e team.Edit) (task team.Task, changed bool, err error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, false, err
	}
	return t.board.Edit(ctx, id, a, e)
}

// Claim gives a free task to a member: a running one is asked, and its answer is returned; a
// person's seat claims. A seat that [Board.Seating] allows is made on first use, and removed again
// if the claim is lost. Errors: those of the claim; NotFound for an unknown member; Unavailable if
// the member has a process that does not answer.
func (t Board) Claim(ctx context.Context, id team.TaskID, as team.AgentID) (team.Task, error) {
	if err := t.here(ctx); err != nil {
		return team.Task{}, err
	}
	task, _, err := t.take(ctx, as, team.SeatClaim{Task: id})
	return task, err
}

// Assign gives a task to a member with a person's rights, also from another holder: a running
// member is asked, a seat takes it as in [Board.Claim]. A pending task that the member cannot take
// now is reserved for it, and returned so; see [board.Board.Give]. seated reports that a seat was
// made because no member had that name ([Board.Seating]). Errors: as of Claim.
func (t Board) Assign(ctx context.Context, id team.TaskID, to team.AgentID) (task team.Task, seated bool, err error) {
	if err := t.here(ctx); err != nil {
		return team.Task{}, false, err
	}
	hand := func(ctx context.Context, order team.Assignment) (task team.Task, err error) {
		task, seated, err = t.At(order.Revision).take(ctx, to, team.SeatClaim{Task: id, By: team.UserAgent, Take: true})
		return task, err
	}
	order := team.Assignment{Task: id, By: team.UserAgent, Revision: t.at}
	m, err := t.roster.Get(ctx, to)
	absent := errors.Is(err, team.NotFound) || err == nil && m.State == team.Stopped
	switch {
	case absent && !t.maySit(to):
		return team.Task{}, false, noTaker(t.id(), to)
	case absent:
		if task, err = t.board.Get(ctx, id); err == nil && task.ReservedFor != "" {
			task, err = t.board.Reserve(ctx, id, "", person)
			if t.at != 0 { // the reservation has changed the revision
				order.Revision = task.Revision
			}
		}
		if err == nil {
			task, err = hand(ctx, order)
		}
		if errors.Is(err, team.Blocked) { // the person takes it once its dependencies are completed
			if seated, err = t.seats.Sit(ctx, to); err == nil {
				task, err = t.board.Reserve(ctx, id, to, person)
			}
		}
		return task, seated, err
	case err != nil:
		return team.Task{}, false, err
	}
	record, err := t.record(ctx)
	if err != nil {
		return team.Task{}, false, err
	}
	task, err = t.board.Give(ctx, m, record.Policies, order, hand)
	return task, seated, err
}

// since returns [team.ErrRevision] in place of a Conflict if the task was written after the
// revision that t requires: a member's process answers with a code and a text only.
func (t *core) since(ctx context.Context, id team.TaskID, err error) error {
	if t.at == 0 || !errors.Is(err, team.Conflict) || errors.Is(err, team.ErrRevision) {
		return err
	}
	task, gerr := t.board.Get(ctx, id)
	if gerr != nil {
		return err
	}
	return cmp.Or(task.At(t.at), err)
}

// take has the member with this name take a task. seated reports that no member had the name and a
// seat was made.
func (t *core) take(ctx context.Context, name team.AgentID, want team.SeatClaim) (task team.Task, seated bool, err error) {
	task, seated, err = t.seats.Take(ctx, name, want, t.maySit(name))
	switch {
	case errors.Is(err, seat.ErrNoMember):
		err = noTaker(t.id(), name)
	case errors.Is(err, seat.ErrAgent):
		task, err = t.request(ctx, name, team.Assignment{Task: want.Task, By: team.UserAgent, Take: want.Take})
	}
	return task, seated, err
}

// request asks the process of a member to take the task at its current epoch.
func (t *core) request(ctx context.Context, a team.AgentID, order team.Assignment) (team.Task, error) {
	task, err := t.board.Get(ctx, order.Task)
	if err != nil {
		return team.Task{}, err
	}
	order.Epoch, order.Revision = task.Epoch, t.at
	taken, err := control.Assign(ctx, t.team, a, order)
	switch {
	case control.NoResponders(err):
		return team.Task{}, team.Errorf(team.Unavailable, "the process of %s does not answer", a).WithHint("it may be restarting: try again, or choose another name")
	case errors.Is(err, team.Busy): // its own hint is for the agent
		return team.Task{}, team.Errorf(team.Busy, "%w", err).
			WithHint("choose another member, or wait until %s is free; a task that it holds can be put back: teamctl tasks release ID", a)
	case err != nil:
		return team.Task{}, t.since(ctx, order.Task, err)
	}
	return taken, nil
}

// here returns Conflict if the team was saved, or is being deleted: a change would be lost. Other
// errors: NotFound, Unavailable.
func (t *core) here(ctx context.Context) error {
	record, err := t.record(ctx)
	switch {
	case errors.Is(err, team.ErrUnreadable): // the board works without the team's record
		return nil
	case err != nil:
		return err
	}
	return registry.MayWork(record)
}

// actor resolves --as: "" is a person with the leader's rights, a seat acts for itself, and no
// caller acts for a running teammate.
func (t *core) actor(ctx context.Context, as team.AgentID) (team.Actor, error) {
	if err := t.here(ctx); err != nil {
		return team.Actor{}, err
	}
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
	return team.Actor{Holder: seat.Holder(m)}, nil
}

// Release puts a task back on the board, for its seat or with a person's rights.
func (t Board) Release(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Release(ctx, id, a, 0, team.Freed{Reason: reason})
}

// Complete completes a task that a person's seat holds. In a team with an integration branch it
// brings no files; see [Board.CompleteWith].
func (t Board) Complete(ctx context.Context, id team.TaskID, as team.AgentID, summary string) (team.Task, error) {
	done := team.Done{Summary: summary}
	task, h, err := t.mayComplete(ctx, id, as, done)
	if err != nil {
		return team.Task{}, err
	}
	if done.Digest, err = t.verify(ctx, task, h, ""); err != nil {
		return t.failCheck(ctx, task, h, err)
	}
	return t.board.Complete(ctx, id, h, task.Epoch, done)
}

// mayComplete returns a task that a person's seat may complete, and the seat as its holder.
func (t *core) mayComplete(ctx context.Context, id team.TaskID, as team.AgentID, done team.Done) (task team.Task, h team.Holder, err error) {
	if as == "" {
		return task, h, team.Errorf(team.PermissionDenied, "only its holder completes a task").WithHint("claim it first: teamctl tasks claim %s --as NAME", id)
	}
	a, err := t.actor(ctx, as)
	if err != nil {
		return task, h, err
	}
	if err := done.Validate(); err != nil {
		return task, h, err
	}
	if task, err = t.board.Get(ctx, id); err == nil {
		err = t.board.MayComplete(ctx, task, a.Holder, 0)
	}
	return task, a.Holder, err
}

// verify checks that the task of a seat is done, in its workspace on this machine; in a team with
// an integration branch, on an export of a commit, which is the head if commit is "". Without such
// a workspace, only a task without check and required deliverable can be completed.
func (t *core) verify(ctx context.Context, task team.Task, h team.Holder, commit gitrepo.Hash) (digest string, err error) {
	record, err := t.record(ctx)
	if err != nil {
		return "", err
	}
	at := workspace.Work{Team: record, Member: team.Member{AgentID: h.Agent, Incarnation: h.Incarnation, Role: h.Role, Backend: team.Person}, Task: task}
	done := func() {}
	if record.HasBranch() {
		var p position
		if p, err = t.position(ctx); err == nil {
			at.Tree, done, err = t.fresh(ctx, p, cmp.Or(commit, p.head), at)
		}
	}
	if err == nil {
		defer done()
		var ws *workspace.Workspace
		var release func()
		if ws, release, err = t.client.workspaces.Open(ctx, at, workspace.Options{}); err == nil {
			defer release()
			return completion.Verify(ctx, task, ws, t.team.Files)
		}
	}
	if task.Check == "" && !task.DeliverableReq {
		return "", nil
	}
	return "", team.Errorf(team.InvalidState, "%s has a check or needs its deliverable, and the team's workspace cannot be used from here: %w", task.ID, err).
		WithHint("complete it where the workspace is")
}

// failCheck records a failed check, and returns err with the consequence for the task.
func (t *core) failCheck(ctx context.Context, task team.Task, h team.Holder, err error) (team.Task, error) {
	if failed, ok := errors.AsType[*completion.CheckError](err); ok {
		after, ferr := t.board.FailCheck(ctx, task.ID, h, task.Epoch, team.Freed{Reason: failed.Output})
		if ferr != nil {
			return team.Task{}, ferr
		}
		err = failed.Counted(after)
	}
	return team.Task{}, err
}

// Fail ends a task as failed.
func (t Board) Fail(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Fail(ctx, id, a, 0, team.Freed{Reason: reason})
}

// Cancel cancels a task, with a person's rights unless as is set.
func (t Board) Cancel(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Cancel(ctx, id, a, reason)
}

// Open returns the tasks that are pending or in progress, in order.
func (t Board) Open(ctx context.Context) ([]team.Task, error) {
	all, err := t.board.All(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(task team.Task) bool { return !task.Status.Open() }), nil
}

// CancelAll cancels these tasks with a person's rights, and returns those that it has cancelled: a
// task that has ended meanwhile stays as it is. Errors: as of [Board.Cancel]; the tasks before it
// are cancelled.
func (t Board) CancelAll(ctx context.Context, tasks []team.Task, reason string) (cancelled []team.Task, err error) {
	for _, task := range tasks {
		after, err := t.Cancel(ctx, task.ID, "", reason)
		switch {
		case err == nil:
			cancelled = append(cancelled, after)
		case !errors.Is(err, team.InvalidState) && !errors.Is(err, team.NotFound):
			return cancelled, err
		}
	}
	return cancelled, nil
}
