package command

import (
	"cmp"
	"fmt"
	"unicode/utf8"
)

// The bounds of a [Capture], in bytes.
const (
	maxHead = 10 << 20
	maxTail = 15_000
)

// Capture is an io.Writer that keeps the beginning and the last 15,000 bytes of a command's output. It takes any amount
// in bounded memory. Not safe for concurrent use.
type Capture struct {
	Head int // how many bytes of the beginning are kept; default: 10 MiB

	head, tail []byte
	total      int
}

func (c *Capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += n
	fits := min(n, cmp.Or(c.Head, maxHead)-len(c.head))
	c.head = append(c.head, p[:fits]...)
	c.tail = append(c.tail, p[fits:]...)
	if len(c.tail) > 2*maxTail { // not at each byte too many: that would copy all the time
		c.trim()
	}
	return n, nil
}

func (c *Capture) trim() {
	if extra := len(c.tail) - maxTail; extra > 0 {
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
}

// String returns the output; if it was too long, both ends with a line between them that states how many bytes are
// missing.
func (c *Capture) String() string {
	c.trim()
	if c.total == len(c.head)+len(c.tail) {
		return string(c.head) + string(c.tail)
	}
	// The cut must not leave halves of characters.
	head, tail := c.head, c.tail
	for i := len(head) - 1; i >= max(0, len(head)-utf8.UTFMax); i-- {
		if utf8.RuneStart(head[i]) {
			if !utf8.FullRune(head[i:]) {
				head = head[:i]
			}
			break
		}
	}
	for range utf8.UTFMax - 1 {
		if len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	return fmt.Sprintf("%s\n[... %d bytes were not kept ...]\n%s", head, c.total-len(head)-len(tail), tail)
}
