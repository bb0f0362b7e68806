// Package render turns the entries of a team's feed (package feed) into lines for a terminal, and its state into one
// line.
//
// The same entries make the same lines, for any reader at any time. Texts of agents reach the terminal as plain text
// only.
//
// It prints nothing: the caller chooses the output and its colours, and the form for programs.
package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
)

// Options are the settings of a story.
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

	// Traits returns what holds for the calls of the tool that is called so; default: nothing
	// is known of any, and calls and results are told.
	Traits func(name string) tool.Traits
	// Answer returns the command that answers a question, or "" for one that is answered;
	// nil tells no commands.
	Answer func(question team.Message) string
	// Decide returns how a call is allowed that a person was asked for, or "" for one that is
	// decided on; nil tells nothing of it.
	Decide func(request team.Approval) string
}

// Story is the lines of a team's feed so far. Not safe for concurrent use.
type Story struct {
	o       Options
	team    *state.Team
	day     string       // of the newest line
	names   int          // cells of the longest name, of those that are not very long
	spoke   team.AgentID // whose the last line was
	waits   string       // who waits for a person, as it was told last
	lastOf  string       // id of the call that the last line was about
	pending *group
}

// New returns an empty story.
func New(o Options) *Story {
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Traits == nil {
		o.Traits = func(string) tool.Traits { return tool.Traits{} }
	}
	return &Story{o: o, team: state.New()}
}

// Resize sets the width of later lines, in cells.
func (s *Story) Resize(width int) { s.o.Width = width }

// Know adds the tasks and members from before the first entry. Tasks of an earlier goal do not count.
func (s *Story) Know(members []team.Member, tasks []team.Task, counts func(team.TaskID) bool) {
	s.team.KnowMembers(members)
	s.team.KnowTasks(tasks, counts)
	for _, m := range members {
		if m.State != team.Stopped {
			s.widen(m.AgentID)
		}
	}
}

// Render adds an entry and returns its lines, without line ends. A fact that may be shown together with later ones is
// held back until then, or until [Story.Flush].
func (s *Story) Render(e feed.Entry) []string {
	changes := s.team.Apply(e)
	if e.Event.Event.Type == team.MemberJoined { // whether it is told or not
		s.widen(e.AgentID)
	}
	if s.o.Only != "" && !s.concerns(e, changes) {
		return nil
	}
	return s.lines(e, changes)
}

// Write adds a chunk of a text that is being written, at that time by the clock of the entries.
func (s *Story) Write(d team.Delta, now time.Time) { s.team.Write(d, now) }

// concerns reports whether an entry belongs to the story of one member: its actions, its tasks, and its mail.
func (s *Story) concerns(e feed.Entry, changes []state.Change) bool {
	if e.AgentID == s.o.Only || e.AgentID == "" {
		return true
	}
	for _, c := range changes {
		switch c := c.(type) {
		case state.MailSent:
			return c.To == s.o.Only || c.To == team.Everyone || s.o.Mine && c.To == team.UserAgent
		case state.PlanChanged:
			return c.AgentID == s.o.Only
		case state.TaskChanged:
			return c.After.Assignee == s.o.Only || writer(c) == s.o.Only
		}
	}
	return false
}

// lines returns the lines for an entry with these changes.
func (s *Story) lines(e feed.Entry, changes []state.Change) []string {
	b, was := e.Event.Event, s.was(e.AgentID, changes)
	switch b.Type {
	case team.RunStarted:
		return s.ifFull(e, "began a run")
	case team.RunFinished:
		return s.ifFull(e, "ended its run")
	case team.RunError:
		if b.Code == team.RunStopped {
			return s.ifFull(e, "was cut off in its run") // the line of its end, or of the next run, says more
		}
		return append(s.Flush(), s.fact(e.Time, e.AgentID, red, "!", b.Message)...)
	case team.TextChunk:
		return slices.Concat(s.Flush(), s.answers(e, was), s.textOf(e, b.Delta))
	case team.ToolCallChunk:
		return append(s.answers(e, was), s.called(e)...)
	case team.Retry:
		return s.refused(e, was)
	case team.Compacted:
		if b.Message == journal.NewGoal { // it begins one, which its task tells
			return s.ifFull(e, "begins a new conversation: "+b.Message)
		}
		return append(s.Flush(), s.note(e, "made its conversation shorter", b.Message)...)
	case team.Custom:
		return s.custom(e)
	}
	for _, c := range changes {
		switch c := c.(type) {
		case state.CallEnded:
			return s.returned(e, c)
		case state.MailSent:
			return s.mailed(e, c.Message)
		case state.TaskChanged:
			return s.changed(e, c)
		case state.PlanChanged:
			return s.plan(e, c.Approval)
		}
	}
	switch kind, _, _ := strings.Cut(string(b.Type), "_"); kind {
	case "MEMBER":
		return s.member(e, was)
	case "MAIL", "TASK", "APPROVAL": // which cannot be read
		return nil
	}
	return s.ifFull(e, string(b.Type)+" "+team.OneLine(string(b.Value)))
}

