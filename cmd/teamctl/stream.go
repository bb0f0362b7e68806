package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"agentteam/pkg/team"
)

// stream prints what agents do, a line each, headed by the coloured name@team.
// Colours are left out where the writer is no terminal or NO_COLOR is set.
type stream struct {
	w       io.Writer
	colours func() map[team.AgentID]string // as the members' records say

	mu     sync.Mutex
	styles map[team.AgentID]lipgloss.Style
}

// newStream returns a stream to w. colours is asked when a name appears that was
// not seen before.
func newStream(w io.Writer, colours func() map[team.AgentID]string) *stream {
	return &stream{w: colorprofile.NewWriter(w, os.Environ()), colours: colours, styles: map[team.AgentID]lipgloss.Style{
		team.Leader: lipgloss.NewStyle().Bold(true), team.UserAgent: lipgloss.NewStyle(),
	}}
}

var faint = lipgloss.NewStyle().Faint(true)

// show prints one event; those that only frame others, and what the board tells better,
// are left out.
func (s *stream) show(e team.Event) {
	b := e.Event
	switch b.Type {
	case team.TextChunk:
		s.lines(e, "", b.Delta)
	case team.ToolCallChunk:
		s.line(e, "→ "+b.ToolCallName+" ", clip(oneLine(b.Delta), width))
	case team.ToolCallResult:
		s.line(e, "", "← "+clip(oneLine(b.Content), width))
	case team.RunError, team.Retry:
		s.lines(e, "! ", b.Message)
	case team.MailSent:
		var m team.Message
		if json.Unmarshal(b.Value, &m) == nil && (m.Type == team.MsgMessage || m.Type == team.MsgBroadcast) {
			s.line(e, "→ "+addressee(m.To)+": ", clip(oneLine(m.Content), width))
		}
	case team.MemberParked:
		var m team.Member
		if json.Unmarshal(b.Value, &m) == nil {
			s.line(e, "waits for its model: "+oneLine(m.LastError), "")
		}
	case team.MemberResumed:
		s.line(e, "has its model back", "")
	case team.Compacted:
		s.line(e, "", "made its conversation shorter")
	}
}

func (s *stream) lines(e team.Event, lead, text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			s.line(e, lead+line, "")
		}
	}
}

// line prints text and, less bright, what is only looked at if need be.
func (s *stream) line(e team.Event, text, aside string) {
	fmt.Fprintln(s.w, s.name(e)+" "+printable(text)+faint.Render(printable(aside)))
}

// name is the coloured name@team of the one whose event it is.
func (s *stream) name(e team.Event) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	style, ok := s.styles[e.AgentID]
	if !ok {
		style = memberInk[s.colours()[e.AgentID]]
		s.styles[e.AgentID] = style
	}
	return style.Render(e.AgentID.At(e.TeamID))
}

// printable takes out control characters, and those that turn the direction of
// writing, so that what an agent read can neither move the cursor of the one who
// watches nor show a text as another than it is.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return -1
		}
		return r
	}, s)
}

// width is how many characters of arguments and results are shown.
const width = 160

// clip shortens s to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
