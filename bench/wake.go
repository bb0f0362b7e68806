package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/broker"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/roster"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

const (
	warmups = 50
	letters = 1500
)

// wake measures how long a message takes from the call of Send to the receiver's
// callback, beside a bare publish to a durable consumer of the same stream. The
// two take turns.
func wake(ctx context.Context, r *rig) ([]figure, error) {
	progress("mail: %d messages, one after the other", letters)
	from, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer to.Close()

	bt, err := r.makeTeam(ctx, from, "wake")
	if err != nil {
		return nil, err
	}
	mail, ctx, stop, err := mailWay(ctx, bt, to)
	if err != nil {
		return nil, err
	}
	defer stop()
	bare, err := bareWay(ctx, bt, to)
	if err != nil {
		return nil, err
	}
	var mailed, published []float64 // ms
	for i := range warmups + letters {
		for _, turn := range []struct {
			way  way
			into *[]float64
		}{{bare, &published}, {mail, &mailed}} {
			took, err := turn.way.once(ctx)
			if err != nil {
				return nil, err
			}
			if i >= warmups {
				*turn.into = append(*turn.into, milliseconds(took))
			}
		}
	}
	return []figure{
		measured("send_to_wake_p50", quantile(mailed, 0.5), "ms").beside(quantile(published, 0.5)),
		measured("send_to_wake_p99", quantile(mailed, 0.99), "ms").beside(quantile(published, 0.99)),
	}, nil
}

// way is a way for a message from one connection to another.
type way struct {
	send    func(context.Context) error
	arrived chan time.Time // when the receiver's callback was called
}

// once sends one message and returns how long it was on its way.
func (w way) once(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	if err := w.send(ctx); err != nil {
		return 0, err
	}
	select {
	case at := <-w.arrived:
		return at.Sub(begun), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

const (
	sender   team.AgentID = "coder-1"
	receiver team.AgentID = "coder-2"
)

// letter is of a usual length.
var letter = team.Message{Type: team.MsgMessage, From: sender, To: receiver, Content: strings.Repeat("The schema is in schema.graphql. ", 10)}

// mailWay is the team's mailbox. The context it returns also ends, with the cause,
// when receiving fails; stop ends receiving.
func mailWay(ctx context.Context, bt *broker.Storage, to *broker.Conn) (w way, received context.Context, stop func(), err error) {
	members := roster.New(bt)
	for _, name := range []team.AgentID{sender, receiver} {
		if _, err := members.Create(ctx, team.Member{AgentID: name, Role: "coder", Backend: team.Exec}, roster.Limit{Team: team.DefaultMaxTeammates}); err != nil {
			return w, nil, nil, err
		}
	}
	theirs, err := to.Open(ctx, bt.ID)
	if err != nil {
		return w, nil, nil, err
	}
	box := mailbox.New(bt, mailbox.Options{Members: members})
	w = way{arrived: make(chan time.Time, 1), send: func(ctx context.Context) error {
		_, _, err := box.Send(ctx, letter)
		return err
	}}
	received, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		inbox := mailbox.New(theirs, mailbox.Options{Members: roster.New(theirs)})
		cancel(inbox.Receive(received, receiver, 1, 1, func(d mailbox.Delivery) error {
			w.arrived <- time.Now()
			d.Ack()
			return nil
		}))
	}()
	return w, received, func() { cancel(nil); <-done }, nil
}

// bareWay is JetStream alone, with the same bytes: publish, durable consumer, ack.
func bareWay(ctx context.Context, bt *broker.Storage, to *broker.Conn) (w way, err error) {
	data, err := json.Marshal(letter)
	if err != nil {
		return w, err
	}
	out, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		return w, err
	}
	in, err := jetstream.New(to.NATS())
	if err != nil {
		return w, err
	}
	stream, _ := subject.Messages(bt.ID)
	subj := subject.Inbox(bt.ID, "bare", sender)
	c, err := in.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{Durable: "bare", FilterSubject: subj, AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		return w, err
	}
	w = way{arrived: make(chan time.Time, 1), send: func(ctx context.Context) error {
		_, err := out.Publish(ctx, subj, data)
		return err
	}}
	_, err = c.Consume(func(m jetstream.Msg) { // ends with the connection
		w.arrived <- time.Now()
		_ = m.Ack()
	})
	return w, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
