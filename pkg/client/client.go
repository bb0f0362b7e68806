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
	"maps"
	"slices"
	"time"

	"agentteam/pkg/approval"
	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/seat"
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
	Once     bool   // an address that refuses is not tried again
	Name     string // of the connection, for those who look at the server; default teamctl
}

// silence: a server is asked this often, and lost after three times. People are told a
// second later, which is within 3 s.
const silence = 450 * time.Millisecond

// Connect connects to a NATS server. It gives up after 3 s. Errors: Unavailable, in
// one line; InvalidArgument for what is no address.
func Connect(ctx context.Context, o Options) (*Client, error) {
	conn, err := broker.Connect(ctx, broker.Options{URL: o.URL, Name: cmp.Or(o.Name, "teamctl"), Replicas: o.Replicas, Once: o.Once, Ping: silence})
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

// Storage tells whether the server stores what it is told, by a small write. Errors:
// Unavailable, [broker.ErrNoRoom] if that is why.
func (c *Client) Storage(ctx context.Context) error { return c.registry.Probe(ctx) }

// Server is the address of the NATS server, without credentials.
func (c *Client) Server() string { return c.conn.Server() }

// Connection calls f when NATS is away and when it is back, until ctx ends. What is
// followed meanwhile goes on by itself.
func (c *Client) Connection(ctx context.Context, f func(connected bool)) { c.conn.Follow(ctx, f) }

// Ready is nil while NATS is connected, else Unavailable. It does not block.
func (c *Client) Ready(ctx context.Context) error { return c.conn.Ready(ctx) }

// Move has the client go on at another address, where its cluster has come back.
func (c *Client) Move(url string) error { return c.conn.Move(url) }

// Team is one team, opened.
type Team struct {
	client  *Client
	team    *broker.Storage
	board   *board.Board
	roster  *roster.Roster
	seats   *seat.Seats
	mailbox *mailbox.Mailbox
	plans   *approval.Plans
	spawner *spawn.Spawner
	at      uint64         // see [Team.At]
	sitting []team.AgentID // see [Team.Seating]
}

// NewTeam says how a team is to be made that is not there yet.
type NewTeam struct {
	ID        team.TeamID
	Roles     map[string]team.Role
	Lease     time.Duration // in whole seconds; default [team.DefaultLease]
	Stall     time.Duration // in whole seconds, without progress until a member is stalled; default [team.DefaultStall]
	Workspace string        // where its members work, unless their process says otherwise; may be ""
	Needs     string        // a role that Roles, or the team if it is there, must have; may be ""
	UserID    string        // with SessionID: the session that the team is, see [Client.MakeSession]; "" = none
	SessionID string
	Seats     []team.AgentID // as with [Team.Seating], for the team that is made or opened
}

// Make makes the team, or opens it; a team that is there stays as it is, but for
// roles that it lacks. Errors: NotFound if nobody knows the role n.Needs, and then
// nothing is made.
func (c *Client) Make(ctx context.Context, n NewTeam) (*Team, error) {
	if _, err := (team.Team{Roles: n.Roles}).Role(n.Needs); n.Needs != "" && err != nil {
		t, oerr := c.Open(ctx, n.ID)
		switch {
		case errors.Is(oerr, team.NotFound):
			return nil, err
		case oerr != nil:
			return nil, oerr
		}
		return t.Seating(n.Seats...), nil // whose record may have a role of its own by that name
	}
	bt, _, err := c.registry.Make(ctx, n.record())
	if err != nil {
		return nil, err
	}
	return c.open(bt).Seating(n.Seats...), nil
}

// record is the team's record as it is made.
func (n NewTeam) record() team.Team {
	return team.Team{
		ID: n.ID, Roles: n.Roles, LeaseSeconds: int(n.Lease / time.Second), StallSeconds: int(n.Stall / time.Second), MaxTeammates: team.DefaultMaxTeammates,
		Policies:  team.Policies{Create: team.CreateAll, Respawn: team.RespawnAlways, Approver: team.ByLeader},
		Workspace: n.Workspace, UserID: n.UserID, SessionID: n.SessionID, CreatedBy: team.UserAgent,
	}
}

// Names returns the small record of every team, in order of name. No team is asked how it
// stands; see [Client.Teams].
func (c *Client) Names(ctx context.Context) ([]team.Small, error) { return c.registry.List(ctx) }

// Open opens a team that is there. Errors: NotFound.
func (c *Client) Open(ctx context.Context, id team.TeamID) (*Team, error) {
	bt, err := c.registry.Storage(ctx, id) // a record that cannot be read does not hide the rest
	if err != nil {
		return nil, err
	}
	return c.open(bt), nil
}

func (c *Client) open(bt *broker.Storage) *Team {
	b, r := board.New(bt.Bucket, board.Options{}), roster.New(bt)
	box := mailbox.New(bt, mailbox.Options{Members: r})
	return &Team{
		client: c, team: bt, board: b, roster: r, seats: seat.New(b, r), mailbox: box,
		plans:   approval.New(bt.Bucket, approval.Options{Tasks: b, Members: r, Post: box}),
		spawner: spawn.New(spawn.Options{Team: bt, Roster: r}),
	}
}

// At returns the same team for one change of a task that must still be at a revision, as it was
// read. At any other the change ends with [team.ErrRevision] (Conflict), and nothing is done.
// It holds for Edit, Claim, Complete, Fail, Release, Assign and Cancel; 0 is any revision.
func (t *Team) At(revision uint64) *Team {
	at := *t
	at.board, at.at = t.board.At(revision), revision
	at.seats = seat.New(at.board, t.roster)
	return &at
}

// Seating returns the same team for a caller that wants a person's seat to be made for each of
// these names that no present member has. It holds for Claim, Assign and AddTasks, which
// otherwise end with NotFound: a name that was mistyped makes no seat.
func (t *Team) Seating(names ...team.AgentID) *Team {
	seating := *t
	seating.sitting = names
	return &seating
}

// maySit reports whether a seat may be made for the name. The leader's is refused by package
// seat, in words of its own.
func (t *Team) maySit(a team.AgentID) bool { return a == team.Leader || slices.Contains(t.sitting, a) }

// SetRoles stores the roles with the team, in place of those that it has by their names.
// Members that work keep what they were started with.
func (t *Team) SetRoles(ctx context.Context, roles map[string]team.Role) error {
	_, err := t.client.registry.Edit(ctx, t.team, func(r *team.Team) {
		if r.Roles == nil {
			r.Roles = map[string]team.Role{}
		}
		maps.Copy(r.Roles, roles)
	})
	return err
}

// ID is the team's name.
func (t *Team) ID() team.TeamID { return t.team.ID }

// Record is the team's record as it stands.
func (t *Team) Record(ctx context.Context) (team.Team, error) { return registry.Record(ctx, t.team) }
