package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/tokens"
)

const (
	// probeTokens is a prompt that any window in use must take and that is above what
	// Ollama takes if it is told nothing, 4,096.
	probeTokens = 6000
	// probeAnswer is the least that every endpoint allows an answer to have.
	probeAnswer = 16
	// probeWait is for a model on a slow machine to read the prompt; the time limit of
	// the whole examination may be nearer.
	probeWait = 2 * time.Minute
	// lastWord of that limit is left for the other checks to be told.
	lastWord = time.Second
)

// windowCheck looks whether the endpoint cuts long prompts without a word, as Ollama
// does: its agents would forget how they are to work. That costs a prompt, so it is not
// done unasked where it may cost money.
//
// It asks the default, with all that the settings say of it.
func windowCheck(ctx context.Context, cfg config.Config, ask bool) Check {
	o := defaultOf(cfg.Routes())
	if !ask && !local(ctx, o.BaseURL) {
		return Check{Name: "window", Status: OK, Detail: fmt.Sprintf("not asked, for it costs about %d tokens: teamctl doctor --probe-window", probeTokens)}
	}
	wait := probeWait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)-lastWord)
	}
	o.Attempts, o.FirstByte, o.Idle, o.Total = 1, probeWait, probeWait, 0
	m, err := model.New(o)
	if err != nil {
		return failed("window", err)
	}
	asked, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	p := newProbe()
	reply, err := m.Complete(asked, p.request(), nil)
	if err != nil && asked.Err() != nil {
		return Check{Name: "window", Status: Warn, Detail: fmt.Sprintf("%s has not read a prompt of %d tokens within %v, so whether it cuts them is not known", o.Model, p.tokens, wait.Round(time.Second)),
			Hint: "give it more time: teamctl doctor --timeout 5m"}
	}
	return p.judge(o.Model, reply, err)
}

// defaultOf is the client of the alias that is asked when none is named.
func defaultOf(r model.Routes) (o model.Options) {
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

// probe is a long prompt with a question about its beginning.
type probe struct {
	system, text string
	word         string // what is asked for
	tokens       int    // of all of it, estimated: teamctl carries no vocabulary for this
}

// newProbe returns one that no endpoint has seen: of a prompt whose beginning it has
// in a cache it may report the rest only.
func newProbe() probe {
	p := probe{system: "You are doctor, role doctor, in team doctor.", word: strings.ToLower(rand.Text()[:10])}
	var b strings.Builder
	fmt.Fprintf(&b, "The word of the day is %s.\n", p.word)
	const question = "What is the word of the day, which was named at the beginning? Answer with this word alone."
	p.tokens = tokens.Estimate(p.system) + tokens.Estimate(b.String()) + tokens.Estimate(question)
	for room := 1; p.tokens < probeTokens; room++ {
		line := fmt.Sprintf("All is well in room %d of the house, and nobody there has asked for anything.\n", room)
		p.tokens += tokens.Estimate(line)
		b.WriteString(line)
	}
	p.text = b.String() + question
	return p
}

func (p probe) request() model.Request {
	return model.Request{MaxTokens: probeAnswer, Messages: []*model.Message{{Role: "system", Content: p.system}, {Role: "user", Content: p.text}}}
}

// judge says what the answer tells of the endpoint's window.
func (p probe) judge(name string, reply model.Reply, err error) Check {
	c := Check{Name: "window", Status: OK}
	var refusal *model.Refusal
	switch reported := reply.Usage.PromptTokens; {
	case errors.As(err, &refusal) && refusal.Reason == model.ContextLength:
		c.Status = Warn
		c.Detail = fmt.Sprintf("%s takes less than %d tokens in one prompt, and says so", name, p.tokens)
		c.Hint = "agents need more to work well: enlarge its window, or use another model"
	case err != nil:
		return failed("window", err)
	case reply.Usage.Estimated && strings.Contains(strings.ToLower(reply.Message.Content), p.word):
		c.Detail = fmt.Sprintf("%s reads the beginning of a prompt of %d tokens", name, p.tokens)
	case reply.Usage.Estimated:
		c.Status = Warn
		c.Detail = fmt.Sprintf("%s does not report usage and did not tell what a prompt of %d tokens begins with, so it may cut long prompts", name, p.tokens)
		c.Hint = "see in its log how large its window is, and enlarge it if need be"
	// Vocabularies differ by less on plain English.
	case reported < p.tokens*7/10:
		c.Status = Warn
		c.Detail = fmt.Sprintf("%s was sent a prompt of about %d tokens and counted %d: it cuts long prompts without a word", name, p.tokens, reported)
		c.Hint = fmt.Sprintf("enlarge its window (Ollama: OLLAMA_CONTEXT_LENGTH=32768 where it runs, or num_ctx in the model's file), or set window: %d in the settings", reported)
	default:
		c.Detail = fmt.Sprintf("%s reads prompts of %d tokens whole", name, p.tokens)
	}
	return c
}
