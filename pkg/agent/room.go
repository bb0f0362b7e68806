package agent

import (
	"cmp"
	"context"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/stored"
	"agentteam/pkg/team"
	"agentteam/pkg/tokens"
)

// gauge knows how full the model's window is.
type gauge struct {
	model  Model
	system *model.Message
	tools  []model.ToolSpec
	alias  string
	fixed  int // tokens of system message and tools, about
	bound  int // the window as a refusal told it; 0: none did
	scale  tokens.Gauge
	kept   *model.Kept
	sizes  map[*model.Message]int // what was counted already
	exact  bool                   // by a vocabulary, since the window was half full
	least  int                    // what the conversation was last shortened to
}

func newGauge(o Options) gauge {
	g := gauge{model: o.Model, alias: o.Member.Model, system: &model.Message{Role: "system", Content: o.System}, kept: new(model.Kept)}
	g.fixed = size(g.system)
	for _, s := range o.Tools.Specs() {
		g.tools = append(g.tools, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
		g.fixed += tokens.Estimate(s.Name) + tokens.Estimate(s.Description) + tokens.Estimate(string(s.Schema))
	}
	return g
}

// request is the question what follows on messages.
func (g *gauge) request(messages []*model.Message) model.Request {
	return model.Request{Model: g.alias, Messages: append([]*model.Message{g.system}, messages...), Tools: g.tools, Kept: g.kept}
}

// window is how many tokens the model takes, 0 if that is not known.
func (g *gauge) window() int {
	var known int
	if g.model != nil {
		known = g.model.Limits(g.alias).Window
	}
	if g.bound > 0 && (known == 0 || g.bound < known) {
		return g.bound
	}
	return known
}

// fill is about how many tokens a request with c has: what the endpoint told of the
// last one, and what has come since.
func (g *gauge) fill(c *Conversation) int {
	if len(c.Messages) == 0 {
		return 0 // there is nothing to ask
	}
	if c.Sent > 0 && c.Since <= len(c.Messages) {
		return c.Sent + g.scale.Tokens(g.count(c.Messages[c.Since:]))
	}
	return g.sizeOf(c.Messages)
}

// sizeOf is about how many tokens a request with messages has.
func (g *gauge) sizeOf(messages []*model.Message) int {
	return g.scale.Tokens(g.fixed + g.count(messages))
}

// count is how many tokens messages are: by a guess while there is room, and by a
// vocabulary when it matters. Each message is counted once either way.
func (g *gauge) count(messages []*model.Message) int {
	n := g.sum(messages)
	if w := g.window(); !g.exact && w > 0 && n >= w/2 {
		g.exact, g.sizes = true, nil
		n = g.sum(messages)
	}
	return n
}

func (g *gauge) sum(messages []*model.Message) (n int) {
	if g.sizes == nil || len(g.sizes) > 4*len(messages)+1000 { // of messages that are gone
		g.sizes = map[*model.Message]int{}
	}
	of := tokens.Estimate
	if g.exact {
		of = tokens.Count
	}
	for _, m := range messages {
		size, known := g.sizes[m]
		if !known {
			size = sizeBy(m, of)
			g.sizes[m] = size
		}
		n += size
	}
	return n
}

// leastWindow is the smallest window that a report of usage is believed to show: no
// endpoint in use has less, and some report nonsense.
const leastWindow = 1000

// told takes in what the endpoint says a request has cost. One that counts far fewer
// tokens than were sent has cut the prompt without a word: what it counts is its
// window.
func (g *gauge) told(messages []*model.Message, u model.Usage) {
	if u.Estimated || u.PromptTokens == 0 {
		return
	}
	sent := g.fixed + g.count(messages)
	if !tokens.Cut(g.scale.Tokens(sent), u.PromptTokens) {
		g.scale.Told(u.PromptTokens, sent)
	} else if u.CachedTokens == 0 && u.PromptTokens >= leastWindow { // else it may count only what was not cached
		g.bound = u.PromptTokens
	}
}

// learn takes in the window that a refusal tells of.
func (g *gauge) learn(r *model.Refusal) {
	if r.Window > 0 {
		g.bound = r.Window
	}
}

// mostly reports whether a text is most of what a request with it alone has, or of the
// window.
func (g *gauge) mostly(text string) bool {
	n := tokens.Estimate(text)
	return n > g.fixed || g.window() > 0 && g.scale.Tokens(n) > g.window()/2
}

// Shares of the window.
const (
	answerShare = 4 // a quarter at most is left for the answer
	resultShare = 8 // an eighth is what one result or message may take
	keptShare   = 4 // a quarter is what stays word for word when a conversation is shortened
)

// room is how many tokens a request may have before the conversation is shortened, 0
// if the window is not known.
func (g *gauge) room() int {
	w := g.window()
	if w == 0 {
		return 0
	}
	answer := w / answerShare
	if most := g.model.Limits(g.alias).MaxOutput; most > 0 {
		answer = min(answer, most)
	}
	return (w - answer) * 9 / 10 // our count is not the endpoint's
}

// excerptTokens is how much of one result or message stands in the conversation while
// the window is not known; more than any tool returns.
const excerptTokens = 32_000

// putWithin bounds the storing of a long text: the agent's work does not stand still
// for its middle.
const putWithin = 10 * time.Second

// excerpt returns text as it may stand in the conversation: whole, or head and tail,
// and where the whole lies. If it cannot be stored, the middle is lost.
func (a *Agent) excerpt(ctx context.Context, text string) (short, ref string) {
	limit := excerptTokens
	if w := a.gauge.window(); w > 0 {
		limit = max(w/resultShare, 500)
	}
	if n := a.gauge.scale.Tokens(tokens.Estimate(text)); n <= limit {
		return text, ""
	} else {
		limit = len(text) * limit / n // in bytes
	}
	if a.o.Store != nil {
		put, cancel := context.WithTimeout(ctx, putWithin)
		defer cancel()
		var err error
		if ref, err = a.o.Store.Put(put, text); err != nil {
			a.log.WarnContext(ctx, "a long text was not stored; its middle is left out", "err", err)
		}
	}
	return stored.Excerpt(text, limit, ref), ref
}

// makeRoom shortens the conversation before the next request would be larger than the
// window.
func (a *Agent) makeRoom(ctx context.Context) error {
	room, fill := a.gauge.room(), a.gauge.fill(a.conv)
	// What could not be made small enough is not tried again before there is more of it.
	if room == 0 || fill <= room || fill <= a.gauge.least+room/10 {
		return nil
	}
	err := a.compact(ctx, "the model's window is nearly full")
	a.gauge.least = a.gauge.fill(a.conv)
	return err
}

const (
	summaryTokens = 2000 // of a summary, at most
	worthIt       = 4    // markers are enough if they take off a quarter
)

// summaryPrompt asks for a summary. The model is asked with the same system message
// and tools as always, so that what an endpoint has cached of them holds.
const summaryPrompt = `Summarize this conversation so that you can go on with your work from the summary alone; everything above will be left out. Answer with text only and call no tool. Say, in at most 800 words:
- what you were asked to do, by whom, and what was agreed: names, numbers, paths and decisions word for word;
- what is done: files you changed and how, commands you ran and what came out;
- your plan: what is left, in order, and what you are at just now;
- open questions, and who waits for whom.`

// compact makes the conversation shorter: first old results become markers; if that
// saves too little, a summary takes the place of all but the newest part. It always
// succeeds: where the model gives no summary, a plain account stands in for it.
func (a *Agent) compact(ctx context.Context, why string) error {
	known := a.gauge.window()
	window := cmp.Or(known, max(a.gauge.fill(a.conv), summaryTokens*resultShare))
	before := a.gauge.sizeOf(a.conv.Messages)
	marked := a.conv.marked()
	after := a.gauge.sizeOf(marked.Messages)
	if after <= before-before/worthIt && after <= window/2 {
		return a.renew(ctx, why, marked)
	}
	room, most := window/keptShare, min(summaryTokens, window/resultShare)
	var summary model.Reply
	text := ""
	if fits := known == 0 || after+most <= known; fits && a.conv.Parked == nil && a.state.lessons == whole {
		summary, text = a.summary(ctx, marked, most)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if text == "" {
		text = marked.account(marked.tail(room), most)
	}
	return a.renewBy(ctx, why, marked.summarized(text, a.taskText(), room), summary)
}

// taskText is the task that the agent holds as its model is told it, "" if it holds
// none.
func (a *Agent) taskText() string {
	t, holds := a.o.Hand.Task()
	switch {
	case !holds:
		return ""
	case t.ID != a.conv.Task.ID: // it took the task by a call
		return taskBlock(t, nil, newRunID()[18:])
	}
	return a.conv.Block
}

// summary asks the model for one of most tokens; text is "" if it gives none.
func (a *Agent) summary(ctx context.Context, c *Conversation, most int) (reply model.Reply, text string) {
	step, done := a.step(ctx)
	defer done()
	messages := append(c.Messages[:len(c.Messages):len(c.Messages)], &model.Message{Role: "user", Content: summaryPrompt})
	reply, err := a.complete(step, messages, most)
	if err != nil {
		a.log.WarnContext(ctx, "no summary; a plain account stands in for it", "err", err)
		return model.Reply{}, ""
	}
	return reply, reply.Message.Content
}

// renew records that the conversation is next from now on.
func (a *Agent) renew(ctx context.Context, why string, next *Conversation) error {
	return a.renewBy(ctx, why, next, model.Reply{})
}

// renewBy is renew with the model's reply that was its summary.
func (a *Agent) renewBy(ctx context.Context, why string, next *Conversation, summary model.Reply) error {
	before := a.gauge.fill(a.conv)
	r := journal.Record{Kind: journal.Compact, Text: why, Context: asJSON(next), TaskID: a.atWork()}
	if summary.Usage != (model.Usage{}) {
		r.Turn = asJSON(summary)
	}
	if err := a.record(ctx, r); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "conversation shortened", "reason", why, "before", before, "after", a.gauge.fill(a.conv))
	a.beat(team.Running)
	return nil
}
