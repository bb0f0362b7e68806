// Package story tells people what happens in a team: it makes lines for a terminal of
// the entries of the team's feed (package feed), and one line of how things stand.
//
// The same entries make the same lines, whoever reads them and when. Nothing that an
// agent wrote reaches the terminal as anything but text.
//
// It prints nothing: where the lines go, which colours that takes, and what programs are
// given instead is the business of its caller.
package story

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/feed"
	"agentteam/pkg/journal"
	"agentteam/pkg/team"
)

// Options say how a story is told.
type Options struct {
	Width   int            // cells of a line; 0 = no limit, and texts are not wrapped
	Full    bool           // calls and results as they are, and what is else left out
	Fold    int            // lines of a result or a mail that are shown; default 1 of a result, 3 of a mail
	Team    team.TeamID    // names are told with it, as coder-1@red; "" = alone
	Zone    *time.Location // of the times; default: that of this machine
	Journal bool           // of one member's conversation, in which nothing else tells what its calls did
	Only    team.AgentID   // tell only what concerns this member; "" = everything
	Mine    bool           // with Only: also what others write to the person before the team
	Dated   bool           // the day stands above the first line too, not only where it changes

	// Answer returns the command that answers a question, or "" for one that is answered;
	// nil tells no commands.
	Answer func(question team.Message) string
}

// Story is a team's story as far as it has been told. Not safe for concurrent use.
type Story struct {
	o       Options
	agents  map[team.AgentID]*agent
	tasks   map[team.TaskID]*task
	calls   map[string]*call // under way, by their ids
	drafts  map[team.AgentID]*draft
	tokens  int
	day     string       // of the newest line
	newest  time.Time    // time of the newest entry
	names   int          // cells of the longest name, of those that are not very long
	spoke   team.AgentID // whose the last line was
	waits   string       // who waits for a person, as it was told last
	lastOf  string       // id of the call that the last line was about
	pending *group
}

// agent is what is known of a member, or of whoever else has spoken.
type agent struct {
	colour  string
	person  bool
	here    bool // it is a member
	lost    bool
	idle    bool
	task    team.TaskID
	doing   string // the tool that it uses; "" = it waits for its model
	calling string // id of that call
	since   time.Time
	asks    team.AgentID // whose answer it waits for
	trouble string       // why its model gives no turn
	tries   int          // how often it did not
	retries bool         // it was told that a call is tried again
	parked  bool
	broken  bool   // parked, since its journal cannot be read
	told    string // id of its newest turn
}

// task is a task as its newest record was, and what has been used for it.
type task struct {
	team.Task
	tokens int
	other  bool // of an earlier goal
}

// call is a tool call under way.
type call struct {
	tool string
	text string // as it was told
	more int    // lines of a command that were not
	at   time.Time
}

// New returns a story of which nothing is told.
func New(o Options) *Story {
	if o.Zone == nil {
		o.Zone = time.Local
	}
	return &Story{o: o, agents: map[team.AgentID]*agent{}, tasks: map[team.TaskID]*task{}, calls: map[string]*call{}, drafts: map[team.AgentID]*draft{}}
}

// Resize sets the cells of the lines to come.
func (s *Story) Resize(width int) { s.o.Width = width }

// Know makes tasks and members known that were there before the first entry. Those of
// an earlier goal do not count.
func (s *Story) Know(members []team.Member, tasks []team.Task, counts func(team.TaskID) bool) {
	for _, m := range members {
		a := s.agent(m.AgentID)
		a.colour, a.person = m.Color, m.Backend == team.Person
		if m.State != team.Stopped {
			a.here, a.lost = true, m.State == team.Lost
			s.widen(m.AgentID)
		}
	}
	for _, t := range tasks {
		s.tasks[t.ID] = &task{Task: t, other: !counts(t.ID)}
		s.hold(t, t.UpdatedAt)
	}
}

// Tell takes in an entry and returns the lines that it makes, without their ends. What
// may be told together with what follows comes later, with it or by [Story.Flush].
func (s *Story) Tell(e feed.Entry) []string {
	s.settle(e)
	told := s.follow(e)
	if s.o.Only != "" && !s.concerns(e) {
		return nil
	}
	return told()
}

func (s *Story) agent(id team.AgentID) *agent {
	a := s.agents[id]
	if a == nil {
		a = &agent{idle: true}
		s.agents[id] = a
	}
	return a
}

