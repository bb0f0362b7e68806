package screen

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// How much of the past can be scrolled to.
const (
	mostEntries = 3000 // entries
	dropEntries = 500  // that go together
)

// transcriptView is a story with its entries, so that its lines can be made again at another width.
type transcriptView struct {
	o    render.Options
	past *state.Team // how the team stood before the first of the entries

	entries []feed.Entry
	story   *render.Story
	views   []*entryView
}

// entryView is the lines of an entry.
type entryView struct {
	lines []string
	plain string // they in lower case and without colours; "" = not made yet
}

// has reports whether the lines contain a text, which is in lower case.
func (t *entryView) has(text string) bool {
	if t.plain == "" {
		t.plain = plain(t.lines)
	}
	return strings.Contains(t.plain, text)
}

func plain(lines []string) string { return strings.ToLower(ansi.Strip(strings.Join(lines, " "))) }

func newTranscript(o render.Options, members []team.Member, tasks []team.Task, counts func(team.TaskID) bool) *transcriptView {
	t := &transcriptView{o: o, past: state.New()}
	t.past.KnowMembers(members)
	t.past.KnowTasks(tasks, counts)
	t.begin()
	return t
}

func (t *transcriptView) begin() {
	t.story, t.views = render.New(t.o), nil
	var tasks []team.Task
	for _, task := range t.past.Tasks {
		tasks = append(tasks, task.Task)
	}
	t.story.Know(records(t.past), tasks, func(id team.TaskID) bool { return !t.past.Tasks[id].Earlier })
}

// records returns the members of a state, with the fields that it has.
func records(s *state.Team) (all []team.Member) {
	for id, m := range s.Members {
		record := team.Member{AgentID: id, Role: m.Role, Color: m.Colour, State: m.State, Incarnation: m.Incarnation}
		if m.Person {
			record.Backend = team.Person
		}
		if !m.Here {
			record.State = team.Stopped
		}
		all = append(all, record)
	}
	return all
}

// take adds entries, and returns their lines at the end. It drops the oldest ones beyond the limit.
func (t *transcriptView) take(entries []feed.Entry) (added []*entryView) {
	for _, e := range entries {
		e = short(e)
		t.entries = append(t.entries, e)
		added = append(added, t.add(t.story.Render(e))...)
	}
	if n := len(t.entries) - mostEntries; n > dropEntries {
		for _, e := range t.entries[:n] {
			t.past.Apply(e)
		}
		t.entries = append([]feed.Entry(nil), t.entries[n:]...)
	}
	if n := len(t.views) - mostEntries; n > dropEntries {
		t.views = append([]*entryView(nil), t.views[n:]...)
	}
	return added
}

func (t *transcriptView) add(lines []string) []*entryView {
	if len(lines) == 0 {
		return nil
	}
	added := []*entryView{{lines: lines}}
	t.views = append(t.views, added...)
	return added
}

// flush adds the entries that were held back, and returns them.
func (t *transcriptView) flush() []*entryView { return t.add(t.story.Flush()) }

// resize makes all lines again, if the width or the form of calls has changed.
func (t *transcriptView) resize(width int, full bool) {
	if t.o.Width == width && t.o.Full == full {
		return
	}
	t.o.Width, t.o.Full = width, full
	entries := t.entries
	t.entries = nil
	t.begin()
	t.take(entries)
	t.flush()
}

// linesOf returns the lines of the entries that contain a text; "" is all.
func linesOf(told []*entryView, with string) (all []string) {
	with = strings.ToLower(with)
	for _, t := range told {
		if with == "" || t.has(with) {
			all = append(all, t.lines...)
		}
	}
	return all
}

// lines returns the lines of the entries that contain a text; "" is all.
func (t *transcriptView) lines(with string) []string { return linesOf(t.views, with) }

// has reports whether the lines contain a text, in upper or lower case.
func has(lines []string, text string) bool {
	return strings.Contains(plain(lines), strings.ToLower(text))
}

// short returns an entry with texts cut to a size for a terminal.
func short(e feed.Entry) feed.Entry {
	b := &e.Event.Event
	for _, text := range []*string{&b.Delta, &b.Content, &b.Message, &b.ToolCallName} {
		*text = shortened(*text)
	}
	var m team.Message
	if b.Type == team.MailSent && len(b.Value) > mostOfText && json.Unmarshal(b.Value, &m) == nil {
		m.Content = shortened(m.Content)
		if value, err := json.Marshal(m); err == nil {
			b.Value = value
		}
	}
	return e
}

func shortened(s string) string {
	part, cut := head(s, mostOfText)
	if cut {
		part += fmt.Sprintf("\n… and %d bytes more", len(s)-len(part))
	}
	return part
}
