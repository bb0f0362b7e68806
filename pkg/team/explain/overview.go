package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Overview is the state of a team, in numbers.
type Overview struct {
	Members   map[team.MemberState]int // all but the leader, by state
	Running   int                      // tasks in progress
	Claimable int                      // pending tasks that a member could take
	Blocked   int                      // pending tasks that wait for others
	Failed    int
	Plans     int // plans that wait for the leader's decision
	Questions int // members that wait for a person
	Unread    int // messages that members have yet to read
	Away      []Away
}

// Away is a member of an earlier goal that has left; spawned by its name, it returns with its conversation.
type Away struct {
	Name team.AgentID
	Role string
	Last team.Task // that it completed last; the zero Task: none
}

func (a Away) String() string {
	s := fmt.Sprintf("%s (%s", a.Name, a.Role)
	if a.Last.ID != "" {
		s += fmt.Sprintf(", last did %s: %s", a.Last.ID, team.Clean(a.Last.Title, 60))
	}
	return s + ")"
}

// maxAway bounds how many of the away members are named.
const maxAway = 8

// String returns one line. It leaves out counts of zero, except those of members and open tasks.
func (o Overview) String() string {
	tasks := parts(part{o.Running, "in progress"}, part{o.Claimable, "claimable"}, part{o.Blocked, "blocked"})
	s := fmt.Sprintf("Teammates: %s. Open tasks: %s.", orNone(ByName(o.Members)), orNone(tasks))
	if more := parts(part{o.Failed, plural(o.Failed, "failed task")}, part{o.Plans, "waiting for your decision on a plan"}, part{o.Questions, "waiting for a person"}, part{o.Unread, plural(o.Unread, "unread message")}); more != nil {
		s += " Also: " + strings.Join(more, ", ") + "."
	}
	if len(o.Away) > 0 {
		names := make([]string, len(o.Away))
		for i, a := range o.Away {
			names[i] = a.String()
		}
		s += " Of earlier goals, to be spawned again by name: " + team.Some(names, maxAway) + "."
	}
	return s
}

// part is a number with its unit.
type part struct {
	n    int
	what string
}

// parts returns the numbers above zero, in words.
func parts(all ...part) (texts []string) {
	for _, p := range all {
		if p.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return texts
}

// ByName returns numbers by name in words, such as "2 idle" and "1 running", sorted by name and without
// zeros.
func ByName[S ~string](by map[S]int) (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, parts(part{by[name], string(name)})...)
	}
	return texts
}

// Counted returns a number of things in words, such as "1 task" and "2 tasks".
func Counted(n int, thing string) string { return fmt.Sprintf("%d %s", n, plural(n, thing)) }

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

func orNone(texts []string) string {
	if texts == nil {
		return "none"
	}
	return strings.Join(texts, ", ")
}
