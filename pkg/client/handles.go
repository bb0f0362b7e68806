package client

import (
	"context"

	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// Board is the team's task list: read it, add tasks, and change them with a person's rights or
// for a person's seat.
type Board struct{ *core }

// Mail writes a person's mail to members and reads theirs.
type Mail struct{ *core }

// Members are the team's agents and people's seats: their states, spawning and stopping.
type Members struct{ *core }

// Goals set the team a goal, or find the one that it has.
type Goals struct{ *core }

// Plans are the plans and calls that wait for a decision, or were decided on.
type Plans struct{ *core }

// Board returns the team's task list.
func (t *Team) Board() Board { return Board{t.core} }

// Mail returns the team's mail.
func (t *Team) Mail() Mail { return Mail{t.core} }

// Members returns the handle of the team's members.
func (t *Team) Members() Members { return Members{t.core} }

// Goals returns the handle of the team's goals.
func (t *Team) Goals() Goals { return Goals{t.core} }

// Plans returns the handle of the team's plans and of the calls that a person must allow.
func (t *Team) Plans() Plans { return Plans{t.core} }

// Branch returns the handle of the team's integration branch.
func (t *Team) Branch() Branch { return Branch{t.core} }

// ID returns the team's name.
func (t *Team) ID() team.TeamID { return t.id() }

// Record returns the team's current record.
func (t *Team) Record(ctx context.Context) (team.Team, error) { return t.record(ctx) }

func (t *core) id() team.TeamID { return t.team.ID }

func (t *core) record(ctx context.Context) (team.Team, error) { return registry.Record(ctx, t.team) }
