package index

import (
	"container/list"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// finishAfter is the time after which the creator of an unfinished creation counts as dead.
const finishAfter = time.Second

// state is the pure part of the index: the state of the team, and the choice of offers. It depends on the present content
// of the bucket, not on the way there.
type state struct {
	graph
	team      team.Team
	snapshots map[string]bool // roles whose members only look, see [team.Role.ReadsOnly]
	waits     map[string]bool // roles whose members take nothing unassigned, see [team.Role.Claims]
	members   map[team.AgentID]team.Member
	roster    []team.Member // the same in order of joining; nil after a change
	bad       map[string]team.Quarantined
	reader    board.Reader
	begun     time.Time // when the creation began that is under way
	seq       uint64    // newest entry

	// Durations since the last collection, by the times in the records: of claims, from claimable to claimed; of
	// completions, from claimed to completed.
	queued, executed []time.Duration
	// Tasks that were taken from their holders since the last collection.
	taken []taken
	// Unlawful writes since the last collection.
	unlawful []unlawful

	agents  map[team.AgentID]*asker
	early   map[team.AgentID]team.Heartbeat // of incarnations whose records the feed has yet to show
	heard   []team.Heartbeat                // of these, whose records have come since this was last collected
	idle    map[string]*list.List           // those that wait for work, by role; the longest waiting is first
	tickets uint64
	offers  *list.List // open or settled ones, in the order in which they lapse

	patience time.Duration // the constant of that name, but in tests
}

// taken is a task that another agent or person freed, ended or took from its holder.
type taken struct {
	from team.AgentID
	task team.TaskID
}

// unlawful is a write of a task that no rule allows.
type unlawful struct {
	task team.Task
	why  string
}

func newState() state {
	return state{graph: newGraph(), members: map[team.AgentID]team.Member{}, bad: map[string]team.Quarantined{},
		agents: map[team.AgentID]*asker{}, early: map[team.AgentID]team.Heartbeat{}, idle: map[string]*list.List{}, offers: list.New(), patience: patience}
}

// take applies an entry of the feed. It sets an unreadable record aside, and returns an error that names it.
func (s *state) take(e broker.Entry, now time.Time) error {
	s.seq, s.now = max(s.seq, e.Revision), now
	err := s.read(e, now)
	if err != nil {
		s.bad[e.Key] = team.Quarantined{Key: e.Key, Revision: e.Revision, Error: err.Error()}
	} else {
		delete(s.bad, e.Key)
	}
	return err
}

func (s *state) read(e broker.Entry, now time.Time) error {
	switch kind, name := subject.ParseKey(e.Key); {
	case kind == subject.Task || e.Key == subject.KeySequence:
		before := s.reader.Creating()
		err := s.reader.Take(e, s)
		if s.reader.Creating() != before {
			s.begun = now
		}
		return err
	case e.Deleted && kind == subject.Member:
		s.setMember(team.Member{AgentID: team.AgentID(name)}, false)
	case e.Deleted:
	case kind == subject.Member:
		m := team.Member{Revision: e.Revision}
		var err error
		if m.Kept, err = e.Decode(&m, &m.V); err != nil {
			return s.unreadable(team.AgentID(name), e, err)
		}
		if m.AgentID != team.AgentID(name) || m.State == "" {
			return s.unreadable(team.AgentID(name), e, misplaced(e))
		}
		s.setMember(m, true)
	case e.Key == subject.KeyTeam:
		t := team.Team{Revision: e.Revision}
		var err error
		if t.Kept, err = e.Decode(&t, &t.V); err != nil {
			return err
		}
		if t.LeaseSeconds <= 0 {
			return misplaced(e)
		}
		s.team, s.snapshots, s.waits = t, map[string]bool{}, map[string]bool{}
		for name, r := range t.Roles {
			s.snapshots[name], s.waits[name] = r.ReadsOnly(), !r.Claims()
		}
	case e.Key == subject.KeyGraph, e.Key == subject.KeyWatchdog:
		var g struct {
			V int `json:"v"`
		}
		_, err := e.Decode(&g, &g.V)
		return err
	}
	return nil
}

// unreadable records that a member's record is damaged, and returns why. A known member stays as it was, since no member
// is judged by such a record; an unknown one becomes [team.Unreadable].
func (s *state) unreadable(a team.AgentID, e broker.Entry, why error) error {
	if _, known := s.members[a]; !known {
		s.setMember(team.UnreadableMember(a, why, e.Time), true)
	}
	return why
}

func misplaced(e broker.Entry) error {
	return team.Errorf(team.InvalidState, "record %s %w: it is the record of something else", e.Key, team.ErrUnreadable).WithHint(team.RepairHint)
}

func (s *state) setMember(m team.Member, there bool) {
	s.roster = nil
	if there {
		s.members[m.AgentID] = m
		s.takeEarly(m)
	} else {
		delete(s.members, m.AgentID)
		delete(s.early, m.AgentID)
	}
	if !there || m.State == team.Stopped {
		s.forget(m.AgentID)
	}
}

// Task returns the copy that was shown last.
func (s *state) Task(id team.TaskID) team.Task {
	if n := s.nodes[id]; n != nil {
		return n.task
	}
	return team.Task{}
}

// Show puts t on the board, or takes it off if it has no status.
func (s *state) Show(id team.TaskID, t team.Task) {
	n := s.node(id)
	if n.known() && n.task.Revision >= t.Revision && t.Status != "" {
		return
	}
	was, o, since := n.task, n.offer, n.since
	n.offer = nil // an offer of the copy before is stale
	s.set(n, t, s.seq)
	if o != nil && o.agent.offer == o && !t.HeldBy(team.Holder{Agent: o.agent.heartbeat.AgentID, Incarnation: o.agent.heartbeat.Incarnation}) {
		o.agent.offer = nil // its claim must fail, so the agent stays idle
		s.enqueue(o.agent)
	}
	switch {
	case was.Status == team.Pending && t.Status == team.InProgress && t.ClaimedAt != nil && !since.IsZero():
		s.queued = append(s.queued, max(0, t.ClaimedAt.Sub(since)))
	case was.Status == team.InProgress && t.Status == team.Completed && t.ClaimedAt != nil && t.CompletedAt != nil:
		s.executed = append(s.executed, max(0, t.CompletedAt.Sub(*t.ClaimedAt)))
	}
	if was.Status == team.InProgress && t.UpdatedBy != was.Assignee &&
		(t.Status != team.InProgress || t.Assignee != was.Assignee || t.Epoch != was.Epoch) {
		s.taken = append(s.taken, taken{was.Assignee, id})
	}
	if t.Status == team.InProgress {
		s.claimed(t, o)
	}
	if why := s.wrong(was, t); why != "" {
		s.unlawful = append(s.unlawful, unlawful{t, why})
	}
	for _, a := range []team.AgentID{was.Assignee, t.Assignee} {
		if a := s.agents[a]; a != nil {
			s.enqueue(a)
		}
	}
}

// wrong returns the reason why no rule allows t after was; "" if a rule does, or was is not known.
func (s *state) wrong(was, t team.Task) string {
	switch h := (team.Holder{Agent: t.Assignee, Incarnation: t.Incarnation}); {
	case was.Status == "" || t.Status == "":
		return ""
	case t.Status == team.InProgress && s.held[h].tasks > 1:
		return string(h.Agent) + " holds another task"
	}
	return explain.Unlawful(was, t)
}

// unfinished reports whether a creation has been under way for longer than finishAfter. It then starts counting again, so
// that it returns true at most once in that time.
func (s *state) unfinished(now time.Time) bool {
	if s.reader.Creating() == "" || now.Sub(s.begun) < finishAfter {
		return false
	}
	s.begun = now
	return true
}
