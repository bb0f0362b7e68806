package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/agent"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// errLeft ends a membership before its journal could be read.
var errLeft = errors.New("the journal was not read before the member left")

// heartbeatAfter is how long the folder and the journal may take to open until the member sends
// heartbeats meanwhile. Earlier, a spawn would report a member that cannot begin, such as one
// without the network that its role needs.
const heartbeatAfter = roster.Interval

// remember calls open. If that takes long, the member sends heartbeats meanwhile: writing all files
// of a large repository takes longer than a spawn waits. With an unreadable journal the member is
// parked: it lives, does nothing, and continues once a person has set the record aside (`teamctl
// repair`). Returning an error instead would restart it again and again, to fail at the same
// record.
func (m *member) remember(ctx context.Context, box *mailbox.Mailbox) (log *journal.Journal, past *agent.Conversation, err error) {
	beats := func(ctx context.Context) error {
		if !shutdown.Sleep(ctx, heartbeatAfter) {
			return nil
		}
		return m.heart.Run(ctx)
	}
	err = shutdown.Together(ctx, beats, m.watchTeam, func(ctx context.Context) (err error) {
		log, past, err = m.open(ctx)
		if bad := (*journal.Bad)(nil); errors.As(err, &bad) {
			log, past, err = m.repaired(ctx, box, bad)
		}
		return err
	})
	if log == nil {
		return nil, nil, cmp.Or(err, errLeft)
	}
	return log, past, nil
}

// repaired parks the member because a record is bad, and returns open's result once the journal can
// be read.
func (m *member) repaired(ctx context.Context, box *mailbox.Mailbox, bad *journal.Bad) (*journal.Journal, *agent.Conversation, error) {
	m.Logger.WarnContext(ctx, "parked: the journal cannot be read", "team", m.Team.ID, "agent", m.Member.AgentID, "err", bad)
	cause := team.Clean("its journal cannot be read: "+bad.Error(), 1000)
	m.parkAs(ctx, team.WaitingRepair, cause)
	m.heart.Set(func(b *team.Heartbeat) { b.State = team.WaitingRepair })
	if err := m.hand.PutBack(ctx, fmt.Sprintf("the journal of %s cannot be read", m.Member.AgentID)); err != nil {
		m.Logger.WarnContext(ctx, "task not put back; it is freed soon", "agent", m.Member.AgentID, "err", err)
	}
	m.notifyUnreadable(ctx, box, bad, cause)
	for {
		if !shutdown.Sleep(ctx, roster.Interval) {
			return nil, nil, ctx.Err()
		}
		log, past, err := m.open(ctx)
		if errors.Is(err, team.ErrUnreadable) {
			continue
		}
		if err == nil {
			m.parkAs(ctx, team.WaitingRepair, "")
			m.heart.Set(func(b *team.Heartbeat) { b.State = team.Running })
		}
		return log, past, err
	}
}

// unreadableText returns the notice to the leader about an unreadable journal.
func unreadableText(a team.AgentID, cause string) string {
	return "I cannot go on: " + cause + "\nMy task is back on the board. A person must repair " + journal.Key(a) + "; then I am there again."
}

// notifyUnreadable notifies the leader, once for each record, of an unreadable journal of another
// member.
func (m *member) notifyUnreadable(ctx context.Context, box *mailbox.Mailbox, bad *journal.Bad, cause string) {
	a := m.Member.AgentID
	if a == team.Leader {
		return
	}
	_, _, err := box.Send(ctx, team.Message{ID: fmt.Sprintf("unreadable-%s-%d", a, bad.Seq), Type: team.MsgMessage, From: a, To: team.Leader,
		Content: unreadableText(a, cause)})
	if err != nil {
		m.Logger.WarnContext(ctx, "leader not told", "agent", a, "err", err)
	}
}
