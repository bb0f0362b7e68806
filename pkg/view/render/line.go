package render

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// ink is a style of text.
type ink = lipgloss.Style

var (
	plain  = lipgloss.NewStyle()
	faint  = lipgloss.NewStyle().Faint(true)
	bold   = lipgloss.NewStyle().Bold(true)
	red    = colour("1")
	green  = colour("2")
	yellow = colour("3")
	cyan   = colour("6")
)

func colour(code string) ink { return lipgloss.NewStyle().Foreground(lipgloss.Color(code)) }

// inks are the colours of members, by their names in the records.
var inks = map[string]ink{
	"cyan": cyan, "yellow": yellow, "magenta": colour("5"), "green": green, "blue": colour("4"),
	"red": red, "purple": colour("5"), "orange": colour("208"), "pink": colour("213"), "white": colour("7"), // of roles
}

// Ink returns the style for a member's colour, as named in its record.
func Ink(colour string) lipgloss.Style { return inks[colour] }

// Paint returns a text in the colour of a member's state, of a task's or a team's status, or of the result of a check.
func Paint(status, text string) string {
	switch status {
	case string(team.Running), string(team.InProgress), "merging", string(team.Active):
		return cyan.Render(text)
	case string(team.Completed), string(team.TeamFinished), "ok":
		return green.Render(text)
	case string(team.WaitingAnswer), string(team.WaitingUser), string(team.WaitingApproval), string(team.WaitingModel), string(team.WaitingBudget), string(team.Unknown), team.ShownBlocked, string(team.TeamDeleting), "warn":
		return yellow.Render(text)
	case string(team.Lost), string(team.Stalled), string(team.Failed), string(team.WaitingRepair), string(team.Unreadable), "fail":
		return red.Render(text)
	case string(team.Stopped), string(team.Cancelled):
		return faint.Render(text)
	}
	return text
}

// The layout of a line by the width of a terminal.
const (
	wide      = 60  // cells from which on a line has the whole time, and names are a column
	narrow    = 30  // cells below which it has no time, and names stand above their lines
	endless   = 200 // cells of a call or a result where lines have no limit
	column    = 12  // characters of the longest name that widens the column
	leastText = 12  // cells of a text beside which something else stands
)

// line is a fact before it is laid out.
type line struct {
	at    time.Time
	who   team.AgentID // "" = nobody's
	task  team.TaskID  // that it is about; "" = none, or the text names it
	mark  string
	body  string
	extra string // behind the text, less bright
	style ink    // of the mark, and if it is faint of the text
}

// fact returns the lines for a fact of the team.
func (s *Story) fact(at time.Time, who team.AgentID, style ink, mark, text string) []string {
	return s.extraFact(at, who, style, mark, text, "")
}

func (s *Story) extraFact(at time.Time, who team.AgentID, style ink, mark, text, beside string) []string {
	return s.text(line{at: at, who: who, mark: mark, body: text, extra: beside, style: style})
}

// note returns the lines for a detail, which are faint.
func (s *Story) note(e feed.Entry, text, more string) []string {
	if s.o.Full && more != "" {
		text += ": " + more
	}
	return s.text(line{at: e.Time, who: e.AgentID, body: text, style: faint})
}

// one returns l in one line, cut to the terminal.
func (s *Story) one(l line) []string {
	above, lead := s.head(l)
	room := s.o.Width - lead.cells()
	if s.o.Width == 0 {
		room = endless
	}
	beside := ""
	if l.extra != "" {
		beside = "  " + Printable(l.extra)
		if room-ansi.StringWidth(beside) < leastText {
			beside = ""
		}
	}
	text := ansi.Truncate(Printable(team.OneLine(l.marked())), room-ansi.StringWidth(beside), "…")
	return append(above, lead.paint(s)+l.paint(text)+faint.Render(beside))
}

// text returns l in as many lines as it needs.
func (s *Story) text(l line) []string {
	lines := clean(l.marked())
	if len(lines) == 0 {
		return nil
	}
	beside := ""
	if l.extra != "" {
		beside = strings.ReplaceAll(" ("+Printable(l.extra)+")", " ", noBreak)
		lines[len(lines)-1] += " " + beside[len(noBreak):]
	}
	told, lead := s.head(l)
	if s.o.Width == 0 { // each line by itself, for whoever searches them
		for _, text := range lines {
			told = append(told, lead.paint(s)+l.brighten(text, beside))
		}
		return told
	}
	for i, text := range wrap(strings.Join(lines, "\n"), lead.cells(), lead.indent, s.o.Width) {
		if i == 0 {
			told = append(told, lead.paint(s)+l.brighten(text, beside))
			continue
		}
		told = append(told, strings.Repeat(" ", lead.indent)+l.brighten(text, beside))
	}
	return told
}

// A space and a hyphen at which a line is not broken.
const (
	noBreak       = "\u00a0"
	noBreakHyphen = "\u2011"
)

// brighten styles a line of l's text, and separately the text beside it.
func (l line) brighten(text, beside string) string {
	if beside = strings.TrimPrefix(beside, noBreak); beside != "" {
		if text, ok := strings.CutSuffix(text, beside); ok {
			return l.paint(text) + faint.Render(strings.ReplaceAll(beside, noBreak, " "))
		}
	}
	return l.paint(text)
}

