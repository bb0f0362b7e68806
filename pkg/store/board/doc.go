// Package board is the team's shared task list: one key for each task in the
// team's bucket, the task's JSON as the value.
//
// A change is a compare-and-set against the revision that was read, so of many
// agents that claim one task exactly one wins and the rest get Conflict. Several
// tasks appear at once through the key seq.task (create.go); dependencies change
// under the key graph (graph.go); an agent's one claim at a time is a [ClaimSlot], and
// a [Scout] finds it work while there is no leader.
//
// The board records who works on what. It does not run work (package agent),
// carry messages (package mailbox), judge agents dead (package watchdog) or
// decide who is offered what (package board/index). Which transitions a task may
// make is in package team.
package board
