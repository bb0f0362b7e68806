package board

import (
	"context"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Scout finds work for an agent to which nobody makes offers, as many may at once
// when a leader dies. It reads the whole board once, after that only what was written
// since, and holds of each task no more than decides. Not safe for concurrent use.
type Scout struct {
	board     *Board
	role      string
	primed    bool   // the whole board was read once, to the end
	seen      uint64 // newest revision that was read
	completed map[team.TaskID]struct{}
	prospects map[team.TaskID]prospect // the pending tasks that the role may claim
}

// prospect is a task that may become claimable.
type prospect struct {
	priority     int
	dependencies []team.TaskID
}

// NewScout returns a scout for an agent of this role.
func NewScout(b *Board, role string) *Scout {
	return &Scout{board: b, role: role, completed: map[team.TaskID]struct{}{}, prospects: map[team.TaskID]prospect{}}
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
	var best team.Task
	for id, p := range s.prospects {
		if t := (team.Task{ID: id, Priority: p.priority}); (!ok || t.Before(best)) && s.ready(p) {
			best, ok = t, true
		}
	}
	return best.ID, ok, nil
}

// read reads what has not been read yet. A first reading that was cut short is done
// anew: to go on with it would be to read every write of the tasks that are left, up to
// 64 of each, in place of the newest. It takes a second for a hundred thousand tasks;
// whom mail interrupts more often than that has something to do.
func (s *Scout) read(ctx context.Context) error {
	if s.primed {
		return s.board.bucket.Past(ctx, s.seen+1, s.take, subject.AllTasks)
	}
	clear(s.completed) // a task may have been deleted since, which a first reading does not tell
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

// take takes in what was written to a task's key.
func (s *Scout) take(e broker.Entry) error {
	s.seen = max(s.seen, e.Revision)
	_, name := subject.ParseKey(e.Key)
	id := team.TaskID(name)
	delete(s.completed, id)
	delete(s.prospects, id)
	if e.Deleted {
		return nil
	}
	t, err := Decode(e)
	switch {
	case err != nil: // what cannot be read cannot be claimed
	case t.Status == team.Completed:
		s.completed[id] = struct{}{}
	case t.Status == team.Pending && (t.Role == "" || t.Role == s.role):
		s.prospects[id] = prospect{t.Priority, t.Dependencies}
	}
	return nil
}
