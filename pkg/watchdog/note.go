package watchdog

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Bucket is the team's bucket; *broker.Bucket is one.
type Bucket interface {
	LastSeq(ctx context.Context) (uint64, error)
	Get(ctx context.Context, key string) (broker.Entry, error)
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// note is the value of the watchdog's key.
type note struct {
	V    int    `json:"v"`
	Op   string `json:"op"`
	Told uint64 `json:"told"` // the leader was told of all ends up to this revision
}

// readNote returns the note, the zero note if there is none, and its revision.
func readNote(ctx context.Context, b Bucket) (n note, revision uint64, err error) {
	e, err := b.Get(ctx, subject.KeyWatchdog)
	if errors.Is(err, team.NotFound) {
		return n, 0, nil
	}
	if err == nil && json.Unmarshal(e.Value, &n) != nil {
		n = note{} // damaged: better told twice than never
	}
	return n, e.Revision, err
}

// storeNote notes that the leader was told of all ends up to a revision; the note never
// goes back.
func storeNote(ctx context.Context, b Bucket, upTo uint64) error {
	type stored struct {
		note
		revision uint64
	}
	_, err := broker.Update(ctx,
		func(ctx context.Context) (s stored, err error) {
			s.note, s.revision, err = readNote(ctx, b)
			return s, err
		},
		func(s *stored) (bool, error) {
			before := s.Told
			s.note = note{team.Protocol, ulid.Make().String(), max(before, upTo)}
			return before < upTo, nil
		},
		func(ctx context.Context, s stored) (stored, error) {
			data, err := json.Marshal(s.note)
			if err == nil {
				_, err = b.Put(ctx, subject.KeyWatchdog, data, s.revision)
			}
			return s, err
		})
	return err
}
