package index

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// finishAfter is how long a creation may be under way before its creator is taken
// for dead.
const finishAfter = time.Second

// state is the pure part: what is known, and who is to be offered what. What it
// says follows from what the bucket holds now, not from how that came about.
type state struct {
	graph
	team    team.Team
	members map[team.AgentID]team.Member
	roster  []team.Member // the same in order of joining; nil after a change
	bad     map[string]team.Quarantined
	plan    plan
	seq     uint64 // newest entry

	// Of the claims and completions since this was last asked, by the times in the
	// records: from claimable to claimed, from claimed to completed.
	queued, executed []time.Duration
	// Tasks that were taken from their holders since this was last asked.
	taken []taken

	agents  map[team.AgentID]*asker
	idle    map[string]*list.List // those that wait for work, by role; who has waited longest is first
	tickets uint64
	offers  *list.List // under way, or settled; those that lapse first come first

	patience time.Duration // Patience, but in tests
}

// taken is a task that somebody held until somebody else freed, ended or took it.
type taken struct {
	from team.AgentID
	task team.TaskID
}

// plan is the tasks of one call while not all of their keys are there. Nobody is
// to see any of them before the last.
type plan struct {
	last  team.TaskID               // "" = no creation is under way
	tasks map[team.TaskID]team.Task // those that have come; without a status if they have not
	since time.Time
}

func newState() state {
	return state{graph: newGraph(), members: map[team.AgentID]team.Member{}, bad: map[string]team.Quarantined{},
		agents: map[team.AgentID]*asker{}, idle: map[string]*list.List{}, offers: list.New(), patience: Patience}
}

// take takes in an entry of the feed. A record that cannot be read is set aside,
// and the error says which.
func (s *state) take(e broker.Entry, now time.Time) error {
	s.seq = max(s.seq, e.Revision)
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
	case kind == subject.Task:
		// Without the record, a task is not on the board: what it was before may be
		// as wrong as what it is now.
		var t team.Task
		var err error
		if !e.Deleted {
			t, err = decodeTask(e, team.TaskID(name))
		}
		s.put(team.TaskID(name), t, e)
		return err
	case e.Deleted && kind == subject.Member:
		s.setMember(team.Member{AgentID: team.AgentID(name)}, false)
	case e.Deleted:
	case kind == subject.Member:
		m := team.Member{Revision: e.Revision}
		var err error
		if m.Kept, err = e.Decode(&m, &m.V); err != nil {
			return err // the member stays what it was: nobody is judged by a damaged record
		}
		if m.AgentID != team.AgentID(name) {
			return misplaced(e)
		}
		s.setMember(m, true)
	case e.Key == subject.KeyTeam:
		t := team.Team{Revision: e.Revision}
		var err error
		if t.Kept, err = e.Decode(&t, &t.V); err != nil {
			return err
		}
		s.team = t
	case e.Key == subject.KeySequence:
		seq, err := board.DecodeSequence(e)
		if err != nil {
			return err
		}
		s.begin(seq, now)
	case e.Key == subject.KeyGraph:
		var g struct {
			V int `json:"v"`
		}
		_, err := e.Decode(&g, &g.V)
		return err
	}
	return nil
}

func decodeTask(e broker.Entry, id team.TaskID) (team.Task, error) {
	t, err := board.Decode(e)
	if err == nil && id.Number() == 0 {
		err = misplaced(e)
	}
	if err != nil {
		return team.Task{}, err
	}
	return t, nil
}

func misplaced(e broker.Entry) error {
	return team.Errorf(team.InvalidState, "record %s is the record of something else", e.Key)
}

func (s *state) setMember(m team.Member, there bool) {
	s.roster = nil
	if there {
		s.members[m.AgentID] = m
	} else {
		delete(s.members, m.AgentID)
	}
	if !there || m.State == team.Stopped {
		s.forget(m.AgentID)
	}
}

// put takes in what the bucket holds of a task: t, or nothing that can be read if
// it has no status.
func (s *state) put(id team.TaskID, t team.Task, e broker.Entry) {
	if _, held := s.plan.tasks[id]; held {
		s.plan.tasks[id] = t
		if id != s.plan.last || e.Deleted {
			return
		}
		s.reveal() // the last key: now the plan is there for everyone
		return
	}
	s.show(id, t)
}

// show puts t on the board, or takes it off if it has no status.
func (s *state) show(id team.TaskID, t team.Task) {
	n := s.node(id)
	if n.known() && n.task.Revision >= t.Revision && t.Status != "" {
		return
	}
	was, o, since := n.task, n.offer, n.since
	n.offer = nil // an offer of the copy before is stale
	s.set(n, t, s.seq)
	if o != nil && o.agent.offer == o && !t.HeldBy(team.Holder{Agent: o.agent.beat.AgentID, Incarnation: o.agent.beat.Incarnation}) {
		o.agent.offer = nil // its claim is bound to fail, so it stays idle
		s.seat(o.agent)
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
	for _, a := range []team.AgentID{was.Assignee, t.Assignee} {
		if a := s.agents[a]; a != nil {
			s.seat(a)
		}
	}
}

// begin takes in the sequence: the tasks of its intent are held back until the
// last of them is there.
func (s *state) begin(seq board.Sequence, now time.Time) {
	last := seq.Last()
	if last == s.plan.last {
		return
	}
	s.reveal() // whoever writes a new intent has finished the one before
	_, unreadable := s.bad[subject.KeyTask(last)]
	if last == "" || unreadable || s.node(last).known() {
		return
	}
	s.plan = plan{last, map[team.TaskID]team.Task{}, now}
	for _, t := range seq.Intent {
		n := s.node(t.ID)
		s.plan.tasks[t.ID] = n.task
		if n.known() { // it was read before its intent: the reading starts anywhere
			s.show(t.ID, team.Task{})
		}
	}
}

// reveal ends the plan and shows its tasks in order.
func (s *state) reveal() {
	held := s.plan.tasks
	s.plan = plan{}
	for _, id := range slices.SortedFunc(maps.Keys(held), func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) }) {
		if t := held[id]; t.Status != "" {
			s.show(id, t)
		}
	}
}

// unfinished reports whether a creation has been under way for too long. It says so
// once in a while.
func (s *state) unfinished(now time.Time) bool {
	if s.plan.last == "" || now.Sub(s.plan.since) < finishAfter {
		return false
	}
	s.plan.since = now
	return true
}
