// Package state folds the feed of a team (package feed) into one value: the state of the team. It has members, tasks, runs, open
// calls, texts that are being written, questions and plans; a page, a screen and a status line draw them.
//
//	entry of the feed ── Apply ──┐
//	piece of a text ──── Write ──┼──▶ Team ──▶ []Change
//	snapshot ────────── Know… ───┘
//
// Each call returns its changes, so that an encoder of a protocol or a drawer keeps no state of its own and compares nothing. The
// same entries make the same Team and the same changes, read in one go or in several, by any process.
//
// A feed may be read from the middle, and entries may come late or twice; the package handles that. A run whose first seen entry
// is not its beginning begins with that entry. Entries of a run after its end are marked as late. A run, a text and a call end
// once.
//
// It reads and stores nothing, and has no clock: times are those of the entries.
package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"agentteam/pkg/team"
)

// Team is the state of a team at a place of its feed. Its fields are for reading. It is not safe for concurrent use.
type Team struct {
	Members   map[team.AgentID]*Member // also those that have left, and others who have acted: subagents while a run of theirs is known
	Tasks     map[team.TaskID]*Task
	Questions map[string]team.Message  // to people, and not answered; by their ids
	Plans     map[string]team.Approval // that wait for a decision, by their ids
	Tokens    int                      // that model calls have used

	runs   map[string]*run // by id, also those of over
	over   []string        // ids of the newest runs that are over, of which entries may still come
	calls  map[team.AgentID][]*Call
	texts  map[team.AgentID]*texts
	joined int // highest Member.Joined

	// The changes of the call of Apply, Write or Close that is under way.
	changes []Change
	before  map[team.AgentID]Member
}

// Member is the state of a member.
type Member struct {
	ID          team.AgentID
	Role        string
	Colour      string
	Person      bool             // it is a person's seat
	State       team.MemberState // by its record; "" = none was seen
	Incarnation uint64
	Here        bool         // it has joined, and has not left
	Joined      int          // grows in the order of joining; 0 = it is not in the team
	Lost        bool         // its process is lost
	Idle        bool         // it is in no run
	Run         string       // that it is in; "" = none is known
	Task        team.TaskID  // that it holds; "" = none
	Call        *Call        // whose result it waits for; nil = it waits for its model, unless it is idle
	Since       time.Time    // the beginning of its present activity
	Asks        team.AgentID // whose answer it waits for; "" = it waits for none
	Trouble     string       // why its model gives no turn; "" = it does
	Refused     int          // how often in a row it did not for that reason, all tries of a call being one
	Retried     bool         // the tries of one call fail
	Parked      bool         // it waits until its model or its journal is repaired
	Damaged     bool         // it is its journal
}

// Task is the newest record of a task.
type Task struct {
	team.Task
	Tokens  int  // used by its holders, as far as the entries show
	Earlier bool // of an earlier goal
}

// Call is a call of a tool.
type Call struct {
	ID        string // of the agent's own choice; some models use one again and again
	MessageID string // of the turn that has asked for it
	RunID     string
	Name      string // of the tool, as the model calls it
	Tool      string // the same in our own words
	Args      string // JSON
	Began     time.Time
	Late      bool // its run was over already
	Over      bool // its run has ended without a result, which may still come
}

// mostOver bounds the known runs that are over, and with them their subagents: late entries come soon after them. A reader may
// follow a team for weeks.
const mostOver = 1000

// run is a run of an agent.
type run struct {
	agent   team.AgentID
	id      string
	started bool // its beginning was seen
	over    bool
}

// New returns a team without any knowledge.
func New() *Team {
	return &Team{
		Members: map[team.AgentID]*Member{}, Tasks: map[team.TaskID]*Task{}, Questions: map[string]team.Message{}, Plans: map[string]team.Approval{},
		runs: map[string]*run{}, calls: map[team.AgentID][]*Call{}, texts: map[team.AgentID]*texts{}, before: map[team.AgentID]Member{},
	}
}

// KnowMembers applies the records of all members, before the first entry or where entries are missing. The facts from entries on
// a member stay if its record is in the same state.
func (t *Team) KnowMembers(members []team.Member) {
	known := map[team.AgentID]bool{}
	for _, record := range members {
		known[record.AgentID] = true
		m := t.get(record.AgentID)
		if m.State == record.State && m.Incarnation == record.Incarnation && m.State != "" {
			continue
		}
		t.record(m, record)
		if m.leaves(record.State == team.Stopped); record.State != team.Stopped {
			m.Here, m.Lost, m.Parked = true, record.State == team.Lost, m.Parked && record.State != team.Joined
			t.joins(m)
		}
	}
	for id, m := range t.Members {
		m.leaves(m.Here && !known[id])
	}
}

