// Package shutdown contains the rules by which a process ends: the first part that ends ends the others, and the
// process ends within [Within] of the signal, also while NATS is away and a reader of its pages hangs.
//
// It knows neither the work of the parts nor the content of their last writes.
package shutdown

import "time"

// Within is the time that a process has to end after a signal to stop. Its parent kills it then: package local
// does, as systemd and container engines do after a while.
const Within = 5 * time.Second

// The shares of Within. Each bounds one step; all but Tools are used up only if NATS does not answer: with NATS
// there they all take some milliseconds. The steps of a process run one after the other, in this order, except
// where a comment states otherwise; [Close] is always the last.
const (
	// Tools is for the running tool call. Its processes are killed immediately; the time is for the output of a
	// process that has left its process group, and for reading the files that a change has touched.
	Tools = time.Second

	// Journal is for entries of the agent that its journal does not hold yet. A successor learns that the outcome
	// of an entry that could not be stored is unknown.
	Journal = 500 * time.Millisecond

	// Goal is for the end of a goal or of a term that the leader is writing. It begins with the signal, as Tools
	// does. It is longer than other shares since a half-closed goal keeps its team from work until a successor leads.
	Goal = 1500 * time.Millisecond

	// Release is for putting back the member's task and, if the member leaves for good when the signal comes, for
	// keeping its changes without a task and removing its trees: all of that together. The watchdog frees a task that
	// could not be put back once the lease has run out; the next process of the team on this host removes trees that
	// are left.
	Release = time.Second

	// Part bounds Tools, Journal and Release together, whichever of them a member is in when the signal comes.
	Part = Tools + Journal + Release

	// SignOff is for a teammate's last write to its member's record, and for closing its inbox. If that write
	// fails, the member counts as missing once its lease has run out.
	SignOff = time.Second

	// Join is for the write by which a process becomes a member, if the signal comes in the middle of it; SignOff
	// follows.
	Join = time.Second

	// Lease is for giving back the lease on a team; a leader does so for all its teams at the same time. If that
	// fails, a successor waits until the lease runs out.
	Lease = time.Second

	// Children begins with the end of the cluster's owner, and is for the teammates that a leader has started. It
	// covers their Tools, Journal, Release and SignOff; a teammate that then only waits for the readers of its pages
	// is killed.
	Children = 3500 * time.Millisecond

	// Close is for sending what the connection still holds, such as an acknowledgement, and at the same time for
	// the readers of the pages, who are cut off then.
	Close = time.Second
)
