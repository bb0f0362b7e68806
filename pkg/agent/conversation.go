package agent

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
	"agentteam/pkg/place"
	"agentteam/pkg/team"
)

// Conversation is the state of an agent's dialogue with its model, made by adding
// the journal's records one after another. Its JSON is the Context of a record: what
// is added after that one goes on from there. Use it from one goroutine.
type Conversation struct {
	Messages []*model.Message `json:"messages"`           // what the model is told after the system message
	Open     []model.ToolCall `json:"open,omitempty"`     // calls of the last turn that are not answered yet
	Held     []*model.Message `json:"held,omitempty"`     // input that came while calls were open
	Head     int              `json:"head,omitempty"`     // how many of the messages tell what came before this context
	Mail     int              `json:"mail"`               // index of the user message that takes further mail; -1 = none
	Unseen   bool             `json:"unseen,omitempty"`   // the model has yet to see something that wants an answer
	Ended    bool             `json:"ended,omitempty"`    // the run is over: what its last turn led to wants no answer
	Overview string           `json:"overview,omitempty"` // how the team stood, as it was told last
	Rung     rung             `json:"cut,omitempty"`      // how far it was shortened because of a refusal, since the last turn
	Summary  string           `json:"summary,omitempty"`  // what stands for the messages that a compaction left out

	Inbox    uint64                 `json:"inbox_seq"`           // sequence of the newest message taken in
	Heard    uint64                 `json:"heard_seq,omitempty"` // the same, without those of the watchdog
	Prompted uint64                 `json:"prompted,omitempty"`  // the incarnation whose prompt was taken in last
	Read     []string               `json:"read,omitempty"`      // ids of the messages taken in, the newest
	Task     team.Task              `json:"task"`                // the last one it was told to work on
	Block    string                 `json:"block,omitempty"`     // how it was told
	Holds    map[team.TaskID]uint64 `json:"holds,omitempty"`     // the epochs under which it was told of tasks
	AtWork   team.TaskID            `json:"at_work,omitempty"`   // the task for which this incarnation's model has answered last
	LostAt   team.TaskID            `json:"lost_at,omitempty"`   // the same of the incarnation before
	Await    *journal.Await         `json:"await,omitempty"`     // an answer that the agent waits for
	Requests []request              `json:"requests,omitempty"`  // to shut down
	Refused  []refused              `json:"refused,omitempty"`   // of those, what the model has refused, the newest last
	Parked   *journal.Refusal       `json:"parked,omitempty"`    // why the model's endpoint refuses, since its last turn
	Spell    string                 `json:"spell,omitempty"`     // id of the record that this began with

	Past   []past   `json:"past,omitempty"`   // the tasks that it was at, each in a line
	Facts  []fact   `json:"facts,omitempty"`  // mail that stays valid whatever it works on
	Known  int      `json:"known,omitempty"`  // how many of them the model has seen
	Unread []letter `json:"unread,omitempty"` // all mail that the model has not seen

	Place     *place.Place    `json:"place,omitempty"`      // where the agent works, as its system message says
	Goal      int             `json:"goal,omitempty"`       // of a leader: the team's goal
	GoalMail  int             `json:"goal_mail,omitempty"`  // the goal whose mail has come
	PastGoals []team.PastGoal `json:"past_goals,omitempty"` // of a leader: the newest goals that have ended
	Stale     bool            `json:"stale,omitempty"`      // the messages are of an earlier goal
	GoalTurns int             `json:"goal_turns,omitempty"` // turns since the goal was set

	Callers []string `json:"callers,omitempty"` // aliases of models that have called a tool
	Able    bool     `json:"able,omitempty"`    // the one of the newest turn has

	Turns uint64      `json:"turns"`
	Usage model.Usage `json:"usage"`           // of all turns
	Sent  int         `json:"sent,omitempty"`  // tokens that the last request and its answer had, without its reasoning, as the endpoint told
	Since int         `json:"since,omitempty"` // how many of the messages these are
	Calls []string    `json:"calls,omitempty"` // marks of the newest calls with their results

	Made   []string `json:"made,omitempty"`   // the same of more calls, each once, since there was input
	News   bool     `json:"news,omitempty"`   // one was new since the window was full
	Barren int      `json:"barren,omitempty"` // how often in a row the window was full and none was

	dialect team.Dialect // in which texts of the runtime name tools
}

