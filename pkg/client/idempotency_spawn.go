package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// SpawnOnce is [Members.Spawn] for a caller that may have to repeat it. If an earlier call had the
// same key, its members are returned with their current records, also those that have left; those
// that it failed to spawn, or was killed before it spawned, are spawned under the names that it
// chose. existed reports that this call spawned none.
//
// A member whose name the caller gave counts as spawned while it exists, whatever the key.
//
// While an earlier call is still spawning one, this call waits for it. Errors: those of Spawn;
// Conflict if an earlier call with the key, or the member of that name, was different.
func (t Members) SpawnOnce(ctx context.Context, key string, m team.Member, count int) (members []team.Member, existed bool, err error) {
	m.Role = team.CanonicalRole(m.Role)
	c, err := broker.NewCall("spawn", "", key, m.Role, m.Prompt, m.Model, m.PlanMode, m.Approver, count)
	if err = cmp.Or(err, oneName(m, count)); err != nil {
		return nil, false, err
	}
	record, err := t.record(ctx)
	if err != nil {
		return nil, false, err
	}
	m = record.Joining(m) // as it will be stored
	own := 0
	finish := func(c *broker.Call, _ bool) (err error) {
		members, own, err = t.spawn(ctx, m, count, c)
		return err
	}
	if m.AgentID != "" {
		c.Members = []team.AgentID{m.AgentID}
		err = finish(&c, true)
		return members, own == 0, err
	}
	c.Members = make([]team.AgentID, count)
	c, _, err = t.team.Bucket.Once(ctx, c, finish)
	for i := len(members); i < len(c.Members) && err == nil; i++ {
		var o team.Member
		o, err = t.roster.Get(ctx, c.Members[i])
		members = append(members, o)
	}
	return members, own == 0, err
}

// pollEvery is the time between two reads of the record of a member that is starting.
const pollEvery = 100 * time.Millisecond

// spawnOne spawns the i-th member of a call, or waits for the one that another caller spawns; own
// reports which. Its name is stored in the call before it is spawned, and is replaced if a member
// of another call has taken it meanwhile.
func (t *core) spawnOne(ctx context.Context, c *broker.Call, i int, m team.Member, limit int) (o team.Member, own bool, err error) {
	named := m.AgentID != ""
	for raced := error(nil); ; {
		m.AgentID, m.Call = c.Members[i], c.ID
		o, err = t.roster.Get(ctx, m.AgentID)
		there := err == nil && (o.State != team.Stopped || !named && !o.TakenBack)
		switch {
		case err != nil && !errors.Is(err, team.NotFound):
			return o, false, err
		case there && named && !sameSpawn(o, m):
			return o, false, team.Errorf(team.Conflict, "%s, which is there already, was asked for otherwise", o.AgentID).
				WithHint("use another name, or stop it first")
		case m.AgentID == "", err == nil && !named && o.Call != c.ID:
			if err := t.rename(ctx, c, i, m.Role); err != nil {
				return o, false, err
			}
			raced = nil
		case there && o.State == team.Created:
			if !shutdown.Sleep(ctx, pollEvery) {
				return o, false, ctx.Err()
			}
		case there:
			return o, false, nil
		case raced != nil:
			return o, false, team.Errorf(team.Unavailable, "another call could not spawn %s: %w", m.AgentID, raced).WithHint("try again")
		default:
			if o, raced = t.spawner.Spawn(ctx, m, limit); !errors.Is(raced, team.Conflict) {
				return o, true, raced
			}
		}
	}
}

// rename gives the i-th member of a call, which is not spawned yet, the next name of its role.
func (t *core) rename(ctx context.Context, c *broker.Call, i int, role string) error {
	next, err := t.team.Bucket.ChangeCall(ctx, *c, func(have *broker.Call) (bool, error) {
		if have.ID != c.ID {
			return false, team.Errorf(team.Conflict, "another request has taken the idempotency key").WithHint("use another key")
		}
		if have.Members[i] != c.Members[i] { // another caller has done so
			return false, nil
		}
		all, err := t.roster.List(ctx)
		for _, a := range have.Members {
			all = append(all, team.Member{AgentID: a})
		}
		have.Members[i] = roster.NextName(all, role)
		return true, err
	})
	if err == nil {
		*c = next
	}
	return err
}

// sameSpawn reports whether o was spawned with the arguments in w.
func sameSpawn(o, w team.Member) bool {
	return o.State != team.Unreadable && o.Role == w.Role && o.Prompt == w.Prompt && o.Model == w.Model && o.PlanMode == w.PlanMode && o.Approver == w.Approver
}
