package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/agent"
	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/roster"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// errMended ends the wait for a journal that can be read.
var errMended = errors.New("the journal can be read")

// errLeft ends a membership that ends before its journal could be read.
var errLeft = errors.New("the journal was not mended while the member waited")

// remember is open. With a journal that cannot be read the member is parked: it lives, does
// nothing, and continues once somebody has set the record aside (`teamctl repair`). To fail
// instead would have it brought back again and again, to fail at the same record.
func (m *member) remember(ctx context.Context, box *mailbox.Mailbox) (log *journal.Journal, past *agent.Conversation, err error) {
	log, past, err = m.open(ctx)
	var bad *journal.Bad
	if !errors.As(err, &bad) {
		return log, past, err
	}
	m.Logger.WarnContext(ctx, "parked: the journal cannot be read", "team", m.Team.ID, "agent", m.Member.AgentID, "err", err)
	cause := team.Clean("its journal cannot be read: "+err.Error(), 1000)
	m.parkAs(ctx, team.WaitingRepair, cause)
	m.heart.Set(func(b *team.Beat) { b.State = team.WaitingRepair })
	if err := m.hand.PutBack(ctx, fmt.Sprintf("the journal of %s cannot be read", m.Member.AgentID)); err != nil {
		m.Logger.WarnContext(ctx, "task not put back; it is freed soon", "agent", m.Member.AgentID, "err", err)
	}
	m.tellUnreadable(ctx, box, bad, cause)

	err = shutdown.Together(ctx, m.heart.Run, m.watchTeam, func(ctx context.Context) (err error) {
		for {
			if !shutdown.Sleep(ctx, roster.Interval) {
				return ctx.Err()
			}
			if log, past, err = m.open(ctx); !errors.Is(err, team.ErrUnreadable) {
				return errors.Join(err, errMended)
			}
		}
	})
	if log == nil {
		return nil, nil, cmp.Or(err, errLeft)
	}
	m.parkAs(ctx, team.WaitingRepair, "")
	m.heart.Set(func(b *team.Beat) { b.State = team.Running })
	return log, past, nil
}

// unreadableText is the notice to the leader about that.
func unreadableText(a team.AgentID, cause string) string {
	return "I cannot go on: " + cause + "\nMy task is back on the board. A person must repair " + journal.Key(a) + "; then I am there again."
}

// tellUnreadable tells the leader, once for each record, of a journal that it cannot mend
// itself.
func (m *member) tellUnreadable(ctx context.Context, box *mailbox.Mailbox, bad *journal.Bad, cause string) {
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
