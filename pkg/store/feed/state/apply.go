package state

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// Apply applies the next entry and returns the changes. A reset entry changes nothing: call [Team.KnowMembers] and
// [Team.KnowTasks] after it.
func (t *Team) Apply(e feed.Entry) []Change {
	b, a := e.Event.Event, e.AgentID
	if feed.IsReset(e.Event) {
		return nil
	}
	if e.RoleName != "" {
		t.get(a).Role = e.RoleName
	}
	if b.Tokens > 0 {
		t.Tokens += b.Tokens
		if task := t.Tasks[t.Member(a).Task]; task != nil {
			task.Tokens += b.Tokens
		}
	}
	switch b.Type {
	case team.RunStarted, team.RunFinished, team.RunError, team.TextChunk, team.ToolCallChunk, team.ToolCallResult, team.Retry, team.Compacted:
		t.ran(e)
	case team.MailSent:
		var m team.Message
		if json.Unmarshal(b.Value, &m) == nil {
			t.mail(m)
		}
	case team.Custom:
		var task team.Task
		if b.Name == feed.TaskGiven && json.Unmarshal(b.Value, &task) == nil {
			t.edit(a).Task = task.ID
		}
	}
	switch kind, _, _ := strings.Cut(string(b.Type), "_"); kind {
	case "TASK":
		var task team.Task
		if json.Unmarshal(b.Value, &task) == nil && task.ID != "" {
			t.task(task, e.Time)
		}
	case "MEMBER":
		var m team.Member
		if json.Unmarshal(b.Value, &m) == nil {
			m.AgentID = cmp.Or(m.AgentID, a)
			t.member(b.Type, m, e.Time)
		}
	case "APPROVAL":
		var p team.Approval
		if json.Unmarshal(b.Value, &p) == nil {
			delete(t.Plans, p.ID)
			switch m := t.Members[p.AgentID]; {
			case p.Status == team.PlanPending && p.EndedAt == nil:
				if t.Plans[p.ID] = p; !p.IsPlan() {
					t.edit(p.AgentID).Asks = p.Asks()
				}
			case m != nil && m.Asks == p.Asks() && !p.IsPlan():
				t.edit(p.AgentID).Asks = ""
			}
			t.change(PlanChanged{p})
		}
	}
	return t.changed()
}

// Write applies a chunk of a text that is being written, at that time by the clock of the entries, and returns the pieces that
// a reader can get now: those that follow on its text so far, of a known run. The rest comes with the entry of the whole text.
func (t *Team) Write(d team.Delta, now time.Time) []Change {
	if r := t.runs[cmp.Or(d.RunID, string(d.AgentID))]; r == nil || !r.over {
		t.chunks(t.text(d.AgentID).write(d, now))
	}
	return t.changed()
}

// Close ends all open runs, in the order of the agents, since no more entries are read.
func (t *Team) Close() []Change {
	open := map[team.AgentID][]*run{}
	for _, r := range t.runs {
		if !r.over {
			open[r.agent] = append(open[r.agent], r)
		}
	}
	for _, a := range slices.Sorted(maps.Keys(open)) {
		slices.SortFunc(open[a], func(x, y *run) int { return cmp.Compare(x.id, y.id) })
		for _, r := range open[a] {
			t.end(r, team.EventBody{})
		}
	}
	return t.changed()
}

// ran applies an entry of a run.
func (t *Team) ran(e feed.Entry) {
	b, a, id := e.Event.Event, e.AgentID, e.RunID
	if i := t.find(a, b.ToolCallID); id == "" && i >= 0 && b.Type == team.ToolCallResult {
		id = t.calls[a][i].RunID // a process stores it for the one that it replaces, before it runs itself
	}
	r := t.run(a, id, b)
	of, m := t.of(r), t.edit(a)
	switch b.Type {
	case team.RunStarted:
		if r.over {
			return
		}
		m.Idle, m.Call, m.Since = false, nil, e.Time
	case team.RunFinished, team.RunError:
		if r.over {
			return
		}
		if m.Run == r.id {
			m.Idle, m.Call = true, nil
			if b.Type == team.RunFinished {
				m.Since = e.Time
			}
		}
		t.end(r, b)
	case team.TextChunk:
		m.answers(of, e.Time)
		t.chunks(t.text(a).store(of, b))
	case team.ToolCallChunk:
		m.answers(of, e.Time)
		t.text(a).turn = b.MessageID
		t.called(m, of, b, e.Time)
	case team.ToolCallResult:
		t.returned(m, of, b, e.Time)
	}
	if !r.over {
		t.chunks(t.text(a).enter(r.id))
	}
	if b.Type == team.Retry {
		t.refused(m, r, b)
	}
}

