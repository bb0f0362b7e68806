package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// maxAbout bounds the description of a session, in characters.
const maxAbout = 200

func (t *core) status(ctx context.Context) (s TeamStatus, err error) {
	record, damaged, err := registry.Shown(ctx, t.team)
	if err != nil {
		return s, err
	}
	s = TeamStatus{ID: record.ID, Status: record.Status, End: record.End, Goal: record.Goal, About: record.Description, Members: map[team.MemberState]int{}}
	if s.About == "" && record.SessionID != "" { // its name is a hash
		s.About = team.Clean(fmt.Sprintf("session %s of %s", record.SessionID, record.UserID), maxAbout)
	}
	if l, ok, err := t.client.leads(ctx, record.ID); err != nil {
		return s, err
	} else if ok {
		s.Leader = l.Process
	}
	members, err := t.roster.List(ctx)
	if err != nil {
		return s, err
	}
	members = slices.DeleteFunc(members, func(m team.Member) bool { return m.State == team.Stopped })
	agents, _ := t.standing(ctx, record, members)
	for _, a := range agents {
		if a.State == team.Stopped { // a member without a process, in a team that has ended
			continue
		}
		s.Members[a.State]++
		s.Storage = cmp.Or(s.Storage, a.Storage)
		if a.Busy() {
			s.Work = append(s.Work, WorkOf(a))
		}
		if a.Parked() {
			s.Parked = append(s.Parked, Parked{a.AgentID, a.Member.State, a.LastError, a.RetryAt})
		}
		if a.Member.State == team.Joined && a.LastError != "" {
			s.Silent = append(s.Silent, Trouble{a.AgentID, a.LastError})
		}
		if a.Member.State == team.Lost && a.LastError != "" {
			s.Lost = append(s.Lost, Trouble{a.AgentID, a.LastError})
		}
	}
	if record.Status == team.Active {
		if err := t.toPerson(ctx, &s); err != nil {
			return s, err
		}
	}
	p, err := Board{t}.List(ctx, team.Query{Limit: 1})
	if err != nil {
		return s, err
	}
	s.Damaged = damages(p.Quarantined, members, damaged)
	s.Tasks, err = t.counts(ctx, p.ByStatus)
	return s, err
}

// Leader returns the record of the team's leader; the zero Member if none is readable.
func (t *Team) Leader(ctx context.Context) (team.Member, error) {
	m, err := t.roster.Get(ctx, team.Leader)
	if errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) {
		return team.Member{}, nil
	}
	return m, err
}

// Unled returns why no process leads the team, as the last one that tried has recorded; "" if
// unknown.
func (t *Team) Unled(ctx context.Context) (why string, err error) {
	m, err := t.Leader(ctx)
	if m.State != team.Lost {
		return "", err
	}
	return m.LastError, err
}

// toPerson fills in the questions, requests and plans for the user.
func (t *core) toPerson(ctx context.Context, s *TeamStatus) error {
	letters, err := Mail{t}.Inbox(ctx, team.UserAgent)
	for _, l := range letters {
		if l.Open {
			s.Questions = append(s.Questions, l)
		}
		if l.Deliveries[0].Status == team.MailDelivered && (l.Open || !l.Asks()) { // an answer to the others has no effect
			s.Unread++
		}
	}
	if err != nil {
		return err
	}
	plans, err := Plans{t}.List(ctx)
	for _, p := range plans {
		switch {
		case !p.Waits():
		case !p.IsPlan():
			s.Requests = append(s.Requests, p)
		case p.Asks() == team.UserAgent:
			s.Plans = append(s.Plans, p)
		}
	}
	s.Waiting = len(s.Questions) + len(s.Requests) + len(s.Plans)
	return err
}

// damages returns the unreadable records of a team: those found on its board, its members, and its
// own.
func damages(met []team.Quarantined, members []team.Member, record error) []team.Quarantined {
	all := slices.Clone(met)
	for _, m := range members {
		if m.State == team.Unreadable {
			all = append(all, team.Quarantined{Key: subject.KeyMember(m.AgentID), Error: m.LastError})
		}
	}
	if record != nil {
		all = append(all, team.Quarantined{Key: subject.KeyTeam, Error: record.Error()})
	}
	slices.SortStableFunc(all, func(a, b team.Quarantined) int { return cmp.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b team.Quarantined) bool { return a.Key == b.Key })
}

