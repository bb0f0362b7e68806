package team

import "time"

// Status is where a team stands.
type Status string

// The statuses of a team. Only an active one is led.
const (
	Active       Status = "active"
	TeamFinished Status = "finished"
	TeamFailed   Status = "failed"
	TeamStopped  Status = "stopped"
)

// Respawn is what the watchdog does about a lost member.
type Respawn string

// The respawn policies; the zero value means RespawnAlways.
const (
	RespawnAlways  Respawn = "respawn" // start it again, with its conversation
	RespawnRelease Respawn = "release" // free its task and leave it at that
)

// Policies are the choices a team makes; the zero value of each is its first.
type Policies struct {
	Create   string  `json:"create"`  // all | leader: who may create tasks
	Respawn  Respawn `json:"respawn"` // respawn | release | ask
	Approver string  `json:"approver"`
}

// Team is the record of a team, under the key team of its bucket.
type Team struct {
	V            int             `json:"v"`
	ID           TeamID          `json:"id"`
	Description  string          `json:"description"`
	Status       Status          `json:"status"`
	Goal         string          `json:"goal"`
	GoalNumber   int             `json:"goal_number"`        // how many goals it has had
	GoalSeq      uint64          `json:"goal_seq,omitempty"` // of the bucket when the goal was set: what was written since may be for it
	Roles        map[string]Role `json:"roles"`
	Policies     Policies        `json:"policies"`
	LeaseSeconds int             `json:"lease_seconds"`
	MaxTeammates int             `json:"max_teammates"`
	Workspace    string          `json:"workspace"`
	Summary      string          `json:"summary,omitempty"`
	CreatedBy    AgentID         `json:"created_by"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	FinishedAt   *time.Time      `json:"finished_at,omitempty"`

	Revision uint64 `json:"-"`
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// Defaults of a team.
const (
	DefaultLease        = 30 * time.Second
	DefaultMaxTeammates = 10
)

// Lease is how long a claim holds without a beat of its holder.
func (t Team) Lease() time.Duration { return time.Duration(t.LeaseSeconds) * time.Second }

// Role returns the role of this name, as the team has stored it.
func (t Team) Role(name string) (Role, error) {
	name = CanonicalRole(name)
	if r, ok := t.Roles[name]; ok {
		return r, nil
	}
	return Role{}, unknownRole(name, t.Roles)
}

// Small is what is known of a team without opening it: the record in the
// registry of all teams.
type Small struct {
	V      int    `json:"v"`
	ID     TeamID `json:"id"`
	Status Status `json:"status"`
	Of     uint64 `json:"of"` // revision of the Team record that this was taken from
	Op     string `json:"op"`
}

// Lead is the leader's lease on a team.
type Lead struct {
	Process     string `json:"process"` // host/pid and http address, for people
	Incarnation uint64 `json:"incarnation"`
	N           uint64 `json:"n"` // grows with every renewal, so that each is a change
}
