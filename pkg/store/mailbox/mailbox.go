// Package mailbox is the team's mail: one durable stream, an inbox for each
// member, and broadcasts that go to all. A message is stored before Send returns,
// and stays until its receiver has it in its journal.
//
// It delivers at least once and in order; making that exactly once is the work of
// the receiver (package agent), which records each message's sequence. It never
// looks into a message.
package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/telemetry"
)

// Members is what the mailbox must know of the team; *roster.Roster is one.
type Members interface {
	Get(ctx context.Context, a team.AgentID) (team.Member, error)
	List(ctx context.Context) ([]team.Member, error)
}

// Options are what a Mailbox needs besides the team.
type Options struct {
	Members Members // required
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Mailbox sends and receives a team's mail. Safe for concurrent use.
type Mailbox struct {
	team    *broker.Storage
	members Members
	log     *slog.Logger
	metrics metrics
	hurried sync.Map // the sequence (uint64) of the newest urgent broadcast, by who has sent it here
}

// New returns the mailbox of a team.
func New(t *broker.Storage, o Options) *Mailbox {
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Mailbox{team: t, members: o.Members, log: o.Logger, metrics: newMetrics(o.Metrics)}
}

// Send stores m in the inbox of m.To, or for everyone if that is team.Everyone,
// and returns it with its id, and to whom it goes. A message that is sent again
// under an id of the caller's own within two minutes is stored once. m.From is who
// sends; callers take it from the membership, never from a tool's arguments.
//
// Send repeats until it is answered. If the server stored the message, its answer
// got lost, and NATS then was away for longer than those two minutes, the message is
// stored twice, under the same id: receivers go by the id.
//
// A text of more than team.MaxTextBytes is stored apart, and the message has its head and
// tail, and in Stored where the whole is.
//
// A member may write to team.UserAgent, whoever that is at the time. Who has left the team
// reads what was sent to it when it is back.
//
// Errors: NotFound for a recipient who is not in the team; InvalidArgument;
// PermissionDenied for urgent mail that is not of the leader or a person; Unavailable, and
// then the message may or may not have been stored.
func (b *Mailbox) Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error) {
	m.V, m.CreatedAt = team.Protocol, time.Now().UTC()
	if m.ID == "" {
		m.ID = ulid.Make().String()
	}
	if m.Summary == "" {
		m.Summary = team.Summarize(m.Content)
	}
	if err := m.Validate(); err != nil {
		return m, nil, err
	}
	if m.Urgent {
		if err := b.mayHurry(ctx, m.From); err != nil {
			return m, nil, err
		}
	}
	to, err := b.recipients(ctx, m)
	if err != nil {
		return m, nil, err
	}
	if m, err = b.shorten(ctx, m); err != nil {
		return m, nil, err
	}
	subj := subject.Inbox(b.team.ID, m.To, m.From)
	if m.To == team.Everyone {
		subj = subject.Broadcast(b.team.ID, m.From)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return m, nil, err
	}
	seq, err := b.team.Messages.Publish(ctx, subj, m.ID, data)
	if err != nil {
		return m, nil, err
	}
	if m.Urgent {
		if m.To == team.Everyone {
			b.hurried.Store(m.From, seq)
		}
		b.hurry(ctx, m.To, seq)
	}
	b.metrics.sent.WithLabelValues(string(m.Type)).Inc()
	b.log.DebugContext(ctx, "message sent", "message", m.ID, "type", m.Type, "from", m.From, "to", m.To)
	return m, to, nil
}

// mayHurry returns nil if a sender may send urgent mail: the leader, and people, before the
// team or at a seat. Errors: PermissionDenied; Unavailable.
func (b *Mailbox) mayHurry(ctx context.Context, from team.AgentID) error {
	if from == team.Leader || from == team.UserAgent {
		return nil
	}
	m, err := b.members.Get(ctx, from)
	switch {
	case err == nil && m.Backend == team.Person:
		return nil
	case err == nil || errors.Is(err, team.NotFound):
		return team.Errorf(team.PermissionDenied, "only the leader and people send urgent mail").WithHint("send it without urgent; it is read before the receiver's next turn")
	}
	return err
}

