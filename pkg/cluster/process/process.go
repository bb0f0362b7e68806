// Package process is the common base of every process of agentteam: its log, its metrics and health
// pages, its connection to NATS, its model client, and a name by which others can find it.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/engine"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv"
	"agentteam/pkg/model/router"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool/workspace"
)

// connectWait is how long a process tries to reach NATS before it gives up with one clear line; its
// supervisor restarts it with backoff.
const connectWait = 10 * time.Second

// announceAfter is when it logs that it waits.
const announceAfter = 500 * time.Millisecond

// Process is one running process. Its fields must not be changed.
type Process struct {
	ID      string // unique; names the process in leases
	Config  config.Config
	Log     *slog.Logger
	Metrics *telemetry.Registry
	Conn    *broker.Conn

	Workspaces *execenv.Source // its members' workspaces, and the runner of their commands

	models    *router.Router
	lessons   *registry.Lessons
	telling   sync.Mutex      // one announcement at a time
	announced control.Process // the last announcement
	hide      func()          // withdraws it
	http      *telemetry.Server
	httpDone  chan struct{}
	stopPages func()
	stop      []func() // further steps of Close, last first
}

// Open starts the pages, connects to NATS and announces the process as kind ("leader" or
// "teammate"). The caller must Close it.
func Open(ctx context.Context, kind string, cfg config.Config, stderr io.Writer) (*Process, error) {
	log, err := telemetry.NewLogger(stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "%w", err)
	}
	host, _ := os.Hostname()
	p := &Process{
		ID: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), ulid.Make()), Config: cfg,
		Log: log.With("process", kind, "pid", os.Getpid()), Metrics: telemetry.NewRegistry(), httpDone: make(chan struct{}), lessons: registry.NewLessons(),
	}
	p.Workspaces = execenv.New(execenv.Options{Dir: cfg.Workspace, Sandbox: cfg.Sandbox, Limits: cfg.Limits, Settings: cfg.File(), Data: cfg.DataDir, Organisation: cfg.Organisation, Never: p.ofTeam, Logger: p.Log, Metrics: p.Metrics})
	if err := p.open(ctx, kind); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) open(ctx context.Context, kind string) error {
	if p.Config.Workspace != "" {
		// Reported once, at the start, instead of by every member that this process becomes.
		_, release, err := p.Workspaces.Open(ctx, workspace.Work{}, workspace.Options{})
		if err != nil {
			return err
		}
		release()
	}
	defer p.try(ctx)()
	var conn atomic.Pointer[broker.Conn]
	var err error
	p.http, err = telemetry.Listen(telemetry.Options{Addr: p.Config.HTTP, Metrics: p.Metrics, Logger: p.Log,
		Ready: func(ctx context.Context) error {
			if c := conn.Load(); c != nil {
				return c.Stores(ctx)
			}
			return errors.New("NATS is not connected yet")
		}})
	if err != nil {
		return err
	}
	pages, stopPages := context.WithCancel(context.WithoutCancel(ctx))
	p.stopPages = stopPages
	go func() {
		defer close(p.httpDone)
		if err := p.http.Run(pages); err != nil {
			p.Log.Error("health pages", "err", err)
		}
	}()
	routes := p.Config.Routes()
	if p.models, err = router.New(routes, router.Options{Logger: p.Log, Lessons: p.lessons}); err != nil {
		return err
	}
	p.announceModels(p.Config)
	waiting := time.AfterFunc(announceAfter, func() { p.Log.Info("waiting for NATS", "url", p.shownServer(), "at_most", connectWait) })
	p.Conn, err = broker.Connect(ctx, broker.Options{URL: p.Config.Server, Name: "agentteam " + kind, Wait: connectWait, WaitForRoom: true, Replicas: p.Config.Replicas, Logger: p.Log, Metrics: p.Metrics})
	waiting.Stop()
	if err != nil {
		return err
	}
	conn.Store(p.Conn)
	confinement := p.confinement(ctx)
	err = p.announce(func(told *control.Process) {
		*told = control.Process{ID: p.ID, Kind: kind, Metrics: p.http.URL() + "/metrics", Model: modelName(routes), Aliases: p.Aliases(), Sandbox: confinement, Version: telemetry.Version()}
	})
	if err != nil {
		return err
	}
	unshare, err := control.ShareStorage(p.Conn, p.ID)
	if err != nil {
		return err
	}
	p.stop = append(p.stop, unshare, p.share(context.WithoutCancel(ctx)))
	if file := p.Config.File(); file != "" {
		p.stop = append(p.stop, p.follow(context.WithoutCancel(ctx), file))
	}
	return nil
}

