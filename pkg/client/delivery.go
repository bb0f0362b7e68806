package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// The delivery state of a message is not stored: it follows from other records. It is computed
// here, since it needs the mail and the journals, and neither store knows the other.

// Delivery is the state of a message at one receiver. Times are the server's.
type Delivery struct {
	AgentID     team.AgentID    `json:"agent_id"`
	Status      team.MailStatus `json:"status"`
	DeliveredAt *time.Time      `json:"delivered_at,omitempty"`
	ProcessedAt *time.Time      `json:"processed_at,omitempty"`
	RefusedAt   *time.Time      `json:"refused_at,omitempty"`
	Reason      string          `json:"reason,omitempty"` // of a refusal; while it is not processed, of an unreadable record that may have more
	DeadAt      *time.Time      `json:"dead_at,omitempty"`
}

// At returns when the message reached its state; nil while it is pending.
func (f Delivery) At() *time.Time {
	return cmp.Or(f.DeadAt, f.RefusedAt, f.ProcessedAt, f.DeliveredAt)
}

// settle sets the state that follows from the times.
func (f *Delivery) settle() {
	switch {
	case f.DeadAt != nil:
		f.Status = team.MailDead
	case f.RefusedAt != nil:
		f.Status = team.MailRefused
	case f.ProcessedAt != nil:
		f.Status = team.MailProcessed
	case f.DeliveredAt != nil:
		f.Status = team.MailDelivered
	default:
		f.Status = team.MailPending
	}
}

// pendingDelivery is a message with its delivery to one receiver.
type pendingDelivery struct {
	*StoredMessage
	delivery *Delivery
}

// deliveries fills in the deliveries of the letters, which are in order, with the receivers that their
// Deliveries name.
func (t *core) deliveries(ctx context.Context, letters []StoredMessage) error {
	byReader := map[team.AgentID][]pendingDelivery{}
	for i := range letters {
		for k := range letters[i].Deliveries {
			f := &letters[i].Deliveries[k]
			byReader[f.AgentID] = append(byReader[f.AgentID], pendingDelivery{&letters[i], f})
		}
	}
	for who, trails := range byReader {
		if err := t.follow(ctx, who, trails); err != nil {
			return err
		}
		for _, l := range trails {
			l.delivery.settle()
		}
	}
	return nil
}

// follow fills in the deliveries of letters, which are in order, to one receiver.
func (t *core) follow(ctx context.Context, who team.AgentID, trails []pendingDelivery) error {
	isPerson, err := t.isPerson(ctx, who)
	if err != nil {
		return err
	}
	if isPerson {
		return t.writtenBack(ctx, who, trails)
	}
	if err := t.read(ctx, who, trails); err != nil {
		return err
	}
	return t.judged(ctx, who, trails)
}

// isPerson reports whether a person reads the mail to who: the user, or a person with a seat.
func (t *core) isPerson(ctx context.Context, who team.AgentID) (bool, error) {
	if who == team.UserAgent {
		return true, nil
	}
	m, err := t.roster.Get(ctx, who)
	if errors.Is(err, team.NotFound) { // the leader may get mail before a process leads
		err = nil
	}
	return m.Backend == team.Person, err
}

// margin is the maximum difference between the clocks of a cluster's servers.
const margin = time.Second

// read takes in an agent's journal until all the deliveries are known.
func (t *core) read(ctx context.Context, who team.AgentID, trails []pendingDelivery) error {
	from, err := t.team.Logs.FirstSince(ctx, trails[0].StoredAt.Add(-margin))
	if err != nil {
		return err
	}
	r := newReading(trails)
	var unreadable error // of the first such record; those after it count
	err = t.team.Logs.Read(ctx, from, func(m broker.Msg) error {
		record, err := snapshotOf(ctx, t.team, m)
		switch {
		case errors.Is(err, team.ErrUnreadable):
			unreadable = cmp.Or(unreadable, err)
			return nil
		case err != nil:
			return err
		}
		if r.take(record, m.Time.UTC()) {
			return broker.ErrEnough
		}
		return nil
	}, subject.Log(t.id(), who))
	if unreadable != nil {
		r.doubt(team.Line(unreadable))
	}
	return err
}

// snapshotOf reads a record without its parts that do not concern mail: a turn or a result in the
// object store is not fetched. Errors: [team.ErrUnreadable]; Unavailable.
func snapshotOf(ctx context.Context, s *broker.Storage, m broker.Msg) (r journal.Record, err error) {
	if err := json.Unmarshal(m.Data, &r); err == nil && (r.StoredRecord == "" || r.Kind == journal.Turn || r.Kind == journal.Result) {
		return r, nil
	}
	return journal.Decode(ctx, s, m)
}

// reading is the state of reading an agent's journal for deliveries.
type reading struct {
	pending []pendingDelivery
	read    []*Delivery // delivered, and not yet processed
}

func newReading(trails []pendingDelivery) *reading { return &reading{pending: slices.Clone(trails)} }

// take takes in the next record, which was stored at that time; done reports that all deliveries
// are known.
func (r *reading) take(record journal.Record, at time.Time) (done bool) {
	if record.Kind == journal.Turn {
		for _, f := range r.read {
			f.ProcessedAt = &at
		}
		r.read = nil
	}
	r.deliver(at, record.InboxSeq)
	if record.Context != nil && len(r.pending) > 0 { // the records of the mail itself may be gone
		var context struct {
			Inbox uint64 `json:"inbox_seq"`
		}
		if json.Unmarshal(record.Context, &context) == nil {
			r.deliver(at, context.Inbox)
		}
	}
	return len(r.pending) == 0 && len(r.read) == 0
}

