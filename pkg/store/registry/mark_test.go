package registry

import (
	"context"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A deletion that is interrupted before it has seen the record leaves it as it is, and one that takes
// a mark back takes back only its own.
func TestInterruptedDeletionChangesNothing(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	r, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	bt, _, err := r.Make(t.Context(), team.Team{ID: "a", LeaseSeconds: 30})
	if err != nil {
		t.Fatal(err)
	}
	none := func(context.Context, *broker.Storage) error { return nil }
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, status := range []team.Status{team.Active, team.TeamStopped, team.TeamDeleting} {
		if _, err := r.change(t.Context(), bt, func(t *team.Team) (bool, error) { t.Status = status; return true, nil }); err != nil {
			t.Fatal(err)
		}
		if err := r.retire(interrupted, bt, none); team.CodeOf(err) != team.Unavailable {
			t.Errorf("%s: %v, want unavailable", status, err)
		}
		if have, err := Record(t.Context(), bt); err != nil || have.Status != status {
			t.Errorf("%s: after that it is %q, %v", status, have.Status, err)
		}
	}

	// The record is marked, and written by another process before the mark is taken back.
	if _, err := r.change(t.Context(), bt, func(t *team.Team) (bool, error) { t.Status = team.TeamStopped; return true, nil }); err != nil {
		t.Fatal(err)
	}
	err = r.retire(t.Context(), bt, func(ctx context.Context, bt *broker.Storage) error {
		_, err := r.change(ctx, bt, func(t *team.Team) (bool, error) { t.Status = team.Active; return true, nil })
		if err != nil {
			return err
		}
		return team.Errorf(team.Conflict, "coder-1 is there")
	})
	if have, rerr := Record(t.Context(), bt); team.CodeOf(err) != team.Conflict || rerr != nil || have.Status != team.Active {
		t.Errorf("%v; it is %q, %v, want active", err, have.Status, rerr)
	}
}

// Of many that replace a loader that was killed, or remove what it has left, one has the name.
func TestOneReplacesAKilledLoader(t *testing.T) {
	c := brokertest.Connect(t, brokertest.Server(t))
	r, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load(t.Context(), "a"); err != nil { // it is never renewed
		t.Fatal(err)
	}
	const many = 8
	errs := make(chan error, many)
	for i := range many {
		go func() {
			if i%4 == 0 {
				errs <- r.Delete(t.Context(), "a", false, nil)
				return
			}
			_, err := r.Load(t.Context(), "a")
			errs <- err
		}()
	}
	won := 0
	for range many {
		switch err := brokertest.Receive(t, "all have tried", errs); team.CodeOf(err) {
		case "":
			won++
		case team.Conflict, team.NotFound: // one that has removed it may be done
		default:
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d have it", won, many)
	}
}
