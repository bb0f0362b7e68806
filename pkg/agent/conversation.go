package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
)

// Conversation is the state of an agent's dialogue with its model, folded from the journal's
// records. Its JSON is the Context of a record: the records after that one continue from there. Use
// it from one goroutine.
type Conversation struct {
	engine.Conversation // with the model

	Overview string `json:"overview,omitempty"` // the team's state as the model was last shown it

	Inbox      uint64                 `json:"inbox_seq"`             // sequence of the newest message taken in
	InboxAt    time.Time              `json:"inbox_at,omitzero"`     // when that message, or an earlier one, was stored: mail stored later is new, whatever its sequence
	Heard      uint64                 `json:"heard_seq,omitempty"`   // sequence of the newest message that woke the agent and is not from the watchdog
	Prompted   uint64                 `json:"prompted,omitempty"`    // the incarnation whose prompt was recorded last
	Read       []string               `json:"read,omitempty"`        // ids of the messages taken in, the newest
	Task       team.Task              `json:"task"`                  // the last task that the model was given
	Block      string                 `json:"block,omitempty"`       // the text of that task
	Holds      map[team.TaskID]uint64 `json:"holds,omitempty"`       // the epochs of the tasks that the model was given
	ActiveTask team.TaskID            `json:"active_task,omitempty"` // the task for which this incarnation's model has answered last
	LostAt     team.TaskID            `json:"lost_at,omitempty"`     // ActiveTask of the previous incarnation
	Await      *team.Await            `json:"await,omitempty"`       // an answer that the agent waits for
	Talks      team.Talks             `json:"talks,omitzero"`        // its mail with other members since the last news
	Moved      bool                   `json:"moved,omitempty"`       // a task, a question or perhaps a file has changed since the agent last notified the leader that it is idle
	Requests   []request              `json:"requests,omitempty"`    // to shut down
	Refused    []refused              `json:"refused,omitempty"`     // requests that the model has refused, the newest last

	Folders []folder    `json:"folders,omitempty"` // instructions of the repository for the folders in which it works, as the model was shown them
	Past    []past      `json:"past,omitempty"`    // the agent's earlier tasks, each in a line
	Facts   []fact      `json:"facts,omitempty"`   // mail that stays valid for all tasks
	Known   int         `json:"known,omitempty"`   // how many of them the model has seen
	Unread  []inboxItem `json:"unread,omitempty"`  // all mail that the model has not seen

	Place     *projectcontext.Place `json:"place,omitempty"`      // where the agent works, as its system message states
	Goal      int                   `json:"goal,omitempty"`       // of a leader: the team's goal
	GoalMail  int                   `json:"goal_mail,omitempty"`  // the goal whose mail has come
	PastGoals []team.PastGoal       `json:"past_goals,omitempty"` // of a leader: the newest goals that have ended
	Stale     bool                  `json:"stale,omitempty"`      // the messages are of an earlier goal
	GoalTurns int                   `json:"goal_turns,omitempty"` // turns since the goal was set

	Jobs      []team.Job `json:"jobs,omitempty"`       // background jobs whose end was not reported to the model
	LostJobs  []team.Job `json:"lost_jobs,omitempty"`  // the same, of an earlier incarnation
	JobTokens int        `json:"job_tokens,omitempty"` // tokens that its subagents have used

	dialect team.Dialect // in which texts of the runtime name tools
}

// Takes returns the error if no conversation could add r, or nil. Error: [team.ErrUnreadable].
func Takes(r journal.Record) error { return newConversation(team.Native).Add(r) }

