package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/completion"
	"agentteam/pkg/control"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// person is one outside a seat: the leader's rights, and no task in the hand.
var person = team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}

// Board is what there is on the board, or what changed on it.
type Board struct {
	Tasks []team.TaskView    // in order of id
	Bad   []team.Quarantined // records that cannot be read; the rest of the board works without them
}

// Board reads the whole board.
func (t *Team) Board(ctx context.Context) (Board, error) {
	l, err := t.board.Load(ctx)
	return Board{team.View(l.Tasks), l.Bad}, err
}

// Tasks returns all tasks that can be read, in order of id.
func (t *Team) Tasks(ctx context.Context) ([]team.TaskView, error) {
	b, err := t.Board(ctx)
	return b.Tasks, err
}

// ByID returns the tasks with these ids. One that does not exist, or cannot be read,
// is not among them.
func (t *Team) ByID(ctx context.Context, ids ...team.TaskID) (map[team.TaskID]team.TaskView, error) {
	found := make(map[team.TaskID]team.TaskView, len(ids))
	for part := range slices.Chunk(ids, team.MaxPage) {
		for q, more := (team.Query{IDs: part, Limit: team.MaxPage}), true; more; {
			page, err := t.List(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, v := range page.Tasks {
				found[v.ID] = v
			}
			q.After, more = page.Next, page.Next != ""
		}
	}
	return found, nil
}

// Task returns one task. Errors: NotFound; InvalidState if it cannot be read.
func (t *Team) Task(ctx context.Context, id team.TaskID) (team.TaskView, error) {
	found, err := t.ByID(ctx, id)
	if err != nil {
		return team.TaskView{}, err
	}
	if v, ok := found[id]; ok {
		return v, nil
	}
	task, err := t.board.Get(ctx, id) // says why, or finishes what its creator left half done
	if err != nil {
		return team.TaskView{}, err
	}
	return t.View(ctx, task)
}

// View returns a task, as another call returned it, as it is printed: with what
// follows from its neighbours.
func (t *Team) View(ctx context.Context, task team.Task) (team.TaskView, error) {
	views, err := t.Views(ctx, []team.Task{task})
	if err != nil {
		return team.TaskView{}, err
	}
	return views[0], nil
}

// Views is View for several tasks.
func (t *Team) Views(ctx context.Context, tasks []team.Task) ([]team.TaskView, error) {
	ids := make([]team.TaskID, len(tasks))
	for i, task := range tasks {
		ids[i] = task.ID
	}
	found, err := t.ByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	views := make([]team.TaskView, len(tasks))
	for i, task := range tasks {
		v, ok := found[task.ID]
		if !ok {
			return nil, team.Errorf(team.InvalidState, "%s was stored and is gone", task.ID)
		}
		views[i] = task.View(v.WaitingFor, v.Blocks)
	}
	return views, nil
}

// History tells the life of a task; whole is false if the bucket no longer holds
// its beginning. Errors: NotFound.
func (t *Team) History(ctx context.Context, id team.TaskID) (steps []team.Step, whole bool, err error) {
	copies, err := t.board.History(ctx, id)
	if err != nil {
		return nil, false, err
	}
	steps, whole = team.History(copies)
	return steps, whole, nil
}

// AbsentError says which of several tasks names what is not there.
type AbsentError struct {
	Task       int         // its position in the call, from 0
	Dependency team.TaskID // what it names; "" = its role
	err        error
}

func (e *AbsentError) Error() string { return e.err.Error() }
func (e *AbsentError) Unwrap() error { return e.err }

// MakeFor is [Client.Make] for a team that is to take these tasks. If they name a
// role or a task that is not there, nothing is made and no role is added. Errors:
// *AbsentError (NotFound) for what they name; InvalidArgument.
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
		if task.Role != "" {
			if _, err := with.Role(task.Role); err != nil {
				return nil, &AbsentError{i, "", err}
			}
		}
		for _, d := range task.Dependencies {
			if known[d] {
				continue
			}
			if !absent {
				_, err = t.board.Get(ctx, d)
			}
			if errors.Is(err, team.NotFound) {
				err = &AbsentError{i, d, err}
			}
			if err != nil {
				return nil, fmt.Errorf("dependency %s of %q: %w", d, task.Title, err)
			}
			known[d] = true
		}
	}
	return c.Make(ctx, n)
}

// AddTasks puts tasks on the board, all or none. A team whose goal has ended becomes
// active again, so that somebody leads it. key, unless it is "", makes the call one
// that may be repeated: the same key again creates nothing and returns the tasks of
// the first call (see [board.Board.CreateOnce]). Errors: those of the board; NotFound
// for a role that the team does not have.
func (t *Team) AddTasks(ctx context.Context, key string, tasks ...team.NewTask) ([]team.Task, error) {
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
	created, err := t.create(ctx, key, tasks)
	if errors.Is(err, team.InvalidState) { // a goal has ended, and with it the board was closed
		if err := t.board.Reopen(ctx); err != nil {
			return nil, err
		}
		if created, err = t.create(ctx, key, tasks); err != nil && !errors.Is(err, team.Unavailable) {
			_ = t.board.Close(ctx) // as it was; it stays open if somebody else has added tasks
		}
	}
	if err != nil {
		return nil, err
	}
	// Last, so that a team is not woken for tasks that were refused, or, with a key that
	// was used before, for tasks that are over.
	if slices.ContainsFunc(created, func(t team.Task) bool { return t.Status.Open() }) {
		_, err = t.client.registry.Activate(ctx, t.team)
	}
	return created, err
}

