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

// StoredMessage is a message as it is stored, and what has become of it.
type StoredMessage struct {
	team.Message
	Seq        uint64       `json:"seq"` // in the stream of messages
	StoredAt   time.Time    `json:"stored_at"`
	Open       bool         `json:"open,omitempty"`      // a question to a person that nobody has answered yet: the task for which it is asked has not ended, or its sender has not left
	AnswerTo   team.AgentID `json:"answer_to,omitempty"` // of an open question for a task that its sender has lost: the agent that holds the task, and gets the answer; "" = the sender
	Deliveries []Delivery   `json:"fates"`               // of each receiver that is asked for
}

// Entry is the letter as the team's feed tells it, without a cursor.
func (l StoredMessage) Entry() Entry {
	value, _ := json.Marshal(l.Message) // which was read from JSON
	return Entry{Time: l.StoredAt, Event: team.Event{AgentID: l.From, Event: team.EventBody{Type: team.MailSent, MessageID: l.ID, Value: value}}}
}

// Inbox returns the mail to a member, or to [team.UserAgent], oldest first, each with its
// fate there. It reads the mail to that member and, once, what was stored since the oldest of
// it: the member's journal, or what the person has written. A message that cannot be read is
// not in it. Errors: NotFound for one who never was a member; Unavailable.
func (t Mail) Inbox(ctx context.Context, who team.AgentID) ([]StoredMessage, error) {
	return t.inbox(ctx, who, func(StoredMessage) (bool, error) { return true, nil })
}

// InboxPage returns the part of [Mail.Inbox] that begins at a place, from 0, and has at most
// limit letters; more is that there are others behind it. It keeps and judges no more than that.
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

// inbox is [Mail.Inbox] for the letters that keep wants; [broker.ErrEnough] of it ends the reading.
func (t *core) inbox(ctx context.Context, who team.AgentID, keep func(StoredMessage) (bool, error)) ([]StoredMessage, error) {
	m, err := t.reader(ctx, who)
	if err != nil {
		return nil, err
	}
	var letters []StoredMessage
	had := map[string]bool{} // what is stored twice is read once
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
		err = t.letters(ctx, max(m.InboxFrom, 1), take, inbox(t.id(), who)...)
	}
	if err != nil && !errors.Is(err, broker.ErrEnough) { // of what the member was spawned with
		return nil, err
	}
	return letters, t.fates(ctx, letters)
}

// FollowInbox calls f for each message to a member that is stored behind a sequence, and for
// the member, until ctx ends; then it returns nil. Nobody has read these yet. Errors: as of
// [Mail.Inbox].
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
		l, ok := letterOf(m)
		if !ok || l.From == who {
			return nil
		}
		l.Deliveries = []Delivery{{AgentID: who, State: team.MailPending}}
		if isPerson {
			l.Open, l.Deliveries[0].State, l.Deliveries[0].DeliveredAt = l.Asks(), team.MailDelivered, &l.StoredAt
		}
		return f(l)
	}, nil, inbox(t.id(), who)...)
}

// Message returns a message by its id, with its whole text and its fate at each receiver: for a broadcast, those
// who were members when it was stored. The time in its id tells where to look, so that it reads
// mail from there on; a receiver's journal is read from then until it tells. Errors: NotFound;
// Unavailable.
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
	err = t.fates(ctx, letters)
	return letters[0], err
}

// prompt finds what a member was spawned with, which is in no stream, under an id that its
// inbox names; missing if there is none. Errors: InvalidArgument if several members have it.
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

// inbox is where mail to a member is stored. The person before the team gets no broadcasts:
// those are for members.
func inbox(id team.TeamID, who team.AgentID) []string {
	if who == team.UserAgent {
		return []string{subject.Inbox(id, who, ">")}
	}
	return subject.Mail(id, who)
}

// reader is who reads mail under a name: the zero Member where there is no record.
func (t *core) reader(ctx context.Context, who team.AgentID) (team.Member, error) {
	if who == team.UserAgent {
		return team.Member{}, nil
	}
	m, err := t.roster.Get(ctx, who)
	if who == team.Leader && errors.Is(err, team.NotFound) { // it may be written to before anybody leads
		return team.Member{}, nil
	}
	return m, t.unknown(ctx, who, err)
}

// letters calls f for the mail on these subjects from a sequence on, up to the present end.
func (t *core) letters(ctx context.Context, from uint64, f func(StoredMessage) error, subjects ...string) error {
	return t.team.Messages.Read(ctx, from, func(m broker.Msg) error {
		if l, ok := letterOf(m); ok {
			return f(l)
		}
		return nil
	}, subjects...)
}

// letterOf reads a message; ok is false for one that nobody can read.
func letterOf(m broker.Msg) (l StoredMessage, ok bool) {
	if json.Unmarshal(m.Data, &l.Message) != nil || l.V != team.Protocol {
		return StoredMessage{}, false
	}
	l.From, l.Seq, l.StoredAt = subject.Sender(m.Subject), m.Seq, m.Time.UTC()
	return l, true
}

// clocks is by how much the clock of a sender may be ahead of the server's.
const clocks = time.Minute

// find looks for a message from the time on that its id tells; for an id that tells none, or
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

// findFrom looks for a message in all mail from a sequence on. Errors: NotFound; Unavailable.
func (t *core) findFrom(ctx context.Context, id string, from uint64) (StoredMessage, error) {
	return t.findOn(ctx, id, from, subject.Inbox(t.id(), "*", "*"), subject.Broadcast(t.id(), "*"))
}

// findOn is findFrom for the mail on these subjects.
func (t *core) findOn(ctx context.Context, id string, from uint64, subjects ...string) (found StoredMessage, err error) {
	err = t.team.Messages.Read(ctx, from, func(m broker.Msg) error {
		if !bytes.Contains(m.Data, []byte(id)) {
			return nil
		}
		if l, ok := letterOf(m); ok && l.ID == id {
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

// timeOf is the time in a ULID, which an id is or ends with.
func timeOf(id string) (time.Time, bool) {
	u, err := ulid.ParseStrict(id[max(0, len(id)-ulid.EncodedSize):])
	if err != nil || strings.TrimSpace(id) == "" {
		return time.Time{}, false
	}
	return ulid.Time(u.Time()), true
}

// hearers are the members that a broadcast was for, in order of joining: those who had not
// left when it was stored. It reads the history of the members' records.
func (t *core) hearers(ctx context.Context, l StoredMessage) ([]team.AgentID, error) {
	var order []team.AgentID
	then := map[team.AgentID]team.Member{} // as they were, or as the oldest copy has them
	err := t.team.Bucket.Past(ctx, 1, func(e broker.Entry) error {
		m, err := roster.Decode(e)
		if err != nil || e.Deleted { // one that cannot be read tells nothing
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
		here = slices.Insert(here, 0, team.Leader) // always there, also while no process leads
	}
	return here, err
}
