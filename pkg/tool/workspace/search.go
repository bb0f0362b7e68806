package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

const (
	globDescription = `Find files and folders by name, one a line. * is anything but /, ** any folders, {a,b} either. What .gitignore names is left out, unless path lies in it.`
	grepDescription = `Search the contents of text files for a regular expression (RE2). Returns lines "path:line:text". What .gitignore names is left out, unless path lies in it.`
)

// maxMatch bounds the bytes of a matching line in grep's answer: minified code has lines of megabytes.
const maxMatch = 500

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go"`
	Path    string `json:"path,omitempty" jsonschema:"folder (default: the workspace)"`
}

// glob is the tool glob. Errors: not_found, permission_denied, invalid_argument (a malformed pattern, a path that is
// not a folder), unavailable.
func (w *Workspace) glob(ctx context.Context, in globArgs) (tool.Output, error) {
	if in.Pattern == "" || !doublestar.ValidatePattern(in.Pattern) {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "pattern: %q is malformed", in.Pattern)
	}
	// The search starts in the last folder that the pattern names literally.
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
	left, err := w.walk(ctx, "glob", start, func(name string, d fs.DirEntry, _ *os.Root) error {
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

// grep is the tool grep. It searches only the beginning of a line over 64 KiB. Errors: not_found, permission_denied,
// invalid_argument (a malformed pattern or glob), unavailable.
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
	s := &search{re: re, literal: []byte(required(in.Pattern)), r: bufio.NewReaderSize(nil, 64<<10)}
	left, err := w.walk(ctx, "grep", start, func(name string, d fs.DirEntry, folder *os.Root) error {
		switch {
		case name == start && !d.IsDir():
			f, info, err := w.openRegular(name)
			if err != nil { // asked for by name: what is wrong with it is said
				return err
			}
			return s.file(ctx, name, f, info.Size())
		case !d.Type().IsRegular() || !selected(in.Glob, below(start, name)):
			return nil
		}
		f, info, err := openEntry(folder, d.Name())
		if err != nil {
			return nil // gone or closed to us: files of a shared folder come and go
		}
		return s.file(ctx, name, f, info.Size())
	})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: s.found.answer(s.full) + left}, nil
}

// search is the state of a call of grep.
type search struct {
	re      *regexp.Regexp
	literal []byte // is in each line that matches; maybe none
	r       *bufio.Reader
	found   listing
	full    bool
}

// file adds the matching lines of a file of size bytes, and closes it. It returns fs.SkipAll when the answer is full,
// and ctx's cause when ctx has ended.
func (s *search) file(ctx context.Context, name string, f *os.File, size int64) error {
	defer f.Close() // it was only read
	s.r.Reset(cancellable{ctx, f})
	if 0 < size && size <= int64(s.r.Size()) {
		if whole, err := s.r.Peek(int(size)); err == nil && !bytes.Contains(whole, s.literal) {
			return nil
		}
	}
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
		case !bytes.Contains(line, s.literal): // much faster than the expression
			continue
		}
		line = bytes.TrimRight(line, "\r\n")
		if !s.re.Match(line) {
			continue
		}
		text := string(line)
		if len(text) > maxMatch {
			text = strings.ToValidUTF8(text[:maxMatch], "") + "..."
		}
		if !s.found.add(name + ":" + strconv.Itoa(n) + ":" + text) {
			s.full = true
			return fs.SkipAll
		}
	}
}

// required returns a text that every match of an expression contains, the longest that is easily found; "" if none is.
func required(expression string) string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	return requiredBy(parsed)
}

func requiredBy(e *syntax.Regexp) (text string) {
	switch {
	case e.Op == syntax.OpLiteral && e.Flags&syntax.FoldCase == 0 && !slices.Contains(e.Rune, utf8.RuneError): // which stands for any fault
		return string(e.Rune)
	case e.Op == syntax.OpCapture, e.Op == syntax.OpPlus, e.Op == syntax.OpRepeat && e.Min > 0, e.Op == syntax.OpConcat:
		for _, sub := range e.Sub {
			if s := requiredBy(sub); len(s) > len(text) {
				text = s
			}
		}
	}
	return text
}

// selected reports whether grep's glob matches a file.
func selected(glob, name string) bool {
	switch {
	case glob == "":
		return true
	case !strings.Contains(glob, "/"):
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(glob, name)
}
