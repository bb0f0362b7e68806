package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client/seat"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
)

// Agent is a member as it is printed: its record, its state, its work.
type Agent struct {
	team.Member
	State      team.MemberState       `json:"state"` // derived; the record's own says less
	Task       team.TaskID            `json:"task,omitempty"`
	Turn       uint64                 `json:"turn"`
	Tokens     int                    `json:"tokens"`                // that its turns have used
	Alias      string                 `json:"alias,omitempty"`       // of its model, as it answered last
	Model      string                 `json:"model,omitempty"`       // the alias's, by the endpoint's name
	Tool       string                 `json:"tool,omitempty"`        // of the call that runs
	WaitsFor   team.WaitFor           `json:"waits_for,omitempty"`   // "" = it waits for nothing, or for what is not known
	About      string                 `json:"about,omitempty"`       // the first words of what it waits for
	Since      *time.Time             `json:"since,omitempty"`       // when that call, the wait or a person's claim began
	ProgressAt *time.Time             `json:"progress_at,omitempty"` // last turn, tool result or output of a command
	Awaits     team.AgentID           `json:"awaits,omitempty"`      // whose answer it waits for
	Drains     bool                   `json:"drains,omitempty"`      // it leaves once it has no task
	Project    []team.InstructionFile `json:"project,omitempty"`     // the files with instructions that the repository gives it
	Asked      string                 `json:"asked,omitempty"`       // the message that is to be answered, or the plan that is to be decided on
	Trouble    string                 `json:"trouble,omitempty"`     // why its model gives no answer, while it tries again
	Storage    string                 `json:"storage,omitempty"`     // why NATS has not stored lately what it wrote
	Context    int                    `json:"context,omitempty"`     // tokens that its next request holds, about
	Window     int                    `json:"window,omitempty"`      // tokens that its model takes; 0: not known
	RetryAt    *time.Time             `json:"retry_at,omitempty"`    // when it asks its model again, which refuses it
	Jobs       []team.Job             `json:"jobs,omitempty"`        // its subagents and commands in the background, the oldest first
	Revision   uint64                 `json:"revision"`
}

// Busy reports whether a works, or waits for an answer.
func (a Agent) Busy() bool {
	return a.Task != "" || a.Awaits != "" || a.Trouble != "" || a.State == team.Running || a.State == team.Stalled
}

// pingWait bounds the wait for a member's heartbeat; without one its state is unknown: a machine
// may be busy.
const pingWait = time.Second

// List returns all members in order of joining; stopped ones only if all is set. In a team that has
// ended no member is lost: a member without a process has stopped.
func (t Members) List(ctx context.Context, all bool) ([]Agent, error) {
	members, err := t.roster.List(ctx)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m team.Member) bool { return m.State == team.Stopped && !all })
	agents, err := t.withPasts(ctx, members)
	return slices.DeleteFunc(agents, func(a Agent) bool { return a.State == team.Stopped && !all }), err
}

// standing asks the processes of all members, at the same time, for their state. gone are the
// members without a process that answers.
func (t *core) standing(ctx context.Context, record team.Team, members []team.Member) (agents []Agent, gone []bool) {
	agents, gone = make([]Agent, len(members)), make([]bool, len(members))
	merging := t.merging(ctx, record)
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { agents[i], gone[i] = t.agent(ctx, record, m, merging) })
	}
	wg.Wait()
	if record.Status != team.Active || t.client.stored { // no member needs a process then
		for i, a := range agents {
			if a.State == team.Lost || a.State == team.Unknown {
				agents[i].State = team.Stopped
			}
		}
	}
	return agents, gone
}

// withPasts is standing; the usage of members without a process is read from their journals.
func (t *core) withPasts(ctx context.Context, members []team.Member) ([]Agent, error) {
	record, _, err := registry.Shown(ctx, t.team)
	if err != nil {
		return nil, err
	}
	agents, gone := t.standing(ctx, record, members)
	if !slices.Contains(gone, true) {
		return agents, nil
	}
	var past []team.AgentID
	for i := range agents {
		if gone[i] {
			past = append(past, agents[i].AgentID)
		}
	}
	pasts, err := usage.Members(ctx, t.team, past...)
	for i := range agents {
		if p := pasts[agents[i].AgentID]; gone[i] && p.Turns > 0 {
			agents[i].Turn, agents[i].Tokens, agents[i].Alias, agents[i].Model = p.Turns, p.Tokens(), p.Alias, p.Model
		}
	}
	return agents, err
}

// Records returns the records of all members, those that have left included, in order of joining.
// No process is asked; see [Members.List].
func (t Members) Records(ctx context.Context) ([]team.Member, error) { return t.roster.List(ctx) }

