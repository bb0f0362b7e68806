package team

import (
	"strings"
	"time"
)

// JobKind is what a job is.
type JobKind string

// The kinds of jobs.
const (
	JobSubagent JobKind = "subagent"
	JobCommand  JobKind = "command"
)

// Job is work that a member has under way beside its conversation: a subagent, or a command in the
// background. It ends with its owner.
type Job struct {
	ID         string    `json:"id"`                   // "a" of a subagent or "b", and six hexadecimal digits
	Kind       JobKind   `json:"kind"`                 // subagent or command
	About      string    `json:"about"`                // its description, or the command, in short
	Type       string    `json:"type,omitempty"`       // of a subagent: the role that it plays
	Background bool      `json:"background,omitempty"` // its owner does not wait for it
	Task       TaskID    `json:"task,omitempty"`       // that its owner held when it began
	Since      time.Time `json:"since"`
	Still      int       `json:"still,omitempty"`  // seconds without output or progress, by its process's clock
	Turns      uint64    `json:"turns,omitempty"`  // of a subagent
	Tokens     int       `json:"tokens,omitempty"` // that these have used
	Asked      string    `json:"asked,omitempty"`  // id of the request on which a person is to decide before it continues
	Ended      string    `json:"ended,omitempty"`  // how it has ended, such as "exit status 1"; "" = it runs
}

// silentAfter is for how long a command in the background may print nothing until its team does not
// wait for it any more.
const silentAfter = 10 * time.Minute

// Holds reports whether the owner's team waits for the job before it counts as quiet: not for a
// command that is silent, nor for what does nothing before a person has decided.
func (j Job) Holds() bool {
	switch {
	case j.Ended != "": // of which its owner does not know yet
		return true
	case j.Asked != "":
		return false
	}
	return j.Kind == JobSubagent || !j.Background || time.Duration(j.Still)*time.Second < silentAfter
}

// Subagent is the name of the agent that does a job of owner: its journal has that name. No member
// can have it.
func Subagent(owner AgentID, id string) AgentID { return owner + "." + AgentID(id) }

// Owner is the member whose agent a is: a itself, unless it is a subagent.
func (a AgentID) Owner() AgentID {
	owner, _, _ := strings.Cut(string(a), ".")
	return AgentID(owner)
}

// ParseConversation reads the name of an agent that has a conversation, as people write it: that of
// a member, see [ParseAddress], or of a subagent, such as coder-1.a1b2c3. Error: InvalidArgument.
func ParseConversation(s string) (a AgentID, id TeamID, err error) {
	name, of, with := strings.Cut(s, "@")
	owner, job, sub := strings.Cut(name, ".")
	if with {
		owner += "@" + of
	}
	a, id, err = ParseAddress(owner)
	if err == nil && sub {
		if err = checkName("name of a subagent", job); err == nil {
			a = Subagent(a, job)
		}
	}
	return a, id, err
}
