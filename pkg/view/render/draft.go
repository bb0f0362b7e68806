package render

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/store/feed/state"
)

// Drafts returns the ends of the texts that are being written, in at most rows lines, the oldest first. The caller
// shows them below the lines of [Story.Render] until those contain the texts; Drafts changes nothing.
func (s *Story) Drafts(rows int) (lines []string) {
	all := slices.DeleteFunc(s.team.Drafts(), func(d *state.Draft) bool { return s.o.Only != "" && d.AgentID != s.o.Only })
	for i, d := range all {
		lines = append(lines, s.draft(d, (rows-len(lines))/(len(all)-i))...)
	}
	return lines
}

// draft returns the end of a text that is being written, in at most rows lines.
func (s *Story) draft(d *state.Draft, rows int) []string {
	aside := *s // of which setting a line changes a little
	cut, text := d.From > 0, d.Text
	if most := rows * max(s.o.Width, narrow) * utf8.UTFMax; len(text) > most { // else a long one is set again and again
		cut, text = true, strings.ToValidUTF8(text[len(text)-most:], "")
	}
	for {
		body := text
		if cut {
			body = "… " + text
		}
		lines := aside.text(line{at: d.Begun, who: d.AgentID, task: s.team.Member(d.AgentID).Task, body: body})
		if len(lines) <= rows || rows < 1 {
			return lines[:min(max(rows, 0), len(lines))]
		}
		if len(text) < narrow { // there is no room but for the name
			return lines[len(lines)-rows:]
		}
		cut, text = true, strings.ToValidUTF8(text[len(text)-len(text)*3/4:], "")
	}
}
