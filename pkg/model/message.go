package model

import "encoding/json"

// Message is one entry of a conversation, free of any wire format, and the JSON
// in which the journal stores it.
type Message struct {
	Role       string                     `json:"role"`                   // system, user, assistant or tool
	Content    string                     `json:"content"`                // may be empty only beside ToolCalls
	ToolCalls  []ToolCall                 `json:"tool_calls,omitempty"`   // of an assistant, in the order to run them
	ToolCallID string                     `json:"tool_call_id,omitempty"` // of a tool message: the call it answers
	Extra      map[string]json.RawMessage `json:"extra,omitempty"`        // provider fields to be sent back as they came
}

// ToolCall is a model's wish to have a tool run.
type ToolCall struct {
	ID        string                     `json:"id"`        // unique in the conversation
	Name      string                     `json:"name"`      // may name no known tool
	Arguments string                     `json:"arguments"` // JSON as the model wrote it: not checked, never empty
	Extra     map[string]json.RawMessage `json:"extra,omitempty"`
}

// ToolSpec tells the model of a tool that it may call.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments object; nil: no arguments
}

// Request is one question to the model: the whole conversation so far.
type Request struct {
	Model     string     // default: the client's
	Messages  []Message  // the first may be the system message, no other
	Tools     []ToolSpec // names are unique
	MaxTokens int        // limit of the answer; default: the client's
}

// Reply is one complete turn of the model.
type Reply struct {
	Message Message // role assistant

	// FinishReason is "tool_calls" exactly if Message has calls; else "stop",
	// "length" (the answer hit MaxTokens), "content_filter", or the endpoint's
	// own word. Calls of an answer cut by length or content_filter are dropped.
	FinishReason string
	Usage        Usage
	Model        string // as the endpoint names it
}

// Usage is what calls cost, in tokens.
type Usage struct {
	PromptTokens     int  `json:"prompt_tokens"`
	CompletionTokens int  `json:"completion_tokens"`
	Estimated        bool `json:"estimated,omitempty"` // at least in part our own guess
}

// Add returns the sum of both; it is estimated if either is.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		PromptTokens:     u.PromptTokens + o.PromptTokens,
		CompletionTokens: u.CompletionTokens + o.CompletionTokens,
		Estimated:        u.Estimated || o.Estimated,
	}
}
