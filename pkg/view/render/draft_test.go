package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

func piece(a team.AgentID, message string, offset int, text string) team.Delta {
	return team.Delta{AgentID: a, RunID: "run-of-" + string(a), MessageID: message, Offset: offset, Text: text}
}

func of(a team.AgentID, b team.EventBody) feed.Entry {
	return feed.Entry{Time: noon, Event: team.Event{AgentID: a, RunID: "run-of-" + string(a), Event: b}}
}

// drafts are the lines of what is being written, without colours.
func drafts(s *render.Story, rows int) (out []string) {
	for _, l := range s.Drafts(rows) {
		out = append(out, ansi.Strip(l))
	}
	return out
}

// A text grows while it is written, and is shown until it is told; what comes late of it
// is not shown again.
func TestDraft(t *testing.T) {
	s := render.New(render.Options{Traits: runtime.Traits, Width: 80, Zone: time.UTC})
	look := func(want ...string) {
		t.Helper()
		if got := drafts(s, 5); !slices.Equal(got, want) {
			t.Errorf("the drafts are %q, want %q", got, want)
		}
	}
	look()
	s.Write(piece("ann", "m1", 0, "Hel"), noon)
	s.Write(piece("ann", "m1", 3, "lo \x1b[2Jyou"), noon.Add(time.Second))
	look("12:00:00 ann Hello [2Jyou")
	s.Write(piece("ann", "m1", 0, "Anew"), noon) // another try
	look("12:00:00 ann Anew")
	s.Write(piece("ann", "m1", 90, "behind a gap"), noon)
	s.Write(piece("bob", "m2", 0, "I too"), noon.Add(time.Second))
	look("12:00:00 ann … behind a gap", "12:00:01 bob I too")
	s.Render(of("bob", team.EventBody{Type: team.ToolCallChunk, MessageID: "earlier", ToolCallName: "bash", Delta: "{}"}))
	look("12:00:00 ann … behind a gap", "12:00:01 bob I too")
	if got := s.Render(of("ann", team.EventBody{Type: team.TextChunk, MessageID: "m1", Delta: "The whole."})); len(got) != 1 {
		t.Errorf("the text is told as %q", got)
	}
	s.Write(piece("ann", "m1", 100, "late"), noon)
	look("12:00:01 bob I too")
	for name, e := range map[string]feed.Entry{
		"its run ends":       of("bob", team.EventBody{Type: team.RunFinished}),
		"it is lost":         of("bob", team.EventBody{Type: team.MemberLost, Value: []byte(`{}`)}),
		"its model refuses":  of("bob", team.EventBody{Type: team.Retry, Value: []byte(`{"cause":"no"}`)}),
		"its run has failed": of("bob", team.EventBody{Type: team.RunError}),
	} {
		half, again := piece("bob", "m3", 0, "half"), of("bob", team.EventBody{Type: team.Retry, Value: []byte(`{"tried":1}`)})
		half.MessageID, half.RunID, again.RunID, e.RunID = "m3 "+name, name, name, name // a run ends once
		s.Write(half, noon)
		s.Render(again)
		look("12:00:00 bob half")
		s.Render(e)
		if got := drafts(s, 5); len(got) > 0 {
			t.Errorf("when %s there is still %q", name, got)
		}
	}
	one := render.New(render.Options{Traits: runtime.Traits, Width: 80, Zone: time.UTC, Only: "ann"})
	one.Write(piece("bob", "m", 0, "text"), noon)
	if got := drafts(one, 5); len(got) > 0 {
		t.Errorf("in the story of ann stands %q", got)
	}
}

// Long texts of many take no more than the lines that there are, at any width, and their
// ends are seen.
func TestDraftsFit(t *testing.T) {
	for _, width := range []int{10, 20, 40, 80, 200} {
		for rows := range 9 {
			for n := 1; n < 6; n++ {
				s := render.New(render.Options{Traits: runtime.Traits, Width: width, Zone: time.UTC})
				for i := range n {
					text := fmt.Sprint(strings.Repeat("wörter 字 ", 5000), "last", i)
					s.Write(piece(team.AgentID(fmt.Sprint("coder-", i)), "m", 0, text), noon)
				}
				got := drafts(s, rows)
				if len(got) > rows {
					t.Errorf("%d texts take %d of %d lines", n, len(got), rows)
				}
				for _, l := range got {
					if ansi.StringWidth(l) > width {
						t.Errorf("a line takes %d of %d cells: %q", ansi.StringWidth(l), width, l)
					}
				}
				if rows > 0 && !strings.HasSuffix(strings.Join(got, " "), fmt.Sprint("last", n-1)) {
					t.Errorf("of %d texts at width %d the end is not seen:\n%s", n, width, strings.Join(got, "\n"))
				}
			}
		}
	}
}
