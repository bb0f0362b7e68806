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

	"agentteam/pkg/broker"
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
			return nil, team.Errorf(team.InvalidState, "%s was stored and is gone", task.ID).WithHint("somebody has deleted its record from the bucket")
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

// AddTasks puts tasks on the board, all or none. A team whose goal has ended becomes
// active again, so that somebody leads it. key, unless it is "", makes the call one
// that may be repeated: the same key again creates nothing and returns the tasks of
// the first call (see [board.Board.CreateOnce]), and that they existed. Errors: those of
// the board; NotFound for a role that the team does not have.
func (t *Team) AddTasks(ctx context.Context, key string, tasks ...team.NewTask) (added []team.Task, existed bool, err error) {
	record, err := t.Record(ctx)
	if err != nil {
		return nil, false, err
	}
	tasks = slices.Clone(tasks)
	for i, n := range tasks {
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
			_ = t.board.Close(ctx) // as it was; it stays open if somebody else has added tasks
		}
	}
	if err != nil {
		return nil, false, err
	}
	// Last, so that a team is not woken for tasks that were refused, or, with a key that
	// was used before, for tasks that are over.
	if slices.ContainsFunc(added, func(t team.Task) bool { return t.Status.Open() }) {
		_, err = t.client.registry.Activate(ctx, t.team)
	}
	return added, existed, err
}

func (t *Team) create(ctx context.Context, key string, tasks []team.NewTask) (added []team.Task, existed bool, err error) {
	if key == "" {
		added, err = t.board.Create(ctx, team.UserAgent, tasks...)
		return added, false, err
	}
	return t.board.CreateOnce(ctx, team.UserAgent, key, tasks...)
}

// Edit changes what a pending task says, with a person's rights unless as is set. If
// it says all that already, changed is false and nothing is written.
func (t *Team) Edit(ctx context.Context, id team.TaskID, as team.AgentID, e team.Edit) (task team.Task, changed bool, err error) {
	a, err := t.actor(ctx, as)
	if err != nil {
		return team.Task{}, false, err
	}
	return t.board.Edit(ctx, id, a, e)
}

// Claim gives a free task to a member: a running one is asked, and its answer is
// returned; for a name that nobody runs under, a person's seat is made on first
// use and claims. A claim that is lost leaves no seat behind. Errors: those of the
// claim; Unavailable if the member has a process that does not answer.
func (t *Team) Claim(ctx context.Context, id team.TaskID, as team.AgentID) (team.Task, error) {
	task, _, err := t.take(ctx, as, team.SeatClaim{Task: id})
	return task, err
}

// Assign gives a task to a member with a person's rights, also from somebody else who
// holds it: a running one is asked, a seat takes it as [Team.Claim] does. seated tells
// that there was no member of that name, and a seat was made.
func (t *Team) Assign(ctx context.Context, id team.TaskID, to team.AgentID) (task team.Task, seated bool, err error) {
	return t.take(ctx, to, team.SeatClaim{Task: id, By: team.UserAgent, Take: true})
}

// take has the member of this name take a task, as want says. seated tells that there
// was none and a seat was made.
func (t *Team) take(ctx context.Context, name team.AgentID, want team.SeatClaim) (task team.Task, seated bool, err error) {
	made := &seatMade{}
	for {
		m, runs, err := t.member(ctx, name)
		if err != nil {
			return team.Task{}, false, err
		}
		if runs {
			task, err = t.request(ctx, name, team.Assignment{Task: want.Task, By: team.UserAgent, Take: want.Take})
			return task, false, err
		}
		task, err = t.takeSeated(ctx, name, m, want, made)
		switch {
		case errors.Is(err, errSeatChanged):
			continue
		case err == nil:
			return task, made.now.Revision != 0 && made.before.Revision == 0, nil
		}
		t.unseat(ctx, made, err)
		return team.Task{}, false, err
	}
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
	var taken team.Task // the answer leaves out what is empty
	err = control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Assign, order, &taken, 15*time.Second)
	switch {
	case control.Nobody(err):
		return team.Task{}, team.Errorf(team.Unavailable, "the process of %s does not answer", a).WithHint("it may be restarting: try again, or choose another name")
	case errors.Is(err, team.Busy): // its own hint is for the agent
		return team.Task{}, team.Errorf(team.Busy, "%w", err).
			WithHint("choose another member, or wait until %s is free; a task that it holds can be put back: teamctl tasks release ID", a)
	case err != nil:
		return team.Task{}, err
	}
	// The answer does not tell the revision.
	if now, err := t.board.Get(ctx, order.Task); err == nil && now.Epoch == taken.Epoch && now.Assignee == taken.Assignee {
		return now, nil
	}
	return taken, nil
}

// busy is the refusal to somebody who is busy, unless there is no such task at all.
func (t *Team) busy(ctx context.Context, id team.TaskID, busy error) error {
	if _, err := t.board.Get(ctx, id); errors.Is(err, team.NotFound) {
		return err
	}
	return busy
}

// errSeatChanged: somebody else has written the seat's record, or the task, since they
// were read. The claim is to be begun again.
var errSeatChanged = errors.New("the seat has changed since it was read")

// seatMade is the seat that a call has made: what stood in its place before, and the
// record as the call has written it last. Both are zero if it has made none.
type seatMade struct{ before, now team.Member }

