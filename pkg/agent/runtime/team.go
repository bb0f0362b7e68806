package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentteam/pkg/agent"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// surroundings implements [agent.Team] for the member's agent.
type surroundings struct {
	*member
	box   *mailbox.Mailbox
	begun time.Time // since when the leader could have been heard
	scout *board.Scout
}

func (m *member) surroundings(box *mailbox.Mailbox, begun time.Time) surroundings {
	role := m.Role
	role.Name = m.Member.Role
	return surroundings{m, box, begun, board.NewScout(m.board, m.Member.AgentID, role, m.others)}
}

func (s surroundings) Wait(w team.Await, holds bool) agent.Wait {
	switch {
	case w.Plan != "":
		return agent.Decision(w, s.decided)
	case w.OfPerson():
		return agent.Person(w, holds, s.left, s.answered)
	}
	return agent.Answer(w, holds)
}

func (s surroundings) Backlog(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error {
	return s.box.Read(ctx, s.Member.AgentID, from, f)
}

func (s surroundings) Overview(ctx context.Context) (explain.Overview, error) {
	if s.member.Overview == nil { // it does not lead
		return explain.Overview{}, nil
	}
	return s.member.Overview(ctx)
}

// Asking returns the heartbeats by name; none for a member that hears only the leader.
func (s surroundings) Asking() (beats []team.Heartbeat) {
	if s.Heard == nil {
		return nil
	}
	for _, h := range s.Heard() {
		if h.Heartbeat.State.Waits() && h.Awaits == s.Member.AgentID {
			beats = append(beats, h.Heartbeat)
		}
	}
	slices.SortFunc(beats, func(a, b team.Heartbeat) int { return cmp.Compare(a.AgentID, b.AgentID) })
	return beats
}

func (s surroundings) Peers(ctx context.Context) (explain.Situation, error) {
	if s.Member.AgentID == team.Leader { // no other member takes the leader's work
		return explain.Situation{}, nil
	}
	return s.peers(ctx)
}

// Inherited reads the stored plans and questions of earlier holders.
func (s surroundings) Inherited(ctx context.Context, t team.Task) (team.Inherited, error) {
	return s.inherited(ctx, s.box, t)
}

// Reserved returns the most urgent task that is reserved for the member and can be claimed now.
func (s surroundings) Reserved(ctx context.Context) (team.TaskID, bool) {
	p, err := index.List(ctx, s.Team, s.board, team.Query{ReservedFor: s.Member.AgentID, Status: []team.TaskStatus{team.Pending}, Blocked: new(bool)})
	if err != nil { // it is offered, too
		s.Logger.DebugContext(ctx, "look for a reserved task failed", "err", err)
	}
	if err != nil || len(p.Tasks) == 0 {
		return "", false
	}
	return slices.MinFunc(p.Tasks, func(a, b team.TaskView) int { return a.Task.Compare(b.Task) }).ID, true
}

// Expected reports true if the board or the members cannot be read. Of a role's members, those
// whose names come first stay: if each looked at all others, all of them could leave at the same
// moment.
func (s surroundings) Expected(ctx context.Context) bool {
	if t := s.record(); t.AtWork() && t.Roles[s.Member.Role].Ready > 0 {
		members, err := s.roster.List(ctx)
		before := slices.DeleteFunc(members, func(m team.Member) bool { return m.AgentID >= s.Member.AgentID })
		if err != nil || t.Missing(t.Roles[s.Member.Role], before) > 0 {
			return true
		}
	}
	p, err := index.List(ctx, s.Team, s.board, team.Query{ReservedFor: s.Member.AgentID, Status: []team.TaskStatus{team.Pending}, Limit: 1})
	return err != nil || len(p.Tasks) > 0
}

// Claimable returns a task for an agent that gets no offers from a leader.
func (s surroundings) Claimable(ctx context.Context) (team.TaskID, bool) {
	id, ok, err := s.scout.Find(ctx)
	if err != nil {
		s.Logger.DebugContext(ctx, "look for work failed", "err", err)
	}
	return id, ok && err == nil
}

// LeaderHeard returns when the leader was last heard, or since when it could be if that is later:
// since the membership began, and while NATS is connected.
func (s surroundings) LeaderHeard() time.Time {
	if s.Team.Conn.Ready(s.ctx) != nil {
		return time.Now()
	}
	heard := s.begun
	if h, ok := s.pulse.Of(team.Leader); ok {
		heard = h.At
	}
	if back := s.Team.Conn.Restored(); back.After(heard) {
		return back
	}
	return heard
}

// Backoff closes the granted plans and permissions as the agent goes idle.
func (s surroundings) Backoff(ctx context.Context) {
	s.current.Settle()
	s.settleBudgets(ctx)
	if slices.ContainsFunc(s.jobs.List(), func(j team.Job) bool { return j.Kind == team.JobSubagent }) {
		return // it may have requested permission
	}
	err := s.asks.Requeue(ctx)
	if s.gate != nil {
		err = errors.Join(err, s.gate.Requeue(ctx))
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "a plan or a request is not marked as ended", "agent", s.Member.AgentID, "err", err)
	}
}

