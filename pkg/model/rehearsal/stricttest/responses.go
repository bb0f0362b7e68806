package stricttest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
)

// responsesRequest is the part of a Responses request that a script uses.
type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"` // a text, or a list of items
	Tools        []responsesTool `json:"tools"`
	Stream       bool            `json:"stream"`
	Store        *bool           `json:"store"` // default: true
	Include      []string        `json:"include"`
	MaxTokens    *int            `json:"max_output_tokens"`
}

type responsesTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

// item is one item in the input of Responses.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

var responsesName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

var responsesFields = []string{
	"model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "stream", "stream_options", "store", "include",
	"max_output_tokens", "reasoning", "text", "temperature", "top_p", "top_logprobs", "truncation", "metadata", "user", "service_tier", "background",
	"previous_response_id", "conversation", "prompt", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
}

// says returns a refusal in OpenAI's words.
func says(format string, args ...any) error {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

// chatMessage is a message of the chat completion for the rehearsal.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    []chatPart `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// asChat is a Responses request as a chat completion.
type asChat struct {
	Model    string           `json:"model"`
	Messages []chatMessage    `json:"messages"`
	Tools    []map[string]any `json:"tools,omitempty"`

	stream, thinks bool
}

func saying(role, text string) chatMessage {
	return chatMessage{Role: role, Content: []chatPart{{"text", text}}}
}

// parseResponses decodes a Responses request. It refuses what OpenAI is reported to refuse, in its words.
func parseResponses(body []byte) (r asChat, err error) {
	var in responsesRequest
	var fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &in), json.Unmarshal(body, &fields)); err != nil {
		return r, fmt.Errorf("the body is not a request of Responses: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(responsesFields, name) {
			return r, says("Unknown parameter: '%s'.", name)
		}
	}
	switch {
	case in.Model == "":
		return r, says("Missing required parameter: 'model'.")
	case in.Instructions == "":
		return r, errors.New("instructions are missing, which tell the script who asks")
	case in.MaxTokens != nil && *in.MaxTokens < 16:
		return r, says("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *in.MaxTokens)
	}
	r = asChat{Model: in.Model, stream: in.Stream, Messages: []chatMessage{saying("system", in.Instructions)}}
	r.thinks = slices.Contains(in.Include, "reasoning.encrypted_content")
	for i, t := range in.Tools {
		if t.Name == "" {
			return r, says("Missing required parameter: 'tools[%d].name'.", i)
		}
		parameters := any(t.Parameters)
		if t.Parameters == nil {
			parameters = map[string]any{"type": "object"}
		}
		r.Tools = append(r.Tools, map[string]any{"type": t.Type, "function": map[string]any{"name": t.Name, "parameters": parameters}})
	}
	items, err := inputItems(in.Input)
	if err != nil {
		return r, err
	}
	stored := in.Store == nil || *in.Store
	for i, it := range items {
		if err := r.take(i, it, items, stored); err != nil {
			return r, err
		}
	}
	return r, r.checkResponsesOrder()
}

func inputItems(input json.RawMessage) (items []item, err error) {
	var text string
	if json.Unmarshal(input, &text) == nil {
		content, err := json.Marshal(text)
		return []item{{Type: "message", Role: "user", Content: content}}, err
	}
	if json.Unmarshal(input, &items) != nil {
		return nil, says("Invalid type for 'input': expected a string or a list of items.")
	}
	return items, nil
}

// take adds the i-th item to the messages. Text and calls of one turn of the assistant become one message.
func (r *asChat) take(i int, it item, all []item, stored bool) error {
	turn := func() *chatMessage {
		last := &r.Messages[len(r.Messages)-1]
		if last.Role != "assistant" {
			r.Messages = append(r.Messages, saying("assistant", ""))
			last = &r.Messages[len(r.Messages)-1]
		}
		return last
	}
	switch it.Type {
	case "message", "":
		text, err := itemText(i, it)
		switch {
		case err != nil:
			return err
		case it.Role == "assistant" && len(turn().ToolCalls) == 0:
			turn().Content[0].Text += text
		case it.Role == "assistant", it.Role == "user":
			r.Messages = append(r.Messages, saying(it.Role, text))
		default:
			return fmt.Errorf("input[%d]: it is a %s message; the system's words belong into the instructions", i, it.Role)
		}
	case "reasoning":
		switch {
		case len(it.Summary) == 0:
			return says("Missing required parameter: 'input[%d].summary'.", i)
		case it.Encrypted == "" && !stored:
			return &refusal{status: http.StatusNotFound, kind: "invalid_request_error",
				message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)}
		case it.Encrypted != "" && !strings.HasPrefix(it.Encrypted, sealed):
			return says("The encrypted content could not be verified.")
		case i+1 == len(all) || all[i+1].Type != "function_call" && all[i+1].Role != "assistant" && all[i+1].Type != "reasoning":
			return says("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
		}
	case "function_call":
		switch {
		case it.CallID == "":
			return says("Missing required parameter: 'input[%d].call_id'.", i)
		case !responsesName.MatchString(it.Name):
			return says("Invalid 'input[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		case !json.Valid([]byte(it.Arguments)) || it.Arguments[0] != '{':
			return fmt.Errorf("input[%d]: the arguments are no JSON object", i)
		}
		m := turn()
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: it.CallID, Type: "function", Function: chatFunction{Name: it.Name, Arguments: it.Arguments}})
	case "function_call_output":
		var output string
		if json.Unmarshal(it.Output, &output) != nil || output == "" {
			return fmt.Errorf("input[%d]: the output must be a text that is not empty", i)
		}
		r.result(it.CallID, output)
	default:
		return says("Invalid value: '%s'. Supported values are: 'message', 'reasoning', 'function_call', 'function_call_output'.", it.Type)
	}
	return nil
}

