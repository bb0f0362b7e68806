// Package broker is the way to NATS: connecting with defaults that fit agents, and
// a team's streams and bucket. A server of one's own is in package embedded.
//
// It owns the one rule by which everything shared is changed: [Stream.Append], a
// compare-and-set on a literal subject whose outcome is ok, conflict or unknown,
// and which repeats the same write until it knows. What the bytes mean is the
// business of the packages above (board, roster, journal, mailbox).
package broker