// Get returns one member.
func (t Members) Get(ctx context.Context, a team.AgentID) (Agent, error) {
	m, err := t.roster.Get(ctx, a)
	if err != nil {
		return Agent{}, t.unknown(ctx, a, err)
	}
	agents, err := t.withPasts(ctx, []team.Member{m})
	if err != nil {
		return Agent{}, err
	}
	return agents[0], nil
}

// unknown returns err; for an unknown name, with a hint to the most similar one.
func (t *core) unknown(ctx context.Context, a team.AgentID, err error) error {
	if !errors.Is(err, team.NotFound) {
		return err
	}
	members, lerr := t.roster.List(ctx)
	if lerr != nil {
		return err
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = string(m.AgentID)
	}
	like := team.Similar(string(a), names)
	if like == "" {
		return err
	}
	return team.Errorf(team.NotFound, "%w", err).WithHint("did you mean %s? %s", like, team.HintOf(err))
}

// agent asks the member's process for its state, or reads the task of a seat. gone reports that no
// process answers.
func (t *core) agent(ctx context.Context, record team.Team, m team.Member, merging map[team.TaskID]mergequeue.Entry) (a Agent, gone bool) {
	a = Agent{Member: m, State: m.State, Alias: m.Model, Revision: m.Revision}
	waits := func(id team.TaskID, epoch uint64) {
		if e := merging[id]; e.State == mergequeue.Waiting && e.Epoch == epoch {
			a.WaitsFor, a.Since = team.ForMerge, &e.At
		}
	}
	if !m.HasProcess() {
		if m.Claim != nil {
			if task, err := t.board.Get(ctx, m.Claim.Task); err == nil && task.HeldBy(seat.Holder(m)) {
				a.Task, a.Since = task.ID, task.ClaimedAt
				waits(task.ID, task.Epoch)
			}
		}
		return a, m.Backend != team.Person && m.State != team.Created
	}
	b, err := control.Ping(ctx, t.team, m.AgentID, pingWait)
	switch {
	case err != nil && !control.NoResponders(err):
		a.State = team.Unknown
		return a, true
	case err != nil || b.Incarnation != m.Incarnation:
		a.State = team.Lost
		return a, true
	}
	a.State = b.State
	if b.Stalled(record.Stall()) {
		a.State = team.Stalled
	}
	a.Task, a.Turn, a.Tokens, a.Context, a.Window, a.RetryAt = b.Task, b.Turn, b.Tokens, b.Context, b.Window, b.RetryAt
	a.Alias, a.Model, a.Trouble, a.Awaits, a.Asked, a.Drains, a.Project = cmp.Or(b.Alias, a.Alias), b.Model, b.Trouble, b.Awaits, b.Asked, b.Drains, b.Project
	a.Storage, a.Jobs = b.Storage, b.Jobs
	for _, j := range b.Jobs {
		a.Tokens += j.Tokens // the heartbeat's tokens include those of jobs that have ended
	}
	if a.Tool, a.Since = b.Tool, b.ToolAt; b.State.Waits() {
		a.Since = &b.ProgressAt
	}
	a.About = b.About
	if a.WaitsFor = b.WaitsFor(); a.WaitsFor == team.ForPlan {
		if asked, err := t.plans.Get(ctx, b.Asked); err == nil && !asked.IsPlan() {
			a.WaitsFor = team.ForPermission
		}
	}
	if b.Tool != "" {
		waits(b.Task, b.Epoch)
	}
	for _, e := range merging { // its process was restarted meanwhile, and holds no task until the merge ends
		if e.Agent == m.AgentID && e.Incarnation < m.Incarnation && b.Task == "" {
			a.Task = e.Task
			waits(e.Task, e.Epoch)
		}
	}
	if !b.ProgressAt.IsZero() {
		a.ProgressAt = &b.ProgressAt
	}
	return a, false
}

// merging returns the queue's entries by task; empty if they cannot be read. It is read once for
// all members.
func (t *core) merging(ctx context.Context, record team.Team) map[team.TaskID]mergequeue.Entry {
	all := map[team.TaskID]mergequeue.Entry{}
	if !record.HasBranch() {
		return all
	}
	waiting, _ := mergequeue.New(t.team).Waiting(ctx)
	for _, e := range waiting {
		all[e.Task] = e
	}
	return all
}

// Compact asks a member to shorten its conversation, which it does before its next model call, or
// immediately if it is idle. Errors: NotFound; Unavailable if its process does not answer;
// InvalidState for a member without a process.
func (t Members) Compact(ctx context.Context, a team.AgentID) error {
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
	return control.Compact(ctx, t.team, a)
}
