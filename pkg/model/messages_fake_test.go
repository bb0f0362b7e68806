package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// anthropic is a strict fake of Anthropic's Messages: it refuses what the service refuses, signs
// thoughts together with all that stands before them, and caches prompts as the service does.
type anthropic struct {
	answer func(n int) []map[string]any // the blocks of the n-th answer
	stop   string                       // why it ends; "": as its blocks have it
	moody  bool                         // it takes no thought, whatever it followed

	mu       sync.Mutex
	now      time.Time
	cache    map[string]time.Time // by digest, when it was last used
	asked    int
	refused  []string
	thoughts int // that came back in the last request
	marks    int // of the last request
	read     int // tokens of all requests
	written  int
	plain    int
	rewrites int // requests of which nothing was read
}

func newAnthropic(t *testing.T, answer func(n int) []map[string]any) (*anthropic, string) {
	a := &anthropic{answer: answer, now: time.Unix(0, 0), cache: map[string]time.Time{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return a, server.URL + "/v1"
}

type messagesRequest struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Tools     []map[string]any
	System    []map[string]any
	Messages  []struct {
		Role    string           `json:"role"`
		Content []map[string]any `json:"content"`
	}
	Thinking     map[string]any `json:"thinking"`
	ToolChoice   map[string]any `json:"tool_choice"`
	OutputConfig map[string]any `json:"output_config"`
}

var (
	messagesName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	messagesID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

func (a *anthropic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	a.asked++
	if err := a.check(r, body); err != nil {
		a.refused = append(a.refused, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		said, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": err.Error()}})
		_, _ = w.Write(said)
		return
	}
	a.play(w, body)
}

// check returns why the service refuses a request.
func (a *anthropic) check(r *http.Request, body []byte) error {
	if r.URL.Path != "/v1/messages" || r.Header.Get("x-api-key") != "k" || r.Header.Get("Authorization") != "" || r.Header.Get("anthropic-version") != "2023-06-01" {
		return fmt.Errorf("%s with the headers %v", r.URL.Path, r.Header)
	}
	var q messagesRequest
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return err
	}
	switch {
	case q.Model == "" || q.MaxTokens <= 0 || len(q.Messages) == 0:
		return fmt.Errorf("model, max_tokens, messages: Field required")
	case q.Messages[0].Role != "user":
		return fmt.Errorf(`first message must use the "user" role`)
	case q.Messages[len(q.Messages)-1].Role != "user":
		return fmt.Errorf("This model does not support assistant message prefill. The conversation must end with a user message.")
	case q.ToolChoice["type"] == "any" || q.ToolChoice["type"] == "tool":
		return fmt.Errorf("tool_choice: forced tools are not supported on this model")
	}
	if err := q.checkThinking(); err != nil {
		return err
	}
	names := map[any]bool{}
	for _, t := range q.Tools {
		schema, _ := t["input_schema"].(map[string]any)
		if name, _ := t["name"].(string); !messagesName.MatchString(name) || names[name] || schema["type"] != "object" {
			return fmt.Errorf("tools.%v: bad tool", t["name"])
		}
		names[t["name"]] = true
	}
	return a.checkMessages(q)
}

// budgeted reports whether the model thinks by a budget, as those of 4.5 do.
func budgeted(model string) bool { return strings.HasSuffix(model, "-4-5") }

// checkThinking returns why the service refuses the settings of thinking, or the thought of a
// tool loop.
func (q messagesRequest) checkThinking() error {
	kind := q.Thinking["type"]
	if !budgeted(q.Model) {
		if kind != nil && kind != "adaptive" {
			return fmt.Errorf(`"thinking.type.%v" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`, kind)
		}
		return nil
	}
	if kind == "adaptive" {
		return fmt.Errorf("adaptive thinking is not supported on this model")
	}
	if budget, _ := q.Thinking["budget_tokens"].(float64); kind == "enabled" && (budget < 1024 || int(budget) >= q.MaxTokens) {
		return fmt.Errorf("`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	last := len(q.Messages) - 1
	if last < 1 || q.Messages[last].Content[0]["type"] != "tool_result" {
		return nil
	}
	first := q.Messages[last-1].Content[0]["type"]
	switch {
	case kind == "enabled" && first != "thinking":
		return fmt.Errorf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%v`. When `thinking` is enabled, a final `assistant` message must start with a thinking block", last-1, first)
	case kind != "enabled" && first == "thinking":
		return fmt.Errorf("messages.%d: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`", last-1)
	}
	return nil
}

func (a *anthropic) checkMessages(q messagesRequest) error {
	a.thoughts, a.marks = 0, 0
	before := sha256.New()
	size := 0
	take := func(b map[string]any) {
		_, marked := b["cache_control"]
		delete(b, "cache_control")
		raw, _ := json.Marshal(b)
		before.Write(raw)
		if size += len(raw); marked {
			a.marks++
			if size < 4*512 {
				a.marks = 99 // below the least that is cached
			}
		}
	}
	for _, b := range slices.Concat(q.Tools, q.System) {
		take(b)
	}
	var open []string // calls without a result
	for i, m := range q.Messages {
		others := false
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: user messages must have non-empty content", i)
		}
		for _, b := range m.Content {
			switch b["type"] {
			case "text":
				if strings.TrimSpace(b["text"].(string)) == "" {
					return fmt.Errorf("messages.%d: text content blocks must contain non-whitespace text", i)
				}
				others = true
			case "image":
				others = true
			case "tool_result":
				at := slices.Index(open, b["tool_use_id"].(string))
				if at < 0 || others || m.Role != "user" {
					return fmt.Errorf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %v", i, b["tool_use_id"])
				}
				open = slices.Delete(open, at, at+1)
			case "tool_use":
				if _, ok := b["input"].(map[string]any); !ok || !messagesID.MatchString(b["id"].(string)) || !messagesName.MatchString(b["name"].(string)) || m.Role != "assistant" {
					return fmt.Errorf("messages.%d: bad tool_use %v", i, b)
				}
				open = append(open, b["id"].(string))
			case "thinking":
				a.thoughts++
				if _, marked := b["cache_control"]; marked || a.moody || b["signature"] != a.sign(q.Model, before.Sum(nil), b["thinking"].(string)) {
					return fmt.Errorf("messages.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation", i)
				}
			default:
				return fmt.Errorf("messages.%d: unknown block %v", i, b["type"])
			}
			take(b)
		}
		if m.Role == "user" && len(open) > 0 {
			return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %v", i, open)
		}
	}
	if a.marks > 4 {
		return fmt.Errorf("A maximum of 4 blocks with cache_control may be provided. Found %d", a.marks)
	}
	return nil
}

func (a *anthropic) sign(model string, before []byte, thought string) string {
	if budgeted(model) {
		before = nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %x %s", model, before, thought))
	return hex.EncodeToString(sum[:])
}

// usage books a request: each mark looks back at most 20 blocks for what is cached.
func (a *anthropic) usage(body []byte) (map[string]int, []byte) {
	var q messagesRequest
	_ = json.Unmarshal(body, &q) // it was read before
	var blocks []map[string]any
	blocks = append(blocks, slices.Concat(q.Tools, q.System)...)
	for _, m := range q.Messages {
		blocks = append(blocks, m.Content...)
	}
	sum := sha256.New()
	var digests []string
	var sizes, marks []int
	size := 0
	for i, b := range blocks {
		if _, marked := b["cache_control"]; marked {
			marks = append(marks, i)
		}
		delete(b, "cache_control")
		raw, _ := json.Marshal(b)
		sum.Write(raw)
		size += len(raw)
		digests, sizes = append(digests, hex.EncodeToString(sum.Sum(nil))), append(sizes, size/4)
	}
	read := 0
	for _, mark := range marks {
		for i := mark; i >= 0 && i > mark-20; i-- {
			if used, ok := a.cache[digests[i]]; ok && a.now.Sub(used) <= 5*time.Minute {
				read = max(read, sizes[i])
				a.cache[digests[i]] = a.now
				break
			}
		}
	}
	written := read
	for _, mark := range marks {
		a.cache[digests[mark]] = a.now
		written = max(written, sizes[mark])
	}
	plain := size/4 - written
	a.read, a.written, a.plain = a.read+read, a.written+written-read, a.plain+plain
	if read == 0 {
		a.rewrites++
	}
	return map[string]int{"input_tokens": plain, "cache_read_input_tokens": read, "cache_creation_input_tokens": written - read, "output_tokens": 1}, sum.Sum(nil)
}

// play answers with a stream.
func (a *anthropic) play(w http.ResponseWriter, body []byte) {
	var model struct{ Model string }
	_ = json.Unmarshal(body, &model) // it was read before
	usage, before := a.usage(body)
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, v map[string]any) {
		v["type"] = kind
		data, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	event("message_start", map[string]any{"message": map[string]any{"model": model.Model, "content": []any{}, "usage": usage}})
	event("ping", map[string]any{})
	stop := "end_turn"
	sum := sha256.New()
	sum.Write(before)
	for i, b := range a.answer(a.asked) {
		start, deltas := map[string]any{"type": b["type"]}, []map[string]any{}
		switch b["type"] {
		case "thinking":
			start["thinking"], start["signature"] = "", ""
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": b["thinking"]},
				map[string]any{"type": "signature_delta", "signature": a.sign(model.Model, before, b["thinking"].(string))})
		case "text":
			start["text"] = ""
			for _, word := range strings.SplitAfter(b["text"].(string), " ") {
				deltas = append(deltas, map[string]any{"type": "text_delta", "text": word})
			}
		case "tool_use":
			stop = "tool_use"
			start["id"], start["name"], start["input"] = b["id"], b["name"], map[string]any{}
			input, _ := json.Marshal(b["input"])
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": ""},
				map[string]any{"type": "input_json_delta", "partial_json": string(input[:len(input)/2])}, map[string]any{"type": "input_json_delta", "partial_json": string(input[len(input)/2:])})
		}
		event("content_block_start", map[string]any{"index": i, "content_block": start})
		for _, d := range deltas {
			event("content_block_delta", map[string]any{"index": i, "delta": d})
		}
		event("content_block_stop", map[string]any{"index": i})
	}
	if a.stop != "" {
		stop = a.stop
	}
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": map[string]any{"output_tokens": 31, "output_tokens_details": map[string]int{"thinking_tokens": 9}}})
	event("message_stop", map[string]any{})
}
