package mailbox

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// hurry notifies the process of a member, or of all, of urgent mail with this sequence. The notice may get lost: then
// the mail is read before the next turn, as any other.
func (b *Mailbox) hurry(ctx context.Context, to team.AgentID, seq uint64) {
	subj := subject.Urgent(b.team.ID, to)
	if to == team.Everyone {
		subj = subject.UrgentAll(b.team.ID)
	}
	if err := b.team.Conn.NATS().Publish(subj, strconv.AppendUint(nil, seq, 10)); err != nil {
		b.log.WarnContext(ctx, "urgent mail waits for the next turn of its reader", "to", to, "err", err)
	}
}

// Urgent calls f with the sequence of each urgent message for a member, also while earlier mail waits; Receive delivers
// the message itself in its order. f must not block. stop ends it. A member gets no notice of its own broadcast, which
// it does not receive. Error: Unavailable.
func (b *Mailbox) Urgent(a team.AgentID, f func(seq uint64)) (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe()
		}
	}
	for _, subj := range []string{subject.Urgent(b.team.ID, a), subject.UrgentAll(b.team.ID)} {
		s, err := b.team.Conn.NATS().Subscribe(subj, func(m *nats.Msg) {
			seq, err := strconv.ParseUint(string(m.Data), 10, 64)
			own, _ := b.hurried.Load(a)
			if newest, _ := own.(uint64); err == nil && (seq > newest || m.Subject != subject.UrgentAll(b.team.ID)) {
				f(seq)
			}
		})
		if err != nil {
			stop()
			return nil, team.Errorf(team.Unavailable, "listen for urgent mail: %w", broker.Unheard(err))
		}
		subs = append(subs, s)
	}
	return stop, nil
}