// run returns the run of an entry, and reports it if it is new. An unnamed run is known while it lasts.
func (t *Team) run(a team.AgentID, id string, b team.EventBody) *run {
	r := t.runs[cmp.Or(id, string(a))]
	first, started := r == nil, b.Type == team.RunStarted
	if first {
		r = &run{agent: a, id: id}
		t.runs[cmp.Or(id, string(a))] = r
	}
	if first || started && !r.started && !r.over {
		r.started = started
		t.change(RunBegan{t.of(r), first, started, b.ThreadID})
	}
	if m, ends := t.edit(a), b.Type == team.RunFinished || b.Type == team.RunError; !r.over && (m.Run == "" || !ends) {
		m.Run = id // the end of a run may come after the first entry of the next
	}
	return r
}

func (t *Team) of(r *run) Of { return Of{r.agent, r.id, r.over} }

// end records that a run is over, and ends its open texts and calls.
func (t *Team) end(r *run, b team.EventBody) {
	of, m := t.of(r), t.edit(r.agent)
	present := m.Run == r.id
	if present {
		m.Run = ""
	}
	t.chunks(t.text(r.agent).leave(r.id))
	// The result of a call that was over comes before the next run, if it comes.
	t.calls[r.agent] = slices.DeleteFunc(t.calls[r.agent], func(c *Call) bool { return c.Over && present && c.RunID != r.id })
	for _, c := range t.calls[r.agent] {
		if !c.Over && (present || c.RunID == r.id) { // of runs whose end is missing, too
			c.Over = true
			t.change(CallEnded{Of: of, Call: c, CallID: c.ID})
		}
	}
	t.change(RunEnded{of, r.started, b})
	if r.over = true; r.id == "" {
		delete(t.runs, string(r.agent))
		return
	}
	if t.over = append(t.over, r.id); len(t.over) > mostOver {
		t.forget(t.over[0])
		t.over = t.over[1:]
	}
}

// forget drops a run that is over, and with a subagent's only run the subagent.
func (t *Team) forget(id string) {
	r := t.runs[id]
	if delete(t.runs, id); r == nil || r.agent == r.agent.Owner() {
		return
	}
	delete(t.Members, r.agent)
	delete(t.calls, r.agent)
	delete(t.texts, r.agent)
	delete(t.before, r.agent)
}

// chunks reports the pieces of an agent's text, and its run before them if that is new.
func (t *Team) chunks(all []Chunk) {
	for _, p := range all {
		r := t.runs[cmp.Or(p.RunID, string(p.AgentID))]
		if r == nil {
			r = t.run(p.AgentID, p.RunID, team.EventBody{})
		}
		p.Late = r.over
		t.change(p)
	}
}

// answers records that a member's model has given a turn.
func (m *Member) answers(of Of, at time.Time) {
	if of.Late {
		return
	}
	m.Idle, m.Since, m.Asks = false, at, ""
	m.Trouble, m.Refused, m.Retried, m.Parked = "", 0, false, false
}

// called applies a call.
func (t *Team) called(m *Member, of Of, b team.EventBody, at time.Time) {
	c := &Call{ID: b.ToolCallID, MessageID: b.MessageID, RunID: of.RunID, Name: b.ToolCallName, Tool: team.ToolOf(b.ToolCallName, b.Delta),
		Args: b.Delta, Began: at, Late: of.Late}
	if was := t.drop(m.ID, c.ID); was != nil && was.MessageID == c.MessageID && was.Name == c.Name && was.Args == c.Args { // it is here twice
		c = was
	} else {
		t.change(CallBegan{of, c})
	}
	t.calls[m.ID] = append(t.calls[m.ID], c)
	if m.Call == nil || c.Tool == "bash" { // of several concurrent calls, the one that takes longest
		m.Call, m.Since = c, at
	}
	var args struct {
		To    team.AgentID `json:"to"`
		Await bool         `json:"await_reply"`
	}
	switch {
	case c.Tool == "send_message" && json.Unmarshal([]byte(c.Args), &args) == nil && args.Await:
		m.Asks = args.To
	case c.Tool == "ask_user":
		m.Asks = team.UserAgent
	}
}

