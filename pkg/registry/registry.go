// Package registry knows which teams there are: it makes a team, opens one that
// was made, starts its next goal and ends it.
//
// A team's record stands in its own bucket. A small copy {id, status} stands in
// the bucket of all teams, where leader processes look for teams to lead (package
// election) and where teamctl finds their names. The record is written first;
// whoever finds the copy behind corrects it.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/wire"
)

// Registry is the list of all teams of a NATS server. Safe for concurrent use.
type Registry struct {
	conn   *broker.Conn
	bucket *broker.Bucket
}

// Open opens the registry, and makes it on a server that has none.
func Open(ctx context.Context, c *broker.Conn) (*Registry, error) {
	b, err := c.Registry(ctx)
	if err != nil {
		return nil, err
	}
	return &Registry{c, b}, nil
}

// Bucket is where the small records and the leaders' leases stand.
func (r *Registry) Bucket() *broker.Bucket { return r.bucket }

// Make makes the team and its storage, or opens it if it is there; the record of
// a team that is there stays as it is, except that roles which it lacks are added.
// A lease of 0 is [team.DefaultLease].
func (r *Registry) Make(ctx context.Context, t team.Team) (*broker.Team, team.Team, error) {
	t.LeaseSeconds = cmp.Or(t.LeaseSeconds, int(team.DefaultLease/time.Second))
	if err := check(t); err != nil {
		return nil, team.Team{}, team.Errorf(team.InvalidArgument, "%w", err)
	}
	// A registered team is only opened: what it lost must not be made anew.
	if _, err := r.bucket.Get(ctx, subject.KeyRegistered(t.ID)); err == nil {
		bt, _, err := r.Open(ctx, t.ID)
		if err != nil {
			return nil, team.Team{}, err
		}
		have, err := r.addRoles(ctx, bt, t.Roles)
		return bt, have, err
	} else if !errors.Is(err, team.NotFound) {
		return nil, team.Team{}, err
	}
	bt, err := r.conn.Make(ctx, t.ID)
	if err != nil {
		return nil, team.Team{}, err
	}
	now := time.Now().UTC()
	t.V, t.Status, t.CreatedAt, t.UpdatedAt = team.Protocol, team.Active, now, now
	data, err := json.Marshal(t)
	if err != nil {
		return nil, team.Team{}, err
	}
	if _, err := bt.Bucket.Put(ctx, subject.KeyTeam, data, 0); err != nil && !errors.Is(err, team.Conflict) {
		return nil, team.Team{}, err
	}
	have, err := Record(ctx, bt)
	if err != nil {
		return nil, team.Team{}, err
	}
	return bt, have, r.Publish(ctx, have)
}

// Open opens a team that was made before. Errors: NotFound; InvalidState if part
// of its storage is gone.
func (r *Registry) Open(ctx context.Context, id team.TeamID) (*broker.Team, team.Team, error) {
	if _, err := r.bucket.Get(ctx, subject.KeyRegistered(id)); errors.Is(err, team.NotFound) {
		return nil, team.Team{}, team.Errorf(team.NotFound, "there is no team %q", id).
			WithHint("`teamctl run --team %s GOAL` or `teamctl tasks add --team %s --title TITLE` makes it", id, id)
	} else if err != nil {
		return nil, team.Team{}, err
	}
	bt, err := r.conn.Open(ctx, id)
	if err != nil {
		return nil, team.Team{}, err
	}
	t, err := Record(ctx, bt)
	return bt, t, err
}

// Record reads the team's record.
func Record(ctx context.Context, bt *broker.Team) (team.Team, error) {
	e, err := bt.Bucket.Get(ctx, subject.KeyTeam)
	if err != nil {
		return team.Team{}, err
	}
	return Decode(e)
}

// Decode reads a team's record from its entry.
func Decode(e broker.Entry) (team.Team, error) {
	var t team.Team
	var err error
	if t.Kept, err = e.Decode(&t, &t.V); err != nil {
		return t, err
	}
	if err := check(t); err != nil {
		return t, team.Errorf(team.InvalidState, "%w", err)
	}
	t.Revision = e.Revision
	return t, nil
}

// check refuses what no process could work with: what it divides by, and counts on.
func check(t team.Team) error {
	if t.LeaseSeconds <= 0 {
		return fmt.Errorf("the record of team %s has lease_seconds %d; it must be at least 1", t.ID, t.LeaseSeconds)
	}
	return nil
}