// try begins to determine which sandbox works, while NATS is connected; confinement waits for that.
// The returned function ends it.
func (p *Process) try(ctx context.Context) context.CancelFunc {
	ctx, cancel := context.WithCancel(ctx)
	go func() { _, _ = p.Workspaces.Sandbox(ctx, team.Team{}, "") }()
	return cancel
}

// ofTeam reports whether an address may be that of a NATS server of this cluster.
func (p *Process) ofTeam(a netip.AddrPort) bool {
	if p.Conn == nil {
		return false
	}
	return slices.ContainsFunc(p.Conn.NATS().Servers(), func(server string) bool {
		u, err := url.Parse(server)
		return err == nil && u.Port() == strconv.Itoa(int(a.Port()))
	})
}

// confinement returns the sandbox of commands here, as in [control.Process].
func (p *Process) confinement(ctx context.Context) string {
	found, err := p.Workspaces.Sandbox(ctx, team.Team{}, "")
	if err != nil {
		p.Log.Error("no command can be run", "err", err)
		return control.NoSandbox + ": " + team.Line(err)
	}
	if found.Level() == team.Unconfined {
		p.Log.Warn("commands are not confined: they may do whatever the user of this process may", "sandbox", found.Level())
	}
	return found.String()
}

// shownServer returns the address in the settings, without credentials.
func (p *Process) shownServer() string {
	for _, o := range p.Config.Origins() {
		if o.Name == "server" {
			return o.Value
		}
	}
	return p.Config.Server
}

// Ready logs that the process works, once no part of it can fail to start.
func (p *Process) Ready() {
	p.Log.Info("ready", "nats", p.Conn.Server(), "http", p.http.URL(), "model", modelName(p.Config.Routes()))
}

// Handle adds a page to those of every process; see [telemetry.Server.Handle].
func (p *Process) Handle(pattern string, h http.Handler) { p.http.Handle(pattern, h) }

// Close ends the pages, withdraws the announcement, and ends the connection. It takes
// [shutdown.Close] at most.
func (p *Process) Close() {
	if p.stopPages != nil {
		p.stopPages() // open requests may take as long as the flush
	}
	if p.Conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdown.Close)
		_ = p.Conn.Flush(ctx) // the last publications, such as an ack, should arrive
		cancel()
	}
	for _, stop := range slices.Backward(p.stop) {
		stop()
	}
	if p.Conn != nil {
		p.Conn.Close()
	}
	if p.stopPages != nil {
		<-p.httpDone
	}
}

// As returns the metrics registry for the process as this member of a team, and its models, nil if
// none is configured; if they do not have the alias that m names, it logs a warning. done must be
// called when the process no longer is that member.
func (p *Process) As(id team.TeamID, m team.Member) (reg prometheus.Registerer, with engine.Model, done func()) {
	reg, done = p.Metrics.Labelled(prometheus.Labels{"team": string(id), "role": m.Role, "agent_id": string(m.AgentID)})
	alias, known := p.models.Resolve(m.Model)
	if alias == "" {
		return reg, nil, done
	}
	if !known {
		p.Log.Warn("this process has no model of that name; its default is used", "team", id, "agent", m.AgentID, "model", m.Model, "default", alias)
	}
	with = p.models.Counting(reg)
	return reg, with, done
}
