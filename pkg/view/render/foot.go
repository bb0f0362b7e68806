package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/team"
)

// Foot returns the state of the team at a moment, in one line of at most width cells: tasks of the goal that are done
// and all, the work of each member and its duration, tokens, and the time since the beginning. If everything else fits,
// it adds the holders' names of their work, and members that wait for a model. In a story of one member it is that
// member's work, or "" for none. now is by the clock of the entries' times.
func (s *Story) Foot(now, begun time.Time, width int) string {
	if s.o.Only != "" {
		return s.footOfOne(now, width)
	}
	done, all := 0, 0
	for _, t := range s.team.Tasks {
		if t.Earlier || t.Status == team.Cancelled {
			continue
		}
		all++
		if t.Status == team.Completed {
			done++
		}
	}
	first := fmt.Sprintf("%d/%d done", done, all)
	last := clock(now.Sub(begun))
	if s.team.Tokens > 0 {
		last = Amount(s.team.Tokens) + " tok · " + last
	}
	const between = " · "
	room := width - ansi.StringWidth(first+between+last)
	if room < 0 {
		return faint.Render(ansi.Truncate(fmt.Sprintf("%d/%d %s", done, all, clock(now.Sub(begun))), width, ""))
	}
	plain, painted := first, faint.Render(first)
	works := s.works(now)
	for _, w := range works {
		room -= ansi.StringWidth(between + Printable(s.name(w.who)) + " " + w.what)
	}
	room = fill(works, room, func(w work) string { return w.form })
	fill(works, room, func(w work) string { return w.waits })
	for i, w := range works {
		text := Printable(s.name(w.who)) + " " + w.what
		more := ""
		if rest := len(works) - i - 1; rest > 0 {
			more = fmt.Sprintf("%s+%d", between, rest)
		}
		if ansi.StringWidth(plain+between+text+more+between+last) > width {
			if left := fmt.Sprintf("%s+%d", between, len(works)-i); i > 0 && ansi.StringWidth(plain+left+between+last) <= width {
				painted += faint.Render(left)
			}
			break
		}
		plain += between + text
		painted += faint.Render(between) + s.paintName(w.who, Printable(s.name(w.who))) + " " + w.ink().Render(w.what)
	}
	return painted + faint.Render(between+last)
}

// footOfOne returns the foot of a story of one member.
func (s *Story) footOfOne(now time.Time, width int) string {
	for _, w := range s.works(now) {
		if w.who == s.o.Only {
			return w.ink().Render(ansi.Truncate(w.task+w.form+w.what[len(w.task):], width, "…"))
		}
	}
	return ""
}

// fill inserts more behind the tasks where it fits, and returns the room that is left.
func fill(works []work, room int, more func(work) string) int {
	for i, w := range works {
		text := more(w)
		if n := ansi.StringWidth(text); n > 0 && n <= room {
			works[i].what, works[i].task = w.task+text+w.what[len(w.task):], w.task+text
			room -= n
		}
	}
	return room
}

// work is the work of one member.
type work struct {
	who   team.AgentID
	what  string
	task  string // what begins with, if there is a form
	form  string // how the task's holder calls its work, which may follow the task; "" if it does not say
	waits string // what it waits for, which may follow that
	since time.Time
	bad   bool
}

func (w work) ink() ink {
	if w.bad {
		return yellow
	}
	return faint
}

// works returns the work of each member: first those that others wait for, then those that have worked longest.
func (s *Story) works(now time.Time) (all []work) {
	for id, a := range s.team.Members {
		w := work{who: id, since: a.Since}
		task := ""
		if a.Task != "" {
			task = string(a.Task) + " "
		}
		lasts := clock(now.Sub(a.Since))
		switch {
		case a.Lost:
			w.what, w.bad = "is lost", true
		case a.Parked:
			w.what, w.bad = "waits for its model", true
		case a.Trouble != "":
			w.what, w.bad = "its model fails "+lasts, true
		case a.Asks != "" && s.team.IsPerson(a.Asks):
			w.what, w.bad = "waits for "+s.name(a.Asks), true
		case a.Person && a.Task != "":
			w.what, w.bad = "has "+task+lasts, true
		case a.Idle && a.Task == "" || a.Person || !a.Here:
			continue
		case a.Idle:
			w.what = task + "waits " + lasts
		case a.Call != nil:
			w.what, w.task, w.form = task+a.Call.Tool+" "+lasts, task, s.form(a.Task)
		default:
			w.what, w.task, w.form, w.waits = task+lasts, task, s.form(a.Task), "its model "
		}
		w.what = Printable(w.what) // a model may call a tool by any name
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b work) int {
		if a.bad != b.bad {
			if a.bad {
				return -1
			}
			return 1
		}
		return cmp.Or(a.since.Compare(b.since), strings.Compare(string(a.who), string(b.who)))
	})
	return all
}

// form returns the holder's name of its work, as it stands after the task's id.
func (s *Story) form(id team.TaskID) string {
	t := s.team.Tasks[id]
	if t == nil {
		return ""
	}
	if doing := Printable(t.Doing()); doing != "" {
		return "(" + doing + ") "
	}
	return ""
}

// clock returns a time in whole seconds.
func clock(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return span(d)
}
