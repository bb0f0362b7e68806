package registry_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func nobody(context.Context, *broker.Storage) error { return nil }

// kept is all that NATS holds of team a.
func kept(t *testing.T, r *registry.Registry, c *broker.Conn) (all []string) {
	t.Helper()
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		if name != "KV_"+subject.Registry {
			all = append(all, name)
		}
	}
	entries, err := r.Bucket().Load(t.Context(), ">")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Key)
	}
	slices.Sort(all)
	return all
}

// ended makes team a and ends it.
func ended(t *testing.T, r *registry.Registry) *broker.Storage {
	t.Helper()
	bt, _ := newTeam(t, r, "a")
	if _, err := r.End(t.Context(), bt, team.Ending{Status: team.TeamStopped, Summary: ""}); err != nil {
		t.Fatal(err)
	}
	return bt
}

func TestDelete(t *testing.T) {
	r, c := open(t)
	bt := ended(t, r)
	if _, err := r.Bucket().Put(t.Context(), subject.KeyLead("a"), []byte("{}"), 0); err != nil {
		t.Fatal(err)
	}
	before, err := registry.Record(t.Context(), bt)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Delete(t.Context(), "a", false, func(ctx context.Context, bt *broker.Storage) error {
		if _, _, err := r.Open(ctx, "a"); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "being deleted") {
			t.Errorf("meanwhile it is opened: %v, want conflict", err)
		}
		if _, _, err := r.StartGoal(ctx, bt, registry.NewGoal{Text: "a goal"}); team.CodeOf(err) != team.Conflict {
			t.Errorf("meanwhile it is set a goal: %v, want conflict", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := kept(t, r, c); len(left) > 0 {
		t.Errorf("left of it: %v", left)
	}
	if err := r.Publish(t.Context(), before); err != nil || listed(t, r) != "" {
		t.Errorf("one who had read its record publishes it: %v, listed as %q", err, listed(t, r))
	}
	if err := r.Delete(t.Context(), "a", true, nobody); team.CodeOf(err) != team.NotFound {
		t.Errorf("deleted again: %v, want not_found", err)
	}
	if _, have := newTeam(t, r, "a"); have.Status != team.Active || have.GoalNumber != 0 {
		t.Errorf("made anew it is %+v", have)
	}
	if _, err := registry.Record(t.Context(), bt); err != nil {
		t.Errorf("the new team's record: %v", err)
	}
}

func TestDeleteRefused(t *testing.T) {
	r, _ := open(t)
	bt, _ := newTeam(t, r, "a")
	if err := r.Delete(t.Context(), "a", true, nobody); team.CodeOf(err) != team.Conflict {
		t.Errorf("while it is active: %v, want conflict", err)
	}
	if _, err := r.End(t.Context(), bt, team.Ending{Status: team.TeamFinished, Summary: ""}); err != nil {
		t.Fatal(err)
	}
	there := team.Errorf(team.Conflict, "coder-1 is there")
	if err := r.Delete(t.Context(), "a", true, func(context.Context, *broker.Storage) error { return there }); team.CodeOf(err) != team.Conflict {
		t.Errorf("with a member: %v, want conflict", err)
	}
	if _, have, err := r.Open(t.Context(), "a"); err != nil || have.Status != team.TeamFinished {
		t.Errorf("after that it is %q, %v", have.Status, err)
	}
	if got := listed(t, r); got != "a finished" {
		t.Errorf("listed as %q", got)
	}
}

// The mark is taken back also from a deletion whose time was up while it looked for members:
// the team can be used again.
func TestDeleteOutOfTime(t *testing.T) {
	r, _ := open(t)
	ended(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Delete(ctx, "a", false, func(ctx context.Context, _ *broker.Storage) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("deleted: %v", err)
	}
	if _, have, err := r.Open(t.Context(), "a"); err != nil || have.Status != team.TeamStopped {
		t.Errorf("after that it is %q, %v", have.Status, err)
	}
}

// A deleter that was killed has left a part: the next one deletes the rest. What was lost
// otherwise is deleted by force only.
func TestDeleteGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		marked bool
		gone   string // the stream
		force  bool
		want   team.Code
	}{
		"marked":                 {marked: true},
		"a stream is gone":       {marked: true, gone: "AT_a_MSG"},
		"the record is gone":     {marked: true, gone: "KV_at-a"},
		"a stream is lost":       {gone: "AT_a_LOG", want: team.InvalidState},
		"a stream is lost, rest": {gone: "AT_a_LOG", force: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c := open(t)
			ended(t, r)
			js, err := jetstream.New(c.NATS())
			if err != nil {
				t.Fatal(err)
			}
			if tt.marked {
				ctx, kill := context.WithCancel(t.Context())
				err := r.Delete(ctx, "a", false, func(context.Context, *broker.Storage) error { kill(); return nil })
				if team.CodeOf(err) == "" {
					t.Fatalf("a killed deleter: %v", err)
				}
			}
			if tt.gone != "" {
				if err := js.DeleteStream(t.Context(), tt.gone); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Delete(t.Context(), "a", tt.force, nobody); team.CodeOf(err) != tt.want {
				t.Fatalf("Delete = %v, want %q", err, tt.want)
			}
			if left := kept(t, r, c); tt.want == "" && len(left) > 0 {
				t.Errorf("left of it: %v", left)
			}
		})
	}
}

func TestEdit(t *testing.T) {
	r, _ := open(t)
	bt, _ := newTeam(t, r, "a")
	if _, err := r.Edit(t.Context(), bt, func(t *team.Team) { t.MaxTeammates = -1 }); team.CodeOf(err) != team.InvalidArgument {
		t.Errorf("max_teammates -1: %v, want invalid_argument", err)
	}
	have, err := r.Edit(t.Context(), bt, func(t *team.Team) { t.MaxTeammates, t.Policies.Create = 3, team.CreateLeader })
	if stored, rerr := registry.Record(t.Context(), bt); err != nil || rerr != nil || stored.MaxTeammates != 3 || stored.Policies.Create != team.CreateLeader || stored.Revision != have.Revision {
		t.Errorf("Edit = %+v, %v; stored is %+v, %v", have, err, stored, rerr)
	}
}

func TestAdd(t *testing.T) {
	_, c := open(t)
	made := make(chan error)
	for range 4 {
		go func() {
			other, err := registry.Open(t.Context(), brokertest.Connect(t, c.Server()))
			if err == nil {
				_, _, err = other.Add(t.Context(), team.Team{ID: "a", LeaseSeconds: 30})
			}
			made <- err
		}()
	}
	won := 0
	for range 4 {
		if err := brokertest.Receive(t, "all have tried", made); err == nil {
			won++
		} else if team.CodeOf(err) != team.Conflict {
			t.Errorf("Add = %v, want conflict", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of 4 made it", won)
	}
}
