// Package team defines the records that processes exchange (Team, Member, Role, Task, Message, Heartbeat,
// Event), their identifiers, statuses and error codes, and the pure rules over them: the transitions of a
// task, valid names, the limits of texts.
//
// It imports the standard library only and does no I/O, so the rules are tested without a broker. Packages
// board (tasks), roster (members), mailbox (messages) and registry (teams) store the records.
package team