func (t *Team) create(ctx context.Context, key string, tasks []team.NewTask) ([]team.Task, error) {
	if key == "" {
		return t.board.Create(ctx, team.UserAgent, tasks...)
	}
	return t.board.CreateOnce(ctx, team.UserAgent, key, tasks...)
}

// Edit changes what a pending task says, with a person's rights unless as is set.
func (t *Team) Edit(ctx context.Context, id team.TaskID, as team.AgentID, e team.Edit) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Edit(ctx, id, a, e)
}

// Claim gives a free task to a member: a running one is asked, and its answer is
// returned; for a name that nobody runs under, a person's seat is made on first
// use and claims. Errors: those of the claim; Unavailable if the member has a
// process that does not answer.
func (t *Team) Claim(ctx context.Context, id team.TaskID, as team.AgentID) (team.Task, error) {
	m, runs, err := t.member(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	if !runs {
		return t.claimSeated(ctx, id, as, m)
	}
	return t.request(ctx, as, team.Assignment{Task: id, By: team.UserAgent})
}

// Assign gives a task to a member with a person's rights: a running one is asked, and
// takes it also from somebody else; a seat takes it as [Team.Claim] does, so from
// nobody. seated tells that there was no member of that name, and a seat was made.
func (t *Team) Assign(ctx context.Context, id team.TaskID, to team.AgentID) (task team.Task, seated bool, err error) {
	m, runs, err := t.member(ctx, to)
	if err != nil {
		return team.Task{}, false, err
	}
	if !runs {
		before, err := t.board.Get(ctx, id)
		if err != nil {
			return team.Task{}, false, err
		}
		if before.Status == team.InProgress && before.Assignee != to {
			return team.Task{}, false, team.Errorf(team.Conflict, "%s is held by %s, and %s has no process that could take it over", id, before.Assignee, to).
				WithHint("put it back first: teamctl tasks release %s", id)
		}
		task, err = t.claimSeated(ctx, id, to, m)
		return task, err == nil && m.AgentID == "", err
	}
	task, err = t.request(ctx, to, team.Assignment{Task: id, By: team.UserAgent, Take: true})
	return task, false, err
}

// member returns the member of this name, the zero Member if there is none, and
// whether a process is to answer for it.
func (t *Team) member(ctx context.Context, name team.AgentID) (m team.Member, runs bool, err error) {
	m, err = t.roster.Get(ctx, name)
	if errors.Is(err, team.NotFound) {
		return team.Member{}, false, nil
	}
	return m, err == nil && m.State != team.Stopped && m.Backend != team.Person, err
}

// request asks the process of a member to take the task as it is now.
func (t *Team) request(ctx context.Context, a team.AgentID, order team.Assignment) (task team.Task, err error) {
	if task, err = t.board.Get(ctx, order.Task); err != nil {
		return team.Task{}, err
	}
	order.Epoch = task.Epoch
	err = control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Assign, order, &task, 15*time.Second)
	switch {
	case control.Nobody(err):
		return team.Task{}, team.Errorf(team.Unavailable, "the process of %s does not answer", a).WithHint("it may be restarting: try again, or choose another name")
	case err != nil:
		return team.Task{}, err
	}
	return task, nil
}

// claimSeated claims for a seat, which is made if m is none.
func (t *Team) claimSeated(ctx context.Context, id team.TaskID, as team.AgentID, m team.Member) (team.Task, error) {
	if m.Backend != team.Person || m.State == team.Stopped {
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
	return t.board.Release(ctx, id, a, 0, reason, false)
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
	done := team.Done{Summary: summary}
	if err := done.Validate(); err != nil {
		return team.Task{}, err
	}
	task, err := t.board.Get(ctx, id)
	if err == nil {
		err = task.MayComplete(a.Holder, 0)
	}
	if err != nil {
		return team.Task{}, err
	}
	if done.Digest, err = t.verify(ctx, task); err != nil {
		return t.failCheck(ctx, task, a.Holder, err)
	}
	return t.board.Complete(ctx, id, a.Holder, task.Epoch, done)
}

// verify makes sure that the task is done, in the team's workspace on this machine,
// or the current folder if the team has none. Where that folder is not to be had,
// only a task that needs neither check nor deliverable can be completed.
func (t *Team) verify(ctx context.Context, task team.Task) (digest string, err error) {
	record, err := t.Record(ctx)
	if err != nil {
		return "", err
	}
	ws, err := workspace.Open(cmp.Or(record.Workspace, "."), workspace.Options{})
	switch {
	case err == nil:
		defer ws.Close() //nolint:errcheck // read-only handle
		return completion.Verify(ctx, task, ws, t.team.Files)
	case task.Check == "" && !task.DeliverableReq:
		return "", nil
	}
	return "", team.Errorf(team.InvalidState, "%s has a check or needs its deliverable, and the team's workspace cannot be used from here: %w", task.ID, err).
		WithHint("complete it where the workspace is")
}

// failCheck records a failed check, and returns err, which says what was wrong, with
// what becomes of the task.
func (t *Team) failCheck(ctx context.Context, task team.Task, h team.Holder, err error) (team.Task, error) {
	var failed *completion.CheckError
	if errors.As(err, &failed) {
		after, ferr := t.board.FailCheck(ctx, task.ID, h, task.Epoch, failed.Output)
		if ferr != nil {
			return team.Task{}, ferr
		}
		err = failed.Counted(after)
	}
	return team.Task{}, err
}

// Fail ends a task as failed.
func (t *Team) Fail(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Fail(ctx, id, a, 0, reason)
}

// Cancel cancels a task, with a person's rights unless as is set.
func (t *Team) Cancel(ctx context.Context, id team.TaskID, as team.AgentID, reason string) (team.Task, error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, err
	}
	return t.board.Cancel(ctx, id, a, reason)
}
