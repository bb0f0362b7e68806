package team

import (
	"maps"
	"slices"
	"strings"
)

// Role is what a member is for: a description for the leader that chooses, the
// tools it may use, and its instructions.
type Role struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Tools        []string `json:"tools,omitempty"`     // empty = all that a member of its kind may use
	Model        string   `json:"model,omitempty"`     // an alias of the process; "" = its first
	MaxTurns     int      `json:"max_turns,omitempty"` // of one run; 0 = no limit
	Instructions string   `json:"instructions"`
}

// LeaderRole is the role of the leader's own name.
const LeaderRole = "leader"

// Validate checks a role from outside.
func (r Role) Validate() error {
	if err := checkName("role name", r.Name); err != nil {
		return err
	}
	if strings.TrimSpace(r.Description) == "" {
		return Errorf(InvalidArgument, "role %s has no description", r.Name).WithHint("say in a sentence when the leader should choose it")
	}
	return checkText("the instructions of role "+r.Name, r.Instructions, MaxTextBytes)
}

// CanonicalRole maps the names of other systems' built-in agents to ours.
func CanonicalRole(name string) string {
	switch name {
	case "Explore":
		return "explorer"
	case "Plan":
		return "planner"
	case "general-purpose":
		return "coder"
	}
	return name
}

func unknownRole(name string, roles map[string]Role) error {
	return Errorf(NotFound, "there is no role %q", clip(name, 80)).
		WithHint("roles of this team: %s", strings.Join(slices.Sorted(maps.Keys(roles)), ", "))
}
