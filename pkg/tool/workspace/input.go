package workspace

import (
	"bufio"
	"context"
	"io"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
)

// input is the source of read_file: a file of the workspace or a stored text.
type input struct {
	io.ReadCloser
	name string
	next func(*bufio.Reader) (line []byte, more int, err error) // as nextLine
	look string                                                 // what to do if it is binary; "" if nothing can be
}

// input opens the file or text at path; the caller closes it.
func (w *Workspace) input(ctx context.Context, path string) (*input, error) {
	if blob.IsRef(path) {
		return w.storedText(ctx, path)
	}
	name, err := w.local(path)
	if err != nil {
		return nil, err
	}
	f, info, err := w.openRegular(name)
	if err != nil {
		w.know(name, nil) // what is gone may be made anew
		return nil, err
	}
	w.know(name, info)
	return &input{f, name, nextLine, "look at it with bash, e.g. file or xxd"}, nil
}

func (w *Workspace) storedText(ctx context.Context, ref string) (*input, error) {
	if w.o.Stored == nil {
		return nil, team.Errorf(team.NotFound, "there are no stored texts here, so there is no %.100s", ref)
	}
	r, err := w.o.Stored(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &input{r, ref, nextStoredLine, ""}, nil
}

// nextStoredLine is nextLine for a stored text: it splits a long line into lines, since bash cannot show the rest of
// it.
func nextStoredLine(r *bufio.Reader) (line []byte, more int, err error) {
	ahead, err := r.Peek(blob.MaxLine + 1)
	n := blob.LineLen(ahead)
	if n == 0 {
		return nil, 0, err
	}
	_, err = r.Discard(n) // of what is buffered: never fails
	return ahead[:n], 0, err
}