// Lost stores the files in the tree of a task that was taken away, and gives that tree back.
func (m *member) Lost(t team.Task) {
	ctx, done := context.WithTimeout(m.leaving, storeWithin+letGoWithin)
	defer done()
	m.workspaces.Taken(ctx, t)
	m.current.Settle()
}

// Parked records in the member's record that its model's endpoint refuses it, and with an empty
// cause that it answers again.
func (s surroundings) Parked(ctx context.Context, cause string) {
	s.parkAs(ctx, team.WaitingModel, cause)
}

func (s surroundings) EndGoal(ctx context.Context, cause string) { s.member.EndGoal(ctx, cause) }

// BudgetChanged returns the channel as it was before the last call that was not drawn.
func (s surroundings) BudgetChanged() <-chan struct{} {
	s.purse.mu.Lock()
	defer s.purse.mu.Unlock()
	return s.purse.refused
}

func (s surroundings) ModelChanged() <-chan struct{} { return s.member.ModelChanged() }

// inherited returns the inheritance of a task that the member has taken, see [agent.Team].
func (m *member) inherited(ctx context.Context, box *mailbox.Mailbox, t team.Task) (brings team.Inherited, err error) {
	if m.gate != nil {
		var plan team.Approval
		if brings.Note, plan, err = m.gate.Taken(ctx, t); err != nil {
			return brings, err
		}
		brings.Note = m.Record.Dialect(m.Role).Say(brings.Note)
		if brings.Plan = plan.Plan; plan.Status == team.PlanPending && plan.AgentID == m.Member.AgentID {
			brings.Await = plan.Await()
		}
	}
	if t.Epoch <= 1 {
		return brings, nil
	}
	copies, err := m.board.History(ctx, t.ID)
	if err == nil {
		brings.Asked, brings.Answers, err = box.Asked(ctx, t, copies)
	}
	if errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) { // the record was damaged just now: the next step finds that
		err = nil
	}
	for _, q := range brings.Asked {
		if brings.Answers[q.ID].ID == "" && brings.Await == nil {
			brings.Await = q.Await()
		}
	}
	return brings, err
}

// answered blocks until the question that w waits for is answered, or ctx ends.
func (s surroundings) answered(ctx context.Context, w team.Await) (text string, err error) {
	err = until(ctx, func() bool {
		m, err := s.box.Answered(ctx, w)
		if err == nil {
			text = fmt.Sprintf("%s has answered what %s had asked for %s (mail %s): %s", m.From, w.Asker, w.Task, team.ShortID(w.MessageID), m.Content)
		}
		return err == nil
	})
	return text, err
}

// left blocks until a person's seat is gone, or ctx ends.
func (m *member) left(ctx context.Context, person team.AgentID) error {
	gone := errors.New("the seat is no more")
	return until(ctx, func() bool {
		return errors.Is(m.Team.Bucket.Watch(ctx, func(e broker.Entry) error {
			p, err := roster.Decode(e)
			if e.Deleted || err == nil && (p.State == team.Stopped || p.Backend != team.Person) {
				return gone
			}
			return nil
		}, nil, subject.KeyMember(person)), gone)
	})
}

// decided blocks until a plan is decided on, or ctx ends.
func (m *member) decided(ctx context.Context, plan string) (verdict string, err error) {
	err = until(ctx, func() bool {
		a, err := m.plans.Decided(ctx, plan)
		if err == nil {
			verdict = a.Verdict()
		}
		return err == nil
	})
	return verdict, err
}

// until returns once f is true, or ctx ends. It waits between calls: NATS may be unavailable.
func until(ctx context.Context, f func() bool) error {
	for !f() {
		if !shutdown.Sleep(ctx, roster.Interval) {
			return ctx.Err()
		}
	}
	return nil
}
