package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

// Client calls one endpoint. It is safe for concurrent use and needs no closing.
type Client struct {
	opt     Options
	base    *url.URL
	name    string // the endpoint for messages: its address without a password
	dialect speaker
	http    *http.Client
	secrets secrets
	metrics *metrics
	known   *endpointHealth
}

// speaker is the part of a dialect that a client needs.
type speaker interface {
	encode(Request) (call, error)
	reader(req Request, onDelta func(string)) turnReader
	learn(apiError) bool
	told(window int)
	taught() bool
	unlearn()
	origin(model string) string
	limits() Limits
	patches() bool
}

// New returns a client of the endpoint in opt; it does not connect yet.
//
// Errors: [team.InvalidArgument] naming the setting that is missing or wrong
// (OPENAI_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL or the profile).
func New(opt Options) (*Client, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := newDialect(opt)
	if err != nil {
		return nil, err
	}
	u, _ := url.Parse(opt.BaseURL) // withDefaults has parsed it before
	return &Client{opt: opt, base: u, name: bare(u), dialect: d, http: newHTTP(opt), secrets: secretsOf(opt, u), metrics: newMetrics(nil), known: new(endpointHealth)}, nil
}

// bare is u without user, password and query, any of which may hold a secret.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// newHTTP returns a client whose connections many agents share.
func newHTTP(o Options) *http.Client {
	over := o.Transport
	if over == nil {
		dialer := &net.Dialer{Timeout: o.Connect}
		over = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: o.Connect,
			ForceAttemptHTTP2:   true,
			// A dead connection would otherwise block every call that shares it until each times out.
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			MaxIdleConnsPerHost: 256, // the default of 2 would make a team connect anew for most turns
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true, // proxies that compress a stream hold it back
		}
	}
	return &http.Client{
		Transport: over,
		// A redirected request would take its service keys to another host, and most redirects turn a POST into a GET. A
		// person can correct the address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Counting returns a client of the same endpoint that counts in the metrics of reg.
func (c *Client) Counting(reg prometheus.Registerer) *Client {
	counting := *c
	counting.metrics = newMetrics(reg)
	return &counting
}

// Limits returns the limits of one call, as far as they are known: an error of the endpoint may have named more than
// the settings.
func (c *Client) Limits() Limits { return c.dialect.limits() }

// Patches reports whether the model edits files best by patches, in the format of apply_patch.
func (c *Client) Patches() bool { return c.dialect.patches() }

// Complete requests the next turn and blocks until the endpoint has finished it.
//
// In an outage it tries again, after a growing random backoff or the time that the endpoint asks for: see [Reason]. It
// asks a silent endpoint twice more, and once more if an answer breaks off, since each try may be billed. A refusal
// that may be chance is tried once more: unknown words, or a key or an address that was good before; a call that the
// endpoint cannot parse three times. An endpoint that has given a turn and then answers like none counts as away.
//
// If the form of a request is refused, it is tried once in each other form that the error suggests, and at last, if
// earlier calls had taught a form, in the first: a lesson may no longer be true. The usage counts discarded answers as
// wasted.
//
// onDelta, if not nil, gets the text as it arrives, one call at a time, before Complete returns. It is a hint for
// watchers: a discarded try has shown its text already, and the next one, before which req.OnTry is called, shows it
// again.
//
// Errors: a [*Refusal], with the advice; ctx's, within 100 ms of its end.
func (c *Client) Complete(ctx context.Context, req Request, onDelta func(text string)) (Reply, error) {
	req.Model = cmp.Or(req.Model, c.opt.Model)
	req.MaxTokens = cmp.Or(req.MaxTokens, c.opt.MaxTokens)
	if onDelta == nil {
		onDelta = func(string) {}
	}
	began := time.Now()
	reply, err := c.complete(ctx, req, onDelta)
	c.metrics.call(reply, err, time.Since(began))
	return reply, err
}

func (c *Client) complete(ctx context.Context, req Request, onDelta func(string)) (Reply, error) {
	var wasted Usage
	learned := 0
	var refused *failure // of the request in the form of the lessons
	p := patience{attempts: c.opt.Attempts, once: req.Once, answered: c.known.known()}
	for {
		q, err := c.dialect.encode(req)
		if err != nil {
			return Reply{}, &Refusal{Advice: GiveUp, Reason: InvalidRequest, Used: wasted, Err: err}
		}
		if req.Ready != nil {
			if err := req.Ready(); err != nil {
				return Reply{}, err
			}
		}
		used, err := c.metered(ctx, req, len(q.body), wasted)
		if err != nil {
			return Reply{}, err
		}
		reply, fail := c.attempt(ctx, req, q, onDelta)
		if fail == nil {
			used(reply.Usage)
			c.known.turn()
			c.known.counted(reply.Usage, len(q.body))
			if req.unlearnt {
				c.dialect.unlearn()
			}
			reply.Usage = reply.Usage.Add(wasted)
			return reply, nil
		}
		used(fail.wasted)
		wasted = wasted.Add(fail.wasted)
		c.metrics.wasted(fail.wasted)
		if ctx.Err() != nil {
			return Reply{}, ctx.Err()
		}
		if learned < mostAdapted && c.reforms(req, q, fail) {
			learned++
			c.metrics.retries.WithLabelValues(otherForm).Inc()
			c.opt.Logger.InfoContext(ctx, "model endpoint refuses the form of a request, trying another", "status", fail.status)
			continue
		}
		c.known.judge(fail)
		p.failed(fail)
		most, wait, ok := p.again(fail)
		if !ok && learned == 0 && !req.unlearnt && fail.stale() && c.dialect.taught() {
			req.unlearnt, refused = true, fail
			continue
		}
		if !ok {
			return Reply{}, c.refusal(cmp.Or(refused, fail), &p, wasted)
		}
		c.retries(ctx, req, fail, Retry{Endpoint: c.name, Reason: fail.reason, Status: fail.status, Tried: p.tried, Of: most, Wait: wait})
		if !shutdown.Sleep(ctx, wait) {
			return Reply{}, ctx.Err()
		}
	}
}

// metered calls req.Meter, and then req.OnTry, before a try of a request of so many bytes. wasted is what the tries before have used.
func (c *Client) metered(ctx context.Context, req Request, bytes int, wasted Usage) (used func(Usage), err error) {
	if req.OnTry != nil {
		defer func() {
			if err == nil {
				req.OnTry()
			}
		}()
	}
	if req.Meter == nil {
		return func(Usage) {}, nil
	}
	most := Usage{PromptTokens: c.known.mostTokens(bytes), CompletionTokens: cmp.Or(req.MaxTokens, c.Limits().MaxOutput)}
	if window := c.Limits().Window; window > 0 { // a longer prompt is refused; images have many bytes and few tokens
		most.PromptTokens = min(most.PromptTokens, window)
	}
	used, err = req.Meter(ctx, "", most)
	if r, ok := errors.AsType[*Refusal](err); ok {
		refused := *r
		refused.Used = wasted.Add(r.Used)
		err = &refused
	}
	return used, err
}

// retries reports a failed try that another one follows.
func (c *Client) retries(ctx context.Context, req Request, fail *failure, r Retry) {
	c.metrics.retries.WithLabelValues(string(r.Reason)).Inc()
	// Not the error's text: an endpoint may quote the prompt in it.
	c.opt.Logger.WarnContext(ctx, "model call failed, trying again", "reason", r.Reason, "status", r.Status, "attempt", r.Tried, "wait", r.Wait)
	c.opt.Logger.DebugContext(ctx, "model call failed", "err", fail.err)
	if req.OnRetry != nil {
		req.OnRetry(r)
	}
}

// reforms lets the dialect learn from the failure of q, and reports whether req would now be encoded differently:
// without a field, or, since the endpoint has named its window, with a lower limit of the answer.
func (c *Client) reforms(req Request, q call, fail *failure) bool {
	if fail.window > 0 {
		c.dialect.told(fail.window)
	}
	switch {
	case !fail.form(), fail.reason == FailedCall: // its words are about what the model wrote
		return false
	case c.dialect.learn(fail.said):
		return true
	case fail.window == 0:
		return false
	}
	next, err := c.dialect.encode(req)
	return err == nil && !bytes.Equal(next.body, q.body)
}

// refusal returns the error of a call that ended with fail after the tries that p has counted.
func (c *Client) refusal(fail *failure, p *patience, used Usage) *Refusal {
	err := c.explain(fail)
	switch {
	case fail.advice == TryAgain && p.tried == 1:
		err = team.Errorf(team.Unavailable, "the model endpoint %s failed: %w", c.name, fail.err)
	case fail.advice == TryAgain:
		err = team.Errorf(team.Unavailable, "the model endpoint %s failed %d times, the last time: %w", c.name, p.tried, fail.err)
	}
	return &Refusal{Advice: fail.advice, Reason: fail.reason, Status: fail.status, Window: fail.window, Used: used, Thrown: p.thrown, Longest: p.longest, Err: err}
}
