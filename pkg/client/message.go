package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
)

// StoredMessage is a stored message with its deliveries.
type StoredMessage struct {
	team.Message
	Seq        uint64       `json:"seq"` // in the stream of messages
	StoredAt   time.Time    `json:"stored_at"`
	Open       bool         `json:"open,omitempty"`      // a question to a person that nobody has answered yet: the task for which it is asked has not ended, or its sender has not left
	AnswerTo   team.AgentID `json:"answer_to,omitempty"` // of an open question for a task that its sender has lost: the agent that holds the task, and gets the answer; "" = the sender
	Deliveries []Delivery   `json:"deliveries"`          // of each receiver that is asked for
}

// Entry returns the message as a feed entry, without a cursor.
func (l StoredMessage) Entry() Entry {
	value, _ := json.Marshal(l.Message) // which was read from JSON
	return Entry{Time: l.StoredAt, Event: team.Event{AgentID: l.From, Event: team.EventBody{Type: team.MailSent, MessageID: l.ID, Value: value}}}
}

// Inbox returns the mail to a member, or to [team.UserAgent], oldest first, each with its delivery
// there. It reads the mail to that member and, once, the records since the oldest of it: the
// member's journal, or the person's messages. Unreadable messages are left out. Errors: NotFound
// for a name that never was a member; Unavailable.
func (t Mail) Inbox(ctx context.Context, who team.AgentID) ([]StoredMessage, error) {
	return t.inbox(ctx, who, func(StoredMessage) (bool, error) { return true, nil })
}

// InboxPage returns at most limit messages of [Mail.Inbox] from an index on, from 0; more reports
// that others follow. It keeps and judges no more than that.
func (t Mail) InboxPage(ctx context.Context, who team.AgentID, from, limit int) (letters []StoredMessage, more bool, err error) {
	at := 0
	letters, err = t.inbox(ctx, who, func(StoredMessage) (bool, error) {
		at++
		if more = at > from+limit; more {
			return false, broker.ErrEnough
		}
		return at > from, nil
	})
	return letters, more, err
}

// inbox is [Mail.Inbox] for the messages for which keep returns true; its [broker.ErrEnough] ends
// the reading.
func (t *core) inbox(ctx context.Context, who team.AgentID, keep func(StoredMessage) (bool, error)) ([]StoredMessage, error) {
	m, err := t.reader(ctx, who)
	if err != nil {
		return nil, err
	}
	var letters []StoredMessage
	had := map[string]bool{} // a message that is stored twice is read once
	take := func(l StoredMessage) error {
		if l.From == who || had[l.ID] {
			return nil
		}
		had[l.ID] = true
		kept, err := keep(l)
		if kept {
			l.Deliveries = []Delivery{{AgentID: who}}
			letters = append(letters, l)
		}
		return err
	}
	if prompt, ok := m.PromptMail(); ok {
		err = take(StoredMessage{Message: prompt, StoredAt: m.JoinedAt})
	}
	if err == nil {
		err = t.messages(ctx, max(m.InboxFrom, 1), take, inbox(t.id(), who)...)
	}
	if err != nil && !errors.Is(err, broker.ErrEnough) { // of what the member was spawned with
		return nil, err
	}
	return letters, t.deliveries(ctx, letters)
}

// FollowInbox calls f for each message to a member after a sequence, and for each new one, until
// ctx ends; then it returns nil. Their deliveries are not looked up. Errors: as of [Mail.Inbox].
func (t Mail) FollowInbox(ctx context.Context, who team.AgentID, after uint64, f func(StoredMessage) error) error {
	m, err := t.reader(ctx, who)
	if err != nil {
		return err
	}
	isPerson, err := t.isPerson(ctx, who)
	if err != nil {
		return err
	}
	return t.team.Messages.Follow(ctx, broker.Mark{Seq: max(after, max(m.InboxFrom, 1)-1)}, func(m broker.Msg) error {
		l, ok := storedMessage(m)
		if !ok || l.From == who {
			return nil
		}
		l.Deliveries = []Delivery{{AgentID: who, Status: team.MailPending}}
		if isPerson {
			l.Open, l.Deliveries[0].Status, l.Deliveries[0].DeliveredAt = l.Asks(), team.MailDelivered, &l.StoredAt
		}
		return f(l)
	}, nil, inbox(t.id(), who)...)
}

// Message returns a message by its id, with its full text and its delivery to each receiver: for a
// broadcast, those that were members when it was stored. It reads mail from the time in the id on,
// and a receiver's journal from then until the delivery is known. Errors: NotFound; Unavailable.
func (t Mail) Message(ctx context.Context, id string) (StoredMessage, error) {
	l, err := t.find(ctx, id)
	if errors.Is(err, team.NotFound) {
		l, err = t.prompt(ctx, id, err)
	}
	if err != nil {
		return StoredMessage{}, err
	}
	if l.Stored != "" {
		if l.Content, err = blob.In(t.team.Files).Get(ctx, l.Stored); err != nil {
			return StoredMessage{}, err
		}
	}
	to := []team.AgentID{l.To}
	if l.To == team.Everyone {
		if to, err = t.hearers(ctx, l); err != nil {
			return StoredMessage{}, err
		}
	}
	l.Deliveries = make([]Delivery, len(to))
	for i, a := range to {
		l.Deliveries[i].AgentID = a
	}
	letters := []StoredMessage{l}
	err = t.deliveries(ctx, letters)
	return letters[0], err
}

