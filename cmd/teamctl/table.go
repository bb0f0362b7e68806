package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/view/render"
)

// column is a table's column, and how it adapts to a narrow terminal.
type column struct {
	head string
	cut  bool // its texts may be cut, down to leastCut cells
	drop int  // if that is not enough, the column with the highest drop goes; 0 stays
	wide bool // only with -o wide
	gone bool // left out
}

const (
	leastCut = 10
	gap      = 2 // cells between two columns
)

// table is printed with columns aligned by the cells of their texts on a terminal, where a Chinese character
// takes two. Texts may contain colours.
type table struct {
	wide    bool
	columns []column
	rows    [][]string // of as many texts as there are columns
}

func (t *table) add(texts ...string) { t.rows = append(t.rows, texts) }

// write prints the table within width cells; 0 is no limit.
func (t table) write(w io.Writer, width int) {
	widths := t.fit(width)
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = faint.Render(c.head)
	}
	for _, row := range append([][]string{heads}, t.rows...) {
		var line strings.Builder
		for i, text := range row {
			if widths[i] == 0 {
				continue
			}
			text = ansi.Truncate(text, widths[i], "…")
			line.WriteString(text + strings.Repeat(" ", widths[i]-lipgloss.Width(text)+gap))
		}
		s := strings.TrimRight(line.String(), " ")
		if width > 0 {
			s = ansi.Truncate(s, width, "…")
		}
		fmt.Fprintln(w, s)
	}
}

// fit returns the width of each column; 0 for one that is omitted.
func (t table) fit(limit int) []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		if c.gone || c.wide && !t.wide {
			continue
		}
		widths[i] = lipgloss.Width(c.head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], lipgloss.Width(row[i]))
		}
	}
	for limit > 0 {
		total, widest, last := -gap, -1, -1
		for i, c := range t.columns {
			if widths[i] == 0 {
				continue
			}
			total += widths[i] + gap
			if c.cut && widths[i] > leastCut && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
			if c.drop > 0 && (last < 0 || c.drop > t.columns[last].drop) {
				last = i
			}
		}
		switch {
		case total <= limit:
			return widths
		case widest >= 0:
			widths[widest]--
		case last >= 0: // fitted again, so that the others need not be cut for its sake
			t.columns = slices.Clone(t.columns)
			t.columns[last].gone = true
			return t.fit(limit)
		default:
			return widths // each line is cut as a whole
		}
	}
	return widths
}

// printTable prints a table for people.
func (a *app) printTable(t table) {
	t.wide = a.output == asWide
	t.write(a.screen(), a.width())
}

// screen returns stdout for people.
func (a *app) screen() io.Writer { return colours(a.out) }

// width returns how many cells a line of stdout may take; 0 is no limit.
func (a *app) width() int { return widthOf(a.out) }

// field is one line of a record: a name and a text, which may have several lines.
type field struct{ name, text string }

// writeFields prints a record without its empty fields.
func writeFields(w io.Writer, fields []field) {
	longest := 0
	for _, f := range fields {
		if f.text != "" {
			longest = max(longest, lipgloss.Width(f.name))
		}
	}
	indent := strings.Repeat(" ", longest+gap)
	for _, f := range fields {
		if f.text == "" {
			continue
		}
		name := faint.Render(f.name) + indent[lipgloss.Width(f.name):]
		lines := strings.Split(strings.TrimRight(f.text, "\n"), "\n")
		for i, line := range lines {
			lines[i] = printable(line)
		}
		fmt.Fprintln(w, name+strings.Join(lines, "\n"+indent))
	}
}

// age formats the time since t, in one unit.
func age(t time.Time) string {
	switch d := time.Since(t); {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// moment formats a time for people; "" for nil.
func moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

var faint = lipgloss.NewStyle().Faint(true)

func ink(colour string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(colour)) }

// paint colours a task's status or a member's state.
func paint(status string) string { return render.Paint(status, status) }
