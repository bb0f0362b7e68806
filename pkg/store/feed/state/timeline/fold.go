package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/team"
)

// Fold makes a Timeline of the entries of a goal. It is not safe for concurrent use.
type Fold struct {
	from      time.Time
	now       time.Time // of the newest entry
	goal      int
	hasBranch bool
	counts    func(team.TaskID) bool // whether a task is of the goal
	team      *state.Team
	lanes     map[team.AgentID]*lane
	bars      []Bar
	held      map[team.TaskID]int // the open bar of a task
	series    []Count
	holes     bool
	full      bool // members have no lane, since there were mostLanes before
}

// mostLanes bounds the lanes of a timeline: a team may have had any number of members, and a writer to its log can name any
// agents.
const mostLanes = team.MostTeammates

// lane is a lane while it grows.
type lane struct {
	Lane
	order int  // of its beginning, among the lanes
	now   Span // that is open; of kind "" if the member is not in the team
	lost  bool // entries are missing since the last one of the member
	jobs  int  // subagents of the member that run
}

// Start is the state of a team at the beginning of a timeline.
type Start struct {
	Goal      int
	From      time.Time
	HasBranch bool                   // completed work is merged into the integration branch
	Members   []team.Member          // as they stood then
	Tasks     []team.Task            // as they stood then
	Counts    func(team.TaskID) bool // whether a task is of the goal; nil: all are
}

// New returns the fold of a goal before its first entry.
func New(s Start) *Fold {
	f := &Fold{from: s.From, now: s.From, goal: s.Goal, hasBranch: s.HasBranch, counts: s.Counts, team: state.New(),
		lanes: map[team.AgentID]*lane{}, held: map[team.TaskID]int{}}
	if f.counts == nil {
		f.counts = func(team.TaskID) bool { return true }
	}
	f.team.KnowMembers(s.Members)
	f.team.KnowTasks(s.Tasks, nil)
	for _, m := range s.Members {
		f.stand(m.AgentID, s.From)
	}
	for _, t := range s.Tasks {
		if t.Status == team.InProgress {
			f.hold(t, s.From)
		}
	}
	f.count(s.From)
	return f
}

// Apply applies the next entry.
func (f *Fold) Apply(e feed.Entry) {
	f.now = later(f.now, e.Time) // a late entry shows the present state
	at := f.now
	if feed.IsReset(e.Event) {
		f.holes = true
		for _, l := range f.lanes {
			l.jobs = 0 // their ends may be among the missing entries
			if l.now.Kind != "" {
				l.lost = true
				l.turn(Span{Kind: Unknown}, at)
			}
		}
		return
	}
	touched := map[team.AgentID]bool{e.AgentID: true}
	f.subagent(e)
	for _, c := range f.team.Apply(e) {
		switch c := c.(type) {
		case state.MemberChanged:
			touched[c.After.ID] = true
		case state.PlanChanged:
			touched[c.AgentID] = true
		case state.TaskChanged:
			f.task(c, at)
		}
	}
	if l := f.lanes[e.AgentID]; l != nil {
		l.lost = false
	}
	for _, a := range slices.Sorted(maps.Keys(touched)) {
		f.stand(a.Owner(), at)
	}
}

// subagent applies the beginning or the end of a subagent's run.
func (f *Fold) subagent(e feed.Entry) {
	l := f.lanes[e.AgentID.Owner()]
	if l == nil || l.AgentID == e.AgentID {
		return
	}
	switch e.Event.Event.Type {
	case team.RunStarted:
		l.jobs++
	case team.RunFinished, team.RunError:
		l.jobs = max(0, l.jobs-1)
	}
}

// stand updates the lane of a member from its state, since a time.
func (f *Fold) stand(a team.AgentID, at time.Time) {
	m := f.team.Member(a)
	l := f.lanes[a]
	if l == nil {
		if !present(m) || m.Person {
			return
		}
		if f.full = len(f.lanes) == mostLanes; f.full {
			return
		}
		l = &lane{Lane: Lane{AgentID: a, Spans: []Span{}, Seconds: map[Kind]float64{}}, order: len(f.lanes)}
		f.lanes[a] = l
	}
	if !present(m) { // its subagents end with it, without an entry
		l.jobs = 0
	}
	l.Role, l.Color = cmp.Or(m.Role, l.Role), cmp.Or(m.Colour, l.Color)
	if !l.lost {
		l.turn(f.spanOf(m, l.jobs), at)
	}
}

// present reports whether a member is in the team; a member that acts is, also if its joining was not seen.
func present(m state.Member) bool { return m.Here && !m.Lost || m.Run != "" }

// spanOf returns the present activity of a member with jobs running subagents. Its kind is "" if the member is not in the team.
func (f *Fold) spanOf(m state.Member, jobs int) Span {
	if !present(m) {
		return Span{}
	}
	s := Span{Kind: Wait, Task: m.Task}
	switch s.For = f.waitOf(m, jobs); {
	case s.For != "":
		if m.Call != nil {
			s.Tool = m.Call.Tool
		}
	case m.Call != nil:
		s.Kind, s.Tool = Tool, m.Call.Tool
	case m.Run == "":
		s.Kind = Idle
	default:
		s.Kind = Model
	}
	return s
}

