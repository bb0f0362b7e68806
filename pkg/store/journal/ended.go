package journal

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// RemoveEnded removes the whole journals of subagents that got no record for the time after, and that ended reports to be
// over. outlives stores the data to keep of a journal before a sequence; on its error that journal stays, and the others
// are removed. Errors: those of outlives, joined; Unavailable.
func RemoveEnded(ctx context.Context, t *broker.Storage, after time.Duration, ended func(team.AgentID) bool, outlives func(ctx context.Context, a team.AgentID, before uint64) error) error {
	newest := map[team.AgentID]uint64{}
	err := t.Logs.Newest(ctx, func(m broker.Msg) error {
		if a := subject.Author(m.Subject); time.Since(m.Time) >= after && ended(a) {
			newest[a] = m.Seq
		}
		return nil
	}, subject.LogsBelow(t.ID, "*"))
	if err != nil {
		return err
	}
	var errs []error
	for a, seq := range newest {
		err := outlives(ctx, a, seq+1)
		if err == nil {
			err = t.Logs.Trim(ctx, subject.Log(t.ID, a), seq+1)
		}
		if ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