// marked returns the text of l behind its mark.
func (l line) marked() string {
	if l.mark == "" {
		return l.body
	}
	return l.mark + " " + l.body
}

// paint styles a line of l's text: only its mark, or the whole line if the style is faint.
func (l line) paint(text string) string {
	if l.style.GetFaint() {
		return l.style.Render(text)
	}
	if rest, ok := strings.CutPrefix(text, l.mark+" "); ok && l.mark != "" {
		return l.style.Render(l.mark) + " " + rest
	}
	return text
}

// wrap breaks text between words, for lines of width cells: the first begins after lead cells, the others after indent.
func wrap(text string, lead, indent, width int) []string {
	// An unbreakable word stands in for the lead of the first line.
	held := lead - indent
	if held > 1 {
		text = strings.Repeat("_", held-1) + " " + text
	}
	// Names and ids are not broken at their hyphens.
	text = ansi.Wrap(strings.ReplaceAll(text, "-", noBreakHyphen), max(width-indent, 1), "")
	lines := strings.Split(strings.ReplaceAll(text, noBreakHyphen, "-"), "\n")
	if held > 1 {
		lines[0] = strings.TrimPrefix(lines[0][min(held-1, len(lines[0])):], " ")
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// lead is the columns before a text.
type lead struct {
	at, name, task string
	who            team.AgentID
	pad            int // cells behind the name
	indent         int // cells by which further lines are moved in
}

// cells returns its width.
func (d lead) cells() int {
	n := d.pad + ansi.StringWidth(d.name)
	for _, part := range []string{d.at, d.name, d.task} {
		if part != "" {
			n++
		}
	}
	return n + len(d.at) + len(d.task)
}

// paint returns it in colours.
func (d lead) paint(s *Story) string {
	text := ""
	if d.at != "" {
		text = faint.Render(d.at) + " "
	}
	if d.name != "" {
		text += s.paintName(d.who, d.name) + " "
	}
	text += strings.Repeat(" ", d.pad)
	if d.task != "" {
		text += faint.Render(d.task) + " "
	}
	return text
}

// head returns the lead of l's text, and lines above it: the date where another day begins, and on a narrow terminal
// the member's name.
func (s *Story) head(l line) (above []string, d lead) {
	at := l.at.In(s.o.Zone)
	day := at.Format(time.DateOnly)
	if s.day == "" && s.o.Dated || s.day != "" && s.day < day {
		above = append(above, faint.Render("— "+day))
	}
	s.day = max(s.day, day)
	defer func() { s.spoke, s.lastOf = l.who, "" }()

	name := s.name(l.who)
	if w := s.o.Width; w > 0 && w < narrow {
		if name != "" && l.who != s.spoke {
			above = append(above, s.paintName(l.who, ansi.Truncate(name, w, "…")))
		}
		return above, lead{pad: 1, indent: 1}
	}
	d = lead{at: at.Format("15:04"), name: name, who: l.who, task: string(l.task), indent: 2}
	if s.o.Width == 0 || s.o.Width >= wide {
		d.at = at.Format(time.TimeOnly)
		d.indent = len(d.at) + 1 + s.names + 1
		d.pad = s.names - ansi.StringWidth(name)
		if name == "" {
			d.pad++
		}
		d.pad = max(d.pad, 0)
	}
	return above, d
}

func (s *Story) paintName(who team.AgentID, name string) string {
	if who == team.Leader {
		return bold.Render(name)
	}
	return inks[s.team.Member(who).Colour].Render(name)
}

// name returns the shown name of a member.
func (s *Story) name(a team.AgentID) string {
	switch {
	case a == "":
		return ""
	case s.o.Team == "":
		return Printable(string(a))
	}
	return Printable(a.At(s.o.Team))
}

// widen makes the column of names wide enough for another name.
func (s *Story) widen(a team.AgentID) {
	if len(a) <= column {
		s.names = max(s.names, ansi.StringWidth(s.name(a)))
	}
}

// mostMarks bounds the marks of a letter: more of them reach into the lines above and below.
const mostMarks = 3

// Printable removes characters that could move the cursor of a watcher, disguise a text, or change its width: control
// characters, those that turn the direction of writing, others without ink (zero-width spaces and joiners, selectors of
// variants), the tones of emojis, whose width differs between terminals, and all but the first marks of a letter.
func Printable(s string) string {
	marks := 0
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r <= '~':
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point),
			r >= '\U0001F3FB' && r <= '\U0001F3FF':
			return -1
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > mostMarks {
				return -1
			}
			return r
		}
		marks = 0
		return r
	}, s)
}

// clean returns the lines of a text, fit for a terminal, without empty ones.
func clean(text string) (lines []string) {
	for l := range strings.Lines(text) {
		if l = strings.TrimRight(Printable(strings.ReplaceAll(l, "\t", "    ")), " "); strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// span returns a time in one or two units.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", max(0, d.Seconds()))
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Amount returns a number of tokens in short, such as 1.2k.
func Amount(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}
