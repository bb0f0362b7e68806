package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentteam/pkg/team"
)

// idleEnds returns a channel that receives once the agent has been without work for its idle time;
// nil if it stays: its role sets no such time, it leads, its endpoint refuses it, it waits for an
// answer, holds a task or has background jobs.
func (a *Agent) idleEnds() <-chan time.Time {
	if a.o.Idle <= 0 || a.leads() || a.o.Model == nil || a.conv.Parked != nil || a.conv.Await != nil || a.o.Jobs.Waits() || a.holds() {
		a.unused = time.Time{}
		return nil
	}
	if a.unused.IsZero() {
		a.unused = time.Now()
	}
	if a.retired {
		return time.After(0)
	}
	return time.After(time.Until(a.unused.Add(a.o.Idle)))
}

// expectedWithin bounds the read of the board before an agent leaves.
const expectedWithin = 10 * time.Second

// leaveIdle ends the membership of an agent that was idle long enough, unless work is reserved for
// it or has just arrived. It returns [*Idled].
func (a *Agent) leaveIdle(ctx context.Context) error {
	a.unused = time.Now() // if it stays, for as long again
	if !a.retired {       // else it could not take what is kept for it: others may once it has left
		look, done := context.WithTimeout(ctx, expectedWithin)
		expected := a.o.Team.Expected(look)
		done()
		if expected || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if came, err := a.next(ctx, wants{}); came || err != nil {
		return err
	}
	a.o.Slot.Retire()
	if a.retired = true; a.holds() { // a claim was under way: it leaves after that one
		return nil
	}
	why := &Idled{a.o.Member.Role, a.o.Idle}
	a.log.InfoContext(ctx, "leaves without work", "for", a.o.Idle)
	a.notify(ctx, team.Message{Type: team.MsgIdle, To: team.Leader, Content: fmt.Sprintf("%s leaves the team: %v. Spawn its role again when there is work.", a.o.Member.AgentID, why)})
	if err := a.leave(ctx); !errors.Is(err, ErrShutdown) {
		return err
	}
	return why
}
