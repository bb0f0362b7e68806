package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/model/probe"
	"agentteam/pkg/model/router"
)

const (
	// probeTokens is a prompt that any window in use must take and that exceeds Ollama's default
	// window, 4,096.
	probeTokens = 6000
	// probeWait lets a model on a slow machine read the prompt; the time limit of all checks may be
	// nearer.
	probeWait = 2 * time.Minute
	// lastWord of that limit is left for reporting the other checks.
	lastWord = time.Second
)

// windowCheck checks whether the endpoint cuts long prompts silently, as Ollama does: its agents
// would forget their instructions. That costs a prompt, so it is done only on request where it may
// cost money. On request the prompt fills the configured window; else it is a short one, and a
// larger window is not proven.
//
// It asks the default model, with all its settings.
func windowCheck(ctx context.Context, cfg config.Config, ask bool) Check {
	o := defaultOf(cfg.Routes())
	size := probeTokens
	if full := o.Window * 8 / 10; ask && full > size { // with room for the answer, and our count is not the endpoint's
		size = full
	}
	if !ask && !local(ctx, o.BaseURL) {
		return Check{Name: "window", Status: OK, Detail: fmt.Sprintf("not asked, for it costs about %d tokens: teamctl doctor --probe-window", max(size, o.Window*8/10))}
	}
	wait := trialWait(ctx)
	o.Attempts, o.FirstByte, o.Idle, o.Total = 1, probeWait, probeWait, 0
	m, err := model.New(o)
	if err != nil {
		return failed("window", err)
	}
	asked, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	p := probe.New("doctor", size)
	reply, err := m.Complete(asked, p.Request(""), nil)
	if err != nil && asked.Err() != nil {
		return Check{Name: "window", Status: Warn, Detail: fmt.Sprintf("%s has not read a prompt of %d tokens within %v, so whether it cuts them is not known", o.Model, p.Tokens, wait.Round(time.Second)),
			Hint: "give it more time: teamctl doctor --timeout 5m"}
	}
	c := judge(p, o.Model, reply, err)
	if size < o.Window*8/10 && c.Status == OK {
		c.Detail += fmt.Sprintf("; that its window has %d is not proven: teamctl doctor --probe-window sends %d tokens, which may cost money", o.Window, o.Window*8/10)
	}
	return c
}

// trialWait returns how long the model may take for one answer.
func trialWait(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(probeWait, time.Until(end)-lastWord)
	}
	return probeWait
}

// defaultOf returns the client options of the default alias.
func defaultOf(r router.Routes) (o model.Options) {
	for _, a := range r.Aliases {
		if a.Name == r.Default {
			o = a.Options
		}
	}
	return o
}

// local reports whether the endpoint is on this machine or in this network.
func local(ctx context.Context, baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return false
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) // an address is its own
	for _, a := range addrs {
		if a = a.Unmap(); !a.IsLoopback() && !a.IsPrivate() && !a.IsLinkLocalUnicast() {
			return false
		}
	}
	return err == nil && len(addrs) > 0
}

// judge returns the check for the answer to a probe of the endpoint's window.
func judge(p probe.Prompt, name string, reply model.Reply, err error) Check {
	c := Check{Name: "window", Status: OK}
	var refusal *model.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Reason == model.ContextLength:
		c.Status = Warn
		c.Detail = fmt.Sprintf("%s takes less than %d tokens in one prompt, and says so", name, p.Tokens)
		c.Hint = "set its window in the settings to what it takes, or enlarge it where it is served"
		return c
	case err != nil:
		return failed("window", err)
	}
	switch p.Read(reply) {
	case probe.Beginning:
		c.Detail = fmt.Sprintf("%s reads the beginning of a prompt of %d tokens", name, p.Tokens)
	case probe.Unknown:
		c.Status = Warn
		c.Detail = fmt.Sprintf("%s does not report usage and did not tell what a prompt of %d tokens begins with, so it may cut long prompts", name, p.Tokens)
		c.Hint = "see in its log how large its window is, and enlarge it if need be"
	case probe.Cut:
		reported := reply.Usage.PromptTokens
		c.Status = Warn
		c.Detail = fmt.Sprintf("%s was sent a prompt of about %d tokens and counted %d: it cuts long prompts without a word", name, p.Tokens, reported)
		c.Hint = "enlarge its window (Ollama: OLLAMA_CONTEXT_LENGTH=32768 where it runs, or num_ctx in the model's file)"
		if reported >= model.LeastWindow {
			c.Hint += fmt.Sprintf(", or set window: %d in the settings", reported)
		}
	case probe.Whole:
		c.Detail = fmt.Sprintf("%s reads prompts of %d tokens whole", name, p.Tokens)
	}
	return c
}
