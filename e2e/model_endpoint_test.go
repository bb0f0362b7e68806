package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// endpoint is a model endpoint in the test's process: plain net/http and nothing of the
// product, so that it can misbehave on the wire, and so that what it counts is what a
// provider would bill. Safe for concurrent use.
type endpoint struct {
	url    string
	window int // in tokens as [request.tokens] counts them; 0: no limit

	t    *testing.T
	play func(*request) answer

	mu       sync.Mutex
	serial   int
	newest   map[member]*request
	largest  int // tokens of a request
	refused  int // requests larger than the window
	calls    int // requests
	sums     int // requests for a summary
	billed   map[int]bill
	rejected map[string]bool // what no endpoint would take, told once each
}

// member is an agent of one of the cluster's teams.
type member struct{ team, agent string }

// bill is what a complete answer cost. No two have the same completion, so that each
// can be found again.
type bill struct {
	member
	prompt, completion int
	empty              bool // it said nothing
}

// answer writes the response to r.
type answer func(w http.ResponseWriter, r *request)

// request is one request as it came over the wire.
type request struct {
	member
	role     string
	key      string // as the caller authorised itself
	messages []message
	body     []byte
	stream   bool
	serial   int
	gone     <-chan struct{} // closed once the caller has left
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// text is what the message says, its parts put together.
func (m message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(m.Content, &parts) // null says nothing
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// tokens counts four bytes a token, everything in the request included.
func (r *request) tokens() int { return len(r.body) / 4 }

// said is all that others said to the model: users, in order.
func (r *request) said() (texts []string) {
	for _, m := range r.messages {
		if m.Role == "user" {
			texts = append(texts, m.text())
		}
	}
	return texts
}

// last is the text of the newest message.
func (r *request) last() string { return r.messages[len(r.messages)-1].text() }

// wantsSummary reports whether the conversation is to be made shorter.
func (r *request) wantsSummary() bool {
	return strings.HasPrefix(r.last(), "Summarize this conversation")
}

var taskBlock = regexp.MustCompile(`<task id="(T-\d+)"`)

// task is the task that the model was told of last, or "".
func (r *request) task() (id string) {
	for _, text := range r.said() {
		for _, m := range taskBlock.FindAllStringSubmatch(text, -1) {
			id = m[1]
		}
	}
	return id
}

// serve starts an endpoint that ends with the test. play answers what the endpoint does
// not refuse by itself, but for requests for a summary; it is called on many goroutines.
// What no endpoint in use would take makes the test fail.
func serve(t *testing.T, play func(*request) answer) *endpoint {
	t.Helper()
	e := &endpoint{t: t, play: play, newest: map[member]*request{}, billed: map[int]bill{}, rejected: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", e.complete)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"proof","object":"model"}]}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Cleanup(func() {
		for _, problem := range slices.Sorted(maps.Keys(e.rejected)) {
			t.Error("no endpoint takes this: " + problem)
		}
	})
	e.url = srv.URL + "/v1"
	return e
}

var introduction = regexp.MustCompile(`(?m)^You are (\S+), role (\S+), in team (\S+)\.\s*\z`)

func (e *endpoint) complete(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the caller has left
	}
	var doc struct {
		Messages []message
		Stream   bool
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		e.reject(w, "the body is not JSON: "+err.Error())
		return
	}
	r := &request{messages: doc.Messages, stream: doc.Stream, body: body, gone: hr.Context().Done(),
		key: strings.TrimPrefix(hr.Header.Get("Authorization"), "Bearer ")}
	if problem := wrong(r.messages); problem != "" {
		e.reject(w, problem)
		return
	}
	who := introduction.FindStringSubmatch(r.messages[0].text())
	if who == nil {
		e.reject(w, fmt.Sprintf("the system message does not say who asks: %.80q", r.messages[0].text()))
		return
	}
	r.member, r.role = member{who[3], who[1]}, who[2]
	if e.note(r) {
		refuse(400, "context_length_exceeded", "invalid_request_error",
			fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.", e.window, r.tokens()))(w, r)
		return
	}
	if r.wantsSummary() {
		e.say("The work goes on as planned; nothing else is to be known.")(w, r)
		return
	}
	e.play(r)(w, r)
}

// note counts a request, and reports whether it is larger than the window.
func (e *endpoint) note(r *request) (tooLarge bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serial++
	e.calls++
	r.serial = e.serial
	e.newest[r.member] = r
	e.largest = max(e.largest, r.tokens())
	if r.wantsSummary() {
		e.sums++
	}
	if tooLarge = e.window > 0 && r.tokens() > e.window; tooLarge {
		e.refused++
	}
	return tooLarge
}

func (e *endpoint) reject(w http.ResponseWriter, problem string) {
	e.mu.Lock()
	e.rejected[problem] = true
	e.mu.Unlock()
	refuse(400, "", "invalid_request_error", problem)(w, nil)
}

var allowedName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// wrong says what OpenAI, or one of the stricter endpoints, refuses in a conversation,
// or "".
func wrong(messages []message) string {
	if len(messages) < 2 || messages[0].Role != "system" {
		return "a conversation has a system message and then at least one more"
	}
	open := map[string]bool{}
	for i, m := range messages[1:] {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Sprintf("message %d: calls before it are not answered", i+1)
		}
		switch {
		case m.Role == "system":
			return fmt.Sprintf("message %d is a second system message", i+1)
		case m.Role == "tool" && !open[m.ToolCallID]:
			return fmt.Sprintf("message %d answers no open call", i+1)
		case m.text() == "" && len(m.ToolCalls) == 0:
			return fmt.Sprintf("message %d, of role %s, is empty", i+1, m.Role)
		}
		delete(open, m.ToolCallID)
		for _, c := range m.ToolCalls {
			if !allowedName.MatchString(c.Function.Name) {
				return fmt.Sprintf("message %d calls a function of a name that is not allowed: %q", i+1, c.Function.Name)
			}
			if !json.Valid([]byte(c.Function.Arguments)) {
				return fmt.Sprintf("message %d calls %s with arguments that are not JSON: %.80q", i+1, c.Function.Name, c.Function.Arguments)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return "calls at the end are not answered"
	}
	return ""
}

// call is a tool call as the model wishes it.
type call struct {
	name string
	args string // JSON
}

// use is a call with these arguments, in pairs of name and value.
func use(tool string, args ...any) call {
	m := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		m[args[i].(string)] = args[i+1]
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // a broken test
	}
	return call{tool, string(data)}
}

// say is a complete turn: a text and these calls.
func (e *endpoint) say(text string, calls ...call) answer {
	return e.turn("", text, calls...)
}

// turn is a complete turn with a finish reason of its own.
func (e *endpoint) turn(finish, text string, calls ...call) answer {
	return func(w http.ResponseWriter, r *request) {
		finish := finish
		if finish == "" && len(calls) > 0 {
			finish = "tool_calls"
		} else if finish == "" {
			finish = "stop"
		}
		usage := map[string]int{"prompt_tokens": r.tokens(), "completion_tokens": r.serial, "total_tokens": r.tokens() + r.serial}
		whole := openStream(w, r)
		whole.text(text)
		for i, c := range calls {
			whole.call(i, r.serial, c)
		}
		whole.choice(map[string]any{}, finish)
		whole.event("", map[string]any{"id": whole.id, "object": "chat.completion.chunk", "model": "proof", "choices": []any{}, "usage": usage})
		e.mu.Lock()
		if !r.wantsSummary() {
			e.billed[r.serial] = bill{r.member, r.tokens(), r.serial, text == "" && len(calls) == 0}
		}
		e.mu.Unlock()
		whole.done()
	}
}

// lastOf is the newest request of an agent; nil if there was none.
func (e *endpoint) lastOf(team, agent string) *request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newest[member{team, agent}]
}