// prompt returns the prompt of a member, which is in no stream, under the id that its inbox shows;
// the error missing if no member has it. Errors: InvalidArgument if several members have it.
func (t *core) prompt(ctx context.Context, id string, missing error) (found StoredMessage, err error) {
	members, err := t.roster.List(ctx)
	if err != nil {
		return found, err
	}
	var of []string
	for _, m := range members {
		if mail, ok := m.PromptMail(); ok && mail.ID == id {
			found, of = StoredMessage{Message: mail, StoredAt: m.JoinedAt}, append(of, string(m.AgentID))
		}
	}
	switch len(of) {
	case 0:
		return found, missing
	case 1:
		return found, nil
	}
	return found, team.Errorf(team.InvalidArgument, "%s is what each of these was spawned with: %s", id, strings.Join(of, ", ")).
		WithHint("read the inbox of the one that you mean: teamctl inbox NAME -o json")
}

// inbox returns the subjects of the mail to a member. The user gets no broadcasts: those are for
// members.
func inbox(id team.TeamID, who team.AgentID) []string {
	if who == team.UserAgent {
		return []string{subject.Inbox(id, who, ">")}
	}
	return subject.Mail(id, who)
}

// reader returns the member that reads mail under a name: the zero Member for the user, and for a
// leader without a record.
func (t *core) reader(ctx context.Context, who team.AgentID) (team.Member, error) {
	if who == team.UserAgent {
		return team.Member{}, nil
	}
	m, err := t.roster.Get(ctx, who)
	if who == team.Leader && errors.Is(err, team.NotFound) { // it may get mail before a process leads
		return team.Member{}, nil
	}
	return m, t.unknown(ctx, who, err)
}

// messages calls f for the mail on these subjects from a sequence on, up to the present end.
func (t *core) messages(ctx context.Context, from uint64, f func(StoredMessage) error, subjects ...string) error {
	return t.team.Messages.Read(ctx, from, func(m broker.Msg) error {
		if l, ok := storedMessage(m); ok {
			return f(l)
		}
		return nil
	}, subjects...)
}

// storedMessage decodes a message; ok is false for an unreadable one.
func storedMessage(m broker.Msg) (l StoredMessage, ok bool) {
	if json.Unmarshal(m.Data, &l.Message) != nil || l.V != team.Protocol {
		return StoredMessage{}, false
	}
	l.From, l.Seq, l.StoredAt = subject.Sender(m.Subject), m.Seq, m.Time.UTC()
	return l, true
}

// clocks is how far the clock of a sender may be ahead of the server's.
const clocks = time.Minute

// find returns a message, searching from the time in its id on; for an id without a time, or with
// one that is wrong by more than clocks, in all mail.
func (t *core) find(ctx context.Context, id string) (found StoredMessage, err error) {
	var from uint64 = 1
	if at, ok := timeOf(id); ok {
		if from, err = t.team.Messages.FirstSince(ctx, at.Add(-clocks)); err != nil {
			return found, err
		}
	}
	found, err = t.findFrom(ctx, id, from)
	if errors.Is(err, team.NotFound) && from > 1 {
		found, err = t.findFrom(ctx, id, 1)
	}
	return found, err
}

// findFrom searches for a message in all mail from a sequence on. Errors: NotFound; Unavailable.
func (t *core) findFrom(ctx context.Context, id string, from uint64) (StoredMessage, error) {
	return t.findOn(ctx, id, from, subject.Inbox(t.id(), "*", "*"), subject.Broadcast(t.id(), "*"))
}

// findOn is findFrom for the mail on these subjects.
func (t *core) findOn(ctx context.Context, id string, from uint64, subjects ...string) (found StoredMessage, err error) {
	err = t.team.Messages.Read(ctx, from, func(m broker.Msg) error {
		if !bytes.Contains(m.Data, []byte(id)) {
			return nil
		}
		if l, ok := storedMessage(m); ok && l.ID == id {
			found = l
			return broker.ErrEnough
		}
		return nil
	}, subjects...)
	if err != nil || found.ID != "" {
		return found, err
	}
	return found, team.Errorf(team.NotFound, "there is no message %q in team %s", team.Clean(id, 40), t.id()).
		WithHint("teamctl inbox NAME lists the mail to NAME with its ids")
}

// timeOf returns the time in a ULID, which is the id or its end.
func timeOf(id string) (time.Time, bool) {
	u, err := ulid.ParseStrict(id[max(0, len(id)-ulid.EncodedSize):])
	if err != nil || strings.TrimSpace(id) == "" {
		return time.Time{}, false
	}
	return ulid.Time(u.Time()), true
}

// hearers returns the receivers of a broadcast, in order of joining: the members that had not left
// when it was stored. It reads the history of the members' records.
func (t *core) hearers(ctx context.Context, l StoredMessage) ([]team.AgentID, error) {
	var order []team.AgentID
	then := map[team.AgentID]team.Member{} // as they were, or as the oldest copy has them
	err := t.team.Bucket.Past(ctx, 1, func(e broker.Entry) error {
		m, err := roster.Decode(e)
		if err != nil || e.Deleted { // an unreadable record is skipped
			return nil
		}
		if _, known := then[m.AgentID]; !known {
			order = append(order, m.AgentID)
		} else if e.Time.After(l.StoredAt) {
			return nil
		}
		then[m.AgentID] = m
		return nil
	}, subject.AllMembers)
	here := slices.DeleteFunc(order, func(a team.AgentID) bool {
		m := then[a]
		return a == l.From || m.State == team.Stopped || m.InboxFrom > l.Seq
	})
	if l.From != team.Leader && !slices.Contains(here, team.Leader) {
		here = slices.Insert(here, 0, team.Leader) // always a receiver, also while no process leads
	}
	return here, err
}
