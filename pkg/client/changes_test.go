package client_test

import (
	"slices"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// A goal is set with the wish for uncommitted changes, for itself only; a line that has begun without
// them does not get them.
func TestGoalWithChanges(t *testing.T) {
	r := newRig(t)
	set := func(with bool) error {
		t.Helper()
		g, _, err := r.Goals().Set(t.Context(), client.NewGoal{Text: "go", Add: true, WithChanges: with})
		if err == nil && !g.Started() {
			t.Error("the goal was mailed")
		}
		return err
	}
	decide := func(goal int) {
		t.Helper()
		if _, err := r.registry.Edit(t.Context(), r.bt, func(t *team.Team) { t.Branch = &team.GoalBranch{Goal: goal} }); err != nil {
			t.Fatal(err)
		}
	}
	end := func(status team.Status) {
		t.Helper()
		if _, err := r.registry.End(t.Context(), r.bt, team.Ending{Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	decide(1) // by the leader of a team that waits for a goal
	says(t, "a line that has begun", set(true), team.InvalidState, "teamctl stop --team t")
	if letters := r.inbox(t, team.Leader); len(letters) != 0 || record(t, r.Team).Goal != "" {
		t.Errorf("the leader was told of it: %+v", letters)
	}
	end(team.TeamStopped)
	wantCode(t, "after the stop", set(true), "")
	if got := record(t, r.Team); got.WithChanges != 1 || got.Branch.Goal != 0 {
		t.Errorf("the record is %+v, with the line %+v", got, got.Branch)
	}
	letters := len(r.inbox(t, team.Leader))
	says(t, "a team at work", set(true), team.InvalidState, "is at work")
	if got := len(r.inbox(t, team.Leader)); got != letters {
		t.Errorf("the leader has %d letters, want %d", got, letters)
	}
	decide(1)
	end(team.TeamFinished)
	wantCode(t, "the next one", set(false), "")
	if got := record(t, r.Team); got.GoalNumber != 2 || got.WithChanges != 0 || got.Branch.Goal != 1 {
		t.Errorf("the record is %+v, with the line %+v", got, got.Branch)
	}
	fresh := makeTeam(t, r.client, client.NewTeam{ID: "fresh", WithChanges: true})
	if got := record(t, fresh); got.WithChanges != 1 {
		t.Errorf("the record of a new team is %+v", got)
	}
}

// Changes names what a goal would begin without; what cannot be taken along is refused at once.
func TestChanges(t *testing.T) {
	r := newLineRig(t)
	r.git(t, "echo more >> numbers.txt; echo new > new.txt; echo x > x.log; echo '*.log' > .git/info/exclude")
	for _, take := range []bool{false, true} {
		names, err := r.Branch().Changes(t.Context(), r.user, take)
		if want := []string{"new.txt", "numbers.txt"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("take %v: %q, %v; want %q", take, names, err, want)
		}
	}
	r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	if _, err := r.Branch().Changes(t.Context(), r.user, true); err != nil {
		t.Errorf("what merges with the line: %v", err)
	}
	r.git(t, "sed -i s/^3$/drei/ numbers.txt")
	for _, take := range []bool{true, false} {
		_, err := r.Branch().Changes(t.Context(), r.user, take)
		says(t, "what does not merge", err, team.Conflict, "numbers.txt")
		r.git(t, "git commit -qam drei || true")
	}
	r.git(t, "mkdir own; cd own; git init -q; git commit -q --allow-empty -m x")
	_, err := r.Branch().Changes(t.Context(), r.user, true)
	says(t, "a repository inside", err, team.InvalidState, "own")
	if names, err := r.Branch().Changes(t.Context(), t.TempDir(), true); err != nil || names != nil {
		t.Errorf("of no repository: %q, %v", names, err)
	}
}
