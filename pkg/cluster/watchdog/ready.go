package watchdog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/team"
)

// maxReadies is how often members of a role are requested in a row, while none comes: each failed
// spawn leaves the record of a stopped member.
const maxReadies = 3

// readied is how often members of a role were requested without one that came, and when last.
type readied struct {
	times int
	at    time.Time
	left  uint64 // revision of the newest record of a member of the role that came and left
}

// keepReady requests the missing members of roles of which some are kept ready.
func (w *Watchdog) keepReady(ctx context.Context, look index.Snapshot, now time.Time) error {
	if !look.Team.AtWork() {
		clear(w.readied)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(look.Team.Roles)) {
		missing := look.Team.Missing(look.Team.Roles[name], look.Members)
		coming := slices.ContainsFunc(look.Members, func(m team.Member) bool { return m.Role == name && m.State == team.Created })
		r := w.readied[name]
		if left := lastLeft(look.Members, name); left > r.left { // perhaps between two checks
			r = readied{left: left}
		}
		switch {
		case missing <= 0 && coming: // the spawn may fail
			continue
		case missing <= 0:
			delete(w.readied, name)
			continue
		case r.times >= maxReadies, r.times > 0 && now.Sub(r.at) < spawnWithin:
			continue
		}
		w.readied[name] = readied{r.times + 1, now, r.left}
		w.o.Logger.InfoContext(ctx, "members are kept ready", "role", name, "missing", missing)
		if err := w.o.Actions.Ready(ctx, look.Team, name, missing); err != nil {
			return err
		}
	}
	return nil
}

// lastLeft returns the newest revision of a member of a role that has left in good order; 0 if none has. A member whose
// spawn failed, or that stopped because of an error, was not there.
func lastLeft(members []team.Member, role string) (revision uint64) {
	for _, m := range members {
		if m.Role == role && m.State == team.Stopped && !m.TakenBack && m.LastError == "" {
			revision = max(revision, m.Revision)
		}
	}
	return revision
}

// NotReadyText returns the notice to the leader about a member of a role that could not be kept
// ready.
func NotReadyText(role string, err error) string {
	return fmt.Sprintf("No %s could be spawned to be kept ready: %s. Go on with the members that are there.", role, team.Line(err))
}
