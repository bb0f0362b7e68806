// Package mergequeue is the queue that brings the work of completed tasks into a team's line, one
// after the other, in the order in which they were submitted.
//
// A task's holder submits its work ([Records.Submit]). One of any number of queues ([Queue.Run]),
// in any process with git, merges it onto the line's head, checks the merged files, and moves the
// head by compare-and-set. The key line of the team's bucket is the truth; the branch of each
// host's repository follows it.
//
// Each step can be repeated, and whichever queue comes next continues where another has ended. A
// task is in the line once, and never under a former epoch. A queue that has lost its lease moves
// nothing: the lease is part of the record that it would have to write.
//
// Package gitrepo has the git side. The callers ([Tasks], [Checker]) decide who holds a task, where a
// check runs, and what happens after a conflict.
package mergequeue
