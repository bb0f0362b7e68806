package watchdog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// snapshot is the state of the team at one moment: the bucket as the index has it, with heartbeats
// and counts.
type snapshot struct {
	index.Snapshot
	Beats  map[team.AgentID]team.Heartbeat // the last of each member with a process
	Unread int                             // messages that wake their reader, stored and not in its journal
	Missed map[team.AgentID]bool           // members that could not be brought back repeatedly, which the leader knows
	Done   []team.Task                     // completed since the last notice to the leader, for the next one
	Lapsed map[team.TaskID]bool            // reservations that have expired
}

// Activity returns why the team is not idle in this snapshot, or "".
func (l snapshot) Activity() string {
	if l.Team.Status != team.Active || l.Team.Goal == "" {
		return "no goal"
	}
	waiting := map[team.AgentID]bool{}
	hands := false                  // a member whose role does more than look could take a task without a role
	idle := map[string]bool{}       // roles of members that would claim
	free := map[team.AgentID]bool{} // those members
	for _, m := range l.Members {
		switch {
		case m.State == team.Created:
			return "a spawn is under way"
		case m.State == team.Lost && m.Absent(l.Team.Policies) == "" && !l.Missed[m.AgentID]:
			return string(m.AgentID) + " is being brought back"
		case m.Backend == team.Person:
			waiting[m.AgentID] = true // a person's task has no time limit
			continue
		case !m.HasProcess():
			continue
		}
		b, ok := l.Beats[m.AgentID]
		role := l.Team.Roles[m.Role]
		hands = hands || !role.ReadsOnly() && role.Claims() && team.Able(m, b) && !slices.Contains(l.Deaf, m.AgentID)
		switch {
		case !ok || b.Incarnation != m.Incarnation || !b.Quiet(), (b.Parked() || b.State == team.WaitingBudget) && m.AgentID == team.Leader:
			return string(m.AgentID) + " is not idle"
		case b.State.Waits(), b.WaitsForPerson():
			waiting[m.AgentID] = true
		case m.AgentID != team.Leader && !b.Parked() && !slices.Contains(l.Deaf, m.AgentID):
			idle[m.Role], free[m.AgentID] = true, true
		}
	}
	for _, t := range l.Running {
		if !waiting[t.Assignee] {
			return string(t.ID) + " is in progress"
		}
	}
	for role := range idle {
		if !l.Team.Roles[role].Claims() {
			continue
		}
		any := l.Claimable[""] // includes tasks from which members rest: they are offered in minutes at most
		if hands && l.Team.Roles[role].ReadsOnly() {
			any = 0
		}
		if l.Claimable[role]+any > 0 {
			return "a task is about to be claimed"
		}
	}
	for _, r := range l.Reserved {
		if r.Claimable && (r.Lapses || free[r.ReservedFor]) { // a reservation that lapses ends in minutes at most
			return string(r.ID) + " is about to be claimed by " + string(r.ReservedFor)
		}
	}
	if l.Unread > 0 {
		return "there is unread mail"
	}
	return ""
}

// allQuiet reports whether no member moved between two snapshots and nothing would happen without
// news. One snapshot is not enough: a message may be between two agents.
func allQuiet(before, now snapshot) bool {
	return before.Activity() == "" && now.Activity() == "" && before.Seq == now.Seq &&
		len(before.Beats) == len(now.Beats) && samePeople(before, now)
}

func samePeople(before, now snapshot) bool {
	for a, b := range now.Beats {
		if !before.Beats[a].SameAs(b) {
			return false
		}
	}
	return true
}

// episode identifies a stretch of quiet by all facts whose change ends it: teammates, the board, and
// mail to the leader. The leader's actions are not in it: mail to a teammate moves that teammate,
// and a message to a person moves no member.
func (l snapshot) episode() string {
	var b strings.Builder
	for _, m := range l.Members {
		if m.AgentID != team.Leader {
			beat := l.Beats[m.AgentID]
			if l.Missed[m.AgentID] { // each try to bring it back writes its record
				m.Revision = 0
			}
			fmt.Fprintf(&b, "%s %d %d %d;", m.AgentID, m.Revision, beat.Turn, beat.HeardSeq)
		}
	}
	fmt.Fprintf(&b, "board %d, goal %d, heard %d", l.Moved, l.Team.GoalNumber, l.Beats[team.Leader].HeardSeq)
	return b.String()
}

// knowing is the leader's knowledge of the team, as spells, when it made a turn. A leader that
// waits for a person needs no notice of facts that it knew when it asked.
type knowing struct {
	turn  uint64 // the leader's last seen turn
	runs  bool   // whether it was last seen running
	begun string // the spell when it began on the next turn
	of    string // the spell when it began on that turn
}

// see takes in a heartbeat of the leader. The zero knowing knows nothing.
func (k *knowing) see(leader team.Heartbeat, spell string) {
	runs := leader.State == team.Running
	switch {
	case leader.Turn != k.turn:
		k.of, k.begun = k.begun, spell
	case runs && !k.runs:
		k.begun = spell
	}
	k.turn, k.runs = leader.Turn, runs
}

