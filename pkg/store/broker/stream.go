package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

const (
	// callTimeout bounds one try of a request. A restart of the server takes 60 ms and a lost reply is not announced, so
	// a short repeated try beats a long one; repeating is harmless, see Append.
	callTimeout = 2 * time.Second
	// codeUnderWay is the answer of a replicated stream to a compare-and-set while another write of the same subject is
	// not yet stored by enough servers. That write may be lost with its leader, and may be an earlier try of this one.
	codeUnderWay jetstream.ErrorCode = 10164
)

// Stream is one JetStream stream. Safe for concurrent use.
type Stream struct {
	conn     *Conn
	name     string
	replicas int
	s        jetstream.Stream
}

// Replicas returns the number of the stream's replicas when it was opened.
func (s *Stream) Replicas() int { return s.replicas }

// Msg is an entry of a stream. Data must not be changed.
type Msg struct {
	Subject string
	Data    []byte
	Seq     uint64
	Time    time.Time
	Deleted bool // a marker that the key before it was deleted
	Pending uint64
}

// Append stores data under the literal subject if the subject's last message has sequence last (0: there is none), and
// returns the new sequence.
//
// A try without an answer may still be applied later, so a read alone never settles it: Append repeats the same write until
// the server answers. Once it answers that the expectation failed, Append reads the stream, and data found there means that
// an earlier try was applied. data must therefore be unique to this write (records carry an op id for that). The answer that
// another write is under way settles nothing: that may be one's own.
//
// Nor does a refusal, such as that of a full disk, settle an earlier try: after a doubt Append reads the stream; if data is
// there it was stored, else it repeats the write until the server accepts it or another writer was first.
//
// While the server has no room for any write ([ErrNoRoom]), the call waits for room if the connection does ([Options]), and
// else fails immediately.
//
// Errors: Conflict (nothing changed); Unavailable, and nothing changed, if the very first try that arrived was refused;
// ctx's error or [nats.ErrConnectionClosed] wrapped in Unavailable, and then the outcome is unknown; [ErrOvertaken].
func (s *Stream) Append(ctx context.Context, subject string, data []byte, last uint64) (uint64, error) {
	return s.append(ctx, subject, data, last, false)
}

// Repeat is Append for a write that another process may have made already, to the byte: that counts as made, whatever was
// written after it.
func (s *Stream) Repeat(ctx context.Context, subject string, data []byte, last uint64) (uint64, error) {
	return s.append(ctx, subject, data, last, true)
}

// ErrOvertaken (Unavailable): the write was applied or others were first, and so many writes followed that the stream, which
// keeps a limited number of messages for each subject, does not show which. The write is no longer under way, so the caller
// may look for its effect.
var ErrOvertaken = errors.New("too many writes came after it to tell what became of it")

func (s *Stream) append(ctx context.Context, subject string, data []byte, last uint64, shared bool) (uint64, error) {
	doubt := false // an earlier try may have been applied
	tries := attempts{s: s, what: "store " + subject}
	for {
		seq, err := s.try(ctx, subject, data, expecting(last))
		switch {
		case err == nil:
			return seq, nil
		case lostCAS(err):
			seq, markerSeq, err := s.settle(ctx, subject, data, last, doubt || shared)
			switch {
			case err != nil:
				return 0, err
			case seq != 0:
				return seq, nil
			case last == 0 && markerSeq != 0: // a deleted key counts as absent
				last = markerSeq
				continue
			}
			return 0, team.Errorf(team.Conflict, "%s was changed by somebody else", subject)
		case refused(err) && doubt: // the servers of a cluster judge room before revisions
			if seq, _, err := s.settle(ctx, subject, data, last, doubt); err == nil && seq != 0 {
				return seq, nil
			}
		case noRoom(err): // below
		case refused(err):
			return 0, team.Errorf(team.Unavailable, "NATS refuses to store %s: %w", subject, err).WithHint("the disk or the stream may be full")
		}
		doubt = doubt || !unsent(err) && !underWay(err) && !noRoom(err)
		tries.doubt = doubt
		if err := tries.again(ctx, err); err != nil {
			return 0, err
		}
	}
}

// settle looks for data among the messages after last. A later write of another process may be on top of ours, so after a
// doubt it reads the whole tail. If that is no longer complete, and data not in it, the error is ErrOvertaken.
func (s *Stream) settle(ctx context.Context, subject string, data []byte, last uint64, doubt bool) (seq, marker uint64, err error) {
	m, err := s.Last(ctx, subject)
	switch {
	case errors.Is(err, team.NotFound):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	case !m.Deleted && bytes.Equal(m.Data, data):
		return m.Seq, 0, nil
	case m.Deleted && !doubt:
		return 0, m.Seq, nil
	case !doubt:
		return 0, 0, nil
	}
	// The oldest messages of a subject are dropped first: while the one at last is there, so are all that followed it.
	after, whole := 0, false
	err = s.Read(ctx, last, func(m Msg) error {
		switch {
		case m.Seq == last:
			whole = true
			return nil
		case !m.Deleted && bytes.Equal(m.Data, data):
			seq = m.Seq
		}
		after++
		return nil
	}, subject)
	if kept := int(s.s.CachedInfo().Config.MaxMsgsPerSubject); err == nil && seq == 0 && !whole && kept > 0 && after >= kept {
		err = team.Errorf(team.Unavailable, "store %s: %w", subject, ErrOvertaken)
	}
	if m.Deleted {
		marker = m.Seq
	}
	return seq, marker, err
}

