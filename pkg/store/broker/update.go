package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Update changes a record by compare-and-set: it reads it, has change make the next
// copy, and stores that, again and again while somebody else writes in between, with
// pauses. change judges the copy that it is given, and returns whether it is to be
// stored; store writes over the revision of that copy. The result is the stored record,
// or the one that change left as it was, or refused. Errors: those of the three, but for
// a Conflict of store; Unavailable once ctx has ended.
func Update[T any](ctx context.Context, read func(context.Context) (T, error), change func(*T) (bool, error), store func(context.Context, T) (T, error)) (T, error) {
	for lost := 1; ; lost++ {
		begun := time.Now()
		v, err := read(ctx)
		if err != nil {
			return v, err
		}
		if do, err := change(&v); err != nil || !do {
			return v, err
		}
		if v, err = store(ctx, v); !errors.Is(err, team.Conflict) {
			return v, err
		}
		if err := Pause(ctx, time.Since(begun), lost); err != nil {
			return v, err
		}
	}
}

// puts is where records are stored; a [Bucket] is one.
type puts interface {
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// Save stores a record, with the fields that were kept of it, and returns its revision. Errors: as
// of [Bucket.Put].
func Save(ctx context.Context, in puts, key string, record any, kept team.Extra, revision uint64) (uint64, error) {
	data, err := codec.Encode(record, kept)
	if err != nil {
		return revision, err
	}
	return in.Put(ctx, key, data, revision)
}

// Pause spreads the next tries of writers that collided at one key; it returns when it is
// time for the next. Tries hold each other up, so a pause is measured by how long the
// lost one took and how often one was lost: 16 writers are twice as slow if they try
// again at once, and 64 six times if they wait 20 ms while the server is slow. Errors:
// Unavailable once ctx has ended.
func Pause(ctx context.Context, took time.Duration, lost int) error {
	longest := max(time.Millisecond, min(took<<min(lost, 4), time.Second))
	if !shutdown.Sleep(ctx, rand.N(longest)) {
		return team.Errorf(team.Unavailable, "too many write the same record: %w", ctx.Err()).WithHint("nothing was changed: try again")
	}
	return nil
}
