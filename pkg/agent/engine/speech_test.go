package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"agentteam/pkg/team"
)

// listener keeps what it gets.
type listener struct{ all []team.Delta }

func (l *listener) hear(d team.Delta) { l.all = append(l.all, d) }

// A text that comes at once is told in pieces of a bounded size, which are whole letters.
func TestLiveLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard listener
		for _, text := range []string{strings.Repeat("你", maxChunk), strings.Repeat("\x80", 3*maxChunk)} {
			heard.all = nil
			s := StreamTo(heard.hear, team.Delta{MessageID: "id"})
			s.Add(text)
			s.End()
			var whole strings.Builder
			for _, d := range heard.all {
				if d.Offset != whole.Len() || len(d.Text) > maxChunk || utf8.ValidString(text) != utf8.ValidString(d.Text) {
					t.Errorf("a piece of %d bytes at %d of %d", len(d.Text), d.Offset, whole.Len())
				}
				whole.WriteString(d.Text)
			}
			if whole.String() != text {
				t.Errorf("%d of %d bytes are told", whole.Len(), len(text))
			}
		}
	})
}
