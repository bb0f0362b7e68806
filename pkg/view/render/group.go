package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// group are facts of one kind that share a line.
type group struct {
	kind  team.EventType
	by    team.AgentID
	at    time.Time
	parts []string
}

// Flush returns the lines of the facts that were held back.
func (s *Story) Flush() []string {
	g := s.pending
	if g == nil {
		return nil
	}
	s.pending = nil
	switch g.kind {
	case team.MemberJoined:
		if len(g.parts) > 1 {
			return s.fact(g.at, "", green, "+", strings.Join(g.parts, ", ")+" joined")
		}
		return s.fact(g.at, g.by, green, "+", "joined")
	case team.MemberStopped:
		if len(g.parts) > 1 {
			return s.fact(g.at, "", plain, "-", strings.Join(g.parts, ", ")+" left")
		}
		return s.fact(g.at, g.by, plain, "-", "left")
	}
	slices.SortStableFunc(g.parts, func(a, b string) int { return cmp.Compare(numberOf(a), numberOf(b)) })
	return s.fact(g.at, g.by, plain, "+", manyTasks(g.parts))
}

// maxTasks bounds the tasks that are named of those created together; beyond it only the first is named.
const maxTasks = 5

// numberOf returns the number of the task whose id begins a part: the feed has tasks that were created together in any
// order.
func numberOf(part string) int {
	id, _, _ := strings.Cut(part, " ")
	return team.TaskID(id).Number()
}

func manyTasks(parts []string) string {
	if len(parts) <= maxTasks {
		return strings.Join(parts, "; ")
	}
	return fmt.Sprintf("%d tasks: %s; … %s", len(parts), strings.Join(parts[:maxTasks-1], "; "), parts[len(parts)-1])
}

// together holds a fact back, to be shown with others of its kind.
func (s *Story) together(e feed.Entry, by team.AgentID, part string) []string {
	var lines []string
	if g := s.pending; g != nil && (g.kind != e.Event.Event.Type || g.kind == team.TaskCreated && g.by != by) {
		lines = s.Flush()
	}
	if s.pending == nil {
		s.pending = &group{kind: e.Event.Event.Type, by: by, at: e.Time}
	}
	s.pending.parts = append(s.pending.parts, part)
	return lines
}
