// Package shutdown says how a process ends: all its parts once one of them has ended, their waits cut short,
// and the process within [Within] of the signal, also while NATS is away and a reader
// of its pages hangs.
//
// It knows neither what the parts do nor what the last words say.
package shutdown

import "time"

// Within is how long a process may take to end once it is told to stop. Whoever started
// it kills it then: package local does, as systemd and container engines do after a
// while.
const Within = 5 * time.Second

// The shares of Within. Each bounds one step, all but Tools only if NATS does not
// answer; with NATS there they all take some milliseconds. The steps of a process come
// one after the other, in this order, except where it says otherwise; [Close] is the
// last of all.
const (
	// Tools is for the tool call that is under way. Its processes are killed at once;
	// this is for the output of one that has left its process group, and for reading
	// what a change has led to.
	Tools = time.Second

	// Journal is for what the agent has said and done already, and its journal does not
	// hold yet. What cannot be stored, a successor is told as unknown.
	Journal = 500 * time.Millisecond

	// Goal is for the end of a goal or of a term that the leader is writing. It begins
	// with the signal, as Tools does. It is longer than other shares since a goal that
	// is closed by half keeps its team from work until a successor leads.
	Goal = 1500 * time.Millisecond

	// Release is for putting back the task that the member holds and, of one that leaves for
	// good when the signal comes, for keeping what it has changed without a task and for
	// removing its trees: all of that together. A task that cannot be put back is freed by the
	// watchdog once the lease has run out; trees that are left are removed by the next process
	// of the team on this host.
	Release = time.Second

	// Part ends Tools, Journal and Release, in whatever of them a member is when the signal
	// comes.
	Part = Tools + Journal + Release

	// SignOff is for what a teammate writes into its member's record, and closing its
	// inbox. If it cannot be written, the member is missed once its lease has run out.
	SignOff = time.Second

	// Join is for the write by which a process becomes a member, if the signal comes in
	// the middle of it: what follows is SignOff.
	Join = time.Second

	// Lease is for giving back the lease on a team; a leader does so for all its teams
	// at once. If it cannot be given back, a successor waits until it runs out.
	Lease = time.Second

	// Children begins with the end of the cluster's owner, and is for the teammates that
	// a leader has started. It covers their Tools, Journal, Release and SignOff; who is only
	// waiting for the readers of its pages by then is killed.
	Children = 3500 * time.Millisecond

	// Close is for sending what the connection still holds, such as an acknowledgement,
	// and at the same time for the readers of the pages, who are cut off then.
	Close = time.Second
)
