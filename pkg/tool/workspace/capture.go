package workspace

import (
	"fmt"
	"unicode/utf8"
)

// maxOutput is the most bytes of a command's output that are kept.
const maxOutput = 30_000

// capture is an io.Writer that keeps the first and the last half of maxOutput
// bytes. It takes any amount in bounded memory. Not safe for concurrent use.
type capture struct {
	head, tail []byte
	total      int
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += n
	fits := min(n, maxOutput/2-len(c.head))
	c.head = append(c.head, p[:fits]...)
	c.tail = append(c.tail, p[fits:]...)
	if len(c.tail) > maxOutput { // not at each byte too many: that would copy all the time
		c.trim()
	}
	return n, nil
}

func (c *capture) trim() {
	if extra := len(c.tail) - maxOutput/2; extra > 0 {
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
}

// String returns what was written; if that was too much, the two ends with a
// line between them that says how many bytes are missing.
func (c *capture) String() string {
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
	return fmt.Sprintf("%s\n[... %d bytes cut ...]\n%s", head, c.total-len(head)-len(tail), tail)
}
