// Package patch reads patches in the format of the tool apply_patch, which some models are trained on, and computes the
// content of a file from its hunks. It opens no file: package tool/workspace does.
package patch

import (
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// File is what a patch does with one file.
type File struct {
	Path   string
	New    bool   // it is made, with Text
	Gone   bool   // it is deleted
	To     string // its new path; "" if it keeps its path
	Text   string
	chunks []chunk
}

// chunk is one hunk: lines that replace others, below a line that names the place.
type chunk struct {
	below []string // lines that come before, in order
	lines []string // each after a blank (it stays), - or +
	atEnd bool     // the old ones are the last lines of the file
}

// The lines of the format.
const (
	begin  = "*** Begin Patch"
	end    = "*** End Patch"
	add    = "*** Add File: "
	update = "*** Update File: "
	remove = "*** Delete File: "
	move   = "*** Move to: "
	ends   = "*** End of File"
)

// Parse reads a patch; what comes before its first line and after its last, such as the words of a shell, is left out.
// Errors: InvalidArgument, naming the line.
func Parse(text string) (files []File, err error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	from := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == begin })
	if from < 0 {
		return nil, team.Errorf(team.InvalidArgument, "patch: no line is %q", begin)
	}
	for i, line := range lines[from+1:] {
		wrong := func(what string) error {
			return team.Errorf(team.InvalidArgument, "patch: line %d, %.100q: %s", from+i+2, line, what)
		}
		var now *File
		if len(files) > 0 {
			now = &files[len(files)-1]
		}
		switch {
		case strings.TrimSpace(line) == end:
			return files, complete(files)
		case isHead(line):
			if err := complete(files); err != nil {
				return nil, err
			}
			f := head(line)
			for _, other := range files {
				if other.Path == f.Path {
					return nil, wrong("the patch names this file twice; put all its hunks below one heading")
				}
			}
			files = append(files, f)
		case now == nil:
			return nil, wrong("want " + update + "PATH, " + add + "PATH or " + remove + "PATH")
		case now.Gone:
			return nil, wrong("nothing follows the path of a deleted file")
		case now.New:
			content, ok := strings.CutPrefix(line, "+")
			if !ok {
				return nil, wrong("each line of an added file begins with +")
			}
			now.Text += content + "\n"
		case strings.HasPrefix(line, move) && now.To == "" && len(now.chunks) == 0:
			now.To = strings.TrimSpace(line[len(move):])
		default:
			if !now.take(line) {
				return nil, wrong("a line of a hunk begins with a blank, - or +, and a hunk with @@")
			}
		}
	}
	return nil, team.Errorf(team.InvalidArgument, "patch: it ends without %q", end).WithHint("it may be cut; nothing was changed")
}

func isHead(line string) bool {
	return strings.HasPrefix(line, add) || strings.HasPrefix(line, update) || strings.HasPrefix(line, remove)
}

func head(line string) File {
	_, path, _ := strings.Cut(line, ": ")
	return File{Path: strings.TrimSpace(path), New: strings.HasPrefix(line, add), Gone: strings.HasPrefix(line, remove)}
}

// complete returns an error if the last of the files has no change.
func complete(files []File) error {
	if len(files) == 0 {
		return nil
	}
	f := files[len(files)-1]
	if !f.New && !f.Gone && f.To == "" && len(f.chunks) == 0 {
		return team.Errorf(team.InvalidArgument, "patch: %s has no hunk", f.Path)
	}
	for i, c := range f.chunks {
		if len(c.lines) == 0 {
			return team.Errorf(team.InvalidArgument, "patch: hunk %d of %s has no line", i+1, f.Path)
		}
	}
	return nil
}

// take reads a line of a hunk, and reports whether it is one.
func (f *File) take(line string) bool {
	if place, ok := strings.CutPrefix(line, "@@"); ok {
		last := len(f.chunks) - 1
		if last < 0 || len(f.chunks[last].lines) > 0 {
			f.chunks, last = append(f.chunks, chunk{}), last+1
		}
		if _, heading, unified := strings.Cut(place, "@@"); unified { // @@ -1,3 +1,4 @@ heading
			place = heading
		}
		if place = strings.TrimSpace(place); place != "" {
			f.chunks[last].below = append(f.chunks[last].below, place)
		}
		return true
	}
	if len(f.chunks) == 0 { // the first hunk may come without its heading
		f.chunks = []chunk{{}}
	}
	c := &f.chunks[len(f.chunks)-1]
	if line == ends {
		c.atEnd = true
		return true
	}
	if line == "" { // an empty line that has lost its blank
		line = " "
	}
	c.lines = append(c.lines, line)
	return strings.ContainsAny(line[:1], " -+")
}
