package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// work is the course of a task in a timeline.
type work struct {
	id       team.TaskID
	agent    team.AgentID // who held it last
	from, to time.Time    // of the first and the last hold
	made     time.Time
	deps     []team.TaskID
}

// critical returns the path of tasks that ended last: the step before a task is the dependency that was completed last, or, if
// the task was ready earlier, the task with which its member was busy until then.
func (f *Fold) critical(bars []Bar) []Stage {
	tasks := map[team.TaskID]*work{}
	for _, b := range bars {
		w := tasks[b.Task]
		if w == nil {
			w = &work{id: b.Task, from: b.From}
			if t := f.team.Tasks[b.Task]; t != nil {
				w.made, w.deps = t.CreatedAt, t.Dependencies
			}
			tasks[b.Task] = w
		}
		w.agent, w.to = b.AgentID, b.To
	}
	var last *work
	for _, w := range tasks {
		if last == nil || cmp.Or(w.to.Compare(last.to), cmp.Compare(w.id, last.id)) > 0 {
			last = w
		}
	}
	path := []Stage{}
	for met := map[team.TaskID]bool{}; last != nil && !met[last.id]; {
		met[last.id] = true
		step := Stage{Task: last.id, AgentID: last.agent, From: last.from, To: last.to}
		ready, before := last.made, (*work)(nil)
		for _, d := range last.deps {
			if w := tasks[d]; w != nil && !w.to.After(last.from) && (before == nil || w.to.After(before.to)) {
				before = w
			}
		}
		if before != nil {
			step.After = AfterDependency
			ready = later(ready, before.to)
		}
		if busy := busyUntil(bars, *last); busy != nil && busy.To.After(ready) {
			before, step.After = tasks[busy.Task], AfterMember
		}
		if before != nil {
			step.Lag = max(0, last.from.Sub(before.to).Seconds())
		}
		path = append(path, step)
		last = before
	}
	slices.Reverse(path)
	return path
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// busyUntil returns the hold of another task that the member of w ended last before it began w.
func busyUntil(bars []Bar, w work) (last *Bar) {
	for i, b := range bars {
		if b.Task == w.id || b.AgentID != w.agent || b.To.After(w.from) || b.From.Equal(b.To) {
			continue
		}
		if last == nil || b.To.After(last.To) {
			last = &bars[i]
		}
	}
	return last
}

// words are the reasons for waits, as parts of a sentence.
var words = map[team.WaitFor]string{
	team.ForPerson: "a person's answer", team.ForAnswer: "each other's answers", team.ForPlan: "decisions on plans", team.ForPermission: "leave for calls",
	team.ForBudget: "a budget to be raised", team.ForModel: "models that gave no answer", team.ForMerge: "the team's line", team.ForJob: "work in the background",
}

// sentence returns the longest reason for waits in the run, and whether more members would have helped.
func (t Timeline) sentence() string {
	if len(t.Tasks) == 0 {
		return "No task was begun."
	}
	waits := map[team.WaitFor]float64{}
	total := map[Kind]float64{}
	for _, l := range t.Lanes {
		for k, s := range l.Seconds {
			total[k] += s
		}
		for _, s := range l.Spans {
			if s.Kind == Wait {
				waits[s.For] += s.To.Sub(s.From).Seconds()
			}
		}
	}
	var most team.WaitFor
	for _, w := range slices.Sorted(maps.Keys(waits)) {
		if most == "" || waits[w] > waits[most] {
			most = w
		}
	}
	var parts []string
	if most == "" {
		parts = append(parts, "No member waited for anything but work")
	} else {
		parts = append(parts, fmt.Sprintf("Members waited most for %s: %s in all", words[most], took(waits[most])))
	}
	parts = append(parts, fmt.Sprintf("models took %s and tools %s", took(total[Model]), took(total[Tool])))
	members := 0
	for _, s := range t.Critical {
		if s.After == AfterMember {
			members++
		}
	}
	text := strings.Join(parts, "; ") + "."
	switch {
	case len(t.Critical) < 2:
	case members == 0:
		text += fmt.Sprintf(" The %d tasks of the critical path each waited for the one before: more members would not have helped.", len(t.Critical))
	default:
		text += fmt.Sprintf(" Of the %d tasks of the critical path %d were ready and waited for a free member: more members would have helped.", len(t.Critical), members)
	}
	return text
}

// took returns a number of seconds as text for people.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
