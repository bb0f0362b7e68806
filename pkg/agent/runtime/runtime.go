// Package runtime runs one incarnation of a member inside a process, leader or teammate: it opens
// the journal, receives the mail, sends heartbeats, answers process control, gives the agent its
// tools, and lets it work until the membership ends.
//
// Packages leader and teammate decide who becomes which member, and what else the process does.
package runtime

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/completion"
	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/engine"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/store/tokenstream"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/telemetry"

	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/workspace"
)

// Options are the parts of a membership.
type Options struct {
	Process         string                                          // ID of the process; required
	Team            *broker.Storage                                 // required
	Record          team.Team                                       // of the team; required
	Member          team.Member                                     // as it joined; required
	Role            team.Role                                       // its role, as the team has it; required
	Model           engine.Model                                    // nil: none is configured
	Aliases         []string                                        // the leader's: names of the models that it may spawn with
	Workspaces      workspace.Source                                // the source of its workspaces; required
	Admin           teamtool.TeamAdmin                              // the leader's
	Heard           func() map[team.AgentID]roster.Heard            // the leader's: the last heartbeats of all; default: a member's process is asked
	Overview        func(context.Context) (explain.Overview, error) // the leader's: returns the team's state
	Start           func(context.Context, control.Order) error      // the leader's: starts a child process
	EndGoal         func(ctx context.Context, cause string)         // the leader's: ends a goal that its model refuses
	KeepTranscripts time.Duration                                   // see [journal.Options]
	ModelChanged    func() <-chan struct{}                          // see [agent.Team]; required
	Started         func(*agent.Agent)                              // called once the agent is about to work
	Organisation    team.Permissions                                // checked before those of the team, and in no record
	Level           worktree.Level                                  // returns the sandbox level of a role's commands; nil: without a rule, a call needs no permission
	Logger          *slog.Logger
	Metrics         prometheus.Registerer
}

// ErrTeamEnded ends a membership whose team is no longer active.
var ErrTeamEnded = errors.New("the team's goal has ended")

// ErrForced ends a membership that was stopped by force.
var ErrForced = errors.New("the membership was ended by force")

// Run works as the member until ctx ends (the process stops; then it returns nil) or the membership
// does: [agent.ErrShutdown], [ErrForced], [ErrTeamEnded], [team.ErrSuperseded], or the failure. It
// returns once all its tools' processes have ended. It does not write the member's record.
func Run(ctx context.Context, o Options) error {
	o.Logger = telemetry.OrDiscard(o.Logger)
	process := ctx
	leaving, left := shutdown.Outlive(process, shutdown.Part)
	defer left()
	storing, stored := shutdown.Outlive(process, shutdown.Part-writeWithin)
	defer stored()
	ctx, cancel := context.WithCancelCause(process)
	defer cancel(nil)
	m := &member{Options: o, ctx: ctx, cancel: cancel, process: process, leaving: leaving, storing: storing, roster: roster.New(o.Team), pulse: roster.NewPulse(),
		offered: make(chan team.Task, 1), offers: make(chan team.Task), given: make(chan team.Task, 16), revoked: make(chan struct{}, 1),
		mail: make(chan mailbox.Delivery), compacts: make(chan struct{}, 1)}
	m.newest.Store(&o.Record)
	return m.run()
}

// member is one running membership.
type member struct {
	Options
	ctx        context.Context
	cancel     context.CancelCauseFunc
	process    context.Context // ends when the process is to stop
	leaving    context.Context // for the steps of leaving; ends some time after process
	storing    context.Context // for storing files before the task is released; ends before leaving
	roster     *roster.Roster
	pulse      *roster.Pulse // a teammate's: the leader's heartbeats
	board      *board.Board
	hand       *board.ClaimSlot
	plans      *approval.Plans
	gate       *approval.Gate // of a teammate; nil of a leader, which submits no plans
	asks       *approval.Permissions
	newest     atomic.Pointer[team.Team] // the team's record, as last received
	purse      *purse
	workspaces *worktree.Workspaces
	jobs       *job.Jobs
	delegated  delegation            // the tools of its subagents
	at         *projectcontext.Place // its place when it began
	current    *workspace.Current
	folder     string   // in which it began
	names      []string // of the tools of its role that are not the team's
	heart      *roster.Heart
	live       *tokenstream.Publisher
	offered    chan team.Task // by the index
	offers     chan team.Task // those of them that the agent may take
	given      chan team.Task
	revoked    chan struct{} // a notice that the agent's task is lost
	mail       chan mailbox.Delivery
	compacts   chan struct{} // requests for a shorter conversation

	parked    atomic.Bool // the model's endpoint refuses
	finishing atomic.Bool // the member's own finish_team is under way or done
}

