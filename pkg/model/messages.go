package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// messagesWire encodes requests of Anthropic's Messages.
//
// A thought is signed together with everything before it: newer models refuse it after anything else. So a reply keeps
// the digest of its prompt, and its thoughts go back only after the same prompt. After compaction or a marker has
// changed a conversation, its later turns are sent without thoughts. Models with a thinking budget sign the thought
// alone and refuse a tool loop without it, so for them a thought goes back after anything.
type messagesWire struct{}

// The fields of a message's Extra that the Messages wire fills in.
const (
	answerBlocks = "answer_blocks" // the blocks of the turn in order: thoughts whole, of texts the length, of calls the place
	answersTo    = "answers_to"    // the digest of what stood before the turn
)

// leastCached are the minimal sizes of a cached prompt by model, in tokens (docs.anthropic.com, prompt caching). The
// longest entry that names the model counts.
var leastCached = map[string]int{
	"claude": 1024, "claude-fable": 512, "claude-mythos": 512, "claude-opus-5": 512, "claude-sonnet-5-5": 512, "claude-haiku-5-5": 512,
	"claude-opus-4-7": 2048, "claude-opus-4-6": 4096, "claude-opus-4-5": 4096, "claude-haiku-4-5": 4096,
}

func (messagesWire) path() string { return "/messages" }

// messagesTurn holds the blocks of consecutive messages of one role.
type messagesTurn struct {
	role    string
	blocks  [][]byte
	results int // how many of them are results, which stand before all else

	// Of a turn of the user: how many messages stand before it, and what of those is kept.
	from, pictures int
	sum            hash.Hash
}

