package engine

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// Conversation is a dialogue with a model, folded from the journal's records. Its JSON is the
// Context of a record, or a part of it: the records after that one continue from there. Use it from
// one goroutine.
type Conversation struct {
	Messages []*model.Message `json:"messages"`          // the messages after the system message
	Open     []model.ToolCall `json:"open,omitempty"`    // calls of the last turn that are not answered yet
	Held     []*model.Message `json:"held,omitempty"`    // input that arrived while calls were open
	Head     int              `json:"head,omitempty"`    // how many of the messages describe what came before this context
	Old      int              `json:"old,omitempty"`     // how many of the messages precede the end of the newest turn with a marker
	Mail     int              `json:"mail"`              // index of the user message that takes further mail; -1 = none
	Unseen   bool             `json:"unseen,omitempty"`  // the model has not seen some input that requires an answer
	Ended    bool             `json:"ended,omitempty"`   // the run is over: results of its last turn need no answer
	Rung     Rung             `json:"cut,omitempty"`     // how far a refusal has shortened it since the last turn
	Quoted   bool             `json:"quoted,omitempty"`  // a removed message quotes a call of a tool, as a file or mail may
	Summary  string           `json:"summary,omitempty"` // the summary of the messages that a compaction removed

	Parked  *journal.Refusal `json:"parked,omitempty"`  // why the model's endpoint refuses, since its last turn
	Episode string           `json:"episode,omitempty"` // id of the record that began this spell

	Callers []string `json:"callers,omitempty"` // aliases of models that have called a tool
	Able    bool     `json:"able,omitempty"`    // the alias of the newest turn has

	Turns uint64      `json:"turns"`
	Usage model.Usage `json:"usage"`           // of all turns
	Sent  int         `json:"sent,omitempty"`  // tokens of the last request and its answer, without reasoning, as the endpoint reported
	Since int         `json:"since,omitempty"` // how many of the messages Sent covers
	Calls []string    `json:"calls,omitempty"` // marks of the newest calls with their results

	Made   []string `json:"made,omitempty"`   // distinct marks of more calls since there was input
	News   bool     `json:"news,omitempty"`   // a call was new since the window was full
	Barren int      `json:"barren,omitempty"` // how often in a row the window was full without a new call
}

// NewConversation returns an empty conversation.
func NewConversation() *Conversation { return &Conversation{Mail: -1} }

// Add takes in the next record: a note, a turn, a result, a refusal, a compaction or an end. The
// owner takes in the others. Error: [team.ErrUnreadable].
func (c *Conversation) Add(r journal.Record) error {
	if r.Context != nil {
		n := NewConversation()
		if err := Restore(r, n); err != nil {
			return err
		}
		*c = *n
	}
	switch r.Kind {
	case journal.Note:
		c.Unseen, c.Calls, c.Barren = true, nil, 0
		c.Input(r.Text, false)
	case journal.Turn:
		var t model.Reply
		if err := json.Unmarshal(r.Turn, &t); err != nil {
			return unreadable(r, "its turn", err)
		}
		if err := t.Check(); err != nil {
			return unreadable(r, "its turn", err)
		}
		c.turn(t)
	case journal.Result:
		c.result(*r.Result)
	case journal.Refused:
		if model.Advice(r.Refusal.Advice) == model.Park && c.Parked == nil {
			c.Parked, c.Episode = r.Refusal, r.ID
		}
		if model.Reason(r.Refusal.Reason) == model.FailedCall {
			c.Rung = max(c.Rung, Noted)
		}
		c.Usage = c.Usage.Add(usageOf(r.Refusal.Usage))
	case journal.Compact:
		var summary model.Reply
		if r.Turn != nil && json.Unmarshal(r.Turn, &summary) == nil {
			c.Usage = c.Usage.Add(summary.Usage)
		}
	case journal.End:
		c.Unseen, c.Ended, c.Calls = false, true, nil
	}
	return nil
}

// Restore decodes a record's Context into into. Error: [team.ErrUnreadable].
func Restore(r journal.Record, into any) error {
	if err := json.Unmarshal(r.Context, into); err != nil {
		return unreadable(r, "its context", err)
	}
	return nil
}

func unreadable(r journal.Record, what string, err error) error {
	return team.Errorf(team.InvalidState, "record %d of the journal of %s %w: %s: %v", r.Seq, r.Agent, team.ErrUnreadable, what, err).WithHint(team.RepairHint)
}

