package client_test

import (
	"context"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// standby serves the pool: each order is taken, and its member joins and is heard.
// after is called then.
func (r *rig) standby(t *testing.T, after func()) {
	t.Helper()
	r.standbyFor(t, after, math.MaxInt64)
}

// standbyFor is standby for so many orders, until stop is called.
func (r *rig) standbyFor(t *testing.T, after func(), orders int64) (stop func()) {
	t.Helper()
	var taken atomic.Int64
	stop, err := control.ServePool(t.Context(), r.bt.Conn, nil, func(_ context.Context, o control.Order) error {
		if taken.Add(1) > orders {
			return team.Errorf(team.Busy, "this standby has another member")
		}
		m, err := r.roster.Get(t.Context(), o.Agent)
		if err != nil {
			return err
		}
		m.State, m.PID = team.Joined, os.Getpid()
		if m, err = r.roster.Put(t.Context(), m); err != nil {
			return err
		}
		roster.NewHeart(r.roster, m, team.DefaultLease).Set(func(b *team.Heartbeat) { b.State = team.Idle })
		after()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := r.bt.Conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return stop
}

// left are the members that have not gone.
func (r *rig) left(t *testing.T) (names []team.AgentID) {
	t.Helper()
	members, err := r.roster.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.State != team.Stopped {
			names = append(names, m.AgentID)
		}
	}
	return names
}

// All or none come up, also when the caller gives up on the way: then there is time
// still to take the first ones back.
func TestSpawnGivenUp(t *testing.T) {
	r := newRig(t)
	r.end(t, "done")
	before := record(t, r.Team)
	ctx, cancel := context.WithCancel(t.Context())
	var joined atomic.Int32
	r.standby(t, func() {
		if joined.Add(1) == 2 {
			cancel()
		}
	})
	if spawned, err := r.Members().Spawn(ctx, team.Member{Role: "coder"}, 3); err == nil {
		t.Errorf("spawned %+v", spawned)
	}
	if names := r.left(t); names != nil {
		t.Errorf("%v stayed", names)
	}
	if after := record(t, r.Team); after.Status != before.Status || after.Summary != before.Summary || after.FinishedAt == nil {
		t.Errorf("the team was %+v and became %+v", before, after)
	}
}

// A spawn that is refused changes nothing, neither the members nor a team at rest.
func TestSpawnRefused(t *testing.T) {
	r := newRig(t)
	r.standby(t, func() {})
	if _, err := r.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 2); err != nil {
		t.Fatal(err)
	}
	r.end(t, "done")
	before, there := record(t, r.Team), len(r.left(t))
	for name, tt := range map[string]struct {
		m     team.Member
		count int
		want  team.Code
	}{
		"too many":             {team.Member{Role: "coder"}, team.DefaultMaxTeammates - 1, team.InvalidState},
		"a name that is taken": {team.Member{Role: "coder", AgentID: "coder-1"}, 1, team.Conflict},
		"one name for two":     {team.Member{Role: "coder", AgentID: "bob"}, 2, team.InvalidArgument},
		"an unknown role":      {team.Member{Role: "poet"}, 1, team.NotFound},
		"a prompt too long":    {team.Member{Role: "coder", Prompt: strings.Repeat("x", team.MaxTextBytes+1)}, 1, team.InvalidArgument},
	} {
		_, err := r.Members().Spawn(t.Context(), tt.m, tt.count)
		wantCode(t, name, err, tt.want)
		if after := record(t, r.Team); after.Revision != before.Revision || len(r.left(t)) != there {
			t.Errorf("%s: the team became %+v with %v", name, after, r.left(t))
		}
	}
}

// Without a process for it the spawn leaves a team at rest as it was.
func TestSpawnUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.end(t, "done")
	before := record(t, r.Team)
	_, err := r.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1)
	wantCode(t, "spawn without a standby", err, team.Unavailable)
	if after := record(t, r.Team); after.Status != team.TeamFinished || after.Summary != "done" || !after.FinishedAt.Equal(*before.FinishedAt) || r.left(t) != nil {
		t.Errorf("the team became %+v with %v", after, r.left(t))
	}
}

// A spawn that can be seen to fail makes no team.
func TestMakeToSpawn(t *testing.T) {
	c := connect(t, brokertest.Server(t))
	n := client.NewTeam{ID: "t", Roles: roles("coder", "leader")}
	for name, tt := range map[string]struct {
		m     team.Member
		count int
		want  team.Code
	}{
		"too many":          {team.Member{Role: "coder"}, 99, team.InvalidState},
		"one name for two":  {team.Member{Role: "coder", AgentID: "a"}, 2, team.InvalidArgument},
		"a leader":          {team.Member{Role: "leader"}, 1, team.InvalidArgument},
		"an unknown role":   {team.Member{Role: "poet"}, 1, team.NotFound},
		"nobody to take it": {team.Member{Role: "coder"}, 1, team.Unavailable},
	} {
		_, err := c.MakeToSpawn(t.Context(), n, tt.m, tt.count)
		wantCode(t, name, err, tt.want)
		_, err = c.Open(t.Context(), "t")
		wantCode(t, "open the team after "+name, err, team.NotFound)
	}
	makeTeam(t, c, n)
	if _, err := c.MakeToSpawn(t.Context(), n, team.Member{Role: "coder"}, 99); err != nil {
		t.Errorf("a team that is there: %v", err) // the spawn will say it
	}
}
