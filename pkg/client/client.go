// Package client is the interface of people and programs to a cluster and its teams from outside. teamctl
// and the HTTP API use it.
//
// It talks to NATS only and stores nothing on this machine but the cache of [Branch]: any number of clients may
// be active. A program that sets a team a goal and prints its result:
//
//	c, err := client.Connect(ctx, client.Options{URL: "nats://127.0.0.1:4222"}) // as `teamctl status` prints it
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer c.Close()
//	t, err := c.Make(ctx, client.NewTeam{ID: "docs"}) // made if it does not exist yet
//	if err != nil {
//		log.Fatal(err)
//	}
//	goal, err := t.Goals().Start(ctx, "Count the pages of the manual.", "")
//	if err != nil {
//		log.Fatal(err)
//	}
//	end, err := goal.Wait(ctx)
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Println(end.Status, end.Summary)
//
// A team has six handles: [Goals], [Board], [Mail], [Members], [Plans] and [Branch]. All its events are
// one stream, [Team.Feed]; [Goal.Follow] reads the part of a goal. Errors carry a code
// and often a hint: [team.CodeOf], [team.HintOf].
package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/client/seat"
	"agentteam/pkg/execenv"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/election"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Client is a connection to a cluster. Safe for concurrent use.
type Client struct {
	conn       *broker.Conn
	registry   *registry.Registry
	workspaces workspace.Source
	stored     bool   // as of Options.Stored
	unshare    func() // see [Client.Storage]
	charts     charts
	bills      bills
	stills     stills
}

// Options select the server of a client.
type Options struct {
	URL      string // of the NATS server; required without Stored
	Replicas int    // servers that keep what this client makes; default 1
	Once     bool   // an address that refuses is not tried again
	Name     string // of the connection, for those who look at the server; default teamctl

	// Stored is a server inside this process for what a cluster has stored that is down, in place of URL: no
	// process of a team runs, and none is missed. nil: there is none.
	Stored broker.InProcess

	Workspaces workspace.Source // where checks run and files are read; default: the team's folder, else the current one; in a sandbox
}

// silence is the ping interval: a server is lost after three unanswered pings. People are notified
// a second later, which is within 3 s.
const silence = 450 * time.Millisecond

// Connect connects to a NATS server. It gives up after 3 s. Errors: Unavailable, in one line;
// InvalidArgument for an invalid address.
func Connect(ctx context.Context, o Options) (*Client, error) {
	conn, err := broker.Connect(ctx, broker.Options{URL: o.URL, Name: cmp.Or(o.Name, "teamctl"), Replicas: o.Replicas, Once: o.Once, Ping: silence, InProcess: o.Stored})
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if o.Workspaces == nil {
		o.Workspaces = execenv.New(execenv.Options{})
	}
	unshare, err := control.ShareStorage(conn, conn.NATS().NewInbox()) // the name of no process
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Client{conn: conn, registry: reg, workspaces: o.Workspaces, stored: o.Stored != nil, unshare: unshare,
		bills: bills{turn: semaphore.NewWeighted(1), of: map[team.TeamID]*bill{}}}, nil
}

// leads returns the lease on a team; ok is false if no process holds it.
func (c *Client) leads(ctx context.Context, id team.TeamID) (l team.Lease, ok bool, err error) {
	if c.stored { // the lease is of a process that has ended
		return l, false, nil
	}
	return election.Holder(ctx, c.registry.Bucket(), id)
}

// Close ends the connection.
func (c *Client) Close() {
	c.unshare()
	c.conn.Close()
}

// Storage checks that the server accepts writes, by a small write, and by the failures that
// processes have reported since the client connected: a server may refuse the streams of one
// member alone. Errors: Unavailable, [broker.ErrNoRoom] if that is why.
func (c *Client) Storage(ctx context.Context) error { return c.registry.Probe(ctx) }

// Server returns the address of the NATS server, without credentials.
func (c *Client) Server() string { return c.conn.Server() }

// Connection calls f when NATS is disconnected and when it is back, until ctx ends. Reads that
// follow a stream continue automatically after that.
func (c *Client) Connection(ctx context.Context, f func(connected bool)) { c.conn.Follow(ctx, f) }

// Ready returns nil while NATS is connected, else Unavailable. It does not block.
func (c *Client) Ready(ctx context.Context) error { return c.conn.Ready(ctx) }

// Move has the client continue at another address, where its cluster has restarted.
func (c *Client) Move(url string) error { return c.conn.Move(url) }

// Team is one team, opened. Its operations are methods of handles, which are cheap to make:
// [Team.Goals], [Team.Board], [Team.Mail], [Team.Members], [Team.Plans] and [Team.Branch].
type Team struct{ *core }

