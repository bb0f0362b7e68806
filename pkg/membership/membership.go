// Package membership runs one incarnation of a member inside a process, leader or
// teammate: it opens the journal, receives the mail, beats, answers process
// control, gives the agent its tools, and lets it work until the membership ends.
//
// Who becomes which member, and what else the process does, is decided by packages
// leader and teammate.
package membership

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/agent"
	"agentteam/pkg/board"
	"agentteam/pkg/board/index"
	"agentteam/pkg/broker"
	"agentteam/pkg/completion"
	"agentteam/pkg/control"
	"agentteam/pkg/event"
	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/registry"
	"agentteam/pkg/roster"
	"agentteam/pkg/stored"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/teamtool"
	"agentteam/pkg/tool/workspace"
)

// Options say who works on what, with what.
type Options struct {
	Process         string        // ID of the process; required
	Team            *broker.Team  // required
	Record          team.Team     // of the team; required
	Member          team.Member   // as it joined; required
	Role            team.Role     // its role, as the team has it; required
	Model           agent.Model   // nil: none is configured
	Aliases         []string      // the leader's: models that it may spawn with, by name
	Workspace       string        // folder of the tools; required
	Crew            teamtool.Crew // the leader's
	Pulse           *roster.Pulse // the leader's: keeps the beats of all; default: one for the leader's beat
	OnBeat          func(team.Beat)
	Verbs           map[subject.Verb]control.Handler        // beside those that every member answers
	EndGoal         func(ctx context.Context, cause string) // the leader's: ends a goal that its model refuses
	KeepTranscripts time.Duration                           // see [journal.Options]
	ModelChanged    func() <-chan struct{}                  // see [agent.Options]
	Started         func(*agent.Agent)                      // called once the agent is about to work
	Logger          *slog.Logger
	Registry        prometheus.Registerer
}

// ErrTeamEnded ends a membership whose team is no longer active.
var ErrTeamEnded = errors.New("the team's goal has ended")

// ErrForced ends a membership that was stopped by force.
var ErrForced = errors.New("the membership was ended by force")

// offerGrace lets an offer wait for an agent whose idle beat went out a moment
// before it began to listen.
const offerGrace = 200 * time.Millisecond

// Run works as the member until ctx ends (the process stops; then it returns nil)
// or the membership does: [agent.ErrShutdown], [ErrForced],
// [ErrTeamEnded], [roster.ErrSuperseded], [journal.ErrSuperseded], [mailbox.ErrSuperseded], or
// what went wrong. It returns once all its tools' processes have ended. It does
// not touch the member's record.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &member{Options: o, ctx: ctx, cancel: cancel, roster: roster.New(o.Team),
		offers: make(chan team.Task), given: make(chan team.Task, 16), mail: make(chan mailbox.Delivery), compacts: make(chan struct{}, 1)}
	if m.all = m.Pulse != nil; !m.all {
		m.Pulse = roster.NewPulse()
	}
	return m.run()
}

// member is one running membership.
type member struct {
	Options
	ctx      context.Context
	cancel   context.CancelCauseFunc
	roster   *roster.Roster
	board    *board.Board
	hand     *board.Hand
	heart    *roster.Heart
	offers   chan team.Task
	given    chan team.Task
	mail     chan mailbox.Delivery
	compacts chan struct{} // somebody wants a shorter conversation

	parked    atomic.Bool // the model's endpoint refuses
	all       bool        // all members' beats are heard, not only the leader's
	finishing atomic.Bool // the member's own finish_team is under way or done
}

