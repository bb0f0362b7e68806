// Package leader is the leader process: it campaigns for every active team and leads those whose
// lease it gets. Leading a team consists of the leader's own membership, the index that offers
// tasks, and the watchdog; all three share one view of the team.
package leader

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/cluster/discovery"
	"agentteam/pkg/cluster/process"
	"agentteam/pkg/cluster/watchdog"
	"agentteam/pkg/config"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/election"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Options select what the process leads.
type Options struct {
	Config    config.Config
	Only      team.TeamID // lead this team only; "" = every team
	LocalExec bool        // start a teammate process where no standby takes a spawn
	Lifeline  *os.File    // ends this process and the teammates that inherit it; nil: none
	Stderr    io.Writer
}

// Run leads until ctx ends, then returns nil within five seconds. Errors: Conflict if Only is led
// by a process that answers; NotFound for an unknown team; Unavailable without NATS.
func Run(ctx context.Context, o Options) error {
	owner := childproc.WithLifeline(context.WithoutCancel(ctx), o.Lifeline)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(owner, cancel)()
	overdue, done := shutdown.Outlive(owner, shutdown.Children)
	defer done()
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
	parts := []func(context.Context) error{election.New(election.Options{
		Bucket: reg.Bucket(), Process: p.ID, Cluster: childproc.Cluster(), Only: o.Only, Lead: l.lead, Overdue: l.keepVigil, Logger: p.Log,
	}).Run}
	if o.Config.API.Addr != "" {
		serve, done, err := openAPI(ctx, p)
		if err != nil {
			return err
		}
		defer done()
		parts = append(parts, serve)
	}
	p.Ready()
	err = shutdown.Together(ctx, parts...)
	if owner.Err() != nil {
		l.children.end(overdue)
	}
	return err
}

// led returns Conflict if the team's leader answers.
func led(ctx context.Context, p *process.Process, reg *registry.Registry, id team.TeamID) error {
	bt, _, err := reg.Open(ctx, id)
	if err != nil {
		return err
	}
	holder, ok, err := election.Holder(ctx, reg.Bucket(), id)
	if err != nil || !ok {
		return err
	}
	if _, err := control.Ping(ctx, bt, team.Leader, 2*time.Second); err == nil {
		return team.Errorf(team.Conflict, "team %s is led by %s", id, holder.Process).
			WithHint("stop that process first, or start this one without --team as a standby leader")
	}
	return nil // it does not answer: its lease will expire
}

type leader struct {
	*process.Process
	registry *registry.Registry
	options  Options
	children children
	vigils   sync.Map // the *roster.Vigil over each team whose lease is overdue, by id
}

// keepVigil listens to the members of a team that this process may have to lead soon.
func (l *leader) keepVigil(ctx context.Context, id team.TeamID) {
	bt, _, err := l.registry.Open(ctx, id)
	if err == nil {
		v := roster.NewVigil(bt)
		l.vigils.Store(id, v)
		defer l.vigils.CompareAndDelete(id, v)
		err = v.Keep(ctx)
	}
	if err != nil && ctx.Err() == nil {
		l.Log.DebugContext(ctx, "no vigil", "team", id, "err", err)
	}
}

// lead serves one term.
func (l *leader) lead(ctx context.Context, id team.TeamID, term uint64) error {
	bt, record, err := l.registry.Open(ctx, id)
	if err != nil {
		return err
	}
	// The process that made or ended the team may have died before it updated the registry.
	if err := l.registry.Publish(ctx, record); err != nil || record.Status != team.Active {
		return err
	}
	role, folder, err := l.fit(ctx, record)
	if err != nil {
		return errors.Join(err, l.cannot(ctx, bt, record, term, err))
	}
	if record, err = l.registry.Touch(ctx, bt); err != nil || record.Status != team.Active {
		return err
	}
	switch record, err = l.decide(ctx, bt, record, folder); {
	case team.CodeOf(err) == team.Unavailable:
		return err // the next term may have it
	case err != nil:
		return errors.Join(err, l.cannot(ctx, bt, record, term, err))
	}
	// A predecessor may have died, or lost the race against the goal, after it had closed the
	// board.
	if err := board.New(bt.Bucket, board.Options{}).Reopen(ctx); err != nil && !errors.Is(err, team.ErrUnreadable) {
		return err // else no task can be added for now, and the existing ones continue
	}
	m, err := l.join(ctx, bt, role, term, folder)
	if err != nil {
		return err
	}
	bye, cancel := shutdown.Outlive(ctx, shutdown.Goal)
	defer cancel()
	metrics, model, done := l.As(bt.ID, m)
	defer done()
	t := l.newTerm(bt, m, bye, metrics)
	t.model = model
	stopListening, err := t.listen()
	if err != nil {
		return err
	}
	defer stopListening()
	err = shutdown.Together(ctx, t.index.Run, l.watchdog(t, record).Run, func(ctx context.Context) error {
		return runtime.Run(ctx, runtime.Options{
			Process: l.ID, Team: bt, Record: record, Member: m, Role: role, Model: model, Aliases: l.Models(), ModelChanged: l.ModelsChanged, KeepTranscripts: l.Config.KeepTranscripts, Workspaces: l.Workspaces, Level: l.Workspaces.Level, Organisation: l.Config.Organisation, Admin: t,
			Heard: t.pulse.Last, Overview: t.overview, EndGoal: t.refusedGoal, Started: func(a *agent.Agent) { t.agent.Store(a) },
			Start: t.start, Logger: l.Log, Metrics: metrics,
		})
	})
	t.settle()
	return l.over(ctx, t, record, err)
}

