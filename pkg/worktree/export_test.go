package worktree

// Outcome is what the holder of a task that was submitted reads, however late.
var Outcome = (*Line).outcome

// Removing has the line count one more tree as being removed, until the returned function is called.
func (l *Line) Removing() (removed func()) {
	l.work.Add(1)
	return l.work.Done
}
