package client_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/team"
)

// names are those of members, in order.
func names(members []team.Member) (all []team.AgentID) {
	for _, m := range members {
		all = append(all, m.AgentID)
	}
	return all
}

// Calls that race with one key spawn their members once, and all return these.
func TestSpawnOnce(t *testing.T) {
	r := newRig(t)
	r.standby(t, func() {})
	m := team.Member{Role: "coder", Prompt: "Begin."}
	const callers = 8
	var wg sync.WaitGroup
	var got [callers][]team.AgentID
	for i := range callers {
		wg.Go(func() {
			members, _, err := r.Members().SpawnOnce(t.Context(), "order 7", m, 4)
			if err != nil {
				t.Error(err)
			}
			for _, m := range members {
				if m.State != team.Joined || m.Prompt != "Begin." {
					t.Errorf("a call returned %+v", m)
				}
			}
			got[i] = names(members)
		})
	}
	wg.Wait()
	left := r.left(t)
	slices.Sort(left)
	if !slices.Equal(left, []team.AgentID{"coder-1", "coder-2", "coder-3", "coder-4"}) {
		t.Errorf("the members are %v", left)
	}
	for _, g := range got {
		if len(g) != 4 || !slices.Equal(g, left) {
			t.Errorf("a call returned %v; in the team are %v", g, left)
		}
	}
	again, existed, err := r.Members().SpawnOnce(t.Context(), "order 7", m, 4)
	if err != nil || !existed || !slices.Equal(names(again), left) {
		t.Errorf("again: %v, existed %v, %v", names(again), existed, err)
	}
	for name, tt := range map[string]struct {
		key   string
		m     team.Member
		count int
		want  team.Code
	}{
		"another prompt":     {"order 7", team.Member{Role: "coder", Prompt: "Wait."}, 2, team.Conflict},
		"another model":      {"order 7", team.Member{Role: "coder", Prompt: "Begin.", Model: "fast"}, 2, team.Conflict},
		"another role":       {"order 7", team.Member{Role: "leader"}, 1, team.Conflict},
		"fewer":              {"order 7", m, 3, team.Conflict},
		"more":               {"order 7", m, 5, team.Conflict},
		"in plan mode":       {"order 7", team.Member{Role: "coder", Prompt: "Begin.", PlanMode: true}, 4, team.Conflict},
		"another approver":   {"order 7", team.Member{Role: "coder", Prompt: "Begin.", Approver: team.ByHuman}, 4, team.Conflict},
		"no key":             {"", m, 1, team.InvalidArgument},
		"a key that is long": {strings.Repeat("k", 257), m, 1, team.InvalidArgument},
		"one name for two":   {"order 8", team.Member{Role: "coder", AgentID: "bob"}, 2, team.InvalidArgument},
		"an unknown role":    {"order 8", team.Member{Role: "poet"}, 1, team.NotFound},
		"too many":           {"order 8", m, team.DefaultMaxTeammates, team.InvalidState},
	} {
		_, _, err := r.Members().SpawnOnce(t.Context(), tt.key, tt.m, tt.count)
		wantCode(t, name, err, tt.want)
	}
	if now := r.left(t); len(now) != 4 {
		t.Errorf("after refusals there are %v", now)
	}
	if next, err := r.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil || next[0].AgentID != "coder-5" {
		t.Errorf("counted after that: %v, %v", names(next), err)
	}
}

// A repetition does not spawn a member again that has left since, unless the caller has named
// it; it does spawn one that never came up.
func TestSpawnOnceOfThoseWhoLeft(t *testing.T) {
	r := newRig(t)
	ctx, m := t.Context(), team.Member{Role: "coder"}
	failed := func(key string) {
		t.Helper()
		_, _, err := r.Members().SpawnOnce(ctx, key, m, 1)
		wantCode(t, "spawn without a standby", err, team.Unavailable)
	}
	failed("a")
	r.standby(t, func() {})
	first, existed, err := r.Members().SpawnOnce(ctx, "a", m, 1)
	if err != nil || existed || len(first) != 1 {
		t.Fatalf("after a failure: %v, existed %v, %v", first, existed, err)
	}
	leave := func(a team.AgentID) {
		t.Helper()
		now, err := r.roster.Get(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		now.State = team.Stopped
		if _, err := r.roster.Put(ctx, now); err != nil {
			t.Fatal(err)
		}
	}
	leave(first[0].AgentID)
	if again, existed, err := r.Members().SpawnOnce(ctx, "a", m, 1); err != nil || !existed || again[0].State != team.Stopped {
		t.Errorf("after it has left: %+v, existed %v, %v", again, existed, err)
	}
	named := team.Member{Role: "coder", AgentID: "ann"}
	for _, want := range []bool{false, true} {
		if _, existed, err := r.Members().SpawnOnce(ctx, "b", named, 1); err != nil || existed != want {
			t.Errorf("by name: existed %v, want %v; %v", existed, want, err)
		}
	}
	leave("ann")
	if ann, existed, err := r.Members().SpawnOnce(ctx, "b", named, 1); err != nil || existed || ann[0].State != team.Joined {
		t.Errorf("by a name whose member has left: %+v, existed %v, %v", ann, existed, err)
	}
}

// Of a spawn of two of which one came up none stays, and a repetition spawns both.
func TestSpawnOnceHalfway(t *testing.T) {
	r := newRig(t)
	ctx, m := t.Context(), team.Member{Role: "coder"}
	taken := make(chan struct{})
	stop := r.standbyFor(t, func() { close(taken) }, 1)
	go func() { <-taken; stop() }()
	_, _, err := r.Members().SpawnOnce(ctx, "a", m, 2)
	wantCode(t, "spawn two with one standby", err, team.Unavailable)
	if left := r.left(t); left != nil {
		t.Errorf("%v stayed", left)
	}
	r.standby(t, func() {})
	both, existed, err := r.Members().SpawnOnce(ctx, "a", m, 2)
	if err != nil || existed || len(both) != 2 || both[0].State != team.Joined || both[1].State != team.Joined {
		t.Errorf("again: %+v, existed %v, %v", both, existed, err)
	}
}
