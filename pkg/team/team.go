package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Status is the status of a team.
type Status string

// The statuses of a team. Only an active one is led.
const (
	Active       Status = "active"
	TeamFinished Status = "finished"
	TeamFailed   Status = "failed"
	TeamStopped  Status = "stopped"
	TeamDeleting Status = "deleting" // what it holds goes; nobody joins or sets a goal any more
	TeamSaved    Status = "saved"    // it is in a file, to continue elsewhere; see Saved
	TeamLoading  Status = "loading"  // of a Small only: its storage is being made from a file
)

// Respawn is the watchdog's reaction to a lost member.
type Respawn string

// The respawn policies; the zero value means RespawnAlways.
const (
	RespawnAlways  Respawn = "respawn" // start it again, with its conversation
	RespawnAsk     Respawn = "ask"     // free its task, and ask a person whether to start it again
	RespawnRelease Respawn = "release" // free its task and leave it at that
)

// Values returns the policies that people may write.
func (Respawn) Values() []string { return Strings(RespawnAlways, RespawnAsk, RespawnRelease) }

// Create states who may create tasks.
type Create string

// Who may create tasks; the zero value means CreateAll.
const (
	CreateAll    Create = "all"
	CreateLeader Create = "leader" // and people
)

// Values returns the values that people may write.
func (Create) Values() []string { return Strings(CreateAll, CreateLeader) }

// Approver states who decides on the plans of members in plan mode.
type Approver string

// Who approves plans; the zero value means ByLeader.
const (
	ByLeader Approver = "leader"
	ByHuman  Approver = "human"
)

// Values returns the values that people may write.
func (Approver) Values() []string { return Strings(ByLeader, ByHuman) }

// Policies are the settings of a team.
type Policies struct {
	Create   Create   `json:"create"`
	Respawn  Respawn  `json:"respawn"`
	Approver Approver `json:"approver"`
	Check    string   `json:"check,omitempty"`     // a command that passes on each merge of a team whose tasks have trees; "" = none
	Dialect  Dialect  `json:"dialect,omitempty"`   // in which models are told of the tools; a role's own goes before it
	PlanMode bool     `json:"plan_mode,omitempty"` // every teammate that is spawned is in plan mode
	Delegate bool     `json:"delegate,omitempty"`  // the leader only leads: it has no tools of the workspace
}

// Validate refuses unknown values. Errors: InvalidArgument.
func (p Policies) Validate() error {
	return cmp.Or(oneOf("the policy create", p.Create), oneOf("the policy respawn", p.Respawn), oneOf("the policy approver", p.Approver),
		checkText("the check", p.Check, MaxTextBytes), p.Dialect.Validate())
}

// ClusterDir is the folder of a cluster's files, within the folder in which it was started.
const ClusterDir = ".agentteam"