// deserted reports whether the leader is alone with nothing to do.
func (l snapshot) deserted() bool {
	return !slices.ContainsFunc(l.Members, func(m team.Member) bool { return m.AgentID != team.Leader && m.State != team.Stopped }) &&
		!l.open()
}

// stands reports whether the work waits for a person: a person has a task or a reserved one, was
// asked, or must repair the model's endpoint of a member that could do the work.
func (l snapshot) stands() bool {
	return slices.ContainsFunc(l.Members, func(m team.Member) bool {
		b := l.Beats[m.AgentID]
		return m.HasProcess() && (b.State == team.WaitingUser && l.answers(b.Awaits) || b.State == team.WaitingBudget || b.State == team.WaitingApproval && b.WaitsForPerson() || b.JobAsks() || b.Parked() && l.open()) ||
			slices.ContainsFunc(l.Running, func(t team.Task) bool { return l.atPerson(m, t) }) ||
			slices.ContainsFunc(l.Reserved, func(r index.Reserved) bool { return r.Claimable && l.forPerson(m, r.Task) })
	})
}

// answers reports whether the person a, for whom a member waits, may still answer: the user at any
// time, a person with a seat until it is stopped.
func (l snapshot) answers(a team.AgentID) bool {
	return a == "" || a == team.UserAgent || slices.ContainsFunc(l.Members, func(m team.Member) bool {
		return m.AgentID == a && m.Backend == team.Person && m.State != team.Stopped
	})
}

// atPerson reports whether the member is a person who holds the task.
func (l snapshot) atPerson(m team.Member, t team.Task) bool {
	return m.Backend == team.Person && m.State != team.Stopped && t.Assignee == m.AgentID
}

// forPerson reports whether the member is a person for whom the task is reserved.
func (l snapshot) forPerson(m team.Member, t team.Task) bool {
	return m.Backend == team.Person && m.State != team.Stopped && t.ReservedFor == m.AgentID
}

func (l snapshot) open() bool { return l.Tasks[team.Pending]+l.Tasks[team.InProgress] > 0 }

// situation returns the facts that decide which member takes a pending task.
func (l snapshot) situation() explain.Situation {
	s := explain.Situation{Status: l.Team.Status, Led: true, Roles: l.Team.Roles}
	for _, m := range l.Members {
		standing := explain.Standing{Member: m, State: m.State}
		if m.HasProcess() {
			standing.State = team.Lost
			if b, ok := l.Beats[m.AgentID]; ok && b.Incarnation == m.Incarnation {
				standing.State, standing.Task = b.State, b.Task
			}
			if slices.Contains(l.Deaf, m.AgentID) {
				standing.State = team.Stalled
			}
		}
		s.Members = append(s.Members, standing)
	}
	return s
}

// UnreachableReservation holds pending tasks that are reserved for a member that will not come.
type UnreachableReservation struct {
	Member team.AgentID
	Why    string      // why the member will not come
	Tasks  []team.Task // in order of their last writes
}

// UnreachableReservations returns the reservations to end, by members.
func (l snapshot) UnreachableReservations() (all []UnreachableReservation) {
	for _, r := range l.Reserved {
		why := l.unreachable(r.Task)
		if why == "" {
			continue
		}
		at := slices.IndexFunc(all, func(f UnreachableReservation) bool { return f.Member == r.ReservedFor && f.Why == why })
		if at < 0 {
			at, all = len(all), append(all, UnreachableReservation{Member: r.ReservedFor, Why: why})
		}
		all[at].Tasks = append(all[at].Tasks, r.Task)
	}
	for _, f := range all {
		slices.SortFunc(f.Tasks, func(a, b team.Task) int { return cmp.Compare(a.Revision, b.Revision) })
	}
	return all
}

// unreachable returns why the member for whom t is reserved will not come to it; "" if it may.
func (l snapshot) unreachable(t team.Task) string {
	i := slices.IndexFunc(l.Members, func(m team.Member) bool { return m.AgentID == t.ReservedFor })
	if i < 0 {
		return "is no member"
	}
	m := l.Members[i]
	switch why := m.Absent(l.Team.Policies); {
	case why != "":
		return why
	case t.Lapses && t.UpdatedBy == team.Watchdog && m.State == team.Lost && m.LastError != "":
		return "is lost, and could not be brought back"
	case l.Lapsed[t.ID]:
		return "has not come back to its task within " + span(reserveFor)
	}
	return ""
}

const (
	maxCrashes = 5  // of a member in a row
	maxLosses  = 10 // the same, if its process had signed off each time
)

// lossesOf returns how often in a row m was lost soon after it had joined, including now; after a
// life of [roster.Steady], by its own clock, the count begins again. Losses without m's fault do
// not count: no process became it, it could not continue and recorded why, or its cluster has
// ended.
func lossesOf(m team.Member, cluster string) int {
	if m.PID == 0 || m.State == team.Lost && m.LastError != "" || team.Foreign(m.Cluster, cluster) {
		return m.Losses
	}
	return m.Losses + 1
}