func usageOf(data json.RawMessage) (u model.Usage) {
	_ = json.Unmarshal(data, &u) // a refusal that cost nothing has none
	return u
}

// unknownResult replaces the result of a call if no result is known.
const unknownResult = `{"error":"the result of this call is not known","code":"unavailable","status":"error"}`

func (c *Conversation) turn(t model.Reply) {
	for len(c.Open) > 0 { // a result is missing, which endpoints refuse: its record was set aside
		call := c.Open[0]
		c.result(journal.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Content: unknownResult})
	}
	c.Messages = append(c.Messages, &t.Message)
	c.Open, c.Mail = t.Message.ToolCalls, -1
	c.Unseen = len(c.Open) > 0 // their results will want an answer
	c.Ended, c.Rung = false, Whole
	if Usable(t) {
		c.Parked, c.Episode = nil, ""
	}
	c.Usage = c.Usage.Add(t.Usage)
	c.Sent, c.Since = t.Usage.PromptTokens+max(0, t.Usage.CompletionTokens-t.Usage.ReasoningTokens), len(c.Messages)
	c.Turns++
	if c.Able = slices.Contains(c.Callers, t.Alias); !c.Able && len(c.Open) > 0 {
		c.Callers, c.Able = append(c.Callers, t.Alias), true
	}
}

// Input adds a user message, also one that the runtime wrote. Mail between two turns becomes one
// message.
func (c *Conversation) Input(text string, isMail bool) {
	if len(c.Open) > 0 {
		c.Held = append(c.Held, userMessage(text))
		return
	}
	if isMail && c.Mail >= 0 {
		longer := *c.Messages[c.Mail] // which may be part of a request already
		longer.Content += "\n" + text
		c.Messages[c.Mail] = &longer
		return
	}
	c.Messages = append(c.Messages, userMessage(text))
	if c.Mail = -1; isMail {
		c.Mail = len(c.Messages) - 1
	}
}

func userMessage(text string) *model.Message { return &model.Message{Role: "user", Content: text} }

// result takes in the result of an open call. Results follow their turn directly, as endpoints
// require: input that was recorded between them comes after the last result.
func (c *Conversation) result(r journal.ToolResult) {
	for i, call := range c.Open {
		if call.ID != r.CallID {
			continue
		}
		c.Open = append(c.Open[:i:i], c.Open[i+1:]...)
		c.Messages = append(c.Messages, &model.Message{Role: "tool", ToolCallID: r.CallID, Content: r.Content, IsError: r.IsError})
		c.show(r)
		mark := callMark(call, r.Content)
		if !slices.Contains(c.Made, mark) {
			c.Made, c.News = append(slices.Clone(c.Made[max(0, len(c.Made)-maxMade):]), mark), true
		}
		c.Calls = append(c.Calls, mark)
		c.Calls = c.Calls[max(0, len(c.Calls)-2*maxRepeats):]
		break
	}
	if len(c.Open) == 0 {
		c.Messages = append(c.Messages, c.Held...)
		c.Held = nil
		c.boundImages()
	}
}

// maxRepeats is how often one call, or two in turns, may give the same result before the agent is
// notified that it repeats itself.
const maxRepeats = 5

// maxMade is how many calls are remembered, to recognize a repeated call; more than fit into a
// window.
const maxMade = 300

// maxBarren is how often in a row the window may be full without a call that is new, or has a new
// result, before the agent is notified: it repeats its work after each compaction.
const maxBarren = 3

// filled records that the window is full again.
func (c *Conversation) filled() {
	if c.Barren++; c.News {
		c.Barren = 0
	}
	c.News = false
}

// callMark returns a hash of a call with its result.
func callMark(call model.ToolCall, result string) string {
	h := fnv.New64a()
	for _, s := range []string{call.Name, call.Arguments, result} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// Circles reports whether the newest calls repeat: one, or two in turns, each with its former
// result; or all of them, compaction after compaction.
func (c *Conversation) Circles() bool {
	same := func(period, times int) bool {
		n := len(c.Calls)
		if n < period*times {
			return false
		}
		for i := n - 1; i >= n-period*(times-1); i-- {
			if c.Calls[i] != c.Calls[i-period] {
				return false
			}
		}
		return true
	}
	return same(1, maxRepeats) || same(2, maxRepeats) || c.Barren >= maxBarren
}
