package teamtest

import (
	"context"
	"io"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/leader"
	"agentteam/pkg/cluster/teammate"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/model/rehearsal"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Lease is the lease of the teams that a Cluster makes: short, so that what waits
// for it to run out can be tested.
const Lease = 5 * time.Second

// Cluster is everything that a team needs. Its processes end with the test.
type Cluster struct {
	URL      string         // of NATS
	Endpoint string         // of the model, a base URL
	Client   *client.Client // as a person's
	Config   config.Config  // of its processes

	t testing.TB
}

// Start starts a NATS server and an endpoint that plays script, which is YAML; no
// leader and no teammate yet.
func Start(t testing.TB, script string) *Cluster {
	t.Helper()
	parsed, err := rehearsal.Parse("script.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := rehearsal.Listen("127.0.0.1:0", parsed, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{URL: brokertest.Server(t), Endpoint: endpoint.URL(), t: t}
	c.run("the rehearsal endpoint", endpoint.Run)
	c.Config = config.Config{
		Server: c.URL, Team: team.DefaultTeam, BaseURL: c.Endpoint, Model: "rehearsal", MaxTokens: 8000,
		Lease: Lease, HTTP: "127.0.0.1:0", LogLevel: "info", LogFormat: "text",
	}
	if c.Client, err = client.Connect(t.Context(), client.Options{URL: c.URL}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Client.Close)
	return c
}

// run runs f until the returned stop is called or the test ends; both wait for it.
func (c *Cluster) run(what string, f func(context.Context) error) (stop func()) {
	// Not the test's context: that ends before its cleanups, and all processes
	// would leave at once, in no order.
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			c.t.Errorf("%s: %v", what, err)
		}
	}()
	stop = func() {
		cancel()
		brokertest.Receive(c.t, "the process ends", done)
	}
	c.t.Cleanup(stop)
	return stop
}

// Leader starts a leader process. stop ends it as SIGTERM would, and returns once
// it has ended; it may be called again.
func (c *Cluster) Leader() (stop func()) {
	return c.run("a leader", func(ctx context.Context) error {
		return leader.Run(ctx, leader.Options{Config: c.Config, Stderr: c.log()})
	})
}

// Teammates starts n standbys. stop ends them as SIGTERM would.
func (c *Cluster) Teammates(n int) (stop func()) {
	stops := make([]func(), n)
	for i := range stops {
		stops[i] = c.run("a teammate", func(ctx context.Context) error {
			return teammate.Run(ctx, teammate.Options{Config: c.Config, Stderr: c.log()})
		})
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Named starts a teammate process as one member. stop ends it as SIGTERM would.
func (c *Cluster) Named(name team.AgentID, role string, in team.TeamID) (stop func()) {
	return c.run(string(name), func(ctx context.Context) error {
		o := teammate.Options{Config: c.Config, Name: name, Role: role, Stderr: c.log()}
		o.Config.Team = in
		return teammate.Run(ctx, o)
	})
}

// log is where the processes write: the test's output, shown if it fails.
func (c *Cluster) log() io.Writer { return c.t.Output() }

// Team makes a team with the built-in roles and a workspace of its own.
func (c *Cluster) Team(id team.TeamID) *client.Team {
	c.t.Helper()
	dir := c.t.TempDir()
	roles, err := role.Load(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	t, err := c.Client.Make(c.t.Context(), client.NewTeam{ID: id, Roles: roles.All, Lease: Lease, Workspace: dir})
	if err != nil {
		c.t.Fatal(err)
	}
	return t
}
