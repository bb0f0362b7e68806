package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Bucket is a key-value bucket: a Stream with one subject for each key. Reads go to the stream's leader, never to a replica
// that may be behind.
type Bucket struct {
	*Stream
	prefix string // "$KV.<bucket>."
}

// Entry is a key with its value. Revision is the value's sequence in the bucket.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
	Time     time.Time // when the server stored it
	Deleted  bool
}

// Decode reads the entry as a record into v, a pointer to a struct, and returns the
// fields that the struct does not have. version is the struct's own field v. Errors:
// [team.ErrUnreadable].
func (e Entry) Decode(v any, version *int) (team.Extra, error) {
	kept, err := codec.Decode(e.Value, v)
	if err != nil {
		return nil, team.Errorf(team.InvalidState, "record %s %w: %w", e.Key, team.ErrUnreadable, err).WithHint(team.RepairHint)
	}
	if *version != team.Protocol {
		other := codec.OtherProtocol(*version)
		return nil, team.Errorf(team.InvalidState, "record %s %w: %w", e.Key, team.ErrUnreadable, other).WithHint("%s", other.Hint)
	}
	return kept, nil
}

// ErrDeleted is in the NotFound error of [Bucket.Get] for a deleted key.
var ErrDeleted = errors.New("it was deleted")

// Readable returns the newest copy of a key's value for which good returns nil, of those in the history, and the copies
// that were stored over it, oldest first. Errors: NotFound if good accepts none; Unavailable.
func (b *Bucket) Readable(ctx context.Context, key string, good func(Entry) error) (last Entry, over []Entry, err error) {
	found := false
	err = b.Past(ctx, 1, func(e Entry) error {
		if !e.Deleted && good(e) == nil {
			last, over, found = e, nil, true
		} else {
			over = append(over, e)
		}
		return nil
	}, key)
	if err == nil && !found {
		err = team.Errorf(team.NotFound, "no copy of %s that the bucket keeps can be read", key)
	}
	return last, over, err
}

// Get returns the key's newest value. Errors: NotFound, with [ErrDeleted] after a Delete;
// Unavailable.
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	m, err := b.Last(ctx, b.prefix+key)
	if err != nil {
		return Entry{}, err
	}
	if m.Deleted {
		return Entry{}, team.Errorf(team.NotFound, "there is nothing at %s: %w", key, ErrDeleted)
	}
	return b.Entry(m), nil
}

// Put stores value under key if the key is still at revision (0: absent), and returns the new revision. Its outcomes are
// those of [Stream.Append].
func (b *Bucket) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return b.Append(ctx, b.prefix+key, value, revision)
}

// PutAgain is Put for a write that another process may have made already; see [Stream.Repeat].
func (b *Bucket) PutAgain(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return b.Repeat(ctx, b.prefix+key, value, revision)
}

// Set stores value under key, without a check of the revision. It repeats as [Stream.Publish] does. Errors: Unavailable.
func (b *Bucket) Set(ctx context.Context, key string, value []byte) error {
	_, err := b.Publish(ctx, b.prefix+key, rand.Text(), value)
	return err
}

// Delete removes key if it is still at revision; for an absent key it returns nil. It repeats a try without an answer.
// Errors: Conflict if the key has another value meanwhile; Unavailable.
func (b *Bucket) Delete(ctx context.Context, key string, revision uint64) error {
	header := expecting(revision)
	header.Set(operation, "DEL")
	tries := attempts{s: b.Stream, what: "delete " + key}
	for doubt := false; ; {
		_, err := b.try(ctx, b.prefix+key, nil, header)
		switch {
		case err == nil:
			return nil
		case lostCAS(err):
			if _, err := b.Get(ctx, key); !errors.Is(err, team.NotFound) {
				return cmp.Or(err, error(team.Errorf(team.Conflict, "%s was changed by somebody else", key)))
			}
			return nil
		case noRoom(err): // below
		case refused(err) && !doubt:
			return team.Errorf(team.Unavailable, "NATS refuses to delete %s: %w", key, err)
		}
		doubt = doubt || !unsent(err) && !underWay(err) && !noRoom(err)
		tries.doubt = doubt
		if err := tries.again(ctx, err); err != nil {
			return err
		}
	}
}

// Load returns the newest values of the keys that match the filters ("task.>") at the time of the call, without deleted
// ones.
func (b *Bucket) Load(ctx context.Context, filters ...string) ([]Entry, error) {
	newest := map[string]Entry{} // a key that is written meanwhile may come twice
	err := b.Newest(ctx, func(m Msg) error {
		e := b.Entry(m)
		newest[e.Key] = e
		return nil
	}, b.subjects(filters)...)
	maps.DeleteFunc(newest, func(_ string, e Entry) bool { return e.Deleted })
	return slices.SortedFunc(maps.Values(newest), func(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) }), err
}

// Each calls f for the newest value of every key that matches the filters, as Load does, without holding them all in
// memory. A key that is written meanwhile may come twice.
func (b *Bucket) Each(ctx context.Context, f func(Entry) error, filters ...string) error {
	return b.Newest(ctx, func(m Msg) error {
		if m.Deleted {
			return nil
		}
		return f(b.Entry(m))
	}, b.subjects(filters)...)
}

// Watch calls f for the newest value of every matching key, then caughtUp, then f for every change, in order, until ctx
// ends. Deleted keys come with Deleted set.
func (b *Bucket) Watch(ctx context.Context, f func(Entry) error, caughtUp func(), filters ...string) error {
	return b.snapshot(ctx, func(m Msg) error { return f(b.Entry(m)) }, caughtUp, b.subjects(filters)...)
}

// Changes is Watch for every write since revision from, in place of the newest values: a reader that knows its position
// continues without a gap, as far as the bucket's history reaches.
func (b *Bucket) Changes(ctx context.Context, from uint64, f func(Entry) error, caughtUp func(), filters ...string) error {
	return b.Follow(ctx, Mark{Seq: max(from, 1) - 1}, func(m Msg) error { return f(b.Entry(m)) }, caughtUp, b.subjects(filters)...)
}

// Past calls f for every write of the matching keys since revision from that is still in the history, in order, up to the
// present end.
func (b *Bucket) Past(ctx context.Context, from uint64, f func(Entry) error, filters ...string) error {
	return b.Read(ctx, from, func(m Msg) error { return f(b.Entry(m)) }, b.subjects(filters)...)
}

// Entry returns m, a message of the bucket's stream, as a key with its value.
func (b *Bucket) Entry(m Msg) Entry {
	return Entry{Key: strings.TrimPrefix(m.Subject, b.prefix), Value: m.Data, Revision: m.Seq, Time: m.Time, Deleted: m.Deleted}
}

func (b *Bucket) subjects(filters []string) []string {
	out := make([]string, len(filters))
	for i, f := range filters {
		out[i] = b.prefix + f
	}
	return out
}
