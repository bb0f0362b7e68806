package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tokens"
)

// What follows makes a conversation shorter. Each function is pure: it returns what
// the conversation becomes, and shares no slice with it that either appends to.

// past is a task that the agent was at.
type past struct {
	Task    team.TaskID `json:"task"`
	Title   string      `json:"title"`
	Outcome string      `json:"outcome"`
}

// letter is a message that the model has not seen.
type letter struct {
	From  team.AgentID `json:"from"`
	ID    string       `json:"id"`
	Brief string       `json:"brief"`
}

// briefly is a message by its first words, and by where the whole of it lies if it is
// stored.
func briefly(m team.Message, stored string) string {
	brief := cmp.Or(m.Summary, team.Summarize(m.Content))
	if stored != "" {
		brief += " (whole: " + stored + ")"
	}
	return brief
}

// How much of what came before a new context begins with, in tokens.
const (
	maxFacts  = 4000 // mail word for word, that of people first
	maxBriefs = 600  // older mail, by its first words
	maxGoals  = 2500 // goals that have ended
	maxPast   = 1200 // tasks, a line each
	keptPast  = 200  // how many tasks, and how many messages, are remembered at all
)

// with returns c with other messages; the token counts of the old ones are reset.
func (c *Conversation) with(messages ...*model.Message) *Conversation {
	n := *c
	n.Messages, n.Open, n.Held, n.Unread = messages, slices.Clone(c.Open), slices.Clone(c.Held), slices.Clone(c.Unread)
	n.forget()
	n.Past = slices.Clone(c.Past[max(0, len(c.Past)-keptPast):])
	n.Read, n.Holds = slices.Clone(c.Read), maps.Clone(c.Holds)
	n.Head, n.Mail, n.Sent, n.Since, n.Stale, n.Rung, n.Overview = 0, -1, 0, 0, false, whole, ""
	n.Calls = slices.Clone(c.Calls)
	if first, many := c.oldestHold(); many {
		delete(n.Holds, first)
	}
	return &n
}

// oldestHold returns the lowest of the tasks in Holds, and whether more than keptPast are
// remembered.
func (c *Conversation) oldestHold() (first team.TaskID, many bool) {
	if len(c.Holds) <= keptPast {
		return "", false
	}
	return slices.MinFunc(slices.Collect(maps.Keys(c.Holds)), func(a, b team.TaskID) int { return cmp.Compare(a.Number(), b.Number()) }), true
}

// pending returns the index of the first message that the model has not seen. Results that
// it has not seen count together with the turn that asked for them.
func (c *Conversation) pending() int {
	at := len(c.Messages)
	for at > c.Head && c.Messages[at-1].Role == "user" {
		at--
	}
	if len(c.Open) == 0 && (!c.Unseen || c.Ended || at == c.Head || c.Messages[at-1].Role != "tool") {
		return at
	}
	for at > c.Head && c.Messages[at-1].Role == "tool" {
		at--
	}
	return max(at-1, c.Head)
}

// amid reports whether the model has not seen the results of its last turn yet.
func (c *Conversation) amid() bool {
	at := c.pending()
	return at < len(c.Messages) && c.Messages[at].Role == "assistant"
}

// fresh returns the conversation with which another piece of work begins: the task next or,
// with "", a goal. It keeps the ended goals, a line for each earlier task, the mail that
// stands, in about room tokens, and what the model has not seen.
func (c *Conversation) fresh(next team.TaskID, room int) *Conversation {
	n := c.with()
	n.Calls, n.Summary = nil, ""
	if next != "" {
		n.leave(next)
	}
	kept := c.Messages[c.pending():]
	if text := n.background(kept, room); text != "" {
		n.Messages = append(n.Messages, &model.Message{Role: "user", Content: text})
		n.Head = 1
	}
	n.Messages = append(n.Messages, kept...)
	return n
}

// background tells what came before the messages that are kept, and still counts, in about
// room tokens.
func (c *Conversation) background(kept []*model.Message, room int) string {
	var b strings.Builder
	b.WriteString(c.goalsBefore(min(maxGoals, room/2)))
	if lines := newest(c.Past, maxPast, func(p past) string {
		return fmt.Sprintf("- %s (%s): %s", p.Task, neutral(p.Title), neutral(p.Outcome))
	}); lines != nil {
		b.WriteString("Tasks that you worked on before, for your information:\n" + strings.Join(lines, "\n") + "\n")
	}
	b.WriteString(c.standingMail(min(maxFacts, room/2)))
	b.WriteString(c.stillAsked(slices.Concat(kept, c.Held), true))
	return strings.TrimSuffix(b.String(), "\n")
}

