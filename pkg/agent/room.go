package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/stored"
	"agentteam/pkg/tokens"
)

// gauge knows how full the model's window is.
type gauge struct {
	model  Model
	system *model.Message
	tools  []model.ToolSpec
	alias  string
	fixed  int    // tokens of system message and tools, about
	bound  int    // the window that a refusal or a probe has shown; 0: none has
	low    int    // the last report of usage that was far too low
	guess  int    // the window that two such reports in a row look like, until a probe has shown what it is
	exempt bool   // low reports mean nothing: a probe was read whole
	by     string // the alias that answered last; what is known holds for it only
	scale  tokens.Gauge
	kept   *model.Kept
	sizes  map[*model.Message]int // what was counted already
	exact  bool                   // count by a vocabulary: the window was half full once
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

// named returns the alias that answered last, or is asked first, and the name of its model.
func (g *gauge) named() (alias, model string) {
	if g.model == nil {
		return "", ""
	}
	return g.model.Meant(cmp.Or(g.by, g.alias))
}

// fill estimates the tokens of a request with c: what the endpoint reported for the last
// request, and our count of what has come since.
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

// count returns how many tokens messages are: an estimate while there is room, and a count
// by a vocabulary once the window is half full. Each message is counted once either way.
func (g *gauge) count(messages []*model.Message) int {
	n := g.sum(messages)
	if w := g.window(); !g.exact && w > 0 && n >= w/2 {
		g.exact, g.sizes = true, nil
		n = g.sum(messages)
	}
	return n
}

func (g *gauge) sum(messages []*model.Message) (n int) {
	if g.sizes == nil {
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

// leastWindow is the smallest window that reports of usage are believed to show: no
// endpoint in use has less, and some report nonsense.
const leastWindow = 1000

// told takes in the usage that the endpoint reports for a request. An endpoint that twice
// counts far fewer tokens than were sent may have cut the prompt silently, or count
// otherwise than we do: then it is to be probed. A request that is reported whole shows that
// the window is no smaller.
func (g *gauge) told(messages []*model.Message, alias string, u model.Usage) {
	if alias != g.by {
		g.by, g.bound, g.low, g.guess, g.exempt, g.scale = alias, 0, 0, 0, false, tokens.Gauge{}
	}
	if u.Estimated || u.PromptTokens == 0 {
		return
	}
	sent := g.fixed + g.count(messages)
	if len(g.sizes) > 2*len(messages)+100 { // most are of messages that are gone
		maps.DeleteFunc(g.sizes, func(m *model.Message, _ int) bool { return !slices.Contains(messages, m) })
	}
	if u.PromptTokens > g.bound {
		g.bound = 0 // it takes more than we thought
	}
	if !tokens.Cut(g.scale.Tokens(sent), u.PromptTokens) {
		g.scale.Told(u.PromptTokens, sent)
		g.low, g.guess = 0, 0
		return
	}
	if twice := g.low > 0; twice && !g.exempt && g.bound == 0 && u.PromptTokens >= leastWindow {
		g.guess = max(u.PromptTokens, g.low)
	}
	g.low = u.PromptTokens
}

// probeSize is how large a prompt shows whether the guess is right; 0 if none fits into the
// window that is known, or there is no guess. Of what it cuts, an endpoint may count half its
// window.
func (g *gauge) probeSize() int {
	size := 2*g.guess + 1000
	if g.guess == 0 || g.window() > 0 && size > g.window()*9/10 {
		return 0
	}
	return size
}

// probed takes in what a probe has shown: the window that it was cut to, or 0 if it was read
// whole.
func (g *gauge) probed(window int) { g.bound, g.exempt, g.guess, g.low = window, window == 0, 0, 0 }

// learn takes in the window that a refusal tells of.
func (g *gauge) learn(r *model.Refusal) {
	if r.Window > 0 {
		g.bound = r.Window
	}
}

// mostly reports whether a text is more than half of a request with it alone, or more than
// half of the window.
func (g *gauge) mostly(text string) bool {
	n := tokens.Estimate(text)
	return n > g.fixed || g.window() > 0 && g.scale.Tokens(n) > g.window()/2
}

// Shares of the window.
const (
	answerShare = 4 // a quarter at most is left for the answer
	resultShare = 8 // an eighth is what one result or message may take
	keptShare   = 4 // a quarter is what stays word for word when a conversation is shortened
	markedShare = 6 // a sixth are the newest turns whose results stay when older ones become markers
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

// lasting is how many tokens stay of what came before a new context.
func (g *gauge) lasting() int {
	if w := g.window(); w > 0 {
		return w / keptShare
	}
	return excerptTokens
}

// spare is how many tokens an answer to a request with c could have, 0 if the window is not known.
func (g *gauge) spare(c *Conversation) int {
	return max(0, (g.window()-g.fill(c))*9/10) // our count is not the endpoint's
}

// excerptTokens is how much of one result or message stands in the conversation while
// the window is not known; more than any tool returns.
const excerptTokens = 32_000

// putWithin bounds the storing of a long text: the agent's work does not wait longer for
// it.
const putWithin = 10 * time.Second

// excerpt returns text as it may stand in the conversation: the whole, or head and tail with
// a reference to the stored whole. If it cannot be stored, ref is "" and the middle is lost.
func (a *Agent) excerpt(ctx context.Context, text string) (short, ref string) {
	return a.excerptTo(ctx, text, a.excerptLimit())
}

// excerptLimit is how many tokens of one result or message stand in the conversation.
func (a *Agent) excerptLimit() int {
	if w := a.gauge.window(); w > 0 {
		return max(w/resultShare, 500)
	}
	return excerptTokens
}

// excerptTo is excerpt of at most limit tokens.
func (a *Agent) excerptTo(ctx context.Context, text string, limit int) (short, ref string) {
	n := a.gauge.scale.Tokens(tokens.Estimate(text))
	if n <= limit {
		return text, ""
	}
	if a.o.Store != nil {
		put, cancel := context.WithTimeout(ctx, putWithin)
		defer cancel()
		var err error
		if ref, err = a.o.Store.Put(put, text); err != nil {
			a.log.WarnContext(ctx, "a long text was not stored; its middle is left out", "err", err)
		}
	}
	return stored.Excerpt(text, len(text)*limit/n, ref), ref
}

// makeRoom shortens the conversation before the next request would be larger than the
// window.
func (a *Agent) makeRoom(ctx context.Context) error {
	if a.asked {
		return a.shortenOnRequest(ctx)
	}
	if err := a.tryWindow(ctx); err != nil {
		return err
	}
	room, fill := a.gauge.room(), a.gauge.fill(a.conv)
	// A conversation that could not be made small enough is tried again only once it has
	// grown.
	if room == 0 || fill <= room || fill <= a.gauge.least+room/10 {
		return nil
	}
	a.conv.filled()
	err := a.compact(ctx, "the model's window is nearly full")
	a.gauge.least = a.gauge.fill(a.conv)
	return err
}

// shortenOnRequest shortens the conversation since somebody asked for it; in the middle
// of a turn only once that is over.
func (a *Agent) shortenOnRequest(ctx context.Context) error {
	if a.asked = len(a.conv.Open) > 0; a.asked {
		return nil
	}
	return a.compact(ctx, "somebody asked for it")
}

const (
	summaryTokens = 2000 // of a summary, at most
	worthIt       = 4    // markers are enough if they take off a quarter
)

// compact makes the conversation shorter: first old results become markers; if that
// saves too little, a summary takes the place of all but the newest part. It always
// succeeds: where the model gives no summary, a plain account stands in for it.
func (a *Agent) compact(ctx context.Context, why string) error {
	return a.compactTo(ctx, why, a.conv.Rung)
}

// compactTo is compact because of a refusal, after which the conversation is cut so far.
func (a *Agent) compactTo(ctx context.Context, why string, far rung) error {
	known := a.gauge.window()
	window := cmp.Or(known, max(a.gauge.fill(a.conv), summaryTokens*resultShare))
	before := a.gauge.sizeOf(a.conv.Messages)
	marked := a.conv.marked(a.o.Tools, window/markedShare)
	after := a.gauge.sizeOf(marked.Messages)
	if after <= before-before/worthIt && after <= window/2 {
		marked.Rung = far
		return a.renew(ctx, why, marked)
	}
	room, most := window/keptShare, min(summaryTokens, window/resultShare)
	var summary model.Reply
	text := ""
	// If the window is unknown and the endpoint has refused the conversation, it would
	// refuse this request too.
	fits := after+most <= known || known == 0 && far < compacted
	if fits && a.conv.Parked == nil {
		var err error
		messages := append(marked.Messages[:len(marked.Messages):len(marked.Messages)], &model.Message{Role: "user", Content: summaryPrompt})
		if summary, text, err = a.summary(ctx, messages, most); err != nil {
			return err
		}
	}
	switch {
	case text == "":
		text = marked.account(marked.tail(room), most)
	case cut(summary):
		text += "\n[cut here]\nWhat was done last:\n" + marked.account(marked.tail(room), most/2)
	}
	next := a.fitted(ctx, marked.summarized(text, a.taskText(), room), window/2)
	next.Rung = far
	return a.renewBy(ctx, why, next, summary)
}

// summary asks the model, by messages, for one of most tokens; text is "" if it gives
// none.
func (a *Agent) summary(ctx context.Context, messages []*model.Message, most int) (reply model.Reply, text string, err error) {
	if a.conv.Usage.ReasoningTokens > 0 {
		most = 0 // a limit would hold for what it thinks, too: the endpoint's own
	}
	step, done := a.step(ctx)
	defer done()
	reply, err = a.complete(step, messages, most, nil)
	switch {
	case err == nil:
		return reply, reply.Message.Content, nil
	case ctx.Err() != nil:
		return reply, "", ctx.Err()
	}
	a.log.WarnContext(ctx, "no summary; a plain account stands in for it", "err", err)
	var r *model.Refusal
	if errors.As(err, &r) && r.Used != (model.Usage{}) { // recorded because it has cost something
		err = a.record(ctx, journal.Record{Kind: journal.Refused, TaskID: a.atWork(), Refusal: &journal.Refusal{
			Advice: string(model.TryAgain), Reason: string(r.Reason), Cause: causeOf(r), Alias: r.Alias, Usage: usageJSON(r.Used)}})
		return model.Reply{}, "", err
	}
	return model.Reply{}, "", nil
}

// fitted returns c with the messages that the model has not seen cut to head and tail, so
// that together they have about limit tokens. Otherwise the model would never see them.
func (a *Agent) fitted(ctx context.Context, c *Conversation, limit int) *Conversation {
	from := c.pending()
	unseen := c.Messages[from:]
	if sizeOf(unseen) <= limit {
		return c
	}
	n := c.with(slices.Clone(c.Messages)...)
	n.Head, n.Summary = c.Head, c.Summary
	share := limit / max(len(unseen), 1)
	for i, m := range unseen {
		if m.Role == "assistant" || size(m) <= share {
			continue
		}
		short := *m
		short.Content, _ = a.excerptTo(ctx, m.Content, share)
		n.Messages[from+i] = &short
	}
	return n
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
	a.beatAgain()
	return nil
}

// taskText returns the block that tells the model of the task it holds; "" if it holds
// none.
func (a *Agent) taskText() string {
	t, holds := a.o.Hand.Task()
	switch {
	case !holds:
		return ""
	case t.ID != a.conv.Task.ID: // it took the task by a call
		return taskBlock(t, nil, nil, newRunID()[18:])
	}
	return a.conv.Block
}
