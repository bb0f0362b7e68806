package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
)

const (
	snapshotWait  = 30 * time.Second // for the server to begin a snapshot or a restore
	restoreWait   = 5 * time.Minute  // for the server to end a restore once it has every byte
	snapshotChunk = 128 << 10
	restoreChunk  = 512 << 10 // each waits for its answer; a message holds a megabyte
)

// Streams returns the opened streams of [Streams], in the same order.
func (t *Storage) Streams() []*Stream {
	return []*Stream{t.Messages, t.Events, t.Logs, t.Bucket.Stream, t.Files.stream}
}

// Name returns the stream's name.
func (s *Stream) Name() string { return s.name }

// Snapshot writes the messages of a stream to w in the server's format (an archive of nats-server 2.15, compressed by s2),
// each with its sequence and time, without consumers. It may leave out messages that are stored meanwhile.
//
// Errors: NotFound without the stream; Unavailable, and then w has a useless part; w's.
func (c *Conn) Snapshot(ctx context.Context, stream string, w io.Writer) error {
	what := "take a snapshot of " + stream
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "%s: %w", what, Unheard(err))
	}
	var begun apiError
	request := map[string]any{"deliver_subject": inbox, "no_consumers": true, "chunk_size": snapshotChunk}
	if err := c.begin(ctx, "$JS.API.STREAM.SNAPSHOT."+stream, request, &begun, &begun, what); err != nil {
		return err
	}
	for n := 1; ; n++ {
		m, err := nextChunk(ctx, sub)
		if err == nil && len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status == "" || status == "204" {
				return nil
			}
			err = fmt.Errorf("the server ends it: %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
		}
		if err == nil && m.Reply != "" {
			if !strings.HasSuffix(m.Reply, "."+strconv.Itoa(n)) { // the subject ends in the chunk's number
				err = errors.New("a part of it got lost on the way")
			} else { // before it is written: the server gives up on a reader that is slow to confirm
				err = m.Respond(nil)
			}
		}
		if err != nil {
			return team.Errorf(team.Unavailable, "%s: %w", what, Unheard(err)).WithHint("try again")
		}
		if _, err := w.Write(m.Data); err != nil {
			return err
		}
	}
}

func nextChunk(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkWait)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// apiError is the error in an answer of JetStream.
type apiError struct {
	Error *jetstream.APIError `json:"error"`
}

// begin asks the server to begin a snapshot or a restore, until it answers.
func (c *Conn) begin(ctx context.Context, subject string, request, answer any, failed *apiError, what string) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotWait)
	defer cancel()
	for {
		m, err := c.request(ctx, &nats.Msg{Subject: subject, Data: data})
		if err == nil {
			err = json.Unmarshal(m.Data, answer)
		}
		if err == nil && failed.Error != nil {
			err, failed.Error = failed.Error, nil
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return team.Errorf(team.NotFound, "%s: there is no such stream", what)
		case hasCode(err, 10130), hasCode(err, 10058):
			return team.Errorf(team.Conflict, "%s: there is one of that name", what).WithHint("it is no team's that is listed; remove it, or use another server")
		case refused(err):
			return c.turnedDown(what, err)
		}
		if err := backoff(ctx, err, what); err != nil {
			return err
		}
	}
}

// turnedDown returns the error of a restore that the server refuses.
func (c *Conn) turnedDown(what string, err error) error {
	if noRoom(err) {
		return c.full(what, err)
	}
	return team.Errorf(team.Unavailable, "%s: %w", what, Unheard(err))
}

// madeAt is the key in a stream's metadata for the creation time of the stream that its messages come from.
const madeAt = "agentteam-made"

// made returns the creation time of a stream, or of the stream that it was restored from.
func made(metadata map[string]string, created time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, metadata[madeAt]); err == nil {
		return at
	}
	return created
}

// Restore makes a stream of a team from the output of [Conn.Snapshot], with the sequences and times of its messages, and the
// replicas of this connection. The stream must not exist. With a nonzero at it counts as made at that time, so that positions
// in it keep their meaning.
//
// Errors: Conflict if it exists; [ErrNoRoom]; Unavailable; r's. After any but the first the stream may exist in part.
func (c *Conn) Restore(ctx context.Context, want jetstream.StreamConfig, at time.Time, r io.Reader) error {
	what := "restore stream " + want.Name
	want.Replicas = c.replicas
	if !at.IsZero() {
		want.Metadata = maps.Clone(want.Metadata)
		want.Metadata[madeAt] = at.UTC().Format(time.RFC3339Nano)
	}
	var to struct {
		apiError
		Deliver string `json:"deliver_subject"`
	}
	request := map[string]any{"config": want, "state": jetstream.StreamState{}}
	if err := c.begin(ctx, "$JS.API.STREAM.RESTORE."+want.Name, request, &to, &to.apiError, what); err != nil {
		return err
	}
	chunk := make([]byte, min(restoreChunk, int(c.nc.MaxPayload())))
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			if err := c.hand(ctx, to.Deliver, chunk[:n], chunkWait, what); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := c.hand(ctx, to.Deliver, nil, restoreWait, what); err != nil {
		return err
	}
	_, err := c.openStream(ctx, want)
	return err
}

// hand sends the server a chunk of a restore, or its end, and waits for the acknowledgement.
func (c *Conn) hand(ctx context.Context, to string, chunk []byte, wait time.Duration, what string) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := c.nc.RequestWithContext(ctx, to, chunk)
	for begun := time.Now(); errors.Is(err, nats.ErrNoResponders) && time.Since(begun) < formTime; { // another server of a cluster takes it, which this one is yet to hear of
		if err := backoff(ctx, err, what); err != nil {
			return err
		}
		m, err = c.nc.RequestWithContext(ctx, to, chunk)
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "%s: %w", what, Unheard(cmp.Or(context.Cause(ctx), err))).WithHint("try again")
	}
	var answer apiError
	if len(m.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return fmt.Errorf("%s: what the server answers: %w", what, err)
	}
	if answer.Error != nil {
		return c.turnedDown(what, answer.Error)
	}
	return nil
}
