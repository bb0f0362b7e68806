// Package board is the team's shared task list: one key for each task in the team's bucket, the task's JSON as the value.
//
// A change is a compare-and-set against the revision that was read, so of many agents that claim one task exactly one
// wins and the others get Conflict. Several tasks appear at the same time through the key seq.task (create.go);
// dependencies change under the key graph (graph.go); a [ClaimSlot] makes an agent's claims one at a time, and a [Scout]
// finds it work while there is no leader.
//
// The board records the holder and state of each task. It does not run work (package agent), carry messages (package
// mailbox), judge agents dead (package watchdog) or choose offers (package board/index). Package team has the
// transitions that a task may make.
package board
