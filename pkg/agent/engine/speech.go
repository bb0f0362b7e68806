package engine

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentteam/pkg/team"
)

// TextStream receives the text of a turn while the model writes it.
type TextStream interface {
	Begin() // the text of an earlier try of the call is void
	Add(text string)
	End()
}

const (
	liveEvery = 75 * time.Millisecond // interval at which a growing text is sent
	maxChunk  = 32 << 10              // bytes of text in one delta
)

// liveText sends the text of one turn. Safe for concurrent use.
type liveText struct {
	live func(team.Delta)

	mu    sync.Mutex
	next  team.Delta // the next delta, without its text
	text  strings.Builder
	timer *time.Timer // runs while there is text; nil before the first
}

// StreamTo returns a stream that sends its text to live, in chunks gathered for 75 ms. All fields
// of a chunk except offset and text are those of first. live must not block.
func StreamTo(live func(team.Delta), first team.Delta) TextStream {
	return &liveText{live: live, next: first}
}

// Begin begins the text: the text of an earlier try of the call is void.
func (s *liveText) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	s.next.Offset = 0
}

// Add appends a chunk of the text.
func (s *liveText) Add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.text.Len() > 0
	s.text.WriteString(text)
	switch {
	case s.text.Len() >= maxChunk:
		s.publish()
	case s.timer == nil:
		s.timer = time.AfterFunc(liveEvery, s.flush)
	case !waits:
		s.timer.Reset(liveEvery)
	}
}

// End sends the remaining text: no more follows.
func (s *liveText) End() {
	s.flush()
	if s.timer != nil { // which Add has set before
		s.timer.Stop()
	}
}

func (s *liveText) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish()
}

func (s *liveText) publish() {
	for rest := s.text.String(); rest != ""; {
		n := min(len(rest), maxChunk)
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
