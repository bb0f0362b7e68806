package workspace

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentteam/pkg/team"
)

const readDescription = `Reads a text file and returns its lines as they are. A longer file is cut; the last line of the answer then says at which offset to go on.`

// defaultLines is how many lines read_file returns if it is not told.
const defaultLines = 2000

type readArgs struct {
	Path   string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to read, counted from 1 (default 1)"`
	Limit  int    `json:"limit,omitempty" jsonschema:"most lines to read (default 2000)"`
}

// read is the tool read_file. Errors: not_found, permission_denied,
// invalid_argument (no regular text file; an offset behind the end), unavailable.
func (w *Workspace) read(ctx context.Context, in readArgs) (any, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return nil, team.Errorf(team.InvalidArgument, "offset and limit: %d and %d, want 1 or more", in.Offset, in.Limit)
	}
	name, err := w.local(in.Path)
	if err != nil {
		return nil, err
	}
	f, _, err := w.openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(cancellable{ctx, f}, maxText)
	if binary(r) {
		return nil, team.Errorf(team.InvalidArgument, "%s is a binary file", name).WithHint("look at it with bash, e.g. file or xxd")
	}
	first := cmp.Or(in.Offset, 1)
	last := first + cmp.Or(in.Limit, defaultLines) - 1
	return readLines(r, name, first, last)
}

// readLines returns the lines from first to last, as many as fit into an answer.
func readLines(r *bufio.Reader, name string, first, last int) (string, error) {
	var text strings.Builder
	for n := 1; ; n++ {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			switch {
			case n == 1 && first == 1:
				return "[the file is empty]", nil
			case n <= first:
				return "", team.Errorf(team.InvalidArgument, "offset: %d, but %s has %d lines", first, name, n-1)
			}
			return text.String(), nil
		}
		if n > last { // before the next line is read: it may be gigabytes long
			return text.String() + goOn(n), nil
		}
		line, more, err := nextLine(r)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", name, reason(err))
		case n < first:
			continue
		case text.Len()+len(line) > maxText: // never the first: a line is at most that long
			return text.String() + goOn(n), nil
		}
		text.Write(line)
		if more > 0 {
			fmt.Fprintf(&text, "\n[line %d has %d bytes more: use bash to see them]\n", n, more)
		}
	}
}

func goOn(line int) string { return fmt.Sprintf("[cut: go on with offset %d]", line) }
