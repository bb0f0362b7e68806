package agent

import (
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
)

// fact is mail that stays valid for all tasks.
type fact struct {
	ID    string           `json:"id"`
	From  team.AgentID     `json:"from"`
	Type  team.MessageType `json:"type"`
	Goal  int              `json:"goal,omitempty"`  // of the leader's team, when the mail arrived
	Sets  bool             `json:"sets,omitempty"`  // the mail set that goal
	Brief string           `json:"brief"`           // its first words
	Block string           `json:"block,omitempty"` // as the model is shown it; "" once only its first words are kept
}

// stands reports whether m stays valid: mail from a person or the leader, or a broadcast.
func stands(m team.Message) bool {
	return m.Type == team.MsgUser || m.Type == team.MsgBroadcast || m.Type == team.MsgMessage && (m.From == team.UserAgent || m.From == team.Leader)
}

// seen returns the facts that the model has seen.
func (c *Conversation) seen() []fact { return c.Facts[:min(c.Known, len(c.Facts))] }

// ofPerson reports whether f is mail of a person.
func (f fact) ofPerson() bool { return f.From == team.UserAgent }

// setsGoal reports whether f is mail that set or added to a leader's present goal.
func (c *Conversation) setsGoal(f fact) bool {
	return c.Goal > 0 && f.Type == team.MsgUser && f.Goal == c.Goal
}

// standing returns which of the seen facts are shown verbatim: the goal, and in addition others up
// to limit tokens, those of people first, the newest first.
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

// standingMail returns the mail that stays valid as text: the newest verbatim, at most limit tokens
// in addition to the goal, and older mail by its first words.
func (c *Conversation) standingMail(limit int) string {
	var b strings.Builder
	told := c.standing(limit)
	var words []string
	var older []fact
	for i, f := range c.seen() {
		if told[i] {
			words = append(words, f.Block)
		} else {
			older = append(older, f)
		}
	}
	if older != nil {
		b.WriteString("Older mail that still stands, by its first words. read_mail with its id shows the whole:\n")
		lines := oldest(older, maxBriefs, func(f fact) string {
			return fmt.Sprintf("- %s, id %s: %s", f.From, attribute(team.ShortID(f.ID)), neutral(f.Brief))
		})
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	if words != nil {
		b.WriteString("Mail that you got before and that still stands:\n" + strings.Join(words, "\n") + "\n")
	}
	return b.String()
}

// forget bounds the kept mail. Mail that set an earlier goal is removed, since that goal has ended.
// Mail beyond maxFacts tokens keeps only its first words, and beyond keptPast facts only the first
// and the newest stay.
func (c *Conversation) forget() {
	seen := len(c.seen())
	var facts []fact
	for i, f := range c.Facts {
		if i < seen && f.Sets && f.Goal < c.Goal {
			c.Known--
			continue
		}
		facts = append(facts, f)
	}
	c.Facts = facts
	kept := c.standing(maxFacts)
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

// goalsBefore lists for a leader the goals that have ended, in at most limit tokens: the next goal
// builds on them.
func (c *Conversation) goalsBefore(limit int) string {
	lines := engine.Newest(c.PastGoals, limit, func(g team.PastGoal) string {
		text := fmt.Sprintf("- Goal %d, %s", g.Number, g.Status)
		if g.EndedAt != nil {
			text += " on " + g.EndedAt.UTC().Format("2006-01-02 15:04")
		}
		text += ": " + neutral(team.OneLine(g.Goal))
		if g.Reason != "" {
			text += "\n  It failed: " + neutral(team.OneLine(g.Reason))
		}
		if g.Summary != "" {
			text += "\n  Summary: " + neutral(team.OneLine(g.Summary))
		}
		if g.Tasks != "" {
			text += "\n  Tasks: " + g.Tasks
		}
		return text
	})
	if lines == nil {
		return ""
	}
	text := "Goals before this one. They have ended: do not work on them again unless you are asked to.\n" + strings.Join(lines, "\n") + "\n"
	if older := c.PastGoals[len(c.PastGoals)-len(lines)].Number - 1; older > 0 {
		text += fmt.Sprintf("- and %d earlier\n", older)
	}
	return text
}

// orders returns the instructions of people verbatim, except mail of which only the first words
// are kept.
func (c *Conversation) orders() string {
	var lines []string
	for _, f := range c.Facts {
		switch {
		case !f.ofPerson(), c.setsGoal(f), f.Sets: // the goal is the work, and those before have ended
		case f.Block == "":
			lines = append(lines, fmt.Sprintf("- id %s: %s (its first words; read_mail with its id shows the whole)", attribute(team.ShortID(f.ID)), neutral(f.Brief)))
		default:
			lines = append(lines, f.Block)
		}
	}
	if lines == nil {
		return ""
	}
	return "What people have told you, which still holds:\n" + strings.Join(lines, "\n")
}

// unseenMail lists the mail that a rung removes before the model has seen it ([engine.Whole]: all
// of it); with its first words, unless the endpoint may refuse them.
func (c *Conversation) unseenMail(at engine.Rung, words bool) string {
	text := ""
	for _, m := range c.Unread {
		stands := func(f fact) bool {
			return f.ID == m.ID && (at == engine.Compacted || at == engine.OrdersOnly && f.ofPerson())
		}
		if slices.ContainsFunc(c.Facts, stands) {
			continue // it is shown above
		}
		text += "\n- from " + string(m.From) + ", id " + team.ShortID(m.ID)
		if words {
			text += ": " + neutral(m.Brief)
		}
	}
	if text == "" {
		return ""
	}
	return "\nMail that you have not seen:" + text
}
