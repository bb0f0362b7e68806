// Package feed shows all events of a team as one list in one order, with a cursor at which a reader continues, in the same
// process or in another.
//
// It stores nothing. It reads the stored streams: the event log (runs), the conversations (texts, tool calls, their results,
// refusals, compactions), the mail, and the bucket (tasks and members).
//
// Its order is the time at which the server stored an entry, then a fixed order of these four, then the sequence in each: the
// same in every process. A turn is stored before the effects of its calls, so this is the order of cause. A follower receives
// an entry as soon as the server confirms that nothing older is pending, or after 250 ms. An older entry that arrives later is
// delivered late and out of order, never dropped.
//
// It shows events; packages board and agent define their meaning for a task or a conversation.
package feed

import (
	"context"
	"math"
	"slices"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Entry is one entry of the feed.
type Entry struct {
	Cursor Cursor    `json:"cursor"` // of the place behind it
	Time   time.Time `json:"time"`   // when the server stored its source
	team.Event
}

// Options select the entries to read.
type Options struct {
	After  Cursor           // the place to continue at; "" is the beginning
	Follow bool             // continue with new entries, until ctx ends
	Agents []team.AgentID   // only events of these; none means of all
	Types  []team.EventType // only events of these types; none means all
	Memory *Memory          // of a reader that begins where its last read has ended; nil: none
}

// Memory keeps a reader's knowledge of records and runs. A read that begins where the one before has ended does not look them
// up again. The zero value is for the first read; an error other than f's resets it to that. A Memory is for one reader.
type Memory struct {
	view *view
	at   Place
}

// Wants reports whether the options select e. A reset concerns every reader.
func (o Options) Wants(e team.Event) bool {
	return IsReset(e) ||
		(len(o.Agents) == 0 || slices.Contains(o.Agents, e.AgentID)) &&
			(len(o.Types) == 0 || slices.Contains(o.Types, e.Event.Type))
}

// Read calls f for each entry of the team's feed behind o.After, in order, up to the present end, or with o.Follow until ctx
// ends, and then returns nil. It holds a few hundred entries at most; while f runs, it reads nothing more. An error of f ends
// it. It survives restarts of the server without a gap or a repetition.
//
// For entries that were removed since the cursor was made, except old values of the bucket, it gives one event of type CUSTOM
// with the name reset, whose value is a [Reset]; the feed continues with the oldest entry that is there.
//
// Errors: InvalidArgument for a string that is not a cursor of this team; Unavailable.
func Read(ctx context.Context, t *broker.Storage, o Options, f func(Entry) error) error {
	_, err := Walk(ctx, t, o, func(s Step) error { return f(s.Entry) })
	return err
}

// End returns the cursor of the present end. Errors: Unavailable.
func End(ctx context.Context, t *broker.Storage) (Cursor, error) {
	var p Place
	for i, s := range streamsOf(t) {
		state, err := s.State(ctx)
		if err != nil {
			return "", err
		}
		p[i] = position{seq: state.Last, made: age(state)}
	}
	return p.Cursor(t.ID), nil
}

// Since returns the cursor behind all entries stored before that time. Errors: Unavailable.
func Since(ctx context.Context, t *broker.Storage, at time.Time) (Cursor, error) {
	from, _, err := Recent(ctx, t, at, math.MaxUint64)
	return from.Cursor(t.ID), err
}

// Recent returns the present end, and the place behind all entries stored before since, or before the last most messages of a
// stream, if that is later. Errors: Unavailable.
func Recent(ctx context.Context, t *broker.Storage, since time.Time, most uint64) (from, end Place, err error) {
	for i, s := range [kinds]*broker.Stream{events: t.Events, logs: t.Logs, mail: t.Messages, bucket: t.Bucket.Stream} {
		state, err := s.State(ctx)
		if err != nil {
			return from, end, err
		}
		first, err := s.FirstSince(ctx, since)
		if err != nil {
			return from, end, err
		}
		made, last := age(state), state.Last
		end[i] = position{seq: last, made: made}
		from[i] = position{seq: min(max(first-1, last-min(most, last)), last), made: made}
	}
	return from, end, nil
}

// Seqs returns the sequences, in the conversations and in the bucket, behind which a cursor continues. Error: InvalidArgument
// for a string that is not a cursor of this team.
func (c Cursor) Seqs(id team.TeamID) (conversations, records uint64, err error) {
	p, err := c.Place(id)
	return p[logs].seq, p[bucket].seq, err
}

// stream is the part of a team's stream that the feed needs; *broker.Stream is one.
type stream interface {
	State(ctx context.Context) (broker.State, error)
	Next(ctx context.Context, from uint64) (broker.Msg, error)
	Follow(ctx context.Context, after broker.Mark, f func(broker.Msg) error, caughtUp func(), filters ...string) error
}

// kind is one of the streams of a feed. Of entries of the same time, the one of the lower kind comes first.
type kind int

const (
	events kind = iota
	logs
	mail
	bucket
	kinds // how many there are
)

// String returns the kind's name in a [Reset].
func (k kind) String() string {
	return [kinds]string{"events", "conversations", "mail", "board"}[k]
}

func streamsOf(t *broker.Storage) [kinds]stream {
	return [kinds]stream{events: t.Events, logs: t.Logs, mail: t.Messages, bucket: t.Bucket.Stream}
}
