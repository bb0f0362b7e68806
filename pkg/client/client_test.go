package client_test

import (
	"sync"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// rig is a team as a client sees it, and the same team as its processes do.
type rig struct {
	*client.Team
	client   *client.Client
	bt       *broker.Storage
	registry *registry.Registry
	roster   *roster.Roster
	board    *board.Board
}

func newRig(t *testing.T) *rig {
	t.Helper()
	url := brokertest.Server(t)
	c := connect(t, url)
	tm := makeTeam(t, c, client.NewTeam{ID: "t", Roles: roles("coder")})
	conn := brokertest.Connect(t, url)
	reg, err := registry.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	bt, err := conn.Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Team: tm, client: c, bt: bt, registry: reg, roster: roster.New(bt), board: board.New(bt.Bucket, board.Options{})}
}

func connect(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func makeTeam(t *testing.T, c *client.Client, n client.NewTeam) *client.Team {
	t.Helper()
	tm, err := c.Make(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func roles(names ...string) map[string]team.Role {
	all := map[string]team.Role{}
	for _, n := range names {
		all[n] = team.Role{Name: n, Description: "does the work of a " + n}
	}
	return all
}

func record(t *testing.T, tm *client.Team) team.Team {
	t.Helper()
	r, err := tm.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantCode checks that err carries the code; "" stands for no error.
func wantCode(t *testing.T, what string, err error, want team.Code) {
	t.Helper()
	if got := team.CodeOf(err); got != want || want == "" && err != nil {
		t.Errorf("%s: code %q (%v), want %q", what, got, err, want)
	}
}

// A team that is there stays as it is, except that roles which it lacks are added.
func TestMakeAgain(t *testing.T) {
	r := newRig(t)
	if _, err := r.Goals().Start(t.Context(), "migrate", "/first"); err != nil {
		t.Fatal(err)
	}
	before := record(t, r.Team)
	again := makeTeam(t, r.client, client.NewTeam{ID: "t", Roles: roles("coder"), Workspace: "/second"})
	if after := record(t, again); after.Revision != before.Revision || after.Goal != "migrate" || after.Workspace != "/first" {
		t.Errorf("made again it is %+v, was %+v", after, before)
	}

	more := roles("tester", "coder")
	more["coder"] = team.Role{Name: "coder", Description: "another one"}
	after := record(t, makeTeam(t, r.client, client.NewTeam{ID: "t", Roles: more}))
	if _, err := after.Role("tester"); err != nil || after.Goal != "migrate" {
		t.Errorf("with a role more it is %+v, %v", after, err)
	}
	if got, want := after.Roles["coder"].Description, before.Roles["coder"].Description; got != want {
		t.Errorf("a role that the team had became %q, was %q", got, want)
	}
}

// Of makers that race, one's record is everybody's.
func TestMakersAgree(t *testing.T) {
	url := brokertest.Server(t)
	const makers = 8
	var wg sync.WaitGroup
	var made [makers]team.Team
	for i := range makers {
		c := connect(t, url)
		wg.Go(func() {
			tm, err := c.Make(t.Context(), client.NewTeam{ID: "t", Roles: roles("coder"), Workspace: string(rune('a' + i))})
			if err != nil {
				t.Error(err)
				return
			}
			if made[i], err = tm.Record(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, m := range made {
		if m.Revision == 0 || m.Revision != made[0].Revision || m.Workspace != made[0].Workspace {
			t.Errorf("maker %d has revision %d of workspace %q, the first %d of %q", i, m.Revision, m.Workspace, made[0].Revision, made[0].Workspace)
		}
	}
}

func TestMakeNeedsRole(t *testing.T) {
	c := connect(t, brokertest.Server(t))
	_, err := c.Make(t.Context(), client.NewTeam{ID: "t", Roles: roles("coder"), Needs: "poet"})
	wantCode(t, "make with an unknown role", err, team.NotFound)
	_, err = c.Open(t.Context(), "t")
	wantCode(t, "open the team that was refused", err, team.NotFound)

	makeTeam(t, c, client.NewTeam{ID: "t", Roles: roles("poet")})
	// The team's own role counts, though whoever asks does not know it.
	if tm := makeTeam(t, c, client.NewTeam{ID: "t", Roles: roles("coder"), Needs: "poet"}); tm.ID() != "t" {
		t.Errorf("opened %q", tm.ID())
	}
}

func TestOpenUnknown(t *testing.T) {
	_, err := connect(t, brokertest.Server(t)).Open(t.Context(), "nobody")
	wantCode(t, "open", err, team.NotFound)
}