// KnowTasks applies the records of all tasks, as [Team.KnowMembers] does for members. counts reports whether a task belongs to the
// present goal; nil: all do.
func (t *Team) KnowTasks(tasks []team.Task, counts func(team.TaskID) bool) {
	before := t.Tasks
	t.Tasks = make(map[team.TaskID]*Task, len(tasks))
	for _, record := range tasks {
		now := &Task{Task: record, Earlier: counts != nil && !counts(record.ID)}
		t.Tasks[record.ID] = now
		was := before[record.ID]
		if was != nil {
			now.Tokens = was.Tokens
		}
		if was == nil || was.Status != now.Status || was.Assignee != now.Assignee {
			t.hold(record, record.UpdatedAt)
		}
	}
	clear(t.before) // which a snapshot does not report
}

// Member returns the known state of an agent, which may be empty.
func (t *Team) Member(id team.AgentID) Member {
	if m := t.Members[id]; m != nil {
		return *m
	}
	return Member{ID: id, Idle: true}
}

// IsPerson reports whether an agent is the user or a person's seat.
func (t *Team) IsPerson(id team.AgentID) bool { return id == team.UserAgent || t.Member(id).Person }

// Agents returns the members that are in the team and not people, in the order of joining.
func (t *Team) Agents() (ids []team.AgentID) {
	for id, m := range t.Members {
		if m.Joined > 0 && !m.Person {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b team.AgentID) int { return cmp.Compare(t.Members[a].Joined, t.Members[b].Joined) })
	return ids
}

// Calls returns the calls of an agent that have no result, in their order.
func (t *Team) Calls(a team.AgentID) []*Call { return t.calls[a] }

// Drafts returns the texts that are being written, the oldest first.
func (t *Team) Drafts() (all []*Draft) {
	for _, x := range t.texts {
		if d := x.shown(); d != nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *Draft) int {
		return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.AgentID, b.AgentID))
	})
	return all
}

func (t *Team) get(id team.AgentID) *Member {
	m := t.Members[id]
	if m == nil {
		m = &Member{ID: id, Idle: true}
		t.Members[id] = m
	}
	return m
}

// record applies the record of a member.
func (t *Team) record(m *Member, r team.Member) {
	m.Role, m.Colour, m.Person, m.State, m.Incarnation = cmp.Or(r.Role, m.Role), r.Color, r.Backend == team.Person, r.State, r.Incarnation
}

// joins gives a member its place behind all others.
func (t *Team) joins(m *Member) {
	t.joined++
	m.Joined = t.joined
}

// leaves removes a member from the team, if left.
func (m *Member) leaves(left bool) {
	if left {
		m.Here, m.Joined, m.Lost, m.Task, m.Call, m.Idle = false, 0, false, "", nil, true
	}
}

// edit returns a member for a change, after keeping its state before.
func (t *Team) edit(id team.AgentID) *Member {
	m := t.get(id)
	if _, known := t.before[id]; !known {
		t.before[id] = *m
	}
	return m
}

// hold applies the holder of a task.
func (t *Team) hold(task team.Task, at time.Time) {
	for id, m := range t.Members {
		if m.Task == task.ID && (task.Status != team.InProgress || task.Assignee != id) {
			m = t.edit(id)
			m.Task, m.Since = "", at
		}
	}
	if task.Status == team.InProgress {
		m := t.edit(task.Assignee)
		if m.Task != task.ID && m.Call == nil {
			m.Since = at
		}
		m.Task, m.Idle = task.ID, false
	}
}

// changed returns the collected changes, and clears them.
func (t *Team) changed() []Change {
	for _, id := range slices.Sorted(maps.Keys(t.before)) {
		if was, now := t.before[id], *t.Members[id]; was != now {
			t.changes = append(t.changes, MemberChanged{was, now})
		}
	}
	clear(t.before)
	changes := t.changes
	t.changes = nil
	return changes
}

func (t *Team) change(c Change) { t.changes = append(t.changes, c) }
