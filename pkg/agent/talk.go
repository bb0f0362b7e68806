package agent

import (
	"context"
	"fmt"

	"agentteam/pkg/team"
)

// Exchange returns the count for the next message to a member, or to all; seq is the revision of
// the last changed task.
func (c *Conversation) Exchange(to team.AgentID, seq uint64) team.Exchange {
	return c.Talks.Next(to, seq)
}

// hears counts a message in the exchange of the agent and its sender. It returns whether the
// message wakes the agent, and whether it is the first of a row that does not. The awaited answer
// always wakes it.
func (c *Conversation) hears(m team.Message) (wakes, first bool) {
	if m.Exchange != nil && c.answeredBy(m) {
		m.Exchange = &team.Exchange{N: 1, News: true, BoardSeq: m.Exchange.BoardSeq}
	}
	c.Moved = c.Moved || m.AwaitReply
	next, held, first := c.Talks.Heard(m)
	c.Talks = next
	return m.Wakes() && !held, first
}

// wake records that there is input that requires an answer.
func (c *Conversation) wake() { c.Unseen, c.Calls, c.Made, c.Barren = true, nil, nil, 0 }

// ear returns a copy that counts mail before it is recorded: the conversation stays as it is.
func (c *Conversation) ear() *Conversation { return &Conversation{Await: c.Await, Talks: c.Talks} }

// notifyHeld notifies the user that mail to the agent is held from m on. A successor that repeats
// it sends the same message, and so do all members that hold broadcasts that answer each other.
func (a *Agent) notifyHeld(ctx context.Context, m team.Message) {
	self := a.o.Member.AgentID
	id, who, reads := "held-"+m.ID+"-"+string(self), fmt.Sprintf("%s and %s", m.From, self), "neither of them"
	if m.Type == team.MsgBroadcast {
		id, who, reads = fmt.Sprintf("held-all-%d", m.Exchange.BoardSeq), fmt.Sprintf("%s and other members", m.From), "none of them"
	}
	a.send(ctx, team.Message{ID: id, Type: team.MsgWatchdog, From: team.Watchdog, To: team.UserAgent,
		Content: fmt.Sprintf("[Held] %s have written %d messages to each other without another tool call and without a change of a task. "+
			"From now on their mail to each other wakes %s: each reads it with its next news. A task, a question or a message of yours is news.", who, team.HeldFrom, reads)})
}
