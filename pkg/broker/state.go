package broker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
)

// State is what a stream held at one moment.
type State struct {
	First   uint64    // sequence of the oldest message; of an empty stream at most the next one's
	Last    uint64    // sequence of the newest message, also if that one is gone; 0: there was none ever
	Created time.Time // when the stream was made; one that was made anew tells another time
	Now     time.Time // the server's clock at that moment, by which messages are stored
}

// State returns what the stream holds, as its leader knows it. It repeats until it is
// answered. Errors: Unavailable.
func (s *Stream) State(ctx context.Context) (State, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		info, err := s.s.Info(attempt)
		cancel()
		switch {
		case err == nil:
			return State{First: info.State.FirstSeq, Last: info.State.LastSeq, Created: info.Created, Now: info.TimeStamp}, nil
		case refused(err):
			return State{}, s.denied("look at stream "+s.name, err)
		}
		if err := backoff(ctx, err, "look at stream "+s.name); err != nil {
			return State{}, err
		}
	}
}

// Next returns the oldest message whose sequence is at least from, read from the
// stream's leader. Errors: NotFound; Unavailable.
func (s *Stream) Next(ctx context.Context, from uint64) (Msg, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		raw, err := s.s.GetMsg(attempt, max(from, 1), jetstream.WithGetMsgSubject(">"))
		cancel()
		switch {
		case err == nil:
			return Msg{Subject: raw.Subject, Data: raw.Data, Seq: raw.Sequence, Time: raw.Time, Deleted: isMarker(raw.Header)}, nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return Msg{}, team.Errorf(team.NotFound, "there is nothing in %s from sequence %d on", s.name, from)
		case refused(err):
			return Msg{}, s.denied("read "+s.name, err)
		}
		if err := backoff(ctx, err, "read "+s.name); err != nil {
			return Msg{}, err
		}
	}
}

// FirstSince returns the sequence of the first message that was stored at that time or
// later; if there is none, the one that comes next. Errors: Unavailable.
func (s *Stream) FirstSince(ctx context.Context, at time.Time) (uint64, error) {
	state, err := s.State(ctx)
	if err != nil {
		return 0, err
	}
	low, high := max(state.First, 1), state.Last+1
	for low < high {
		middle := low + (high-low)/2
		m, err := s.Next(ctx, middle)
		switch {
		case errors.Is(err, team.NotFound), err == nil && !m.Time.Before(at):
			high = middle
		case err != nil:
			return 0, err
		default:
			low = m.Seq + 1
		}
	}
	return low, nil
}
