package model

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Message is one entry of a conversation, independent of wire formats, and its JSON in the journal. It does not change
// once a request has used it.
type Message struct {
	Role       string                     `json:"role"`                   // system, user, assistant or tool
	Content    string                     `json:"content"`                // its text; may be empty
	Parts      []Part                     `json:"parts,omitempty"`        // what follows the text, in order
	ToolCalls  []ToolCall                 `json:"tool_calls,omitempty"`   // of an assistant, in the order to run them
	ToolCallID string                     `json:"tool_call_id,omitempty"` // of a tool message: the call it answers
	IsError    bool                       `json:"is_error,omitempty"`     // of a tool message: the call failed
	Extra      map[string]json.RawMessage `json:"extra,omitempty"`        // provider fields to be sent back as they came
	Origin     string                     `json:"origin,omitempty"`       // the endpoint and model that wrote it; another is not sent Extra
}

// Part is a part of a message's content.
type Part struct {
	Type  string `json:"type"`            // text or image
	Text  string `json:"text,omitempty"`  // of a text
	Image *Image `json:"image,omitempty"` // of an image
}

// Image is a reference to an image: its bytes are in the team's object store.
type Image struct {
	MediaType string `json:"media_type"`     // such as image/png
	Ref       string `json:"ref"`            // "stored:" and a digest
	Size      int    `json:"size,omitempty"` // bytes
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID        string                     `json:"id"`        // unique in the conversation
	Name      string                     `json:"name"`      // may name no known tool
	Arguments string                     `json:"arguments"` // JSON as the model wrote it: not checked, never empty
	Extra     map[string]json.RawMessage `json:"extra,omitempty"`
}

// Thinking returns the model's thoughts before its answer, if its endpoint shows them in words; else "".
func (m Message) Thinking() string {
	for _, field := range reasoningFields {
		var text string
		if json.Unmarshal(m.Extra[field], &text) == nil && text != "" {
			return text
		}
	}
	var blocks []struct {
		Thinking string `json:"thinking"`
	}
	_ = json.Unmarshal(m.Extra[answerBlocks], &blocks) // there are none
	var thoughts []string
	for _, b := range blocks {
		thoughts = append(thoughts, b.Thinking)
	}
	return strings.Join(slices.DeleteFunc(thoughts, blank), "\n")
}

// ToolSpec describes a tool that the model may call.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments object; nil: no arguments
}

// Request is one call of the model: the whole conversation so far.
type Request struct {
	Model     string     // an alias of the process; default: its first
	Messages  []*Message // the first may be the system message, no other
	Tools     []ToolSpec // names are unique
	MaxTokens int        // limit of the answer; default: the endpoint's
	Effort    string     // how much the model is to think, in place of Options.Extra's reasoning_effort; default: that

	// Image returns the bytes of an image that a message refers to; with an error, or
	// if it is nil, the model reads of the reference only.
	Image func(Image) ([]byte, error)

	// OnRetry, if not nil, is called before each pause after which the same endpoint is
	// asked again; it must not block.
	OnRetry func(Retry)

	// Ready, if not nil, is called once the request is encoded and before it is sent. An
	// error ends the call, which returns it as it is.
	Ready func() error

	// Meter, if not nil, is called before each try with the alias and the most that the try may use, and returns the
	// function that takes the use of the try. An error ends the call.
	Meter func(ctx context.Context, alias string, most Usage) (used func(Usage), err error)

	// OnTry, if not nil, is called before each try of the call: what onDelta gets from
	// then on is the text from its beginning. It must not block.
	OnTry func()

	// Quoted: what was left out of Messages holds a call, which the model may only repeat: one that it writes as text is not run.
	Quoted bool

	// Once has an outage not be waited out: another endpoint is asked then.
	Once bool

	unlearnt bool // encoded without the lessons, one of which may no longer be true
}

// Reply is one complete turn of the model, and its JSON in the journal.
type Reply struct {
	Message Message `json:"message"` // role assistant

	// FinishReason is "tool_calls" exactly if Message has calls; else "stop",
	// "length" (the answer hit MaxTokens), "content_filter", or the endpoint's
	// own word. Calls of an answer cut by length or content_filter are dropped.
	FinishReason string `json:"finish_reason"`
	Usage        Usage  `json:"usage"`
	Model        string `json:"model,omitempty"` // as the endpoint names it
	Alias        string `json:"alias,omitempty"` // as the process's settings name it

	// Written is the tool of a call that the model wrote as text, and that is not made; "" if there is none. Fenced: in a block of code.
	Written string `json:"-"`
	Fenced  bool   `json:"-"`
}

// Check returns an error if the reply is not a valid turn of a model, or nil. Error: InvalidArgument.
func (r Reply) Check() error {
	if r.Message.Role != "assistant" {
		return team.Errorf(team.InvalidArgument, "a turn has the role assistant, this one %q", r.Message.Role)
	}
	for i, c := range r.Message.ToolCalls {
		if c.ID == "" || c.Name == "" {
			return team.Errorf(team.InvalidArgument, "tool call %d has no id or no name", i+1)
		}
	}
	return nil
}

// Usage is the cost of a call, in tokens.
type Usage struct {
	PromptTokens     int  `json:"prompt_tokens"`               // all input, what was cached included
	CachedTokens     int  `json:"cached_tokens,omitempty"`     // the part of the input that the endpoint had cached
	WrittenTokens    int  `json:"written_tokens,omitempty"`    // the part of the input that the endpoint has put into its cache
	CompletionTokens int  `json:"completion_tokens"`           // all output, reasoning included
	ReasoningTokens  int  `json:"reasoning_tokens,omitempty"`  // the part of the output that was reasoning
	WastedPrompt     int  `json:"wasted_prompt,omitempty"`     // input of tries that were thrown away; not in PromptTokens
	WastedCompletion int  `json:"wasted_completion,omitempty"` // output of those, as far as it came
	Estimated        bool `json:"estimated,omitempty"`         // at least in part our own guess

	Cost     float64 `json:"cost,omitempty"`     // in the currency of the alias's prices, of the calls whose price is known
	Currency string  `json:"currency,omitempty"` // of Cost, as the prices name it; may be empty
	Unpriced int     `json:"unpriced,omitempty"` // calls whose price is not known
}

// Add returns the sum of both; it is estimated if either is. Its currency is u's, else o's: a team's prices have one
// currency.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		PromptTokens:     u.PromptTokens + o.PromptTokens,
		CachedTokens:     u.CachedTokens + o.CachedTokens,
		WrittenTokens:    u.WrittenTokens + o.WrittenTokens,
		CompletionTokens: u.CompletionTokens + o.CompletionTokens,
		ReasoningTokens:  u.ReasoningTokens + o.ReasoningTokens,
		WastedPrompt:     u.WastedPrompt + o.WastedPrompt,
		WastedCompletion: u.WastedCompletion + o.WastedCompletion,
		Estimated:        u.Estimated || o.Estimated,
		Cost:             u.Cost + o.Cost,
		Currency:         cmp.Or(u.Currency, o.Currency),
		Unpriced:         u.Unpriced + o.Unpriced,
	}
}

// Plain returns the input that was neither read from a cache nor written to one.
func (u Usage) Plain() int { return u.PromptTokens - u.CachedTokens - u.WrittenTokens }

// Limits are the limits of an endpoint for one call, in tokens.
type Limits struct {
	Window    int // prompt and answer together; 0: not known
	MaxOutput int // of one answer
}
