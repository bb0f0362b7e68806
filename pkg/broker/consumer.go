package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// ErrConsumerGone: the durable consumer was removed while it was read.
var ErrConsumerGone = errors.New("the consumer was removed")

// Consumer is a durable reader of a stream, which the server remembers.
type Consumer struct {
	stream *Stream
	c      jetstream.Consumer
	name   string
}

// Delivery is a message handed to a Consumer; it comes again until Ack.
type Delivery struct {
	Msg
	Ack func() error
}

// ackWait is after how long an unacknowledged message comes again. It is short,
// since what the server wrote to a connection that died comes no sooner; while a
// message is in the reader's hands, which may be for a long tool call, Run tells the
// server so.
const ackWait = 2 * time.Second

// Consumer makes or opens the durable consumer of this name. A new one starts at
// sequence from. The server hands out one message at a time and the next one only
// once that is acknowledged: with several under way, one that was lost with its
// connection would come again behind those that followed it.
func (s *Stream) Consumer(ctx context.Context, name string, from uint64, filters ...string) (*Consumer, error) {
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
	return &Consumer{s, c, name}, nil
}

// Run hands each message to f until ctx ends (then it returns nil), f fails, or the
// consumer is removed ([ErrConsumerGone]). A message comes only after the one before
// it was acknowledged, so never out of order; until its own Ack it comes again and
// again, but not while f has it. Run survives restarts of the server.
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
		d := Delivery{Msg: Msg{Subject: m.Subject(), Data: m.Data(), Seq: meta.Sequence.Stream, Time: meta.Timestamp, Pending: meta.NumPending}, Ack: m.Ack}
		release := hold(ctx, m)
		err = f(d)
		release()
		if err != nil {
			return err
		}
	}
}

// hold keeps m from coming again until release is called, also once ctx has ended.
func hold(ctx context.Context, m jetstream.Msg) (release func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		shutdown.Every(ctx, ackWait/4, func(context.Context) {
			_ = m.InProgress() // one that gets lost lets m come again, which is harmless
		})
	})
	return func() { stop(); wg.Wait() }
}

// gone tells an interruption from a removal, which is announced only to a pull
// that is open at that moment.
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

// AckFloor is the sequence up to which the named consumer has acknowledged all.
// Errors: NotFound; Unavailable.
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

// Waiting is how many messages the named consumer has yet to acknowledge. Errors: NotFound;
// Unavailable.
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
		return nil, team.Errorf(team.Unavailable, "look at consumer %s: %w", name, err)
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
		return names, team.Errorf(team.Unavailable, "list the consumers of %s: %w", s.name, err)
	}
	return names, nil
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
		return team.Errorf(team.Unavailable, "remove consumer %s: %w", name, err)
	}
	return nil
}
