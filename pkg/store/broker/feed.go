package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
)

// feed is one reading of a stream: every message from some point on, each once and in order, also across restarts of
// servers and connections.
//
// It pulls from a consumer that lives in the memory of one server and acknowledges nothing. When that consumer falls
// silent, or skips a number, the feed makes another one, which continues after the last message seen. (Push consumers and
// KV watchers were seen blind for 19 s after a restart of the server. The ordered consumer of nats.go asks for its
// replacement under one name, without end; a replacement on a server that has just died leaves it blind until that server
// is back.)
type feed struct {
	s        *Stream
	cfg      jetstream.ConsumerConfig
	f        func(Msg) error
	caughtUp func() error // nil if nobody wants to know, or was told
	ahead    int          // messages that are fetched before they are asked for

	seen uint64    // sequence of the last message; what is before the start counts as seen
	at   time.Time // when the server stored that; zero if none has come
	end  uint64    // sequence at which it has caught up

	lull lull
}

// feedHeartbeat is the interval at which a server confirms that a feed is only quiet. After two missing heartbeats the feed
// counts as dead.
const feedHeartbeat = time.Second

// errInterrupted: the consumer is gone, and another will do.
var errInterrupted = errors.New("interrupted")

func (s *Stream) newFeed(from uint64, f func(Msg) error, caughtUp func() error, filters []string) *feed {
	from = max(from, 1)
	return &feed{s: s, f: f, caughtUp: caughtUp, seen: from - 1, ahead: 512, cfg: jetstream.ConsumerConfig{
		FilterSubjects: filters, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		AckPolicy: jetstream.AckNonePolicy, MaxDeliver: 1, Replicas: 1, MemoryStorage: true,
		// The server keeps the consumer of an ended feed for this long, if it is not notified; a consumer that it
		// removes too early is made again.
		InactiveThreshold: 10 * time.Second,
	}}
}

// newest makes the feed begin with the newest message of every subject.
func (r *feed) newest() *feed {
	r.seen, r.cfg.DeliverPolicy, r.cfg.OptStartSeq = 0, jetstream.DeliverLastPerSubjectPolicy, 0
	return r
}

// run reads until f or caughtUp fails, or ctx ends; it returns that error.
func (r *feed) run(ctx context.Context) error {
	for {
		err := r.stretch(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, errInterrupted):
			return err
		}
		r.s.conn.log.Debug("feed interrupted", "stream", r.s.name, "seq", r.seen, "err", err)
		if err := backoff(ctx, err, "follow "+r.s.name); err != nil {
			return err
		}
		if r.seen > 0 || r.cfg.DeliverPolicy == jetstream.DeliverByStartSequencePolicy { // else nothing has come of the newest
			r.cfg.DeliverPolicy, r.cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.seen+1
		}
	}
}

// fallBack moves the position of the feed in a stream that was restored from an older copy and uses sequences a second time: to
// behind all messages stored up to the time of the last seen message. It then returns errInterrupted. A removed message proves
// nothing, unless the stream ends before it. It is called while a consumer is open, since that does not outlive a restart: a
// consumer made before the stream fell back is found gone, and one made behind its new end is found here.
func (r *feed) fallBack(ctx context.Context) error {
	if r.seen == 0 || r.at.IsZero() {
		return nil
	}
	last, err := r.s.LastSeq(ctx) // first, since the stream may reach the sequence between the two questions
	if err != nil {
		return err
	}
	if last >= r.seen {
		m, err := r.s.Next(ctx, r.seen)
		if errors.Is(err, team.NotFound) {
			return nil
		}
		if err != nil || m.Seq > r.seen || m.Time.UnixMilli() == r.at.UnixMilli() {
			return err
		}
	}
	next, err := r.s.FirstSince(ctx, r.at.Add(time.Millisecond)) // as exact as a cursor
	if err != nil {
		return err
	}
	r.s.conn.log.Warn("a stream has fallen back behind its reader", "stream", r.s.name, "seq", r.seen, "next", next)
	r.seen, r.at = next-1, time.Time{}
	return fmt.Errorf("%w: the stream has fallen back", errInterrupted)
}

