package workspace

import (
	"bufio"
	"cmp"
	"context"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

const (
	globDescription = `Find files and folders by name, one a line. * is anything but /, ** any folders, {a,b} either. What .gitignore names is left out, unless path lies in it.`
	grepDescription = `Search the contents of text files for a regular expression (RE2). Returns lines "path:line:text". What .gitignore names is left out, unless path lies in it.`
)

// maxMatch is how many bytes of a matching line grep shows: minified code has
// lines of megabytes.
const maxMatch = 500

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go"`
	Path    string `json:"path,omitempty" jsonschema:"folder (default: the workspace)"`
}

// glob is the tool glob. Errors: not_found, permission_denied, invalid_argument
// (a malformed pattern, a path that is no folder), unavailable.
func (w *Workspace) glob(ctx context.Context, in globArgs) (tool.Output, error) {
	if in.Pattern == "" || !doublestar.ValidatePattern(in.Pattern) {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "pattern: %q is malformed", in.Pattern)
	}
	// Searched from the last folder that the pattern names outright.
	base, pattern := doublestar.SplitPattern(path.Clean(in.Pattern))
	if !path.IsAbs(base) {
		base = path.Join(cmp.Or(in.Path, "."), base)
	}
	start, err := w.local(base)
	if err != nil {
		return tool.Output{}, err
	}
	depth := strings.Count(pattern, "/")
	if strings.Contains(pattern, "**") {
		depth = -1
	}
	var found listing
	full := false
	left, err := w.walk(ctx, start, func(name string, d fs.DirEntry) error {
		if name == start {
			if !d.IsDir() {
				return team.Errorf(team.InvalidArgument, "%s is not a folder", name)
			}
			return nil
		}
		below := below(start, name)
		line := name
		if d.IsDir() {
			line += "/"
		}
		switch {
		case doublestar.MatchUnvalidated(pattern, below) && !found.add(line):
			full = true
			return fs.SkipAll
		case d.IsDir() && depth >= 0 && strings.Count(below, "/") >= depth:
			return fs.SkipDir // nothing deeper can match
		}
		return nil
	})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: found.answer(full) + left}, nil
}

type grepArgs struct {
	Pattern string `json:"pattern" jsonschema:"(?i) at the front ignores case"`
	Path    string `json:"path,omitempty" jsonschema:"folder or file (default: the workspace)"`
	Glob    string `json:"glob,omitempty" jsonschema:"only these files, such as *.go"`
}

// grep is the tool grep. Of a line longer than 64 KiB only the beginning is
// searched. Errors: not_found, permission_denied, invalid_argument (a malformed
// pattern or glob), unavailable.
func (w *Workspace) grep(ctx context.Context, in grepArgs) (tool.Output, error) {
	re, err := regexp.Compile(in.Pattern)
	switch {
	case err != nil:
		return tool.Output{}, team.Errorf(team.InvalidArgument, "pattern: %w", err)
	case in.Pattern == "":
		return tool.Output{}, team.Errorf(team.InvalidArgument, "pattern: empty")
	case !doublestar.ValidatePattern(in.Glob):
		return tool.Output{}, team.Errorf(team.InvalidArgument, "glob: %q is malformed", in.Glob)
	}
	start, err := w.local(cmp.Or(in.Path, "."))
	if err != nil {
		return tool.Output{}, err
	}
	s := &search{workspace: w, re: re, r: bufio.NewReaderSize(nil, 64<<10)}
	left, err := w.walk(ctx, start, func(name string, d fs.DirEntry) error {
		switch {
		case name == start && !d.IsDir():
			return s.file(ctx, name) // asked for by name: what is wrong with it is said
		case !d.Type().IsRegular() || !selected(in.Glob, below(start, name)):
			return nil
		}
		if err := s.file(ctx, name); team.CodeOf(err) == "" {
			return err
		}
		return nil // gone or closed to us: files of a shared folder come and go
	})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: s.found.answer(s.full) + left}, nil
}

// search is one grep on its way.
type search struct {
	workspace *Workspace
	re        *regexp.Regexp
	r         *bufio.Reader
	found     listing
	full      bool
}

// file adds the matching lines of a file. It returns fs.SkipAll when the answer
// is full, ctx's error when that is over, and errors with a code for a file that
// cannot be opened.
func (s *search) file(ctx context.Context, name string) error {
	f, _, err := s.workspace.openRegular(name)
	if err != nil {
		return err
	}
	defer f.Close()
	s.r.Reset(cancellable{ctx, f})
	if binary(s.r) {
		return nil
	}
	for n := 1; ; n++ {
		line, _, err := nextLine(s.r)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // the end; a file that cannot be read further ends here too
			return nil
		}
		text := strings.TrimRight(string(line), "\r\n")
		if !s.re.MatchString(text) {
			continue
		}
		if len(text) > maxMatch {
			text = strings.ToValidUTF8(text[:maxMatch], "") + "..."
		}
		if !s.found.add(name + ":" + strconv.Itoa(n) + ":" + text) {
			s.full = true
			return fs.SkipAll
		}
	}
}

// selected reports whether a file is one of those that grep's glob asks for.
func selected(glob, name string) bool {
	switch {
	case glob == "":
		return true
	case !strings.Contains(glob, "/"):
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(glob, name)
}
