package board

import (
	"context"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Scout finds work for an agent that gets no offers because no process leads. It reads the whole board once, after that
// only later writes. Many agents may do so at the same time, so it keeps little of each task in memory. Not safe for
// concurrent use.
type Scout struct {
	board     *Board
	reader    Reader
	agent     team.AgentID
	role      team.Role
	others    func(context.Context, team.Task) bool
	primed    bool   // the whole board was read once, to the end
	seen      uint64 // newest revision that was read
	completed map[team.TaskID]struct{}
	prospects map[team.TaskID]prospect // the pending tasks that the agent may claim
}

// prospect is a task that may become claimable.
type prospect struct {
	reserved     bool      // for the agent: it comes first
	any          bool      // for any role
	declined     time.Time // when the agent has put it back; zero: it has not
	priority     int
	dependencies []team.TaskID
	alone        time.Duration // how long the agent is not offered it while no other could take it
}

// NewScout returns a scout for an agent of this name and role. others reports whether another member could take a task, of
// which it reads only the role; see [explain.Situation.Others].
func NewScout(b *Board, agent team.AgentID, role team.Role, others func(context.Context, team.Task) bool) *Scout {
	return &Scout{board: b, agent: agent, role: role, others: others, completed: map[team.TaskID]struct{}{}, prospects: map[team.TaskID]prospect{}}
}

// Find returns the task that an index would offer first; ok is false if there is
// none. Errors: Unavailable.
func (s *Scout) Find(ctx context.Context) (id team.TaskID, ok bool, err error) {
	if err := s.board.FinishCreate(ctx); err != nil {
		return "", false, err
	}
	if err := s.read(ctx); err != nil {
		return "", false, err
	}
	var best prospect
	may, now := s.mine(ctx), time.Now()
	for other, p := range s.prospects {
		if (!ok || p.before(other, best, id)) && s.ready(p) && may(p, now) {
			id, best, ok = other, p, true
		}
	}
	return id, ok, nil
}

// mine returns a function that reports whether the agent would be offered a prospect: its cooldown for it is over, and it
// does not leave it to members that can do more. others is called once for each role.
func (s *Scout) mine(ctx context.Context) func(p prospect, now time.Time) bool {
	asked := map[bool]bool{}
	others := func(any bool) bool {
		there, known := asked[any]
		if !known {
			t := team.Task{Role: s.role.Name}
			if any {
				t.Role = ""
			}
			there = s.others(ctx, t)
			asked[any] = there
		}
		return there
	}
	return func(p prospect, now time.Time) bool {
		switch {
		case p.reserved:
			return true
		case p.any && s.role.ReadsOnly() && others(true):
			return false
		case p.declined.IsZero() || now.Sub(p.declined) >= team.BackoffShared:
			return true
		}
		return now.Sub(p.declined) >= p.alone && !others(p.any)
	}
}

// before reports whether p, of the task id, comes before o in the order of work.
func (p prospect) before(id team.TaskID, o prospect, other team.TaskID) bool {
	if p.reserved != o.reserved {
		return p.reserved
	}
	return team.Task{ID: id, Priority: p.priority}.Before(team.Task{ID: other, Priority: o.priority})
}

// read reads the writes since the last read. An interrupted first read starts over: to continue from its last revision
// would bring up to 64 old writes of each remaining task instead of the newest. It takes a second for a hundred thousand
// tasks, so an agent that mail interrupts more often than that has other work.
func (s *Scout) read(ctx context.Context) error {
	if s.primed {
		return s.board.bucket.Past(ctx, s.seen+1, s.take, subject.AllTasks)
	}
	clear(s.completed) // a first read does not show which tasks were deleted since
	clear(s.prospects)
	err := s.board.bucket.Each(ctx, s.take, subject.AllTasks)
	s.primed = err == nil
	return err
}

func (s *Scout) ready(p prospect) bool {
	for _, id := range p.dependencies {
		if _, done := s.completed[id]; !done {
			return false
		}
	}
	return true
}

// take reads a write to a task's key.
func (s *Scout) take(e broker.Entry) error {
	s.seen = max(s.seen, e.Revision)
	_ = s.reader.Take(e, s) // an unreadable task cannot be claimed
	return nil
}

// Task returns the zero Task: a scout holds no copies. It needs none, since it reads no sequence.
func (s *Scout) Task(team.TaskID) team.Task { return team.Task{} }

// Show is called by its [Reader].
func (s *Scout) Show(id team.TaskID, t team.Task) {
	declined := s.prospects[id].declined
	delete(s.completed, id)
	delete(s.prospects, id)
	switch {
	case t.Status == team.Completed:
		s.completed[id] = struct{}{}
	case t.Status == team.Pending && t.Fits(s.agent, s.role.Name) && (t.ReservedFor != "" || s.role.Claims()):
		switch {
		case !t.HasDeclined(s.agent):
			declined = time.Time{}
		case declined.IsZero():
			declined = time.Now()
		}
		s.prospects[id] = prospect{t.ReservedFor != "", t.Role == "", declined, t.Priority, t.Dependencies, t.Backoff(false)}
	}
}