// concerns reports whether an entry is told in the story of one member: what it does,
// its tasks, and its mail.
func (s *Story) concerns(e feed.Entry) bool {
	if e.AgentID == s.o.Only || e.AgentID == "" {
		return true
	}
	switch b := e.Event.Event; {
	case b.Type == team.MailSent:
		var m team.Message
		return json.Unmarshal(b.Value, &m) == nil && (m.To == s.o.Only || m.To == team.Everyone || s.o.Mine && m.To == team.UserAgent)
	case strings.HasPrefix(string(b.Type), "APPROVAL_"):
		var a team.Approval
		return json.Unmarshal(b.Value, &a) == nil && a.AgentID == s.o.Only
	case strings.HasPrefix(string(b.Type), "TASK_"):
		var t team.Task
		return json.Unmarshal(b.Value, &t) == nil && (t.Assignee == s.o.Only || t.UpdatedBy == s.o.Only)
	}
	return false
}

// silent tells nothing.
func silent() []string { return nil }

// follow takes in an entry, and returns what tells it.
func (s *Story) follow(e feed.Entry) (tell func() []string) {
	s.newest = e.Time
	b, who := e.Event.Event, s.agent(e.AgentID)
	if b.Tokens > 0 {
		s.tokens += b.Tokens
		if t := s.tasks[who.task]; t != nil {
			t.tokens += b.Tokens
		}
	}
	switch b.Type {
	case team.RunStarted:
		who.idle, who.doing, who.since = false, "", e.Time
		return s.ifFull(e, "began a run")
	case team.RunFinished:
		who.idle, who.doing, who.since = true, "", e.Time
		return s.ifFull(e, "ended its run")
	case team.RunError:
		who.idle, who.doing = true, ""
		if b.Code == team.RunStopped {
			return s.ifFull(e, "was cut off in its run") // the line of its end, or of the next run, says more
		}
		return s.now(func() []string { return s.fact(e.Time, e.AgentID, red, "!", b.Message) })
	case team.TextChunk:
		back := s.answers(e, who)
		return s.now(func() []string { return append(back(), s.says(e, b.Delta)...) })
	case team.ToolCallChunk:
		back := s.answers(e, who)
		tell := s.called(e, who)
		return func() []string { return append(back(), tell()...) }
	case team.ToolCallResult:
		return s.returned(e, who)
	case team.Retry:
		return s.refused(e, who)
	case team.Compacted:
		if b.Message == journal.NewGoal { // it begins one, which its task tells
			return s.ifFull(e, "begins a new conversation: "+b.Message)
		}
		return s.now(func() []string { return s.aside(e, "made its conversation shorter", b.Message) })
	case team.MailSent:
		return s.mailed(e)
	case team.Custom:
		return s.custom(e)
	}
	switch kind, _, _ := strings.Cut(string(b.Type), "_"); kind {
	case "TASK":
		return s.changed(e)
	case "MEMBER":
		return s.member(e)
	case "APPROVAL":
		return s.plan(e)
	}
	return s.ifFull(e, string(b.Type)+" "+oneLine(string(b.Value)))
}

// now tells something, behind all that was held back.
func (s *Story) now(tell func() []string) func() []string {
	return func() []string { return append(s.Flush(), tell()...) }
}

func (s *Story) ifFull(e feed.Entry, text string) func() []string {
	if !s.o.Full {
		return silent
	}
	return s.now(func() []string { return s.aside(e, text, "") })
}

// answers takes in that an agent's model gave a turn, and returns what tells that it
// did not before.
func (s *Story) answers(e feed.Entry, who *agent) func() []string {
	tries, parked := who.tries, who.parked
	who.idle, who.since, who.asks = false, e.Time, ""
	who.trouble, who.tries, who.retries, who.parked = "", 0, false, false
	if tries == 0 && !parked {
		return silent
	}
	return s.now(func() []string { return s.fact(e.Time, e.AgentID, green, "✓", "its model answers again") })
}

// refused tells that a model gave no turn. The same refusal again and again is told ever
// less often.
func (s *Story) refused(e feed.Entry, who *agent) func() []string {
	cause := oneLine(e.Event.Event.Message)
	var r team.Retrying
	if _ = json.Unmarshal(e.Event.Event.Value, &r); r.Tried > 0 {
		return s.retried(e, who, cause)
	}
	if cause == who.trouble {
		who.tries++
	} else {
		who.trouble, who.tries = cause, 1
	}
	who.idle, who.doing = false, ""
	if n := who.tries; n > 1 && n&(n-1) != 0 { // but for the powers of two
		return silent
	}
	text := "model: " + cause
	if who.tries > 1 {
		text = fmt.Sprintf("model: the same again, for the %dth time", who.tries)
		if who.tries == 2 {
			text = "model: the same again"
		}
	}
	return s.now(func() []string { return s.fact(e.Time, e.AgentID, red, "!", text) })
}

