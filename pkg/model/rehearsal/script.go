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
	spoils     spoil         // how it spoils the answer; "": not at all
	delay      time.Duration // before the first byte
	times      int           // how often, for each asker; at least 1
}

// spoil is a way in which an answer goes wrong; its word is the fault's key.
type spoil string

// The ways. Those that spoil a call leave a turn with the step's first call only, which
// does not count as played.
const (
	broken    spoil = "cut"       // it breaks off in the middle
	malformed spoil = "malformed" // a call whose arguments are cut to half
	noObject  spoil = "no_object" // a call whose arguments are JSON, but no object
	oddIDs    spoil = "odd_ids"   // ids of calls that other endpoints refuse
	empty     spoil = "empty"     // a turn that says nothing
	length    spoil = "length"    // half the text and no call, since the limit of the answer was met
	page      spoil = "page"      // a page for people, with status 200, as a gateway gives
)

var spoils = []spoil{broken, malformed, noObject, oddIDs, empty, length, page}

// ofCalls reports whether the step must have calls.
func (s spoil) ofCalls() bool { return s == malformed || s == noObject || s == oddIDs }

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