// core is the state that a team and its handles share.
type core struct {
	client  *Client
	team    *broker.Storage
	board   *board.Board
	roster  *roster.Roster
	seats   *seat.Seats
	mailbox *mailbox.Mailbox
	plans   *approval.Plans
	spawner *spawn.Spawner
	at      uint64         // see [Board.At]
	sitting []team.AgentID // see [Board.Seating]
}

// NewTeam describes a team to make.
type NewTeam struct {
	ID        team.TeamID
	Roles     map[string]team.Role
	Lease     time.Duration // in whole seconds; default [team.DefaultLease]
	Stall     time.Duration // in whole seconds, without progress until a member is stalled; default [team.DefaultStall]
	Policy    team.Policy   // what its members may do
	Choices   team.Choices  // what else is to be another than by default
	Workspace string        // where its members work, unless their process is set otherwise; may be ""
	Needs     string        // a role that Roles, or the team if it is there, must have; may be ""
	UserID    string        // with SessionID: the session that the team is, see [Client.MakeSession]; "" = none
	SessionID string
	Seats     []team.AgentID // as with [Board.Seating], for the team that is made or opened

	WithChanges bool // the line of its first goal begins with the uncommitted changes of the workspace
}

// Make makes the team, or opens it; an existing team stays as it is, but gets the roles that it
// lacks. Errors: NotFound if the role n.Needs is unknown, and then nothing is made.
func (c *Client) Make(ctx context.Context, n NewTeam) (*Team, error) {
	if _, err := (team.Team{Roles: n.Roles}).Role(n.Needs); n.Needs != "" && err != nil {
		t, oerr := c.Open(ctx, n.ID)
		switch {
		case errors.Is(oerr, team.NotFound):
			return nil, err
		case oerr != nil:
			return nil, oerr
		}
		return &Team{t.seating(n.Seats)}, nil // the team's record may have a role by that name
	}
	bt, _, err := c.registry.Make(ctx, n.record())
	if err != nil {
		return nil, err
	}
	return &Team{c.open(bt).seating(n.Seats)}, nil
}

// record returns the team's first record.
func (n NewTeam) record() team.Team {
	t := team.Team{
		ID: n.ID, Roles: n.Roles, LeaseSeconds: int(n.Lease / time.Second), StallSeconds: int(n.Stall / time.Second), MaxTeammates: team.DefaultMaxTeammates,
		Policies: team.Policies{Create: team.CreateAll, Respawn: team.RespawnAlways, Approver: team.ByLeader},
		Policy:   n.Policy, Workspace: n.Workspace, UserID: n.UserID, SessionID: n.SessionID, CreatedBy: team.UserAgent,
	}
	t.Choose(n.Choices)
	if n.WithChanges { // its leader may begin the integration branch before the goal is set
		t.WithChanges = 1
	}
	return t
}

// Names returns the small record of every team, in order of name. No process is asked; see
// [Client.Teams].
func (c *Client) Names(ctx context.Context) ([]team.Small, error) { return c.registry.List(ctx) }

// Open opens an existing team. Errors: NotFound.
func (c *Client) Open(ctx context.Context, id team.TeamID) (*Team, error) {
	bt, err := c.registry.Storage(ctx, id) // a record that cannot be read does not hide the rest
	if err != nil {
		return nil, err
	}
	return c.open(bt), nil
}

func (c *Client) open(bt *broker.Storage) *Team {
	b, r := board.New(bt.Bucket, board.Options{Withdraw: mergequeue.New(bt).Withdraw}), roster.New(bt)
	box := mailbox.New(bt, mailbox.Options{Members: r})
	return &Team{&core{
		client: c, team: bt, board: b, roster: r, seats: seat.New(b, r), mailbox: box,
		plans:   approval.New(bt.Bucket, approval.Options{Tasks: b, Members: r, Post: box}),
		spawner: spawn.New(spawn.Options{Team: bt, Roster: r}),
	}}
}

// At returns the same board for one change of a task that must still be at a revision, as it was
// read. At any other the change returns [team.ErrRevision] (Conflict) and has no effect. It holds
// for Edit, Claim, Complete, Fail, Release, Assign and Cancel; 0 is any revision.
func (t Board) At(revision uint64) Board {
	at := *t.core
	at.board, at.at = t.board.At(revision), revision
	at.seats = seat.New(at.board, t.roster)
	return Board{&at}
}

// Seating returns the same board for a caller that allows a person's seat to be made for each of
// these names that no present member has. It holds for Claim, Assign and Add, which otherwise
// return NotFound: a mistyped name makes no seat.
func (t Board) Seating(names ...team.AgentID) Board { return Board{t.seating(names)} }

func (t *core) seating(names []team.AgentID) *core {
	seating := *t
	seating.sitting = names
	return &seating
}

// maySit reports whether a seat may be made for the name. Package seat refuses the leader's, with
// another error.
func (t *core) maySit(a team.AgentID) bool { return a == team.Leader || slices.Contains(t.sitting, a) }