// waitOf returns the reason for which a member waits; "" if it does not wait.
func (f *Fold) waitOf(m state.Member, jobs int) team.WaitFor {
	rests := m.Run == ""
	switch {
	case m.Parked, m.Trouble != "" && m.Call == nil:
		return team.ForModel
	case f.asked(m.ID, false) && (rests || m.Call != nil):
		return team.ForPermission
	case f.asked(m.ID, true) && rests:
		return team.ForPlan
	case m.Asks != "" && rests && f.team.IsPerson(m.Asks):
		return team.ForPerson
	case m.Asks != "" && rests && (m.Task != "" || m.ID == team.Leader): // else it takes the next task meanwhile
		return team.ForAnswer
	case m.Task != "" && rests && jobs > 0:
		return team.ForJob
	case m.Call != nil && f.hasBranch && completes(m.Call):
		return team.ForMerge
	}
	return ""
}

// asked reports whether a plan of the member, or a call, waits for a decision.
func (f *Fold) asked(a team.AgentID, plan bool) bool {
	for _, p := range f.team.Plans {
		if p.AgentID == a && p.IsPlan() == plan && p.Kind != team.OfRespawn {
			return true
		}
	}
	return false
}

// completes reports whether a call completes a task, which in a team with an integration branch lasts until the merge.
func completes(c *state.Call) bool {
	var args struct {
		Status team.TaskStatus `json:"status"`
	}
	return c.Tool == "update_task" && json.Unmarshal([]byte(c.Args), &args) == nil && args.Status == team.Completed
}

// turn ends the present span of the member, and begins the next.
func (l *lane) turn(next Span, at time.Time) {
	if l.now.like(next) {
		return
	}
	l.end(at)
	next.From = at
	l.now = next
}

// end ends the open span.
func (l *lane) end(at time.Time) {
	s := l.now
	if s.Kind == "" || !at.After(s.From) {
		return
	}
	s.To = at
	l.Seconds[s.Kind] += at.Sub(s.From).Seconds()
	if n := len(l.Spans); n > 0 && l.Spans[n-1].like(s) && l.Spans[n-1].To.Equal(s.From) {
		l.Spans[n-1].To = at
		return
	}
	s.Tool = strings.Clone(s.Tool) // which is a piece of the whole message
	l.Spans = append(l.Spans, s)
}

// task applies the new record of a task.
func (f *Fold) task(c state.TaskChanged, at time.Time) {
	t := c.After.Task
	i, open := f.held[t.ID]
	if open && (t.Status != team.InProgress || f.bars[i].AgentID != t.Assignee) {
		f.bars[i].To, f.bars[i].Status = at, t.Status
		delete(f.held, t.ID)
		open = false
	}
	if !open && t.Status == team.InProgress {
		f.hold(t, at)
	}
	if c.Before == nil || c.Before.Status != t.Status || !slices.Equal(c.Before.Dependencies, t.Dependencies) {
		f.count(at)
	}
}

func (f *Fold) hold(t team.Task, at time.Time) {
	if f.counts(t.ID) {
		f.held[t.ID] = len(f.bars)
		f.bars = append(f.bars, Bar{Task: t.ID, Title: t.Title, AgentID: t.Assignee, Status: team.InProgress, From: at})
	}
}

// mostCounts bounds the counts of a timeline.
const mostCounts = 200

// count adds the present number of tasks of each kind.
func (f *Fold) count(at time.Time) {
	c := Count{At: at}
	for _, t := range f.team.Tasks {
		if !f.counts(t.ID) {
			continue
		}
		switch {
		case t.Status == team.Completed:
			c.Done++
		case t.Status == team.InProgress:
			c.Running++
		case t.Status == team.Cancelled:
			c.Cancelled++
		case t.Status != team.Pending:
			c.Failed++
		case slices.ContainsFunc(t.Dependencies, func(d team.TaskID) bool { return f.team.Tasks[d] == nil || f.team.Tasks[d].Status != team.Completed }):
			c.Blocked++
		default:
			c.Ready++
		}
	}
	f.series = append(f.series, c)
}

// Timeline returns the timeline up to a time. The fold can continue.
func (f *Fold) Timeline(to time.Time) Timeline {
	to = later(f.now, to)
	t := Timeline{Goal: f.goal, Begun: f.from, Ended: to, From: f.from, To: to, Whole: !f.holes, Lanes: []Lane{}, Tasks: []Bar{}, Edges: []team.Edge{}, Counts: thin(f.series)}
	lanes := slices.SortedFunc(maps.Values(f.lanes), func(a, b *lane) int { return cmp.Compare(a.order, b.order) })
	for _, l := range lanes {
		now := *l // the open span continues in the fold
		now.Spans, now.Seconds = slices.Clone(l.Spans), maps.Clone(l.Seconds)
		now.end(to)
		t.Lanes = append(t.Lanes, now.Lane)
	}
	for _, b := range f.bars {
		if b.To.IsZero() {
			b.To = to
		}
		t.Tasks = append(t.Tasks, b)
	}
	seen := map[team.TaskID]bool{}
	for _, b := range t.Tasks {
		task := f.team.Tasks[b.Task]
		if seen[b.Task] || task == nil {
			continue
		}
		seen[b.Task] = true
		for _, d := range task.Dependencies {
			t.Edges = append(t.Edges, team.Edge{From: d, To: b.Task})
		}
	}
	t.Critical = f.critical(t.Tasks)
	t.Sentence = t.sentence()
	if f.full {
		t.Sentence += fmt.Sprintf(" Only the first %d members have a lane.", mostLanes)
	}
	return t
}

// thin drops counts until there are at most mostCounts, and keeps the last.
func thin(all []Count) []Count {
	out := []Count{}
	step := max(1, (len(all)+mostCounts-2)/(mostCounts-1))
	for i, c := range all {
		if i%step == 0 || i == len(all)-1 {
			out = append(out, c)
		}
	}
	return out
}