func (messagesWire) write(e *encoding, req Request, _ []run, _ int) (call, error) {
	tools, system := e.messagesTools(req.Tools), [][]byte(nil)
	ms := req.Messages
	if len(ms) > 0 && ms[0].Role == "system" {
		if text := e.text(ms[0]); text != "" {
			system = append(system, textBlock(text))
		}
		ms = ms[1:]
	}
	head := sha256.New()
	for _, b := range slices.Concat(tools, system) {
		head.Write(b)
	}
	e.earlier = e.begun.of(e.wording(digestOf(head)), ms)
	e.pictures = e.earlier.pictures
	turns, digest := e.messagesTurns(cmp.Or(e.earlier.sum, head), ms[len(e.earlier.messages):])
	if len(turns) < 3 && e.earlier.body != nil { // it has no mark where this request has one
		e.earlier, e.pictures = &beginning{by: e.earlier.by}, 0
		turns, digest = e.messagesTurns(head, ms)
	}

	m := marker{e: e, least: e.leastCached()}
	b := appendText([]byte(`{"model":`), e.model)
	if len(tools) > 0 {
		b = append(m.list(append(b, `,"tools":`...), tools, true), ']')
	}
	if len(system) > 0 {
		b = append(m.list(append(b, `,"system":`...), system, true), ']')
	}
	b = append(b, `,"messages":[`...)
	from := len(b)
	if b = append(b, e.earlier.body...); e.earlier.body != nil {
		m.size = e.earlier.size
	}
	for i, t := range turns {
		if i == len(turns)-3 && i > 0 { // what is before has no mark, and will have none
			kept := beginning{body: b[from:len(b):len(b)], pictures: t.pictures, sum: t.sum, size: m.size}
			e.keep([]run{{ms: ms[len(e.earlier.messages):][:t.from]}}, kept)
		}
		if len(b) > from {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"role":`...), t.role)
		// The last two of the user's: so the service finds the first mark where the last request had its last.
		b = append(m.list(append(b, `,"content":`...), t.blocks, t.role == "user" && i >= len(turns)-3), "]}"...)
	}
	prompt := len(b) - e.pictures
	b = append(b, `],"stream":true`...)
	extra, limit := e.settings([]movedSetting{{effortField, "output_config", "effort"}}), e.limit(req, prompt)
	if budget, ok := e.thinkingBudget(); ok && budget >= limit {
		delete(extra, "thinking") // refused, and so short an answer needs none
	}
	b = appendFields(b, extra, e.Drop...)
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(limit), 10)
	return call{body: append(b, '}'), bound: digest}, nil
}

func (e *encoding) messagesTools(ts []ToolSpec) (tools [][]byte) {
	for _, t := range ts {
		b := appendText([]byte(`{"name":`), t.Name)
		if t.Description != "" {
			b = appendText(append(b, `,"description":`...), t.Description)
		}
		b = append(append(b, `,"input_schema":`...), cmp.Or(string(e.schema(t.Schema)), string(noArguments))...)
		tools = append(tools, append(b, '}'))
	}
	return tools
}

func digestOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:16]) }

// copied returns a copy of sum.
func copied(sum hash.Hash) hash.Hash {
	c, _ := sum.(hash.Cloner).Clone() // SHA-256 always can
	return c
}

// messagesTurns returns the turns of the messages, and the digest of all of them; before is the digest of the content
// before them.
func (e *encoding) messagesTurns(before hash.Hash, ms []*Message) (turns []messagesTurn, digest string) {
	sum := copied(before)
	take := func(blocks [][]byte) {
		for _, b := range blocks {
			sum.Write(b)
		}
	}
	at := 0
	last := func() *messagesTurn {
		if len(turns) == 0 || turns[len(turns)-1].role != "user" {
			turns = append(turns, messagesTurn{role: "user", from: at, pictures: e.pictures, sum: copied(sum)})
		}
		return &turns[len(turns)-1]
	}
	for i, m := range ms {
		at = i
		switch m.Role {
		case "tool":
			t := last()
			t.blocks = slices.Insert(t.blocks, t.results, e.resultBlock(m))
			t.results++
		case "user":
			t := last()
			t.blocks = append(t.blocks, e.inputBlocks(e.parts([]*Message{m}))...)
		case "assistant":
			// A turn may neither be the first nor follow another.
			t := last()
			if len(t.blocks) == 0 {
				t.blocks = append(t.blocks, textBlock(goOn))
			}
			take(t.blocks)
			blocks := e.answer(m, digestOf(sum))
			turns = append(turns, messagesTurn{role: "assistant", blocks: blocks})
			take(blocks)
		}
	}
	at = len(ms)
	t := last() // nor the last
	if len(t.blocks) == 0 {
		t.blocks = append(t.blocks, textBlock(goOn))
	}
	take(t.blocks)
	return turns, digestOf(sum)
}

func textBlock(text string) []byte {
	return append(appendText([]byte(`{"type":"text","text":`), text), '}')
}

func (e *encoding) resultBlock(m *Message) []byte {
	b := append(appendText([]byte(`{"type":"tool_result","tool_use_id":`), e.callID(m.ToolCallID)), `,"content":`...)
	if ps := e.parts([]*Message{m}); slices.ContainsFunc(ps, func(p contentPart) bool { return p.image != "" }) {
		b = append(append(append(b, '['), bytes.Join(e.inputBlocks(ps), []byte{','})...), ']')
	} else {
		b = appendText(b, cmp.Or(e.text(m), "(no output)"))
	}
	if m.IsError {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, '}')
}

const imageBlock = `{"type":"image"`

func (e *encoding) inputBlocks(ps []contentPart) (blocks [][]byte) {
	for _, p := range ps {
		if p.image == "" {
			blocks = append(blocks, textBlock(p.text))
			continue
		}
		kind, data, _ := strings.Cut(strings.TrimPrefix(p.image, "data:"), ";base64,")
		b := appendText([]byte(imageBlock+`,"source":{"type":"base64","media_type":`), kind)
		blocks = append(blocks, append(appendText(append(b, `,"data":`...), data), "}}"...))
	}
	if len(blocks) == 0 {
		blocks = append(blocks, textBlock("(empty)"))
	}
	return blocks
}

// answerBlock is a block of an earlier answer as its message stores it.
type answerBlock struct {
	Type   string `json:"type"`
	Length int    `json:"length,omitempty"` // of a text, in bytes
}

// answer returns the blocks of a turn of the assistant after the content with that digest: in their original order, if
// its thoughts may go back.
func (e *encoding) answer(m *Message, digest string) (blocks [][]byte) {
	text, calls := m.Content, m.ToolCalls
	for _, raw := range e.kept(m, digest) {
		var b answerBlock
		_ = json.Unmarshal(raw, &b) // kept has read it
		switch b.Type {
		case "text":
			if said := text[:b.Length]; !blank(said) {
				blocks = append(blocks, textBlock(said))
			}
			text = text[b.Length:]
		case "tool_use":
			blocks = append(blocks, e.callBlock(calls[0]))
			calls = calls[1:]
		default:
			blocks = append(blocks, raw)
		}
	}
	if blocks == nil {
		text = e.text(m)
	}
	if !blank(text) {
		blocks = append(blocks, textBlock(text))
	}
	for _, c := range calls {
		blocks = append(blocks, e.callBlock(c))
	}
	if blocks == nil {
		blocks = append(blocks, textBlock(noAnswer))
	}
	return blocks
}

// kept returns the original blocks of m; nil if another model wrote them, other content preceded them, or m has changed
// since.
func (e *encoding) kept(m *Message, digest string) (blocks []json.RawMessage) {
	var was string
	_ = json.Unmarshal(m.Extra[answersTo], &was) // "" is no digest
	_, free := e.thinkingBudget()
	if m.Origin != e.origin || slices.Contains(e.Drop, answerBlocks) || was != digest && !free || json.Unmarshal(m.Extra[answerBlocks], &blocks) != nil {
		return nil
	}
	length, calls := 0, 0
	for _, raw := range blocks {
		var b answerBlock
		if json.Unmarshal(raw, &b) != nil || b.Length < 0 {
			return nil
		}
		length += b.Length
		if b.Type == "tool_use" {
			calls++
		}
	}
	if length != len(m.Content) || calls != len(m.ToolCalls) {
		return nil
	}
	return blocks
}

// thinkingBudget returns the tokens of thinking for each answer in the settings; ok is false if the model thinks
// without a budget, or not at all.
func (e *encoding) thinkingBudget() (tokens int, ok bool) {
	var set struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	}
	_ = json.Unmarshal(e.Extra["thinking"], &set) // the settings may have anything
	return set.Budget, set.Type == "enabled" && !slices.Contains(e.Drop, "thinking")
}

func (e *encoding) callBlock(c ToolCall) []byte {
	b := appendText([]byte(`{"type":"tool_use","id":`), e.callID(c.ID))
	b = appendText(append(b, `,"name":`...), e.callName(c.Name))
	return append(append(append(b, `,"input":`...), strings.TrimSpace(arguments(c))...), '}')
}

// marker writes lists of blocks and their cache marks: on the last tool, the system message and the last two messages
// of the user, four at most.
type marker struct {
	e     *encoding
	size  int // bytes of text so far
	least int // of them, before a mark is worth it
}

func (m *marker) list(b []byte, blocks [][]byte, mark bool) []byte {
	b = append(b, '[')
	for i, block := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, block...)
		if !bytes.HasPrefix(block, []byte(imageBlock)) {
			m.size += len(block)
		}
	}
	if mark && m.e.marks != noMarks && len(blocks) > 0 && m.size >= m.least {
		b = append(b[:len(b)-1], `,"cache_control":`+ephemeral+`}`...)
	}
	return b
}

// leastCached returns the size, in bytes, from which on a mark is worth it.
func (e *encoding) leastCached() int {
	entry := ""
	for k := range leastCached {
		if len(k) > len(entry) && names(k, e.model) {
			entry = k
		}
	}
	return 4 * cmp.Or(leastCached[entry], 1024)
}
