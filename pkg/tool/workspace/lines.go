package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentteam/pkg/tool"
)

// maxText is the most bytes of an answer, so that its last line, which says what
// was left out, still fits into a tool result.
const maxText = tool.MaxContent - 512

// cancellable is a reader that ends with its context, so that the largest file
// cannot keep a call from being cancelled.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// nextLine returns the next line with its end, as much of it as r's buffer holds,
// and how many bytes more it had; after the last one io.EOF. So a file of one
// huge line takes no more memory than any other. The line is valid until r is
// read again.
func nextLine(r *bufio.Reader) (line []byte, more int, err error) {
	line, err = r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			var rest []byte
			rest, err = r.ReadSlice('\n')
			more += len(rest)
		}
	}
	if len(line) > 0 {
		err = nil // an error, the end too, comes again with the next line
	}
	return line, more, err
}

// binary reports whether the file that r is at the beginning of is no text, by
// git's rule: a zero byte among the first 8,000.
func binary(r *bufio.Reader) bool {
	head, _ := r.Peek(8000) // shorter at the end of the file, which is no error here
	return bytes.IndexByte(head, 0) >= 0
}

// listing is an answer of many lines that stops growing when it is long enough.
type listing struct {
	text  strings.Builder
	lines int
}

// maxLines is the most lines of a listing. More helps nobody: the question was
// too wide.
const maxLines = 1000

// add appends a line and reports whether there was room for it.
func (l *listing) add(line string) bool {
	if l.lines == maxLines || l.text.Len()+len(line)+1 > maxText {
		return false
	}
	l.lines++
	l.text.WriteString(line + "\n")
	return true
}

// answer returns the lines, or that there are none.
func (l *listing) answer(full bool) string {
	switch {
	case full:
		return fmt.Sprintf("%s[the first %d matches; there are more: narrow the search]", l.text.String(), l.lines)
	case l.lines == 0:
		return "(no matches)"
	}
	return strings.TrimSuffix(l.text.String(), "\n")
}
