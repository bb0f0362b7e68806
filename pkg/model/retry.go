package model

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// longestAsked bounds the wait that an endpoint may ask for: one that asks for an hour is tried sooner, so that a
// lifted limit is noticed, and given up by Options.Attempts.
const longestAsked = 2 * time.Minute

// retryAfter returns how long the endpoint asks to wait; 0 if it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 { // OpenAI, Azure
		return capped(ms / 1000)
	}
	text := h.Get("Retry-After") // seconds or a date, RFC 9110 section 10.2.3
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return capped(s)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestAsked)
	}
	// OpenAI and Groq report two allowances, such as "x-ratelimit-reset-tokens: 6m0s", Anthropic four, each with a time.
	// Only an exhausted one delays the next request.
	var wait time.Duration
	for _, of := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+of) == "0" {
			if d, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + of)); err == nil {
				wait = max(wait, d)
			}
		}
		if h.Get("Anthropic-Ratelimit-"+of+"-Remaining") == "0" {
			if at, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+of+"-Reset")); err == nil {
				wait = max(wait, at.Sub(now))
			}
		}
	}
	return min(wait, longestAsked)
}

// capped returns so many seconds, at most longestAsked.
func capped(seconds float64) time.Duration {
	return time.Duration(min(seconds, longestAsked.Seconds()) * float64(time.Second))
}

// pause returns the wait after the n-th failed attempt: exponential backoff with full jitter, from half a second to
// half a minute, on top of the time that the endpoint asks for, so that a team's agents do not all return at the same
// time.
func pause(n int, asked time.Duration) time.Duration {
	ceiling := min(500*time.Millisecond<<min(n-1, 10), 30*time.Second)
	return asked + rand.N(ceiling)
}
