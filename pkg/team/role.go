package team

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Role is the kind of a member: its instructions, its tools, and a description by which the leader chooses.
type Role struct {
	Name            string    `json:"name"`
	Description     string    `json:"description"`
	Tools           []string  `json:"tools,omitempty"`                  // empty = all that a member of its kind may use; "none" alone = none of the workspace
	DisallowedTools []string  `json:"disallowed_tools,omitempty"`       // taken away from those, and from the team's
	Model           string    `json:"model,omitempty"`                  // an alias of the process; "" = its first
	MaxTurns        int       `json:"max_turns,omitempty"`              // of one run; 0 = no limit
	StillTurns      int       `json:"turns_without_progress,omitempty"` // in a row after which a member gives its task back; 0 = [StillTurns]
	Effort          Effort    `json:"effort,omitempty"`                 // of its members' thinking; "" = the alias's
	Dialect         Dialect   `json:"dialect,omitempty"`                // of its members; "" = the team's
	PlanMode        bool      `json:"plan_mode,omitempty"`              // its members change nothing before their plans are approved
	Approver        Approver  `json:"approver,omitempty"`               // of those plans; "" = the team's
	Policy          Policy    `json:"policy,omitzero"`                  // of its members; what is not set is the team's
	Ready           int       `json:"ready,omitempty"`                  // members of it that are kept while the team has a goal
	Color           RoleColor `json:"color,omitempty"`                  // of its members; "" = by their order of joining
	MaxInstances    int       `json:"max_instances,omitempty"`          // live members of the role; 0 = no limit
	AutoClaim       *bool     `json:"auto_claim,omitempty"`             // false = its members take only tasks that are assigned to them; nil = true
	IdleSeconds     int       `json:"idle_timeout_seconds,omitempty"`   // after so long idle a member leaves; 0 = it stays
	Background      bool      `json:"background,omitempty"`             // subagents of the role run in the background unless they are asked for otherwise
	Skills          []string  `json:"skills,omitempty"`                 // kept; nothing uses them yet
	MCPServers      []string  `json:"mcp_servers,omitempty"`            // kept, by their names; nothing uses them yet
	Instructions    string    `json:"instructions"`
}

// LeaderRole is the role of the leader's own name.
const LeaderRole = "leader"

// OnlyDeliverable, behind a tool in a role's list, narrows the file tools of the role: they write only the deliverable
// of the task that the member holds.
const OnlyDeliverable = "(deliverable)"

// noTools, alone in a role's list, gives its members no tool of the workspace.
const noTools = "none"

// Toolless returns r with no tool of the workspace.
func (r Role) Toolless() Role {
	r.Tools = []string{noTools}
	return r
}

// IsToolless reports whether r has no tool of the workspace.
func (r Role) IsToolless() bool { return slices.Equal(r.Tools, []string{noTools}) }

// StillTurns is the default number of turns in a row that a member may make without progress.
const StillTurns = 400

// Effort is how long a model thinks before it answers, in the words of endpoints; each endpoint knows some of them.
type Effort string

// Values returns the efforts.
func (Effort) Values() []string { return efforts }

var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// RoleColor is the color that a role gives to its members; "" = none.
type RoleColor string

// Values returns the colors.
func (RoleColor) Values() []string { return roleColors }

var roleColors = []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan", "magenta", "white"}

// Claims reports whether members of r take unassigned tasks.
func (r Role) Claims() bool { return r.AutoClaim == nil || *r.AutoClaim }

// IdleTimeout returns how long a member of r may be idle before it leaves; 0: no limit.
func (r Role) IdleTimeout() time.Duration { return time.Duration(r.IdleSeconds) * time.Second }

// IdleFor returns r with that idle timeout, in whole seconds.
func (r Role) IdleFor(d time.Duration) Role {
	r.IdleSeconds = int(d.Round(time.Second).Seconds())
	return r
}

// maxBrief bounds the part of a description that a leader reads, in characters.
const maxBrief = 300

// Brief returns the description on one short line, without the examples in role files of other programs: a leader reads
// the descriptions of all roles with every request.
func (r Role) Brief() string {
	text := strings.ReplaceAll(r.Description, `\n`, "\n")
	head, _, _ := strings.Cut(text, "<example>")
	if head = OneLine(head); strings.TrimSpace(head) == "" {
		head = OneLine(text)
	}
	for _, tail := range []string{"Examples:", "Example:", "For example:", "<commentary>"} {
		head = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(head), tail))
	}
	return Clip(head, maxBrief)
}

// Takes reports whether r removes a tool with one of these names.
func (r Role) Takes(answers func(name string) bool) bool {
	return slices.ContainsFunc(r.DisallowedTools, func(name string) bool { return name == "*" || answers(name) })
}

// WritesDeliverableOnly reports whether r's file tools are narrowed by [OnlyDeliverable].
func (r Role) WritesDeliverableOnly() bool {
	return slices.ContainsFunc(r.Tools, func(name string) bool { return strings.HasSuffix(name, OnlyDeliverable) })
}

// MayWrite returns an error if a member of r, which holds t (the zero Task: none), may not write the file of that name.
// Errors: PermissionDenied.
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

// ReadsOnly reports whether a member of r only reads and reports: none of its tools runs commands, or writes more than the
// deliverable.
func (r Role) ReadsOnly() bool {
	lacks := func(native string) bool {
		return r.Takes(func(name string) bool { return NativeTool(name) == native })
	}
	if lacks("bash") && lacks("write_file") && lacks("edit_file") {
		return true
	}
	return len(r.Tools) > 0 && !slices.ContainsFunc(r.Tools, func(name string) bool {
		return (unlimited(name) || changing[NativeTool(name)]) && !r.Takes(func(taken string) bool { return NativeTool(taken) == NativeTool(name) })
	})
}

// changing are the tools that write any file of the workspace.
var changing = map[string]bool{"write_file": true, "edit_file": true, "multi_edit": true}

// Validate checks a role from a file.
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
	if err := cmp.Or(oneOf("the approver", r.Approver), r.Policy.Validate(), oneOf("the color", r.Color), oneOf("the effort", r.Effort)); err != nil {
		return fmt.Errorf("role %s: %w", r.Name, err)
	}
	if r.MaxInstances < 0 || r.IdleSeconds < 0 || r.StillTurns < 0 {
		return Errorf(InvalidArgument, "role %s: max_instances, idle_timeout and turns_without_progress cannot be negative", r.Name)
	}
	return checkText("the instructions of role "+r.Name, r.Instructions, MaxTextBytes)
}

// unlimited reports whether a name in a role's list gives it a tool that is not confined to a path.
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