// newest returns the texts of the last items, in order, as many as fit into limit.
func newest[T any](items []T, limit int, text func(T) string) (texts []string) {
	for _, item := range slices.Backward(items) {
		s := text(item)
		if limit -= tokens.Estimate(s); limit < 0 {
			break
		}
		texts = append(texts, s)
	}
	slices.Reverse(texts)
	return texts
}

// oldest returns the texts of the first items, as many as fit into limit, and a line
// that says how many do not.
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

// work is what the agent is at: the task, or the mail that set a leader's goal.
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

// dropped returns the conversation without its work, which is over; nothing of it is told
// to the model again, except that it was asked to shut down.
func (c *Conversation) dropped() *Conversation {
	n := c.with()
	n.Open, n.Held, n.Calls, n.Summary = nil, nil, nil, ""
	n.Known, n.Unread, n.Unseen, n.Ended = len(n.Facts), nil, false, true
	if text := c.stillAsked(nil, false); text != "" {
		n.Messages, n.Head = []*model.Message{{Role: "user", Content: text}}, 1
	}
	return n
}

// leastMarked is how many bytes a result or an argument must have to be worth a marker.
const leastMarked = 1000

// marked is the conversation with a line in place of each old result of a bulky tool, and of
// what was written to files by it. The newest turns stay, as many as fit into keep tokens,
// and those whose results the model has not seen.
func (c *Conversation) marked(tools Tools, keep int) *Conversation {
	calls := map[string]model.ToolCall{}
	upTo, pending, open := len(c.Messages), c.pending(), true
	for i, m := range slices.Backward(c.Messages) {
		keep -= size(m)
		open = open && (keep >= 0 || i >= pending)
		if open && m.Role == "assistant" {
			upTo = i
		}
		for _, call := range m.ToolCalls {
			calls[call.ID] = call
		}
	}
	messages := slices.Clone(c.Messages)
	for i, m := range messages[:upTo] {
		short := *m
		switch m.Role {
		case "tool":
			short.Content = resultMarker(tools, calls[m.ToolCallID], m.Content)
		case "assistant":
			short.ToolCalls = slices.Clone(m.ToolCalls)
			for k, call := range short.ToolCalls {
				stored, _ := tools.Bulky(call.Name)
				short.ToolCalls[k].Arguments = argumentMarkers(call.Arguments, stored)
			}
		default:
			continue
		}
		if size(&short) < size(m) {
			messages[i] = &short
		}
	}
	n := c.with(messages...)
	n.Head, n.Mail, n.Overview = c.Head, c.Mail, c.Overview
	return n
}

// resultMarker is what stands for an old result: itself unless it is long and of a bulky tool.
func resultMarker(tools Tools, call model.ToolCall, result string) string {
	if _, bulky := tools.Bulky(call.Name); !bulky || len(result) < leastMarked {
		return result
	}
	text := fmt.Sprintf("[The result of this call was left out to save room, %d bytes.", len(result))
	if tools.ReadOnly(call.Name) {
		text += " Call it again if you need it."
	}
	return text + "]"
}

// argumentMarkers returns a call's arguments with a marker in place of each long value of
// those that the tool has stored.
func argumentMarkers(arguments string, stored []string) string {
	var given map[string]json.RawMessage
	if len(stored) == 0 || len(arguments) < leastMarked || json.Unmarshal([]byte(arguments), &given) != nil {
		return arguments
	}
	for _, name := range stored {
		var value string
		if json.Unmarshal(given[name], &value) == nil && len(value) >= leastMarked {
			given[name] = asJSON(fmt.Sprintf("[%d bytes were left out of this conversation to save room; see the file]", len(value)))
		}
	}
	return string(asJSON(given))
}

