package story

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"agentteam/pkg/feed"
	"agentteam/pkg/team"
)

// draft is a text that a model is writing, as far as it was told.
type draft struct {
	message, run string
	begun        time.Time
	from         int // bytes of the text before what is known of it
	text         string
}

// Write takes in a piece of a text that is being written, at that time by the clock of
// the entries. One that is told as a whole by now is left out.
func (s *Story) Write(d team.Delta, now time.Time) {
	if s.o.Only != "" && d.AgentID != s.o.Only || s.agent(d.AgentID).told == d.MessageID {
		return
	}
	w := s.drafts[d.AgentID]
	if w == nil || w.message != d.MessageID {
		w = &draft{message: d.MessageID, run: d.RunID, begun: now, from: d.Offset}
		s.drafts[d.AgentID] = w
	}
	if d.Offset < w.from || d.Offset > w.from+len(w.text) { // it begins anew, or a piece was lost
		w.from, w.text = d.Offset, ""
	}
	w.text = w.text[:d.Offset-w.from] + d.Text
}

// settle forgets a draft that an entry tells, or of which nothing will come.
func (s *Story) settle(e feed.Entry) {
	b, w := e.Event.Event, s.drafts[e.AgentID]
	over := false
	switch b.Type {
	case team.TextChunk, team.ToolCallChunk:
		s.agent(e.AgentID).told = b.MessageID
		over = w != nil && w.message == b.MessageID
	case team.RunFinished, team.RunError:
		over = w != nil && w.run == e.RunID
	case team.Retry: // unless the same call is tried again
		var r team.Retrying
		_ = json.Unmarshal(b.Value, &r)
		over = w != nil && w.run == e.RunID && r.Tried == 0
	case team.MemberLost, team.MemberStopped, team.MemberRemoved:
		over = true
	}
	if over {
		delete(s.drafts, e.AgentID)
	}
}

// Drafts returns the ends of the texts that are being written, in at most rows lines, the
// oldest first. They are to be shown below what [Story.Tell] has told, until they are told
// themselves; nothing is changed by it.
func (s *Story) Drafts(rows int) (lines []string) {
	var who []team.AgentID
	for a, w := range s.drafts {
		if w.text != "" {
			who = append(who, a)
		}
	}
	slices.SortFunc(who, func(a, b team.AgentID) int {
		return cmp.Or(s.drafts[a].begun.Compare(s.drafts[b].begun), cmp.Compare(a, b))
	})
	for i, a := range who {
		lines = append(lines, s.draft(a, (rows-len(lines))/(len(who)-i))...)
	}
	return lines
}

// draft is the end of what an agent is writing, in at most rows lines.
func (s *Story) draft(a team.AgentID, rows int) []string {
	aside := *s // of which setting a line changes a little
	w := s.drafts[a]
	cut := w.from > 0
	text := w.text
	if most := rows * max(s.o.Width, narrow) * utf8.UTFMax; len(text) > most { // else a long one is set again and again
		cut, text = true, tail(text, most)
	}
	for {
		body := text
		if cut {
			body = "… " + text
		}
		lines := aside.text(line{at: w.begun, who: a, task: s.agent(a).task, body: body})
		if len(lines) <= rows || rows < 1 {
			return lines[:min(max(rows, 0), len(lines))]
		}
		if len(text) < narrow { // there is no room but for the name
			return lines[len(lines)-rows:]
		}
		cut, text = true, tail(text, len(text)*3/4)
	}
}

// tail are the last n bytes of a text, or fewer: whole letters.
func tail(text string, n int) string {
	text = text[len(text)-n:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