// retried tells that a call of the model is tried again: once, until it has given a turn.
func (s *Story) retried(e feed.Entry, who *agent, cause string) func() []string {
	if who.retries || who.tries > 0 {
		return silent
	}
	who.retries, who.trouble = true, cause
	return s.now(func() []string { return s.fact(e.Time, e.AgentID, yellow, "!", cause) })
}

// custom tells what is of no type of its own.
func (s *Story) custom(e feed.Entry) func() []string {
	b := e.Event.Event
	switch {
	case e.AgentID == "" && b.Name == "reset":
		var r feed.Reset
		_ = json.Unmarshal(b.Value, &r)
		var parts []string
		for _, m := range r.Missing {
			part := m.Source
			if m.Why == "made_anew" {
				part += " (made anew)"
			}
			parts = append(parts, part)
		}
		return s.now(func() []string {
			return s.fact(e.Time, "", red, "!", "a part is missing here, which is no longer stored: "+strings.Join(parts, ", "))
		})
	case b.Name == feed.TaskGiven:
		var t team.Task
		if json.Unmarshal(b.Value, &t) == nil {
			s.agent(e.AgentID).task = t.ID
			return s.now(func() []string {
				return s.fact(e.Time, e.AgentID, cyan, "▸", string(t.ID)+" "+t.Title+"\n"+t.Description)
			})
		}
	case b.Name == feed.Note:
		return s.now(func() []string { return s.aside(e, "is told: "+b.Message, "") })
	}
	return s.ifFull(e, b.Name+" "+oneLine(string(b.Value)))
}

