package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
)

// Files is a team's object store: what is too large for a record. Safe for
// concurrent use.
type Files struct {
	conn  *Conn
	store string
}

// Put stores what r holds under name, in place of what was there, and returns the
// digest of its bytes, "sha256:" and hex. It repeats until the server has answered
// or ctx ends. Errors: those of r; Unavailable.
func (f *Files) Put(ctx context.Context, name string, r io.ReadSeeker) (digest string, err error) {
	for {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		sum := sha256.New()
		store, err := f.conn.js.ObjectStore(ctx, f.store)
		if err == nil {
			_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name}, io.TeeReader(r, sum))
		}
		switch {
		case err == nil:
			return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
		case refused(err), errors.Is(err, jetstream.ErrBucketNotFound):
			return "", team.Errorf(team.Unavailable, "NATS refuses to store file %s: %w", name, err).WithHint("the disk or the store may be full")
		}
		if err := backoff(ctx, err, "store file "+name); err != nil {
			return "", err
		}
	}
}

// Get writes what is stored under name to w. Errors: NotFound; those of w;
// Unavailable, also if what came does not have the digest it was stored with.
func (f *Files) Get(ctx context.Context, name string, w io.Writer) error {
	store, err := f.conn.js.ObjectStore(ctx, f.store)
	if err != nil {
		return team.Errorf(team.Unavailable, "read file %s: %w", name, err)
	}
	r, err := store.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return team.Errorf(team.NotFound, "there is no file %s", name)
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "read file %s: %w", name, err)
	}
	_, err = io.Copy(w, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return team.Errorf(team.Unavailable, "read file %s: %w", name, err)
	}
	return nil
}
