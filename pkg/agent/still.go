package agent

import (
	"context"
	"fmt"
	"math"

	"agentteam/pkg/team"
)

// A turn makes no progress without a changed file, mail, a question or the end of a task. A quarter
// of the allowed turns of this kind are reported to the leader; after all of them the task goes
// back.

// mayStay returns how many turns in a row the agent may make without progress; unlimited for a
// leader, whose progress is that of others.
func (a *Agent) mayStay() int {
	if a.leads() {
		return math.MaxInt
	}
	return a.o.StillTurns
}

// checkProgress checks for input to the agent, and for files that its commands have changed.
func (a *Agent) checkProgress(ctx context.Context) {
	held, _ := a.hold()
	a.state = a.state.heard(newsMark{a.conv.Inbox, held})
	if !a.state.checksAt(a.mayStay()) {
		return
	}
	if tree := a.o.Footprint(ctx); tree != a.tree {
		a.tree, a.state = tree, a.state.moves()
	}
}

// reportStill notifies the leader that the agent makes no progress.
func (a *Agent) reportStill(ctx context.Context) {
	self, at, after := a.o.Member.AgentID, "", ""
	if t, holds := a.o.Slot.Task(); holds {
		at, after = fmt.Sprintf(" at %s (%s)", t.ID, neutral(t.Title)), fmt.Sprintf(" After %d its task goes back to the board.", a.mayStay())
	}
	a.send(ctx, team.Message{Type: team.MsgWatchdog, From: team.Watchdog, To: team.Leader, Content: fmt.Sprintf(
		"[No Progress] %s has made %d turns in a row%s without a changed file, a message, a question or a completed task.%s", self, a.state.still, at, after)})
}
