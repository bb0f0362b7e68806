package rehearsal

import (
	"path"
	"regexp"
	"text/template"
	"time"
)

// Script says what every agent says. It never changes once parsed.
type Script struct {
	model  string
	agents []agent
	strict *strictness // nil: as all are
}

// agent plays all who fit its match; the first that fits plays.
type agent struct {
	match asker // shell patterns; "" fits any
	rules []rule
}

// rule is a line of action; the first that applies gives the reply.
type rule struct {
	name   string
	since  *regexp.Regexp // where its scope begins; nil: at the beginning
	unless *regexp.Regexp
	newest *regexp.Regexp
	steps  []step
}

// step is one turn of the agent.
type step struct {
	say     *template.Template // may be nil beside calls
	calls   []call
	await   *regexp.Regexp     // closed until this is heard; nil: open
	waiting *template.Template // what is said while closed
	fault   *fault             // nil: none
}

type call struct {
	tool string
	args any // map[string]any, []any, *template.Template for a string, or another scalar
}

// fault is what goes wrong before a step is played as written.
type fault struct {
	status     int           // answer with this error instead; 0: answer
	refusal    *refusal      // answer with this error instead; nil: answer
	inStream   bool          // the refusal comes in the middle of an answer
	retryAfter time.Duration // with the status; 0: no such header
	cut        bool          // break off in the middle
	malformed  bool          // only the first call, its arguments cut
	delay      time.Duration // before the first byte
	times      int           // how often, for each asker; at least 1
}

// asker is who sent a request.
type asker struct {
	name, role, team string
}

func (a agent) plays(who asker) bool {
	return fits(a.match.name, who.name) && fits(a.match.role, who.role) && fits(a.match.team, who.team)
}

func fits(pattern, s string) bool {
	ok, _ := path.Match(pattern, s) // the parser has checked the pattern
	return ok || pattern == ""
}
