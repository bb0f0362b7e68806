package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
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
	V        int    `json:"v"`
	Op       string `json:"op"`
	Notified uint64 `json:"notified"` // the leader was notified of all ends up to this revision

	Tasks []team.TaskID `json:"tasks,omitempty"` // the ends in the notices, the newest last: a task that has ended is written again when work of its holder is stored
}

// maxNoted is how many tasks the note contains.
const maxNoted = 1000

// readNote returns the note, the zero note if none is stored, and its revision.
func readNote(ctx context.Context, b Bucket) (n note, revision uint64, err error) {
	e, err := b.Get(ctx, subject.KeyWatchdog)
	if errors.Is(err, team.NotFound) {
		return n, 0, nil
	}
	if err == nil && json.Unmarshal(e.Value, &n) != nil {
		n = note{} // damaged: two notices are better than none
	}
	return n, e.Revision, err
}

// storeNote records that the leader was notified of all ends up to a revision, and of these tasks;
// the revision never decreases. Errors: Conflict if another watchdog was first: the next check
// tries again.
func storeNote(ctx context.Context, b Bucket, upTo uint64, tasks []team.TaskID) error {
	n, revision, err := readNote(ctx, b)
	if err != nil || n.Notified >= upTo {
		return err
	}
	for _, id := range tasks {
		if !slices.Contains(n.Tasks, id) {
			n.Tasks = append(n.Tasks, id)
		}
	}
	n.Tasks = n.Tasks[max(0, len(n.Tasks)-maxNoted):]
	data, err := json.Marshal(note{team.Protocol, ulid.Make().String(), upTo, n.Tasks})
	if err != nil {
		return err
	}
	_, err = b.Put(ctx, subject.KeyWatchdog, data, revision)
	return err
}
