package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// ErrNoRoom (Unavailable): the server answers, but stores nothing, since its storage is full or a write to its disk has
// failed.
var ErrNoRoom = errors.New("the NATS server stores nothing")

const (
	// roomWait is the approximate backoff of a write for which there was no room.
	roomWait = time.Second
	// fresh is the time for which a failed write counts as a present trouble. A waiting writer tries more often.
	fresh = 15 * time.Second
)

// noRoom reports whether the server refuses all writes: the storage of the account or of the server is used up, or there is
// no room for another stream.
func noRoom(err error) bool {
	return hasCode(err, 10002) || hasCode(err, 10023) || hasCode(err, 10047)
}

// full returns the error of a write that was refused with cause, and records it.
func (c *Conn) full(what string, cause error) error {
	if api, ok := errors.AsType[*jetstream.APIError](cause); ok {
		cause = fmt.Errorf("%s: %s", what, api.Description)
	}
	err := team.Errorf(team.Unavailable, "%w: its storage is full: %w", ErrNoRoom, cause).
		WithHint("make room on the disk where it keeps its data, with teamctl up the folder of --data, or raise its limits; work goes on by itself")
	c.troubles.note(everything, err)
	return err
}

// mute returns the error of a write to a stream that answers reads but not writes, and records it. The server has given that
// stream up: even with room again, it stores nothing in it until it is restarted.
func (c *Conn) mute(stream, what string) error {
	err := team.Errorf(team.Unavailable, "%w in the stream %s: a write to its disk has failed: %s is not answered, and reads are", ErrNoRoom, stream, what).
		WithHint("%s", restart)
	c.troubles.note(stream, err)
	return err
}

// unreachable records that a stream answers neither writes nor reads, though the server is connected.
func (c *Conn) unreachable(stream string) {
	c.troubles.note(stream, team.Errorf(team.Unavailable, "%w in the stream %s: it answers neither writes nor reads", ErrNoRoom, stream).
		WithHint("the server that keeps it may be down, or too few of its servers are up: start them, or look into the server's log; what waits continues then"))
}

const restart = "make room on its disk, then restart it: until then those streams store nothing, though others may; the server of teamctl up does so by itself"

// stored records that a write to a stream was stored.
func (c *Conn) stored(stream string) { c.troubles.end(stream) }

// Refused returns why recent writes of this connection were not stored, and a hint; "" if they were.
func (c *Conn) Refused() string {
	err := c.troubles.err()
	if err == nil {
		return ""
	}
	return err.Error() + " (" + team.HintOf(err) + ")"
}

// Reported records the result of [Conn.Refused] in another process. It counts for a few seconds.
func (c *Conn) Reported(refused string) {
	c.troubles.mu.Lock()
	defer c.troubles.mu.Unlock()
	c.troubles.logged = trouble{team.Errorf(team.Unavailable, "%w", hearsay(refused)), time.Now()}
}

// hearsay is the report of another process, verbatim.
type hearsay string

func (h hearsay) Error() string { return string(h) }
func (hearsay) Unwrap() error   { return ErrNoRoom }

// Stores returns nil while NATS is connected, its limits have room, and no recent write of this
// connection or of another ([Conn.Reported]) has failed. It writes nothing. Errors: Unavailable;
// [ErrNoRoom].
func (c *Conn) Stores(ctx context.Context) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if err := cmp.Or(c.troubles.err(), c.troubles.toOthers()); err != nil {
		return err
	}
	info, err := c.js.AccountInfo(ctx)
	switch {
	case err == nil && info.Limits.MaxStore >= 0 && info.Store >= uint64(info.Limits.MaxStore):
		return c.full("", errors.New("its limit is used up"))
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return team.Errorf(team.Unavailable, "the NATS server has switched its JetStream off: %w", err).WithHint("its log says why; restart it when that is mended")
	}
	return nil
}

// attempts counts the tries of one write.
type attempts struct {
	s      *Stream
	what   string
	doubt  bool // an earlier try may still be stored
	full   int  // tries for which there was no room
	silent int  // tries without an answer
	reads  bool // after the last of them a read was answered

	since time.Time // of the first of the tries without any answer
}

// again waits before the next try, or returns an error if another try is pointless: without room, on a connection that does
// not wait for room. After a doubt it first tries a few more times.
func (a *attempts) again(ctx context.Context, cause error) error {
	c := a.s.conn
	switch {
	case noRoom(cause):
		err := c.full(a.what, cause)
		a.full++
		if !c.waits && (!a.doubt || a.full > 3) {
			return err // after a doubt whose outcome stays unknown
		}
		return c.waitForRoom(ctx, err)
	case errors.Is(cause, nats.ErrTimeout):
		a.silent++
		patience := 2
		if a.s.replicas > 1 {
			patience = 6 // it may be electing a leader, or miss a server for a while
		}
		if a.reads { // and the try after it was not
			if err := c.mute(a.s.name, a.what); !c.waits {
				return err
			}
		}
		a.reads = a.silent >= patience && a.s.readable(ctx)
	}
	if errors.Is(cause, nats.ErrTimeout) || unsent(cause) {
		a.unanswered(ctx)
	}
	return a.s.again(ctx, cause, a.what)
}

// unansweredFor is the time without an answer to a write after which its stream is unreachable: longer than a restart of the
// server, and than a replicated stream without a leader.
const unansweredFor = 10 * time.Second

// unanswered records a try without an answer.
func (a *attempts) unanswered(ctx context.Context) {
	c := a.s.conn
	within := unansweredFor
	if a.s.replicas > 1 {
		within *= 2
	}
	switch {
	case a.since.IsZero() || c.Ready(ctx) != nil: // all streams are away
		a.since = time.Now()
	case time.Since(a.since) >= within && !a.reads && !a.s.readable(ctx):
		c.unreachable(a.s.name)
	}
}

// waitForRoom waits until there may be room.
func (c *Conn) waitForRoom(ctx context.Context, why error) error {
	if !shutdown.Sleep(ctx, roomWait/2+rand.N(roomWait)) {
		return team.Errorf(team.Unavailable, "%w: %w", ctx.Err(), why).WithHint("%s", team.HintOf(why))
	}
	c.metrics.repeated.Inc()
	return nil
}

// readable reports whether the stream answers a read.
func (s *Stream) readable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.s.GetLastMsgForSubject(ctx, ">")
	return err == nil || errors.Is(err, jetstream.ErrMsgNotFound)
}
