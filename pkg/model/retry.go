package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"agentteam/pkg/team"
)

// Why a call is tried again; the label values of a metric.
const (
	rateLimited = "rate_limited" // 429
	serverError = "server_error" // 408, 409, 5xx
	connection  = "connection"   // no answer at all
	incomplete  = "incomplete"   // the stream ended or broke before its finish reason
	silent      = "silent"       // no byte for too long
)

// failure is an attempt that gave no turn.
type failure struct {
	retry      string        // why another attempt may help; "" if none will
	retryAfter time.Duration // what the endpoint asks for, or 0
	status     int           // of the answer, or 0
	err        error         // one line, without the key
}

// failed judges err, which ended the exchange x before a finish reason.
func (c *Client) failed(ctx context.Context, x *exchange, err error) *failure {
	f := &failure{status: x.status, err: errors.New(c.line(err))}
	switch s := x.status; {
	case context.Cause(ctx) == errSilent:
		f.retry, f.err = silent, errSilent
	case s == 0:
		f.retry = connection
	case s == http.StatusTooManyRequests:
		f.retry, f.retryAfter = rateLimited, retryAfter(x.header, time.Now())
		f.err = fmt.Errorf("it answered %d: %w", s, f.err)
	case s == http.StatusRequestTimeout || s == http.StatusConflict || s >= 500:
		f.retry, f.retryAfter = serverError, retryAfter(x.header, time.Now())
		f.err = fmt.Errorf("it answered %d: %w", s, f.err)
	case s == http.StatusUnauthorized: // its text may quote a part of the key
		f.err = team.Errorf(team.InvalidArgument, "the model endpoint %s refuses the key (401)", c.name).
			WithHint("check OPENAI_API_KEY")
	case s == http.StatusForbidden:
		f.err = team.Errorf(team.InvalidArgument, "the model endpoint %s refuses the key (403): %w", c.name, f.err).
			WithHint("check OPENAI_API_KEY and what it may use")
	case s == http.StatusNotFound:
		f.err = team.Errorf(team.InvalidArgument, "the model endpoint %s knows no such address or model (404): %w", c.name, f.err).
			WithHint("check OPENAI_BASE_URL, which usually ends in /v1, and OPENAI_MODEL")
	case s >= 400:
		f.err = team.Errorf(team.InvalidArgument, "the model endpoint %s refuses the request (%d): %w", c.name, s, f.err)
	case errors.Is(err, io.EOF):
		f.retry, f.err = incomplete, fmt.Errorf("the answer (%s) ended without a finish reason", x.header.Get("Content-Type"))
	default:
		f.retry, f.err = incomplete, fmt.Errorf("the answer broke off: %w", f.err)
	}
	return f
}

// line is what err says, fit for one line of a terminal and free of the key,
// which some endpoints quote.
func (c *Client) line(err error) string {
	text := err.Error()
	var told *openai.APIError
	var plain *openai.RequestError
	var request *url.Error // repeats the address
	switch {
	case errors.As(err, &told):
		text = told.Message
	case errors.As(err, &plain):
		text = string(plain.Body)
	case errors.As(err, &request):
		text = request.Err.Error()
	}
	if c.opt.APIKey != "" {
		text = strings.ReplaceAll(text, c.opt.APIKey, "***")
	}
	text = strings.Join(strings.Fields(text), " ")
	if short := []rune(text); len(short) > 300 {
		text = string(short[:300]) + "..."
	}
	return text
}

// longestAsked caps Retry-After: an endpoint that asks for an hour is asked again
// sooner, so that a lifted limit is noticed, and given up by Options.Attempts.
const longestAsked = 2 * time.Minute

// retryAfter reads the header of that name, which holds seconds or a date
// (RFC 9110 section 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return time.Duration(min(s, longestAsked.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestAsked)
	}
	return 0
}

// pause is how long to wait after the n-th failed attempt: exponential backoff
// with full jitter, from half a second to half a minute, on top of what the
// endpoint asks for, so that a team's agents do not all come back at once.
func pause(n int, asked time.Duration) time.Duration {
	ceiling := min(500*time.Millisecond<<min(n-1, 10), 30*time.Second)
	return asked + rand.N(ceiling)
}

// sleep waits for d and reports whether it did; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