func (m *member) run() error {
	ctx, o := m.ctx, m.Options
	ws, err := workspace.Open(o.Workspace, workspace.Options{Stored: stored.In(o.Team.Files).Open})
	if err != nil {
		return err
	}
	defer ws.Close() //nolint:errcheck // read-only handle
	m.board = board.New(o.Team, board.Options{Logger: o.Logger, Registry: o.Registry})
	box := mailbox.New(o.Team, mailbox.Options{Members: m.roster, Logger: o.Logger, Registry: o.Registry})
	m.heart = roster.NewHeart(m.roster, o.Member, o.Record.Lease())
	m.hand = board.NewHand(ctx, m.board, o.Member.Holder())

	begun := time.Now()
	whose := team.Leader // a teammate that heard everybody would cost a large team dearly
	if m.all {
		whose = team.Everyone
	}
	stopListening, err := m.roster.Listen(whose, func(b team.Beat) {
		if m.Pulse.Hear(b) && o.OnBeat != nil {
			o.OnBeat(b)
		}
	})
	if err != nil {
		return err
	}
	defer stopListening()
	stopServing, err := control.Serve(ctx, o.Team.Conn,
		control.Membership{Process: o.Process, Team: o.Team.ID, AgentID: o.Member.AgentID, Role: o.Role.Name}, m.verbs())
	if err != nil {
		return err
	}
	defer stopServing()

	jo := journal.Options{Keep: o.KeepTranscripts}
	if o.Member.AgentID == team.Leader {
		if jo.Goal = o.Record.GoalNumber; o.Record.Goal == "" {
			jo.Goal++ // the next one, which may be set while this process leads
		}
	}
	log, records, err := journal.Open(ctx, o.Team, o.Member.AgentID, o.Member.Incarnation, jo)
	if err != nil {
		return err
	}
	past, err := agent.Fold(records)
	if err != nil {
		return err
	}
	for id, epoch := range past.Holds {
		m.hand.Remember(id, epoch)
	}
	tools, err := m.tools(ws, box)
	if err != nil {
		return err
	}
	from := max(past.Inbox+1, o.Member.InboxFrom)
	opts := agent.Options{
		Member: o.Member, Team: o.Team.ID, System: agent.System(o.Record, o.Member, o.Role, o.Workspace),
		Past: past, Journal: log, Model: o.Model, Tools: tools, Hand: m.hand, Post: box, Heart: m.heart,
		Events: event.New(o.Team, o.Logger), Store: stored.In(o.Team.Files), Mail: m.mail, Offers: m.offers, Given: m.given, Compacts: m.compacts, Lease: o.Record.Lease(),
		Parked: m.park, EndGoal: o.EndGoal, ModelChanged: o.ModelChanged, MaxTurns: o.Role.MaxTurns, Logger: o.Logger, Registry: o.Registry,
	}
	if o.Member.AgentID != team.Leader {
		opts.Look, opts.LeaderHeard = m.look(), func() time.Time { return m.leaderHeard(begun) }
	}
	a := agent.New(opts)
	if o.Started != nil {
		o.Started(a)
	}
	err = m.work(a, box, from)
	stopServing() // else a task could be assigned after letGo has looked
	switch {
	case err == nil:
		m.letGo("its holder's process was stopped")
	case errors.Is(err, ErrForced), errors.Is(err, ErrTeamEnded):
		m.letGo("its holder was stopped")
	}
	return err
}

