package mailbox

import (
	"context"
	"encoding/json"
	"slices"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Read calls f with each stored message to a member, in order, in sequences [from, the
// present end], until f fails. It consumes no message, and skips a message that cannot be
// decoded. Errors: f's; Unavailable.
func (b *Mailbox) Read(ctx context.Context, a team.AgentID, from uint64, f func(Delivery) error) error {
	return b.team.Messages.Read(ctx, from, func(m broker.Msg) error {
		msg, ok := decode(m)
		if !ok || msg.From == a { // one's own broadcast
			return nil
		}
		return f(Delivery{Message: msg, Seq: m.Seq, At: m.Time, Pending: m.Pending})
	}, subject.Mail(b.team.ID, a)...)
}

// decode returns the message in an entry of the stream; ok is false for data that is not a message of this protocol, or
// has an unknown type, whose effect this program does not know. From is taken from the subject, which the broker vouches
// for; the sender in the payload is only a claim.
func decode(m broker.Msg) (msg team.Message, ok bool) {
	if err := json.Unmarshal(m.Data, &msg); err != nil || msg.V != team.Protocol || !slices.Contains(types, msg.Type) {
		return msg, false
	}
	msg.From = subject.Sender(m.Subject)
	return msg, true
}
