package registry_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func open(t *testing.T) (*registry.Registry, *broker.Conn) {
	t.Helper()
	c := brokertest.Connect(t, brokertest.Server(t))
	r, err := registry.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func newTeam(t *testing.T, r *registry.Registry, id team.TeamID) (*broker.Storage, team.Team) {
	t.Helper()
	bt, record, err := r.Make(t.Context(), team.Team{ID: id, LeaseSeconds: 30, MaxTeammates: 10, Roles: map[string]team.Role{"coder": {Name: "coder"}}})
	if err != nil {
		t.Fatal(err)
	}
	return bt, record
}

// listed is the registry in short: "a active, b finished".
func listed(t *testing.T, r *registry.Registry) string {
	t.Helper()
	all, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, small := range all {
		s = append(s, fmt.Sprintf("%s %s", small.ID, small.Status))
	}
	slices.Sort(s)
	return strings.Join(s, ", ")
}

func TestMake(t *testing.T) {
	r, _ := open(t)
	if _, _, err := r.Open(t.Context(), "a"); team.CodeOf(err) != team.NotFound {
		t.Errorf("open of a team that is not there: %v, want not_found", err)
	}
	_, first := newTeam(t, r, "a")
	if first.Status != team.Active || first.V != team.Protocol || first.Revision == 0 || first.Goal != "" {
		t.Errorf("made %+v", first)
	}
	_, again, err := r.Make(t.Context(), team.Team{ID: "a", LeaseSeconds: 5, Roles: map[string]team.Role{"coder": {Name: "another"}, "tester": {Name: "tester"}}})
	if err != nil || again.LeaseSeconds != 30 || again.Roles["coder"].Name != "coder" || again.Roles["tester"].Name != "tester" {
		t.Errorf("made again: %+v, %v; the record stays, roles that it lacks are added", again, err)
	}
	newTeam(t, r, "b")
	if got := listed(t, r); got != "a active, b active" {
		t.Errorf("registered: %s", got)
	}
	if _, record, err := r.Open(t.Context(), "a"); err != nil || record.ID != "a" || len(record.Roles) != 2 {
		t.Errorf("opened %+v, %v", record, err)
	}
}

func TestMakersAgree(t *testing.T) {
	r, _ := open(t)
	var wg sync.WaitGroup
	leases := make([]int, 6)
	for i := range leases {
		wg.Go(func() {
			_, record, err := r.Make(t.Context(), team.Team{ID: "a", LeaseSeconds: 10 + i})
			if err != nil {
				t.Error(err)
			}
			leases[i] = record.LeaseSeconds
		})
	}
	wg.Wait()
	if slices.Min(leases) != slices.Max(leases) {
		t.Errorf("racing makers were told different leases: %v", leases)
	}
	if got := listed(t, r); got != "a active" {
		t.Errorf("registered: %s", got)
	}
}

// What a registered team has lost is not made anew.
func TestMakeAfterLoss(t *testing.T) {
	r, c := open(t)
	newTeam(t, r, "a")
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "AT_a_LOG"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Make(t.Context(), team.Team{ID: "a"}); team.CodeOf(err) != team.InvalidState {
		t.Errorf("make: %v, want invalid_state", err)
	}
}

// The list of all teams that was deleted is not made anew either, also by several at
// once; on a server that lost everything it is.
func TestRegistryIsGone(t *testing.T) {
	r, c := open(t)
	newTeam(t, r, "a")
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := js.DeleteStream(ctx, "KV_atteams"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			_, err := registry.Open(ctx, c)
			if team.CodeOf(err) != team.InvalidState || team.HintOf(err) == "" || !strings.Contains(err.Error(), "stream KV_atteams, the list of all teams, is gone, and team a is still there") {
				t.Errorf("opened: %v (hint %q), want invalid_state with a hint", err, team.HintOf(err))
			}
		})
	}
	wg.Wait()
	for name := range js.StreamNames(ctx).Name() {
		if err := js.DeleteStream(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	// Racing processes on the empty server, each of which makes a team at once: none
	// takes the others' teams for what is left of a list that is gone.
	for i := range 12 {
		wg.Go(func() {
			r, err := registry.Open(ctx, c)
			if err == nil {
				_, _, err = r.Make(ctx, team.Team{ID: team.TeamID(fmt.Sprintf("b%d", i))})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestGoals(t *testing.T) {
	r, _ := open(t)
	bt, _ := newTeam(t, r, "a")
	ctx := t.Context()
	record, started, err := r.StartGoal(ctx, bt, registry.NewGoal{Text: "造一个 🚀", Workspace: "/work"})
	if err != nil || !started || record.Goal != "造一个 🚀" || record.GoalNumber != 1 || record.Workspace != "/work" {
		t.Fatalf("first goal: %+v, %v, %v", record, started, err)
	}
	record, started, err = r.StartGoal(ctx, bt, registry.NewGoal{Text: "another", Workspace: "/else"})
	if err != nil || started || record.Goal != "造一个 🚀" || record.Workspace != "/work" {
		t.Errorf("a goal to a team at work: %+v, %v, %v", record, started, err)
	}
	record, err = r.End(ctx, bt, team.Ending{Status: team.TeamFinished, Summary: "done"})
	if err != nil || record.Status != team.TeamFinished || record.Summary != "done" || record.FinishedAt == nil {
		t.Errorf("ended: %+v, %v", record, err)
	}
	again, err := r.End(ctx, bt, team.Ending{Status: team.TeamFailed, Summary: "no, failed"})
	if err != nil || again.Status != team.TeamFinished || again.Summary != "done" || again.Revision != record.Revision {
		t.Errorf("ended again: %+v, %v", again, err)
	}
	if got := listed(t, r); got != "a finished" {
		t.Errorf("registered: %s", got)
	}
	record, started, err = r.StartGoal(ctx, bt, registry.NewGoal{Text: "second"})
	if err != nil || !started || record.GoalNumber != 2 || record.Summary != "" || record.FinishedAt != nil || record.Workspace != "/work" {
		t.Errorf("second goal: %+v, %v, %v", record, started, err)
	}
	if small, err := r.Small(ctx, "a"); err != nil || small.Goal != 2 {
		t.Errorf("registered with its second goal: %+v, %v", small, err)
	}
	if _, err = r.End(ctx, bt, team.Ending{Status: team.TeamStopped}); err != nil {
		t.Fatal(err)
	}
	record, err = r.Activate(ctx, bt)
	if err != nil || record.Status != team.Active || record.Goal != "" || record.GoalNumber != 2 {
		t.Errorf("activated: %+v, %v", record, err)
	}
	if got := listed(t, r); got != "a active" {
		t.Errorf("registered: %s", got)
	}
}

// An end holds only if the record is as it was when the end was decided on: no goal
// was mailed to the team since, and no other process has begun to lead it.
func TestEndAt(t *testing.T) {
	r, _ := open(t)
	bt, _ := newTeam(t, r, "a")
	ctx := t.Context()
	seen, _, err := r.StartGoal(ctx, bt, registry.NewGoal{Text: "first"})
	if err != nil {
		t.Fatal(err)
	}
	for what, write := range map[string]func() (team.Team, error){
		"a goal to the team at work": func() (team.Team, error) {
			now, _, err := r.StartGoal(ctx, bt, registry.NewGoal{Text: "more"})
			return now, err
		},
		"another leader": func() (team.Team, error) { return r.Touch(ctx, bt) },
	} {
		now, err := write()
		if err != nil || now.Revision <= seen.Revision || now.Status != team.Active || now.Goal != "first" || now.GoalNumber != 1 {
			t.Errorf("%s: the record is %+v, %v", what, now, err)
		}
		if _, err := r.EndAt(ctx, bt, seen.Revision, team.Ending{Status: team.TeamFinished, Summary: "done"}); team.CodeOf(err) != team.Conflict {
			t.Errorf("an end from before %s: %v, want conflict", what, err)
		}
		seen = now
	}
	ended, err := r.EndAt(ctx, bt, seen.Revision, team.Ending{Status: team.TeamFinished, Summary: "done"})
	if err != nil || ended.Status != team.TeamFinished || ended.Summary != "done" || listed(t, r) != "a finished" {
		t.Errorf("ended: %+v, %v; registered: %s", ended, err, listed(t, r))
	}
	again, err := r.EndAt(ctx, bt, seen.Revision, team.Ending{Status: team.TeamFailed, Summary: "no, failed"})
	if err != nil || again.Summary != "done" || again.Revision != ended.Revision {
		t.Errorf("ended again: %+v, %v", again, err)
	}
	if now, err := r.Touch(ctx, bt); err != nil || now.Revision != ended.Revision {
		t.Errorf("to lead a team that has ended wrote %+v, %v", now, err)
	}
}

// A record with which no process could work is refused where it is read, in words
// that name the team and the field, and is not made.
func TestLease(t *testing.T) {
	r, _ := open(t)
	bt, record, err := r.Make(t.Context(), team.Team{ID: "a"})
	if err != nil || record.Lease() != team.DefaultLease {
		t.Fatalf("made without a lease: %v, %v, want the default", record.Lease(), err)
	}
	if _, _, err := r.Make(t.Context(), team.Team{ID: "b", LeaseSeconds: -1}); team.CodeOf(err) != team.InvalidArgument || listed(t, r) != "a active" {
		t.Errorf("made with a negative lease: %v; registered: %s", err, listed(t, r))
	}
	for _, lease := range []string{"0", "-30", "null"} {
		entry, err := bt.Bucket.Get(t.Context(), subject.KeyTeam)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(entry.Value, &fields); err != nil {
			t.Fatal(err)
		}
		fields["lease_seconds"] = json.RawMessage(lease)
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bt.Bucket.Put(t.Context(), subject.KeyTeam, data, entry.Revision); err != nil {
			t.Fatal(err)
		}
		_, _, err = r.Open(t.Context(), "a")
		if team.CodeOf(err) != team.InvalidState || !strings.Contains(err.Error(), "team a") || !strings.Contains(err.Error(), "lease_seconds") {
			t.Errorf("lease_seconds %s: %v, want invalid_state that names team and field", lease, err)
		}
	}
}

// Of many goals at once one is started.
func TestGoalRace(t *testing.T) {
	r, _ := open(t)
	bt, _ := newTeam(t, r, "a")
	var wg sync.WaitGroup
	won := make(chan string, 8)
	for i := range 8 {
		wg.Go(func() {
			goal := fmt.Sprint("goal ", i)
			_, started, err := r.StartGoal(t.Context(), bt, registry.NewGoal{Text: goal})
			if err != nil {
				t.Error(err)
			} else if started {
				won <- goal
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d goals were started, want 1", len(won))
	}
	if record, err := registry.Record(t.Context(), bt); err != nil || record.Goal != <-won || record.GoalNumber != 1 {
		t.Errorf("the record is %+v, %v", record, err)
	}
}

// A writer that died between its record and the registry is made good for, and
// one that was only slow undoes nothing.
func TestPublish(t *testing.T) {
	r, _ := open(t)
	bt, old := newTeam(t, r, "a")
	ended := old
	ended.Status = team.TeamFinished
	data, err := json.Marshal(ended)
	if err != nil {
		t.Fatal(err)
	}
	if ended.Revision, err = bt.Bucket.Put(t.Context(), subject.KeyTeam, data, old.Revision); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, r); got != "a finished" {
		t.Errorf("registered: %s", got)
	}
	if _, _, err := r.StartGoal(t.Context(), bt, registry.NewGoal{Text: "next"}); err != nil {
		t.Fatal(err)
	}
	for _, late := range []team.Team{ended, old} {
		if err := r.Publish(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, r); got != "a active" {
			t.Errorf("after the record of revision %d was published late: %s", late.Revision, got)
		}
	}
}
