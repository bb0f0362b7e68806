// Package audit reads the audit log of tool calls: caller, tool, time, sandbox, approval and
// outcome.
//
// It derives its entries from the journals, where each call is recorded with its result; agents store nothing extra
// while they work. Before a journal is trimmed, [Keep] stores the entries of the removed records in the team's object
// store. Entries last as long as the team's storage.
//
// An entry holds digests of a call's texts, not the texts. So it can prove that a known text was the one, and leaks no
// secret. The journals hold the texts until they are trimmed.
package audit

import (
	"cmp"
	"time"

	"agentteam/pkg/team"
)

// Outcome is the result of a call.
type Outcome string

// The outcomes.
const (
	OK         Outcome = "ok"
	Failed     Outcome = "error"      // or it was refused: see Entry.Code
	NotRun     Outcome = "not_run"    // see [team.CallNotRun]
	Unknown    Outcome = "unknown"    // its process ended while it may have been under way, or it is under way
	Unreadable Outcome = "unreadable" // a record that cannot be read, or was set aside: there may have been a call
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{OK, Failed, NotRun, Unknown, Unreadable} }

// Entry is one call of a tool by an agent.
type Entry struct {
	Seq         uint64        `json:"seq"`         // of the record in the stream of journals; entries are in its order
	At          time.Time     `json:"at"`          // when it ended, by its process's clock; of an unknown outcome, when it was asked for
	Agent       team.AgentID  `json:"agent_id"`    // the caller
	Incarnation uint64        `json:"incarnation"` // of the agent; the leader's is its term
	RunID       string        `json:"run_id,omitempty"`
	Task        team.TaskID   `json:"task_id,omitempty"` // that the agent held, or that the call has ended its hold of
	Call        string        `json:"call_id,omitempty"`
	Tool        string        `json:"tool,omitempty"`      // by its own name
	Called      string        `json:"called,omitempty"`    // the name that the model has called, if that is another
	Arguments   string        `json:"arguments,omitempty"` // digest of what the model wrote, see [team.DigestOf]; "" = not known
	Result      string        `json:"result,omitempty"`    // digest of the result that the model got; "" = none yet
	Outcome     Outcome       `json:"outcome"`
	Code        team.Code     `json:"code,omitempty"`      // of an error
	Exit        *int          `json:"exit_code,omitempty"` // of its command; -1: a signal ended it; absent: it ran none
	Sandbox     team.Sandbox  `json:"sandbox,omitempty"`   // the level of the sandbox of commands; "" = not known
	Rule        string        `json:"rule,omitempty"`      // of the permissions that decided; "" = none
	Grants      []team.Grant  `json:"grants,omitempty"`    // the approvals, that by which a person has added Rule among them, and who gave them
	Change      *team.Change  `json:"change,omitempty"`    // of a file, in a folder that members share
	Also        []team.Change `json:"also,omitempty"`      // of further files
}

// Compare returns a negative number if e is before o in the order of entries, zero if both have one place.
func (e Entry) Compare(o Entry) int {
	return cmp.Or(cmp.Compare(e.Seq, o.Seq), cmp.Compare(e.Call, o.Call))
}

// maxTool bounds the characters of a tool's name in an entry: the model may have made the name up.
const maxTool = 100
