// Package registry is the list of all teams: it makes a team, opens an existing one, starts its next goal and ends it.
//
// A team's record is in its own bucket. A small copy {id, status} is in the bucket of all teams, where leader processes
// find teams to lead (package election) and where teamctl finds their names. The record is written first; a reader that
// finds the copy behind corrects it.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Registry is the list of all teams of a NATS server. Safe for concurrent use.
type Registry struct {
	conn   *broker.Conn
	bucket *broker.Bucket
}

// Open opens the registry, and creates it on a server without one.
func Open(ctx context.Context, c *broker.Conn) (*Registry, error) {
	b, err := c.Registry(ctx)
	if err != nil {
		return nil, err
	}
	return &Registry{c, b}, nil
}

// Bucket returns the bucket of the small records and the leaders' leases.
func (r *Registry) Bucket() *broker.Bucket { return r.bucket }

// Probe returns nil if the server stores a small write to a key of its own. Errors: Unavailable, [broker.ErrNoRoom] if
// that is why.
func (r *Registry) Probe(ctx context.Context) error {
	if err := r.conn.Stores(ctx); err != nil {
		return err
	}
	return r.bucket.Set(ctx, subject.KeyProbe, []byte("{}"))
}

// Make makes the team and its storage, or opens an existing team, whose record stays as it is, except that missing roles
// are added. A lease of 0 is [team.DefaultLease].
func (r *Registry) Make(ctx context.Context, t team.Team) (*broker.Storage, team.Team, error) {
	bt, have, _, err := r.make(ctx, t)
	return bt, have, err
}

// Add is Make for a team that must not exist yet. Errors: Conflict if it does.
func (r *Registry) Add(ctx context.Context, t team.Team) (*broker.Storage, team.Team, error) {
	if _, err := r.Small(ctx, t.ID); !errors.Is(err, team.NotFound) { // so that it is not touched
		return nil, team.Team{}, cmp.Or(err, error(alreadyThere(t.ID)))
	}
	bt, have, made, err := r.make(ctx, t)
	if err == nil && !made {
		err = alreadyThere(t.ID)
	}
	return bt, have, err
}

func alreadyThere(id team.TeamID) *team.Error {
	return team.Errorf(team.Conflict, "there is a team %q already", id).WithHint("`teamctl teams set %s` changes it", id)
}

// make makes or opens a team; made is true if it made the record.
func (r *Registry) make(ctx context.Context, t team.Team) (_ *broker.Storage, _ team.Team, made bool, _ error) {
	t.LeaseSeconds = cmp.Or(t.LeaseSeconds, int(team.DefaultLease/time.Second))
	if err := t.Validate(); err != nil {
		return nil, team.Team{}, false, err
	}
	if err := check(t); err != nil {
		return nil, team.Team{}, false, team.Errorf(team.InvalidArgument, "%w", err)
	}
	// A registered team is only opened: lost storage must not be made again.
	if _, err := r.bucket.Get(ctx, subject.KeyRegistered(t.ID)); err == nil {
		bt, _, err := r.Open(ctx, t.ID)
		if err != nil {
			return nil, team.Team{}, false, err
		}
		have, err := r.addRoles(ctx, bt, t.Roles)
		return bt, have, false, err
	} else if !errors.Is(err, team.NotFound) {
		return nil, team.Team{}, false, err
	}
	bt, err := r.conn.Make(ctx, t.ID)
	if err != nil {
		return nil, team.Team{}, false, err
	}
	now := time.Now().UTC()
	t.V, t.Status, t.CreatedAt, t.UpdatedAt = team.Protocol, team.Active, now, now
	data, err := json.Marshal(t)
	if err != nil {
		return nil, team.Team{}, false, err
	}
	_, err = bt.Bucket.Put(ctx, subject.KeyTeam, data, 0)
	if made = err == nil; !made && !errors.Is(err, team.Conflict) {
		return nil, team.Team{}, false, err
	}
	have, err := Record(ctx, bt)
	if err != nil {
		return nil, team.Team{}, false, err
	}
	return bt, have, made, r.publish(ctx, have, true)
}

