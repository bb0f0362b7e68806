package workspace

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"agentteam/pkg/team"
)

const editDescription = `Replace old_string by new_string in a file. old_string must match exactly, including whitespace, and occur once; otherwise add surrounding lines or set replace_all. Refused if the file has changed since you read it.`

// maxEdit bounds the memory of an edit; larger files are not source text.
const maxEdit = 10 << 20

type editArgs struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// edit is the tool edit_file. Errors: not_found (no such file),
// permission_denied, unavailable; conflict if old_string is not in the file,
// whose content then is not what the agent believes, or if the file changed
// during the edit; invalid_argument if old_string is ambiguous, empty or the
// same as new_string, or the file is no regular one or too large.
func (w *Workspace) edit(_ context.Context, in editArgs) (any, error) {
	switch in.OldString {
	case "":
		return nil, team.Errorf(team.InvalidArgument, "old_string: empty").WithHint("write_file makes a new file")
	case in.NewString:
		return nil, team.Errorf(team.InvalidArgument, "new_string: the same as old_string")
	}
	name, err := w.local(in.Path)
	if err != nil {
		return nil, err
	}
	w.editing.Lock()
	defer w.editing.Unlock()
	text, seen, err := w.readWhole(name)
	if err != nil {
		return nil, err
	}
	if err := w.fresh(name, seen, false); err != nil {
		return nil, err
	}
	text, n, err := substitute(text, in)
	if err != nil {
		return nil, err
	}
	if err := w.replace(name, []byte(text), seen); err != nil {
		return nil, err
	}
	return fmt.Sprintf("replaced %d in %s", n, name), nil
}

func (w *Workspace) readWhole(name string) (string, fs.FileInfo, error) {
	f, info, err := w.openRegular(name)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if info.Size() > maxEdit {
		return "", nil, team.Errorf(team.InvalidArgument, "%s is %d bytes long, edit_file takes %d", name, info.Size(), maxEdit).WithHint("use bash, e.g. sed -i")
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return "", nil, w.coded(name, err)
	}
	return string(data), info, nil
}

// substitute returns text with in's replacement done and how often it was.
func substitute(text string, in editArgs) (string, int, error) {
	before, after := in.OldString, in.NewString
	if lines := strings.Count(text, "\n"); lines > 0 && lines == strings.Count(text, "\r\n") {
		// Models write \n; such a file must neither be missed nor get mixed ends.
		before, after = crlf(before), crlf(after)
	}
	n := strings.Count(text, before)
	switch {
	case n == 0:
		return "", 0, team.Errorf(team.Conflict, "old_string: not in %s", in.Path).
			WithHint("read the file again; blanks and indentation count")
	case n > 1 && !in.ReplaceAll:
		return "", 0, team.Errorf(team.InvalidArgument, "old_string: %d times in %s", n, in.Path).
			WithHint("give more of the text around it, or set replace_all")
	}
	return strings.ReplaceAll(text, before, after), n, nil
}

func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}
