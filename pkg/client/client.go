// Package client is all that a person or a program may ask of a cluster and its
// teams from outside: make a team, set it a goal and follow it, work on its board,
// write to its members, spawn and stop them. teamctl goes through it, and later
// the HTTP API.
//
// It talks NATS only and keeps nothing: any number of clients may be at work.
package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/control"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/spawn"
	"agentteam/pkg/team"
)

// Client is a connection to a cluster. Safe for concurrent use.
type Client struct {
	conn     *broker.Conn
	registry *registry.Registry
}

// Options say what to connect to.
type Options struct {
	URL      string // of the NATS server; required
	Replicas int    // servers that keep what this client makes; default 1
}

// Connect connects to a NATS server. It gives up after 3 s. Errors: Unavailable, in
// one line; InvalidArgument for what is no address.
func Connect(ctx context.Context, o Options) (*Client, error) {
	conn, err := broker.Connect(ctx, broker.Options{URL: o.URL, Name: "teamctl", Replicas: o.Replicas})
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Client{conn, reg}, nil
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// Server is the address of the NATS server, without credentials.
func (c *Client) Server() string { return c.conn.Server() }

// Connection calls f when NATS is away and when it is back, until ctx ends. What is
// followed meanwhile goes on by itself.
func (c *Client) Connection(ctx context.Context, f func(connected bool)) { c.conn.Follow(ctx, f) }

// Team is one team, opened.
type Team struct {
	client  *Client
	team    *broker.Team
	board   *board.Board
	roster  *roster.Roster
	mailbox *mailbox.Mailbox
	spawner *spawn.Spawner
}

// NewTeam says how a team is to be made that is not there yet.
type NewTeam struct {
	ID        team.TeamID
	Roles     map[string]team.Role
	Lease     time.Duration // in whole seconds; default [team.DefaultLease]
	Workspace string        // where its members work, unless their process says otherwise; may be ""
	Needs     string        // a role that Roles, or the team if it is there, must have; may be ""
}

// Make makes the team, or opens it; a team that is there stays as it is, but for
// roles that it lacks. Errors: NotFound if nobody knows the role n.Needs, and then
// nothing is made.
func (c *Client) Make(ctx context.Context, n NewTeam) (*Team, error) {
	if _, err := (team.Team{Roles: n.Roles}).Role(n.Needs); n.Needs != "" && err != nil {
		t, oerr := c.Open(ctx, n.ID)
		if errors.Is(oerr, team.NotFound) {
			return nil, err
		}
		return t, oerr // whose record may have a role of its own by that name
	}
	bt, _, err := c.registry.Make(ctx, team.Team{
		ID: n.ID, Roles: n.Roles, LeaseSeconds: int(n.Lease / time.Second), MaxTeammates: team.DefaultMaxTeammates,
		Policies:  team.Policies{Create: "all", Respawn: team.RespawnAlways, Approver: "leader"},
		Workspace: n.Workspace, CreatedBy: team.UserAgent,
	})
	if err != nil {
		return nil, err
	}
	return c.open(bt), nil
}

// Open opens a team that is there. Errors: NotFound.
func (c *Client) Open(ctx context.Context, id team.TeamID) (*Team, error) {
	bt, _, err := c.registry.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.open(bt), nil
}

func (c *Client) open(bt *broker.Team) *Team {
	r := roster.New(bt)
	return &Team{
		client: c, team: bt, roster: r,
		board:   board.New(bt, board.Options{}),
		mailbox: mailbox.New(bt, mailbox.Options{Members: r}),
		spawner: spawn.New(spawn.Options{Team: bt, Roster: r, Logger: slog.New(slog.DiscardHandler)}),
	}
}

// ID is the team's name.
func (t *Team) ID() team.TeamID { return t.team.ID }

// Record is the team's record as it stands.
func (t *Team) Record(ctx context.Context) (team.Team, error) { return registry.Record(ctx, t.team) }

// TeamStatus is one team in a Status.
type TeamStatus struct {
	ID      team.TeamID              `json:"id"`
	Status  team.Status              `json:"status"`
	Goal    string                   `json:"goal"`
	Leader  string                   `json:"leader"` // process that leads it; "" = nobody
	Members map[team.MemberState]int `json:"members"`
	Tasks   map[team.TaskStatus]int  `json:"tasks"`
	Parked  []Parked                 `json:"parked,omitempty"` // members whose model refuses them
}

// Parked is a member that waits for somebody to mend its model's endpoint.
type Parked struct {
	AgentID team.AgentID `json:"agent_id"`
	Cause   string       `json:"cause"`
	RetryAt *time.Time   `json:"retry_at,omitempty"` // when it asks again
}

// Status is what runs.
type Status struct {
	Server   string            `json:"server"`
	Model    string            `json:"model"` // "none" if no leader process has one
	Leaders  []control.Process `json:"leaders"`
	Standbys []control.Process `json:"standbys"` // teammate processes that are no members
	Members  []control.Process `json:"teammates"`
	Teams    []TeamStatus      `json:"teams"`
}

// answerWait is how long answers to "who runs?" are collected.
const answerWait = 300 * time.Millisecond

// Processes finds who runs, and the model that the leaders have. Errors:
// Unavailable if no leader process answers.
func (c *Client) Processes(ctx context.Context) (Status, error) {
	s := Status{Server: c.conn.Server(), Model: control.NoModel, Leaders: []control.Process{}, Standbys: []control.Process{}, Members: []control.Process{}, Teams: []TeamStatus{}}
	var err error
	if s.Leaders, err = control.Processes(ctx, c.conn, "leader", answerWait); err != nil {
		return s, err
	}
	for _, p := range s.Leaders {
		if p.Model != "" && p.Model != control.NoModel {
			s.Model = p.Model
		}
	}
	all, err := control.Processes(ctx, c.conn, "teammate", answerWait)
	if err != nil {
		return s, err
	}
	s.Standbys = all
	if len(s.Leaders) == 0 {
		return s, team.Errorf(team.Unavailable, "no leader process answers at %s", s.Server).
			WithHint("start one: teamctl up, or leader --server %s", s.Server)
	}
	return s, nil
}

// Status finds who runs and how the teams stand. Errors: Unavailable if no leader
// process answers; the Status is then filled as far as possible.
func (c *Client) Status(ctx context.Context) (Status, error) {
	s, perr := c.Processes(ctx)
	small, err := c.registry.List(ctx)
	if err != nil {
		return s, errors.Join(perr, err)
	}
	slices.SortFunc(small, func(a, b team.Small) int { return cmp.Compare(a.ID, b.ID) })
	busy := map[string]bool{}
	for _, sm := range small {
		t, err := c.Open(ctx, sm.ID)
		if errors.Is(err, team.InvalidState) { // part of its storage is gone: the others are shown all the same
			s.Teams = append(s.Teams, TeamStatus{ID: sm.ID, Status: "broken", Goal: err.Error()})
			continue
		}
		if err != nil {
			return s, errors.Join(perr, err)
		}
		ts, processes, err := t.status(ctx)
		if err != nil {
			return s, errors.Join(perr, err)
		}
		for _, p := range processes {
			busy[p] = true
		}
		s.Teams = append(s.Teams, ts)
	}
	s.Standbys, s.Members = split(s.Standbys, busy)
	return s, perr
}
