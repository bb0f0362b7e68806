package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// ErrConsumerGone: the durable consumer was removed while it was read.
var ErrConsumerGone = errors.New("the consumer was removed")

// ErrFellBack: the stream no longer holds messages that its reader has read. It was restored from an older copy, and its
// server assigns the same sequences again.
var ErrFellBack = errors.New("the stream has fallen behind its reader")

// Consumer is a durable reader of a stream; the server keeps its position.
type Consumer struct {
	stream *Stream
	c      jetstream.Consumer
	name   string
	after  Mark
	proven bool // the stream was seen to hold the message at after
}

// Mark is a position in a stream: a message, and the time at which the server stored it. A sequence alone is ambiguous: a
// stream that was restored from an older copy uses it a second time.
type Mark struct {
	Seq uint64
	At  time.Time // zero: of a place without a message, such as the stream's end
}

// Covers reports whether a message is at the mark or before it.
func (p Mark) Covers(seq uint64, at time.Time) bool {
	return seq <= p.Seq && (p.At.IsZero() || !at.After(p.At))
}

// Delivery is a message for the reader of a Consumer; it comes again until Ack.
type Delivery struct {
	Msg
	Ack func() error
}

// ackWait is the time after which an unacknowledged message comes again. It is short, since a message that the server wrote
// to a dead connection comes no sooner; while the reader has a message, which may be for a long tool call, Run renews it.
const ackWait = 2 * time.Second

// Consumer makes or opens the durable consumer of this name. A new one starts just after the mark. The server delivers one message
// at a time and the next only once that is acknowledged: with several under way, a message that was lost with its
// connection would come again behind later ones.
//
// The consumer reads the message at after, which must match the filters, again and does not pass it to the reader: its
// arrival proves that the stream is the same. Errors: [ErrFellBack], and then there is no consumer; Unavailable.
func (s *Stream) Consumer(ctx context.Context, name string, after Mark, filters ...string) (*Consumer, error) {
	from, proven := after.Seq, after.At.IsZero()
	if proven {
		from++
		if err := s.reaches(ctx, after.Seq); err != nil {
			return nil, err
		}
	}
	cfg := jetstream.ConsumerConfig{
		Durable: name, FilterSubjects: filters, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1), MaxAckPending: 1,
	}
	c, err := answered(ctx, s, "open consumer "+name+" of "+s.name, 2*callTimeout, func(ctx context.Context) (jetstream.Consumer, error) {
		c, err := s.s.CreateConsumer(ctx, cfg)
		if errors.Is(err, jetstream.ErrConsumerExists) {
			c, err = s.s.Consumer(ctx, name)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	info := c.CachedInfo()
	proven = proven || info.Delivered.Consumer > 0 || info.Config.OptStartSeq != from // an earlier reading by this name has seen to it
	if !proven && info.NumPending == 0 {
		if err := s.fellBack(ctx, name, after); err != nil {
			return nil, err
		}
		proven = true
	}
	return &Consumer{s, c, name, after, proven}, nil
}

// reaches returns ErrFellBack if the stream ends before a sequence. It asks the server only if the stream ended before it
// when it was opened.
func (s *Stream) reaches(ctx context.Context, seq uint64) error {
	if s.s.CachedInfo().State.LastSeq >= seq {
		return nil
	}
	last, err := s.LastSeq(ctx)
	if err == nil && last < seq {
		err = fmt.Errorf("stream %s ends at %d, and %d was read: %w", s.name, last, seq, ErrFellBack)
	}
	return err
}

// fellBack returns ErrFellBack, and removes the consumer, if the stream does not hold the message at after. It asks the
// stream's leader: the server of a consumer may be behind.
func (s *Stream) fellBack(ctx context.Context, name string, after Mark) error {
	m, err := s.Next(ctx, after.Seq)
	switch {
	case err == nil && m.Seq == after.Seq && after.Covers(m.Seq, m.Time):
		return nil
	case err == nil, errors.Is(err, team.NotFound):
		err = s.RemoveConsumer(ctx, name)
	}
	if err != nil && !errors.Is(err, team.NotFound) {
		return err
	}
	return fmt.Errorf("stream %s does not hold message %d as it was read: %w", s.name, after.Seq, ErrFellBack)
}

// Run passes each message to f until ctx ends (then it returns nil), f fails, the consumer is removed ([ErrConsumerGone]),
// or the stream turns out to be an older copy ([ErrFellBack], and the consumer is removed). A message comes only after the
// one before it was acknowledged, so never out of order; until its own Ack it comes again and again, but not while f has
// it. Run survives restarts of the server.
func (c *Consumer) Run(ctx context.Context, f func(Delivery) error) error {
	it, err := c.c.Messages(jetstream.PullMaxMessages(64))
	if err != nil {
		return fmt.Errorf("read %s: %w", c.name, err)
	}
	defer it.Stop()
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	for {
		m, err := it.Next()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
			return ErrConsumerGone
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return fmt.Errorf("read %s: %w", c.name, err)
		case err != nil:
			c.stream.conn.log.Debug("consumer interrupted", "consumer", c.name, "err", err)
			if gone, err := c.gone(ctx); gone || err != nil {
				return err
			}
			continue
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("read %s: %w", c.name, err)
		}
		if !c.proven {
			c.proven = true
			if c.after.Seq == meta.Sequence.Stream && c.after.Covers(meta.Sequence.Stream, meta.Timestamp) {
				_ = m.Ack() // after a lost ack m comes again, and its reader skips it
				continue
			}
			if err := c.stream.fellBack(ctx, c.name, c.after); err != nil {
				return err
			}
		}
		d := Delivery{Msg: Msg{Subject: m.Subject(), Data: m.Data(), Seq: meta.Sequence.Stream, Time: meta.Timestamp, Pending: meta.NumPending}, Ack: m.Ack}
		release := hold(ctx, m)
		err = f(d)
		release()
		if err != nil {
			return err
		}
	}
}

// hold keeps the server from delivering m again until release is called, also after ctx has ended.
func hold(ctx context.Context, m jetstream.Msg) (release func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		shutdown.Every(ctx, ackWait/4, func(context.Context) {
			_ = m.InProgress() // after a lost one m comes again, which is harmless
		})
	})
	return func() { stop(); wg.Wait() }
}

