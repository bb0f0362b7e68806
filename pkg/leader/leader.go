// Package leader is the leader process: it campaigns for every active team and
// leads those whose lease it gets. Leading a team is the leader's own membership,
// the index that offers tasks, and the watchdog; all three share one view of the
// team.
package leader

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/agent"
	"agentteam/pkg/board"
	"agentteam/pkg/board/index"
	"agentteam/pkg/broker"
	"agentteam/pkg/config"
	"agentteam/pkg/control"
	"agentteam/pkg/discovery"
	"agentteam/pkg/election"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/membership"
	"agentteam/pkg/process"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/spawn"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/watchdog"
)

// Options say what the process is to lead.
type Options struct {
	Config    config.Config
	Only      team.TeamID // lead this team only; "" = every team
	LocalExec bool        // start a teammate process where no standby takes a spawn
	Lifeline  *os.File    // ends this process and, handed on, those; nil: none
	Stderr    io.Writer
}

// Run leads until ctx ends, then returns nil within five seconds. Errors: Conflict
// if Only is led by a process that answers; NotFound if there is no such team;
// Unavailable without NATS.
func Run(ctx context.Context, o Options) error {
	owner := spawn.WithLifeline(context.WithoutCancel(ctx), o.Lifeline)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(owner, cancel)()
	p, err := process.Open(ctx, "leader", o.Config, o.Stderr)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Handle("GET /http_sd", discovery.Handler(p.Conn, p.ID))
	reg, err := registry.Open(ctx, p.Conn)
	if err != nil {
		return err
	}
	if o.Only != "" {
		if err := led(ctx, p, reg, o.Only); err != nil {
			return err
		}
	}
	l := &leader{Process: p, registry: reg, options: o}
	err = election.New(election.Options{
		Registry: reg.Bucket(), Process: p.ID, Only: o.Only, Lead: l.lead, Logger: p.Log,
	}).Run(ctx)
	if owner.Err() != nil {
		l.children.end()
	}
	return err
}

// led returns Conflict if the team's leader answers.
func led(ctx context.Context, p *process.Process, reg *registry.Registry, id team.TeamID) error {
	if _, _, err := reg.Open(ctx, id); err != nil {
		return err
	}
	holder, ok, err := election.Holder(ctx, reg.Bucket(), id)
	if err != nil || !ok {
		return err
	}
	if control.Request(ctx, p.Conn, id, team.Leader, subject.Ping, nil, nil, 2*time.Second) == nil {
		return team.Errorf(team.Conflict, "team %s is led by %s", id, holder.Process).
			WithHint("stop that process first, or start this one without --team as a standby leader")
	}
	return nil // it does not answer: its lease will run out
}

type leader struct {
	*process.Process
	registry *registry.Registry
	options  Options
	children children
}

// lead serves one term.
func (l *leader) lead(ctx context.Context, id team.TeamID, term uint64) error {
	bt, record, err := l.registry.Open(ctx, id)
	if err != nil {
		return err
	}
	// Whoever made or ended the team may have died before the registry knew.
	if err := l.registry.Publish(ctx, record); err != nil || record.Status != team.Active {
		return err
	}
	role, err := record.Role(team.LeaderRole)
	if err != nil {
		return err
	}
	workspace, err := l.Workspace(record)
	if err != nil {
		return err
	}
	if record, err = l.registry.Lead(ctx, bt); err != nil || record.Status != team.Active {
		return err
	}
	// A predecessor may have died, or lost the race against the goal, after it had
	// closed the board.
	if err := board.New(bt, board.Options{}).Reopen(ctx); err != nil {
		return err
	}
	m, err := l.join(ctx, bt, role, term, workspace)
	if err != nil {
		return err
	}
	bye, cancel := process.Outlive(ctx, goodbye)
	defer cancel()
	metrics, model, done := l.As(bt.ID, m)
	defer done()
	t := l.newTerm(bt, m, bye, metrics)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return orOver(t.index.Run(ctx)) })
	g.Go(func() error {
		return orOver(watchdog.New(watchdog.Options{Team: t, Lease: record.Lease(), Logger: t.log, Registry: l.Registry}).Run(ctx))
	})
	g.Go(func() error {
		return orOver(membership.Run(ctx, membership.Options{
			Process: l.ID, Team: bt, Record: record, Member: m, Role: role, Model: model, Aliases: l.Models(), ModelChanged: l.ModelsChanged, KeepTranscripts: l.Config.KeepTranscripts, Workspace: workspace, Crew: t, Pulse: t.pulse,
			OnBeat: t.index.Hear, EndGoal: t.refusedGoal, Started: func(a *agent.Agent) { t.agent.Store(a) },
			Verbs:  map[subject.Verb]control.Handler{subject.Start: t.start},
			Logger: l.Log, Registry: metrics,
		}))
	})
	err = g.Wait()
	t.settle()
	if errors.Is(err, membership.ErrTeamEnded) || errors.Is(err, membership.ErrForced) {
		return t.leave()
	}
	if errors.Is(err, errOver) || membership.Superseded(err) {
		return nil
	}
	return err
}

