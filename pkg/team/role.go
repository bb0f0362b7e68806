package team

import (
	"fmt"
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
	Dialect      Dialect  `json:"dialect,omitempty"`   // of its members; "" = the team's
	PlanMode     bool     `json:"plan_mode,omitempty"` // its members change nothing before their plans are approved
	Approver     Approver `json:"approver,omitempty"`  // of those plans; "" = the team's
	Hands        Hands    `json:"hands,omitzero"`      // of its members; what is not set is the team's
	Ready        int      `json:"ready,omitempty"`     // how many members of it there are kept to be while the team has a goal
	Instructions string   `json:"instructions"`
}

// LeaderRole is the role of the leader's own name.
const LeaderRole = "leader"

// OnlyDeliverable, behind the name of a tool in a role's list, narrows the role's file tools:
// they write nothing but the deliverable of the task that the member holds.
const OnlyDeliverable = "(deliverable)"

// WritesDeliverableOnly reports whether r's file tools are narrowed by [OnlyDeliverable].
func (r Role) WritesDeliverableOnly() bool {
	return slices.ContainsFunc(r.Tools, func(name string) bool { return strings.HasSuffix(name, OnlyDeliverable) })
}

// MayWrite returns why a member of r, which holds t (the zero Task: none), may not write the
// file of that name, or nil. Errors: PermissionDenied.
func (r Role) MayWrite(name string, t Task) error {
	if !r.WritesDeliverableOnly() || t.ID != "" && name == t.DeliverablePath {
		return nil
	}
	err := Errorf(PermissionDenied, "%s may not be written: role %s writes only the deliverable of the task that it holds", Clip(name, 200), r.Name)
	if t.ID == "" {
		return err.WithHint("you hold no task")
	}
	return err.WithHint("the deliverable of %s is %s", t.ID, t.DeliverablePath)
}

// Looks reports whether a member of r only looks and reports: none of its tools runs
// commands, or writes more than the deliverable.
func (r Role) Looks() bool {
	return len(r.Tools) > 0 && !slices.ContainsFunc(r.Tools, func(name string) bool {
		return unlimited(name) || changing[NativeTool(name)]
	})
}

// changing are the tools that write any file of the workspace.
var changing = map[string]bool{"write_file": true, "edit_file": true, "multi_edit": true}

// Validate checks a role from outside.
func (r Role) Validate() error {
	if err := checkName("role name", r.Name); err != nil {
		return err
	}
	if strings.TrimSpace(r.Description) == "" {
		return Errorf(InvalidArgument, "role %s has no description", r.Name).WithHint("say in a sentence when the leader should choose it")
	}
	if err := r.Dialect.Validate(); err != nil {
		return Errorf(InvalidArgument, "role %s: %w", r.Name, err).WithHint("%s", HintOf(err))
	}
	if r.PlanMode && r.Name == LeaderRole {
		return Errorf(InvalidArgument, "role %s has plan_mode, and a leader has nobody to ask", r.Name).WithHint("leave plan_mode out")
	}
	if r.Ready < 0 || r.Ready > MostTeammates || r.Ready > 0 && r.Name == LeaderRole {
		return Errorf(InvalidArgument, "role %s: %d members cannot be kept ready", r.Name, r.Ready).WithHint("a number from 0 to %d, and none of the leader", MostTeammates)
	}
	if i := slices.IndexFunc(r.Tools, unlimited); i >= 0 && r.WritesDeliverableOnly() {
		return Errorf(InvalidArgument, "role %s is to write its deliverable only, and has the tool %s, which can write anything", r.Name, r.Tools[i]).
			WithHint("leave out one of the two")
	}
	if err := r.Approver.validate(); err != nil {
		return fmt.Errorf("role %s: %w", r.Name, err)
	}
	if err := r.Hands.Validate(); err != nil {
		return fmt.Errorf("role %s: %w", r.Name, err)
	}
	return checkText("the instructions of role "+r.Name, r.Instructions, MaxTextBytes)
}

// unlimited reports whether a name in a role's list gives it a tool that no path confines.
func unlimited(name string) bool { return name == "bash" || name == "Bash" || name == "*" }

// CanonicalRole maps the names of other systems' built-in agents to ours.
func CanonicalRole(name string) string {
	switch name {
	case "Explore":
		return "explorer"
	case "Plan":
		return "planner"
	case "general-purpose":
		return "coder"
	case "Bash":
		return "bash"
	}
	return name
}

func unknownRole(name string, roles map[string]Role) error {
	names := slices.Sorted(maps.Keys(roles))
	return Errorf(NotFound, "there is no role %q", Clip(name, 80)).
		WithHint("%s", meant(name, names, "roles of this team: "+strings.Join(names, ", ")))
}
