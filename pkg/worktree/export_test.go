package worktree

// Outcome is what the holder of a task that was submitted reads, however late.
var Outcome = (*Line).outcome
