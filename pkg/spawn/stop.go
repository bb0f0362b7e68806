package spawn

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/control"
	"agentteam/pkg/roster"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Post sends mail and closes inboxes; *mailbox.Mailbox is one.
type Post interface {
	Send(ctx context.Context, m team.Message) (team.Message, []team.AgentID, error)
	Close(ctx context.Context, a team.AgentID, incarnation uint64) error
}

// pollEvery is how often the record of a member that is to stop is looked at.
const pollEvery = 100 * time.Millisecond

// Stop asks a member to shut down, on behalf of from, and waits up to wait until
// it has left; then, or at once if wait is 0, it is stopped by force: its record
// is closed, its process told to end, and its inbox closed, since the process may be
// dead. Stopping a stopped member is no error.
//
// A process that cannot hear now (frozen, cut off) ends by itself as soon as it
// runs again and sees its record.
func (s *Spawner) Stop(ctx context.Context, post Post, from, a team.AgentID, wait time.Duration) error {
	m, err := s.o.Roster.Get(ctx, a)
	if err != nil {
		return err
	}
	if m.State == team.Stopped {
		return nil
	}
	if m.HasProcess() && wait > 0 {
		if _, _, err := post.Send(ctx, team.Message{Type: team.MsgShutdownRequest, From: from, To: a, RequestID: ulid.Make().String(),
			Content: string(from) + " asks you to shut down"}); err != nil {
			return err
		}
		left, err := s.left(ctx, m, wait)
		if left || err != nil {
			return err
		}
	}
	if err := s.o.Roster.Leave(ctx, a, m.Incarnation, ""); err != nil && !errors.Is(err, roster.ErrSuperseded) {
		return err
	}
	// Nobody listening is what was wanted; one that listens and does not answer
	// is frozen or cut off and finds its record closed later.
	err = control.Request(ctx, s.o.Team.Conn, s.o.Team.ID, a, subject.Stop, nil, nil, 2*time.Second)
	if err != nil && !errors.Is(err, team.Unavailable) {
		return err
	}
	return post.Close(ctx, a, m.Incarnation)
}

// left waits until the incarnation is gone from the roster.
func (s *Spawner) left(ctx context.Context, m team.Member, wait time.Duration) (bool, error) {
	limit := time.After(wait)
	for {
		err := s.o.Roster.Check(ctx, m.AgentID, m.Incarnation)
		if errors.Is(err, roster.ErrSuperseded) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		select {
		case <-limit:
			return false, nil
		case <-ctx.Done():
			return false, team.Errorf(team.Unavailable, "%s has not left yet: %w", m.AgentID, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}