// shownBytes is how much of a text that is stored apart its message has: 2,000 tokens or so,
// for which any receiver has room.
const shownBytes = 8 << 10

// shorten returns m as it is sent: a text that is too long is stored apart. Error:
// Unavailable.
func (b *Mailbox) shorten(ctx context.Context, m team.Message) (team.Message, error) {
	if len(m.Content) <= team.MaxTextBytes {
		return m, nil
	}
	var err error
	if m.Stored, err = blob.In(b.team.Files).Put(ctx, m.Content); err == nil {
		m.Content = blob.Excerpt(m.Content, shownBytes, m.Stored)
	}
	return m, err
}

// recipients resolves m.To to the members that will hear it.
func (b *Mailbox) recipients(ctx context.Context, m team.Message) ([]team.AgentID, error) {
	switch {
	case m.To == team.Leader && m.From != team.Leader:
		return []team.AgentID{team.Leader}, nil // always there, also while no process leads
	case m.To == team.UserAgent && m.From != team.UserAgent:
		return []team.AgentID{team.UserAgent}, nil // who reads the team's feed
	}
	if m.To != team.Everyone && m.To != m.From {
		// One record is read much faster than all, which only errors need.
		switch _, err := b.members.Get(ctx, m.To); {
		case err == nil: // also for one that has left: it is kept
			return []team.AgentID{m.To}, nil
		case !errors.Is(err, team.NotFound):
			return nil, err
		}
	}
	all, err := b.members.List(ctx)
	if err != nil {
		return nil, err
	}
	var here []team.AgentID
	for _, o := range all {
		if o.State != team.Stopped && o.AgentID != m.From {
			here = append(here, o.AgentID)
		}
	}
	if m.From != team.Leader && !slices.Contains(here, team.Leader) {
		here = append([]team.AgentID{team.Leader}, here...)
	}
	switch {
	case m.To == team.Everyone:
		return here, nil
	case m.To == m.From:
		return nil, team.Errorf(team.InvalidArgument, "%s cannot send a message to itself", m.From).WithHint("members are: %s", names(here))
	case !slices.Contains(here, m.To):
		return nil, team.Errorf(team.NotFound, "there is no member %q to send to", m.To).WithHint("members are: %s", names(here))
	}
	return []team.AgentID{m.To}, nil
}

func names(all []team.AgentID) string {
	if len(all) == 0 {
		return "nobody else yet"
	}
	s := string(all[0])
	for _, a := range all[1:] {
		s += ", " + string(a)
	}
	return s
}

// Mark is how far a member has taken in its mail: its newest message, or, before its first one,
// the sequence behind which it begins to read.
type Mark = broker.Mark

// Delivery is a message that came. Until Ack is called, once it is recorded, it comes
// again and again, and none after it comes.
type Delivery struct {
	team.Message
	Seq     uint64    // in the message stream; grows
	At      time.Time // when it was stored, by the server's clock
	Pending uint64    // how many messages there were behind it when it was handed out
	Ack     func()    // nil for a message that was only read
}

// Receive gives each message for one incarnation of a member to f, in order, behind what
// the member has taken in, until ctx ends (then it returns nil) or f fails. Predecessors'
// consumers are removed, so that a process that was replaced hears nothing more;
// such a process gets [team.ErrSuperseded].
//
// Where the stream was restored from an older copy, its sequences are used a second time. Then
// the messages come that were stored since the member has last taken one in.
func (b *Mailbox) Receive(ctx context.Context, a team.AgentID, incarnation uint64, after Mark, f func(Delivery) error) error {
	for {
		at := after.At
		err := b.receive(ctx, a, incarnation, after, func(d Delivery) error {
			at = d.At
			return f(d)
		})
		switch {
		case errors.Is(err, broker.ErrConsumerGone):
			return team.ErrSuperseded
		case !errors.Is(err, broker.ErrFellBack):
			return err
		}
		b.log.WarnContext(ctx, "the team's mail was restored from an older copy: messages may be lost", "agent", a, "err", err)
		first, err := b.team.Messages.FirstSince(ctx, at.Add(1))
		if err != nil {
			return err
		}
		after = Mark{Seq: first - 1}
	}
}

