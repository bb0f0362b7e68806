package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
)

// The functions below make a conversation shorter. Each is pure: it returns the new conversation,
// and shares no slice with it that either appends to.

// past is an earlier task of the agent.
type past struct {
	Task    team.TaskID `json:"task"`
	Title   string      `json:"title"`
	Outcome string      `json:"outcome"`
}

// inboxItem is a message that the model has not seen.
type inboxItem struct {
	From  team.AgentID `json:"from"`
	ID    string       `json:"id"`
	Brief string       `json:"brief"`
}

// briefly returns the summary or the first words of a message, and the reference to its full text
// if that is stored.
func briefly(m team.Message, stored string) string {
	brief := cmp.Or(m.Summary, team.Summarize(m.Content))
	if stored != "" {
		brief += " (whole: " + stored + ")"
	}
	return brief
}

// Bounds of the history at the beginning of a new context, in tokens.
const (
	maxFacts  = 4000 // mail in full, that of people first
	maxBriefs = 600  // older mail, by its first words
	maxGoals  = 2500 // goals that have ended
	maxPast   = 1200 // tasks, a line each
	keptPast  = 200  // how many tasks, and how many messages, are remembered at all
)

// emptied returns c without its messages and their token counts.
func (c *Conversation) emptied() *Conversation {
	n := *c
	n.Conversation = c.With()
	n.Unread = slices.Clone(c.Unread)
	n.forget()
	n.Past = slices.Clone(c.Past[max(0, len(c.Past)-keptPast):])
	n.Read, n.Holds = slices.Clone(c.Read), maps.Clone(c.Holds)
	n.Stale, n.Overview = false, ""
	if len(c.Holds) > keptPast { // the lowest task is forgotten
		delete(n.Holds, slices.MinFunc(slices.Collect(maps.Keys(c.Holds)), func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) }))
	}
	return &n
}

// kept returns the texts that a shorter conversation keeps in addition to its remaining messages;
// task is the text of the held task.
func (c *Conversation) kept(cut engine.Cut, task string) engine.Kept {
	n := c.emptied()
	if cut.Rung != engine.Whole {
		n.Open, n.Held, n.Known = nil, nil, len(n.Facts)
	}
	return engine.Kept{Before: n.background(cut.Stay, cut.Room), Work: n.work(task), Orders: c.orders(), Asked: n.stillAsked(nil, false),
		Missing: " read_mail shows the mail that you got." + c.unseenMail(cut.Rung, cut.Words)}
}

// shorter returns the conversation with the messages of next.
func (c *Conversation) shorter(next engine.Conversation, cut engine.Cut) *Conversation {
	n := c.emptied()
	switch {
	case cut.Rung == engine.Undone:
		n.Overview = c.Overview
	case cut.Rung > engine.Compacted:
		n.Known, n.Folders = len(n.Facts), nil // they are shown again
	case cut.Rung > engine.Undone:
		n.Known = len(n.Facts)
	}
	n.Conversation = next
	return n
}

// fresh returns the conversation for another piece of work: the task next or, if next is "", a
// goal. It keeps the ended goals, a line for each earlier task, the mail that stays valid, in about
// room tokens, and the input that the model has not seen.
func (c *Conversation) fresh(next team.TaskID, room int) *Conversation {
	n := c.emptied()
	n.Calls, n.Summary, n.Folders, n.Quoted = nil, "", nil, false // the next piece of work may be elsewhere
	if next != "" {
		n.leave(next)
	}
	kept := c.Messages[c.Pending():]
	if text := n.background(kept, room); text != "" {
		n.Messages = append(n.Messages, &model.Message{Role: "user", Content: text})
		n.Head = 1
	}
	n.Messages = append(n.Messages, kept...)
	return n
}

// background returns the history that still counts, in about room tokens, except for texts among
// the messages kept.
func (c *Conversation) background(kept []*model.Message, room int) string {
	var b strings.Builder
	b.WriteString(c.goalsBefore(min(maxGoals, room/2)))
	if lines := engine.Newest(c.Past, maxPast, func(p past) string {
		return fmt.Sprintf("- %s (%s): %s", p.Task, neutral(p.Title), neutral(p.Outcome))
	}); lines != nil {
		b.WriteString("Tasks that you worked on before, for your information:\n" + strings.Join(lines, "\n") + "\n")
	}
	b.WriteString(c.foldersBefore(kept, room/4))
	b.WriteString(c.standingMail(min(maxFacts, room/2)))
	b.WriteString(c.running())
	b.WriteString(c.stillAsked(slices.Concat(kept, c.Held), true))
	return strings.TrimSuffix(b.String(), "\n")
}

// oldest returns the texts of the first items, as many as fit into limit tokens, and a line with
// the number of the others.
func oldest[T any](items []T, limit int, text func(T) string) (texts []string) {
	for i, item := range items {
		s := text(item)
		if limit -= tokens.Estimate(s); limit < 0 {
			return append(texts, fmt.Sprintf("- and %d more", len(items)-i))
		}
		texts = append(texts, s)
	}
	return texts
}

// work returns the text of the agent's work: the task, or the mail that set a leader's goal.
func (c *Conversation) work(task string) (texts []string) {
	if task != "" {
		return []string{task}
	}
	for _, f := range c.Facts {
		if c.setsGoal(f) {
			texts = append(texts, f.Block)
		}
	}
	return texts
}

// dropped returns the conversation without its work, which is over. The model is not shown that
// work again, except for requests to shut down.
func (c *Conversation) dropped() *Conversation {
	n := c.emptied()
	n.Open, n.Held, n.Calls, n.Summary, n.Quoted = nil, nil, nil, "", false
	n.Known, n.Unread, n.Unseen, n.Ended = len(n.Facts), nil, false, true
	if text := c.stillAsked(nil, false); text != "" {
		n.Messages, n.Head = []*model.Message{{Role: "user", Content: text}}, 1
	}
	return n
}