// gone distinguishes an interruption from a removal, which the server announces only to an open pull.
func (c *Consumer) gone(ctx context.Context) (bool, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := c.c.Info(attempt)
		cancel()
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			return true, ErrConsumerGone
		}
		if backoff(ctx, err, "look at consumer "+c.name) != nil {
			return false, nil // ctx is over; the caller sees that
		}
	}
}

// AckFloor returns the sequence up to which the named consumer has acknowledged all messages. Errors: NotFound; Unavailable.
func (s *Stream) AckFloor(ctx context.Context, name string) (uint64, error) {
	info, err := s.consumer(ctx, name)
	if err != nil {
		return 0, err
	}
	floor := info.AckFloor.Stream
	if info.NumPending == 0 && info.NumAckPending == 0 {
		floor = info.Delivered.Stream
	}
	return max(floor, info.Config.OptStartSeq-1), nil
}

// Waiting returns the number of messages that the named consumer has yet to acknowledge. Errors: NotFound; Unavailable.
func (s *Stream) Waiting(ctx context.Context, name string) (int, error) {
	info, err := s.consumer(ctx, name)
	if err != nil {
		return 0, err
	}
	return int(info.NumPending) + info.NumAckPending, nil
}

func (s *Stream) consumer(ctx context.Context, name string) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := s.s.Consumer(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, team.Errorf(team.NotFound, "there is no consumer %s", name)
	case err != nil:
		return nil, team.Errorf(team.Unavailable, "look at consumer %s: %w", name, Unheard(err))
	}
	return c.CachedInfo(), nil
}

// Consumers returns the names of the stream's consumers. Errors: Unavailable.
func (s *Stream) Consumers(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := s.s.ConsumerNames(ctx)
	var names []string
	for name := range list.Name() {
		names = append(names, name)
	}
	if err := list.Err(); err != nil {
		return names, team.Errorf(team.Unavailable, "list the consumers of %s: %w", s.name, Unheard(err))
	}
	return names, nil
}

// Ahead returns the durable consumers whose position is past the stream's end, by name with the sequence, and the
// stream's last sequence. They receive nothing before the stream has passed them. Errors: Unavailable.
func (s *Stream) Ahead(ctx context.Context) (ahead map[string]uint64, last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ahead = map[string]uint64{}
	list := s.s.ListConsumers(ctx)
	for c := range list.Info() {
		ahead[c.Name] = max(c.AckFloor.Stream, c.Delivered.Stream)
	}
	if err := list.Err(); err != nil {
		return nil, 0, team.Errorf(team.Unavailable, "list the consumers of %s: %w", s.name, Unheard(err))
	}
	if last, err = s.LastSeq(ctx); err != nil { // after the list: it only grows
		return nil, 0, err
	}
	maps.DeleteFunc(ahead, func(_ string, floor uint64) bool { return floor <= last })
	return ahead, last, nil
}

// RemoveConsumer removes a durable consumer. Errors: NotFound; Unavailable.
func (s *Stream) RemoveConsumer(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.s.DeleteConsumer(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return team.Errorf(team.NotFound, "there is no consumer %s", name)
	case err != nil:
		return team.Errorf(team.Unavailable, "remove consumer %s: %w", name, Unheard(err))
	}
	return nil
}
