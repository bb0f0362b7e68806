// Package broker is the way to NATS: connecting with defaults that fit agents, a
// server inside the process for one machine, and a team's streams and bucket.
//
// It owns the one rule by which everything shared is changed: [Stream.Append], a
// compare-and-set on a literal subject whose outcome is ok, conflict or unknown,
// and which repeats the same write until it knows. What the bytes mean is the
// business of the packages above (board, roster, journal, mailbox).
package broker