// Team is the record of a team, under the key team of its bucket.
type Team struct {
	V            int             `json:"v"`
	ID           TeamID          `json:"id"`
	Names        []string        `json:"names,omitempty"` // others that its leader has given it by TeamCreate, at most maxNames
	Description  string          `json:"description"`
	Status       Status          `json:"status"`
	Goal         string          `json:"goal"`
	GoalNumber   int             `json:"goal_number"`          // how many goals it has had
	GoalSeq      uint64          `json:"goal_seq,omitempty"`   // of the bucket when the goal was set: what was written since may be for it
	GoalAt       *time.Time      `json:"goal_at,omitempty"`    // when the goal was set, by the server's clock; nil: not known
	PastGoals    []PastGoal      `json:"past_goals,omitempty"` // the newest that have ended before the present one, oldest first
	EndSeq       uint64          `json:"end_seq,omitempty"`    // of the bucket when the team was last ended: members as they were then are dismissed
	Roles        map[string]Role `json:"roles"`
	Policies     Policies        `json:"policies"`
	Policy       Policy          `json:"policy,omitzero"`        // of all members; a role's own go before it
	Branch       *GoalBranch     `json:"branch,omitempty"`       // nil: members share the workspace
	WithChanges  int             `json:"with_changes,omitempty"` // the number of the goal whose line begins with the uncommitted changes of the workspace; 0 = none
	Budgets      Budgets         `json:"budgets,omitzero"`       // of its model calls
	LeaseSeconds int             `json:"lease_seconds"`
	StallSeconds int             `json:"stall_seconds,omitempty"` // 0 = DefaultStall
	MaxTeammates int             `json:"max_teammates"`
	Workspace    string          `json:"workspace"`
	UserID       string          `json:"user_id,omitempty"`    // of the session that the team is, as programs name it; see [SessionTeam]
	SessionID    string          `json:"session_id,omitempty"` // the same; both are "" for a team that is none
	Summary      string          `json:"summary,omitempty"`
	Reason       string          `json:"reason,omitempty"`   // why the last goal has failed
	End          string          `json:"end,omitempty"`      // how the last goal has ended, in words; "" = it has not
	GivenUp      []TaskID        `json:"given_up,omitempty"` // failed tasks that the last goal's result does without
	Saved        *Saved          `json:"saved,omitempty"`    // while the status is saved
	Loaded       *Loaded         `json:"loaded,omitempty"`   // nil: it was made on this server
	CreatedBy    AgentID         `json:"created_by"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	FinishedAt   *time.Time      `json:"finished_at,omitempty"`

	Revision uint64 `json:"-"`
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// GoalBranch records the isolation of a goal's members, as the process decided that began to lead it.
type GoalBranch struct {
	Goal   int    `json:"goal"`             // the number of the goal
	Why    string `json:"why,omitempty"`    // they share the workspace; "" = each task has a tree on the team's line
	Prefix string `json:"prefix,omitempty"` // of the workspace in its repository, with slashes; "" = it is its top
	Early  bool   `json:"early,omitempty"`  // it was decided before the goal was set, and is decided again once it is
	Begun  string `json:"begun,omitempty"`  // the commit of the line at which the goal began; "" = not known, or there is no line
}

// Saved marks a team that was saved to a file, so that it is not worked on in two places.
type Saved struct {
	ID     string    `json:"id"`     // of the save
	File   string    `json:"file"`   // where it was written, on the host of the save
	At     time.Time `json:"at"`     // when
	Status Status    `json:"status"` // that the team had, and has again where the file is loaded
}

// Loaded states where a team that was loaded from a file comes from.
type Loaded struct {
	Save string    `json:"save"`           // the id of the save
	Copy bool      `json:"copy,omitempty"` // the team was copied, and may be at work elsewhere
	From string    `json:"from"`           // the server that it was saved on
	At   time.Time `json:"at"`             // when it was loaded
}

// Unique returns a name that no other team has on any server, even with the same ID or loaded from the same file.
func (t Team) Unique() string {
	of := fmt.Sprintf("%s %d", t.ID, t.CreatedAt.UnixNano())
	if t.Loaded != nil {
		of += fmt.Sprintf(" %d", t.Loaded.At.UnixNano())
	}
	return string(t.ID) + "-" + hashOf(of, 6)
}

// HasBranch reports whether each task of the present goal has a separate tree and is merged into the team's integration
// branch.
func (t Team) HasBranch() bool {
	return t.Branch != nil && t.Branch.Why == "" && t.Branch.Goal >= t.GoalNumber
}

// NextGoal returns the number of the present goal, or of the next one if there is none.
func (t Team) NextGoal() int {
	if t.Goal == "" {
		return t.GoalNumber + 1
	}
	return t.GoalNumber
}

// maxNames bounds the other names of a team; the oldest are dropped.
const maxNames = 8

// Answers reports whether name is a name of the team.
func (t Team) Answers(name string) bool {
	return name == string(t.ID) || slices.Contains(t.Names, name)
}

// Called returns the name that the team was given last, else its id.
func (t Team) Called() string {
	if len(t.Names) == 0 {
		return string(t.ID)
	}
	return t.Names[len(t.Names)-1]
}

// Call adds a name to the team, by which it is found from then on.
func (t *Team) Call(name string) {
	if name = Clean(strings.TrimSpace(name), 80); name == "" || t.Answers(name) {
		return
	}
	t.Names = append(slices.Clone(t.Names), name)
	t.Names = t.Names[max(0, len(t.Names)-maxNames):]
}

// GeneralRole returns the role of a member that is spawned without one: coder, or in a team without coder the first by
// name whose tools are not narrowed; "" if there is none.
func (t Team) GeneralRole() string {
	general := CanonicalRole("general-purpose")
	if _, ok := t.Roles[general]; ok {
		return general
	}
	for _, name := range slices.Sorted(maps.Keys(t.Roles)) {
		if r := t.Roles[name]; name != LeaderRole && (len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, unlimited)) {
			return name
		}
	}
	return ""
}

// Defaults of a team.
const (
	DefaultLease        = 30 * time.Second
	DefaultStall        = 15 * time.Minute
	DefaultMaxTeammates = 10
)

// MostTeammates bounds max_teammates: a leader's index and watchdog were measured with so many processes.
const MostTeammates = 1000

// Validate checks the fields that a person may set. Errors: InvalidArgument.
func (t Team) Validate() error {
	if err := checkText("the description", t.Description, MaxTextBytes); err != nil {
		return err
	}
	if err := checkText("the user_id", t.UserID, MaxTitleBytes); err != nil {
		return err
	}
	if err := checkText("the session_id", t.SessionID, MaxTitleBytes); err != nil {
		return err
	}
	if t.MaxTeammates < 0 || t.MaxTeammates > MostTeammates {
		return Errorf(InvalidArgument, "max_teammates of team %s is %d; it may be 0 to %d", t.ID, t.MaxTeammates, MostTeammates)
	}
	if err := t.Policy.Validate(); err != nil {
		return err
	}
	return t.Policies.Validate()
}

// AtWork reports whether the team works on a goal.
func (t Team) AtWork() bool { return t.Status == Active && t.Goal != "" }

// Dismissed reports whether the team's last end has dismissed m, and m has not left since: its process has ended
// without notice, or is about to leave.
func (t Team) Dismissed(m Member) bool {
	return m.AgentID != Leader && m.Backend != Person && m.State != Stopped && m.State != Unreadable && t.EndSeq > 0 && m.Revision <= t.EndSeq
}

// Recalls reports whether m returns before a new member of its role is made: it stopped before the present goal was
// set. A member that was stopped during the goal, or whose process was given up, returns only by its name. A member
// that left because it had no work returns.
func (t Team) Recalls(m Member) bool {
	return m.State == Stopped && m.Backend != Person && m.Program == "" && m.Revision < t.GoalSeq && (m.LastError == "" || m.PID == 0 || m.Idled)
}

// Lease returns how long a claim holds without a heartbeat of its holder.
func (t Team) Lease() time.Duration { return time.Duration(t.LeaseSeconds) * time.Second }

// Stall returns how long a member at work may make no progress before it counts as stalled.
func (t Team) Stall() time.Duration {
	if t.StallSeconds <= 0 {
		return DefaultStall
	}
	return time.Duration(t.StallSeconds) * time.Second
}

// Role returns the team's stored role of this name.
func (t Team) Role(name string) (Role, error) {
	name = CanonicalRole(name)
	if r, ok := t.Roles[name]; ok {
		return r, nil
	}
	return Role{}, unknownRole(name, t.Roles)
}

// Small is the entry of a team in the registry of all teams: its summary without opening it.
type Small struct {
	V      int    `json:"v"`
	ID     TeamID `json:"id"`
	Status Status `json:"status"`
	Of     uint64 `json:"of"` // revision of the Team record that this was taken from
	Op     string `json:"op"`

	// Workspace and Goal, its number, are the team's: a process that could not lead it tries
	// again immediately when one of them has become another.
	Workspace string `json:"workspace,omitempty"`
	Goal      int    `json:"goal,omitempty"`
}

// DecodeSmall decodes the entry of that team in the registry. For an unreadable entry it also returns the name.
func DecodeSmall(data []byte, id TeamID) (Small, error) {
	var s Small
	err := json.Unmarshal(data, &s)
	if err == nil && (s.ID != id || s.Status == "") {
		err = fmt.Errorf("it is no entry of team %s", id)
	}
	if err != nil {
		return Small{ID: id}, err
	}
	return s, nil
}

// Lease is the leader's lease on a team.
type Lease struct {
	Process     string `json:"process"` // host/pid and http address, for people
	Incarnation uint64 `json:"incarnation"`
	Cluster     string `json:"cluster,omitempty"` // the embedded cluster that the process ends with; "" = none
	N           uint64 `json:"n"`                 // grows with every renewal, so that each is a change
}
