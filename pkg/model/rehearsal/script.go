package rehearsal

import (
	"path"
	"regexp"
	"time"
)

// Script states the answers of every agent. It does not change once parsed.
type Script struct {
	model  string
	agents []agent
}

// document is a script as it is written.
type document struct {
	Model  string  `yaml:"model" minLength:"1"`
	Agents []agent `yaml:"agents" required:"a list of who does what" minItems:"1"`
}

// agent plays the askers that match; the first agent that matches plays.
type agent struct {
	Match match  `yaml:"match"`
	Rules []rule `yaml:"rules" required:"a list of what the agent does" minItems:"1"`
}

type match struct {
	Name pattern `yaml:"name"`
	Role pattern `yaml:"role"`
	Team pattern `yaml:"team"`
}

// rule is a sequence of steps; the first rule that applies gives the reply.
type rule struct {
	Name   ruleName       `yaml:"name" required:"a text of a-z, 0-9 and -"`
	Since  *regexp.Regexp `yaml:"since"` // where its scope begins; nil: at the beginning
	Unless *regexp.Regexp `yaml:"unless"`
	Newest *regexp.Regexp `yaml:"newest"`
	Say    line           `yaml:"say"` // in place of one step
	Steps  []step         `yaml:"steps" minItems:"1"`
}

// step is one turn of the agent.
type step struct {
	Say     line           `yaml:"say"` // may be absent beside calls
	Calls   []call         `yaml:"calls" minItems:"1"`
	Await   *regexp.Regexp `yaml:"await"`   // closed until this is heard; nil: open
	Waiting line           `yaml:"waiting"` // what is said while closed
	Fault   *fault         `yaml:"fault"`   // nil: none
}

type call struct {
	Tool string    `yaml:"tool" required:"the name of a tool" minLength:"1"`
	Args arguments `yaml:"args"`
}

// fault is a fault that is played before the step itself.
type fault struct {
	Status     int           `yaml:"status" minimum:"400" maximum:"599"`  // answer with this error instead; 0: answer
	Error      errorName     `yaml:"error"`                               // answer with this error instead; "": answer
	InStream   bool          `yaml:"in_stream"`                           // that error comes in the middle of an answer
	RetryAfter time.Duration `yaml:"retry_after"`                         // with either error; 0: no such header
	Delay      time.Duration `yaml:"delay"`                               // before the first byte
	Times      int           `yaml:"times" minimum:"1" maximum:"1000000"` // how often, for each asker; at least 1

	// How it spoils the answer. Those that spoil a call leave a turn with the step's first
	// call only, which does not count as played.
	Cut       bool `yaml:"cut"`       // it breaks off in the middle
	Malformed bool `yaml:"malformed"` // a call whose arguments are cut to half
	NoObject  bool `yaml:"no_object"` // a call whose arguments are JSON, but no object
	OddIDs    bool `yaml:"odd_ids"`   // ids of calls that other endpoints refuse
	Empty     bool `yaml:"empty"`     // a turn that says nothing
	Length    bool `yaml:"length"`    // half the text and no call, since the limit of the answer was met
	Page      bool `yaml:"page"`      // a page for people, with status 200, as a gateway gives

	refusal *refusal // that Error names
}

// spoilsCall reports whether the step must have calls.
func (f fault) spoilsCall() bool { return f.Malformed || f.NoObject || f.OddIDs }

// asker is the sender of a request.
type asker struct {
	name, role, team string
}

func (a agent) plays(who asker) bool {
	return a.Match.Name.fits(who.name) && a.Match.Role.fits(who.role) && a.Match.Team.fits(who.team)
}

func (p pattern) fits(s string) bool {
	ok, _ := path.Match(string(p), s) // the parser has checked the pattern
	return ok || p == ""
}
