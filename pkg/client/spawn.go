package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// Spawn makes count members of a role, all or none. A team that has ended becomes active again,
// without a goal; a spawn that fails leaves it as it was. A name is for one member. Errors:
// NotFound for the role, and for a model that no process has; InvalidState at the team's limit;
// Conflict for the name of an existing member; Unavailable if no process took one.
func (t Members) Spawn(ctx context.Context, m team.Member, count int) ([]team.Member, error) {
	if err := oneName(m, count); err != nil {
		return nil, err
	}
	m.Role = team.CanonicalRole(m.Role)
	members, _, err := t.spawn(ctx, m, count, nil)
	return members, err
}

// spawn is Spawn for the members of a call, which may exist already, or with nil for new ones; own
// is how many it has spawned.
func (t *core) spawn(ctx context.Context, m team.Member, count int, c *broker.Call) (members []team.Member, own int, err error) {
	record, err := t.record(ctx)
	if err != nil {
		return nil, 0, err
	}
	all, err := t.roster.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	missing, active := count, record
	for _, o := range all {
		if c != nil && o.State != team.Stopped && (o.AgentID == m.AgentID || c.ID != "" && o.Call == c.ID) {
			missing--
		}
	}
	if missing > 0 {
		if err := maySpawn(record, all, m, missing); err != nil {
			return nil, 0, err
		}
		if err := t.client.hasModel(ctx, m.Model); err != nil {
			return nil, 0, err
		}
		if active, err = t.client.registry.Activate(ctx, t.team); err != nil {
			return nil, 0, err
		}
	}
	var spawned []team.Member
	m.SpawnedBy = team.UserAgent
	for i := range count {
		o, isOwn := team.Member{}, true
		if c == nil {
			o, err = t.spawner.Spawn(ctx, m, active.MaxTeammates)
		} else {
			o, isOwn, err = t.spawnOne(ctx, c, i, m, active.MaxTeammates)
		}
		if err != nil {
			return nil, 0, errors.Join(err, t.unspawn(ctx, spawned, record, active))
		}
		if isOwn {
			spawned = append(spawned, o)
		}
		members = append(members, o)
	}
	return members, len(spawned), nil
}

// MakeToSpawn is [Client.Make] for a team in which count members like m will be spawned. If the
// team does not exist and the spawn would certainly fail, nothing is made. Errors: as of
// [Members.Spawn].
func (c *Client) MakeToSpawn(ctx context.Context, n NewTeam, m team.Member, count int) (*Team, error) {
	n.Needs = m.Role
	if _, err := c.Open(ctx, n.ID); !errors.Is(err, team.NotFound) {
		if err != nil {
			return nil, err
		}
		return c.Make(ctx, n)
	}
	m.Role = team.CanonicalRole(m.Role)
	if err := oneName(m, count); err != nil {
		return nil, err
	}
	if err := maySpawn(n.record(), nil, m, count); err != nil {
		return nil, err
	}
	if err := c.hasModel(ctx, m.Model); err != nil {
		return nil, err
	}
	if procs, err := c.Processes(ctx); err != nil && len(procs.Standbys) < count { // a leader could start them
		return nil, spawn.NoStandby(err)
	}
	return c.Make(ctx, n)
}

// hasModel returns an error for a named model that no process has: another would be used instead,
// at another price. Error: NotFound.
func (c *Client) hasModel(ctx context.Context, name string) error {
	if name == "" || name == team.Inherit {
		return nil
	}
	known, err := c.Models(ctx)
	switch {
	case slices.Contains(known, name):
		return nil
	case err != nil: // the models are not known
		return err
	}
	refusal := team.Errorf(team.NotFound, "no process has a model %q", team.Clean(name, 80))
	if len(known) == 0 {
		return refusal.WithHint("no model is configured: set OPENAI_MODEL where the processes are started")
	}
	return refusal.WithHint("choose one of: %s", strings.Join(known, ", "))
}

// Models returns the model names of all processes, sorted. Errors: Unavailable if no leader process
// answers; the names of the others are returned all the same.
func (c *Client) Models(ctx context.Context) (names []string, err error) {
	s, err := c.Processes(ctx)
	for _, p := range slices.Concat(s.Leaders, s.Standbys, s.Members) {
		names = append(names, p.Aliases...)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// oneName returns InvalidArgument if several members would have one name.
func oneName(m team.Member, count int) error {
	if m.AgentID == "" || count == 1 {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "one name cannot be given to %d members", count).WithHint("spawn one of that name, or leave the name out")
}

// maySpawn returns the errors of a spawn that are certain before any change; m is one of count
// members. The roster checks each member again when it writes it.
func maySpawn(record team.Team, members []team.Member, m team.Member, count int) error {
	if _, err := record.Role(m.Role); err != nil {
		return err
	}
	if m.Role == team.LeaderRole || m.AgentID == team.Leader {
		return team.Errorf(team.InvalidArgument, "a team has one leader; it cannot be spawned").WithHint("choose another role")
	}
	if err := m.Validate(); err != nil {
		return err
	}
	have, limit := 0, record.MaxTeammates
	for _, o := range members {
		if o.Fills(record.Policies) {
			have++
		}
		if o.AgentID == m.AgentID && o.State != team.Stopped {
			return team.Errorf(team.Conflict, "team %s already has a member %s (%s)", record.ID, o.AgentID, o.State).
				WithHint("choose another name, or stop it first")
		}
	}
	if have+count > limit {
		return team.Errorf(team.InvalidState, "the team has %s and its limit is %d (max_teammates): there is no room for %d more", explain.Counted(have, "teammate"), limit, count).
			WithHint("stop one, or give the work to those who are there")
	}
	return nil
}

// takeBackWait bounds the undoing of a spawn, whose own time may be over.
const takeBackWait = 15 * time.Second

// unspawn takes back the members of a failed spawn, and reverts the team, which the spawn had
// changed from before into active; not if it has other members now.
func (t *core) unspawn(ctx context.Context, spawned []team.Member, before, active team.Team) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackWait)
	defer cancel()
	var errs []error
	for _, s := range spawned {
		if err := t.spawner.Undo(ctx, t.mailbox, s.AgentID); err != nil {
			errs = append(errs, fmt.Errorf("%s was not taken back: %w", s.AgentID, err))
		}
	}
	if before.Status == team.Active {
		return errors.Join(errs...)
	}
	members, err := t.roster.List(ctx)
	if err == nil && !slices.ContainsFunc(members, team.Member.Counts) {
		err = t.client.registry.Revert(ctx, t.team, before, active)
	}
	return errors.Join(append(errs, err)...)
}
