package watchdog

import (
	"context"
	"fmt"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
)

// reserveFor is how long a task stays reserved for a member that lost it without its fault
// ([team.Freed].Keep). Only time in which a leader acts counts.
const reserveFor = 5 * time.Minute

// lapsed returns the tasks that were reserved for [reserveFor] for a member that lost them without
// its fault. The time counts from when this watchdog saw the reservation first, so none passes
// while no leader acts.
func (w *Watchdog) lapsed(look index.Snapshot, now time.Time) map[team.TaskID]bool {
	seen, over := map[team.TaskID]noted{}, map[team.TaskID]bool{}
	for _, r := range look.Reserved {
		if !r.Lapses {
			continue
		}
		s := w.reserved[r.ID]
		if s.epoch != r.Epoch || s.since.IsZero() {
			s = noted{r.Epoch, now}
		}
		seen[r.ID], over[r.ID] = s, now.Sub(s.since) >= reserveFor
	}
	w.reserved = seen
	return over
}

// unreserve ends the reservations of tasks for members that will not come, and notifies the leader
// once for each member. The notice is sent first, under an id that stays the same until the last of
// them is written: if this process dies in between, the next sends the same, which the server
// drops.
func (w *Watchdog) unreserve(ctx context.Context, look index.Snapshot, now time.Time) error {
	for _, f := range (snapshot{Snapshot: look, Lapsed: w.lapsed(look, now)}).UnreachableReservations() {
		last := f.Tasks[len(f.Tasks)-1]
		if err := w.o.Actions.Notify(ctx, fmt.Sprintf("reserved-%s-%d", f.Member, last.Revision), f.Text()); err != nil {
			return err
		}
		for _, t := range f.Tasks {
			if err := w.o.Actions.Unreserve(ctx, t); err != nil {
				return err
			}
		}
		w.o.Logger.InfoContext(ctx, "reservations ended", "agent", f.Member, "tasks", len(f.Tasks), "why", f.Why)
	}
	return nil
}
