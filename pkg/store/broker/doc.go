// Package broker connects to NATS with defaults that fit agents, and opens a team's streams and bucket. Package embedded
// runs a server in this process.
//
// It owns the one rule by which shared data changes: [Stream.Append], a compare-and-set on a literal subject whose outcome
// is ok, conflict or unknown, and which repeats the same write until it knows. The packages above (board, roster, journal,
// mailbox) give the bytes their meaning.
package broker
