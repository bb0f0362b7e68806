package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/control"
	"agentteam/pkg/election"
	"agentteam/pkg/roster"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Agent is a member as it is printed: its record, how it stands, what it works on.
type Agent struct {
	team.Member
	State    team.MemberState `json:"state"` // derived; the record's own says less
	Task     team.TaskID      `json:"task,omitempty"`
	Turn     uint64           `json:"turn"`
	Context  int              `json:"context,omitempty"`  // tokens that its next request holds, about
	Window   int              `json:"window,omitempty"`   // tokens that its model takes; 0: not known
	RetryAt  *time.Time       `json:"retry_at,omitempty"` // when it asks its model again, which refuses it
	Revision uint64           `json:"revision"`
}

// pingWait is how long a member's process may take to answer when it is asked how
// it is; one that does not is shown as lost.
const pingWait = time.Second

// Agents returns all members in order of joining; stopped ones only if all is set.
func (t *Team) Agents(ctx context.Context, all bool) ([]Agent, error) {
	members, err := t.roster.List(ctx)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m team.Member) bool { return m.State == team.Stopped && !all })
	agents := make([]Agent, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { agents[i] = t.agent(ctx, m) })
	}
	wg.Wait()
	return agents, nil
}

// Colours returns the colour of each member, for display: what cannot be read has
// none.
func (t *Team) Colours(ctx context.Context) map[team.AgentID]string {
	members, err := t.roster.List(ctx)
	if err != nil {
		return nil
	}
	colours := make(map[team.AgentID]string, len(members))
	for _, m := range members {
		colours[m.AgentID] = m.Color
	}
	return colours
}

// Agent returns one member.
func (t *Team) Agent(ctx context.Context, a team.AgentID) (Agent, error) {
	m, err := t.roster.Get(ctx, a)
	if err != nil {
		return Agent{}, err
	}
	return t.agent(ctx, m), nil
}

// agent asks the member's process how it is, or looks at what a seat holds.
func (t *Team) agent(ctx context.Context, m team.Member) Agent {
	a := Agent{Member: m, State: m.State, Revision: m.Revision}
	if !m.HasProcess() {
		if m.Claim != nil {
			if task, err := t.board.Get(ctx, m.Claim.Task); err == nil && task.HeldBy(t.seatHolder(m)) {
				a.Task = task.ID
			}
		}
		return a
	}
	b, err := t.ping(ctx, m.AgentID)
	if err != nil || b.Incarnation != m.Incarnation {
		a.State = team.Lost
		return a
	}
	a.State, a.Task, a.Turn, a.Context, a.Window, a.RetryAt = b.State, b.Task, b.Turn, b.Context, b.Window, b.RetryAt
	return a
}

// Compact asks a member to make its conversation shorter, which it does before its
// next model call, or at once if it is idle. Errors: NotFound; Unavailable if its
// process does not answer; InvalidState for one that has no process.
func (t *Team) Compact(ctx context.Context, a team.AgentID) error {
	m, err := t.roster.Get(ctx, a)
	if err != nil {
		return err
	}
	switch {
	case m.Backend == team.Person:
		return team.Errorf(team.InvalidState, "%s is a person and has no conversation", a)
	case !m.HasProcess():
		return team.Errorf(team.InvalidState, "%s is %s: nobody works under that name", a, m.State)
	}
	return control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Compact, nil, nil, compactWait)
}

// compactWait is for the member's process to take the request, not for the work.
const compactWait = 5 * time.Second

func (t *Team) ping(ctx context.Context, a team.AgentID) (b team.Beat, err error) {
	err = control.Request(ctx, t.team.Conn, t.team.ID, a, subject.Ping, "", &b, pingWait)
	return b, err
}

