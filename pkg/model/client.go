package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sashabaranov/go-openai"

	"agentteam/pkg/team"
)

// Client asks one endpoint. It is safe for concurrent use and needs no closing.
type Client struct {
	opt     Options
	name    string // the endpoint for messages: its address without a password
	api     *openai.Client
	wire    *wire
	dialect *dialect
	metrics *metrics
}

// New returns a client of the endpoint in opt; it does not connect yet.
//
// Errors: [team.InvalidArgument] naming the setting that is missing or wrong
// (OPENAI_MODEL, OPENAI_API_KEY or OPENAI_BASE_URL).
func New(opt Options) (*Client, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := newDialect(opt)
	if err != nil {
		return nil, err
	}
	w := &wire{base: http.DefaultTransport}
	cfg := openai.DefaultConfig(opt.APIKey)
	cfg.BaseURL = opt.BaseURL
	cfg.HTTPClient = &http.Client{Transport: w}
	// Endpoints under load send a comment line every few seconds to keep the
	// connection; the SDK gives up after 300 of them. Silence, not their number,
	// is what ends our patience, but a bound must be: the SDK collects them.
	cfg.EmptyMessagesLimit = 100_000

	u, _ := url.Parse(opt.BaseURL) // withDefaults has parsed it before
	return &Client{opt: opt, name: u.Redacted(), api: openai.NewClientWithConfig(cfg), wire: w, dialect: d, metrics: newMetrics(opt.Registry)}, nil
}

// Counting returns a client of the same endpoint that counts in the metrics of reg.
func (c *Client) Counting(reg prometheus.Registerer) *Client {
	counting := *c
	counting.metrics = newMetrics(reg)
	return &counting
}

// Complete asks for the next turn and blocks until the endpoint has finished it.
//
// It tries again, after a growing random pause or what Retry-After asks, on 408,
// 409, 429, 5xx, connection errors, broken or incomplete streams and silence.
// onDelta, if not nil, gets the text as it comes, one call at a time, before
// Complete returns. It is a hint for people who watch: a try that is thrown away
// has shown its text already, and the next one shows it again.
//
// Errors: [team.Unavailable] once Options.Attempts are used up;
// [team.InvalidArgument] if the endpoint refuses the key or the request, or the
// request itself is wrong; ctx's.
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
	asked, err := c.dialect.encode(req)
	if err != nil {
		return Reply{}, err
	}
	body := asked.body
	for n := 1; ; n++ {
		reply, fail := c.attempt(ctx, req, body, onDelta)
		switch {
		case fail == nil:
			return reply, nil
		case ctx.Err() != nil:
			return Reply{}, ctx.Err()
		case fail.retry == "":
			return Reply{}, fail.err
		case n == c.opt.Attempts:
			return Reply{}, team.Errorf(team.Unavailable, "the model endpoint %s failed %d times, the last time: %w", c.name, n, fail.err)
		}
		wait := pause(n, fail.retryAfter)
		c.metrics.retries.WithLabelValues(fail.retry).Inc()
		// Not the error's text: an endpoint may quote the prompt in it.
		c.opt.Logger.WarnContext(ctx, "model call failed, trying again",
			"reason", fail.retry, "status", fail.status, "attempt", n, "wait", wait)
		c.opt.Logger.DebugContext(ctx, "model call failed", "err", fail.err)
		if !sleep(ctx, wait) {
			return Reply{}, ctx.Err()
		}
	}
}

// attempt makes one HTTP request of body and reads its stream to the end.
func (c *Client) attempt(ctx context.Context, req Request, body []byte, onDelta func(string)) (Reply, *failure) {
	ctx, x := c.exchange(ctx, body)
	defer x.end()
	// The SDK gets an empty request, for the wire puts the body in; its checks of
	// model names would only refuse what the endpoint may well accept.
	stream, err := c.api.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{})
	if err != nil {
		return Reply{}, c.failed(ctx, x, err)
	}
	defer stream.Close()

	a := newAssembly(req)
	for err == nil {
		var chunk []byte
		if chunk, err = stream.RecvRaw(); err == nil {
			err = a.add(chunk, onDelta)
		}
	}
	// The SDK reports many a broken stream as a plain end, and some endpoints
	// break the connection after a good one. Only the finish reason tells.
	if a.finish == "" {
		return Reply{}, c.failed(ctx, x, err)
	}
	reply := a.reply()
	if reply.Usage == (Usage{}) {
		reply.Usage = Usage{PromptTokens: tokens(len(body)), CompletionTokens: tokens(a.size()), Estimated: true}
	}
	return reply, nil
}

// exchange prepares ctx for one HTTP request that sends body and is called off
// when the endpoint keeps silent. The caller must end it.
func (c *Client) exchange(ctx context.Context, body []byte) (context.Context, *exchange) {
	ctx, cancel := context.WithCancelCause(ctx)
	x := &exchange{body: body, idle: c.opt.Idle, cancel: cancel}
	x.alarm = time.AfterFunc(c.opt.FirstByte, func() { cancel(errSilent) })
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// Check asks the endpoint for its list of models and returns nil if it is one
// that would serve this client: reachable, and content with the key. It tries
// once and gives up after Options.FirstByte.
//
// Errors, each one line: [team.InvalidArgument] for a refused key or a wrong
// address; [team.Unavailable] if nothing answers or the endpoint is in trouble.
func (c *Client) Check(ctx context.Context) error {
	caller := ctx
	ctx, x := c.exchange(ctx, nil)
	defer x.end()
	_, err := c.api.ListModels(ctx)
	var shape *json.UnmarshalTypeError
	switch {
	case err == nil || errors.As(err, &shape): // JSON, if not quite the SDK's: it serves
		return nil
	case caller.Err() != nil:
		return caller.Err()
	case x.status >= 200 && x.status < 300 && context.Cause(ctx) == nil:
		return team.Errorf(team.InvalidArgument, "%s answers, but not as a model endpoint", c.name).
			WithHint("check OPENAI_BASE_URL; it usually ends in /v1")
	}
	fail := c.failed(ctx, x, err)
	if fail.retry == "" {
		return fail.err
	}
	return team.Errorf(team.Unavailable, "the model endpoint %s cannot be used: %w", c.name, fail.err).
		WithHint("check OPENAI_BASE_URL and that the endpoint is running")
}
