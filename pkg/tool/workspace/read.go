package workspace

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
)

const readDescription = `Read an image or a text file, 2,000 lines or 64 KB at most; a cut answer says where to continue. A path "stored:..." reads a text that was too large to be shown whole. Read a file before you edit it.`

// defaultLines is the default number of lines of read_file.
const defaultLines = 2000

// storedWithin limits the time to fetch a stored text: the server may be away.
const storedWithin = time.Minute

var errStoredAway = team.Errorf(team.Unavailable, "the stored text did not come within %v", storedWithin).WithHint("try again")

type readArgs struct {
	Path   string `json:"path" jsonschema:"a file, or stored:..."`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines (default 2000)"`
}

// read is the tool read_file. Errors: not_found, permission_denied, invalid_argument (not a regular text file; an
// offset behind the end; a malformed reference), unavailable.
func (w *Workspace) read(ctx context.Context, in readArgs) (tool.Output, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "offset and limit: %d and %d, want 1 or more", in.Offset, in.Limit)
	}
	if blob.IsRef(in.Path) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, storedWithin, errStoredAway)
		defer cancel()
	}
	src, err := w.input(ctx, in.Path)
	if err != nil {
		return tool.Output{}, err
	}
	defer src.Close()
	r := bufio.NewReaderSize(cancellable{ctx, src}, maxText)
	if kind := imageType(r); kind != "" {
		return picture(r, src.name, kind)
	}
	if binary(r) {
		err := team.Errorf(team.InvalidArgument, "%s is binary", src.name)
		if src.look != "" {
			err = err.WithHint("%s", src.look)
		}
		return tool.Output{}, err
	}
	first := cmp.Or(in.Offset, 1)
	last := first + cmp.Or(in.Limit, defaultLines) - 1
	text, err := readLines(r, src, first, last)
	out := tool.Output{Value: text}
	if !blob.IsRef(in.Path) {
		out.Effects = w.touched(src.name)
	}
	return out, err
}

// readLines returns the lines from first to last, as far as they fit into an answer.
func readLines(r *bufio.Reader, src *input, first, last int) (string, error) {
	var text strings.Builder
	for n := 1; ; n++ {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			switch {
			case n == 1 && first == 1:
				return "[the file is empty]", nil
			case n <= first:
				return "", team.Errorf(team.InvalidArgument, "offset: %d, but %s has %d lines", first, src.name, n-1)
			}
			return text.String(), nil
		}
		if n > last { // before the next line is read: it may be gigabytes long
			return goOn(&text, n), nil
		}
		line, more, err := src.next(r)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", src.name, reason(err))
		case n < first:
			continue
		case text.Len()+len(line) > maxText: // never the first: a line is at most that long
			return goOn(&text, n), nil
		}
		text.Write(line)
		if more > 0 {
			fmt.Fprintf(&text, "\n[line %d has %d bytes more: use bash to see them]\n", n, more)
		}
	}
}

// goOn returns the answer with text that ends before a line.
func goOn(text *strings.Builder, line int) string {
	if !strings.HasSuffix(text.String(), "\n") { // a piece of a long line of a stored text
		text.WriteByte('\n')
	}
	fmt.Fprintf(text, "[cut: go on with offset %d]", line)
	return text.String()
}