// counts returns how many tasks are in each status, as people are shown it: blocked tasks are not
// pending.
func (t *core) counts(ctx context.Context, n team.Counts) (team.Counts, error) {
	if n == nil { // JSON omits the counts of an empty board
		n = team.Counts{}
	}
	if n[team.Pending] == 0 {
		return n, nil
	}
	yes := true
	p, err := Board{t}.List(ctx, team.Query{Blocked: &yes, Limit: 1})
	if err != nil || p.Total == 0 {
		return n, err
	}
	n[team.ShownBlocked] = p.Total
	if n[team.Pending] = max(0, n[team.Pending]-p.Total); n[team.Pending] == 0 {
		delete(n, team.Pending)
	}
	return n, nil
}

// Trouble is why a member does not work: the watchdog's finding about a member that sends
// heartbeats and does not answer, or why the last process of a lost member ended or could not
// begin.
type Trouble struct {
	AgentID team.AgentID `json:"agent_id"`
	Why     string       `json:"why"`
}

// TeamStatus is one team in a Status.
type TeamStatus struct {
	ID      team.TeamID              `json:"id"`
	Status  team.Status              `json:"status"`
	End     string                   `json:"end,omitempty"` // how the goal has ended, in words; "" = it has not
	Goal    string                   `json:"goal"`
	About   string                   `json:"description,omitempty"` // what it is for, or whose session it is
	Leader  string                   `json:"leader"`                // process that leads it; "" = nobody
	Members map[team.MemberState]int `json:"members"`
	Tasks   team.Counts              `json:"tasks"`             // by status; those that are blocked are not pending
	Storage string                   `json:"storage,omitempty"` // why NATS stores nothing of what a member writes, as that says; "" if it does
	Work    []Work                   `json:"work,omitempty"`    // members that are at something, or wait
	Parked  []Parked                 `json:"parked,omitempty"`  // members that wait for somebody to repair their model or their journal
	Damaged []team.Quarantined       `json:"damaged,omitempty"` // records that cannot be read, journals aside
	Silent  []Trouble                `json:"silent,omitempty"`  // members that beat and do not answer
	Lost    []Trouble                `json:"lost,omitempty"`    // members without a process, as far as it is known why

	Questions []StoredMessage `json:"questions,omitempty"` // to the person before the team, that are open
	Requests  []Plan          `json:"requests,omitempty"`  // calls that a person has to allow and lost members that a person may let come back, that wait
	Plans     []Plan          `json:"plans,omitempty"`     // that wait, and that a person has to decide on; those of the leader are not among them
	Waiting   int             `json:"waiting,omitempty"`   // how many of these three wait for the person
	Unread    int             `json:"unread,omitempty"`    // messages to that person, who has written nothing to their sender since
	Usage     *Usage          `json:"usage,omitempty"`     // since the team was made; nil: not counted, see [Client.WithUsage]
}

// Work is what a member does, or waits for.
type Work struct {
	AgentID    team.AgentID     `json:"agent_id"`
	Person     bool             `json:"person,omitempty"`
	State      team.MemberState `json:"state"`
	Task       team.TaskID      `json:"task,omitempty"`
	Tool       string           `json:"tool,omitempty"`        // of the call that runs
	Since      *time.Time       `json:"since,omitempty"`       // when that call, the wait or a person's claim began
	ProgressAt *time.Time       `json:"progress_at,omitempty"` // last turn, tool result or output of a command
	Awaits     team.AgentID     `json:"awaits,omitempty"`      // whose answer it waits for
	Drains     bool             `json:"drains,omitempty"`      // it leaves once it has no task
	Asked      string           `json:"asked,omitempty"`       // the message that is to be answered, or the plan that is to be decided on
	Trouble    string           `json:"trouble,omitempty"`     // why its model gives no answer, while it tries again
	Jobs       []team.Job       `json:"jobs,omitempty"`        // its subagents and commands in the background, the oldest first
}

