package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// chartEvery is the interval of reading the shown timeline: each time takes the whole feed of the goal.
const chartEvery = 5 * time.Second

// chart is the timeline of the goal that was read last.
type chart struct {
	timeline.Timeline
	err   error     // of a later try
	known time.Time // when it was read; zero: never
	next  time.Time // when it is to be read

	drawn []string // its lines, at a width
	width int
}

// mark is a cell of a lane: a letter, since some terminals have no colours.
type mark struct {
	letter string
	style  lipgloss.Style
	about  string
}

// marks are the marks of members' activities, in the order of the legend.
var marks = []struct {
	kind timeline.Kind
	wait team.WaitFor
	mark
}{
	{timeline.Model, "", mark{"█", cyan, "model"}},
	{timeline.Tool, "", mark{"▒", green, "tool"}},
	{timeline.Wait, team.ForPerson, mark{"p", yellow, "waits for a person"}},
	{timeline.Wait, team.ForPermission, mark{"c", yellow, "for leave to call"}},
	{timeline.Wait, team.ForPlan, mark{"d", yellow, "for a decision on its plan"}},
	{timeline.Wait, team.ForAnswer, mark{"a", yellow, "for an answer"}},
	{timeline.Wait, team.ForBudget, mark{"b", yellow, "for a budget"}},
	{timeline.Wait, team.ForModel, mark{"m", red, "for its model"}},
	{timeline.Wait, team.ForMerge, mark{"g", yellow, "for the line"}},
	{timeline.Wait, team.ForJob, mark{"j", yellow, "for its work in the background"}},
	{timeline.Idle, "", mark{"·", faint, "idle"}},
	{timeline.Unknown, "", mark{"?", faint, "unknown"}},
}

func markOf(s timeline.Span) int {
	for i, m := range marks {
		if m.kind == s.Kind && m.wait == s.For {
			return i
		}
	}
	return len(marks) - 1
}

// timelineLines returns the activities of each member over time, and the holders of tasks.
func (m *model) timelineLines() []string {
	c := &m.room.chart
	var all []string
	if c.err != nil {
		all = indented(lines(team.Line(c.err), m.width-2), 1)
	}
	switch {
	case c.known.IsZero() && c.err != nil:
		return all
	case c.known.IsZero():
		return []string{faint.Render(" reading …")}
	case c.err != nil:
		all = append(all, yellow.Render(" this is as of "+span(m.now.Sub(c.known))+" ago"), "")
	}
	if c.drawn == nil || c.width != m.width {
		c.drawn, c.width = m.drawn(c.Timeline), m.width
	}
	return append(all, c.drawn...)
}

// drawn returns the lines of a timeline.
func (m *model) drawn(c timeline.Timeline) []string {
	if len(c.Lanes) == 0 {
		return []string{faint.Render(" no member has done anything for the goal yet")}
	}
	name := 5
	for _, l := range c.Lanes {
		name = max(name, len(l.AgentID))
	}
	name = min(name, max(m.width/6, 8))
	cells := m.width - name - 2
	if m.width >= oneLine {
		cells -= shareCells
	}
	all := lines(c.Sentence, m.width)
	all = append(all, "", strings.Repeat(" ", name+1)+faint.Render(axis(c.From.In(m.zone), c.To.In(m.zone), cells)))
	seen := map[int]bool{}
	for _, l := range c.Lanes {
		text := pad(render.Ink(l.Color).Render(line(string(l.AgentID))), name) + " " + lane(c, l, cells, seen)
		if m.width >= oneLine {
			text += " " + faint.Render(shares(l))
		}
		all = append(all, text)
	}
	all = append(all, legend(seen, m.width)...)
	return append(all, m.barLines(c, name, cells)...)
}

// legend explains the marks that occur.
func legend(seen map[int]bool, width int) []string {
	const noBreak = "\u00a0"
	var texts []string
	for i, k := range marks {
		if seen[i] {
			texts = append(texts, k.style.Render(k.letter)+strings.ReplaceAll(" "+k.about+" ", " ", noBreak))
		}
	}
	return strings.Split(strings.ReplaceAll(ansi.Wrap(strings.Join(texts, " "), width, ""), noBreak, " "), "\n")
}

// drawCells returns cells of these kinds; adjacent equal cells share a style. look returns the letter and the style of
// a kind; a kind below 0 is blank.
func drawCells(of []int, look func(kind int) (letter string, style lipgloss.Style)) (text string) {
	for i, j := 0, 0; i < len(of); i = j {
		for j = i; j < len(of) && of[j] == of[i]; j++ {
		}
		if of[i] < 0 {
			text += strings.Repeat(" ", j-i)
			continue
		}
		letter, style := look(of[i])
		text += style.Render(strings.Repeat(letter, j-i))
	}
	return text
}

