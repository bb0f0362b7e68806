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

// Update changes a record by compare-and-set: it reads the record, has change make the next copy, and stores that, and
// repeats with pauses while other writers are first. change judges the copy that it gets, and returns whether to store it;
// store writes over the revision of that copy. Update returns the stored record, or the one that change left as it was, or
// refused. Errors: those of the three, except a Conflict of store; Unavailable once ctx has ended.
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

// puts stores records; a [Bucket] is one.
type puts interface {
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// Save stores a record, with its unknown fields kept, and returns its revision. Errors: as of [Bucket.Put].
func Save(ctx context.Context, in puts, key string, record any, kept team.Extra, revision uint64) (uint64, error) {
	data, err := codec.Encode(record, kept)
	if err != nil {
		return revision, err
	}
	return in.Put(ctx, key, data, revision)
}

// Pause waits before the next try of a writer that collided at one key, so that tries spread. Tries hold each other up, so
// the pause grows with the time of the lost try and the number of lost tries: 16 writers are twice as slow if they try again
// immediately, and 64 six times if they wait 20 ms while the server is slow. Errors: Unavailable once ctx has ended.
func Pause(ctx context.Context, took time.Duration, lost int) error {
	longest := max(time.Millisecond, min(took<<min(lost, 4), time.Second))
	if !shutdown.Sleep(ctx, rand.N(longest)) {
		return team.Errorf(team.Unavailable, "too many write the same record: %w", ctx.Err()).WithHint("nothing was changed: try again")
	}
	return nil
}