// List returns the small record of every team, unordered.
func (r *Registry) List(ctx context.Context) ([]team.Small, error) {
	entries, err := r.bucket.Load(ctx, subject.AllOfRegistry)
	if err != nil {
		return nil, err
	}
	var all []team.Small
	for _, e := range entries {
		if kind, _ := subject.ParseKey(e.Key); kind != subject.Registered {
			continue
		}
		var s team.Small
		if err := json.Unmarshal(e.Value, &s); err != nil {
			return nil, team.Errorf(team.InvalidState, "registry entry %s cannot be read: %w", e.Key, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// StartGoal makes goal the team's present one and the team active. A team at
// work keeps its goal: then started is false, and the text is mail to its leader,
// who must have been sent it before. The record is written in either case, so that
// an end of the goal that was prepared without that mail comes to nothing ([EndAt]).
func (r *Registry) StartGoal(ctx context.Context, bt *broker.Team, goal, workspace string) (t team.Team, started bool, err error) {
	seq, err := bt.Bucket.LastSeq(ctx)
	if err != nil {
		return t, false, err
	}
	t, err = r.update(ctx, bt, func(t *team.Team) bool {
		started = t.Status != team.Active || t.Goal == ""
		if !started {
			return true
		}
		t.Status, t.Goal, t.GoalNumber, t.GoalSeq, t.Summary, t.FinishedAt = team.Active, goal, t.GoalNumber+1, seq, "", nil
		if workspace != "" {
			t.Workspace = workspace
		}
		return true
	})
	if err != nil {
		return t, false, err
	}
	return t, started, r.Publish(ctx, t)
}

// Activate makes a team that was ended active again without a goal, so that it
// is led and can be worked with by hand.
func (r *Registry) Activate(ctx context.Context, bt *broker.Team) (team.Team, error) {
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		if t.Status != team.Active {
			t.Status, t.Goal, t.Summary, t.FinishedAt = team.Active, "", "", nil
		}
		return true // written also if it is active: an end that was prepared meanwhile is refused
	})
	if err != nil {
		return t, err
	}
	return t, r.Publish(ctx, t)
}

// Revert undoes an Activate that turned before into after, unless the record was
// changed since.
func (r *Registry) Revert(ctx context.Context, bt *broker.Team, before, after team.Team) error {
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		if t.Revision != after.Revision {
			return false
		}
		t.Status, t.Goal, t.Summary, t.FinishedAt = before.Status, before.Goal, before.Summary, before.FinishedAt
		return true
	})
	if err != nil {
		return err
	}
	return r.Publish(ctx, t)
}

// End ends the team's goal with this status and summary, whatever it is. Ending a
// team that has ended changes nothing and returns its record.
func (r *Registry) End(ctx context.Context, bt *broker.Team, status team.Status, summary string) (team.Team, error) {
	return r.end(ctx, bt, func(team.Team) bool { return true }, status, summary)
}

// EndAt is End on the condition that nobody has written the record since it was at
// this revision: what the end was decided on still holds. Errors: Conflict.
func (r *Registry) EndAt(ctx context.Context, bt *broker.Team, revision uint64, status team.Status, summary string) (team.Team, error) {
	same := true
	t, err := r.end(ctx, bt, func(t team.Team) bool { same = t.Revision == revision; return same }, status, summary)
	if err == nil && t.Status == team.Active && !same {
		err = team.Errorf(team.Conflict, "the record of team %s was changed by somebody else", t.ID)
	}
	return t, err
}

func (r *Registry) end(ctx context.Context, bt *broker.Team, may func(team.Team) bool, status team.Status, summary string) (team.Team, error) {
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		if t.Status != team.Active || !may(*t) {
			return false
		}
		now := time.Now().UTC()
		t.Status, t.Summary, t.FinishedAt = status, summary, &now
		return true
	})
	if err != nil {
		return t, err
	}
	return t, r.Publish(ctx, t)
}

// Lead writes the record of an active team anew, on behalf of a process that begins
// to lead it: an end that a predecessor has prepared comes to nothing ([EndAt]). A
// team that is not active stays as it is.
func (r *Registry) Lead(ctx context.Context, bt *broker.Team) (team.Team, error) {
	return r.update(ctx, bt, func(t *team.Team) bool { return t.Status == team.Active })
}

func (r *Registry) addRoles(ctx context.Context, bt *broker.Team, roles map[string]team.Role) (team.Team, error) {
	return r.update(ctx, bt, func(t *team.Team) (changed bool) {
		for name, role := range roles {
			if _, ok := t.Roles[name]; !ok {
				if t.Roles == nil {
					t.Roles = map[string]team.Role{}
				}
				t.Roles[name], changed = role, true
			}
		}
		return changed
	})
}

// update changes the record by compare-and-set until f's change went in on top of
// what f saw. f returns whether it changed anything.
func (r *Registry) update(ctx context.Context, bt *broker.Team, f func(*team.Team) bool) (team.Team, error) {
	for {
		t, err := Record(ctx, bt)
		if err != nil || !f(&t) {
			return t, err
		}
		t.UpdatedAt = time.Now().UTC()
		data, err := wire.Encode(t, t.Kept)
		if err != nil {
			return t, err
		}
		rev, err := bt.Bucket.Put(ctx, subject.KeyTeam, data, t.Revision)
		if !errors.Is(err, team.Conflict) {
			t.Revision = rev
			return t, err
		}
	}
}

// Publish brings the team's entry in the registry up to its record. A leader that
// takes a team calls it too, since the writer may have died between the two writes.
func (r *Registry) Publish(ctx context.Context, t team.Team) error {
	key := subject.KeyRegistered(t.ID)
	for {
		var rev uint64
		e, err := r.bucket.Get(ctx, key)
		switch {
		case err == nil:
			var have team.Small
			// One who publishes late must not put an older record over a newer one.
			if json.Unmarshal(e.Value, &have) == nil && have.Of >= t.Revision {
				return nil
			}
			rev = e.Revision
		case !errors.Is(err, team.NotFound):
			return err
		}
		data, err := json.Marshal(team.Small{V: team.Protocol, ID: t.ID, Status: t.Status, Of: t.Revision, Op: ulid.Make().String()})
		if err != nil {
			return err
		}
		if _, err = r.bucket.Put(ctx, key, data, rev); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}
