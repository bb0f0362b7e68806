package boardtest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Records is a team's bucket in memory, for tests with a fake clock: a connection to a server cannot be in a bubble of
// testing/synctest. It keeps every write. The zero value is ready; safe for concurrent use.
type Records struct {
	mu     sync.Mutex
	writes []broker.Entry
}

// Set stores value under key, without a check of the revision.
func (r *Records) Set(key string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store(key, value)
}

func (r *Records) store(key string, value []byte) uint64 {
	r.writes = append(r.writes, broker.Entry{Key: key, Value: bytes.Clone(value), Revision: uint64(len(r.writes) + 1), Time: time.Now()})
	return uint64(len(r.writes))
}

// Get is [broker.Bucket.Get].
func (r *Records) Get(ctx context.Context, key string) (broker.Entry, error) {
	newest, err := r.Load(ctx, key)
	if err != nil {
		return broker.Entry{}, err
	}
	if len(newest) == 0 {
		return broker.Entry{}, team.Errorf(team.NotFound, "there is nothing at %s", key)
	}
	return newest[0], nil
}

// Put is [broker.Bucket.Put].
func (r *Records) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return r.put(ctx, key, value, revision, false)
}

// PutAgain is [broker.Bucket.PutAgain].
func (r *Records) PutAgain(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return r.put(ctx, key, value, revision, true)
}

func (r *Records) put(ctx context.Context, key string, value []byte, revision uint64, again bool) (uint64, error) {
	if err := away(ctx); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	same := func(e broker.Entry) bool { return e.Key == key && e.Revision > revision && bytes.Equal(e.Value, value) }
	if i := slices.IndexFunc(r.writes, same); i >= 0 && (again || r.newest(key).Revision == r.writes[i].Revision) {
		return r.writes[i].Revision, nil
	}
	if r.newest(key).Revision != revision {
		return 0, team.Errorf(team.Conflict, "%s was changed by somebody else", key)
	}
	return r.store(key, value), nil
}

// Load is [broker.Bucket.Load].
func (r *Records) Load(ctx context.Context, filters ...string) ([]broker.Entry, error) {
	if err := away(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var newest []broker.Entry
	for _, e := range r.writes {
		if matches(e.Key, filters) && r.newest(e.Key).Revision == e.Revision {
			newest = append(newest, e)
		}
	}
	return newest, nil
}

// Each is [broker.Bucket.Each].
func (r *Records) Each(ctx context.Context, f func(broker.Entry) error, filters ...string) error {
	newest, err := r.Load(ctx, filters...)
	if err != nil {
		return err
	}
	return each(newest, f)
}

// Past is [broker.Bucket.Past].
func (r *Records) Past(ctx context.Context, from uint64, f func(broker.Entry) error, filters ...string) error {
	if err := away(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	past := slices.DeleteFunc(slices.Clone(r.writes), func(e broker.Entry) bool { return e.Revision < from || !matches(e.Key, filters) })
	r.mu.Unlock()
	return each(past, f)
}

// newest returns the last write of key, a zero Entry if there is none.
func (r *Records) newest(key string) (last broker.Entry) {
	for _, e := range r.writes {
		if e.Key == key {
			last = e
		}
	}
	return last
}

func each(entries []broker.Entry, f func(broker.Entry) error) error {
	for _, e := range entries {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// matches reports whether a filter equals key, or its beginning with "*" or ">" for the last part.
func matches(key string, filters []string) bool {
	return len(filters) == 0 || slices.ContainsFunc(filters, func(f string) bool {
		prefix, one := strings.CutSuffix(f, "*")
		prefix, many := strings.CutSuffix(prefix, ">")
		rest, ok := strings.CutPrefix(key, prefix)
		switch {
		case many:
			return ok && rest != ""
		case one:
			return ok && rest != "" && !strings.Contains(rest, ".")
		}
		return ok && rest == ""
	})
}

func away(ctx context.Context) error {
	if ctx.Err() != nil {
		return team.Errorf(team.Unavailable, "the caller has ended: %w", ctx.Err())
	}
	return nil
}
