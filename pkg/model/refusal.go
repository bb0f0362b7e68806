package model

import (
	"fmt"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// Advice states how to react to a call without a turn.
type Advice string

// The kinds of advice.
const (
	// TryAgain: an outage. Keep the state, back off, and try again.
	TryAgain Advice = "try_again"
	// Park: the endpoint refuses this account, key or model, whatever the request. A person has to fix that; try again
	// at intervals.
	Park Advice = "park"
	// Compact: the conversation is larger than the model's window. Try again with less.
	Compact Advice = "compact"
	// GiveUp: the endpoint refuses this request, and would again. Another conversation may pass.
	GiveUp Advice = "give_up"
)

// Reason states why a call returned no turn; a label value of metrics.
type Reason string

// The reasons, each with its advice.
const (
	RateLimited    Reason = "rate_limited"    // TryAgain: 429
	ServerError    Reason = "server_error"    // TryAgain: 408, 409, 5xx, overloaded
	Connection     Reason = "connection"      // TryAgain: no answer at all
	Incomplete     Reason = "incomplete"      // TryAgain: the answer ended or broke before its finish reason
	Silent         Reason = "silent"          // TryAgain: nothing came for too long
	BadKey         Reason = "bad_key"         // Park: 401, 403
	NoCredit       Reason = "no_credit"       // Park: 402, insufficient_quota
	UnknownModel   Reason = "unknown_model"   // Park: 404, 410, no such address or model
	NoTools        Reason = "no_tools"        // Park: the model, or its endpoint as it was started, takes no tools
	NoEndpoint     Reason = "no_endpoint"     // Park: 405, 501, a redirect, a page for people: no model endpoint; TryAgain from one that has given a turn, but for several in a row
	ContextLength  Reason = "context_length"  // Compact: 413, context_length_exceeded
	ContentFilter  Reason = "content_filter"  // GiveUp: what was said is not let through
	FailedCall     Reason = "failed_call"     // GiveUp: what the model wrote could not be read as a tool call
	InvalidRequest Reason = "invalid_request" // GiveUp: 400, 422 and the rest
)

// Retry is a failed call that is tried again.
type Retry struct {
	Endpoint  string // as errors name it
	Reason    Reason
	Status    int // of the answer; 0: none came
	Tried, Of int
	Wait      time.Duration // until the next try
}

// String describes it for people, in one line and without the endpoint's answer, which may quote the prompt.
func (r Retry) String() string {
	reason := strings.ReplaceAll(string(r.Reason), "_", " ")
	if r.Status != 0 {
		reason += fmt.Sprintf(", status %d", r.Status)
	}
	return fmt.Sprintf("the model endpoint %s failed (%s), try %d of %d follows after %v", r.Endpoint, reason, r.Tried+1, r.Of, r.Wait.Round(100*time.Millisecond))
}

// Refusal is the error of a call that returned no turn although the caller did not cancel it. It has the code
// [team.Unavailable] if its advice is TryAgain, else [team.InvalidArgument], and a hint if a person can act.
type Refusal struct {
	Advice  Advice
	Reason  Reason
	Status  int    // of the answer; 0: none came
	Window  int    // of the model in tokens, if its endpoint has told it; 0 if another refused in its place
	Used    Usage  // what the tries have cost, all of it wasted
	Thrown  int    // tries whose prompt was read, or may have been, for nothing
	Longest int    // tokens of the longest prompt of those
	Alias   string // of the endpoint, as the process's settings name it
	Err     error  // one line for people, without the key

	// OverBudget: the call was not made, since it would exceed a budget. Keep the state, and wait until a person has
	// raised it.
	OverBudget bool
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// explain returns the error for people: the meaning of the failure for the endpoint, and a hint.
func (c *Client) explain(f *failure) error {
	where := fmt.Sprint(f.status)
	if f.status < 300 {
		where = "in an answer with status " + where
	}
	key := c.opt.keySetting()
	address, model := c.opt.endpointSettings()
	refused := func(what string) *team.Error {
		return team.Errorf(team.InvalidArgument, "the model endpoint %s %s (%s): %w", c.name, what, where, f.err)
	}
	switch f.reason {
	case BadKey:
		if f.status == 401 { // its text may quote a part of the key
			return team.Errorf(team.InvalidArgument, "the model endpoint %s refuses the key (401)", c.name).WithHint("check %s", key)
		}
		return refused("refuses the key").WithHint("check %s and what it may use", key)
	case NoCredit:
		return refused("has no credit for this account").WithHint("check the account that %s belongs to, and its limits", key)
	case UnknownModel:
		return refused("knows no such address or model").WithHint("check %s, which usually ends in /v1, and %s", address, model)
	case NoTools:
		return refused("takes no tools for this model, and agents work by tools").
			WithHint("set %s to a model that can call tools; llama.cpp needs --jinja, vLLM --enable-auto-tool-choice and --tool-call-parser", model)
	case NoEndpoint:
		return team.Errorf(team.InvalidArgument, "%s is no model endpoint: it answered %d: %w", c.name, f.status, f.err).
			WithHint("check %s; it usually ends in /v1", address)
	case ContextLength:
		return refused("finds the conversation too long")
	case ContentFilter:
		return refused("does not let the content through")
	case FailedCall:
		return refused("could not read the tool call that the model wrote")
	}
	return refused("refuses the request")
}
