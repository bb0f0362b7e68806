package model

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	mostSilent      = 3  // tries of one call that end in silence
	mostBroken      = 2  // tries whose answer breaks off: each has cost a prompt
	mostFailedCalls = 4  // tries in which the endpoint cannot read what the model wrote as a call
	mostOnceMore    = 2  // tries of a request that is refused in words that nobody knows, or for its key or address
	mostAdapted     = 8  // other forms that one call is tried in
	mostStrays      = 10 // answers in a row that no model endpoint gives, of one that has given a turn
)

// patience counts the failed tries of one call and decides whether to try again.
type patience struct {
	attempts int  // tries of a call in all
	once     bool // another endpoint answers sooner than this one is back
	answered bool // the endpoint has given a turn before

	tried   int
	thrown  int // of those, tries whose prompt was read for nothing
	longest int // tokens of the longest of these prompts
	broken  int // of those, the ones that were not silent
	of      map[Reason]int
}

// failed counts a try.
func (p *patience) failed(f *failure) {
	if p.of == nil {
		p.of = map[Reason]int{}
	}
	p.tried++
	p.of[f.reason]++
	if f.wasted.WastedPrompt > 0 {
		p.thrown++
		p.longest = max(p.longest, f.wasted.WastedPrompt)
		if f.reason != Silent {
			p.broken++
		}
	}
}

// again returns how many tries a call with this failure may have, and how long to wait for the next one. ok is false if
// there is none.
func (p *patience) again(f *failure) (most int, wait time.Duration, ok bool) {
	wait = pause(p.tried, f.asked)
	byGateway := (f.reason == BadKey || f.reason == UnknownModel) && p.answered && !p.once
	switch {
	case f.again == "false":
		return p.tried, wait, false
	case f.advice == TryAgain:
		most = p.outage()
		return most, wait, p.tried < most
	case f.reason == FailedCall: // bad luck in sampling
		most = mostFailedCalls
	case f.reason == InvalidRequest: // it may be a gateway's, or one server's of many
		most, wait = mostOnceMore, time.Second+rand.N(time.Second)
	case byGateway: // gateways say so now and then
		most, wait = mostOnceMore, 2*time.Second
	case f.again == "true":
		most = mostOnceMore
	}
	most = min(most, p.attempts)
	return most, wait, p.of[f.reason] < most
}

// outage returns how many tries a call may have whose last one met an outage.
func (p *patience) outage() int {
	if p.once {
		return 1
	}
	most := p.attempts
	if silent := p.of[Silent]; silent > 0 {
		most = min(most, p.tried+mostSilent-silent)
	}
	if p.broken > 0 {
		most = min(most, p.tried+mostBroken-p.broken)
	}
	return most
}

// endpointHealth records the earlier answers of an endpoint; all views of a client share it. It is not stored: to a new
// process, an endpoint whose first answer is a page is not a model endpoint, and its agents park for half a minute. The
// journal names aliases, whose addresses may have changed, so it cannot vouch for an endpoint.
type endpointHealth struct {
	mu       sync.Mutex
	answered bool // it has given a turn
	strays   int  // answers since then that no model endpoint gives

	perByte float64 // tokens of a request for each of its bytes, of recent calls and rather more; 0: not known
}

// A request whose tokens were never counted has no more than one for so many bytes.
const fewestBytes = 3

// counted learns from a turn how many tokens the endpoint counts for a byte.
func (a *endpointHealth) counted(u Usage, request int) {
	if u.Estimated || u.PromptTokens == 0 || request == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := 1.02 * float64(u.PromptTokens) / float64(request)
	a.perByte = max(now, 0.9*a.perByte+0.1*now) // up at once, and down slowly
}

// mostTokens returns how many tokens a request of so many bytes has at most, by the counts of earlier ones.
func (a *endpointHealth) mostTokens(request int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(float64(request)*cmp.Or(a.perByte, 1.0/fewestBytes)) + 1
}

// turn records that the endpoint has given a turn.
func (a *endpointHealth) turn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered, a.strays = true, 0
}

func (a *endpointHealth) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

// judge turns an answer that is not a model endpoint's into an outage if this endpoint has given a turn: a gateway's
// page, a login's redirect. After several in a row it stays as it is.
func (a *endpointHealth) judge(f *failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.reason != NoEndpoint || !a.answered {
		return
	}
	if a.strays++; a.strays < mostStrays {
		f.advice = TryAgain
	}
}
