package team

import (
	"strings"
	"time"
)

// JobKind is the kind of a job.
type JobKind string

// The kinds of jobs.
const (
	JobSubagent JobKind = "subagent"
	JobCommand  JobKind = "command"
)

// Job is work of a member that runs in addition to its conversation: a subagent, or a command in the
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

// silentAfter is how long a background command may print nothing before its team no longer waits for it.
const silentAfter = 10 * time.Minute

// Holds reports whether the job keeps its owner's team from being quiet: a silent background command does
// not, nor a job that waits for a person's decision.
func (j Job) Holds() bool {
	switch {
	case j.Ended != "": // of which its owner does not know yet
		return true
	case j.Asked != "":
		return false
	}
	return j.Kind == JobSubagent || !j.Background || time.Duration(j.Still)*time.Second < silentAfter
}

// Subagent returns the name of the agent that does a job of owner; its journal has that name. No member can
// have it.
func Subagent(owner AgentID, id string) AgentID { return owner + "." + AgentID(id) }

// Owner returns the member that a belongs to: a itself, unless it is a subagent.
func (a AgentID) Owner() AgentID {
	owner, _, _ := strings.Cut(string(a), ".")
	return AgentID(owner)
}

// ParseConversation parses the name of an agent that has a conversation: a member, see [ParseAddress], or a
// subagent, such as coder-1.a1b2c3. Error: InvalidArgument.
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
