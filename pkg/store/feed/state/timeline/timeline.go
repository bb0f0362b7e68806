// Package timeline folds the feed of a team (package feed) into a picture of why a goal took as long as it did: the activity of
// each member over time, the holders of each task over time, and the chain of tasks that ended last, each begun only after the
// one before it.
//
// It is pure: it reads nothing, and its clock is that of the entries. A time without entries is a gap or a span of kind unknown,
// never a guess. Package client reads the feed.
package timeline

import (
	"time"

	"agentteam/pkg/team"
)

// Timeline shows the activity of members between two times.
type Timeline struct {
	Goal     int         `json:"goal"`  // its number
	Begun    time.Time   `json:"begun"` // of the goal; From and To belong to the part that is shown
	Ended    time.Time   `json:"ended"` // of a goal under way: now
	From     time.Time   `json:"from"`
	To       time.Time   `json:"to"`
	Whole    bool        `json:"whole"` // no entry of that time is missing
	Sentence string      `json:"sentence"`
	Lanes    []Lane      `json:"lanes" nullable:"false"` // of the agents, in the order in which they were there, at most 1,000; people have none
	Tasks    []Bar       `json:"tasks" nullable:"false"` // a hold each, in the order of their beginnings
	Edges    []team.Edge `json:"edges" nullable:"false"` // from each dependency of a task that was held
	Critical []Stage     `json:"critical" nullable:"false"`
	Counts   []Count     `json:"counts" nullable:"false"` // of the tasks, after changes; at most 200
}

// Kind is the kind of an activity of a member.
type Kind string

// The kinds of spans.
const (
	Model   Kind = "model" // a call of its model
	Tool    Kind = "tool"  // a call of a tool
	Wait    Kind = "wait"  // for the reason in For
	Idle    Kind = "idle"  // it had nothing to do
	Unknown Kind = "unknown"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Model, Tool, Wait, Idle, Unknown} }

// Lane is a member over time. Where it has no span it was not in the team.
type Lane struct {
	AgentID team.AgentID     `json:"agent_id"`
	Role    string           `json:"role"`
	Color   string           `json:"color"`
	Spans   []Span           `json:"spans" nullable:"false"` // in order; none overlap
	Seconds map[Kind]float64 `json:"seconds"`                // of each kind, also of spans that were merged
}

// Span is a time in which a member had one activity.
type Span struct {
	Kind Kind         `json:"kind"`
	For  team.WaitFor `json:"for,omitempty"`  // of a wait
	Tool string       `json:"tool,omitempty"` // of a call
	Task team.TaskID  `json:"task,omitempty"` // that it held
	From time.Time    `json:"from"`
	To   time.Time    `json:"to"`
}

// like reports whether two spans have the same activity.
func (s Span) like(o Span) bool {
	return s.Kind == o.Kind && s.For == o.For && s.Tool == o.Tool && s.Task == o.Task
}

// Bar is one hold of a task by a member.
type Bar struct {
	Task    team.TaskID     `json:"task"`
	Title   string          `json:"title"`
	AgentID team.AgentID    `json:"agent_id"`
	Status  team.TaskStatus `json:"status"` // in which the hold ended; in_progress: it has not
	From    time.Time       `json:"from"`
	To      time.Time       `json:"to"`
}

// Stage is a task of the critical path: had it ended sooner, the last task could have.
type Stage struct {
	Task    team.TaskID  `json:"task"`
	AgentID team.AgentID `json:"agent_id"` // who held it last
	From    time.Time    `json:"from"`     // of its first hold
	To      time.Time    `json:"to"`
	After   After        `json:"after"`
	Lag     float64      `json:"lag"` // seconds between the end of the step before and its beginning
}

// After is the reason why a task of the critical path did not begin sooner.
type After string

// The reasons. Another member could have helped only where it is AfterMember.
const (
	AfterNothing    After = ""           // it is the first
	AfterDependency After = "dependency" // it depends on the step before
	AfterMember     After = "member"     // it was ready, and its member was busy with the step before
)

// Afters returns all reasons.
func Afters() []After { return []After{AfterNothing, AfterDependency, AfterMember} }

// Count is the number of tasks of each kind after a change.
type Count struct {
	At      time.Time `json:"at"`
	Blocked int       `json:"blocked"`
	Ready   int       `json:"ready"`
	Running int       `json:"running"`
	Done    int       `json:"done"`
	Failed  int       `json:"failed"`

	Cancelled int `json:"cancelled"`
}