// stretch reads from one consumer.
func (r *feed) stretch(ctx context.Context) error {
	cons, err := r.consumer(ctx)
	if err != nil {
		return err
	}
	defer r.discard(cons)
	if err := r.fallBack(ctx); err != nil {
		return err
	}
	if err := r.poll(ctx); err != nil {
		return err
	}
	it, err := cons.Messages(jetstream.PullMaxMessages(r.ahead), jetstream.PullHeartbeat(feedHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return team.Errorf(team.Unavailable, "follow %s: %w", r.s.name, Unheard(err))
	}
	defer it.Stop()
	ctx, stop := r.s.conn.untilReconnect(ctx)
	defer stop()
	defer r.lull.stop()
	for delivered := uint64(1); ; delivered++ {
		m, err := r.next(ctx, it)
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("follow %s: %w", r.s.name, err)
		}
		if meta.Sequence.Consumer != delivered {
			return fmt.Errorf("%w: message %d came in place of %d", errInterrupted, meta.Sequence.Consumer, delivered)
		}
		msg := Msg{Subject: m.Subject(), Data: m.Data(), Seq: meta.Sequence.Stream, Time: meta.Timestamp, Deleted: isMarker(m.Headers()), Pending: meta.NumPending}
		if err := r.f(msg); err != nil {
			return err
		}
		r.seen, r.at = msg.Seq, msg.Time
		if err := r.check(); err != nil {
			return err
		}
	}
}

// next waits for a message. While the feed has not caught up and nothing comes, it also checks whether the end has moved:
// the message there may have been removed.
func (r *feed) next(ctx context.Context, it jetstream.MessagesContext) (jetstream.Msg, error) {
	for {
		wait := ctx
		if r.caughtUp != nil {
			wait = r.lull.within(ctx)
		}
		m, err := it.Next(jetstream.NextContext(wait))
		switch {
		case err == nil:
			r.lull.came = true
			return m, nil
		case errors.Is(err, jetstream.ErrMsgIteratorClosed) && r.s.conn.nc.IsClosed():
			return nil, team.Errorf(team.Unavailable, "follow %s: %w", r.s.name, Unheard(err))
		case r.caughtUp == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return nil, fmt.Errorf("%w: %w", errInterrupted, err)
		}
		if r.lull.came {
			continue
		}
		if err := r.poll(ctx); err != nil {
			return nil, err
		}
	}
}

// lull reports that nothing has come for a while. One context serves for all messages that come while it lasts, since one
// for each would take a fifth of a reading's time.
type lull struct {
	ctx  context.Context
	end  context.CancelFunc
	came bool // a message came since ctx began
}

func (l *lull) within(ctx context.Context) context.Context {
	if l.ctx == nil || l.ctx.Err() != nil {
		l.stop()
		l.ctx, l.end = context.WithTimeout(ctx, 3*feedHeartbeat)
		l.came = false
	}
	return l.ctx
}

func (l *lull) stop() {
	if l.end != nil {
		l.end()
	}
}

// poll finds the end: the newest sequence that matches, from the stream's leader. The server's pending count cannot show
// it: on a replicated stream it counts the messages that another server, maybe behind, has to deliver; and it counts down
// when old values of a key drop out of the history, also values that it never meant to deliver. A feed of the newest
// messages calls look after its consumer was made, which has then fixed the messages to deliver.
func (r *feed) poll(ctx context.Context) error {
	if r.caughtUp == nil {
		return nil
	}
	filters := r.cfg.FilterSubjects
	if len(filters) == 0 {
		filters = []string{">"}
	}
	r.end = 0
	for _, filter := range filters {
		m, err := r.s.Last(ctx, filter)
		if err != nil && !errors.Is(err, team.NotFound) {
			return err
		}
		r.end = max(r.end, m.Seq)
	}
	return r.check()
}

// check calls caughtUp, once, when the feed has caught up.
func (r *feed) check() error {
	if r.caughtUp == nil || r.seen < r.end {
		return nil
	}
	tell := r.caughtUp
	r.caughtUp = nil
	return tell()
}

// consumer makes a consumer, under a new name at each try.
func (r *feed) consumer(ctx context.Context) (jetstream.Consumer, error) {
	return answered(ctx, r.s, "follow stream "+r.s.name, 2*callTimeout, func(ctx context.Context) (jetstream.Consumer, error) {
		return r.s.s.CreateConsumer(ctx, r.cfg)
	})
}

// discard notifies the server that a consumer is not needed any more: it allows 1,000 for each stream, and frequent short
// readings would soon use them up. No caller waits for its answer, since a consumer whose notice gets lost expires
// automatically.
func (r *feed) discard(cons jetstream.Consumer) {
	_ = r.s.conn.nc.Publish("$JS.API.CONSUMER.DELETE."+r.s.name+"."+cons.CachedInfo().Name, nil)
}

// untilReconnect returns a context that ends when the connection has been lost and restored: state in a server's memory for
// it may be gone, and messages under way are.
func (c *Conn) untilReconnect(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	restored := c.nc.StatusChanged(nats.CONNECTED)
	context.AfterFunc(ctx, func() { c.nc.RemoveStatusListener(restored) }) // which closes it
	go func() {
		for range restored {
			cancel()
		}
	}()
	return ctx, cancel
}
