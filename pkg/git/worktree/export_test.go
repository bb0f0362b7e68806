package worktree

import (
	"context"
	"time"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/team"
)

// Answer is what the holder of a task that was submitted reads, once it has waited.
var Answer = (*Workspaces).answer

// Outcome is what the holder of a task that was submitted reads, however late.
var Outcome = (*Workspaces).outcome

// Sweep removes what is over, as the line does from time to time.
func (l *Workspaces) Sweep(ctx context.Context) error {
	if _, _, err := l.at(ctx); err != nil {
		return err
	}
	return l.sweep(ctx)
}

// Removing has the line count one more tree as being removed, until the returned function is called.
func (l *Workspaces) Removing() (removed func()) {
	over := make(chan struct{})
	l.removes(func() { <-over })
	return func() {
		close(over)
		l.Settled(context.Background())
	}
}

// Hurry has the line wait no longer than that for what it waits for minutes or an hour else.
func (l *Workspaces) Hurry(after, again, every time.Duration) {
	l.waits = patience{after, again, every}
}

// Due returns the tasks of whose entries a notice is due; it is sent.
func Due() func(waiting []mergequeue.Entry, now time.Time) (due []team.TaskID) {
	s := &stuck{usual, map[mergequeue.Work]turn{}}
	return func(waiting []mergequeue.Entry, now time.Time) (due []team.TaskID) {
		for _, e := range s.due(waiting, now) {
			t := s.turns[workOf(e)]
			t.noticed, t.notices = now, t.notices+1
			s.turns[workOf(e)] = t
			due = append(due, e.Task)
		}
		return due
	}
}
