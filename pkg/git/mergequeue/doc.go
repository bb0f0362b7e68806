// Package mergequeue merges the work of completed tasks into a team's integration branch, one after the other, in the order
// of their submission.
//
// A task's holder submits its work ([Records.Submit]). One of any number of queues ([Queue.Run]), in any process with git,
// merges it onto the branch's head, checks the merged files, and moves the head by compare-and-set. The key line of the
// team's bucket is the truth; the branch of each host's repository follows it.
//
// Each step can be repeated, and the next queue continues where another has ended. A task is in the branch once, and never
// under a former epoch. A queue that has lost its lease moves nothing: the lease is part of the record that it would have to
// write.
//
// Package gitrepo has the git side. The callers ([Tasks], [Checker]) decide who holds a task, where a check runs, and what
// happens after a conflict.
package mergequeue