// member tells what became of a member.
func (s *Story) member(e feed.Entry) func() []string {
	b := e.Event.Event
	var m team.Member
	if json.Unmarshal(b.Value, &m) != nil {
		return silent
	}
	who := s.agent(m.AgentID)
	was := *who
	who.person, who.colour = m.Backend == team.Person, m.Color
	fact := func(style ink, mark, text string) func() []string {
		return s.now(func() []string { return s.fact(e.Time, m.AgentID, style, mark, text) })
	}
	switch b.Type {
	case team.MemberCreated:
		if !was.here || m.Incarnation < 2 {
			return silent
		}
		if who.lost = true; was.lost { // which was told, and why
			return silent
		}
		return fact(red, "!", "is lost; it is brought back")
	case team.MemberJoined:
		who.here, who.lost, who.parked, who.idle = true, false, false, true
		s.widen(m.AgentID)
		switch {
		case was.lost:
			return fact(green, "+", "is back")
		case was.here && m.Incarnation > 1:
			return fact(green, "+", "goes on in another process")
		case who.person:
			return fact(green, "+", "joined, a person")
		}
		return func() []string { return s.together(e, m.AgentID, s.name(m.AgentID)) }
	case team.MemberLost:
		who.lost, who.doing = true, ""
		if m.LastError == "" { // it was told to end, and has given back what it had
			return fact(plain, "-", "its process has ended")
		}
		return fact(red, "!", because("is lost", m.LastError))
	case team.MemberStopped, team.MemberRemoved:
		who.here, who.lost, who.task, who.doing, who.idle = false, false, "", "", true
		if m.LastError != "" {
			return fact(red, "-", because("left", m.LastError))
		}
		return func() []string { return s.together(e, m.AgentID, s.name(m.AgentID)) }
	case team.MemberParked:
		who.parked, who.since = true, e.Time
		if oneLine(m.LastError) == was.trouble {
			return fact(red, "!", "waits until its model is mended")
		}
		who.trouble = oneLine(m.LastError)
		if who.broken = m.State == team.WaitingRepair; who.broken {
			return fact(red, "!", because("waits until its journal is repaired", m.LastError))
		}
		return fact(red, "!", because("waits until its model is mended", m.LastError))
	case team.MemberResumed:
		if !was.parked {
			return silent
		}
		who.parked, who.trouble, who.tries = false, "", 0
		if who.broken = false; was.broken {
			return fact(green, "✓", "its journal can be read again")
		}
		return fact(green, "✓", "its model answers again")
	}
	return s.ifFull(e, "member changed")
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// plan tells what became of a plan. One that a person is to decide on is told by the mail.
func (s *Story) plan(e feed.Entry) func() []string {
	b := e.Event.Event
	var a team.Approval
	if json.Unmarshal(b.Value, &a) != nil {
		return silent
	}
	fact := func(style ink, mark, text string) func() []string {
		return s.now(func() []string { return s.fact(e.Time, e.AgentID, style, mark, text) })
	}
	what := "the plan " + a.ID
	if a.Task != "" {
		what += " for " + string(a.Task)
	}
	switch {
	case b.Type == team.ApprovalRequested && a.Asks() != team.UserAgent:
		return fact(cyan, "?", "asks for approval of "+what+": "+team.Summarize(a.Plan))
	case b.Type == team.ApprovalApproved:
		return fact(green, "✓", because("approves "+what+" of "+s.name(a.AgentID), a.Feedback))
	case b.Type == team.ApprovalRejected:
		return fact(yellow, "✗", because("rejects "+what+" of "+s.name(a.AgentID), a.Feedback))
	}
	_, verb, _ := strings.Cut(string(b.Type), "_")
	return s.ifFull(e, what+": "+strings.ToLower(verb))
}

// hold takes in who holds a task.
func (s *Story) hold(t team.Task, at time.Time) {
	for id, a := range s.agents {
		if a.task == t.ID && (t.Status != team.InProgress || t.Assignee != id) {
			a.task, a.since = "", at
		}
	}
	if t.Status == team.InProgress {
		a := s.agent(t.Assignee)
		if a.task != t.ID && a.doing == "" {
			a.since = at
		}
		a.task, a.idle = t.ID, false
	}
}

// changed tells what became of a task.
func (s *Story) changed(e feed.Entry) func() []string {
	b := e.Event.Event
	var t team.Task
	if json.Unmarshal(b.Value, &t) != nil {
		return silent
	}
	before := s.tasks[t.ID]
	if before == nil {
		before = &task{}
	}
	now := &task{Task: t, tokens: before.tokens}
	s.tasks[t.ID] = now
	s.hold(t, e.Time)
	by := t.UpdatedBy
	if by == "" {
		by = e.AgentID
	}
	what, why := step(before.Task, t, b.Type)
	fact := func(style ink, mark, text string) func() []string {
		return s.now(func() []string { return s.fact(e.Time, by, style, mark, string(t.ID)+" "+text) })
	}
	switch b.Type {
	case team.TaskCreated:
		part := string(t.ID) + " " + oneLine(t.Title)
		if len(t.Dependencies) > 0 {
			part += " (waits for " + join(t.Dependencies) + ")"
		}
		if t.ReservedFor != "" {
			part += " (for " + s.name(t.ReservedFor) + ")"
		}
		return func() []string { return s.together(e, t.CreatedBy, part) }
	case team.TaskClaimed, team.TaskAssigned:
		return fact(cyan, "▸", what+": "+t.Title)
	case team.TaskAdopted:
		return fact(cyan, "▸", "goes on with it: "+t.Title)
	case team.TaskReleased:
		return fact(yellow, "↩", because(what, why))
	case team.TaskCompleted:
		return s.now(func() []string {
			return s.factBeside(e.Time, by, green, "✓", string(t.ID)+" "+because(what, why), took(now))
		})
	case team.TaskFailed, team.TaskCancelled:
		style, mark := red, "✗"
		if b.Type == team.TaskCancelled {
			style, mark = yellow, "✗"
		}
		first := fact(style, mark, because(what, why))
		return func() []string { return append(first(), s.blocks(e.Time, t)...) }
	}
	return fact(plain, "~", because(what, why))
}

// step says in words what was done to a task.
func step(before, t team.Task, kind team.EventType) (what, why string) {
	copies := []team.Task{before, t}
	if before.ID == "" {
		copies[0] = t // of which nothing differs: only the type of the event tells
	}
	steps, _ := team.History(copies)
	last := steps[len(steps)-1]
	if before.ID != "" {
		return last.What, last.Why
	}
	_, verb, _ := strings.Cut(string(kind), "_")
	why = t.Reason
	if t.Status == team.Completed {
		why = t.ResultSummary
	}
	return strings.ToLower(verb), why
}

// took is how long a task was held, and what was used for it.
func took(t *task) string {
	var parts []string
	if t.ClaimedAt != nil && t.CompletedAt != nil {
		parts = append(parts, span(t.CompletedAt.Sub(*t.ClaimedAt)))
	}
	if t.tokens > 0 {
		parts = append(parts, amount(t.tokens)+" tokens")
	}
	return strings.Join(parts, ", ")
}

// blocks tells which tasks wait in vain, now that t is not to be completed.
func (s *Story) blocks(at time.Time, t team.Task) []string {
	var ids []team.TaskID
	for id, o := range s.tasks {
		if o.Status == team.Pending && slices.Contains(o.Dependencies, t.ID) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.SortFunc(ids, func(a, b team.TaskID) int { return a.Number() - b.Number() })
	is := " is"
	if len(ids) > 1 {
		is = " are"
	}
	return s.fact(at, "", yellow, "!", fmt.Sprintf("%s%s blocked: %s %s", join(ids), is, t.ID, t.Status))
}

func join(ids []team.TaskID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, ", ")
}