// status also returns the processes of the members, as host/pid.
func (t *Team) status(ctx context.Context) (s TeamStatus, processes []string, err error) {
	record, err := t.Record(ctx)
	if err != nil {
		return s, nil, err
	}
	s = TeamStatus{ID: record.ID, Status: record.Status, Goal: record.Goal, Members: map[team.MemberState]int{}, Tasks: map[team.TaskStatus]int{}}
	if l, ok, err := election.Holder(ctx, t.client.registry.Bucket(), record.ID); err != nil {
		return s, nil, err
	} else if ok {
		s.Leader = l.Process
	}
	agents, err := t.Agents(ctx, false)
	if err != nil {
		return s, nil, err
	}
	for _, a := range agents {
		s.Members[a.State]++
		if a.Parked() {
			s.Parked = append(s.Parked, Parked{a.AgentID, a.LastError, a.RetryAt})
		}
		processes = append(processes, fmt.Sprintf("%s/%d", a.Host, a.PID))
	}
	tasks, err := t.board.All(ctx)
	if err != nil {
		return s, nil, err
	}
	for _, task := range tasks {
		s.Tasks[task.Status]++
	}
	return s, processes, nil
}

// split tells the teammate processes that are members from those that stand by.
func split(all []control.Process, busy map[string]bool) (standbys, members []control.Process) {
	standbys, members = []control.Process{}, []control.Process{}
	for _, p := range all {
		if busy[p.Host+"/"+p.PID] {
			members = append(members, p)
		} else {
			standbys = append(standbys, p)
		}
	}
	return standbys, members
}

// Spawn makes count members of a role; either all of them come up or none stays.
// A team that has ended is active again then, without a goal; a spawn that fails
// leaves it as it was. A name is for one. Errors: NotFound for the role;
// InvalidState at the team's limit; Conflict for the name of a member that is there;
// Unavailable if no process took one.
func (t *Team) Spawn(ctx context.Context, m team.Member, count int) ([]team.Member, error) {
	if m.AgentID != "" && count > 1 {
		return nil, team.Errorf(team.InvalidArgument, "one name cannot be given to %d members", count).WithHint("spawn one of that name, or leave the name out")
	}
	record, err := t.Record(ctx)
	if err != nil {
		return nil, err
	}
	role, err := record.Role(m.Role)
	if err != nil {
		return nil, err
	}
	if role.Name == team.LeaderRole || m.AgentID == team.Leader {
		return nil, team.Errorf(team.InvalidArgument, "a team has one leader; it cannot be spawned").WithHint("choose another role")
	}
	m.Role = role.Name
	if err := t.maySpawn(ctx, m, count, record.MaxTeammates); err != nil {
		return nil, err
	}
	active, err := t.client.registry.Activate(ctx, t.team)
	if err != nil {
		return nil, err
	}
	var spawned []team.Member
	for range count {
		s, err := t.spawner.Spawn(ctx, m, active.MaxTeammates)
		if err != nil {
			return nil, errors.Join(err, t.unspawn(ctx, spawned, record, active))
		}
		spawned = append(spawned, s)
	}
	return spawned, nil
}

// maySpawn refuses what can be seen to fail before anything is changed. The roster
// checks each member again as it writes it.
func (t *Team) maySpawn(ctx context.Context, m team.Member, count, limit int) error {
	if err := m.Validate(); err != nil {
		return err
	}
	members, err := t.roster.List(ctx)
	if err != nil {
		return err
	}
	have := 0
	for _, o := range members {
		if o.Counts() {
			have++
		}
		if o.AgentID == m.AgentID && o.State != team.Stopped {
			return team.Errorf(team.Conflict, "team %s already has a member %s (%s)", t.team.ID, o.AgentID, o.State).
				WithHint("choose another name, or stop it first")
		}
	}
	if have+count > limit {
		return team.Errorf(team.InvalidState, "the team has %d teammates and its limit is %d (max_teammates): %d more are too many", have, limit, count).
			WithHint("stop one, or give the work to those who are there")
	}
	return nil
}

// takeBackWait bounds the undoing of a spawn, whose own time may be over.
const takeBackWait = 15 * time.Second

// unspawn takes back the members of a spawn that failed on the way, and puts the
// team, which the spawn had turned from before into active, to rest again; not if
// there are members of others in it by now.
func (t *Team) unspawn(ctx context.Context, spawned []team.Member, before, active team.Team) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackWait)
	defer cancel()
	var errs []error
	for _, s := range spawned {
		if err := t.spawner.Stop(ctx, t.mailbox, team.UserAgent, s.AgentID, 0); err != nil {
			errs = append(errs, fmt.Errorf("%s was not taken back: %w", s.AgentID, err))
		}
	}
	if before.Status == team.Active {
		return errors.Join(errs...)
	}
	members, err := t.roster.List(ctx)
	if err == nil && !slices.ContainsFunc(members, team.Member.Counts) {
		err = t.client.registry.Revert(ctx, t.team, before, active)
	}
	return errors.Join(append(errs, err)...)
}