// axis returns a line of cells cells with the time at both ends.
func axis(from, to time.Time, cells int) string {
	left, right := from.Format(time.TimeOnly), "+"+span(to.Sub(from))
	return spread(cells, left, right)
}

// place returns the cell of a time.
func place(t timeline.Timeline, at time.Time, cells int) int {
	whole := t.To.Sub(t.From)
	if whole <= 0 {
		return 0
	}
	return min(max(int(int64(cells)*int64(at.Sub(t.From))/int64(whole)), 0), cells-1)
}

// lane returns the activities of a member; each cell shows the one that took most of its time.
func lane(t timeline.Timeline, l timeline.Lane, cells int, seen map[int]bool) string {
	took := make([]map[int]time.Duration, cells)
	each := t.To.Sub(t.From) / time.Duration(cells)
	for _, s := range l.Spans {
		for i := place(t, s.From, cells); i <= place(t, s.To, cells); i++ {
			from, to := t.From.Add(time.Duration(i)*each), t.From.Add(time.Duration(i+1)*each)
			if s.From.After(from) {
				from = s.From
			}
			if s.To.Before(to) {
				to = s.To
			}
			if took[i] == nil {
				took[i] = map[int]time.Duration{}
			}
			took[i][markOf(s)] += max(to.Sub(from), 1)
		}
	}
	best := slices.Repeat([]int{-1}, cells)
	for c, of := range took {
		for i := range marks {
			if of[i] > 0 && (best[c] < 0 || of[i] > of[best[c]]) {
				best[c] = i
			}
		}
		if best[c] >= 0 {
			seen[best[c]] = true
		}
	}
	return drawCells(best, func(i int) (string, lipgloss.Style) { return marks[i].letter, marks[i].style })
}

// shareCells is the width of shares, with a space before it.
const shareCells = 41

// shares returns the shares of a member's activities.
func shares(l timeline.Lane) string {
	var whole float64
	for _, s := range l.Seconds {
		whole += s
	}
	text := ""
	for _, k := range []timeline.Kind{timeline.Model, timeline.Tool, timeline.Wait, timeline.Idle} {
		if whole > 0 {
			text += fmt.Sprintf("%s %3.0f%% ", k, 100*l.Seconds[k]/whole)
		}
	}
	return text
}

// barLines returns the tasks over time, with a star on the critical path.
func (m *model) barLines(t timeline.Timeline, name, cells int) []string {
	if len(t.Tasks) == 0 {
		return nil
	}
	after := map[team.TaskID][]team.TaskID{}
	for _, e := range t.Edges {
		after[e.To] = append(after[e.To], e.From)
	}
	all := []string{"", faint.Render(fit(m.width, "  ", part{"tasks", 0}, part{"* critical path: had it been shorter, the goal had ended sooner", 1}))}
	byTask := slices.Clone(t.Tasks)
	slices.SortStableFunc(byTask, func(a, b timeline.Bar) int { return cmp.Compare(a.Task.Number(), b.Task.Number()) })
	for i := 0; i < len(byTask); {
		id, title := byTask[i].Task, byTask[i].Title
		holds := slices.Repeat([]int{-1}, cells)
		for ; i < len(byTask) && byTask[i].Task == id; i++ {
			for c := place(t, byTask[i].From, cells); c <= place(t, byTask[i].To, cells); c++ {
				holds[c] = i
			}
		}
		row := drawCells(holds, func(i int) (string, lipgloss.Style) { return "■", render.Ink(m.room.member(byTask[i].AgentID).Color) })
		star := " "
		if slices.ContainsFunc(t.Critical, func(s timeline.Stage) bool { return s.Task == id }) {
			star = bold.Render("*")
		}
		text := line(title)
		if len(after[id]) > 0 {
			text += " (after " + strings.Join(team.Strings(after[id]...), ", ") + ")"
		}
		head := pad(star+string(id), name)
		if m.width >= oneLine {
			all = append(all, head+" "+row+" "+faint.Render(ansi.Truncate(text, shareCells-1, "…")))
			continue
		}
		all = append(all, head+" "+row, strings.Repeat(" ", name+1)+faint.Render(text))
	}
	return all
}

// charts reports whether the timeline is to be read: it is shown and old.
func (m *model) charts() bool {
	r := m.room
	if r == nil || m.page().kind != timelinePage || m.now.Before(r.chart.next) {
		return false
	}
	r.chart.next = m.now.Add(time.Hour) // until it has come
	return true
}

// charted stores the timeline; reading it took that long. After an error the last one stays.
func (r *room) charted(t timeline.Timeline, err error, now time.Time, took time.Duration) {
	if err != nil {
		r.chart.err, r.chart.next = err, now.Add(chartEvery)
		return
	}
	r.chart = chart{Timeline: t, known: now, next: now.Add(max(chartEvery, 20*took))}
}