// over returns the error with which a term has ended, err being that of a part.
func (l *leader) over(ctx context.Context, t *term, record team.Team, err error) error {
	if errors.Is(err, runtime.ErrTeamEnded) {
		l.Workspaces.Ended(record)
	}
	switch {
	case errors.Is(err, runtime.ErrTeamEnded), errors.Is(err, runtime.ErrForced):
		return t.leave()
	case errors.Is(err, team.ErrSuperseded):
		return nil
	case err != nil && ctx.Err() == nil && t.agent.Load() == nil && team.CodeOf(err) != team.Unavailable: // it was never at work
		return errors.Join(err, l.cannot(ctx, t.team, record, t.member.Incarnation, err))
	}
	return err
}

// watchdog returns the watchdog of a term, which knows the heartbeats that this process received
// before.
func (l *leader) watchdog(t *term, record team.Team) *watchdog.Watchdog {
	vigil, _ := l.vigils.Load(t.team.ID)
	before, _ := vigil.(*roster.Vigil)
	before.End()
	return watchdog.New(watchdog.Options{Index: t.index, Pulse: t.pulse, Since: before.Since, Bucket: t.team.Bucket, Actions: t,
		Cluster: childproc.Cluster(), Server: t.team.Conn.ServerID, Lease: record.Lease(), Logger: t.log, Metrics: l.Metrics})
}

// decide decides how the members of the team's goal are isolated, once for each goal.
func (l *leader) decide(ctx context.Context, bt *broker.Storage, record team.Team, folder string) (team.Team, error) {
	if l := record.Branch; l != nil && l.Goal >= record.NextGoal() && (!l.Early || record.Goal == "") {
		return record, reach(ctx, bt, record)
	}
	decided, err := worktree.Decide(ctx, record, folder, func(ctx context.Context) (*mergequeue.Site, error) {
		return mergequeue.At(ctx, "", bt, record)
	})
	if err != nil {
		return record, err
	}
	l.Log.InfoContext(ctx, "isolation decided", "team", bt.ID, "goal", decided.Goal, "worktrees", decided.Why == "", "why", decided.Why)
	return l.registry.Edit(ctx, bt, func(t *team.Team) { t.Branch = &decided })
}

// reach returns why this host does not have the team's integration branch; nil if it has, or there
// is none.
func reach(ctx context.Context, bt *broker.Storage, record team.Team) error {
	if !record.HasBranch() {
		return nil
	}
	site, err := mergequeue.At(ctx, "", bt, record)
	if err == nil {
		_, err = site.Bring(ctx)
	}
	return err
}

// fit returns what this process needs to lead the team, before any write: the leader's role, and a
// folder to work in. The folder may have been moved, or be on another machine.
func (l *leader) fit(ctx context.Context, record team.Team) (role team.Role, folder string, err error) {
	if role, err = record.Role(team.LeaderRole); err != nil {
		return role, "", err
	}
	ws, release, err := l.Workspaces.Open(ctx, workspace.Work{Team: record, Member: team.Member{AgentID: team.Leader}}, workspace.Options{})
	if errors.Is(err, team.NotFound) {
		return role, "", team.Errorf(team.NotFound, "%w", err).WithHint("if it was moved: teamctl run --resume --workspace DIR")
	}
	if err != nil {
		return role, "", err
	}
	defer release()
	return role, ws.Dir(), nil
}

// cannot writes why no process can lead the team into its leader's record; once for each goal and
// embedded cluster, however often and by how many processes of the cluster it is tried, since
// followers of the goal begin there.
func (l *leader) cannot(ctx context.Context, bt *broker.Storage, record team.Team, term uint64, why error) error {
	reason := team.Line(why)
	_, err := l.write(ctx, bt, func(m *team.Member) bool {
		if m.State == team.Lost && m.LastError == reason && m.Revision > record.GoalSeq && m.Cluster == childproc.Cluster() {
			return false
		}
		m.Incarnation = max(term, m.Incarnation+1)
		m.Role, m.State, m.LastError, m.Cluster = team.LeaderRole, team.Lost, reason, childproc.Cluster()
		return true
	})
	return err
}