// hopeless returns why m, which is lost, is not brought back any more; "" if it is. A process that
// signed off may have been moved elsewhere, so that is allowed more often.
func hopeless(m team.Member) string {
	limit := maxCrashes
	if m.State == team.Lost {
		limit = maxLosses
	}
	if m.Losses < limit {
		return ""
	}
	return fmt.Sprintf("its process was lost %d times in a row, each time within %s", m.Losses, span(roster.Steady))
}

// failures counts the incarnations of a member that ended by an error, or that no process became,
// in quick succession.
type failures struct {
	n        int
	last     time.Time
	notified bool // the leader was notified
}

const (
	firstBackoff = time.Second      // before a member that has failed is brought back; doubles
	maxBackoff   = 30 * time.Second // at most
	forgotten    = 2 * time.Minute  // a member that worked for this long had come back well
	notifyAfter  = 3                // failures in a row until the leader is notified
)

// after returns f with the loss of m, if m ended by an error, as its record states.
func (f failures) after(m team.Member, now time.Time) failures {
	if m.LastError == "" {
		return f
	}
	if now.Sub(f.last) > forgotten {
		f = failures{}
	}
	return failures{f.n + 1, now, f.notified}
}

// wait returns the backoff before m is brought back. A silent member is replaced immediately the
// first time, and later each time in a row; a member that failed may fail on any host.
func (f failures) wait(m team.Member) time.Duration {
	n := f.n - 1
	if m.LastError == "" {
		n = m.Losses - 2
	}
	if n < 0 {
		return 0
	}
	return min(firstBackoff<<min(n, 10), maxBackoff)
}

// crowd returns the members that joined since the last count and exceed the limit, and the new
// count. A spawn is refused before it joins; a program that writes its own record may not ask. A
// lowered limit removes no member, and the first count accepts all (known is nil).
func crowd(t team.Team, members []team.Member, known map[team.AgentID]bool) (late []team.Member, now map[team.AgentID]bool) {
	now = map[team.AgentID]bool{}
	for _, m := range members {
		if !m.Fills(t.Policies) || m.State == team.Created && !known[m.AgentID] { // a spawn over the limit gives way
			continue
		}
		now[m.AgentID] = true
		if known != nil && !known[m.AgentID] {
			late = append(late, m)
		}
	}
	slices.SortFunc(late, func(a, b team.Member) int { return cmp.Compare(a.Revision, b.Revision) })
	late = late[max(0, len(late)-max(0, len(now)-t.MaxTeammates)):]
	for _, m := range late {
		delete(now, m.AgentID)
	}
	return late, now
}

// absence is a member with a process without heartbeats for the lease.
type absence struct {
	Member    team.Member
	For       time.Duration
	Restarted bool // the NATS server was restarted since its last heartbeat
}

// silentOf returns the members without heartbeats for the lease. If that is more than half of those
// with a process (including self, the leader), the watchdog is more likely cut off than all of them
// dead, and only silences of three leases are returned, and those since before a restart of the
// server: it may have failed with all of them, and live members reconnect within seconds. held
// reports whether that left some out.
func silentOf(members []team.Member, silence func(team.Member) (d time.Duration, restarted bool), lease time.Duration) (lost []absence, held bool) {
	processes := 0
	for _, m := range members {
		if !m.HasProcess() {
			continue
		}
		processes++
		if d, restarted := silence(m); m.AgentID != team.Leader && d >= lease {
			lost = append(lost, absence{m, d, restarted})
		}
	}
	if 2*len(lost) <= processes {
		return lost, false
	}
	silent := len(lost)
	lost = slices.DeleteFunc(lost, func(s absence) bool { return s.For < 3*lease && !s.Restarted })
	return lost, len(lost) < silent
}

// unjudged returns the members of a snapshot; those with unreadable records get the state
// [team.Unreadable]: no member is judged by outdated data.
func unjudged(l index.Snapshot) []team.Member {
	bad := map[string]bool{}
	for _, q := range l.Quarantined {
		bad[q.Key] = true
	}
	members := slices.Clone(l.Members)
	for i, m := range members {
		if bad[subject.KeyMember(m.AgentID)] {
			members[i].State = team.Unreadable
		}
	}
	return members
}

// orphansOf returns the tasks in progress whose holder is no longer the member that claimed:
// stopped, removed, or superseded by a later incarnation that may still adopt the task. A holder
// with an unreadable record loses nothing by that.
func orphansOf(members []team.Member, running []team.Task) (orphans []team.Task) {
	byName := make(map[team.AgentID]team.Member, len(members))
	for _, m := range members {
		byName[m.AgentID] = m
	}
	for _, t := range running {
		m, ok := byName[t.Assignee]
		if m.State == team.Unreadable {
			continue
		}
		if !ok || m.State == team.Stopped || m.State == team.Lost || m.Incarnation != t.Incarnation {
			orphans = append(orphans, t)
		}
	}
	return orphans
}