func (m *member) run() error {
	ctx, o := m.ctx, m.Options
	m.heart = roster.NewHeart(m.roster, o.Member, o.Record.Lease())
	m.live = tokenstream.NewPublisher(o.Team)
	m.board = board.New(o.Team.Bucket, board.Options{Logger: o.Logger, Metrics: o.Metrics, Withdraw: mergequeue.New(o.Team).Withdraw})
	box := mailbox.New(o.Team, mailbox.Options{Members: m.roster, Logger: o.Logger, Metrics: o.Metrics})
	m.hand = board.NewClaimSlot(ctx, m.board, o.Member.Holder())
	m.purse = m.newPurse(box)
	m.workspaces, m.current = m.place(box)
	defer m.close()
	m.plans = approval.New(o.Team.Bucket, approval.Options{Tasks: m.board, Members: m.roster, Post: box})

	begun := time.Now()
	stopListening, err := m.listen()
	if err != nil {
		return err
	}
	defer stopListening()
	stopServing, err := control.Serve(ctx, o.Team.Conn,
		control.Membership{Process: o.Process, Team: o.Team.ID, AgentID: o.Member.AgentID, Role: o.Role.Name}, m.handlers())
	if err != nil {
		return err
	}
	defer stopServing()

	log, past, err := m.remember(ctx, box)
	if err != nil {
		err = m.over(err)
		m.leave(err) // a task may have been assigned meanwhile
		return err
	}
	if past.Turns > 0 {
		m.current.Resume()
	}
	if o.Member.AgentID != team.Leader {
		if m.gate, err = m.plans.Gate(ctx, o.Member, m.hand); err != nil {
			return err
		}
	}
	tools, led, err := m.tools(m.current, box, past)
	if err != nil {
		return err
	}
	a := m.agent(log, past, m.mode(*past.Place, tools, led), box, begun)
	stopUrgent, err := box.Urgent(o.Member.AgentID, a.Urge)
	if err != nil {
		return err
	}
	defer stopUrgent()
	if o.Started != nil {
		o.Started(a)
	}
	err = m.work(a, box)
	stopServing() // else a task could be assigned after letGo has looked
	m.leave(err)
	return err
}

// place returns the member's workspaces, and the one that follows its work.
func (m *member) place(box *mailbox.Mailbox) (*worktree.Workspaces, *workspace.Current) {
	m.jobs = job.New(job.Options{Keep: blob.In(m.Team.Files).Put, Task: func() team.TaskID {
		held, _ := m.hand.Task()
		return held.ID
	}})
	m.heart.Jobs(m.jobs.List)
	l := worktree.New(m.workspaceOptions(box))
	m.hand.OthersEnd(l.Merging)
	m.hand.Unfinished(l.Unfinished)
	texts := blob.In(m.Team.Files)
	return l, workspace.Follow(l, m.doing, workspace.Options{Stored: texts.Open, Keep: texts.Put, Begin: m.begin, Allowed: m.heart.Allowed, Writable: m.mayWrite, Hides: m.hides,
		OnEdit: func() []string { return m.record().PolicyOf(m.Member.Role).OnEdit }})
}

func (m *member) workspaceOptions(box *mailbox.Mailbox) worktree.Options {
	return worktree.Options{Process: m.Process, Team: m.Team, Record: func() team.Team { return *m.newest.Load() }, Member: m.Member, Slot: m.hand,
		Notify: func(ctx context.Context, to team.AgentID, id, text string) error {
			_, _, err := box.Send(ctx, team.Message{ID: id, Type: team.MsgWatchdog, From: team.Watchdog, To: to, Content: team.Clean(text, team.MaxTextBytes)})
			return err
		},
		ToStore: m.toStore, Peers: m.peers, Source: m.Workspaces, Level: m.Level, May: m.mayRun,
		Check: func(ctx context.Context, t team.Task, ws *workspace.Workspace) error {
			return completion.Check(ctx, t, ws)
		}, Logger: m.Logger, Metrics: m.Metrics}
}

// close ends the member's jobs and closes its workspace. It waits for work on trees: the process
// may end next, and would leave half a tree.
func (m *member) close() {
	m.jobs.Close()
	m.current.Close()
	m.workspaces.Settled(m.leaving)
}