// doubt records why deliveries may have come further than the records that were read show.
func (r *reading) doubt(why string) {
	for _, l := range r.pending {
		l.delivery.Reason = why
	}
	for _, f := range r.read {
		f.Reason = why
	}
}

// deliver records that mail up to a sequence was taken in: an agent takes mail strictly in order,
// and one record may stand for many messages.
func (r *reading) deliver(at time.Time, upTo uint64) {
	r.pending = slices.DeleteFunc(r.pending, func(l pendingDelivery) bool {
		if l.Seq > upTo {
			return false
		}
		l.delivery.DeliveredAt = &at
		r.read = append(r.read, l.delivery)
		return true
	})
}

// judged takes in the mail after letters: messages that the receiver has set aside, after which its
// journal continues, and answers to requests in the letters. By its answer a request is refused or
// processed, also if its receiver has left without another turn.
func (t *core) judged(ctx context.Context, who team.AgentID, trails []pendingDelivery) error {
	dead := subject.Dead(t.id(), who)
	subjects := []string{dead}
	waiting := map[string]pendingDelivery{} // the letters that ask for something, by where the answer goes
	for _, l := range trails {
		if l.RequestID != "" && l.Approve == nil {
			to := subject.Inbox(t.id(), l.From, who)
			subjects = append(subjects, to)
			waiting[to+" "+l.RequestID] = l
		}
	}
	slices.Sort(subjects)
	return t.team.Messages.Read(ctx, trails[0].Seq, func(m broker.Msg) error {
		mail, ok := storedMessage(m)
		at := m.Time.UTC()
		if m.Subject == dead {
			for _, l := range trails {
				if l.ID == mail.ID {
					l.delivery.DeadAt, l.delivery.DeliveredAt, l.delivery.ProcessedAt = &at, nil, nil
				}
			}
			return nil
		}
		key := m.Subject + " " + mail.RequestID
		l, asked := waiting[key]
		if !ok || !asked || mail.Approve == nil || mail.Seq <= l.Seq {
			return nil
		}
		delete(waiting, key)
		l.delivery.DeliveredAt = cmp.Or(l.delivery.DeliveredAt, &at)
		if *mail.Approve {
			l.delivery.ProcessedAt = cmp.Or(l.delivery.ProcessedAt, &at)
		} else {
			l.delivery.RefusedAt, l.delivery.Reason = &at, mail.Content
		}
		return nil
	}, slices.Compact(subjects)...)
}

// writtenBack takes in the answers of a person. Mail to a person is delivered when it is stored; it
// counts as read when the person writes back.
func (t *core) writtenBack(ctx context.Context, who team.AgentID, trails []pendingDelivery) error {
	subjects := []string{subject.Inbox(t.id(), "*", who), subject.Broadcast(t.id(), who)}
	if who != team.UserAgent { // the user may answer for a seat
		subjects = append(subjects, subject.Inbox(t.id(), "*", team.UserAgent), subject.Broadcast(t.id(), team.UserAgent))
	}
	for _, l := range trails {
		l.delivery.DeliveredAt = &l.StoredAt
	}
	copies := map[team.TaskID][]team.Task{} // of tasks for which a question is asked
	err := t.messages(ctx, trails[0].Seq+1, func(answer StoredMessage) error {
		for _, l := range trails {
			if l.delivery.ProcessedAt != nil || answer.Seq <= l.Seq {
				continue
			}
			settled, err := t.settles(ctx, answer.Message, l.Message, copies)
			if err != nil {
				return err
			}
			if settled {
				l.delivery.ProcessedAt = &answer.StoredAt
			}
		}
		return nil
	}, subjects...)
	if err != nil {
		return err
	}
	return t.open(ctx, trails)
}

// open marks the questions whose answer a member waits for.
func (t *core) open(ctx context.Context, trails []pendingDelivery) error {
	members, err := t.roster.List(ctx)
	if err != nil {
		return err
	}
	var ids []team.TaskID
	for _, l := range trails {
		left := slices.ContainsFunc(members, func(m team.Member) bool { return m.AgentID == l.From && m.State == team.Stopped })
		l.Open = l.Asks() && l.delivery.ProcessedAt == nil && (l.TaskID != "" || !left)
		if l.Open && l.TaskID != "" && !slices.Contains(ids, l.TaskID) {
			ids = append(ids, l.TaskID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	tasks, err := Board{t}.ByID(ctx, ids...)
	for _, l := range trails {
		v, known := tasks[l.TaskID]
		if !known || !l.Open { // an unreadable task is skipped
			continue
		}
		l.Open = !l.Void(v.Task)
		if waits := l.Waits(v.Task); l.Open && waits != l.From {
			l.AnswerTo = waits
		}
	}
	return err
}

// settles reports whether a person's message shows that the person has read m: for a question it is
// the answer, else any message to its sender. copies caches the copies of tasks that were read.
func (t *core) settles(ctx context.Context, answer, m team.Message, copies map[team.TaskID][]team.Task) (bool, error) {
	waits := m.From
	switch {
	case !m.Asks():
		return answer.To == m.From || answer.To == team.Everyone, nil
	case m.TaskID == "" || answer.InReplyTo != "":
	case copies[m.TaskID] == nil:
		past, err := t.board.History(ctx, m.TaskID)
		if err != nil && !errors.Is(err, team.NotFound) && !errors.Is(err, team.ErrUnreadable) {
			return false, err
		}
		copies[m.TaskID] = append([]team.Task{}, past...)
		fallthrough
	default:
		if past := copies[m.TaskID]; len(past) > 0 {
			waits = m.WaitedAt(past, answer.CreatedAt)
		}
	}
	return answer.Answers(m, waits), nil
}
