package engine

import (
	"cmp"
	"maps"
	"slices"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
)

// calibration measures how full the model's window is.
type calibration struct {
	model  Model
	system *model.Message
	tools  []model.ToolSpec
	alias  string
	effort string
	fixed  int    // tokens of system message and tools, estimated
	bound  int    // the window that a refusal or a probe has shown; 0: unknown
	low    int    // the last report of usage that was far too low
	lows   int    // such reports in a row
	guess  int    // the window that several low reports suggest, until a probe measures it
	missed int    // probes in a row that were not answered
	exempt bool   // low reports are ignored: a probe was read in full
	by     string // the alias that answered last; the measurements hold for it only
	scale  tokens.Calibration
	sizes  map[*model.Message]int // counts of messages so far
	exact  bool                   // count by a vocabulary: the window was half full once
	least  int                    // size of the conversation after it was last shortened
}

func newCalibration(o Options) calibration {
	g := calibration{model: o.Model, alias: o.Alias, effort: o.Effort}
	g.begin(o.System, o.Tools)
	return g
}

// begin sets the system message and the tools of all later requests.
func (g *calibration) begin(system string, t Tools) {
	g.system, g.tools = &model.Message{Role: "system", Content: system}, nil
	g.fixed = Size(g.system)
	for _, s := range t.Specs() {
		g.tools = append(g.tools, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
		g.fixed += tokens.Estimate(s.Name) + tokens.Estimate(s.Description) + tokens.Estimate(string(s.Schema))
	}
}

// request returns the request to continue messages.
func (g *calibration) request(messages []*model.Message) model.Request {
	return model.Request{Model: g.alias, Effort: g.effort, Messages: append([]*model.Message{g.system}, messages...), Tools: g.tools}
}

// window returns how many tokens the model takes, 0 if unknown.
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

// fill estimates the tokens of a request with c: the endpoint's report for the last request plus
// our count of later messages.
func (g *calibration) fill(c *Conversation) int {
	if len(c.Messages) == 0 {
		return 0 // there is nothing to ask
	}
	if c.Sent > 0 && c.Since <= len(c.Messages) {
		return c.Sent + g.scale.Tokens(g.count(c.Messages[c.Since:]))
	}
	return g.sizeOf(c.Messages)
}

// sizeOf estimates the tokens of a request with messages.
func (g *calibration) sizeOf(messages []*model.Message) int {
	return g.scale.Tokens(g.fixed + g.count(messages))
}

// count returns the tokens of messages: an estimate while there is room, and a count by a
// vocabulary once the window is half full. Each message is counted once either way.
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

// leastWindow is the smallest window that reports of usage may show: no endpoint in use has less,
// and some report nonsense.
const leastWindow = 1000

// counted takes in the usage that the endpoint reports for a request. An endpoint that twice counts
// far fewer tokens than were sent may have cut the prompt silently, or may count differently: then
// it is probed. Each unanswered probe doubles the reports that lead to the next one. A request that
// is reported in full shows that the window is no smaller.
func (g *calibration) counted(messages []*model.Message, alias string, u model.Usage) {
	if alias != g.by {
		g.by, g.scale = alias, tokens.Calibration{}
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

// probeSize returns the size of a prompt that tests the guess; 0 if there is no guess, or no such
// prompt fits into the known window. An endpoint that cuts a prompt may count half its window.
func (g *calibration) probeSize() int {
	size := 2*g.guess + 1000
	if g.guess == 0 || g.window() > 0 && size > g.window()*9/10 {
		return 0
	}
	return size
}

// probed takes in the result of a probe: the window that it was cut to, or 0 if it was read in
// full.
func (g *calibration) probed(window int) {
	g.bound, g.exempt = window, window == 0
	g.low, g.lows, g.guess, g.missed = 0, 0, 0, 0
}

// unprobed records that a probe was not answered.
func (g *calibration) unprobed() {
	g.low, g.lows, g.guess = 0, 0, 0
	g.missed = min(g.missed+1, 10)
}

// Shares of the window: one nth each.
const (
	answerShare = 4 // at most a quarter is left for the answer
	resultShare = 8 // one result or message may take an eighth
	keptShare   = 4 // a quarter stays verbatim when a conversation is shortened
	markedShare = 8 // the newest turns, up to an eighth, keep their results when older ones become markers
)

// room returns how many tokens a request may have before the conversation is shortened, 0 if the
// window is unknown.
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

// spare returns how many tokens an answer to a request with c could have, 0 if the window is
// unknown.
func (g *calibration) spare(c *Conversation) int {
	return max(0, (g.window()-g.fill(c))*9/10) // our count is not the endpoint's
}

// Fill returns an estimate of the tokens of the next request.
func (e *Engine) Fill() int { return e.calibration.fill(e.conv) }

// Window returns how many tokens the model takes, 0 if unknown.
func (e *Engine) Window() int { return e.calibration.window() }

// Named returns the alias that answered last, else the configured one, and the name of its model.
func (e *Engine) Named() (alias, model string) {
	if e.o.Model == nil {
		return "", ""
	}
	return e.o.Model.Meant(cmp.Or(e.calibration.by, e.o.Alias))
}

// Lasting returns how many tokens of history a new context may keep.
func (e *Engine) Lasting() int {
	return cmp.Or(e.calibration.window()/keptShare, excerptTokens)
}

// Mostly reports whether a text alone has more tokens than the system message and the tools, or
// than half of the window.
func (e *Engine) Mostly(text string) bool {
	n, g := tokens.Estimate(text), &e.calibration
	return n > g.fixed || g.window() > 0 && g.scale.Tokens(n) > g.window()/2
}

// Crowds reports whether a message takes more than a quarter of the window.
func (e *Engine) Crowds(m *model.Message) bool {
	w := e.calibration.window()
	return w > 0 && e.calibration.scale.Tokens(Size(m)) > w/keptShare
}

// Spares reports whether the window leaves more room for an answer than the limit of answers.
func (e *Engine) Spares() bool {
	return e.calibration.spare(e.conv) > e.o.Model.Limits(e.o.Alias).MaxOutput
}