// Fold returns the conversation that the records make, with tools named in the dialect d. Errors:
// [team.ErrUnreadable].
func Fold(d team.Dialect, records []journal.Record) (*Conversation, error) {
	c := newConversation(d)
	for _, r := range records {
		if err := c.Add(r); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func newConversation(d team.Dialect) *Conversation {
	return &Conversation{Conversation: *engine.NewConversation(), dialect: d}
}

// maxRead is how many message ids are remembered. A sender that got no answer may store a message
// twice; the second copy comes soon after the first.
const maxRead = 500

// Add takes in the next record. Error: [team.ErrUnreadable].
func (c *Conversation) Add(r journal.Record) error {
	if r.Context != nil {
		n := newConversation(c.dialect)
		if err := engine.Restore(r, n); err != nil {
			return err
		}
		*c, r.Context = *n, nil
	}
	if c.Await != nil && c.Await.Over(r.At) {
		c.Await = nil // the wait of an earlier process is over, and was reported to the model
	}
	if err := c.Conversation.Add(r); err != nil {
		return err
	}
	switch r.Kind {
	case journal.Start:
		c.LostAt, c.ActiveTask = c.ActiveTask, ""
		c.LostJobs, c.Jobs = slices.Concat(c.LostJobs, c.Jobs), nil
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
		c.ActiveTask = ""
		c.Talks, c.Moved = c.Talks.News(), true
		if r.LastTry != nil && r.LastTry.By != r.Task.Assignee { // then no decision on what was asked before counts
			c.Await = nil
		}
		c.begin(r)
	case journal.Note:
		c.noted(r)
	case journal.Project: // the same
		c.enter(r)
	case journal.Overview: // it rides along: no turn is made because of it
		c.Overview = r.Text
		c.Input(r.Text, false)
	case journal.Turn:
		c.Known, c.Unread = len(c.Facts), nil
		c.refusalsSent() // before the model was asked
		c.GoalTurns++
		c.ActiveTask = cmp.Or(r.TaskID, c.ActiveTask)
	case journal.Result:
		c.returned(*r.Result)
	case journal.Stop:
		c.ActiveTask = ""
	case journal.End:
		c.Moved = false // the agent notifies the leader
	}
	return nil
}

// noted takes in a note of the runtime.
func (c *Conversation) noted(r journal.Record) {
	c.jobs(r.Jobs)
	if r.NoAnswer {
		c.Await = nil
	}
	if r.NoAnswer || len(r.Jobs) > 0 {
		c.Talks, c.Moved = c.Talks.News(), true
	}
	if r.SetBack != nil {
		c.Inbox, c.Heard = min(c.Inbox, *r.SetBack), min(c.Heard, *r.SetBack)
	}
}

// returned takes in the effects of a call other than its result.
func (c *Conversation) returned(r journal.ToolResult) {
	c.jobs(r.Jobs)
	c.Moved = c.Moved || r.Changes || r.Await != nil || r.Outcome != nil
	if r.News {
		c.Talks = c.Talks.News()
	}
	if r.Sent != nil {
		c.Talks = c.Talks.Sent(*r.Sent)
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
}

// settle takes in where the incarnation of a start record works. If only the git state differs, the
// earlier place stays: another system message would invalidate all that an endpoint has cached of
// the conversation. A leader's new goal sets it again.
func (c *Conversation) settle(r journal.Record) {
	if r.Place != nil && (c.Place == nil || r.Goal != c.Goal || !c.Place.SameButGit(*r.Place)) {
		c.Place = r.Place
	}
}

func (c *Conversation) mail(r journal.Record) {
	m := *r.Message
	c.took(r.InboxSeq, r.InboxAt)
	c.Prompted = max(c.Prompted, r.Spawn)
	if m.Type == team.MsgShutdownRequest {
		c.request(m, r.InboxSeq, briefly(m, r.Stored), !c.Unseen)
	}
	if wakes, _ := c.hears(m); wakes {
		c.wake()
		if m.From != team.Watchdog {
			c.Heard = cmp.Or(r.InboxSeq, c.Heard)
		}
	}
	c.markNotified(m, r.Stored, mark(r))
}

// mark returns the position up to which the agent has taken in its mail.
func (c *Conversation) mark() mailbox.Mark { return mailbox.Mark{Seq: c.Inbox, At: c.InboxAt} }

// took records that the message with this sequence, stored at that time, was taken in. The sequence
// falls when the mail was restored from an older copy.
func (c *Conversation) took(seq uint64, at time.Time) {
	if seq == 0 || c.mark().Covers(seq, at) { // a prompt has none
		return
	}
	c.Inbox = seq
	if at.After(c.InboxAt) {
		c.InboxAt = at
	}
}

// backlog takes in many messages as one input.
func (c *Conversation) backlog(r journal.Record) {
	p := r.Backlog
	c.took(r.InboxSeq, r.InboxAt)
	c.Heard = cmp.Or(p.Heard, c.Heard)
	for _, l := range p.Whole {
		c.markNotified(l.Message, l.Stored, mark(r))
	}
	if c.Talks = p.Talks; p.Wakes {
		c.wake()
	}
	if len(p.Senders) == 0 {
		return
	}
	for _, h := range p.Senders {
		c.Unread = append(c.Unread, inboxItem{From: h.From, ID: fmt.Sprintf("%d to %d", h.First, h.Last), Brief: fmt.Sprintf("%d messages", h.Count)})
	}
	c.Rung = engine.Whole
	c.Input(remainingBlock(*p, mark(r)), true)
}

// markNotified takes in a message that is shown in full, or by head and tail if it is stored.
func (c *Conversation) markNotified(m team.Message, stored, mark string) {
	c.Read = append(c.Read, m.ID)
	c.Read = c.Read[max(0, len(c.Read)-maxRead):]
	if c.answeredBy(m) {
		if c.Await.OfPerson() {
			m.InReplyTo = c.Await.MessageID // people answer without saying to what
		}
		c.Await, c.Moved = nil, true
	}
	block, brief := mailBlock(m, stored, mark, c.dialect), briefly(m, stored)
	if stands(m) {
		f := fact{ID: m.ID, From: m.From, Type: m.Type, Goal: c.Goal, Brief: brief, Block: block}
		if m.Type == team.MsgUser && c.Goal > c.GoalMail { // the first of a goal is what set it
			f.Sets, c.GoalMail = true, c.Goal
		}
		c.Facts = append(c.Facts, f)
	}
	c.Unread = append(c.Unread, inboxItem{From: m.From, ID: m.ID, Brief: brief})
	c.Rung = engine.Whole // what is refused now may be the mail
	c.Input(block, true)
}

// answeredBy reports whether m ends the agent's wait for an answer, or for the decision on its plan
// or its call. A person may have several questions of the agent open, and answers with their ids;
// ids in a model's answer are ignored.
func (c *Conversation) answeredBy(m team.Message) bool {
	w := c.Await
	switch {
	case w == nil || !m.Wakes() || m.Type.Asks():
		return false
	case w.Plan != "":
		return m.Type == team.MsgPlanResponse && m.RequestID == w.Plan
	case w.OfPerson():
		return (m.From == w.From || m.From == team.UserAgent) && m.Answers(team.Message{ID: w.MessageID}, m.To)
	}
	return m.From == w.From
}

// begin takes in a task that the agent works on from now.
func (c *Conversation) begin(r journal.Record) {
	t, brings := *r.Task, team.Inherited{}
	if r.Inherited != nil {
		brings = *r.Inherited
	}
	brings.Note = c.dialect.Say(brings.Note)
	block := func(brings team.Inherited) string {
		return taskBlock(t, r.Inputs, brings, mark(r), r.LastTry, r.Unmerged)
	}
	c.leave(t.ID)
	c.Rung = engine.Whole
	if c.Await != nil && (!c.Await.Permission || c.Await.Task != t.ID) { // else a predecessor has lost the task with its process
		c.Await = nil
	}
	whole := block(brings)
	if c.Await != nil {
		whole += "\n" + callWaits(*c.Await)
	} else {
		c.Await = brings.Await
	}
	c.Unseen, c.Task, c.Block, c.Made, c.Barren = true, t, block(brings.Lasting()), nil, 0
	if c.Holds == nil {
		c.Holds = map[team.TaskID]uint64{}
	}
	c.Holds[t.ID] = t.Epoch
	c.Input(whole, false)
}

// leave records that the agent continues with task next although its last one has not ended.
func (c *Conversation) leave(next team.TaskID) {
	if c.Task.ID != "" && c.Task.ID != next && !slices.ContainsFunc(c.Past, func(p past) bool { return p.Task == c.Task.ID }) {
		c.Past = append(c.Past, past{Task: c.Task.ID, Title: c.Task.Title, Outcome: "not completed by you"})
	}
}

// notified reports whether the model was given t in its present hold. An adoption does not begin a new
// hold.
func (c *Conversation) notified(t team.Task) bool {
	was, is := c.Task.ClaimedAt, t.ClaimedAt
	return c.Task.ID == t.ID && was != nil && is != nil && was.Equal(*is)
}

// knows reports whether the message with this id was taken in.
func (c *Conversation) knows(id string) bool { return slices.Contains(c.Read, id) }

// asked reports whether the model has seen the question or the plan of a waiting member, and has
// made no call since that names the member or the plan.
func (c *Conversation) asked(b team.Heartbeat) bool {
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
