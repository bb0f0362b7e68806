// Package mailbox is the team's mail: one durable stream, with an inbox for each member and broadcasts to all. A message
// is stored before Send returns, and stays until its receiver has it in its journal.
//
// It delivers at least once and in order; the receiver (package agent) makes that exactly once, by recording each
// message's sequence. The package does not interpret the content of a message.
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

// Members reads the members of the team; *roster.Roster is one.
type Members interface {
	Get(ctx context.Context, a team.AgentID) (team.Member, error)
	List(ctx context.Context) ([]team.Member, error)
}

// Options are the dependencies of a Mailbox besides the team.
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
	hurried sync.Map // the sequence (uint64) of the newest urgent broadcast, by its sender in this process
}

// New returns the mailbox of a team.
func New(t *broker.Storage, o Options) *Mailbox {
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Mailbox{team: t, members: o.Members, log: o.Logger, metrics: newMetrics(o.Metrics)}
}

// Send stores m in the inbox of m.To, or for all members if that is team.Everyone, and returns it with its id, and its
// recipients. A message that is sent again within two minutes under the caller's own id is stored once. m.From is the
// sender; callers take it from the membership, never from a tool's arguments.
//
// Send repeats until it is answered. If the server stored the message, its answer got lost, and NATS then was away for
// more than those two minutes, the message is stored twice, under the same id: receivers go by the id.
//
// A text of more than team.MaxTextBytes is stored in the object store; the message then has its head and tail, and its
// reference in Stored.
//
// A member may write to team.UserAgent, the user. A member that has left the team reads its mail when it is back.
//
// Errors: NotFound for a recipient that is not in the team; InvalidArgument; PermissionDenied for urgent mail from other
// senders than the leader and people; Unavailable, and then the message may or may not have been stored.
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

// mayHurry returns nil if a sender may send urgent mail: the leader, the user, or a person with a seat. Errors:
// PermissionDenied; Unavailable.
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

// shownBytes bounds the part of an oversize text that its message has: about 2,000 tokens, for which any receiver has
// room.
const shownBytes = 8 << 10

// shorten returns m with an oversize text moved to the object store. Error: Unavailable.
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

// recipients returns the members that will get m.
func (b *Mailbox) recipients(ctx context.Context, m team.Message) ([]team.AgentID, error) {
	switch {
	case m.To == team.Leader && m.From != team.Leader:
		return []team.AgentID{team.Leader}, nil // always there, also while no process leads
	case m.To == team.UserAgent && m.From != team.UserAgent:
		return []team.AgentID{team.UserAgent}, nil // the user reads the team's feed
	}
	if m.To != team.Everyone && m.To != m.From {
		// One record is read much faster than all, which only errors need.
		switch _, err := b.members.Get(ctx, m.To); {
		case err == nil: // also for a member that has left: the mail is kept
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

// Mark is a member's position in its mail: the newest message that it has taken in, or, before its first message, the
// sequence behind which it begins to read.
type Mark = broker.Mark

// Delivery is a received message. Until Ack is called, after the message is recorded, it is delivered again and again,
// and no later message is.
type Delivery struct {
	team.Message
	Seq     uint64    // in the message stream; grows
	At      time.Time // when it was stored, by the server's clock
	Pending uint64    // how many messages there were behind it when it was handed out
	Ack     func()    // nil for a message that was only read
}

// Receive calls f with each message for one incarnation of a member, in order, after the position after, until ctx ends
// (then it returns nil) or f fails. It removes the consumers of earlier incarnations, so that a replaced process hears
// nothing more; such a process gets [team.ErrSuperseded].
//
// A stream that was restored from an older copy uses its sequences a second time. Then Receive delivers the messages
// that were stored since the member's last message.
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
		// Harmless: a process that receives there learns elsewhere too that it is superseded.
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

// Unread returns the number of messages for the incarnation that wake their reader and are stored but not yet recorded
// in its journal. Errors: NotFound before the incarnation has begun to receive.
func (b *Mailbox) Unread(ctx context.Context, a team.AgentID, incarnation uint64) (n int, err error) {
	floor, err := b.team.Messages.AckFloor(ctx, subject.Consumer(a, incarnation))
	if err != nil {
		return 0, err
	}
	n, _, err = b.After(ctx, a, floor)
	return n, err
}

// Waiting returns the approximate number of messages that are stored for the incarnation and not yet recorded in its
// journal, also those that do not wake it. It costs one request, whatever the number. Errors: NotFound before the
// incarnation has begun to receive; Unavailable.
func (b *Mailbox) Waiting(ctx context.Context, a team.AgentID, incarnation uint64) (int, error) {
	return b.team.Messages.Waiting(ctx, subject.Consumer(a, incarnation))
}

// After returns the number of messages to a after sequence seq that wake their reader, and the sequence of the last one.
func (b *Mailbox) After(ctx context.Context, a team.AgentID, seq uint64) (n int, last uint64, err error) {
	err = b.Read(ctx, a, seq+1, func(d Delivery) error {
		if d.Wakes() {
			n, last = n+1, d.Seq
		}
		return nil
	})
	return n, last, err
}

// Close removes the consumers of an incarnation that has left for good and of earlier ones; there may be none. If its
// process still lives, it gets [team.ErrSuperseded].
func (b *Mailbox) Close(ctx context.Context, a team.AgentID, incarnation uint64) error {
	// The names are listed, since not every incarnation began to receive.
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

// bury moves an unreadable message to the dead letters, so that it does not block the inbox.
func (b *Mailbox) bury(ctx context.Context, a team.AgentID, m broker.Delivery) error {
	b.log.WarnContext(ctx, "unreadable message set aside", "agent", a, "subject", m.Subject, "sequence", m.Seq)
	b.metrics.received.WithLabelValues(unreadable).Inc()
	if _, err := b.team.Messages.Publish(ctx, subject.Dead(b.team.ID, a), ulid.Make().String(), m.Data); err != nil {
		return err
	}
	return m.Ack()
}
