package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// MayWork returns Conflict if no process may begin to work for the team, since it is being deleted or was saved.
func MayWork(t team.Team) error {
	switch {
	case t.Status == team.TeamDeleting:
		return beingDeleted(t.ID)
	case t.Status != team.TeamSaved:
		return nil
	}
	file, when := "a file", ""
	if s := t.Saved; s != nil {
		file, when = team.Clean(s.File, 200), " on "+s.At.Local().Format(time.DateTime)
	}
	return team.Errorf(team.Conflict, "team %s was saved to %s%s, to continue where that is loaded", t.ID, file, when).
		WithHint("if it is loaded nowhere, `teamctl run --anyway --team %s` lets it continue here; `teamctl teams rm %s` removes it", t.ID, t.ID)
}

// Save marks a team as saved, unless living finds a member at work: from then on no process works for it, until
// [Registry.Unsave]. It marks first and asks living then, as [Registry.Delete] does. It returns the marked record; a team
// that was saved before gets the new mark.
//
// Errors: that of living, and then the mark is taken back; Conflict if the team is being deleted.
func (r *Registry) Save(ctx context.Context, bt *broker.Storage, s team.Saved, living func(context.Context, *broker.Storage) error) (marked team.Team, undo func(context.Context) error, err error) {
	var before *team.Saved
	back := func(t *team.Team) bool {
		if t.Status != team.TeamSaved || t.Saved == nil || t.Saved.ID != s.ID { // a later save, or a person, has decided
			return false
		}
		if t.Saved = before; before == nil {
			t.Status = s.Status
		}
		return true
	}
	marked, err = r.mark(ctx, bt, func(t *team.Team) (bool, error) {
		if t.Status == team.TeamDeleting {
			return false, beingDeleted(t.ID)
		}
		before, s.Status = t.Saved, t.Status
		if before != nil {
			s.Status = before.Status
		}
		t.Saved, t.Status = &s, team.TeamSaved
		return true, nil
	}, living, back)
	return marked, func(ctx context.Context) error { return r.takeBack(ctx, bt, back) }, err
}

// Unsave removes the mark of [Registry.Save]: the team gets its earlier status back. A team without a mark stays as it
// is, and marked is false.
func (r *Registry) Unsave(ctx context.Context, bt *broker.Storage) (t team.Team, marked bool, err error) {
	t, err = r.change(ctx, bt, func(t *team.Team) (bool, error) {
		marked = t.Status == team.TeamSaved && t.Saved != nil
		if marked {
			t.Status, t.Saved = t.Saved.Status, nil
		}
		return marked, nil
	})
	if err != nil {
		return t, false, err
	}
	return t, marked, r.Publish(ctx, t)
}

func beingLoaded(id team.TeamID) *team.Error {
	return team.Errorf(team.Conflict, "team %s is being loaded", id).WithHint("if that was killed, load it again, or take it back: `teamctl teams rm %s`", id)
}

// The entry of a team that is being loaded is rewritten every renewEvery. After silentFor without a change its loader
// counts as dead: a server that waits for more of a stream gives up after five seconds.
const (
	renewEvery = 2 * time.Second
	silentFor  = 8 * time.Second
)

// Loading reserves the name of a team while its storage is made from a file. Until it is published no process works for
// the team.
type Loading struct {
	registry *Registry
	id       team.TeamID
	revision uint64
	Repeated bool // a loader that was killed has left a part of the storage
}