// Stop stops one member: it is asked, given wait to leave, then stopped by force;
// a wait of 0 is force at once. The leader cannot be stopped alone.
func (t *Team) Stop(ctx context.Context, a team.AgentID, wait time.Duration) error {
	if a == team.Leader {
		return team.Errorf(team.InvalidArgument, "the leader cannot be stopped alone").WithHint("teamctl stop, without a name, stops the team")
	}
	for {
		m, err := t.roster.Get(ctx, a)
		switch {
		case err != nil:
			return err
		case m.Backend != team.Person:
			return t.spawner.Stop(ctx, t.mailbox, team.UserAgent, a, wait)
		case m.State == team.Stopped:
			return nil
		}
		if err := t.stopSeat(ctx, m); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}

// stopSeat ends a seat after putting back what it holds: it has no process that could do
// so, and no lease after which the watchdog would. Errors: Conflict if the seat was used
// since it was read.
func (t *Team) stopSeat(ctx context.Context, seat team.Member) error {
	held, err := t.settleSeat(ctx, seat, team.SeatClaim{})
	if err == nil && held.ID != "" {
		_, err = t.board.Release(ctx, held.ID, person, held.Epoch, string(seat.AgentID)+" was stopped", false)
	}
	switch {
	case errors.Is(err, broker.ErrUnreadable):
		// Should the record be healed, the watchdog frees the task: its holder has left.
	case err != nil && !board.Lost(err): // else it was taken back meanwhile
		return err
	}
	seat.State, seat.LastError = team.Stopped, ""
	_, err = t.roster.Put(ctx, seat)
	return err
}

// StopTeam ends the team's goal as stopped and sees every member leave; those who
// have not after wait are stopped by force.
func (t *Team) StopTeam(ctx context.Context, wait time.Duration) error {
	members, err := t.roster.List(ctx)
	if err != nil {
		return err
	}
	// Every member watches the record and leaves by itself.
	if _, err := t.client.registry.End(ctx, t.team, team.TeamStopped, "stopped by a person"); err != nil {
		return err
	}
	limit := time.Now().Add(wait)
	for _, m := range members {
		if m.State == team.Stopped || m.Backend == team.Person {
			continue
		}
		for time.Now().Before(limit) && t.roster.Check(ctx, m.AgentID, m.Incarnation) != roster.ErrSuperseded {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
		if err := t.spawner.Stop(ctx, t.mailbox, team.UserAgent, m.AgentID, 0); err != nil {
			return err
		}
	}
	return t.freeAll(ctx)
}

// freeAll puts the tasks back on the board that agents held who could not do so
// themselves; a person's task stays with its seat.
func (t *Team) freeAll(ctx context.Context) error {
	members, err := t.roster.List(ctx)
	if err != nil {
		return err
	}
	tasks, err := t.board.All(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		seat := slices.ContainsFunc(members, func(m team.Member) bool { return m.AgentID == task.Assignee && m.Backend == team.Person })
		if task.Status != team.InProgress || seat {
			continue
		}
		_, err := t.board.Release(ctx, task.ID, person, 0, "the team was stopped", false)
		if err != nil && !errors.Is(err, team.InvalidState) {
			return err
		}
	}
	return nil
}

// Send writes to one member on behalf of a person.
func (t *Team) Send(ctx context.Context, to team.AgentID, text string) (team.Message, []team.AgentID, error) {
	return t.mailbox.Send(ctx, team.Message{Type: team.MsgUser, From: team.UserAgent, To: to, Content: text})
}

// Broadcast writes to everybody on behalf of a person.
func (t *Team) Broadcast(ctx context.Context, text string) (team.Message, []team.AgentID, error) {
	return t.mailbox.Send(ctx, team.Message{Type: team.MsgUser, From: team.UserAgent, To: team.Everyone, Content: text})
}
