package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// SpawnOnce is [Team.Spawn] for a caller that may have to repeat it. The names are what makes
// it so: those of the members are made of the role, the key and the count, and of two calls one
// creates each name. Members of these names that are there, and were asked for in the same
// words, are taken for those of an earlier call; if all are, existed is true, and nothing is
// spawned. They are returned as they stand: one may have left since. Those of a spawn that
// failed are spawned again.
//
// A member with a name of the caller's is taken so while it is there, whatever the key.
//
// While an earlier call still brings one up, this one waits for it. Errors: those of Spawn;
// Conflict if an earlier call with the key, or the member of that name, was another.
func (t *Team) SpawnOnce(ctx context.Context, key string, m team.Member, count int) (members []team.Member, existed bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	if err := oneName(m, count); err != nil {
		return nil, false, err
	}
	record, err := t.Record(ctx)
	if err != nil {
		return nil, false, err
	}
	m.Role = team.CanonicalRole(m.Role)
	m = record.Planning(m) // as it will be stored
	wanted, mark := keyedMembers(m, key, count), keyMark(key)
	raced := func(w team.Member) (team.Member, error) {
		have, err := t.spawned(ctx, wanted, mark, m.AgentID != "")
		made, ok := have[w.AgentID]
		if err == nil && !ok {
			err = team.Errorf(team.Unavailable, "an earlier call with this key could not spawn %s", w.AgentID).WithHint("try again")
		}
		return made, err
	}
	have, err := t.spawned(ctx, wanted, mark, m.AgentID != "")
	if err != nil {
		return nil, false, err
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(w team.Member) bool { _, ok := have[w.AgentID]; return ok })
	existed = true
	if len(missing) > 0 {
		made, own, err := t.spawn(ctx, missing, raced)
		if err != nil {
			return nil, false, err
		}
		existed = len(own) == 0
		for _, m := range made {
			have[m.AgentID] = m
		}
	}
	for _, w := range wanted {
		members = append(members, have[w.AgentID])
	}
	return members, existed, nil
}

// lookEvery is the time between two looks at a member that is on its way.
const lookEvery = 100 * time.Millisecond

// keyMark is the part of a name that stands for a key. It is no number, so that counted names go
// on from each other.
func keyMark(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "-k" + hex.EncodeToString(sum[:4])
}

// keyedMembers are count members like m, with names that say the key if m has none.
func keyedMembers(m team.Member, key string, count int) []team.Member {
	wanted := slices.Repeat([]team.Member{m}, count)
	if m.AgentID != "" {
		return wanted
	}
	const longest = 63 - len("-k00000000-1000of1000")
	for i := range wanted {
		name := m.Role[:min(len(m.Role), longest)] + keyMark(key)
		if count > 1 {
			name += fmt.Sprintf("-%dof%d", i+1, count)
		}
		wanted[i].AgentID = team.AgentID(name)
	}
	return wanted
}

// spawned returns those of the wanted members that an earlier call has spawned, once none of them
// is on its way. Of members with names of the caller's it returns those that are there. Errors:
// Conflict if they, or others with that mark, were asked for otherwise.
func (t *Team) spawned(ctx context.Context, wanted []team.Member, mark string, named bool) (map[team.AgentID]team.Member, error) {
	for {
		all, err := t.roster.List(ctx)
		if err != nil {
			return nil, err
		}
		have, coming := map[team.AgentID]team.Member{}, false
		for _, o := range all {
			i := slices.IndexFunc(wanted, func(w team.Member) bool { return w.AgentID == o.AgentID })
			if o.State == team.Stopped && (named || o.TakenBack) || i < 0 && (named || !strings.Contains(string(o.AgentID), mark)) {
				continue
			}
			if i < 0 || !sameSpawn(o, wanted[i]) {
				return nil, team.Errorf(team.Conflict, "%s, which is there already, was asked for otherwise", o.AgentID).
					WithHint("use another key for another spawn, or another name")
			}
			have[o.AgentID] = o
			coming = coming || o.State == team.Created
		}
		if !coming {
			return have, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// sameSpawn reports whether o is as w asks.
func sameSpawn(o, w team.Member) bool {
	return o.State != team.Unreadable && o.Role == w.Role && o.Prompt == w.Prompt && o.Model == w.Model && o.PlanMode == w.PlanMode && o.Approver == w.Approver
}