// Load takes the name of a new team. It replaces a killed loader, which takes some seconds. Errors: Conflict if the team
// exists, or is being loaded.
func (r *Registry) Load(ctx context.Context, id team.TeamID) (*Loading, error) {
	l := &Loading{registry: r, id: id}
	e, err := r.bucket.Get(ctx, subject.KeyRegistered(id))
	switch {
	case errors.Is(err, team.NotFound):
	case err != nil:
		return nil, err
	default:
		if s, derr := decodeSmall(e); derr != nil || s.Status != team.TeamLoading {
			return nil, team.Errorf(team.Conflict, "there is a team %q already", id).WithHint("`teamctl teams rm %s` removes it; or load into another cluster", id)
		}
		if l.revision, err = r.abandoned(ctx, e); err != nil {
			return nil, err
		}
		l.Repeated = true
	}
	if err := l.renew(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// abandoned waits silentFor and returns the revision of e, the entry of a dead loader: a write over exactly that takes
// the name. Errors: Conflict if it is renewed; Unavailable.
func (r *Registry) abandoned(ctx context.Context, e broker.Entry) (uint64, error) {
	_, name := subject.ParseKey(e.Key)
	if !shutdown.Sleep(ctx, silentFor) {
		return 0, team.Errorf(team.Unavailable, "it is not known yet whether team %s is being loaded: %w", name, context.Cause(ctx))
	}
	now, err := r.bucket.Get(ctx, e.Key)
	if err == nil && now.Revision != e.Revision {
		err = beingLoaded(team.TeamID(name))
	}
	return e.Revision, err
}

// unload removes the streams that a killed loader has left. It takes the name first, so a loader that was only frozen
// makes no more of them. Errors: Conflict if the loading continues; Unavailable, and then it can be repeated.
func (r *Registry) unload(ctx context.Context, id team.TeamID) error {
	e, err := r.bucket.Get(ctx, subject.KeyRegistered(id))
	if err != nil {
		return err
	}
	l := &Loading{registry: r, id: id}
	if l.revision, err = r.abandoned(ctx, e); err != nil {
		return err
	}
	var streams []string
	for _, s := range broker.Streams(id) {
		streams = append(streams, s.Name)
	}
	return l.Forget(ctx, streams)
}

// renew writes the entry again. Error: Conflict if another process has written it.
func (l *Loading) renew(ctx context.Context) error {
	return l.put(ctx, team.Small{V: team.Protocol, ID: l.id, Status: team.TeamLoading, Op: ulid.Make().String()})
}

func (l *Loading) put(ctx context.Context, s team.Small) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	revision, err := l.registry.bucket.Put(ctx, subject.KeyRegistered(l.id), data, l.revision)
	if errors.Is(err, team.Conflict) {
		return team.Errorf(team.Conflict, "another process loads or removes team %s", l.id)
	}
	if err == nil {
		l.revision = revision
	}
	return err
}

// Hold runs f and keeps the entry renewed meanwhile; f's context ends when another process has taken the name. If f
// returns nil, its record is published: the team can be opened from then on, and is led if it is active. After an error
// the entry stays, see [Loading.Forget].
//
// Errors: f's; Conflict if another process has taken the name.
func (l *Loading) Hold(ctx context.Context, f func(context.Context) (team.Team, error)) error {
	var t team.Team
	made := errors.New("it was not made")
	err := shutdown.Together(ctx, func(ctx context.Context) error {
		t, made = f(ctx)
		return made
	}, l.keep)
	if err = cmp.Or(err, made); err != nil {
		return err
	}
	return l.put(ctx, team.Small{V: team.Protocol, ID: t.ID, Status: t.Status, Of: t.Revision, Op: ulid.Make().String(), Workspace: t.Workspace, Goal: t.GoalNumber})
}

// keep renews the entry until ctx ends. It waits for a write under way then: the next write needs its revision.
func (l *Loading) keep(ctx context.Context) error {
	writes, stop := shutdown.Outlive(ctx, takeBackWithin)
	defer stop()
	for {
		if !shutdown.Sleep(ctx, renewEvery) {
			return nil
		}
		if err := l.renew(writes); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// Settle writes the origin of the team, whose storage is complete, into its record, and removes the mark of the save.
// Errors: Unavailable; InvalidState for a record that cannot be read.
func (l *Loading) Settle(ctx context.Context, from team.Loaded) (team.Team, error) {
	bt, err := l.registry.conn.Open(ctx, l.id)
	if err != nil {
		return team.Team{}, err
	}
	return l.registry.change(ctx, bt, func(t *team.Team) (bool, error) {
		if t.Saved != nil {
			t.Status, t.Saved = t.Saved.Status, nil
		}
		from.At = time.Now().UTC()
		t.Loaded = &from
		return true, nil
	})
}

// Forget ends a failed loading, and removes the streams that it has made, also after ctx has ended. Errors: Conflict if
// another process has taken the name, and then nothing is removed; Unavailable.
func (l *Loading) Forget(ctx context.Context, streams []string) error {
	ctx, cancel := shutdown.Outlive(ctx, takeBackWithin)
	defer cancel()
	if err := l.renew(ctx); err != nil {
		return err
	}
	err := shutdown.Together(ctx, func(ctx context.Context) error {
		for _, name := range streams {
			if err := l.registry.conn.RemoveStream(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}, l.keep)
	if err != nil {
		return err
	}
	return l.registry.bucket.Delete(ctx, subject.KeyRegistered(l.id), l.revision)
}