// errOver makes the parts of a term end together.
var errOver = errors.New("the term is over")

func orOver(err error) error {
	if err == nil {
		return errOver
	}
	return err
}

// join writes the leader's member record for this term.
func (l *leader) join(ctx context.Context, bt *broker.Team, role team.Role, term uint64, workspace string) (team.Member, error) {
	r := roster.New(bt)
	for {
		m, err := r.Get(ctx, team.Leader)
		if errors.Is(err, team.NotFound) {
			m, err = team.Member{AgentID: team.Leader, Color: "white", JoinedAt: time.Now().UTC()}, nil
		}
		if err != nil {
			return m, err
		}
		// Terms are counted in the registry; should that have been lost, the record
		// still knows that there were higher ones.
		m.Incarnation = max(term, m.Incarnation+1)
		m.Role, m.Model, m.State, m.Backend = role.Name, role.Model, team.Joined, team.Exec
		m.PID, m.Workspace = os.Getpid(), workspace
		m.Host, _ = os.Hostname()
		m, err = r.Put(ctx, m)
		if !errors.Is(err, team.Conflict) {
			return m, err
		}
	}
}

func (l *leader) newTerm(bt *broker.Team, m team.Member, bye context.Context, metrics prometheus.Registerer) *term {
	log := l.Log.With("team", bt.ID)
	t := &term{leader: l, team: bt, member: m, log: log, roster: roster.New(bt), pulse: roster.NewPulse(), bye: bye,
		failures: map[team.AgentID]failures{}}
	t.board = board.New(bt, board.Options{Logger: log, Registry: metrics})
	t.mailbox = mailbox.New(bt, mailbox.Options{Members: t.roster, Logger: log, Registry: metrics})
	t.index = index.New(index.Options{Team: bt, Logger: log, Registry: l.Registry, Finish: t.board.FinishCreate,
		Send: func(to team.AgentID, task team.Task) error {
			data, err := index.EncodeOffer(task)
			if err != nil {
				return err
			}
			return control.Notify(bt.Conn, bt.ID, to, subject.Offer, data)
		},
		Taken: func(from team.AgentID, id team.TaskID) {
			data, err := json.Marshal(id)
			if err == nil {
				err = control.Notify(bt.Conn, bt.ID, from, subject.Revoked, data)
			}
			if err != nil { // a holder that is not told finds out when it looks at its task
				log.Debug("former holder not told", "task", id, "agent", from, "err", err)
			}
		}})
	opts := spawn.Options{Team: bt, Roster: t.roster, Logger: log, Exec: t.refuseExec}
	if l.options.LocalExec {
		opts.Exec = t.exec
	}
	t.spawner = spawn.New(opts)
	return t
}

// start answers a spawner elsewhere that found no standby.
func (t *term) start(ctx context.Context, data []byte) (any, error) {
	var o spawn.Order
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, team.Errorf(team.InvalidArgument, "order: %w", err)
	}
	if !t.leader.options.LocalExec {
		return nil, t.refuseExec(ctx, o)
	}
	return nil, t.exec(ctx, o)
}

var errNoLocalExec = errors.New("the leader's process starts none itself")

func (t *term) refuseExec(context.Context, spawn.Order) error { return spawn.NoStandby(errNoLocalExec) }

// exec starts a teammate process as a child of this one.
func (t *term) exec(_ context.Context, o spawn.Order) error {
	bin, err := spawn.FindBinary("teammate")
	if err != nil {
		return err
	}
	// The address may hold a password, which must not stand in the process list.
	child, err := spawn.StartChild(bin, []string{"--team", string(o.Team), "--name", string(o.Agent), "--http", "127.0.0.1:0"},
		[]string{"AGENTTEAM_SERVER=" + t.leader.Config.Server}, t.leader.options.Lifeline, t.leader.options.Stderr)
	if err != nil {
		return err
	}
	t.log.Info("teammate process started", "agent", o.Agent, "pid", child.PID())
	t.leader.children.add(child)
	return nil
}