// leave releases the member's task after its agent has ended with err.
func (m *member) leave(err error) {
	m.jobs.Close() // before the task is another's
	m.settleBudgets(m.leaving)
	switch {
	case err == nil:
		m.letGo(team.Freed{Reason: "its holder's process was stopped", Keep: true})
		ctx, cancel := m.looking()
		m.workspaces.CheckHead(ctx)
		cancel()
	case errors.Is(err, ErrForced), errors.Is(err, ErrTeamEnded), errors.Is(err, agent.ErrShutdown): // an assignment may have been under way when the agent left
		m.letGo(team.Freed{Reason: "its holder was stopped"})
		ctx, cancel := m.looking()
		m.workspaces.Uncommitted(ctx) // while its tree is open: from then on others of this host may remove it
		cancel()
		m.current.Close()
		if err := m.workspaces.Leave(m.leaving, errors.Is(err, ErrTeamEnded)); err != nil {
			m.Logger.Warn("the trees of a member that has left were not removed", "agent", m.Member.AgentID, "err", err)
		}
	}
}

// leaveWithin bounds the check for changes without a task when a member leaves, and hurriedWithin
// once its process is to stop: it leaves time for the notice that the check failed.
const (
	leaveWithin   = 5 * time.Second
	hurriedWithin = shutdown.Release / 2
)

// storeWithin bounds the storing of unfinished work, letGoWithin all steps that release a task when
// its holder leaves, and writeWithin is the part of that for the write itself.
const (
	storeWithin = time.Minute
	letGoWithin = shutdown.Part
	writeWithin = shutdown.Release / 2
)

