package agent

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// Conversation is the state of an agent's dialogue with its model, made by adding
// the journal's records one after another. Its JSON is the Context of a record: what
// is added after that one goes on from there. Use it from one goroutine.
type Conversation struct {
	Messages []*model.Message `json:"messages"`          // what the model is told after the system message
	Open     []model.ToolCall `json:"open,omitempty"`    // calls of the last turn that are not answered yet
	Held     []*model.Message `json:"held,omitempty"`    // input that came while calls were open
	Head     int              `json:"head,omitempty"`    // how many of the messages tell what came before this context
	Mail     int              `json:"mail"`              // index of the user message that takes further mail; -1 = none
	Unseen   bool             `json:"unseen,omitempty"`  // the model has yet to see something that wants an answer
	Ended    bool             `json:"ended,omitempty"`   // the run is over: what its last turn led to wants no answer
	Cut      cutting          `json:"cut,omitempty"`     // how far it was made smaller because of a refusal, since the last turn
	Summary  string           `json:"summary,omitempty"` // what stands for the messages that a compaction left out

	Inbox    uint64                 `json:"inbox_seq"`          // sequence of the newest message taken in
	Read     []string               `json:"read,omitempty"`     // ids of the messages taken in, the newest
	Task     team.Task              `json:"task"`               // the last one it was told to work on
	Block    string                 `json:"block,omitempty"`    // how it was told
	Holds    map[team.TaskID]uint64 `json:"holds,omitempty"`    // the epochs under which it was told of tasks
	Await    *journal.Await         `json:"await,omitempty"`    // an answer that the agent waits for
	Shutdown *journal.Record        `json:"shutdown,omitempty"` // a request to shut down that was not carried out yet
	Parked   *journal.Refusal       `json:"parked,omitempty"`   // why the model's endpoint refuses, since its last turn
	Spell    string                 `json:"spell,omitempty"`    // id of the record that this began with

	Past   []past   `json:"past,omitempty"`   // the tasks that it was at, each in a line
	Facts  []fact   `json:"facts,omitempty"`  // mail that stays valid whatever it works on
	Known  int      `json:"known,omitempty"`  // how many of them the model has seen
	Unread []letter `json:"unread,omitempty"` // all mail that the model has not seen

	Goal      int  `json:"goal,omitempty"`       // of a leader: the team's goal
	Stale     bool `json:"stale,omitempty"`      // the messages are of an earlier goal
	GoalTurns int  `json:"goal_turns,omitempty"` // turns since the goal was set

	Turns uint64      `json:"turns"`
	Usage model.Usage `json:"usage"`           // of all turns
	Sent  int         `json:"sent,omitempty"`  // tokens that the last request and its answer had, without its reasoning, as the endpoint told
	Since int         `json:"since,omitempty"` // how many of the messages these are
	Calls []string    `json:"calls,omitempty"` // marks of the newest calls with their results
}

