package command

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestCapture(t *testing.T) {
	t.Parallel()
	const most = maxHead + maxTail
	for _, size := range []int{0, 1, maxHead - 1, maxHead, most - 4, most, most + 4, most + 10*maxTail} {
		for pad := range 4 { // each way to hit a character
			text := strings.Repeat("x", min(pad, size)) + strings.Repeat("🚀", size/4)
			var whole, pieces Capture
			io.WriteString(&whole, text)
			if _, err := io.CopyBuffer(struct{ io.Writer }{&pieces}, iotest.HalfReader(strings.NewReader(text)), make([]byte, 70_001)); err != nil {
				t.Fatal(err)
			}
			got := whole.String()
			if again := pieces.String(); again != got {
				t.Fatalf("size %d+%d: written in pieces it is another text", size, pad)
			}
			if len(text) <= most {
				if got != text {
					t.Errorf("size %d+%d: %d bytes came out", size, pad, len(got))
				}
				continue
			}
			head, rest, _ := strings.Cut(got, "\n[... ")
			note, tail, _ := strings.Cut(rest, " ...]\n")
			if !utf8.ValidString(got) || len(got) > most+50 || len(got) < most-10 || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
				t.Errorf("size %d+%d: %d bytes, valid UTF-8: %v", size, pad, len(got), utf8.ValidString(got))
			}
			if want := fmt.Sprintf("%d bytes were not kept", len(text)-len(head)-len(tail)); note != want {
				t.Errorf("size %d+%d: note %q, want %q", size, pad, note, want)
			}
		}
	}
}

func TestCaptureMemory(t *testing.T) {
	var c Capture
	for chunk := []byte(strings.Repeat("x", 32<<10)); c.total < 100<<20; {
		c.Write(chunk)
	}
	if held := cap(c.head) + cap(c.tail); held > 3*maxHead {
		t.Errorf("%d bytes held", held)
	}
}
