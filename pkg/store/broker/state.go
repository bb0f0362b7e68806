package broker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
)

// State is the state of a stream at one moment.
type State struct {
	First   uint64    // sequence of the oldest message; of an empty stream at most the next one's
	Last    uint64    // sequence of the newest message, also if that one is gone; 0: there was none ever
	Created time.Time // when the stream was made, or the one that it was restored from; one that was made anew tells another time
	Count   uint64    // how many messages it had
	Now     time.Time // the server's clock at that moment, by which messages are stored
}

// State returns the stream's state from its leader. It repeats until it is answered. Errors: Unavailable.
func (s *Stream) State(ctx context.Context) (State, error) {
	info, err := answered(ctx, s, "look at stream "+s.name, callTimeout, func(ctx context.Context) (*jetstream.StreamInfo, error) { return s.s.Info(ctx) })
	if err != nil {
		return State{}, err
	}
	return State{First: info.State.FirstSeq, Last: info.State.LastSeq, Count: info.State.Msgs, Created: made(info.Config.Metadata, info.Created), Now: info.TimeStamp}, nil
}

// Next returns the oldest message whose sequence is at least from, from the stream's leader. Errors: NotFound; Unavailable.
func (s *Stream) Next(ctx context.Context, from uint64) (Msg, error) {
	raw, err := answered(ctx, s, "read "+s.name, callTimeout, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.s.GetMsg(ctx, max(from, 1), jetstream.WithGetMsgSubject(">"))
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = team.Errorf(team.NotFound, "there is nothing in %s from sequence %d on", s.name, from)
	}
	return messageOf(raw), err
}

// FirstSince returns the sequence of the first message that was stored at that time or later; if there is none, the next
// sequence. Errors: Unavailable.
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