// crew plays members at work: a task takes them so many tool calls, and then they
// complete it.
type crew struct {
	turns int                 // tool calls of a task
	call  func(n int) call    // the n-th call of a task
	busy  func(*request) bool // a member for whom this holds goes on and on; may be nil

	mu    sync.Mutex
	steps map[string]int // by member and task, answers given
}

// next is what the member who asks says. A task that it has tried to complete is over for
// it, whatever came of that, until it is told of the task anew.
func (c *crew) next(e *endpoint, r *request) answer {
	id := r.task()
	goOn := c.busy != nil && c.busy(r) // before the lock, which whoever tells that may wait for
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps == nil {
		c.steps = map[string]int{}
	}
	key := r.team + "/" + r.agent + "/" + id
	step := c.steps[key]
	switch {
	case id == "" || r.ended():
		delete(c.steps, key)
		return e.say("I have nothing to do.")
	case step >= c.turns && !goOn:
		return e.say("It is done.", use("update_task", "task_id", id, "status", "completed", "result_summary", "done by "+r.agent))
	default:
		c.steps[key] = step + 1
		return e.say("", c.call(step))
	}
}

// ended reports whether update_task was answered since the model was told of its task.
func (r *request) ended() (ended bool) {
	updates := map[string]bool{} // ids of calls
	for _, m := range r.messages {
		for _, c := range m.ToolCalls {
			updates[c.ID] = c.Function.Name == "update_task"
		}
		switch {
		case m.Role == "user" && taskBlock.MatchString(m.text()):
			ended = false
		case m.Role == "tool" && updates[m.ToolCallID]:
			ended = true
		}
	}
	return ended
}
