package engine

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentteam/pkg/team"
)

// Speech hears the text of a turn while the model writes it.
type TextStream interface {
	Begin() // what an earlier try of the call has written is void
	Add(text string)
	End()
}

const (
	liveEvery = 75 * time.Millisecond // a text that is being written is told so often
	maxPiece  = 32 << 10              // bytes of it in one delta
)

// speech tells of the text of one turn. Safe for concurrent use.
type liveText struct {
	live func(team.Delta)

	mu    sync.Mutex
	next  team.Delta // as it is told next, but for its text
	text  strings.Builder
	timer *time.Timer // runs while there is text; nil before the first
}

// SpeechTo returns a speech whose text live gets, in pieces that are gathered for 75 ms. All that a
// piece has beside its place and its text is that of first. live must not block.
func SpeechTo(live func(team.Delta), first team.Delta) TextStream {
	return &liveText{live: live, next: first}
}

// Begin begins the text: what an earlier try of the call has said is void.
func (s *liveText) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	s.next.Offset = 0
}

// Add takes in a piece of the text.
func (s *liveText) Add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.text.Len() > 0
	s.text.WriteString(text)
	switch {
	case s.text.Len() >= maxPiece:
		s.tell()
	case s.timer == nil:
		s.timer = time.AfterFunc(liveEvery, s.flush)
	case !waits:
		s.timer.Reset(liveEvery)
	}
}

// End tells what was not told yet: nothing more comes.
func (s *liveText) End() {
	s.flush()
	if s.timer != nil { // which Add has set before
		s.timer.Stop()
	}
}

func (s *liveText) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
}

func (s *liveText) tell() {
	for rest := s.text.String(); rest != ""; {
		n := min(len(rest), maxPiece)
		for back := n; back < len(rest) && back > n-utf8.UTFMax; back-- {
			if utf8.RuneStart(rest[back]) {
				n = back
				break
			}
		}
		s.next.Text, rest = rest[:n], rest[n:]
		s.live(s.next)
		s.next.Offset += n
	}
	s.text.Reset()
}
