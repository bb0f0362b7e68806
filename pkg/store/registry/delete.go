package registry

import (
	"context"
	"errors"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Delete deletes a team that has ended, with all its data in NATS. It marks the team first, and then asks living for
// remaining members; a spawn does the reverse (it writes the member and then reads the mark), so one of the two sees the
// other. A refusal by living takes the mark back. The next deleter completes the work of a killed one.
//
// Errors: NotFound; Conflict while the team is active or is loaded; that of living; InvalidState if part of the storage
// was already gone, and then only force deletes the rest.
func (r *Registry) Delete(ctx context.Context, id team.TeamID, force bool, living func(context.Context, *broker.Storage) error) error {
	small, err := r.Small(ctx, id)
	if err != nil {
		return err
	}
	if small.Status == team.TeamLoading { // there is no record to be marked
		return r.unload(ctx, id)
	}
	bt, err := r.conn.Open(ctx, id)
	switch {
	case err == nil:
		if err := r.retire(ctx, bt, living); err != nil && !(force && errors.Is(err, team.ErrUnreadable)) {
			return err
		}
	case errors.Is(err, team.InvalidState) && (force || small.Status == team.TeamDeleting):
	default:
		return err
	}
	if err := r.conn.Remove(ctx, id); err != nil {
		return err
	}
	// The entry goes last: while anything is left, the team is listed.
	for _, key := range []string{subject.KeyLead(id), subject.KeyRegistered(id)} {
		if err := r.forget(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// takeBackWithin bounds the time for taking back the mark after the caller's context has ended.
const takeBackWithin = 5 * time.Second

// retire marks the team as being deleted, unless living returns an error.
func (r *Registry) retire(ctx context.Context, bt *broker.Storage, living func(context.Context, *broker.Storage) error) error {
	var before team.Status
	_, err := r.mark(ctx, bt, func(t *team.Team) (bool, error) {
		before = t.Status
		if t.Status == team.Active {
			return false, team.Errorf(team.Conflict, "team %s is at work", t.ID).WithHint("`teamctl stop --team %s` ends that; --force does both", t.ID)
		}
		t.Status = team.TeamDeleting
		return before != team.TeamDeleting, nil
	}, living, func(t *team.Team) bool {
		if t.Status != team.TeamDeleting {
			return false
		}
		if t.Status = before; before == team.TeamDeleting { // its deleter was killed before it asked
			t.Status = team.TeamStopped
		}
		return true
	})
	return err
}

// mark changes the record by set so that no process begins to work for the team, and takes that back if living finds a
// member, which may have begun before. back must undo set and nothing else: it also runs on a record that may lack the
// mark.
func (r *Registry) mark(ctx context.Context, bt *broker.Storage, set func(*team.Team) (bool, error), living func(context.Context, *broker.Storage) error, back func(*team.Team) bool) (team.Team, error) {
	tried := false
	t, err := r.change(ctx, bt, func(t *team.Team) (bool, error) { tried = true; return set(t) })
	if tried && errors.Is(err, team.Unavailable) { // it may be there all the same
		return t, errors.Join(err, r.takeBack(ctx, bt, back))
	}
	if err != nil {
		return t, err
	}
	refusal := r.Publish(ctx, t)
	if refusal == nil {
		refusal = living(ctx, bt)
	}
	if refusal == nil {
		return t, nil
	}
	return t, errors.Join(refusal, r.takeBack(ctx, bt, back))
}

// takeBack takes a mark back, also after ctx has ended: a team that stays marked cannot be used.
func (r *Registry) takeBack(ctx context.Context, bt *broker.Storage, back func(*team.Team) bool) error {
	ctx, cancel := shutdown.Outlive(ctx, takeBackWithin)
	defer cancel()
	t, err := r.change(ctx, bt, func(t *team.Team) (bool, error) { return back(t), nil })
	if err == nil {
		err = r.Publish(ctx, t)
	}
	return err
}

// forget deletes a key, also against concurrent writers.
func (r *Registry) forget(ctx context.Context, key string) error {
	for {
		e, err := r.bucket.Get(ctx, key)
		if errors.Is(err, team.NotFound) {
			return nil
		}
		if err == nil {
			err = r.bucket.Delete(ctx, key, e.Revision)
		}
		if !errors.Is(err, team.Conflict) {
			return err
		}
	}
}