// work runs the parts until the first one ends the membership.
func (m *member) work(a *agent.Agent, box *mailbox.Mailbox, from uint64) error {
	g, ctx := errgroup.WithContext(m.ctx)
	g.Go(func() error { return ended(m.heart.Run(ctx)) })
	g.Go(func() error {
		return ended(box.Receive(ctx, m.Member.AgentID, m.Member.Incarnation, from, func(d mailbox.Delivery) error {
			select {
			case m.mail <- d:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	})
	g.Go(func() error {
		err := a.Run(ctx)
		if errors.Is(err, agent.ErrFinished) {
			err = ErrTeamEnded // by the agent itself
		}
		return ended(err)
	})
	g.Go(func() error { return ended(m.watchTeam(ctx)) })
	err := g.Wait()
	if cause := context.Cause(m.ctx); errors.Is(cause, ErrForced) {
		err = ErrForced
	} else if m.ctx.Err() != nil || errors.Is(err, errStopped) {
		err = nil
	}
	return err
}

// watchTeam returns ErrTeamEnded once the team is not active. Every member looks
// for itself, so that none outlives its team because a message was lost.
func (m *member) watchTeam(ctx context.Context) error {
	return m.Team.Bucket.Watch(ctx, func(e broker.Entry) error {
		t, err := registry.Decode(e)
		switch {
		case err != nil: // a damaged record says nothing, so it ends nothing
			m.Logger.WarnContext(ctx, "the team's record cannot be read", "err", err)
			return nil
		case t.Status == team.Active:
			return nil
		}
		if m.finishing.Load() {
			m.lastWord(ctx)
		}
		return ErrTeamEnded
	}, nil, subject.KeyTeam)
}

// lastWordWithin is how long the call that ended the team may take to be answered.
const lastWordWithin = 2 * time.Second

// lastWord lets the agent that ended the team record how: else its successor, at
// the team's next goal, would find the call open and think that it was interrupted.
func (m *member) lastWord(ctx context.Context) {
	select {
	case <-ctx.Done(): // the agent is done
	case <-time.After(lastWordWithin):
	}
}

// finisher is the crew of a leader, whose membership must know that it ends the
// team before the team's record says so.
type finisher struct {
	teamtool.Crew
	finishing *atomic.Bool
}

func (f finisher) Finish(ctx context.Context, summary string) error {
	f.finishing.Store(true)
	err := f.Crew.Finish(ctx, summary)
	if err != nil {
		f.finishing.Store(false)
	}
	return err
}

// park tells in the member's record that its model's endpoint refuses it, and with an
// empty cause that it answers again.
func (m *member) park(ctx context.Context, cause string) {
	m.parked.Store(cause != "")
	if err := m.roster.Park(ctx, m.Member.AgentID, m.Member.Incarnation, cause); err != nil {
		m.Logger.WarnContext(ctx, "the member's record does not say whether it can work", "agent", m.Member.AgentID, "err", err)
	}
}

// errStopped makes the errgroup end the other parts when one returns nil, which it
// does only because its context is over.
var errStopped = errors.New("stopped")

func ended(err error) error {
	if err == nil {
		return errStopped
	}
	return err
}

// goodbye bounds the last word of a process that was told to stop.
const goodbye = time.Second

// letGo gives the task back when the process stops in an orderly way, so that
// nobody has to wait for the lease to run out.
func (m *member) letGo(reason string) {
	t, ok := m.hand.Task()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), goodbye)
	defer cancel()
	if _, err := m.hand.Release(ctx, t.ID, reason, false); err != nil {
		m.Logger.WarnContext(ctx, "task not released; it is freed when its lease has run out", "task", t.ID, "err", err)
	}
}

func (m *member) tools(ws *workspace.Workspace, box *mailbox.Mailbox) (*tool.Set, error) {
	files := ws.Tools()
	var leads teamtool.Crew
	if m.Crew != nil {
		leads = finisher{m.Crew, &m.finishing}
	}
	crew := teamtool.New(teamtool.Options{
		Self: m.Member, Board: m.board, Hand: m.hand, Mailbox: box, Roster: m.roster, Heard: m.heard, Crew: leads, Aliases: m.Aliases,
		List: func(ctx context.Context, q team.Query) (team.Page, error) { return index.List(ctx, m.Team, m.board, q) },
		Team: func(ctx context.Context) (team.Team, error) { return registry.Record(ctx, m.Team) },
		Verify: func(ctx context.Context, t team.Task) (string, error) {
			return completion.Verify(ctx, t, ws, m.Team.Files)
		},
	})
	set, err := tool.NewSet(m.Registry, append(files, crew...)...)
	if err != nil {
		return nil, err
	}
	// A role chooses among the tools of the workspace; the team's are everybody's,
	// since without them nobody could take part.
	return set.Allow(teamtool.Allowed(m.Member, append(m.chosen(files, crew), toolNames(crew)...)))
}

// chosen are the tools of the workspace that the role lets its members use. A role
// file may have been written for another program: what it names and nobody has here
// is left out, and a role of nothing else is left with no tool rather than with all.
func (m *member) chosen(files, crew []tool.Tool) []string {
	if len(m.Role.Tools) == 0 || slices.Contains(m.Role.Tools, "*") {
		return toolNames(files)
	}
	var names, unknown []string
	for _, name := range m.Role.Tools {
		is := func(t tool.Tool) bool { return t.Name == name || slices.Contains(t.Aliases, name) }
		switch {
		case slices.ContainsFunc(files, is):
			names = append(names, name)
		case !slices.ContainsFunc(crew, is):
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		m.Logger.Warn("the role names tools that are not there; they are left out", "agent", m.Member.AgentID, "role", m.Role.Name, "tools", unknown)
	}
	return names
}

func toolNames(tools []tool.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

// verbs are the requests that every member's process answers.
func (m *member) verbs() map[subject.Verb]control.Handler {
	verbs := map[subject.Verb]control.Handler{
		subject.Ping: func(_ context.Context, data []byte) (any, error) {
			var nonce string
			_ = json.Unmarshal(data, &nonce) // a ping without one is answered too
			return m.heart.Now(nonce), nil
		},
		subject.Offer: func(_ context.Context, data []byte) (any, error) {
			t, err := index.DecodeOffer(data)
			if err != nil {
				return nil, err
			}
			select {
			case m.offers <- t: // only an idle agent takes it
			case <-time.After(offerGrace):
			}
			return nil, nil
		},
		subject.Assign: func(ctx context.Context, data []byte) (any, error) {
			var a team.Assignment
			if err := json.Unmarshal(data, &a); err != nil {
				return nil, team.Errorf(team.InvalidArgument, "assignment: %w", err)
			}
			if m.Model == nil {
				return nil, team.Errorf(team.Unavailable, "%s has no model configured and can do nothing", m.Member.AgentID)
			}
			if m.parked.Load() {
				return nil, team.Errorf(team.Unavailable, "%s cannot work: its model refuses to answer", m.Member.AgentID).WithHint("teamctl agents tells the cause")
			}
			if err := m.heart.Certain(ctx); err != nil { // it may have been replaced while it was frozen
				return nil, team.Errorf(team.Unavailable, "%s is leaving: %w", m.Member.AgentID, err)
			}
			t, taken, err := m.hand.Assign(ctx, a)
			if err != nil || !taken {
				return t, err
			}
			select {
			case m.given <- t:
			case <-ctx.Done(): // whoever comes after this process adopts it
			}
			return t, nil
		},
		subject.Revoked: func(ctx context.Context, data []byte) (any, error) {
			var id team.TaskID
			if err := json.Unmarshal(data, &id); err != nil {
				return nil, team.Errorf(team.InvalidArgument, "revocation: %w", err)
			}
			m.revoked(ctx, id)
			return nil, nil
		},
		subject.Compact: func(context.Context, []byte) (any, error) {
			select {
			case m.compacts <- struct{}{}:
			default: // it was asked already, and has not come to it
			}
			return nil, nil
		},
		subject.Stop: func(context.Context, []byte) (any, error) {
			m.cancel(ErrForced)
			return nil, nil
		},
	}
	for v, h := range m.Verbs {
		verbs[v] = h
	}
	return verbs
}

// askWait is for a member's process to answer how it is.
const askWait = 500 * time.Millisecond

// heard is how the members are: who leads has heard it, a teammate asks.
func (m *member) heard(ctx context.Context, members []team.Member) map[team.AgentID]roster.Heard {
	if m.all {
		return m.Pulse.Last()
	}
	var mu sync.Mutex
	heard := map[team.AgentID]roster.Heard{}
	var wg sync.WaitGroup
	for _, o := range members {
		if !o.HasProcess() {
			continue
		}
		wg.Go(func() {
			var b team.Beat
			err := control.Request(ctx, m.Team.Conn, m.Team.ID, o.AgentID, subject.Ping, "", &b, askWait)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				heard[o.AgentID] = roster.Heard{Beat: b, At: time.Now()}
			}
		})
	}
	wg.Wait()
	return heard
}

// revoked looks whether the agent has really lost the task that it is said to have
// lost, which may have been another hold of it, long ago. If it has, the hand tells it.
func (m *member) revoked(ctx context.Context, id team.TaskID) {
	held, ok := m.hand.Task()
	if !ok || held.ID != id {
		return
	}
	// If that cannot be told, the agent waits before its next step.
	if _, err := m.hand.Confirm(ctx, id); errors.Is(err, broker.ErrUnreadable) {
		m.Logger.WarnContext(ctx, "whether the task is still held is not known", "task", id, "err", err)
	}
}

// leaderHeard is when the leader was last heard, or since when it could be if that is
// later: from begun on, and while NATS is there.
func (m *member) leaderHeard(begun time.Time) time.Time {
	if m.Team.Conn.Ready(m.ctx) != nil {
		return time.Now()
	}
	heard := begun
	if h, ok := m.Pulse.Of(team.Leader); ok {
		heard = h.At
	}
	if back := m.Team.Conn.Restored(); back.After(heard) {
		return back
	}
	return heard
}

// look returns what finds a task for an agent to which nobody makes offers.
func (m *member) look() func(context.Context) (team.TaskID, bool) {
	scout := board.NewScout(m.board, m.Member.Role)
	return func(ctx context.Context) (team.TaskID, bool) {
		id, ok, err := scout.Find(ctx)
		if err != nil {
			m.Logger.DebugContext(ctx, "look for work failed", "err", err)
		}
		return id, ok && err == nil
	}
}

// Superseded reports whether a membership ended because a later incarnation has
// taken over; then its record is the successor's.
func Superseded(err error) bool {
	return errors.Is(err, roster.ErrSuperseded) || errors.Is(err, journal.ErrSuperseded) || errors.Is(err, mailbox.ErrSuperseded)
}
