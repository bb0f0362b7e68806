package client

import (
	"context"

	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
)

// Board is the team's task list: read it, add tasks, and change them with a person's rights or
// for a person's seat.
type Board struct{ *core }

// Mail is what a person writes to members and reads of theirs.
type Mail struct{ *core }

// Members are the team's agents and people's seats: how they stand, spawn and stop them.
type Members struct{ *core }

// Goals set the team a goal, or find the one that it has.
type Goals struct{ *core }

// Plans are the plans and calls that wait for a decision, or have had one.
type Plans struct{ *core }

// Board is the team's task list.
func (t *Team) Board() Board { return Board{t.core} }

// Mail is the team's mail.
func (t *Team) Mail() Mail { return Mail{t.core} }

// Members are the team's members.
func (t *Team) Members() Members { return Members{t.core} }

// Goals are the team's goals.
func (t *Team) Goals() Goals { return Goals{t.core} }

// Plans are the team's plans and the calls that a person has to allow.
func (t *Team) Plans() Plans { return Plans{t.core} }

// Line is what the team's completed tasks have changed.
func (t *Team) Branch() Branch { return Branch{t.core} }

// ID is the team's name.
func (t *Team) ID() team.TeamID { return t.id() }

// Record is the team's record as it stands.
func (t *Team) Record(ctx context.Context) (team.Team, error) { return t.record(ctx) }

func (t *core) id() team.TeamID { return t.team.ID }

func (t *core) record(ctx context.Context) (team.Team, error) { return registry.Record(ctx, t.team) }
