package approval

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/team"
)

// MayReturn reports whether a person has decided to bring m, a lost member, back. The first call for an incarnation asks
// a person, by a record and by mail; dir is the team's workspace and why states how m was lost. It does not wait for the
// answer. Errors: Unavailable.
func (p *Plans) MayReturn(ctx context.Context, m team.Member, dir, why string) (bool, error) {
	asks := team.NewRespawn(m, dir, why, time.Now().UTC())
	a, err := p.Get(ctx, asks.ID)
	if errors.Is(err, team.NotFound) {
		a, err = p.put(ctx, asks)
		if errors.Is(err, team.Conflict) { // another process that led just before
			return false, nil
		}
		if err == nil {
			_, _, _ = p.o.Post.Send(ctx, team.Message{Type: team.MsgPlanRequest, From: team.Watchdog, To: team.UserAgent, RequestID: a.ID,
				Summary: team.Summarize("bring " + string(m.AgentID) + " back?"),
				Content: string(m.AgentID) + " " + a.Asking() + ".\n\nwhy: " + a.Call.Why + "\n\nDecide with: teamctl approvals approve " + a.ID + ", or reject " + a.ID})
		}
	}
	if err != nil {
		return false, err
	}
	seated, err := p.bySeat(ctx, a.DecidedBy)
	return err == nil && a.Brings(seated), err
}