// WorkOf returns the work of a.
func WorkOf(a Agent) Work {
	return Work{AgentID: a.AgentID, Person: a.Backend == team.Person, State: a.State, Task: a.Task, Tool: a.Tool,
		Since: a.Since, ProgressAt: a.ProgressAt, Awaits: a.Awaits, Drains: a.Drains, Asked: a.Asked, Trouble: a.Trouble, Jobs: a.Jobs}
}

// Parked is a member that waits until a person repairs its model's endpoint, or its journal.
type Parked struct {
	AgentID team.AgentID     `json:"agent_id"`
	State   team.MemberState `json:"state"` // waiting_model or waiting_repair
	Cause   string           `json:"cause"`
	RetryAt *time.Time       `json:"retry_at,omitempty"` // when it asks again
}

// Status describes the server, its processes and its teams.
type Status struct {
	Server   string            `json:"server"`
	Storage  string            `json:"storage,omitempty"` // why the server stores nothing, and what to do; "" if it does
	Model    string            `json:"model"`             // "none" if no leader process has one
	Leaders  []control.Process `json:"leaders"`
	Standbys []control.Process `json:"standbys"` // teammate processes that are no members
	Members  []control.Process `json:"teammates"`
	Teams    []TeamStatus      `json:"teams"`
}

// Status returns the running processes and the states of the teams. Errors: Unavailable if no
// leader process answers; the Status is then filled as far as possible. With [Options.Stored] no
// process is asked.
func (c *Client) Status(ctx context.Context) (Status, error) {
	if c.stored {
		s := noProcesses("")
		teams, err := c.Teams(ctx)
		s.Teams = append(s.Teams, teams...)
		return s, err
	}
	s, perr := c.Processes(ctx)
	if err := c.Storage(ctx); err != nil && ctx.Err() == nil {
		s.Storage = team.Line(err)
	}
	teams, err := c.Teams(ctx)
	s.Teams = append(s.Teams, teams...)
	for _, t := range teams { // this client does not write to their streams
		s.Storage = cmp.Or(s.Storage, t.Storage)
	}
	if err != nil {
		err = errors.Join(perr, err)
	}
	return s, cmp.Or(err, perr)
}

const (
	answerWait = 300 * time.Millisecond // how long answers to a ping of all processes are collected
	leaderWait = 3 * time.Second        // the longest, each wait twice the last, while no leader process answers: it may be busy
)

// noProcesses returns the Status of a server without known processes.
func noProcesses(server string) Status {
	return Status{Server: server, Model: control.NoModel, Leaders: []control.Process{}, Standbys: []control.Process{}, Members: []control.Process{}, Teams: []TeamStatus{}}
}

// Processes returns the running processes, and the model that the leaders have. Teams are left out.
// Errors: Unavailable if no leader process answers.
func (c *Client) Processes(ctx context.Context) (Status, error) {
	s := noProcesses(c.conn.Server())
	leads := func(p control.Process) bool { return p.Kind == "leader" }
	all, err := control.Processes(ctx, c.conn, "", answerWait)
	for wait := 2 * answerWait; err == nil && !slices.ContainsFunc(all, leads) && wait <= leaderWait; wait *= 2 {
		end := time.After(wait) // without a responder the request returns immediately
		all, err = control.Processes(ctx, c.conn, "", wait)
		if err == nil && !slices.ContainsFunc(all, leads) {
			select {
			case <-end:
			case <-ctx.Done():
			}
		}
	}
	if err != nil {
		return s, err
	}
	for _, p := range all {
		switch {
		case leads(p):
			s.Leaders = append(s.Leaders, p)
			if p.Model != "" && p.Model != control.NoModel {
				s.Model = p.Model
			}
		case len(p.Memberships) > 0:
			s.Members = append(s.Members, p)
		default:
			s.Standbys = append(s.Standbys, p)
		}
	}
	if len(s.Leaders) == 0 {
		return s, team.Errorf(team.Unavailable, "no leader process answers at %s", s.Server).
			WithHint("start one: teamctl up, or leader --server %s", s.Server)
	}
	return s, nil
}
