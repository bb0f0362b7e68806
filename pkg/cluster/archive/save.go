package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options select the server from which a team is saved, or into which it is loaded.
type Options struct {
	URL      string // of the NATS server; required
	Replicas int    // of the streams that a load makes; default 1
}

// Store is a connection to the teams of a server. Safe for concurrent use.
type Store struct {
	conn     *broker.Conn
	registry *registry.Registry
}

// Connect connects to a server. It gives up after 3 s. Errors: Unavailable.
func Connect(ctx context.Context, o Options) (*Store, error) {
	conn, err := broker.Connect(ctx, broker.Options{URL: o.URL, Name: "teamctl", Replicas: o.Replicas})
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Store{conn, reg}, nil
}

// Close ends the connection.
func (s *Store) Close() { s.conn.Close() }

// Saved describes a written save.
type Saved struct {
	Head
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Save writes a team to a file that must not exist, and marks the team: no process works for it
// here any more. With asCopy it is not marked, and may be at work: the file then shows it as if
// every process had been killed at one instant.
//
// Errors: NotFound without the team; Conflict if the file exists, or a member or a leader works for
// the team, which it names; Unavailable; those of the disk. After an error there is no file, and no
// new mark.
func (s *Store) Save(ctx context.Context, id team.TeamID, file string, asCopy bool) (saved Saved, err error) {
	out, err := create(file)
	if err != nil {
		return saved, err
	}
	defer func() { err = errors.Join(err, out.drop()) }()
	bt, err := s.registry.Storage(ctx, id)
	if err != nil {
		return saved, err
	}
	head := Head{Format: team.Protocol, ID: ulid.Make().String(), Team: id, Copy: asCopy, Program: telemetry.Version(), Server: s.conn.Server()}
	if !asCopy {
		where, err := filepath.Abs(file)
		if err != nil {
			return saved, err
		}
		// Before it is marked, since members leave a marked team; and after, for processes that
		// have begun meanwhile.
		if err := s.busy(ctx, bt, true); err != nil {
			return saved, err
		}
		again := func(ctx context.Context, bt *broker.Storage) error { return s.busy(ctx, bt, false) }
		_, undo, err := s.registry.Save(ctx, bt, team.Saved{ID: head.ID, File: where, At: time.Now().UTC()}, again)
		if err != nil {
			return saved, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, undo(ctx))
			}
		}()
	}
	if head.Created, err = s.write(ctx, bt, head, out.f); err == nil {
		saved = Saved{Head: head, File: file}
		saved.Bytes, err = out.keep()
	}
	return saved, coded(file, err)
}

// coded returns the error of a file that cannot be written, in one line.
func coded(file string, err error) error {
	switch path := (*fs.PathError)(nil); {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return team.Errorf(team.InvalidState, "there is no room for %s: %w", file, err).WithHint("make room, or name a file on another disk")
	case errors.As(err, &path):
		return team.Errorf(team.InvalidState, "%s cannot be written: %w", file, path.Err)
	}
	return err
}

// mostTries is how often a team is copied again because older records were removed meanwhile.
const mostTries = 5

var errMoved = errors.New("older records were removed while they were read")

// write writes the save, and returns its instant.
func (s *Store) write(ctx context.Context, bt *broker.Storage, head Head, f *os.File) (time.Time, error) {
	for try := 1; ; try++ {
		at, err := s.writeOnce(ctx, bt, head, f)
		if !errors.Is(err, errMoved) {
			return at, err
		}
		if try == mostTries {
			return at, team.Errorf(team.Unavailable, "team %s writes so fast that it cannot be copied: %w", bt.ID, err).WithHint("try again when it is quieter, or stop it first: `teamctl stop --team %s`", bt.ID)
		}
		if err := f.Truncate(0); err != nil {
			return at, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return at, err
		}
	}
}

// writeOnce copies the streams one after the other, each without messages after the same instant.
// So the order of streams does not matter for references between them. The files come last and
// complete: records that name them were written later, and no file is ever removed.
func (s *Store) writeOnce(ctx context.Context, bt *broker.Storage, head Head, f *os.File) (at time.Time, err error) {
	streams := bt.Streams()
	states := make([]broker.State, len(streams))
	for i, stream := range streams {
		if states[i], err = stream.State(ctx); err != nil {
			return at, err
		}
	}
	at = slices.MaxFunc(states, func(a, b broker.State) int { return a.Now.Compare(b.Now) }).Now
	lasts := make([]uint64, len(streams))
	for i, stream := range streams {
		next, err := stream.FirstSince(ctx, at.Add(1))
		if err != nil {
			return at, err
		}
		lasts[i] = next - 1
	}
	head.Created = at
	buf := bufio.NewWriterSize(f, 1<<20)
	w, err := newWriter(buf, head)
	if err != nil {
		return at, err
	}
	for i, stream := range streams {
		c := clip{stream: stream, before: states[i], last: lasts[i], config: broker.Streams(bt.ID)[i]}
		if i == len(streams)-1 {
			c.last = math.MaxUint64
		}
		if err := s.part(ctx, w, c, filepath.Dir(f.Name())); err != nil {
			return at, err
		}
	}
	if err := w.close(); err != nil {
		return at, err
	}
	return at, buf.Flush()
}

// clip selects the part of a stream to copy.
type clip struct {
	stream *broker.Stream
	config jetstream.StreamConfig
	before broker.State // before the instant
	last   uint64       // the newest message at the instant
}

// whole returns errMoved if messages from before the instant may be missing for good; found is how
// many were found. Messages that a log of events forgets may be missing. A key of a bucket has lost
// older values only, unless it was written as often as it keeps values.
func (c clip) whole(ctx context.Context, found uint64) error {
	if found >= c.before.Count || c.config.MaxAge > 0 {
		return nil
	}
	now, err := c.stream.LastSeq(ctx)
	if err == nil && now-c.before.Last >= uint64(max(c.config.MaxMsgsPerSubject, 0)) {
		err = fmt.Errorf("%s: %w", c.config.Name, errMoved)
	}
	return err
}

// part adds a stream. It is packed into an unnamed file first, since a tar has the size of an entry
// before it.
func (s *Store) part(ctx context.Context, w *writer, c clip, dir string) error {
	f, err := os.CreateTemp(dir, ".agentteam-save-")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, pipe := io.Pipe()
	var taking sync.WaitGroup
	taking.Go(func() { pipe.CloseWithError(s.conn.Snapshot(ctx, c.config.Name, pipe)) })
	found, err := cut(f, r, c.last, c.before.Last)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // the end of the server's snapshot
	}
	cancel()
	r.CloseWithError(err)
	taking.Wait()
	if err == nil {
		err = c.whole(ctx, found)
	}
	if err != nil {
		return err
	}
	return w.part(Part{Stream: c.config.Name, Made: c.before.Created}, f)
}
