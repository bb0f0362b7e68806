package team

import (
	"maps"
	"reflect"
	"time"
)

// Choices are the settings of a team that a person may set; nil leaves a setting unchanged.
type Choices struct {
	Description  *string
	MaxTeammates *int
	Create       *Create
	Respawn      *Respawn
	Approver     *Approver
	Check        *string // the command of the policy; "" = none
	Dialect      *Dialect
	PlanMode     *bool
	Delegate     *bool
	Policy       *Policy
	Isolation    *Isolation // of Policy; from the next goal on

	// Roles are stored in place of those that the team has by their names. Members that work keep
	// what they were started with.
	Roles map[string]Role
}

// None reports whether nothing is chosen.
func (c Choices) None() bool { return reflect.ValueOf(c).IsZero() }

// Choose sets the settings of t that c has.
func (t *Team) Choose(c Choices) {
	choose(&t.Description, c.Description)
	choose(&t.MaxTeammates, c.MaxTeammates)
	choose(&t.Policies.Create, c.Create)
	choose(&t.Policies.Respawn, c.Respawn)
	choose(&t.Policies.Approver, c.Approver)
	choose(&t.Policies.Check, c.Check)
	choose(&t.Policies.Dialect, c.Dialect)
	choose(&t.Policies.PlanMode, c.PlanMode)
	choose(&t.Policies.Delegate, c.Delegate)
	choose(&t.Policy, c.Policy)
	t.Policy.Permissions = t.Policy.Permissions.current()
	choose(&t.Policy.Isolation, c.Isolation)
	if len(c.Roles) > 0 {
		roles := maps.Clone(t.Roles)
		if roles == nil {
			roles = map[string]Role{}
		}
		maps.Copy(roles, c.Roles)
		t.Roles = roles
	}
}

func choose[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// RoleChoices are settings of a role that a person may set in addition to its file; nil leaves one unchanged.
type RoleChoices struct {
	Ready        *int           `yaml:"ready,omitempty" minimum:"0"`
	Model        *string        `yaml:"model,omitempty" minLength:"1"`
	MaxTurns     *int           `yaml:"max_turns,omitempty" minimum:"0"`
	StillTurns   *int           `yaml:"turns_without_progress,omitempty" minimum:"1"`
	Effort       *Effort        `yaml:"effort,omitempty"`
	Dialect      *Dialect       `yaml:"dialect,omitempty"`
	PlanMode     *bool          `yaml:"plan_mode,omitempty" harmless:"true"`
	Approver     *Approver      `yaml:"approver,omitempty" harmless:"human"`
	MaxInstances *int           `yaml:"max_instances,omitempty" minimum:"0"`
	AutoClaim    *bool          `yaml:"auto_claim,omitempty" harmless:"false"`
	IdleTimeout  *time.Duration `yaml:"idle_timeout,omitempty" minimum:"1s"`
	Background   *bool          `yaml:"background,omitempty"`
	Color        *RoleColor     `yaml:"color,omitempty" harmless:"any"`
}

// With returns r with the settings of c.
func (r Role) With(c RoleChoices) Role {
	choose(&r.Ready, c.Ready)
	choose(&r.Model, c.Model)
	choose(&r.MaxTurns, c.MaxTurns)
	choose(&r.StillTurns, c.StillTurns)
	choose(&r.Effort, c.Effort)
	choose(&r.Dialect, c.Dialect)
	choose(&r.PlanMode, c.PlanMode)
	choose(&r.Approver, c.Approver)
	choose(&r.MaxInstances, c.MaxInstances)
	choose(&r.Background, c.Background)
	choose(&r.Color, c.Color)
	if c.AutoClaim != nil {
		r.AutoClaim = c.AutoClaim
	}
	if c.IdleTimeout != nil {
		r = r.IdleFor(*c.IdleTimeout)
	}
	return r
}