// Publish stores data under subject, once for each id within the stream's window of two minutes, and returns its sequence. It
// repeats until answered or ctx ends; a repetition after that window, of a write whose answer was lost, is stored again.
func (s *Stream) Publish(ctx context.Context, subject, id string, data []byte) (uint64, error) {
	tries := attempts{s: s, what: "store " + subject}
	for {
		seq, err := s.try(ctx, subject, data, nats.Header{jetstream.MsgIDHeader: {id}})
		switch {
		case err == nil:
			return seq, nil
		case noRoom(err): // below
		case refused(err):
			return 0, team.Errorf(team.Unavailable, "NATS refuses to store %s: %w", subject, err).WithHint("the disk or the stream may be full")
		}
		if err := tries.again(ctx, err); err != nil {
			return 0, err
		}
	}
}

// Trim removes the messages of a subject before the sequence before. Errors:
// Unavailable.
func (s *Stream) Trim(ctx context.Context, subject string, before uint64) error {
	stream, err := s.conn.js.Stream(ctx, s.name)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(before))
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "trim %s: %w", subject, Unheard(err))
	}
	return nil
}

// Remove removes one message; for an absent one it returns nil. Errors: Unavailable.
func (s *Stream) Remove(ctx context.Context, seq uint64) error {
	stream, err := s.conn.js.Stream(ctx, s.name)
	if err == nil {
		err = stream.DeleteMsg(ctx, seq)
	}
	if err != nil && stream != nil {
		if _, gone := stream.GetMsg(ctx, seq); errors.Is(gone, jetstream.ErrMsgNotFound) {
			return nil
		}
	}
	if err != nil {
		return team.Errorf(team.Unavailable, "remove message %d of %s: %w", seq, s.name, Unheard(err))
	}
	return nil
}

// again waits before the next try of a write, and counts it, unless the try before was only put off by another write under
// way, which is normal.
func (s *Stream) again(ctx context.Context, cause error, what string) error {
	err := backoff(ctx, cause, what)
	if err == nil && !underWay(cause) {
		s.conn.metrics.repeated.Inc()
	}
	return err
}

// try asks the server once to store data. It implements the protocol itself (a request with headers, answered by an
// acknowledgement in JSON), since every claim and message uses it, and jetstream.PublishMsg takes a tenth longer.
func (s *Stream) try(ctx context.Context, subject string, data []byte, header nats.Header) (uint64, error) {
	answer, err := s.conn.request(ctx, &nats.Msg{Subject: subject, Data: data, Header: header})
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	switch err := codec.Unmarshal(answer.Data, &ack); {
	case err != nil:
		return 0, fmt.Errorf("acknowledgement %q: %w", answer.Data, err)
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Seq == 0:
		return 0, fmt.Errorf("acknowledgement %q has no sequence", answer.Data)
	}
	s.conn.stored(s.name)
	return ack.Seq, nil
}

// expecting returns the header of a write that the server refuses unless the subject's last message has this sequence.
func expecting(last uint64) nats.Header {
	return nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(last, 10)}}
}

// Last returns the newest message of a subject, which may have wildcards, from the stream's leader. Errors: NotFound;
// Unavailable.
func (s *Stream) Last(ctx context.Context, subject string) (Msg, error) {
	raw, err := answered(ctx, s, "read "+subject, callTimeout, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.s.GetLastMsgForSubject(ctx, subject)
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = team.Errorf(team.NotFound, "there is nothing at %s", subject)
	}
	return messageOf(raw), err
}

// messageOf converts a message of the server; nil gives the zero Msg.
func messageOf(raw *jetstream.RawStreamMsg) Msg {
	if raw == nil {
		return Msg{}
	}
	return Msg{Subject: raw.Subject, Data: raw.Data, Seq: raw.Sequence, Time: raw.Time, Deleted: isMarker(raw.Header)}
}

// answered calls ask, a request about the stream, again until the server answers, with the time within for each try. Errors:
// [jetstream.ErrMsgNotFound] unwrapped; Unavailable.
func answered[T any](ctx context.Context, s *Stream, what string, within time.Duration, ask func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, within)
		v, err := ask(attempt)
		cancel()
		switch {
		case err == nil, errors.Is(err, jetstream.ErrMsgNotFound):
			return v, err
		case refused(err) && !unmanned(err):
			return v, s.denied(what, err)
		}
		if err := backoff(ctx, err, what); err != nil {
			return v, err
		}
	}
}

// denied returns the error of a request about the stream that the server refuses.
func (s *Stream) denied(what string, err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return team.Errorf(team.Unavailable, "stream %s is gone: %w", s.name, errGone).WithHint("its team was deleted meanwhile")
	}
	return team.Errorf(team.Unavailable, "%s: %w", what, err)
}