func (b *Mailbox) receive(ctx context.Context, a team.AgentID, incarnation uint64, after Mark, f func(Delivery) error) error {
	c, err := b.team.Messages.Consumer(ctx, subject.Consumer(a, incarnation), after, subject.Mail(b.team.ID, a)...)
	if err != nil {
		return err
	}
	if err := b.Close(ctx, a, incarnation-1); err != nil {
		// Harmless: who receives there finds itself superseded elsewhere too.
		b.log.DebugContext(ctx, "earlier inbox not closed", "agent", a, "err", err)
	}
	return c.Run(ctx, func(m broker.Delivery) error {
		msg, ok := decode(m.Msg)
		if !ok {
			return b.bury(ctx, a, m)
		}
		if msg.From == a { // one's own broadcast
			return m.Ack()
		}
		b.metrics.received.WithLabelValues(string(msg.Type)).Inc()
		return f(Delivery{Message: msg, Seq: m.Seq, At: m.Time, Pending: m.Pending, Ack: func() {
			// A lost ack means that the message comes again and is skipped.
			if err := m.Ack(); err != nil {
				b.log.DebugContext(ctx, "ack failed", "message", msg.ID, "err", err)
			}
		}})
	})
}

// Unread is how many messages that wake their reader wait for the incarnation:
// stored, and not yet recorded in its journal. Errors: NotFound before the
// incarnation has begun to receive.
func (b *Mailbox) Unread(ctx context.Context, a team.AgentID, incarnation uint64) (n int, err error) {
	floor, err := b.team.Messages.AckFloor(ctx, subject.Consumer(a, incarnation))
	if err != nil {
		return 0, err
	}
	n, _, err = b.After(ctx, a, floor)
	return n, err
}

// Waiting is how many messages are stored for the incarnation and not yet recorded in its
// journal, about: also those that do not wake it. It costs one request, however many they are.
// Errors: NotFound before the incarnation has begun to receive; Unavailable.
func (b *Mailbox) Waiting(ctx context.Context, a team.AgentID, incarnation uint64) (int, error) {
	return b.team.Messages.Waiting(ctx, subject.Consumer(a, incarnation))
}

// After is how many messages that wake their reader are stored for a behind sequence
// seq, and the sequence of the last one.
func (b *Mailbox) After(ctx context.Context, a team.AgentID, seq uint64) (n int, last uint64, err error) {
	err = b.Read(ctx, a, seq+1, func(d Delivery) error {
		if d.Wakes() {
			n, last = n+1, d.Seq
		}
		return nil
	})
	return n, last, err
}

// Close removes the consumers of an incarnation that has left for good and of those
// before it; there may be none. Should its process still live, it finds itself
// superseded.
func (b *Mailbox) Close(ctx context.Context, a team.AgentID, incarnation uint64) error {
	// They are looked up, since not every incarnation came to receive.
	names, err := b.team.Messages.Consumers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if who, n := subject.ParseConsumer(name); who == a && n <= incarnation {
			if err := b.team.Messages.RemoveConsumer(ctx, name); !errors.Is(err, team.NotFound) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// bury sets a message aside that cannot be read, so that it blocks nobody.
func (b *Mailbox) bury(ctx context.Context, a team.AgentID, m broker.Delivery) error {
	b.log.WarnContext(ctx, "unreadable message set aside", "agent", a, "subject", m.Subject, "sequence", m.Seq)
	b.metrics.received.WithLabelValues(unreadable).Inc()
	if _, err := b.team.Messages.Publish(ctx, subject.Dead(b.team.ID, a), ulid.Make().String(), m.Data); err != nil {
		return err
	}
	return m.Ack()
}
