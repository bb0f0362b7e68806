package screen

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// The styles of the screen. A word repeats the meaning of each style: some terminals have no colours.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	bold   = lipgloss.NewStyle().Bold(true)
	chosen = lipgloss.NewStyle().Reverse(true)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
	green  = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	cyan   = lipgloss.NewStyle().Foreground(lipgloss.Color("6"))
)

// The used parts of a text: it is laid out again for each frame.
const (
	mostOfLine = 2 << 10  // bytes of what is shown in one line
	mostOfText = 8 << 10  // of an entry of the stream
	mostOfPage = 64 << 10 // of a text that has a page to itself
)

// head returns the beginning of a text, of at most n bytes and in whole characters.
func head(s string, n int) (part string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// line returns a foreign text in one line.
func line(s string) string {
	s, cut := head(s, mostOfLine)
	if s = render.Printable(team.OneLine(s)); cut {
		s += "…"
	}
	return s
}

// lines returns a foreign text in lines of at most width cells.
func lines(s string, width int) (all []string) {
	s, cut := head(s, mostOfPage)
	for l := range strings.Lines(s) {
		l = strings.TrimRight(render.Printable(strings.ReplaceAll(l, "\t", "    ")), " ")
		all = append(all, strings.Split(ansi.Wrap(l, max(width, 1), ""), "\n")...)
	}
	if cut {
		all = append(all, faint.Render("… and more than fits here"))
	}
	return all
}

// styled returns lines in a style.
func styled(style lipgloss.Style, all []string) []string {
	for i := range all {
		all[i] = style.Render(all[i])
	}
	return all
}

// labelled returns lines behind a name of cells cells.
func labelled(name string, cells int, all []string) []string {
	if len(all) == 0 {
		return []string{name}
	}
	return append([]string{pad(name, cells) + all[0]}, indented(all[1:], cells)...)
}

// indented returns lines indented by n cells.
func indented(all []string, n int) []string {
	for i := range all {
		all[i] = strings.Repeat(" ", n) + all[i]
	}
	return all
}

// pad returns a text, which may have colours, in exactly that many cells.
func pad(s string, cells int) string {
	if cells <= 0 {
		return ""
	}
	s = ansi.Truncate(s, cells, "…")
	return s + strings.Repeat(" ", max(0, cells-ansi.StringWidth(s)))
}

// part is one of several texts of a line, with its place in the order in which parts are dropped for lack of room; 0 is
// never dropped.
type part struct {
	text string
	drop int
}

// fit joins the parts that fit into a line of width cells.
func fit(width int, between string, parts ...part) string {
	for {
		texts, last := []string{}, -1
		for i, p := range parts {
			if p.text == "" {
				continue
			}
			texts = append(texts, p.text)
			if p.drop > 0 && (last < 0 || p.drop > parts[last].drop) {
				last = i
			}
		}
		s := strings.Join(texts, between)
		if last < 0 || ansi.StringWidth(s) <= width {
			return ansi.Truncate(s, width, "…")
		}
		parts[last].text = ""
	}
}

// spread returns a line with left at its left end and right at its right end; without room it drops right.
func spread(width int, left, right string) string {
	room := width - ansi.StringWidth(left) - ansi.StringWidth(right)
	if right == "" || room < 1 {
		return ansi.Truncate(left, width, "…")
	}
	return left + strings.Repeat(" ", room) + right
}

// span returns a duration in at most two units. Above a minute it counts minutes, so that it is seldom drawn.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
