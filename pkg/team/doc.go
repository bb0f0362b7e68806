// Package team is the vocabulary: the records that travel between processes
// (Team, Member, Role, Task, Message, Heartbeat, Event), their identifiers, statuses
// and error codes, and the pure rules over them: which transition a task may
// make, what a name may look like, how long a text may be.
//
// It imports the standard library only and does no I/O, so every rule here is
// tested without a broker. Storing records is the work of the packages above:
// board (tasks), roster (members), mailbox (messages), registry (teams).
package team
