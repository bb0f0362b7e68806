package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tokens"
)

// fact is mail that stays valid whatever the agent works on.
type fact struct {
	From  team.AgentID     `json:"from"`
	Type  team.MessageType `json:"type"`
	Goal  int              `json:"goal,omitempty"`  // of the leader's team, when it came
	Brief string           `json:"brief"`           // its first words
	Block string           `json:"block,omitempty"` // as the model is told it; "" once only its first words are kept
}

// stands reports whether m is such mail: from a person or the leader, or a broadcast.
func stands(m team.Message) bool {
	return m.Type == team.MsgUser || m.Type == team.MsgBroadcast || m.Type == team.MsgMessage && (m.From == team.UserAgent || m.From == team.Leader)
}

// seen are the facts that the model has seen.
func (c *Conversation) seen() []fact { return c.Facts[:min(c.Known, len(c.Facts))] }

// ofPerson reports whether f is mail of a person.
func (f fact) ofPerson() bool { return f.From == team.UserAgent }

// setsGoal reports whether f is mail that set or added to a leader's present goal.
func (c *Conversation) setsGoal(f fact) bool {
	return c.Goal > 0 && f.Type == team.MsgUser && f.Goal == c.Goal
}

// standing returns which of the facts that the model has seen are told word for word:
// the goal, and what fits into so many tokens beside it, that of people first, the
// newest first.
func (c *Conversation) standing(limit int) map[int]bool {
	told := map[int]bool{}
	for _, ofPeople := range []bool{true, false} {
		for i, f := range slices.Backward(c.seen()) {
			n := tokens.Estimate(f.Block)
			switch {
			case f.Block == "" || f.ofPerson() != ofPeople:
			case c.setsGoal(f):
				told[i] = true
			case n <= limit:
				told[i], limit = true, limit-n
			}
		}
	}
	return told
}

// standingMail returns the mail that stands as text: the newest word for word, older mail in
// one summary, and older mail that the summary does not cover yet by its first words.
func (c *Conversation) standingMail() string {
	var b strings.Builder
	told := c.standing(maxFacts)
	var words []string
	var older []fact
	for i, f := range c.seen() {
		if told[i] {
			words = append(words, f.Block)
		} else {
			older = append(older, f)
		}
	}
	if c.Digest != "" {
		b.WriteString("Older mail that still stands, in short:\n" + c.Digest + "\n")
	}
	if older != nil {
		b.WriteString("Mail that you got before and that still stands, by its first words:\n")
		lines := oldest(older, maxBriefs, func(f fact) string { return fmt.Sprintf("- %s: %s", f.From, neutral(f.Brief)) })
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	if words != nil {
		b.WriteString("Mail that you got before and that still stands:\n" + strings.Join(words, "\n") + "\n")
	}
	return b.String()
}

// forget bounds the mail that is kept for a summary that could not be had yet: of the
// oldest only the first words stay, and of those the first and the newest.
func (c *Conversation) forget() {
	c.Facts = slices.Clone(c.Facts)
	kept := c.standing(mostFacts)
	for i := range c.seen() {
		if !kept[i] {
			c.Facts[i].Block = ""
		}
	}
	if many := len(c.seen()) - keptPast; many > 0 {
		c.Facts = slices.Delete(c.Facts, keptPast/4, keptPast/4+many)
		c.Known -= many
	}
}

// old returns the indexes of the facts that the next summary of older mail takes in; none if
// all mail that stands fits word for word. It takes in more than it must, so that the next
// message does not need another summary at once.
func (c *Conversation) old() (which []int) {
	fits, kept := c.standing(maxFacts), c.standing(keptFacts)
	over := false
	for i, f := range c.seen() {
		over = over || !fits[i] && f.Block != ""
		if !kept[i] {
			which = append(which, i)
		}
	}
	if !over {
		return nil
	}
	return which
}

// begins reports whether the model has answered nothing in this context yet, so that
// what it tells of before can still be told otherwise.
func (c *Conversation) begins() bool {
	return c.Head == 1 && !slices.ContainsFunc(c.Messages, func(m *model.Message) bool { return m.Role == "assistant" })
}

// digested returns the conversation with a new summary in place of these facts and of the
// previous summary.
func (c *Conversation) digested(digest string, which []int) *Conversation {
	n := *c
	n.Digest, n.Facts = digest, nil
	for i, f := range c.Facts {
		if !slices.Contains(which, i) {
			n.Facts = append(n.Facts, f)
		}
	}
	n.Known = len(c.seen()) - len(which)
	if c.begins() {
		n.Messages = slices.Clone(c.Messages)
		n.Messages[0] = &model.Message{Role: "user", Content: n.background(n.Messages[1:])}
		n.Sent, n.Since = 0, 0
	}
	return &n
}

// digestWithin bounds the wait for a summary of older mail; the agent does not work
// meanwhile.
const digestWithin = 2 * time.Minute

// digest has the model sum up the mail that stands and no longer fits word for word.
// What it gives no summary of is told by its first words until it does.
func (a *Agent) digest(ctx context.Context) error {
	for which := a.conv.old(); which != nil && a.conv.Parked == nil; which = a.conv.old() {
		done, err := a.digestOf(ctx, which)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

// digestOf is digest of the first of these facts, as many as are not too long for one
// question; done is false if the model gave no summary.
func (a *Agent) digestOf(ctx context.Context, which []int) (done bool, err error) {
	room := excerptTokens
	if w := a.gauge.window(); w > 0 {
		room = w / keptShare
	}
	parts := []string{digestPrompt}
	if a.conv.Digest != "" {
		parts = append(parts, "What you kept of still older mail:\n"+a.conv.Digest)
	}
	for k, i := range which {
		f := a.conv.Facts[i]
		text := f.Block
		if text == "" {
			text = fmt.Sprintf("- %s: %s", f.From, neutral(f.Brief))
		}
		n := tokens.Estimate(text)
		if n > room && k > 0 {
			which = which[:k]
			break
		}
		if n > room { // alone: the window is smaller than it was when it came
			text = tailless(text, len(text)*room/n)
		}
		room -= n
		parts = append(parts, text)
	}
	within, cancel := context.WithTimeout(ctx, digestWithin)
	defer cancel()
	reply, text, err := a.summary(within, []*model.Message{{Role: "user", Content: strings.Join(parts, "\n")}}, maxDigest)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case within.Err() != nil:
		return false, nil
	case err != nil:
		return false, err
	case strings.TrimSpace(text) == "" || cut(reply):
		return false, a.recordWasted(ctx, reply)
	}
	return true, a.renewBy(ctx, "older mail was summarized", a.conv.digested(tailless(neutral(text), maxDigest*8), which), reply)
}

// recordWasted records what a summary has cost that is of no use.
func (a *Agent) recordWasted(ctx context.Context, r model.Reply) error {
	if r.Usage == (model.Usage{}) {
		return nil
	}
	return a.record(ctx, journal.Record{Kind: journal.Refused, TaskID: a.atWork(), Refusal: &journal.Refusal{
		Advice: string(model.TryAgain), Reason: string(model.Incomplete), Cause: "the summary of older mail is empty or was cut", Alias: r.Alias, Usage: usageJSON(r.Usage)}})
}