// Open opens an existing team. Errors: NotFound; Conflict if it is being deleted or loaded; InvalidState if part of its
// storage is gone.
func (r *Registry) Open(ctx context.Context, id team.TeamID) (*broker.Storage, team.Team, error) {
	bt, err := r.Storage(ctx, id)
	if err != nil {
		return nil, team.Team{}, err
	}
	t, err := Record(ctx, bt)
	return bt, t, err
}

// Storage is Open for callers that do not need the team's record. Errors: those of Open, except for an unreadable
// record.
func (r *Registry) Storage(ctx context.Context, id team.TeamID) (*broker.Storage, error) {
	small, err := r.Small(ctx, id)
	switch {
	case errors.Is(err, team.ErrUnreadable): // the team's own record has more
	case err != nil:
		return nil, err
	case small.Status == team.TeamDeleting:
		return nil, beingDeleted(id)
	case small.Status == team.TeamLoading:
		return nil, beingLoaded(id)
	}
	return r.conn.Open(ctx, id)
}

// mostNamed bounds the teams that a hint names.
const mostNamed = 10

// noTeam returns the error for an unknown team; its hint names the existing ones.
func (r *Registry) noTeam(ctx context.Context, id team.TeamID) error {
	err := team.Errorf(team.NotFound, "there is no team %q", id)
	all, lerr := r.List(ctx)
	if lerr != nil || len(all) == 0 {
		return err.WithHint("`teamctl run --team %s GOAL` or `teamctl tasks add --team %s --title TITLE` makes it", id, id)
	}
	var names []string
	for _, s := range all {
		names = append(names, string(s.ID))
	}
	return err.WithHint("name one with --team: %s; `teamctl run --team %s GOAL` makes %s", team.Some(names, mostNamed), id, id)
}

// Record reads the team's record.
func Record(ctx context.Context, bt *broker.Storage) (team.Team, error) {
	e, err := bt.Bucket.Get(ctx, subject.KeyTeam)
	if err != nil {
		return team.Team{}, err
	}
	return Decode(e)
}

// Shown is Record for callers that only show it: if the record is unreadable, it returns the newest readable copy, and
// the reason in damaged.
func Shown(ctx context.Context, bt *broker.Storage) (t team.Team, damaged, err error) {
	t, err = Record(ctx, bt)
	if !errors.Is(err, team.ErrUnreadable) {
		return t, nil, err
	}
	damaged = err
	e, _, err := bt.Bucket.Readable(ctx, subject.KeyTeam, func(e broker.Entry) error { _, err := Decode(e); return err })
	switch {
	case errors.Is(err, team.NotFound):
		return team.Team{ID: bt.ID}, damaged, nil
	case err != nil:
		return t, damaged, err
	}
	t, err = Decode(e)
	return t, damaged, err
}

// Decode reads a team's record from its entry.
func Decode(e broker.Entry) (team.Team, error) {
	var t team.Team
	var err error
	if t.Kept, err = e.Decode(&t, &t.V); err != nil {
		return t, err
	}
	if err := check(t); err != nil {
		return t, team.Errorf(team.InvalidState, "record %s %w: %w", e.Key, team.ErrUnreadable, err).WithHint(team.RepairHint)
	}
	t.Revision = e.Revision
	return t, nil
}

// check refuses values that no process could work with, such as a zero divisor.
func check(t team.Team) error {
	if t.LeaseSeconds <= 0 {
		return fmt.Errorf("the record of team %s has lease_seconds %d; it must be at least 1", t.ID, t.LeaseSeconds)
	}
	return nil
}

// Small returns the small record of a team, which exists as long as any part of the team does. Errors: NotFound;
// InvalidState if it cannot be read.
func (r *Registry) Small(ctx context.Context, id team.TeamID) (team.Small, error) {
	e, err := r.bucket.Get(ctx, subject.KeyRegistered(id))
	if errors.Is(err, team.NotFound) {
		return team.Small{}, r.noTeam(ctx, id)
	}
	if err != nil {
		return team.Small{}, err
	}
	return decodeSmall(e)
}

func decodeSmall(e broker.Entry) (team.Small, error) {
	_, name := subject.ParseKey(e.Key)
	s, err := team.DecodeSmall(e.Value, team.TeamID(name))
	if err != nil {
		return s, team.Errorf(team.InvalidState, "entry %s of the list of all teams %w: %w", e.Key, team.ErrUnreadable, err).
			WithHint("whoever leads the team next puts it right")
	}
	return s, nil
}

