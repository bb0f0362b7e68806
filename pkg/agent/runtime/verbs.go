package runtime

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/team"
)

// offerGrace lets an offer wait for an agent whose idle heartbeat was sent just before it began to
// listen.
const offerGrace = 200 * time.Millisecond

// handlers returns the handlers of the member's process. A notification goes through a channel to a
// part of the membership, which may take its time.
func (m *member) handlers() control.Handlers {
	return control.Handlers{
		Ping:   m.heart.Now,
		Assign: m.assign,
		Start:  m.Start,
		Offer: func(t team.Task) {
			select {
			case m.offered <- t:
			default: // the agent could take only one anyway
			}
		},
		Revoked: func(id team.TaskID) {
			if held, ok := m.hand.Task(); ok && held.ID == id {
				wake(m.revoked)
			}
		},
		Compact: func() { wake(m.compacts) },
		Stop:    func() { m.cancel(ErrForced) },
	}
}

// wake sends a signal that need not be repeated. It does not block.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// assign takes a task on behalf of a caller with the leader's rights.
func (m *member) assign(ctx context.Context, a team.Assignment) (team.Task, error) {
	if m.Model == nil {
		return team.Task{}, team.Errorf(team.Unavailable, "%s has no model configured and can do nothing", m.Member.AgentID)
	}
	if m.parked.Load() {
		return team.Task{}, team.Errorf(team.Unavailable, "%s cannot work until somebody has mended its model or its journal", m.Member.AgentID).WithHint("teamctl agents tells the cause")
	}
	if err := m.heart.Certain(ctx); err != nil { // it may have been replaced while it was frozen
		return team.Task{}, team.Errorf(team.Unavailable, "%s is leaving: %w", m.Member.AgentID, err)
	}
	t, taken, err := m.hand.Assign(ctx, a)
	if err != nil || !taken {
		return t, err
	}
	select {
	case m.given <- t:
	case <-ctx.Done(): // the next process adopts it
	}
	return t, nil
}

// passOffers passes each offer to the agent, which takes it only while it is idle, until ctx ends;
// then it returns nil.
func (m *member) passOffers(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-m.offered:
			select {
			case m.offers <- t:
			case <-time.After(offerGrace):
			case <-ctx.Done():
			}
		}
	}
}

// checkHold confirms the agent's hold each time that its task is reported lost: the notice may be
// about an earlier hold. The slot notifies the agent of a loss. It returns nil once ctx ends.
func (m *member) checkHold(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.revoked:
		}
		held, ok := m.hand.Task()
		if !ok {
			continue
		}
		// If that cannot be determined, the agent waits before its next step.
		if _, err := m.hand.Confirm(ctx, held.ID); errors.Is(err, team.ErrUnreadable) {
			m.Logger.WarnContext(ctx, "whether the task is still held is not known", "task", held.ID, "err", err)
		}
	}
}
