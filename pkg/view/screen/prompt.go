package screen

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/view/render"
)

// prompt is a question to the person below the page.
type prompt struct {
	kind promptKind
	ask  string               // what is asked
	then func(string) tea.Cmd // for what is typed; of a question: for yes
}

type promptKind int

const (
	commandLine promptKind = iota // a line behind :
	filterLine                    // a text behind /
	textLine                      // a text for a deed, in one line or several
	yesOrNo
	promptCount
)

// written is a text that was typed at a prompt.
type written struct {
	prompt prompt
	text   string
}

// mostTyped bounds the visible lines of the input.
const mostTyped = 6

// newInput returns the input of commands and texts. It does not read the clipboard, which would start a program: the
// terminal pastes.
func newInput() textarea.Model {
	in := textarea.New()
	in.ShowLineNumbers = false
	in.SetStyles(textarea.Styles{})
	in.SetVirtualCursor(false)
	in.KeyMap.Paste = key.NewBinding(key.WithDisabled())
	in.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	in.CharLimit = team.MaxTextBytes / 4
	in.DynamicHeight, in.MaxHeight, in.MaxContentHeight, in.MaxWidth = true, mostTyped, in.CharLimit, 0
	return in
}

// prompts opens a prompt for a text.
func (m *model) prompts(p prompt, begin string) tea.Cmd {
	m.prompt, m.notice = &p, ""
	lead := map[promptKind]string{commandLine: ":", filterLine: "/"}[p.kind]
	if lead == "" {
		lead = "> "
	}
	m.input.SetPromptFunc(len(lead), func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return lead
		}
		return ""
	})
	m.input.SetWidth(m.width)
	cmd := m.input.Focus()
	m.fill(begin)
	return cmd
}

// fill sets the text of the input, with the cursor behind it.
func (m *model) fill(text string) {
	m.input.SetValue(text)
	m.input.MoveToEnd()
	m.input, _ = m.input.Update(nil) // which sets its height
}

// asks opens a question with the answers yes and no.
func (m *model) asks(question string, yes func() tea.Cmd) tea.Cmd {
	m.notice = ""
	m.prompt = &prompt{kind: yesOrNo, ask: question, then: func(string) tea.Cmd { return yes() }}
	return nil
}

// promptLines returns the question, above the input.
func (m *model) promptLines() (all []string) {
	switch p := m.prompt; p.kind {
	case yesOrNo:
		return m.askLines(p.ask + " y/n")
	case textLine:
		all = m.askLines(p.ask)
	case commandLine:
		if offers := m.offers(); offers != "" {
			all = []string{faint.Render(offers)}
		}
	}
	return append(all, strings.Split(m.input.View(), "\n")...)
}

// askLines returns the whole question if the screen has room for it, and always its end.
func (m *model) askLines(text string) []string {
	all := lines(text, m.width)
	if most := max(m.height/2, 2); len(all) > most {
		left := explain.Counted(len(all)-most+1, "line")
		all = append(append(all[:most-2:most-2], "… "+left+" more …"), all[len(all)-1])
	}
	return styled(yellow, all)
}

// typed handles a key at a prompt.
func (m *model) typed(k tea.KeyPressMsg) tea.Cmd {
	p, pressed := m.prompt, name(k)
	switch {
	case (pressed == "pgup" || pressed == "pgdown") && p.kind != filterLine && !m.page().list():
		m.moves(pressed) // what is asked about may be longer than the page
		return nil
	case p.kind == yesOrNo:
		if pressed == "y" || pressed == "Y" {
			m.prompt = nil
			return p.then("")
		}
		if pressed == "n" || pressed == "N" || pressed == "esc" || pressed == "ctrl+c" || pressed == "q" {
			m.prompt = nil
		}
		return nil
	case pressed == "esc", pressed == "ctrl+c":
		if m.prompt = nil; p.kind == filterLine {
			m.page().filter = ""
		}
		return nil
	case pressed == "backspace" && m.input.Value() == "" && p.kind != textLine:
		m.prompt = nil
		return nil
	case pressed == "enter":
		return m.accept()
	case pressed == "tab" && p.kind == commandLine:
		m.fill(longest(m.input.Value(), m.complete(m.input.Value())))
		return nil
	case pressed == "up" && p.kind != filterLine && m.input.Line() == 0 && m.input.LineInfo().RowOffset == 0,
		pressed == "down" && p.kind != filterLine && m.input.Line() == m.input.LineCount()-1 && m.input.LineInfo().RowOffset == m.input.LineInfo().Height-1:
		m.recall(pressed == "up")
		return nil
	case key.Matches(k, m.input.KeyMap.InsertNewline) && p.kind != textLine:
		return nil
	}
	return m.edit(k)
}

// accept handles the typed text.
func (m *model) accept() tea.Cmd {
	p, text := m.prompt, strings.TrimSpace(m.input.Value())
	m.prompt = nil
	if p.kind == filterLine {
		return nil
	}
	if past := &m.history[p.kind]; text != "" {
		*past = append(slices.DeleteFunc(*past, func(h string) bool { return h == text }), text)
	}
	m.written = &written{*p, text}
	return p.then(text)
}

// edit passes a key, or pasted text, to the input.
func (m *model) edit(msg tea.Msg) (cmd tea.Cmd) {
	m.input, cmd = m.input.Update(msg)
	if m.prompt.kind == filterLine {
		p := m.page()
		p.filter, p.up, p.down = m.input.Value(), 0, 0
	}
	return cmd
}

func (m *model) paste(msg tea.PasteMsg) tea.Cmd {
	if m.prompt == nil || m.prompt.kind == yesOrNo {
		return nil
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(msg.Content)
	if m.prompt.kind != textLine {
		text = team.OneLine(text)
	}
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = render.Printable(all[i])
	}
	msg.Content = strings.Join(all, "\n")
	return m.edit(msg)
}

// longest returns the common beginning of all completions of a text; a single one is followed by a space.
func longest(text string, all []string) string {
	if len(all) == 0 {
		return text
	}
	common := all[0]
	for _, s := range all[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	if len(all) == 1 {
		common += " "
	}
	return common
}

// recall puts an earlier, or later, text into the input; after the last one comes the unfinished text.
func (m *model) recall(earlier bool) {
	past := m.history[m.prompt.kind]
	at := slices.Index(past, m.input.Value())
	if at < 0 {
		at, m.draft = len(past), m.input.Value()
	}
	if earlier {
		at--
	} else {
		at++
	}
	switch {
	case at < 0, at > len(past):
	case at == len(past):
		m.fill(m.draft)
	default:
		m.fill(past[at])
	}
}

// retry lets the person correct the text of an action that failed.
func (m *model) retry(d action) (cmd tea.Cmd) {
	if w := d.written; w != nil && m.prompt == nil && m.room != nil && m.room.id == d.team {
		notice := m.notice
		cmd = m.prompts(w.prompt, w.text)
		m.notice = notice
	}
	return cmd
}

// wrong shows the error in the typed text.
func (m *model) wrong(format string, args ...any) tea.Cmd {
	m.notice, m.failed = fmt.Sprintf(format, args...), true
	return nil
}

func (m *model) fails(err error) tea.Cmd {
	m.notice, m.failed = team.Line(err), true
	return nil
}