// was returns the state of a member before these changes.
func (s *Story) was(a team.AgentID, changes []state.Change) state.Member {
	for _, c := range changes {
		if c, ok := c.(state.MemberChanged); ok && c.Before.ID == a {
			return c.Before
		}
	}
	return s.team.Member(a)
}

func (s *Story) ifFull(e feed.Entry, text string) []string {
	if !s.o.Full {
		return nil
	}
	return append(s.Flush(), s.note(e, text, "")...)
}

// answers returns the line that an agent's model answers again, if it did not before.
func (s *Story) answers(e feed.Entry, was state.Member) []string {
	if now := s.team.Member(e.AgentID); was.Refused == now.Refused && was.Parked == now.Parked {
		return nil
	}
	return append(s.Flush(), s.fact(e.Time, e.AgentID, green, "✓", "its model answers again")...)
}

// refused returns the line that a model gave no turn. A repeated refusal is shown ever less often, and a retried call
// once until it succeeds.
func (s *Story) refused(e feed.Entry, was state.Member) []string {
	now := s.team.Member(e.AgentID)
	n, style, text := now.Refused, red, "model: "+now.Trouble
	switch {
	case now.Retried && !was.Retried:
		style, text = yellow, now.Trouble
	case n == was.Refused && now.Trouble == was.Trouble, n&(n-1) != 0: // but for the powers of two
		return nil
	case n == 2:
		text = "model: the same again"
	case n > 2:
		text = fmt.Sprintf("model: the same again, for the %dth time", n)
	}
	return append(s.Flush(), s.fact(e.Time, e.AgentID, style, "!", text)...)
}

// custom returns the lines for an event without a type of its own.
func (s *Story) custom(e feed.Entry) []string {
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
		return append(s.Flush(), s.fact(e.Time, "", red, "!", "a part is missing here, which is no longer stored: "+strings.Join(parts, ", "))...)
	case b.Name == feed.TaskGiven:
		var t team.Task
		if json.Unmarshal(b.Value, &t) == nil {
			return append(s.Flush(), s.fact(e.Time, e.AgentID, cyan, "▸", string(t.ID)+" "+t.Title+"\n"+t.Description)...)
		}
	case b.Name == feed.Note:
		return append(s.Flush(), s.note(e, "is told: "+b.Message, "")...)
	case b.Name == feed.Thinking:
		return s.ifFull(e, "thinks: "+team.OneLine(b.Message))
	}
	return s.ifFull(e, b.Name+" "+team.OneLine(string(b.Value)))
}