// result inserts a result after its turn. In chat completions nothing may come in between.
func (r *asChat) result(id, output string) {
	m := saying("tool", output)
	m.ToolCallID = id
	at := 1 + slices.IndexFunc(r.Messages, func(m chatMessage) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c chatCall) bool { return c.ID == id })
	})
	for at < len(r.Messages) && (at == 0 || r.Messages[at].Role == "tool") {
		at++
	}
	r.Messages = slices.Insert(r.Messages, at, m)
}

// itemText returns the text of a message.
func itemText(i int, it item) (text string, err error) {
	if json.Unmarshal(it.Content, &text) == nil {
		if text == "" {
			return "", fmt.Errorf("input[%d]: the content of the %s message is empty", i, it.Role)
		}
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(it.Content, &parts) != nil || len(parts) == 0 {
		return "", says("Invalid type for 'input[%d].content': expected a string or a list of parts.", i)
	}
	known := []string{"input_text", "input_image"}
	if it.Role == "assistant" {
		known = []string{"output_text", "refusal"}
	}
	for _, p := range parts {
		if !slices.Contains(known, p.Type) {
			return "", says("Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(known, "' and '"))
		}
		text += p.Text
	}
	return text, nil
}

// checkResponsesOrder checks that every call is answered, once, and that there is something to reply to. Unlike in chat
// completions, input may come in between.
func (r *asChat) checkResponsesOrder() error {
	open := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if _, again := open[c.ID]; again {
				return fmt.Errorf("the call id %s comes twice", c.ID)
			}
			open[c.ID] = true
		}
	}
	for _, m := range r.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return says("No tool call found for function call output with call_id %s.", m.ToolCallID)
			}
			open[m.ToolCallID] = false
		}
	}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		if open[id] {
			return says("No tool output found for function call %s.", id)
		}
	}
	switch {
	case len(r.Messages) < 2:
		return says("One of 'input' or 'previous_response_id' or 'prompt' must be provided.")
	case r.Messages[len(r.Messages)-1].Role == "assistant":
		return errors.New("the last message is the assistant's own; there is nothing to reply to")
	}
	return nil
}

// sealed begins the encrypted thinking of a rehearsal.
const sealed = "gAAA"

// responsesAnswer is the rehearsal's answer for a Responses request.
type responsesAnswer struct {
	responsesChoice
	model       string
	usage       responsesUsage
	thinks, cut bool
	error       map[string]any
}

type responsesChoice struct {
	Message struct {
		Content   string     `json:"content"`
		ToolCalls []chatCall `json:"tool_calls"`
	} `json:"message"`
	Finish string `json:"finish_reason"`
}

type responsesUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// serveResponses answers a Responses request from the script.
func (h *handler) serveResponses(w http.ResponseWriter, r *http.Request, body []byte) {
	req, err := parseResponses(body)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
	case err != nil:
		refused = &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", message: err.Error()}
	}
	if refused != nil {
		w.WriteHeader(refused.status)
		_ = json.NewEncoder(w).Encode(openAIError(refused)) // a client that is gone needs no answer
		return
	}
	asked, _ := json.Marshal(req) // it was decoded from JSON
	came := httptest.NewRecorder()
	a := responsesAnswer{model: req.Model, thinks: req.thinks}
	func() {
		defer func() { a.cut = recover() != nil }() // as the rehearsal breaks off
		h.script.ServeHTTP(came, httptest.NewRequestWithContext(r.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewReader(asked)))
	}()
	var doc struct {
		Choices []responsesChoice `json:"choices"`
		Usage   responsesUsage    `json:"usage"`
		Error   map[string]any    `json:"error"`
	}
	err = json.Unmarshal(came.Body.Bytes(), &doc)
	switch {
	case a.cut && !req.stream:
		panic(http.ErrAbortHandler)
	case came.Code != http.StatusOK || err != nil && !a.cut: // an error, or a page
		maps.Copy(w.Header(), came.Header())
		w.WriteHeader(came.Code)
		_, _ = w.Write(came.Body.Bytes())
		return
	}
	a.usage, a.error = doc.Usage, doc.Error
	if len(doc.Choices) > 0 {
		a.responsesChoice = doc.Choices[0]
	}
	if req.stream {
		a.stream(w)
		return
	}
	a.thinks = false
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a.response(newID("resp_"), a.status(), a.outputs()))
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// pieces cuts text into a few pieces, between characters.
func pieces(text string) (ps []string) {
	chars := []rune(text)
	for part := range slices.Chunk(chars, max(1, (len(chars)+3)/4)) {
		ps = append(ps, string(part))
	}
	return ps
}

// outputs returns the items of the answer: thinking if it was requested, text, calls.
func (a responsesAnswer) outputs() (items []map[string]any) {
	if a.thinks {
		items = append(items, map[string]any{"type": "reasoning", "id": newID("rs_"), "summary": []any{}, "encrypted_content": newID(sealed)})
	}
	if a.Message.Content != "" || len(a.Message.ToolCalls) == 0 {
		items = append(items, map[string]any{"type": "message", "id": newID("msg_"), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": a.Message.Content, "annotations": []any{}}}})
	}
	for _, c := range a.Message.ToolCalls {
		items = append(items, map[string]any{"type": "function_call", "id": newID("fc_"), "status": "completed",
			"call_id": c.ID, "name": c.Function.Name, "arguments": c.Function.Arguments})
	}
	return items
}

// response returns the response object of an answer, with the output so far.
func (a responsesAnswer) response(id, status string, output []map[string]any) map[string]any {
	if output == nil {
		output = []map[string]any{}
	}
	doc := map[string]any{"id": id, "object": "response", "status": status, "model": a.model, "output": output, "error": nil, "usage": nil}
	if status == "incomplete" {
		doc["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	}
	if status == "completed" || status == "incomplete" {
		doc["usage"] = map[string]any{
			"input_tokens": a.usage.Prompt, "input_tokens_details": map[string]int{"cached_tokens": 0},
			"output_tokens": a.usage.Completion, "output_tokens_details": map[string]int{"reasoning_tokens": 0}, "total_tokens": a.usage.Total,
		}
	}
	return doc
}

// status returns the final status of a response that does not break.
func (a responsesAnswer) status() string {
	if a.Finish == "length" {
		return "incomplete"
	}
	return "completed"
}

// stream sends the answer as the events of a response; a broken one has completed no item.
func (a responsesAnswer) stream(w http.ResponseWriter) {
	id, number := newID("resp_"), 0
	send := func(typ string, event map[string]any) {
		event["type"], event["sequence_number"] = typ, number
		number++
		data, _ := json.Marshal(event) // strings, numbers and maps of them always encode
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", typ, data)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send("response.created", map[string]any{"response": a.response(id, "in_progress", nil)})
	switch {
	case a.error != nil:
		failed := a.response(id, "failed", nil)
		failed["error"] = a.error
		send("response.failed", map[string]any{"response": failed})
		return
	case a.cut:
		return
	}
	output := a.outputs()
	for i, it := range output {
		for _, e := range itemEvents(i, it) {
			send(e.typ, e.data)
		}
	}
	send("response."+a.status(), map[string]any{"response": a.response(id, a.status(), output)})
}

type responsesEvent struct {
	typ  string
	data map[string]any
}

// itemEvents returns the events of one item: its begin, its pieces, its end.
func itemEvents(index int, it map[string]any) (events []responsesEvent) {
	add := func(typ, key string, value any) {
		data := map[string]any{"output_index": index, key: value}
		if key == "delta" {
			data["item_id"] = it["id"]
		}
		events = append(events, responsesEvent{typ, data})
	}
	started := maps.Clone(it)
	var piece, text string
	switch it["type"] {
	case "message":
		piece, text = "response.output_text.delta", it["content"].([]any)[0].(map[string]any)["text"].(string)
		started["content"], started["status"] = []any{}, "in_progress"
	case "function_call":
		piece, text = "response.function_call_arguments.delta", it["arguments"].(string)
		started["arguments"], started["status"] = "", "in_progress"
	default:
		delete(started, "encrypted_content")
	}
	add("response.output_item.added", "item", started)
	for _, p := range pieces(text) {
		add(piece, "delta", p)
	}
	add("response.output_item.done", "item", it)
	return events
}