// takeSeated has a seat take a task; it is made if m is none. What a process does by
// having one claim in flight, a seat does by writing its claim into its record first:
// whoever finds it open finishes it before the seat claims anything else, so it holds
// one task also if two terminals claim for it at once.
func (t *Team) takeSeated(ctx context.Context, name team.AgentID, m team.Member, want team.SeatClaim, made *seatMade) (team.Task, error) {
	if m.Revision != made.now.Revision {
		*made = seatMade{} // another terminal has used it since, and may go on
	}
	seat := m
	isSeat := m.Backend == team.Person && m.State != team.Stopped
	if isSeat {
		held, err := t.settleSeat(ctx, m, want)
		switch {
		case err != nil:
			return team.Task{}, err
		case held.ID == want.Task:
			return held, nil
		case held.ID != "":
			return team.Task{}, t.busy(ctx, want.Task, team.Errorf(team.Busy, "%s already holds %s (%s)", name, held.ID, held.Title).
				WithHint("complete it or put it back first: teamctl tasks release %s", held.ID))
		}
	} else {
		seat = sit(m, name)
	}
	h := t.seatHolder(seat)
	task, err := t.board.Get(ctx, want.Task)
	if err != nil {
		return team.Task{}, err
	}
	if task.HeldBy(h) { // since the seat was read, by another terminal
		return task, nil
	}
	if err := t.mayTake(ctx, task, want, h); err != nil {
		return team.Task{}, err
	}
	if name == team.Leader {
		return team.Task{}, team.Errorf(team.Unavailable, "the leader does not answer").WithHint("a person cannot sit in the leader's place")
	}
	want.Revision, want.Op = task.Revision, ulid.Make().String()
	seat.Claim = &want
	if seat, err = t.roster.Put(ctx, seat); err == nil {
		if !isSeat {
			made.before = m
		}
		if !isSeat || made.now.Revision != 0 {
			made.now = seat
		}
		task, err = t.takeAt(ctx, task, want, h)
	}
	if errors.Is(err, team.Conflict) {
		// The task went to somebody else, or another terminal of the seat claims too, or
		// has finished this very claim.
		return team.Task{}, errSeatChanged
	}
	return task, err
}

// sit is a person's seat, a member without a process, in the place of m.
func sit(m team.Member, name team.AgentID) team.Member {
	m.AgentID, m.Backend, m.State, m.Role = name, team.Person, team.Joined, "person"
	m.Incarnation++
	if m.JoinedAt.IsZero() {
		m.JoinedAt = time.Now().UTC()
	}
	return m
}

// unseat takes the seat back that this call made for a claim that ended with err, so
// that a lost claim changes nothing. It stays if somebody else has used it since, or if
// the claim may yet be applied; and if that cannot be done now, since it does no harm.
func (t *Team) unseat(ctx context.Context, made *seatMade, err error) {
	if made.now.Revision == 0 || errors.Is(err, team.Unavailable) || team.CodeOf(err) == "" {
		return
	}
	task, gerr := t.board.Get(ctx, made.now.Claim.Task)
	switch {
	case errors.Is(gerr, team.NotFound):
	case gerr != nil, task.Assignee == made.now.AgentID && task.Incarnation == made.now.Incarnation:
		return // another terminal has finished the claim, or may have
	}
	if made.before.Revision == 0 {
		_ = t.roster.Remove(ctx, made.now)
		return
	}
	m := made.before
	m.Revision, m.Incarnation = made.now.Revision, made.now.Incarnation
	_, _ = t.roster.Put(ctx, m)
}

// seatHolder is a seat as a holder; a person may take a task of any role.
func (t *Team) seatHolder(seat team.Member) team.Holder {
	return team.Holder{Agent: seat.AgentID, Incarnation: seat.Incarnation}
}

// mayTake returns why a seat could not take the task as it was read, or nil.
func (t *Team) mayTake(ctx context.Context, task team.Task, c team.SeatClaim, h team.Holder) error {
	if order, ok := c.Assignment(task); ok {
		return t.board.Assignable(ctx, task, order, h)
	}
	return t.board.Claimable(ctx, task, h)
}

// takeAt makes the write to the task that a seat's claim announces.
func (t *Team) takeAt(ctx context.Context, task team.Task, c team.SeatClaim, h team.Holder) (team.Task, error) {
	if order, ok := c.Assignment(task); ok {
		return t.board.AssignAt(ctx, task, order, h)
	}
	return t.board.ClaimAt(ctx, task, h)
}

// settleSeat returns the task that the seat holds, after finishing a claim that was left
// open, maybe long ago: an assignment that would take the task from somebody is then
// carried out only if that is wanted again, and else can be no more.
func (t *Team) settleSeat(ctx context.Context, seat team.Member, want team.SeatClaim) (team.Task, error) {
	if seat.Claim == nil {
		return team.Task{}, nil
	}
	task, err := t.board.Get(ctx, seat.Claim.Task)
	switch {
	case errors.Is(err, team.NotFound): // deleted, so it holds nothing
		return team.Task{}, nil
	case errors.Is(err, broker.ErrUnreadable): // it may hold the task, once the record is healed
		return team.Task{}, team.Errorf(team.InvalidState, "whether %s still holds %s is not known: %w", seat.AgentID, seat.Claim.Task, err).
			WithHint("stop the seat, then it begins anew: teamctl stop %s", seat.AgentID)
	case err != nil:
		return team.Task{}, err
	}
	h := t.seatHolder(seat)
	if task.Revision == seat.Claim.Revision && (task.Status == team.Pending || seat.Claim.Take && task.Status == team.InProgress) {
		if task.Status == team.Pending || want.Take && want.Task == task.ID {
			task, err = t.takeAt(ctx, task, *seat.Claim, h)
		} else {
			task, err = t.board.Rewrite(ctx, task)
		}
		if errors.Is(err, team.Conflict) {
			return t.settleSeat(ctx, seat, want)
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
		err = t.board.MayComplete(ctx, task, a.Holder, 0)
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