// member returns the lines for a change of a member.
func (s *Story) member(e feed.Entry, was state.Member) []string {
	b := e.Event.Event
	var m team.Member
	if json.Unmarshal(b.Value, &m) != nil {
		return nil
	}
	fact := func(style ink, mark, text string) []string {
		return append(s.Flush(), s.fact(e.Time, m.AgentID, style, mark, text)...)
	}
	switch b.Type {
	case team.MemberCreated:
		if !was.Here || m.Incarnation < 2 || was.Lost { // which was told, and why
			return nil
		}
		return fact(red, "!", "is lost; it is brought back")
	case team.MemberJoined:
		switch {
		case was.Lost:
			return fact(green, "+", "is back")
		case was.Here && m.Incarnation > 1 && m.AgentID == team.Leader: // the same process may, after an outage
			return fact(green, "+", "leads again")
		case was.Here && m.Incarnation > 1:
			return fact(green, "+", "goes on in another process")
		case m.Backend == team.Person:
			return fact(green, "+", "joined, a person")
		}
		return s.together(e, m.AgentID, s.name(m.AgentID))
	case team.MemberLost:
		if m.LastError == "" { // it was told to end, and has given back what it had
			return fact(plain, "-", "its process has ended")
		}
		return fact(red, "!", because("is lost", m.LastError))
	case team.MemberStopped, team.MemberRemoved:
		if m.LastError != "" {
			return fact(red, "-", because("left", m.LastError))
		}
		return s.together(e, m.AgentID, s.name(m.AgentID))
	case team.MemberParked:
		what, why := "waits until its model is repaired", m.LastError
		switch {
		case team.OneLine(why) == was.Trouble: // which was told
			why = ""
		case m.State == team.WaitingRepair:
			what = "waits until its journal is repaired"
		}
		return fact(red, "!", because(what, why))
	case team.MemberResumed:
		switch {
		case !was.Parked:
			return nil
		case was.Damaged:
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

// writer returns the agent that has changed a task.
func writer(c state.TaskChanged) team.AgentID {
	if c.Before == nil {
		return c.After.UpdatedBy
	}
	return explain.Writer(c.Before.Task, c.After.Task)
}

// changed returns the lines for a change of a task.
func (s *Story) changed(e feed.Entry, c state.TaskChanged) []string {
	b, t := e.Event.Event, c.After.Task
	by := cmp.Or(writer(c), e.AgentID)
	what, why := step(c.Before, t, b.Type)
	fact := func(style ink, mark, text string) []string {
		return append(s.Flush(), s.fact(e.Time, by, style, mark, string(t.ID)+" "+text)...)
	}
	switch b.Type {
	case team.TaskCreated:
		part := string(t.ID) + " " + team.OneLine(t.Title)
		if len(t.Dependencies) > 0 {
			part += " (waits for " + strings.Join(team.Strings(t.Dependencies...), ", ") + ")"
		}
		if t.ReservedFor != "" {
			part += " (for " + s.name(t.ReservedFor) + ")"
		}
		return s.together(e, t.CreatedBy, part)
	case team.TaskClaimed, team.TaskAssigned:
		return fact(cyan, "▸", what+": "+t.Title)
	case team.TaskAdopted:
		return fact(cyan, "▸", "goes on with it: "+t.Title)
	case team.TaskReleased:
		first, _, _ := strings.Cut(why, "\n") // the rest is for the next holder
		return fact(yellow, "↩", because(what, first))
	case team.TaskCompleted:
		return append(s.Flush(), s.extraFact(e.Time, by, green, "✓", string(t.ID)+" "+because(what, why), took(c.After))...)
	case team.TaskFailed, team.TaskCancelled:
		style, mark := red, "✗"
		if b.Type == team.TaskCancelled {
			style, mark = yellow, "✗"
		}
		return append(fact(style, mark, because(what, why)), s.blocks(e.Time, t)...)
	}
	return fact(plain, "~", because(what, why))
}

// step describes a change of a task in words.
func step(before *state.Task, t team.Task, kind team.EventType) (what, why string) {
	if before != nil {
		_, what, why = explain.Change(before.Task, t)
		return what, why
	} // nothing is known to differ: only the type of the event tells
	_, verb, _ := strings.Cut(string(kind), "_")
	why = t.Reason
	if t.Status == team.Completed {
		why = t.ResultSummary
	}
	return strings.ToLower(verb), why
}

// took returns how long a task was held, and its tokens.
func took(t *state.Task) string {
	var parts []string
	if t.ClaimedAt != nil && t.CompletedAt != nil {
		parts = append(parts, span(t.CompletedAt.Sub(*t.ClaimedAt)))
	}
	if t.Tokens > 0 {
		parts = append(parts, Amount(t.Tokens)+" tokens")
	}
	return strings.Join(parts, ", ")
}

// blocks returns the line with the tasks that wait in vain, now that t will not be completed.
func (s *Story) blocks(at time.Time, t team.Task) []string {
	var ids []team.TaskID
	for id, o := range s.team.Tasks {
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
	return s.fact(at, "", yellow, "!", fmt.Sprintf("%s%s blocked: %s %s", strings.Join(team.Strings(ids...), ", "), is, t.ID, t.Status))
}