// Takes reports why no conversation could take r in, or nil. Error: [team.ErrUnreadable].
func Takes(r journal.Record) error { return newConversation(team.Native).add(r) }

// Fold returns the conversation that records make with a model that is told of tools in
// this dialect. Errors: [team.ErrUnreadable].
func Fold(d team.Dialect, records []journal.Record) (*Conversation, error) {
	c := newConversation(d)
	for _, r := range records {
		if err := c.add(r); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func newConversation(d team.Dialect) *Conversation { return &Conversation{Mail: -1, dialect: d} }

// maxRead is how many ids of messages are remembered. A sender without an answer may store
// a message twice; the second copy comes soon after the first.
const maxRead = 500

// add takes in the next record. Results follow their turn directly, as endpoints
// demand: input that was recorded between them comes after the last result.
func (c *Conversation) add(r journal.Record) error {
	if r.Context != nil {
		if err := c.restore(r); err != nil {
			return err
		}
	}
	if c.Await != nil && c.Await.Over(r.At) {
		c.Await = nil // a predecessor waited long enough, and was told so
	}
	switch r.Kind {
	case journal.Start:
		c.LostAt, c.AtWork = c.AtWork, ""
		c.settle(r)
		if r.Goal != c.Goal {
			c.Goal, c.PastGoals, c.GoalTurns = r.Goal, r.PastGoals, 0
			c.Stale = c.Turns > 0 || len(c.PastGoals) > 0
		}
	case journal.Mail:
		c.mail(r)
	case journal.Backlog:
		c.backlog(r)
	case journal.Task:
		c.AtWork = ""
		c.begin(*r.Task, taskBlock(*r.Task, r.Inputs, r.LastTry, mark(r)))
	case journal.Note:
		c.Unseen, c.Calls, c.Barren = true, nil, 0
		if r.NoAnswer {
			c.Await = nil
		}
		c.input(r.Text, false)
	case journal.Overview: // it rides along: no turn is made because of it
		c.Overview = r.Text
		c.input(r.Text, false)
	case journal.Turn:
		var t model.Reply
		if err := json.Unmarshal(r.Turn, &t); err != nil {
			return unreadable(r, "its turn", err)
		}
		if err := t.Check(); err != nil {
			return unreadable(r, "its turn", err)
		}
		c.turn(t)
		if r.TaskID != "" {
			c.AtWork = r.TaskID
		}
	case journal.Result:
		c.result(*r.Result)
	case journal.Refused:
		if model.Advice(r.Refusal.Advice) == model.Park && c.Parked == nil {
			c.Parked, c.Spell = r.Refusal, r.ID
		}
		if model.Reason(r.Refusal.Reason) == model.FailedCall {
			c.Rung = max(c.Rung, noted)
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

// settle takes in where the incarnation of a start record works. What an earlier one was
// told stays if only git says something else: with another system message, nothing that an
// endpoint has cached of the conversation would hold. A leader's new goal begins anew.
func (c *Conversation) settle(r journal.Record) {
	if r.Place != nil && (c.Place == nil || r.Goal != c.Goal || !c.Place.SameButGit(*r.Place)) {
		c.Place = r.Place
	}
}

// restore makes c what the record says the conversation is.
func (c *Conversation) restore(r journal.Record) error {
	n := newConversation(c.dialect)
	if err := json.Unmarshal(r.Context, n); err != nil {
		return unreadable(r, "its context", err)
	}
	*c = *n
	return nil
}

func unreadable(r journal.Record, what string, err error) error {
	return team.Errorf(team.InvalidState, "record %d of the journal of %s %w: %s: %v", r.Seq, r.Agent, team.ErrUnreadable, what, err).WithHint(team.RepairHint)
}

func usageOf(data json.RawMessage) (u model.Usage) {
	_ = json.Unmarshal(data, &u) // a refusal that cost nothing has none
	return u
}

func (c *Conversation) mail(r journal.Record) {
	m := *r.Message
	c.Inbox, c.Prompted = max(c.Inbox, r.InboxSeq), max(c.Prompted, r.Spawn)
	if m.From != team.Watchdog {
		c.Heard = max(c.Heard, r.InboxSeq)
	}
	if m.Type == team.MsgShutdownRequest {
		c.request(m, r.InboxSeq, briefly(m, r.Stored), !c.Unseen)
	}
	c.tell(m, r.Stored, mark(r))
}

// backlog takes in many messages at once.
func (c *Conversation) backlog(r journal.Record) {
	p := r.Backlog
	c.Inbox, c.Heard = max(c.Inbox, r.InboxSeq), max(c.Heard, p.Heard)
	for _, l := range p.Whole {
		c.tell(l.Message, l.Stored, mark(r))
	}
	if p.Wakes {
		c.Unseen, c.Calls = true, nil
	}
	if len(p.Rest) == 0 {
		return
	}
	for _, h := range p.Rest {
		c.Unread = append(c.Unread, letter{From: h.From, ID: fmt.Sprintf("%d to %d", h.First, h.Last), Brief: fmt.Sprintf("%d messages", h.Count)})
	}
	c.Rung = whole
	c.input(restBlock(*p, mark(r)), true)
}

// tell takes in a message that is told whole, or by head and tail if it is stored.
func (c *Conversation) tell(m team.Message, stored, mark string) {
	c.Read = append(c.Read, m.ID)
	c.Read = c.Read[max(0, len(c.Read)-maxRead):]
	if c.answeredBy(m) {
		if c.Await.OfPerson() {
			m.InReplyTo = c.Await.MessageID // people answer without saying to what
		}
		c.Await = nil
	}
	if m.Wakes() {
		c.Unseen, c.Calls, c.Made, c.Barren = true, nil, nil, 0
	}
	block, brief := mailBlock(m, stored, mark, c.dialect), briefly(m, stored)
	if stands(m) {
		f := fact{ID: m.ID, From: m.From, Type: m.Type, Goal: c.Goal, Brief: brief, Block: block}
		if m.Type == team.MsgUser && c.Goal > c.GoalMail { // the first of a goal is what set it
			f.Sets, c.GoalMail = true, c.Goal
		}
		c.Facts = append(c.Facts, f)
	}
	c.Unread = append(c.Unread, letter{From: m.From, ID: m.ID, Brief: brief})
	c.Rung = whole // what is refused now may be the mail
	c.input(block, true)
}

// answeredBy reports whether m ends the agent's wait for an answer, or for the decision on its
// plan. A person may have several
// questions of the agent open, and answers with their ids; of a model's ids nothing is made.
func (c *Conversation) answeredBy(m team.Message) bool {
	w := c.Await
	switch {
	case w == nil || !m.Wakes() || m.Type.Asks():
		return false
	case w.Plan != "":
		return m.Type == team.MsgPlanResponse && m.RequestID == w.Plan
	case w.OfPerson():
		return (m.From == w.From || m.From == team.UserAgent) && m.Answers(team.Message{ID: w.MessageID, From: m.To})
	}
	return m.From == w.From
}

// begin takes in a task that the agent is to work on now.
func (c *Conversation) begin(t team.Task, block string) {
	c.leave(t.ID)
	c.Rung = whole
	if c.Await != nil && (c.Await.Plan == "" || c.Await.Task != t.ID) { // what was waited for was another task's
		c.Await = nil
	}
	c.Unseen, c.Task, c.Block, c.Made, c.Barren = true, t, block, nil, 0
	if c.Holds == nil {
		c.Holds = map[team.TaskID]uint64{}
	}
	c.Holds[t.ID] = t.Epoch
	if c.Await != nil { // a predecessor has lost the task with its process
		block += "\n" + planWaits(*c.Await)
	}
	c.input(block, false)
}

// leave notes that the agent goes on to task next although its last one has not ended.
func (c *Conversation) leave(next team.TaskID) {
	if c.Task.ID != "" && c.Task.ID != next && !slices.ContainsFunc(c.Past, func(p past) bool { return p.Task == c.Task.ID }) {
		c.Past = append(c.Past, past{Task: c.Task.ID, Title: c.Task.Title, Outcome: "not completed by you"})
	}
}

func (c *Conversation) turn(t model.Reply) {
	for len(c.Open) > 0 { // a result is missing, which endpoints refuse: its record was set aside
		call := c.Open[0]
		c.result(journal.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Content: `{"error":"the result of this call is not known","code":"unavailable","status":"error"}`})
	}
	c.Messages = append(c.Messages, &t.Message)
	c.Open, c.Mail = t.Message.ToolCalls, -1
	c.Unseen = len(c.Open) > 0 // their results will want an answer
	c.Known, c.Unread, c.Ended, c.Rung = len(c.Facts), nil, false, whole
	if usable(t) {
		c.Parked, c.Spell = nil, ""
	}
	c.refusalsSent() // before the model was asked
	c.Usage = c.Usage.Add(t.Usage)
	c.Sent, c.Since = t.Usage.PromptTokens+max(0, t.Usage.CompletionTokens-t.Usage.ReasoningTokens), len(c.Messages)
	c.Turns++
	c.GoalTurns++
	if c.Able = slices.Contains(c.Callers, t.Alias); !c.Able && len(c.Open) > 0 {
		c.Callers, c.Able = append(c.Callers, t.Alias), true
	}
}

// told reports whether the model was told of t in its present hold. An adoption is no new
// hold in that sense.
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

// asked reports whether the model has seen the question that a member waits for an answer
// to, or its plan, and has called nothing since that names the member or the plan.
func (c *Conversation) asked(b team.Beat) bool {
	seen := false
	for _, m := range c.Messages {
		seen = seen || m.Role == "user" && strings.Contains(m.Content, `id="`+b.Asked+`"`)
		if seen && slices.ContainsFunc(m.ToolCalls, func(call model.ToolCall) bool {
			return strings.Contains(call.Arguments, `"`+string(b.AgentID)+`"`) || strings.Contains(call.Arguments, `"`+b.Asked+`"`)
		}) {
			return false
		}
	}
	return seen && b.Asked != ""
}

func (c *Conversation) result(r journal.ToolResult) {
	for i, call := range c.Open {
		if call.ID != r.CallID {
			continue
		}
		c.Open = append(c.Open[:i:i], c.Open[i+1:]...)
		c.Messages = append(c.Messages, &model.Message{Role: "tool", ToolCallID: r.CallID, Content: r.Content})
		mark := callMark(call, r.Content)
		if !slices.Contains(c.Made, mark) {
			c.Made, c.News = append(slices.Clone(c.Made[max(0, len(c.Made)-maxMade):]), mark), true
		}
		c.Calls = append(c.Calls, mark)
		c.Calls = c.Calls[max(0, len(c.Calls)-2*maxRepeats):]
		break
	}
	if r.Await != nil {
		c.Await = r.Await
	}
	if r.Verdict != nil {
		c.verdict(*r.Verdict)
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

// maxMade is how many calls are remembered, to see whether the next was made before; more than
// fit into a window.
const maxMade = 300

// maxBarren is how often in a row the window may be full without a call that is new, or has a
// new result, before the agent is told so: it repeats what it did before each compaction.
const maxBarren = 3

// filled notes that the window is full once more.
func (c *Conversation) filled() {
	if c.Barren++; c.News {
		c.Barren = 0
	}
	c.News = false
}

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
// in turns, each with the result it had before; or all of them, compaction after compaction.
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
	return same(1, maxRepeats) || same(2, maxRepeats) || c.Barren >= maxBarren
}
