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

// maxText bounds the bytes of an answer, so that its last line, which states what was left out, fits into a result.
const maxText = tool.MaxContent - 512

// cancellable is a reader that ends with its context, so that a call on a large file can be cancelled.
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

// nextLine returns the next line with its end, up to the size of r's buffer, and how many more bytes it had; after the
// last line io.EOF. So a file of one huge line takes no more memory than any other. The line is valid until the next
// read of r.
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

// binary reports whether the file at whose beginning r stands is binary, by git's rule: a zero byte among the first
// 8,000.
func binary(r *bufio.Reader) bool {
	head, _ := r.Peek(8000) // shorter at the end of the file, which is no error here
	return bytes.IndexByte(head, 0) >= 0
}

// listing is an answer of many lines that stops growing when it is long enough.
type listing struct {
	text  strings.Builder
	lines int
}

// maxLines bounds the lines of a listing. With more, the search was too wide.
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

// answer returns the lines, or a note that there are none.
func (l *listing) answer(full bool) string {
	switch {
	case full:
		return fmt.Sprintf("%s[the first %d matches; there are more: narrow the search]", l.text.String(), l.lines)
	case l.lines == 0:
		return "(no matches)"
	}
	return strings.TrimSuffix(l.text.String(), "\n")
}