// Fold returns the conversation that records make. Errors: InvalidState for a record
// that cannot be read.
func Fold(records []journal.Record) (*Conversation, error) {
	c := newConversation()
	for _, r := range records {
		if err := c.add(r); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func newConversation() *Conversation { return &Conversation{Mail: -1} }

// maxRead is how many ids of messages are remembered: a message that was stored
// twice, since its sender had no answer, comes again soon.
const maxRead = 500

// add takes in the next record. Results follow their turn directly, as endpoints
// demand: input that was recorded between them comes after the last result.
func (c *Conversation) add(r journal.Record) error {
	if r.Context != nil {
		if err := c.restore(r); err != nil {
			return err
		}
	}
	if c.Await != nil && !r.At.Before(c.Await.Until) {
		c.Await = nil // a predecessor waited long enough, and was told so
	}
	switch r.Kind {
	case journal.Start:
		if r.Goal != c.Goal {
			c.Goal, c.Stale, c.GoalTurns = r.Goal, c.Turns > 0, 0
		}
	case journal.Mail:
		c.mail(r)
	case journal.Task:
		c.begin(*r.Task, taskBlock(*r.Task, r.Inputs, mark(r)))
	case journal.Note:
		c.Unseen, c.Calls = true, nil
		c.input(r.Text, false)
	case journal.Turn:
		var t model.Reply
		if err := json.Unmarshal(r.Turn, &t); err != nil {
			return team.Errorf(team.InvalidState, "turn %d of the journal cannot be read: %w", r.Seq, err)
		}
		c.turn(t)
	case journal.Result:
		c.result(*r.Result)
	case journal.Refused:
		if model.Advice(r.Refusal.Advice) == model.Park && c.Parked == nil {
			c.Parked, c.Spell = r.Refusal, r.ID
		}
		c.Usage = c.Usage.Add(usageOf(r.Refusal.Usage))
	case journal.Compact:
		var summary model.Reply
		if r.Turn != nil && json.Unmarshal(r.Turn, &summary) == nil {
			c.Usage = c.Usage.Add(summary.Usage)
		}
	case journal.End:
		c.Unseen, c.Ended, c.Shutdown, c.Calls = false, true, nil, nil
	}
	return nil
}

// restore makes c what the record says the conversation is.
func (c *Conversation) restore(r journal.Record) error {
	n := newConversation()
	if err := json.Unmarshal(r.Context, n); err != nil {
		return team.Errorf(team.InvalidState, "the context of record %d of the journal cannot be read: %w", r.Seq, err)
	}
	*c = *n
	return nil
}

func usageOf(data json.RawMessage) (u model.Usage) {
	_ = json.Unmarshal(data, &u) // a refusal that cost nothing has none
	return u
}

func (c *Conversation) mail(r journal.Record) {
	m := *r.Message
	c.Inbox = max(c.Inbox, r.InboxSeq)
	c.Read = append(c.Read, m.ID)
	c.Read = c.Read[max(0, len(c.Read)-maxRead):]
	if c.Await != nil && m.From == c.Await.From && m.Wakes() {
		c.Await = nil
	}
	if m.Wakes() {
		c.Unseen, c.Calls = true, nil
	}
	if m.Type == team.MsgShutdownRequest {
		c.Shutdown = &r
	}
	block, brief := mailBlock(m, r.Stored, mark(r)), briefly(m, r.Stored)
	if stands(m) {
		c.Facts = append(c.Facts, fact{From: m.From, Type: m.Type, Goal: c.Goal, Brief: brief, Block: block})
	}
	c.Unread = append(c.Unread, letter{From: m.From, ID: m.ID, Brief: brief})
	c.Cut = whole // what is refused now may be the mail
	c.input(block, true)
}

// begin takes in a task that the agent is to work on now.
func (c *Conversation) begin(t team.Task, block string) {
	c.leave(t.ID)
	c.Cut = whole
	c.Unseen, c.Task, c.Block, c.Await = true, t, block, nil // what was waited for was another task's
	if c.Holds == nil {
		c.Holds = map[team.TaskID]uint64{}
	}
	c.Holds[t.ID] = t.Epoch
	c.input(block, false)
}

// leave notes that the agent goes on to the task next without having ended the last.
func (c *Conversation) leave(next team.TaskID) {
	if c.Task.ID != "" && c.Task.ID != next && !slices.ContainsFunc(c.Past, func(p past) bool { return p.Task == c.Task.ID }) {
		c.Past = append(c.Past, past{Task: c.Task.ID, Title: c.Task.Title, Outcome: "not completed by you"})
	}
}

func (c *Conversation) turn(t model.Reply) {
	c.Messages = append(c.Messages, &t.Message)
	c.Open, c.Mail = t.Message.ToolCalls, -1
	c.Unseen = len(c.Open) > 0 // their results will want an answer
	c.Known, c.Unread, c.Ended, c.Cut = len(c.Facts), nil, false, whole
	c.Parked, c.Spell = nil, ""
	c.Usage = c.Usage.Add(t.Usage)
	c.Sent, c.Since = t.Usage.PromptTokens+max(0, t.Usage.CompletionTokens-t.Usage.ReasoningTokens), len(c.Messages)
	c.Turns++
	c.GoalTurns++
}

// told reports whether the agent was told to work on t as it was claimed last. Whoever
// takes it over from an earlier incarnation does not claim it anew.
func (c *Conversation) told(t team.Task) bool {
	was, is := c.Task.ClaimedAt, t.ClaimedAt
	return c.Task.ID == t.ID && was != nil && is != nil && was.Equal(*is)
}

// knows reports whether the message of this id was taken in.
func (c *Conversation) knows(id string) bool { return slices.Contains(c.Read, id) }

func (c *Conversation) input(text string, isMail bool) {
	if len(c.Open) > 0 {
		c.Held = append(c.Held, &model.Message{Role: "user", Content: text})
		return
	}
	if isMail && c.Mail >= 0 {
		longer := *c.Messages[c.Mail] // which may be part of a request already
		longer.Content += "\n" + text
		c.Messages[c.Mail] = &longer
		return
	}
	c.Messages = append(c.Messages, &model.Message{Role: "user", Content: text})
	if c.Mail = -1; isMail {
		c.Mail = len(c.Messages) - 1
	}
}

func (c *Conversation) result(r journal.ToolResult) {
	for i, call := range c.Open {
		if call.ID != r.CallID {
			continue
		}
		c.Open = append(c.Open[:i:i], c.Open[i+1:]...)
		c.Messages = append(c.Messages, &model.Message{Role: "tool", ToolCallID: r.CallID, Content: r.Content})
		c.Calls = append(c.Calls, callMark(call, r.Content))
		c.Calls = c.Calls[max(0, len(c.Calls)-2*maxRepeats):]
		break
	}
	if r.Await != nil {
		c.Await = r.Await
	}
	if o := r.Outcome; o != nil {
		c.Past = append(c.Past, past{Task: o.Task, Title: o.Title, Outcome: o.Text})
	}
	if len(c.Open) == 0 {
		c.Messages = append(c.Messages, c.Held...)
		c.Held = nil
	}
}

// maxRepeats is how often one call, or two in turns, may give the same result before
// the agent is told that it goes round in a circle.
const maxRepeats = 5

// callMark tells a call with its result from others.
func callMark(call model.ToolCall, result string) string {
	h := fnv.New64a()
	for _, s := range []string{call.Name, call.Arguments, result} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// circles reports whether the newest calls are the same again and again: one, or two
// in turns, each with the result it had before.
func (c *Conversation) circles() bool {
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
	return same(1, maxRepeats) || same(2, maxRepeats)
}