// join writes the leader's member record for this term.
func (l *leader) join(ctx context.Context, bt *broker.Storage, role team.Role, term uint64, folder string) (team.Member, error) {
	return l.write(ctx, bt, func(m *team.Member) bool {
		// Terms are counted in the registry; if that was lost, the record still has a higher one.
		m.Incarnation = max(term, m.Incarnation+1)
		m.Role, m.Model, m.State, m.LastError = role.Name, role.Model, team.Joined, ""
		m.PID, m.Workspace = os.Getpid(), folder
		m.Host, _ = os.Hostname()
		m.Cluster = childproc.Cluster()
		return true
	})
}

// write changes the leader's member record, which may not exist yet, unless change returns false.
func (l *leader) write(ctx context.Context, bt *broker.Storage, change func(*team.Member) bool) (team.Member, error) {
	r := roster.New(bt)
	for {
		m, err := r.Heir(ctx, team.Leader)
		if errors.Is(err, team.NotFound) {
			m, err = team.Member{AgentID: team.Leader, JoinedAt: time.Now().UTC()}, nil
		}
		if err != nil {
			return m, err
		}
		m.Color, m.Backend = "white", team.Exec
		if !change(&m) {
			return m, nil
		}
		m, err = r.Put(ctx, m)
		if !errors.Is(err, team.Conflict) {
			return m, err
		}
	}
}

func (l *leader) newTerm(bt *broker.Storage, m team.Member, bye context.Context, metrics prometheus.Registerer) *term {
	log := l.Log.With("team", bt.ID)
	t := &term{leader: l, team: bt, member: m, log: log, roster: roster.New(bt), pulse: roster.NewPulse(), bye: bye, returning: map[team.AgentID]uint64{}}
	t.board = board.New(bt.Bucket, board.Options{Logger: log, Metrics: metrics, Withdraw: mergequeue.New(bt).Withdraw})
	t.mailbox = mailbox.New(bt, mailbox.Options{Members: t.roster, Logger: log, Metrics: metrics})
	t.plans = approval.New(bt.Bucket, approval.Options{Tasks: t.board, Members: t.roster, Post: t.mailbox})
	t.index = index.New(index.Options{Team: bt, Logger: log, Metrics: l.Metrics, Finish: t.board.FinishCreate, Heard: func(b team.Heartbeat) { t.pulse.Hear(b) },
		Send: func(to team.AgentID, task team.Task) error { return control.SendOffer(bt, to, task) },
		Taken: func(from team.AgentID, id team.TaskID) {
			if err := control.SendRevoked(bt, from, id); err != nil { // without the notice, the holder finds out when it reads its task
				log.Debug("former holder not told", "task", id, "agent", from, "err", err)
			}
		}})
	opts := spawn.Options{Team: bt, Roster: t.roster, Cluster: childproc.Cluster(), Logger: log, Exec: t.refuseExec,
		Level: func(ctx context.Context, record team.Team) team.Sandbox {
			return l.Workspaces.Level(ctx, record, team.LeaderRole)
		}}
	if l.options.LocalExec {
		opts.Exec = t.exec
	}
	t.spawner = spawn.New(opts)
	return t
}

// start answers a spawner in another process that found no standby.
func (t *term) start(ctx context.Context, o control.Order) error {
	if !t.leader.options.LocalExec {
		return t.refuseExec(ctx, o)
	}
	return t.exec(ctx, o)
}

var errNoLocalExec = errors.New("the leader's process starts none itself")

func (t *term) refuseExec(context.Context, control.Order) error {
	return spawn.NoStandby(errNoLocalExec)
}

// exec starts a teammate process as a child of this one.
func (t *term) exec(_ context.Context, o control.Order) error {
	bin, err := childproc.FindBinary("teammate")
	if err != nil {
		return err
	}
	// The address may contain a password, which must not appear in the process list.
	p, err := childproc.Start(bin, []string{"--team", string(o.Team), "--name", string(o.Agent), "--incarnation", strconv.FormatUint(o.Incarnation, 10), "--http", "127.0.0.1:0"},
		[]string{"AGENTTEAM_SERVER=" + t.leader.Config.Server, "AGENTTEAM_SANDBOX=" + string(t.leader.Config.Sandbox)}, t.leader.options.Lifeline, t.leader.options.Stderr)
	if err != nil {
		return err
	}
	t.log.Info("teammate process started", "agent", o.Agent, "pid", p.PID())
	t.leader.children.add(p)
	return nil
}