// returned applies the result of a call.
func (t *Team) returned(m *Member, of Of, b team.EventBody, at time.Time) {
	c := t.drop(m.ID, b.ToolCallID)
	if c != nil && m.Call == c {
		m.Call, m.Since = nil, at
		if i := slices.IndexFunc(t.calls[m.ID], func(c *Call) bool { return !c.Over }); i >= 0 { // one of several has ended
			m.Call = t.calls[m.ID][i]
			m.Since = m.Call.Began
		}
	}
	t.change(CallEnded{of, c, b.ToolCallID, true, b.MessageID, b.Content})
}

// find returns the index of the call of that id; -1 = there is none.
func (t *Team) find(a team.AgentID, id string) int {
	return slices.IndexFunc(t.calls[a], func(c *Call) bool { return c.ID == id })
}

// drop removes the call of that id, and returns it; nil if there is none.
func (t *Team) drop(a team.AgentID, id string) *Call {
	i := t.find(a, id)
	if i < 0 {
		return nil
	}
	c := t.calls[a][i]
	t.calls[a] = slices.Delete(t.calls[a], i, i+1)
	return c
}

// refused records that a model gave no turn, or that a call of it is tried again.
func (t *Team) refused(m *Member, r *run, b team.EventBody) {
	cause := strings.Join(strings.Fields(b.Message), " ")
	var again team.Retrying
	_ = json.Unmarshal(b.Value, &again) // another value belongs to the last try
	if again.Tried > 0 {
		if !m.Retried && m.Refused == 0 {
			m.Retried, m.Trouble = true, cause
		}
		return
	}
	if cause != m.Trouble {
		m.Trouble, m.Refused = cause, 0
	}
	m.Refused++
	m.Idle, m.Call = false, nil
	t.text(m.ID).hide(r.id)
}

// mail applies a message.
func (t *Team) mail(m team.Message) {
	if to := t.Members[m.To]; to != nil && to.Asks == m.From {
		t.edit(m.To).Asks = ""
	}
	for id, q := range t.Questions {
		waits := q.From
		if task := t.Tasks[q.TaskID]; task != nil {
			waits = q.Waits(task.Task)
		}
		if m.Answers(q, waits) && (m.From == q.To || m.From == team.UserAgent) { // mail of others lets it wait on
			delete(t.Questions, id)
		}
	}
	if m.Asks() {
		if t.edit(m.From).Asks = m.To; t.IsPerson(m.To) {
			t.Questions[m.ID] = m
		}
	}
	t.change(MailSent{m})
}

// task applies the record of a task.
func (t *Team) task(record team.Task, at time.Time) {
	before := t.Tasks[record.ID]
	after := &Task{Task: record}
	if before != nil {
		after.Tokens = before.Tokens
	}
	t.Tasks[record.ID] = after
	t.hold(record, at)
	for id, q := range t.Questions {
		switch waits := q.Waits(record); {
		case q.TaskID != record.ID:
		case q.Void(record):
			delete(t.Questions, id)
		case waits != "" && waits != q.From && (before == nil || before.Assignee != waits): // the next holder waits for the answer
			t.edit(q.From).Asks, t.edit(waits).Asks = "", q.To
		}
	}
	t.change(TaskChanged{before, after})
}

// member applies the record of a member.
func (t *Team) member(what team.EventType, record team.Member, at time.Time) {
	m := t.edit(record.AgentID)
	t.record(m, record)
	switch what {
	case team.MemberCreated:
		t.joins(m)
		m.Lost = m.Lost || m.Here && record.Incarnation > 1
	case team.MemberJoined:
		t.joins(m)
		m.Here, m.Lost, m.Parked, m.Idle = true, false, false, true
	case team.MemberLost:
		m.Lost, m.Call = true, nil
		t.text(m.ID).hide()
	case team.MemberStopped, team.MemberRemoved:
		m.leaves(true)
		t.text(m.ID).hide()
	case team.MemberParked:
		m.Parked, m.Since, m.Trouble, m.Damaged = true, at, strings.Join(strings.Fields(record.LastError), " "), record.State == team.WaitingRepair
	case team.MemberResumed:
		if m.Parked {
			m.Parked, m.Trouble, m.Refused, m.Damaged = false, "", 0, false
		}
	}
}