// tailless is at most n bytes of s.
func tailless(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// summarized is the conversation with a summary in place of its older part. The work
// (the task that is held, or the goal), the mail that stands, the files read last, and
// the newest turns, room tokens of them, stay as they are.
func (c *Conversation) summarized(summary, task string, room int) *Conversation {
	from := c.tail(room)
	n := c.with()
	var head []string
	if text := c.background(c.Messages[from:], room); text != "" {
		head = append(head, text)
	}
	said := strings.Join(head, "")
	for _, m := range c.Messages[from:] {
		said += m.Content
	}
	for _, text := range c.work(task) {
		if text != "" && !strings.Contains(said, text) {
			head = append(head, text)
		}
	}
	head = append(head, "This conversation was shortened. What was said and done before, in short:\n"+summary)
	if files := c.files(from, room/2); files != nil {
		head = append(head, "The files that you read last, as they were then:\n"+strings.Join(files, "\n"))
	}
	n.Messages = append([]*model.Message{{Role: "user", Content: strings.Join(head, "\n\n")}}, c.Messages[from:]...)
	n.Head, n.Summary = 1, summary
	return n
}

// tail returns where the newest messages begin that fit into room tokens: with a turn
// or with input, never between a call and its result. The input that the model has
// not seen belongs to it, however much it is.
func (c *Conversation) tail(room int) int {
	at := c.pending()
	for i, m := range slices.Backward(c.Messages[:at]) {
		if room -= size(m); room < 0 || i < c.Head {
			break
		}
		if m.Role != "tool" {
			at = i
		}
	}
	return at
}

// files returns the files that were read last before a message, whole, as many as fit
// into room tokens.
func (c *Conversation) files(before, room int) (texts []string) {
	paths := map[string]string{} // by call
	for _, m := range c.Messages[:before] {
		for _, call := range m.ToolCalls {
			var in struct {
				Path     string
				FilePath string `json:"file_path"`
			}
			if team.NativeTool(call.Name) == "read_file" && json.Unmarshal([]byte(call.Arguments), &in) == nil && in.Path+in.FilePath != "" {
				paths[call.ID] = cmp.Or(in.Path, in.FilePath)
			}
		}
	}
	seen := map[string]bool{}
	for _, m := range slices.Backward(c.Messages[:before]) {
		path, ok := paths[m.ToolCallID]
		if m.Role != "tool" || !ok || seen[path] || strings.HasPrefix(m.Content, "[The result of") {
			continue
		}
		seen[path] = true
		text := fmt.Sprintf("== %s\n%s", path, m.Content)
		if room -= tokens.Estimate(text); room < 0 {
			break
		}
		texts = append(texts, text)
	}
	slices.Reverse(texts)
	return texts
}

// account tells without a model what was said and done up to a message, as much of
// the end of it as fits into room tokens.
func (c *Conversation) account(before, room int) string {
	results := map[string]string{}
	for _, m := range c.Messages[:before] {
		if m.Role == "tool" {
			results[m.ToolCallID] = m.Content
		}
	}
	var lines []string
	for _, m := range c.Messages[:before] {
		if m.Role != "assistant" {
			continue
		}
		if m.Content != "" {
			lines = append(lines, "- you said: "+tailless(oneLine(m.Content), 300))
		}
		for _, call := range m.ToolCalls {
			lines = append(lines, fmt.Sprintf("- you called %s %s: %s", call.Name, tailless(oneLine(call.Arguments), 200), tailless(oneLine(results[call.ID]), 200)))
		}
	}
	earlier := tailless(c.Summary, room*2) // of an earlier compaction, half of what there is room for
	lines = newest(lines, room-tokens.Estimate(earlier), func(s string) string { return s })
	if earlier != "" {
		lines = append([]string{earlier}, lines...)
	}
	return strings.Join(lines, "\n")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// size is about how many tokens m is.
func size(m *model.Message) int { return sizeBy(m, tokens.Estimate) }

// sizeBy is how many tokens m is by count, which counts those of a text.
func sizeBy(m *model.Message, count func(string) int) int {
	n := 8 + count(m.Content) // of the frame that every message has
	for _, p := range m.Parts {
		n += count(p.Text)
		if p.Image != nil {
			n += imageTokens
		}
	}
	for _, c := range m.ToolCalls {
		n += 8 + count(c.Name) + count(c.Arguments)
	}
	return n
}

// imageTokens is what an image costs about: endpoints count from some hundred to two
// thousand, by its size.
const imageTokens = 1500

func sizeOf(messages []*model.Message) (n int) {
	for _, m := range messages {
		n += size(m)
	}
	return n
}
