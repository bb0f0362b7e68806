package engine

import (
	"cmp"
	"maps"
	"slices"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
)

// gauge knows how full the model's window is.
type calibration struct {
	model  Model
	system *model.Message
	tools  []model.ToolSpec
	alias  string
	effort string
	fixed  int    // tokens of system message and tools, about
	bound  int    // the window that a refusal or a probe has shown; 0: none has
	low    int    // the last report of usage that was far too low
	lows   int    // such reports in a row
	guess  int    // the window that several of them look like, until a probe has shown what it is
	missed int    // probes in a row that were not answered
	exempt bool   // low reports mean nothing: a probe was read whole
	by     string // the alias that answered last; what is known holds for it only
	scale  tokens.Gauge
	sizes  map[*model.Message]int // what was counted already
	exact  bool                   // count by a vocabulary: the window was half full once
	least  int                    // what the conversation was last shortened to
}

func newGauge(o Options) calibration {
	g := calibration{model: o.Model, alias: o.Alias, effort: o.Effort}
	g.begin(o.System, o.Tools)
	return g
}

// begin has each request begin with this system message and these tools.
func (g *calibration) begin(system string, t Tools) {
	g.system, g.tools = &model.Message{Role: "system", Content: system}, nil
	g.fixed = Size(g.system)
	for _, s := range t.Specs() {
		g.tools = append(g.tools, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
		g.fixed += tokens.Estimate(s.Name) + tokens.Estimate(s.Description) + tokens.Estimate(string(s.Schema))
	}
}

// request is the question what follows on messages.
func (g *calibration) request(messages []*model.Message) model.Request {
	return model.Request{Model: g.alias, Effort: g.effort, Messages: append([]*model.Message{g.system}, messages...), Tools: g.tools}
}

// window is how many tokens the model takes, 0 if that is not known.
func (g *calibration) window() int {
	var known int
	if g.model != nil {
		known = g.model.Limits(g.alias).Window
	}
	if g.bound > 0 && (known == 0 || g.bound < known) {
		return g.bound
	}
	return known
}

// fill estimates the tokens of a request with c: what the endpoint reported for the last
// request, and our count of what has come since.
func (g *calibration) fill(c *Conversation) int {
	if len(c.Messages) == 0 {
		return 0 // there is nothing to ask
	}
	if c.Sent > 0 && c.Since <= len(c.Messages) {
		return c.Sent + g.scale.Tokens(g.count(c.Messages[c.Since:]))
	}
	return g.sizeOf(c.Messages)
}

// sizeOf is about how many tokens a request with messages has.
func (g *calibration) sizeOf(messages []*model.Message) int {
	return g.scale.Tokens(g.fixed + g.count(messages))
}

// count returns how many tokens messages are: an estimate while there is room, and a count
// by a vocabulary once the window is half full. Each message is counted once either way.
func (g *calibration) count(messages []*model.Message) int {
	n := g.sum(messages)
	if w := g.window(); !g.exact && w > 0 && n >= w/2 {
		g.exact, g.sizes = true, nil
		n = g.sum(messages)
	}
	return n
}

func (g *calibration) sum(messages []*model.Message) (n int) {
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
// otherwise than we do: then it is to be probed. Each probe that is not answered doubles the
// reports that lead to the next one. A request that is reported whole shows that the window
// is no smaller.
func (g *calibration) told(messages []*model.Message, alias string, u model.Usage) {
	if alias != g.by {
		g.by, g.scale = alias, tokens.Gauge{}
		g.probed(0)
		g.exempt = false
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
		g.scale.Counted(u.PromptTokens, sent)
		g.low, g.lows, g.guess = 0, 0, 0
		return
	}
	if g.lows++; g.lows >= 2<<g.missed && !g.exempt && g.bound == 0 && u.PromptTokens >= leastWindow {
		g.guess = max(u.PromptTokens, g.low)
	}
	g.low = u.PromptTokens
}

// probeSize is how large a prompt shows whether the guess is right; 0 if none fits into the
// window that is known, or there is no guess. Of what it cuts, an endpoint may count half its
// window.
func (g *calibration) probeSize() int {
	size := 2*g.guess + 1000
	if g.guess == 0 || g.window() > 0 && size > g.window()*9/10 {
		return 0
	}
	return size
}

// probed takes in what a probe has shown: the window that it was cut to, or 0 if it was read
// whole.
func (g *calibration) probed(window int) {
	g.bound, g.exempt = window, window == 0
	g.low, g.lows, g.guess, g.missed = 0, 0, 0, 0
}

// unprobed notes that a probe was not answered.
func (g *calibration) unprobed() {
	g.low, g.lows, g.guess = 0, 0, 0
	g.missed = min(g.missed+1, 10)
}

// Shares of the window.
const (
	answerShare = 4 // a quarter at most is left for the answer
	resultShare = 8 // an eighth is what one result or message may take
	keptShare   = 4 // a quarter is what stays word for word when a conversation is shortened
	markedShare = 8 // an eighth are the newest turns whose results stay when older ones become markers
)

// room is how many tokens a request may have before the conversation is shortened, 0
// if the window is not known.
func (g *calibration) room() int {
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

// spare is how many tokens an answer to a request with c could have, 0 if the window is not known.
func (g *calibration) spare(c *Conversation) int {
	return max(0, (g.window()-g.fill(c))*9/10) // our count is not the endpoint's
}

// Fill is about how many tokens the next request has.
func (e *Engine) Fill() int { return e.gauge.fill(e.conv) }

// Window is how many tokens the model takes, 0 if that is not known.
func (e *Engine) Window() int { return e.gauge.window() }

// Named returns the alias that answered last, or is asked first, and the name of its model.
func (e *Engine) Named() (alias, model string) {
	if e.o.Model == nil {
		return "", ""
	}
	return e.o.Model.Meant(cmp.Or(e.gauge.by, e.o.Alias))
}

// Lasting is how many tokens may stay of what came before a new context.
func (e *Engine) Lasting() int {
	return cmp.Or(e.gauge.window()/keptShare, excerptTokens)
}

// Mostly reports whether a text is more than half of a request with it alone, or more than
// half of the window.
func (e *Engine) Mostly(text string) bool {
	n, g := tokens.Estimate(text), &e.gauge
	return n > g.fixed || g.window() > 0 && g.scale.Tokens(n) > g.window()/2
}

// Crowds reports whether a message takes more than a quarter of the window.
func (e *Engine) Crowds(m *model.Message) bool {
	w := e.gauge.window()
	return w > 0 && e.gauge.scale.Tokens(Size(m)) > w/keptShare
}

// Spares reports whether the window leaves more room for an answer than the limit of answers.
func (e *Engine) Spares() bool {
	return e.gauge.spare(e.conv) > e.o.Model.Limits(e.o.Alias).MaxOutput
}
