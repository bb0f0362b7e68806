// Package execenv prepares a member's execution environment: working directory, sandbox, home, tools and credentials, as the
// team and the role allow. Each process has one [Source]; nothing else opens the folder of a team or starts a command for it.
//
// Package sandbox confines commands, package toolchain finds what they need of the machine, package permission decides which are asked for.
package execenv

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// Options are the settings of a process's operator.
type Options struct {
	Dir      string         // the folder of this process; goes before the team's; may be ""
	Sandbox  team.Sandbox   // how commands are confined at least; default auto. Only if this is none a command can run unconfined
	Settings string         // the settings file, which no command may change; may be ""
	Limits   sandbox.Limits // of each command; 0: the default
	Data     string         // the folder of the NATS server's data, which no command may see; may be ""
	Cache    string         // below which members have their homes, and repositories their caches of builds; default: agentteam in the user's cache folder
	Logger   *slog.Logger   // default: discard

	// Organisation are the rules that go before those of each team.
	Organisation team.Permissions

	// Never reports addresses that no command may reach whatever its network is: those of the
	// team's own servers. Default: none.
	Never   func(netip.AddrPort) bool
	Metrics prometheus.Registerer // of what commands ask of the network; may be nil
}

// Source is the [workspace.Source] of a process. Safe for concurrent use.
type Source struct {
	workspace.Shared // for Folder; Open is another
	o                Options

	mu    sync.Mutex // held while a level is tried
	found map[team.Sandbox]finding

	swept atomic.Int64 // when [Source.sweep] last looked, in seconds of Unix
}

// New returns a source. It tries no sandbox yet.
func New(o Options) *Source {
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Source{Shared: workspace.Shared{Dir: o.Dir}, o: o, found: map[team.Sandbox]finding{}}
}

// Sandbox returns the sandbox of members with a role: the strongest that team, role and operator ask for. The zero Team is no
// particular team. The first use of a level may take seconds. Errors: those of [sandbox.Find]; Unavailable if ctx ends before.
func (s *Source) Sandbox(ctx context.Context, t team.Team, role string) (sandbox.Sandbox, error) {
	operator := s.o.Sandbox
	if operator == "" {
		operator = team.SandboxAuto
	}
	wish := operator.Stronger(t.PolicyOf(role).Sandbox)
	s.mu.Lock()
	defer s.mu.Unlock()
	if wish == team.Confined && operator != team.Confined {
		// A team and a role can only ask for more than the operator.
		if found, err := s.find(ctx, team.Bubblewrap); err == nil || ctx.Err() != nil {
			return found, err
		}
	}
	return s.find(ctx, wish)
}

// again is how long a failed level is not tried again: the missing part may be installed.
const again = 30 * time.Second

// find is [sandbox.Find] with a cache of its results.
func (s *Source) find(ctx context.Context, wish team.Sandbox) (sandbox.Sandbox, error) {
	have, ok := s.found[wish]
	if !ok || (have.err != nil || have.Provisional()) && time.Since(have.at) > again {
		found, err := sandbox.Find(ctx, wish)
		if err == nil || !have.Provisional() { // else what has worked before does so still
			have.Sandbox, have.err = found, err
		}
		if have.err != nil && ctx.Err() != nil { // which shows nothing of the level
			return sandbox.Sandbox{}, team.Errorf(team.Unavailable, "which sandbox works was not found out: %w", context.Cause(ctx))
		}
		have.at = time.Now()
		s.found[wish] = have
	}
	return have.Sandbox, have.err
}

// finding is the result of a search.
type finding struct {
	sandbox.Sandbox
	err error
	at  time.Time
}

// Level returns the level of [Source.Sandbox], by which calls are judged; Confined if no sandbox works: then each command is refused.
func (s *Source) Level(ctx context.Context, t team.Team, role string) team.Sandbox {
	found, err := s.Sandbox(ctx, t, role)
	if err != nil {
		return team.Confined
	}
	return found.Level()
}

// Open implements [workspace.Source]. Without a member in w no command runs. If no sandbox works, each command is refused. Errors:
// InvalidArgument for a folder of secrets, and for missing credentials or paths; Unavailable for a network where none is possible.
func (s *Source) Open(ctx context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	var dir string
	if w.Tree != nil {
		dir, o.Shown = w.Tree.Dir, w.Tree.Shown
	} else {
		at, err := s.Folder(w.Team)
		if err == nil {
			dir, err = filepath.Abs(at)
		}
		if err != nil {
			return nil, nil, team.Errorf(team.Unavailable, "the current folder: %w", err)
		}
		if err := CheckFolder(dir); err != nil {
			return nil, nil, err
		}
		o.Kept, o.Shared = append(s.kept(dir), in(dir, unaskedIn(dir)...)...), w.Member.AgentID != ""
	}
	var unread []string
	hold := func(b *sandbox.Box, p team.Permissions) (err error) {
		unread, err = s.hold(b, p)
		return err
	}
	run := &lateRunner{open: func(ctx context.Context) (command.Runner, func(), error) { return s.runner(ctx, w, dir, hold) }}
	// The integration branch's own git sees the real files, since it has to store them; no command of the member runs so.
	own := &lateRunner{open: func(ctx context.Context) (command.Runner, func(), error) { return s.runner(ctx, w, dir, nil) }}
	o.Own = own
	ws, err := workspace.Open(dir, run, o)
	if err != nil {
		return nil, nil, err
	}
	if _, err := run.begin(ctx); err != nil {
		ws.Close()
		return nil, nil, err
	}
	if w.Tree != nil {
		s.unlook(ctx, own, w.Tree.Root, unread)
	}
	return ws, func() {
		ws.Close() // nothing was written through it
		run.end()
		own.end()
	}, nil
}

// lateRunner is a runner that becomes known only once the folder is open. While it refuses, each command tries again.
type lateRunner struct {
	open func(context.Context) (command.Runner, func(), error)

	mu      sync.Mutex
	run     command.Runner
	release func()
}

// begin opens the runner if it is not open, or refuses.
func (l *lateRunner) begin(ctx context.Context) (run command.Runner, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, refused := l.run.(refusal); l.run == nil || refused { // which have nothing to release
		l.run, l.release, err = l.open(ctx)
	}
	return l.run, err
}

func (l *lateRunner) end() {
	if l.release != nil {
		l.release()
	}
}

// Run implements [command.Runner].
func (l *lateRunner) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	run, err := l.begin(ctx)
	if err != nil {
		return command.Exit{}, err
	}
	return run.Run(ctx, c)
}

// refusal is a runner that refuses all commands, with a reason.
type refusal struct{ why error }

// Run implements [command.Runner].
func (r refusal) Run(context.Context, command.Command) (command.Exit, error) {
	return command.Exit{}, r.why
}
