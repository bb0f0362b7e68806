package workspace

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

const editDescription = `Replace old_string by new_string in a file. old_string must match exactly, including whitespace, and occur once; otherwise add surrounding lines or set replace_all. Refused if the file has changed since you read it.`

// maxEdit bounds the memory of an edit; larger files are not source text.
const maxEdit = 10 << 20

type editArgs struct {
	Path string `json:"path"`
	replacement
	Edits []replacement `json:"edits,omitempty"` // instead of the one above; all or none
	Patch string        `json:"patch,omitempty"` // instead of all of these; see package patch
}

// replacement is one change of a file.
type replacement struct {
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// check returns an error if r replaces nothing.
func (r replacement) check() error {
	switch r.OldString {
	case "":
		return team.Errorf(team.InvalidArgument, "old_string: empty").WithHint("write_file makes a new file")
	case r.NewString:
		return team.Errorf(team.InvalidArgument, "new_string: the same as old_string")
	}
	return nil
}

// all returns the replacements of a call, in order.
func (in editArgs) all() []replacement {
	if len(in.Edits) > 0 {
		return in.Edits
	}
	return []replacement{in.replacement}
}

// edit is the tool edit_file. Errors: not_found (no such file), permission_denied, unavailable; conflict if old_string
// is not in the file, which then differs from what the agent knows, or if the file changed during the edit;
// invalid_argument if old_string is ambiguous, empty or the same as new_string, or the file is not regular or too
// large.
func (w *Workspace) edit(ctx context.Context, in editArgs) (tool.Output, error) {
	if in.Patch != "" {
		if in.Path != "" {
			return tool.Output{}, team.Errorf(team.InvalidArgument, "patch: given together with path").WithHint("the patch names its files")
		}
		return w.patch(ctx, in.Patch)
	}
	name, err := w.local(in.Path)
	if err != nil {
		return tool.Output{}, err
	}
	w.editing.Lock()
	defer w.editing.Unlock()
	text, seen, err := w.readWhole(name)
	if err != nil {
		return tool.Output{}, err
	}
	if err := w.fresh(name, seen, false); err != nil {
		return tool.Output{}, err
	}
	changed, n, err := substitute(text, in)
	if err != nil {
		return tool.Output{}, err
	}
	change := w.keeps(ctx, name, seen, text, true)
	if err := w.replace(name, []byte(changed), seen); err != nil {
		return tool.Output{}, err
	}
	change.note(ctx, changed)
	return tool.Output{Value: fmt.Sprintf("replaced %d in %s", n, name) + diff(text, changed) + w.onEdit(ctx, name), Effects: w.touched(name)}, nil
}

func (w *Workspace) readWhole(name string) (string, fs.FileInfo, error) {
	f, info, err := w.openRegular(name)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1)) // it may grow meanwhile
	switch {
	case err != nil:
		return "", nil, w.coded(name, err)
	case len(data) > maxEdit:
		return "", nil, team.Errorf(team.InvalidArgument, "%s is %d bytes long, edit_file takes %d", name, max(info.Size(), maxEdit+1), maxEdit).WithHint("use bash, e.g. sed -i")
	}
	return string(data), info, nil
}

// substitute returns text with in's replacements, and their number. Error: that of the first replacement that fails;
// then none is made.
func substitute(text string, in editArgs) (changed string, n int, err error) {
	changed = text
	for i, r := range in.all() {
		var times int
		if err = r.check(); err == nil {
			changed, times, err = r.in(changed, in.Path)
		}
		switch {
		case err != nil && len(in.Edits) > 0:
			return "", 0, team.Errorf(team.CodeOf(err), "edits[%d]: %w; none of the %d was done", i, err, len(in.Edits)).WithHint("%s", team.ModelHintOf(err))
		case err != nil:
			return "", 0, err
		}
		n += times
	}
	return changed, n, nil
}

// in returns text with the replacement, and how often it was made. Models write \n: the two kinds of line ends match
// each other, and new lines get the ends of their place. A replacement that changes only line ends is taken as written.
func (r replacement) in(text, path string) (string, int, error) {
	l := linesOf(text)
	before, after := lf(r.OldString), lf(r.NewString)
	places := l.find(before)
	if exact := l.exact(places, r.OldString); before == after || !r.ReplaceAll && len(exact) == 1 {
		places = exact
	}
	n := len(places)
	switch {
	case n == 0:
		return "", 0, team.Errorf(team.Conflict, "old_string: not in %s", path).
			WithHint("read the file again; blanks and indentation count")
	case n > 1 && !r.ReplaceAll:
		return "", 0, team.Errorf(team.InvalidArgument, "old_string: %d times in %s", n, path).
			WithHint("give more of the text around it, or set replace_all")
	}
	var b strings.Builder
	at := 0
	for _, p := range places {
		b.WriteString(text[at:l.in(p)])
		if at = l.in(p + len(before)); before == after {
			b.WriteString(r.NewString)
		} else {
			b.WriteString(l.fit(p, before, after, r.NewString))
		}
		if b.Len()+len(text)-at > maxEdit { // before it takes the memory
			return "", 0, team.Errorf(team.InvalidArgument, "new_string: it would make %s longer than the %d bytes that edit_file takes", path, maxEdit)
		}
	}
	b.WriteString(text[at:])
	return b.String(), n, nil
}