func beingDeleted(id team.TeamID) error {
	return team.Errorf(team.Conflict, "team %s is being deleted", id).WithHint("`teamctl teams rm %s` ends that if its deleter was killed", id)
}

// List returns the small record of every team, in order of name; only the name for an unreadable entry.
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
		s, _ := decodeSmall(e)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b team.Small) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// NewGoal describes a goal to set.
type NewGoal struct {
	Text        string
	Workspace   string       // where the members work from now on; "" = as before
	WithChanges bool         // the goal begins with the uncommitted changes of the workspace
	Budgets     team.Budgets // over those of the team; see [team.Budgets.Over]
}

// StartGoal makes g the team's present goal and the team active. A team at work keeps its goal: then started is false,
// and the text is mail to its leader, which the caller must have sent before. The record is written in either case, so
// that a concurrent end of the goal that was prepared without that mail fails ([EndAt]).
func (r *Registry) StartGoal(ctx context.Context, bt *broker.Storage, g NewGoal) (t team.Team, started bool, err error) {
	state, err := bt.Bucket.State(ctx)
	if err != nil {
		return t, false, err
	}
	t, err = r.update(ctx, bt, func(t *team.Team) bool {
		started = !t.AtWork()
		if !started {
			return true
		}
		t.PastGoals = t.Ended()
		if t.Status != team.Active && t.Branch != nil { // a decision for a goal that did not come is made again
			t.Branch.Goal = min(t.Branch.Goal, t.GoalNumber)
		}
		t.Status, t.Goal, t.GoalNumber, t.Summary, t.Reason, t.GivenUp, t.FinishedAt = team.Active, g.Text, t.GoalNumber+1, "", "", nil, nil
		t.End = ""
		t.GoalSeq, t.GoalAt = state.Last, new(state.Now.UTC())
		if t.WithChanges = 0; g.WithChanges {
			t.WithChanges = t.GoalNumber
		}
		t.Budgets = g.Budgets.Over(t.Budgets)
		if g.Workspace != "" {
			t.Workspace = g.Workspace
		}
		return true
	})
	if err != nil {
		return t, false, err
	}
	return t, started, r.Publish(ctx, t)
}

// Activate makes an ended team active again without a goal, so that it has a leader and people can work with it.
func (r *Registry) Activate(ctx context.Context, bt *broker.Storage) (team.Team, error) {
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		if t.Status != team.Active {
			t.PastGoals = t.Ended()
			t.Status, t.Goal, t.Summary, t.Reason, t.GivenUp, t.FinishedAt = team.Active, "", "", "", nil, nil
			t.End = ""
		}
		return true // written also if it is active: an end that was prepared meanwhile is refused
	})
	if err != nil {
		return t, err
	}
	return t, r.Publish(ctx, t)
}

// Revert undoes an Activate that turned before into after, unless the record has changed since.
func (r *Registry) Revert(ctx context.Context, bt *broker.Storage, before, after team.Team) error {
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		if t.Revision != after.Revision {
			return false
		}
		t.Status, t.Goal, t.Summary, t.FinishedAt = before.Status, before.Goal, before.Summary, before.FinishedAt
		t.Reason, t.GivenUp, t.End = before.Reason, before.GivenUp, before.End
		t.PastGoals = before.PastGoals
		return true
	})
	if err != nil {
		return err
	}
	return r.Publish(ctx, t)
}

// End ends the team's goal as e states, whatever revision the record has. For a team that has ended it changes nothing
// and returns the record.
func (r *Registry) End(ctx context.Context, bt *broker.Storage, e team.Ending) (team.Team, error) {
	return r.end(ctx, bt, func(team.Team) bool { return true }, e)
}

// EndAt is End on the condition that the record is still at this revision, so that the reasons for the end still hold.
// Errors: Conflict.
func (r *Registry) EndAt(ctx context.Context, bt *broker.Storage, revision uint64, e team.Ending) (team.Team, error) {
	same := true
	t, err := r.end(ctx, bt, func(t team.Team) bool { same = t.Revision == revision; return same }, e)
	if err == nil && t.Status == team.Active && !same {
		err = team.Errorf(team.Conflict, "the record of team %s was changed by somebody else", t.ID)
	}
	return t, err
}