// toStore returns the context in which unfinished work is stored: it ends while there is time for
// the write that frees the task.
func (m *member) toStore(ctx context.Context) (context.Context, context.CancelFunc) {
	within := storeWithin
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end)-writeWithin)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	stop := context.AfterFunc(m.storing, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// looking returns the context for checking changes without a task.
func (m *member) looking() (context.Context, context.CancelFunc) {
	ctx, hurried := shutdown.Outlive(m.process, hurriedWithin)
	stop := context.AfterFunc(m.leaving, hurried)
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	return ctx, func() {
		cancel()
		stop()
		hurried()
	}
}

// listen receives the leader's heartbeats until the returned function is called. A leader receives
// nothing here: hearing every member is expensive in a large team.
func (m *member) listen() (stop func(), err error) {
	if m.Member.AgentID == team.Leader {
		return func() {}, nil
	}
	return m.roster.Listen(team.Leader, func(b team.Heartbeat) { m.pulse.Hear(b) })
}

// agent returns the agent; begun is since when it could have heard the leader.
func (m *member) agent(log *journal.Journal, past *agent.Conversation, mode func() (string, engine.Tools), box *mailbox.Mailbox, begun time.Time) *agent.Agent {
	o := m.Options
	system, tools := mode()
	return agent.New(agent.Options{
		Member: o.Member, TeamID: o.Team.ID, System: system, Mode: mode,
		Past: past, Journal: log, Model: m.purse.of(o.Model, false), Tools: tools, Dialect: o.Record.Dialect(o.Role), Slot: m.hand, Post: box, Heart: m.heart,
		Input:  agent.Input{Mail: m.mail, Offers: m.offers, Given: m.given, Compacts: m.compacts},
		Events: runlog.New(o.Team, o.Logger), Live: m.live.Publish, Jobs: m.jobs, Store: blob.In(o.Team.Files), Team: m.surroundings(box, begun),
		Lease: o.Record.Lease(), MaxTurns: o.Role.MaxTurns, StillTurns: o.Role.StillTurns, Effort: o.Role.Effort, Idle: o.Role.IdleTimeout(), Folders: m.folders(whole), Changes: m.changes, Footprint: m.footprint, Logger: o.Logger, Metrics: o.Metrics,
	})
}

// open opens the journal and returns the agent's conversation; the slot gets the holds of earlier
// incarnations. Errors: those of [journal.Open].
func (m *member) open(ctx context.Context) (*journal.Journal, *agent.Conversation, error) {
	ws, done, err := m.current.Use(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.folder = cmp.Or(m.folder, ws.Dir())
	at := m.withSkills(projectcontext.Inspect(ctx, m.folder, ws.Check, m.mayNotify(m.record(), m.folder)), m.Role, m.folder, whole)
	done()
	for _, f := range at.Project {
		for _, fault := range f.Faults {
			m.Logger.WarnContext(ctx, "instructions of the project", "agent", m.Member.AgentID, "file", f.Name, "fault", fault)
		}
	}
	m.at = &at
	o := journal.Options{Keep: m.KeepTranscripts, Place: &at, Takes: agent.Takes,
		Outlives: func(ctx context.Context, before uint64) error {
			return audit.Keep(ctx, m.Team, m.Member.AgentID, before)
		}}
	if m.Member.AgentID == team.Leader {
		if o.Goal = m.Record.GoalNumber; m.Record.Goal == "" {
			o.Goal++ // the next one, which may be set while this process leads
		}
		if past := m.Record.Ended(); len(past) > 0 {
			tasks, err := m.board.All(ctx)
			if err != nil { // the leader works without: its past goals are only helpful
				m.Logger.WarnContext(ctx, "the tasks of earlier goals are not known", "err", err)
			}
			o.PastGoals = team.WithTasks(past, tasks)
		}
	}
	log, records, err := journal.Open(ctx, m.Team, m.Member.AgentID, m.Member.Incarnation, o)
	if err != nil {
		return nil, nil, err
	}
	past, err := agent.Fold(m.Record.Dialect(m.Role), records)
	if err != nil {
		return nil, nil, err
	}
	for id, epoch := range past.Holds {
		m.hand.Remember(id, epoch)
	}
	return log, past, nil
}

// work runs the parts until the first one ends the membership.
func (m *member) work(a *agent.Agent, box *mailbox.Mailbox) error {
	after := a.Taken()
	if after.Seq == 0 {
		after = mailbox.Mark{Seq: max(m.Member.InboxFrom, 1) - 1}
	}
	receive := func(ctx context.Context) error {
		return box.Receive(ctx, m.Member.AgentID, m.Member.Incarnation, after, func(d mailbox.Delivery) error {
			if a.Taken().Covers(d.Seq, d.At) { // with a backlog
				d.Ack()
				return nil
			}
			select {
			case m.mail <- d:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	work := func(ctx context.Context) error {
		if err := m.workspaces.Settle(ctx); err != nil {
			return err
		}
		err := a.Run(ctx)
		if errors.Is(err, agent.ErrFinished) {
			err = ErrTeamEnded // by the agent itself
		}
		return err
	}
	return m.over(shutdown.Together(m.ctx, m.heart.Run, m.live.Run, m.workspaces.Run, m.purse.meter.Run, receive, work, m.watchTeam, m.passOffers, m.checkHold, m.forget))
}

// over returns how the membership ended after a part has returned err.
func (m *member) over(err error) error {
	if cause := context.Cause(m.ctx); errors.Is(cause, ErrForced) {
		err = ErrForced
	} else if m.ctx.Err() != nil {
		err = nil
	}
	return err
}

// watchTeam returns ErrTeamEnded once the team is not active. Every member watches the record, so
// that none outlives its team because a message was lost.
func (m *member) watchTeam(ctx context.Context) error {
	return m.Team.Bucket.Watch(ctx, func(e broker.Entry) error {
		t, err := registry.Decode(e)
		switch {
		case err != nil: // a damaged record is unknown, so it ends nothing
			m.Logger.WarnContext(ctx, "the team's record cannot be read", "err", err)
			return nil
		case t.Status == team.Active:
			m.newest.Store(&t)
			m.purse.raised()
			return nil
		}
		if m.finishing.Load() {
			m.lastWord(ctx)
		}
		return ErrTeamEnded
	}, nil, subject.KeyTeam)
}

// lastWordWithin bounds the wait for the result of the call that ended the team.
const lastWordWithin = 2 * time.Second

// lastWord waits until the agent that ended the team has recorded its call: else its successor, at
// the team's next goal, would find the call open and take it for interrupted.
func (m *member) lastWord(ctx context.Context) {
	select {
	case <-ctx.Done(): // the agent is done
	case <-time.After(lastWordWithin):
	}
}

// letGo releases the task when the process stops in an orderly way, so that no member waits for the
// lease to expire.
func (m *member) letGo(f team.Freed) {
	t, ok := m.hand.Task()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(m.leaving, letGoWithin)
	defer cancel()
	if merging, err := m.workspaces.Merging(ctx, t); err != nil || merging {
		if err != nil {
			m.Logger.WarnContext(ctx, "task not released; it is freed when its lease has run out", "task", t.ID, "err", err)
		}
		return // the queue ends it
	}
	_, err := m.hand.Release(ctx, t.ID, f)
	if team.HoldLost(err) { // the agent has ended before it was notified
		m.Lost(t)
		return
	}
	if err != nil {
		m.Logger.WarnContext(ctx, "task not released; it is freed when its lease has run out", "task", t.ID, "err", err)
	}
}
