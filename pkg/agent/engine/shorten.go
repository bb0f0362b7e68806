package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// The functions below make a conversation shorter. Each is pure, unless it states otherwise: it
// returns the new conversation, and shares no slice with it that either appends to.

// With returns c with other messages; the token counts of the old ones are reset.
func (c *Conversation) With(messages ...*model.Message) Conversation {
	n := *c
	n.Messages, n.Open, n.Held, n.Calls = messages, slices.Clone(c.Open), slices.Clone(c.Held), slices.Clone(c.Calls)
	n.Head, n.Old, n.Mail, n.Sent, n.Since, n.Rung = 0, 0, -1, 0, 0, Whole
	return n
}

// Pending returns the index of the first message that the model has not seen. Unseen results count
// together with the turn that called for them.
func (c *Conversation) Pending() int {
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

// Amid reports whether the model has not seen the results of its last turn.
func (c *Conversation) Amid() bool {
	at := c.Pending()
	return at < len(c.Messages) && c.Messages[at].Role == "assistant"
}

// leastMarked is how many bytes a result or an argument must have to be worth a marker.
const leastMarked = 1000

// Marked returns the conversation with a line in place of each old result of a bulky tool and of
// each text that it wrote to files. The newest turns stay, as many as fit into keep tokens, and
// turns whose results the model has not seen.
func (c *Conversation) Marked(tools Tools, keep int) Conversation {
	calls := map[string]model.ToolCall{}
	upTo, pending, open := len(c.Messages), c.Pending(), true
	for i, m := range slices.Backward(c.Messages) {
		keep -= Size(m)
		open = open && (keep >= 0 || i >= pending)
		if open && m.Role == "assistant" {
			upTo = i
		}
		for _, call := range m.ToolCalls {
			calls[call.ID] = call
		}
	}
	messages, old := slices.Clone(c.Messages), c.Old
	for i, m := range messages[:upTo] {
		short := *m
		switch m.Role {
		case "tool":
			short.Content = resultMarker(tools.Traits(calls[m.ToolCallID].Name), m.Content)
		case "assistant":
			short.ToolCalls = slices.Clone(m.ToolCalls)
			for k, call := range short.ToolCalls {
				short.ToolCalls[k].Arguments = argumentMarkers(call.Arguments, tools.Traits(call.Name).Stored, leastMarked)
			}
		default:
			if !pictured(m) {
				continue
			}
			short = *unpictured(m)
		}
		if Size(&short) < Size(m) {
			messages[i], old = &short, i+1
		}
	}
	for 0 < old && old < upTo && messages[old].Role == "tool" {
		old++
	}
	n := c.With(messages...)
	n.Head, n.Old, n.Mail = c.Head, old, c.Mail
	return n
}

// Arguments of mostWritten bytes that a tool has stored stay for writtenFor turns, whatever the
// window: each later request would pay for them.
const (
	mostWritten = 8 << 10
	writtenFor  = 3
)

// leaveWritten replaces in c long arguments that were written to files, once the oldest is more
// than writtenFor turns old: all but those of the newest turn, since each replacement invalidates
// the cached prompt from there on. It returns the replaced messages by their index.
func (c *Conversation) leaveWritten(tools Tools) map[int]*model.Message {
	was, turns, oldest := map[int]*model.Message{}, 0, 0
	for i, m := range slices.Backward(c.Messages) {
		if m.Role == "assistant" {
			turns++
		}
		for k, call := range m.ToolCalls {
			if turns == 1 || len(call.Arguments) < mostWritten {
				continue
			}
			short := argumentMarkers(call.Arguments, tools.Traits(call.Name).Stored, mostWritten)
			if short == call.Arguments {
				continue
			}
			if was[i] == nil {
				n := *m
				n.ToolCalls = slices.Clone(m.ToolCalls)
				was[i], oldest = &n, turns
			}
			was[i].ToolCalls[k].Arguments = short
		}
	}
	if oldest <= writtenFor {
		return nil
	}
	for i, m := range was {
		was[i], c.Messages[i] = c.Messages[i], m
	}
	return was
}

// resultMarker returns the marker for an old result, or the result unless it is long and of a bulky
// tool.
func resultMarker(t tool.Traits, result string) string {
	if !t.Bulky || len(result) < leastMarked {
		return result
	}
	text := fmt.Sprintf("[The result of this call was left out to save room, %d bytes.", len(result))
	if t.ReadOnly {
		text += " Call it again if you need it."
	}
	return text + "]"
}

// argumentMarkers returns a call's arguments with a marker in place of each value that the tool has
// stored, if the value has at least least bytes.
func argumentMarkers(arguments string, stored []string, least int) string {
	var given map[string]json.RawMessage
	if len(stored) == 0 || len(arguments) < least || json.Unmarshal([]byte(arguments), &given) != nil {
		return arguments
	}
	for _, name := range stored {
		value := string(given[name]) // a list, or
		_ = json.Unmarshal(given[name], &value)
		if len(value) >= least {
			given[name] = JSON(fmt.Sprintf("[%d bytes were left out of this conversation to save room; see the file]", len(value)))
		}
	}
	return string(JSON(given))
}

// Summarized returns the conversation with a summary in place of its older part, and the list of
// changed files. The memory's kept texts, the files read last, and the newest turns, up to room
// tokens, stay.
func (c *Conversation) Summarized(tools Tools, memory Memory, summary, changes string, room int) Conversation {
	from := c.tail(room)
	n := c.With()
	kept := memory.Kept(Cut{Stay: c.Messages[from:], Room: room, Words: true})
	var head []string
	if kept.Before != "" {
		head = append(head, kept.Before)
	}
	said := kept.Before
	for _, m := range c.Messages[from:] {
		said += m.Content
	}
	for _, text := range kept.Work {
		if text != "" && !strings.Contains(said, text) {
			head = append(head, text)
		}
	}
	head = append(head, "This conversation was shortened. What was said and done before, in short:\n"+summary)
	if changes != "" {
		head = append(head, "The files that differ from the last commit now:\n"+changes)
	}
	if files := c.files(tools, from, room/2); files != nil {
		head = append(head, "The files that you read last, as they were then:\n"+strings.Join(files, "\n"))
	}
	n.Messages = append([]*model.Message{userMessage(strings.Join(head, "\n\n"))}, c.Messages[from:]...)
	n.Head, n.Summary = 1, summary
	return n
}

// tail returns the index from which the newest messages fit into room tokens: at a turn or an
// input, never between a call and its result. All input that the model has not seen belongs to it;
// a turn with markers does not: in a small window the calls of such turns alone would soon fill it.
func (c *Conversation) tail(room int) int {
	at := c.Pending()
	for i, m := range slices.Backward(c.Messages[:at]) {
		if room -= Size(m); room < 0 || i < max(c.Head, c.Old) {
			break
		}
		if m.Role != "tool" {
			at = i
		}
	}
	return at
}

// files returns the files that were read last before a message, in full, as many as fit into room
// tokens.
func (c *Conversation) files(tools Tools, before, room int) (texts []string) {
	paths := map[string]string{} // by call
	for _, m := range c.Messages[:before] {
		for _, call := range m.ToolCalls {
			if path := argument(call.Arguments, tools.Traits(call.Name).Reads); path != "" {
				paths[call.ID] = path
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

// argument returns the first non-empty string among a call's arguments of these names, or "".
func argument(arguments string, names []string) string {
	var given map[string]any
	if len(names) == 0 || json.Unmarshal([]byte(arguments), &given) != nil {
		return ""
	}
	for _, name := range names {
		if value, ok := given[name].(string); ok && value != "" {
			return value
		}
	}
	return ""
}

// account summarizes the conversation up to a message without calling a model: as much of its
// end as fits into room tokens.
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
			lines = append(lines, "- you said: "+Head(team.OneLine(m.Content), 300))
		}
		for _, call := range m.ToolCalls {
			lines = append(lines, fmt.Sprintf("- you called %s %s: %s", call.Name, Head(team.OneLine(call.Arguments), 200), Head(team.OneLine(results[call.ID]), 200)))
		}
	}
	earlier := Head(c.Summary, room*2) // of an earlier compaction, half of what there is room for
	lines = Newest(lines, room-tokens.Estimate(earlier), func(s string) string { return s })
	if earlier != "" {
		lines = append([]string{earlier}, lines...)
	}
	return strings.Join(lines, "\n")
}

// Size estimates the tokens of m.
func Size(m *model.Message) int { return sizeBy(m, tokens.Estimate) }

// sizeBy returns the tokens of m; count counts those of a text.
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

// imageTokens is the estimated cost of an image: endpoints count from some hundred to two thousand,
// by its size.
const imageTokens = 1500

func sizeOf(messages []*model.Message) (n int) {
	for _, m := range messages {
		n += Size(m)
	}
	return n
}

// Newest returns the texts of the last items, in order, as many as fit into limit tokens.
func Newest[T any](items []T, limit int, text func(T) string) (texts []string) {
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

// Head returns s, or if it is longer its first n bytes and three dots.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
