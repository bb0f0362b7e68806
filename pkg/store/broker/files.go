package broker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
)

// Files is a team's object store, for data that is too large for a record. Safe for concurrent use.
type Files struct {
	stream *Stream // what the store lies in: a message for each chunk, and one that describes each file
	store  string  // its name
}

// Put stores the content of r under name, in place of an earlier file, and returns the digest of its bytes, "sha256:" and
// hex. It repeats until the server has answered or ctx ends. Errors: those of r; Unavailable.
func (f *Files) Put(ctx context.Context, name string, r io.ReadSeeker) (digest string, err error) {
	for {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		sum := sha256.New()
		store, err := f.stream.conn.js.ObjectStore(ctx, f.store)
		if err == nil {
			_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name}, io.TeeReader(r, sum))
		}
		switch {
		case err == nil:
			f.stream.conn.stored(f.stream.name)
			return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
		case noRoom(err):
			if err = f.stream.conn.full("store file "+name, err); f.stream.conn.waits {
				err = f.stream.conn.waitForRoom(ctx, err)
			}
			if err != nil {
				return "", err
			}
			continue
		case refused(err), errors.Is(err, jetstream.ErrBucketNotFound):
			return "", team.Errorf(team.Unavailable, "NATS refuses to store file %s: %w", name, err).WithHint("the disk or the store may be full")
		}
		if err := backoff(ctx, err, "store file "+name); err != nil {
			return "", err
		}
	}
}

// List returns the names of all files that begin with prefix, sorted. Errors: Unavailable.
func (f *Files) List(ctx context.Context, prefix string) ([]string, error) {
	found := map[string]bool{}
	err := f.stream.Newest(ctx, func(m Msg) error {
		var info jetstream.ObjectInfo
		if err := json.Unmarshal(m.Data, &info); err == nil && strings.HasPrefix(info.Name, prefix) {
			found[info.Name] = !info.Deleted
		}
		return nil
	}, "$O."+f.store+".M.>")
	maps.DeleteFunc(found, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(found)), err
}

// Digest returns the digest of the file under name, as Put did. Errors: NotFound;
// Unavailable.
func (f *Files) Digest(ctx context.Context, name string) (string, error) {
	info, err := f.describe(ctx, name)
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(info.sum), nil
}

// Open opens the file under name for reading until ctx ends; the caller closes it. A restart of a server does not interrupt
// it. Read fails with Unavailable if the file is stored again meanwhile, and at the end if the content does not have its
// stored digest. Errors: NotFound; Unavailable.
//
// The library's own reading is not used: it uses a push consumer, which may receive nothing for long after a restart, and a
// replica may answer that a file which was just stored is not there.
func (f *Files) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	info, err := f.describe(ctx, name)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		err := f.copy(ctx, info, w)
		if err != nil {
			err = team.Errorf(team.Unavailable, "read file %s: %w", name, Unheard(err))
		}
		w.CloseWithError(err) // nil is the end of the file
	}()
	return r, nil
}

const (
	// chunkWait is the time after which a missing chunk of a file counts as gone, as the chunks of a file do that was
	// stored again. A cluster that elects a leader takes half as long.
	chunkWait = 15 * time.Second
	// chunksAhead bounds the chunks fetched ahead: few, since most readers of a large file want only its beginning, and
	// a chunk has 128 KiB.
	chunksAhead = 8
)

var errChunkGone = errors.New("a part of it is gone")

// copy writes a file's chunks to w.
func (f *Files) copy(ctx context.Context, info *fileInfo, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(chunkWait, func() { cancel(errChunkGone) })
	defer alarm.Stop()
	sum, left := sha256.New(), info.Size
	chunks := f.stream.newFeed(1, func(m Msg) error {
		alarm.Stop() // the reader may take its time
		if _, err := w.Write(m.Data); err != nil {
			return err
		}
		alarm.Reset(chunkWait)
		_, _ = sum.Write(m.Data) // never fails
		if left -= min(left, uint64(len(m.Data))); left == 0 {
			return ErrEnough
		}
		return nil
	}, nil, []string{"$O." + f.store + ".C." + info.NUID})
	chunks.ahead = chunksAhead
	if left > 0 {
		if err := chunks.run(ctx); !errors.Is(err, ErrEnough) {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	if got := sum.Sum(nil); !bytes.Equal(got, info.sum) {
		return fmt.Errorf("its digest is %x and should be %x", got, info.sum)
	}
	return nil
}

// Delete removes the file under name for good; for an absent file it returns nil. It removes the content first, so a call
// that is cut short can be repeated. It repeats until the server has answered or ctx ends. Errors: Unavailable.
func (f *Files) Delete(ctx context.Context, name string) error {
	info, err := f.describe(ctx, name)
	switch {
	case errors.Is(err, team.NotFound):
		return nil
	case err != nil:
		return err
	}
	for _, subject := range []string{"$O." + f.store + ".C." + info.NUID, f.about(name)} {
		for {
			err := f.stream.s.Purge(ctx, jetstream.WithPurgeSubject(subject))
			if err == nil {
				break
			}
			if refused(err) {
				return team.Errorf(team.Unavailable, "NATS refuses to remove file %s: %w", name, err)
			}
			if err := backoff(ctx, err, "remove file "+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// about returns the subject of the message that describes a file.
func (f *Files) about(name string) string {
	return "$O." + f.store + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// fileInfo describes an existing file.
type fileInfo struct {
	jetstream.ObjectInfo
	sum []byte // SHA-256 of its bytes
}

// describe reads the description of a file from the stream's leader. Errors: NotFound; Unavailable.
func (f *Files) describe(ctx context.Context, name string) (*fileInfo, error) {
	data, err := f.stream.lastFromLeader(ctx, f.about(name))
	if errors.Is(err, team.NotFound) {
		return nil, team.Errorf(team.NotFound, "there is no file %s", name)
	}
	if err != nil {
		return nil, err
	}
	var info fileInfo
	if err = json.Unmarshal(data, &info.ObjectInfo); err == nil && info.Deleted {
		return nil, team.Errorf(team.NotFound, "there is no file %s any more", name)
	}
	if err == nil {
		info.sum, err = jetstream.DecodeObjectDigest(info.Digest)
	}
	if err != nil {
		return nil, team.Errorf(team.InvalidState, "what describes file %s cannot be read: %w", name, err)
	}
	return &info, nil
}

// lastFromLeader returns the data of [Stream.Last] for a stream that allows direct gets: a replica may answer those that is
// behind, even behind one's own write.
func (s *Stream) lastFromLeader(ctx context.Context, subject string) ([]byte, error) {
	query, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return nil, err
	}
	for {
		var found struct {
			Error   *jetstream.APIError `json:"error"`
			Message struct {
				Data []byte `json:"data"`
			} `json:"message"`
		}
		answer, err := s.conn.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + s.name, Data: query})
		if err == nil {
			err = json.Unmarshal(answer.Data, &found)
		}
		if err == nil && found.Error != nil {
			err = found.Error
		}
		switch {
		case err == nil:
			return found.Message.Data, nil
		case hasCode(err, jetstream.JSErrCodeMessageNotFound):
			return nil, team.Errorf(team.NotFound, "there is nothing at %s", subject)
		case refused(err):
			return nil, team.Errorf(team.Unavailable, "read %s: %w", subject, Unheard(err))
		}
		if err := backoff(ctx, err, "read "+subject); err != nil {
			return nil, err
		}
	}
}
