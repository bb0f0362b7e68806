package broker

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// inbox receives the answers to requests, one request at a time.
type inbox struct {
	sub     *nats.Subscription
	prefix  string // of the subjects that it takes answers at
	asked   uint64 // number of the last request
	answers chan *nats.Msg
	timeout *time.Timer
}

// inboxes are the idle inboxes. Each serves one request after another, which saves each request the context that nats.go
// wants for it and the goroutine that it wakes in between: a tenth of the cost of a claim to its agent. Each request has its
// own subject, so that the answer to an earlier one is never taken for the answer to another.
type inboxes struct {
	mu   sync.Mutex
	free []*inbox
}

// maxFree bounds the idle inboxes: about as many as one call of the board uses concurrently. More are made when needed, and
// dropped afterwards.
const maxFree = 32

func (b *inboxes) take(nc *nats.Conn) (*inbox, error) {
	b.mu.Lock()
	if n := len(b.free); n > 0 {
		defer b.mu.Unlock()
		in := b.free[n-1]
		b.free = b.free[:n-1]
		return in, nil
	}
	b.mu.Unlock()
	in := &inbox{prefix: nc.NewInbox() + ".", answers: make(chan *nats.Msg, 8), timeout: time.NewTimer(callTimeout)}
	var err error
	in.sub, err = nc.ChanSubscribe(in.prefix+"*", in.answers)
	return in, err
}

func (b *inboxes) put(in *inbox) {
	in.timeout.Stop()
	b.mu.Lock()
	keep := len(b.free) < maxFree
	if keep {
		b.free = append(b.free, in)
	}
	b.mu.Unlock()
	if !keep {
		in.drop()
	}
}

func (in *inbox) drop() { _ = in.sub.Unsubscribe() }

// request sends msg and waits for the answer, for callTimeout at most. Errors: that of ctx; [nats.ErrTimeout],
// [nats.ErrNoResponders]; [nats.ErrConnectionClosed], also if the connection closes while it waits; those of a subscription
// and of a publish.
func (c *Conn) request(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, err := c.inboxes.take(c.nc)
	if err != nil {
		return nil, err
	}
	answer, err := in.request(ctx, c, msg)
	if err != nil {
		in.drop() // the answer may still come, and must not reach another request
		return nil, err
	}
	c.inboxes.put(in)
	if len(answer.Data) == 0 && answer.Header.Get("Status") == "503" {
		return nil, nats.ErrNoResponders
	}
	return answer, nil
}

func (in *inbox) request(ctx context.Context, c *Conn, msg *nats.Msg) (*nats.Msg, error) {
	in.asked++
	msg.Reply = in.prefix + strconv.FormatUint(in.asked, 36)
	if err := c.nc.PublishMsg(msg); err != nil {
		return nil, err
	}
	in.timeout.Reset(callTimeout)
	for {
		select {
		case answer := <-in.answers:
			if answer.Subject == msg.Reply {
				return answer, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, nats.ErrConnectionClosed
		case <-in.timeout.C:
			return nil, nats.ErrTimeout
		}
	}
}