// LastSeq returns the sequence of the newest message of the whole stream. Errors:
// Unavailable.
func (s *Stream) LastSeq(ctx context.Context) (uint64, error) {
	state, err := s.State(ctx)
	return state.Last, err
}

// operation is the header of a message in a bucket that is a marker, not a value.
const operation = "KV-Operation"

func isMarker(h nats.Header) bool {
	op := h.Get(operation)
	return op == "DEL" || op == "PURGE" || h.Get("Nats-Marker-Reason") != ""
}

func lostCAS(err error) bool  { return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence) }
func underWay(err error) bool { return hasCode(err, codeUnderWay) }

func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// refused reports whether err is a definite answer of the server, as opposed to silence and to an undecided answer.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && !notYet(api) || errors.Is(err, nats.ErrMaxPayload)
}

// notYet reports whether a server that gave this answer may soon give another. The status does not show that: 503 is also
// the answer of a full stream.
func notYet(e *jetstream.APIError) bool {
	switch e.ErrorCode {
	case 10008, 10004: // there is no leader; some have not answered
		return true
	case 10039, 10076: // JetStream is not enabled: the server starts or stops
		return true
	case 10163, codeUnderWay: // of a compare-and-set
		return true
	case 10077: // not stored, for any reason; with this text the server is stopping
		return e.Description == "store is closed"
	}
	return false
}

// unmanned reports whether a consumer could not be made because too few of the stream's servers are up. For a write the same
// code means that storage is used up.
func unmanned(err error) bool { return hasCode(err, 10023) }

// unsent reports whether the request certainly never left this process.
func unsent(err error) bool {
	return errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionReconnecting) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

// backoff waits a little before the next try, or returns an error once ctx or the connection has ended.
func backoff(ctx context.Context, cause error, what string) error {
	if errors.Is(cause, nats.ErrConnectionClosed) {
		return team.Errorf(team.Unavailable, "%s: %w", what, Unheard(cause))
	}
	wait := 50 * time.Millisecond
	if underWay(cause) {
		wait = 2 * time.Millisecond // about as long as a write takes
	}
	if !shutdown.Sleep(ctx, wait+rand.N(2*wait)) {
		return team.Errorf(team.Unavailable, "%s: %w", what, Unheard(errors.Join(ctx.Err(), cause))).
			WithHint("the server may be away or electing a leader: try again")
	}
	return nil
}

// Read calls f for each message from sequence from on that matches one of the filters (none: all), up to the end of the
// stream at the start of Read. An error of f ends it; [ErrEnough] ends it without an error. If Read returns an error, f has
// not seen all messages.
func (s *Stream) Read(ctx context.Context, from uint64, f func(Msg) error, filters ...string) error {
	return s.newFeed(from, f, atEnd, filters).toEnd(ctx)
}

// Newest calls f for the newest message of every matching subject, as Read does. A message that is rewritten meanwhile may
// come twice.
func (s *Stream) Newest(ctx context.Context, f func(Msg) error, filters ...string) error {
	return s.newFeed(0, f, atEnd, filters).newest().toEnd(ctx)
}

// ErrEnough is the error with which f ends a [Stream.Read] without an error.
var ErrEnough = errors.New("enough was read")

func atEnd() error { return ErrEnough }

// toEnd reads up to the present end. A context that ends before is an error: half a list must not pass for the whole.
func (r *feed) toEnd(ctx context.Context) error {
	switch err := r.run(ctx); {
	case errors.Is(err, ErrEnough):
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return team.Errorf(team.Unavailable, "read stream %s: %w", r.s.name, Unheard(err))
	default:
		return err
	}
}

// Follow calls f for each message after the mark that matches one of the filters, and continues with new ones until ctx
// ends; then it returns nil. It survives restarts of the server without a gap, also if the stream is restored from an older
// copy. It calls caughtUp, if not nil, once, when f has got all messages stored at the start.
func (s *Stream) Follow(ctx context.Context, after Mark, f func(Msg) error, caughtUp func(), filters ...string) error {
	r := s.newFeed(after.Seq+1, f, logged(caughtUp), filters)
	r.at = after.At
	return r.follow(ctx)
}

// snapshot calls f for the newest message of every matching subject, then caughtUp, then continues like Follow.
func (s *Stream) snapshot(ctx context.Context, f func(Msg) error, caughtUp func(), filters ...string) error {
	return s.newFeed(0, f, logged(caughtUp), filters).newest().follow(ctx)
}

func logged(caughtUp func()) func() error {
	if caughtUp == nil {
		return nil
	}
	return func() error { caughtUp(); return nil }
}

func (r *feed) follow(ctx context.Context) error {
	if r.seen > 0 && r.at.IsZero() { // by its time the feed knows the stream again
		if m, err := r.s.Next(ctx, r.seen); err == nil && m.Seq == r.seen {
			r.at = m.Time
		}
	}
	err := r.run(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