func (r *Registry) end(ctx context.Context, bt *broker.Storage, may func(team.Team) bool, e team.Ending) (team.Team, error) {
	state, err := bt.Bucket.State(ctx)
	if err != nil {
		return team.Team{}, err
	}
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		if t.Status != team.Active || !may(*t) {
			return false
		}
		t.Status, t.Summary, t.Reason, t.GivenUp, t.End = e.Status, e.Summary, e.Reason, e.GivenUp, e.InWords()
		t.EndSeq, t.FinishedAt = state.Last, new(state.Now.UTC()) // by the server's clock, as the entries up to there
		return true
	})
	if err != nil {
		return t, err
	}
	return t, r.Publish(ctx, t)
}

// Touch rewrites the record of an active team for a new leader, so that an end that a predecessor has prepared fails
// ([EndAt]). A team that is not active stays as it is.
func (r *Registry) Touch(ctx context.Context, bt *broker.Storage) (team.Team, error) {
	return r.update(ctx, bt, func(t *team.Team) bool { return t.Status == team.Active })
}

func (r *Registry) addRoles(ctx context.Context, bt *broker.Storage, roles map[string]team.Role) (team.Team, error) {
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

// Edit changes the part of the team's record that a person may choose, in any state of the team; its leader and members
// follow immediately. Errors: InvalidArgument; Conflict if the team is being deleted.
func (r *Registry) Edit(ctx context.Context, bt *broker.Storage, f func(*team.Team)) (team.Team, error) {
	var invalid error
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		f(t)
		invalid = t.Validate()
		return invalid == nil
	})
	return t, cmp.Or(err, invalid)
}

// Move makes dir the team's folder for processes that begin to work for it from now on.
func (r *Registry) Move(ctx context.Context, bt *broker.Storage, dir string) (team.Team, error) {
	t, err := r.update(ctx, bt, func(t *team.Team) bool {
		changed := t.Workspace != dir
		t.Workspace = dir
		return changed
	})
	if err != nil {
		return t, err
	}
	return t, r.Publish(ctx, t)
}

// update changes the record by compare-and-set, and repeats until f's change is stored on top of the record that f saw.
// f returns whether it changed anything. Errors: Conflict if the team is being deleted, or was saved.
func (r *Registry) update(ctx context.Context, bt *broker.Storage, f func(*team.Team) bool) (team.Team, error) {
	return r.change(ctx, bt, func(t *team.Team) (bool, error) {
		if err := MayWork(*t); err != nil {
			return false, err
		}
		return f(t), nil
	})
}

func (r *Registry) change(ctx context.Context, bt *broker.Storage, f func(*team.Team) (bool, error)) (team.Team, error) {
	return broker.Update(ctx, func(ctx context.Context) (team.Team, error) { return Record(ctx, bt) }, f,
		func(ctx context.Context, t team.Team) (_ team.Team, err error) {
			t.UpdatedAt = time.Now().UTC()
			t.Revision, err = broker.Save(ctx, bt.Bucket, subject.KeyTeam, t, t.Kept, t.Revision)
			return t, err
		})
}

// Publish updates the team's entry in the registry from its record. A leader that takes a team calls it too, since the
// writer may have died between the two writes. A team without an entry has been deleted meanwhile, and gets none.
func (r *Registry) Publish(ctx context.Context, t team.Team) error { return r.publish(ctx, t, false) }

// publish is Publish; with made it creates a missing entry.
func (r *Registry) publish(ctx context.Context, t team.Team, made bool) error {
	key := subject.KeyRegistered(t.ID)
	for {
		var rev uint64
		e, err := r.bucket.Get(ctx, key)
		switch {
		case err == nil:
			// A late publisher must not put an older record over a newer one.
			if have, err := decodeSmall(e); err == nil && have.Of >= t.Revision {
				return nil
			}
			rev = e.Revision
		case !errors.Is(err, team.NotFound):
			return err
		case !made:
			return nil
		}
		data, err := json.Marshal(team.Small{V: team.Protocol, ID: t.ID, Status: t.Status, Of: t.Revision, Op: ulid.Make().String(), Workspace: t.Workspace, Goal: t.GoalNumber})
		if err != nil {
			return err
		}
		if _, err = r.bucket.Put(ctx, key, data, rev); !errors.Is(err, team.Conflict) {
			return err
		}
	}
}
