package patch

import (
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// Apply returns the content of the file after the patch; text is what it has. Lines that the patch does not replace
// stay byte for byte, and new ones get the line end of the line before. Errors: Conflict, naming hunk and file, if the
// lines of a hunk are not there.
func (f File) Apply(text string) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var b strings.Builder
	at, ending, open := 0, "\n", false // the lines before at are done; open: the last one that was written has no end
	write := func(line string) {
		if open {
			b.WriteString(ending)
		}
		b.WriteString(line)
		open = !strings.HasSuffix(line, "\n")
	}
	for i, c := range f.chunks {
		from, err := c.place(lines, at)
		if last := len(c.lines) - 1; err != nil && c.lines[last] == " " { // an empty line before the next heading
			c.lines = c.lines[:last]
			from, err = c.place(lines, at)
		}
		if err != nil {
			return "", team.Errorf(team.Conflict, "hunk %d of %s: %w", i+1, f.Path, err).WithHint("read the file again; nothing was changed in any file of the patch")
		}
		for ; at < from; at++ {
			write(lines[at])
		}
		if near := max(at, 1) - 1; near < len(lines) && strings.HasSuffix(lines[near], "\r\n") {
			ending = "\r\n"
		}
		for _, line := range c.lines {
			switch line[0] {
			case '+':
				write(line[1:] + ending)
				continue
			case ' ':
				write(lines[at])
			}
			at++
		}
	}
	for ; at < len(lines); at++ {
		write(lines[at])
	}
	return b.String(), nil
}

// place returns the index of the first line that the chunk replaces, not before at.
func (c chunk) place(lines []string, at int) (int, error) {
	for _, b := range c.below {
		i := find(lines, []string{b}, at)
		if i < 0 {
			return 0, team.Errorf(team.Conflict, "no line from %d on is %.100q", at+1, b)
		}
		at = i + 1
	}
	var old []string
	for _, line := range c.lines {
		if line[0] != '+' {
			old = append(old, line[1:])
		}
	}
	switch {
	case len(old) == 0 && len(c.below) > 0 && !c.atEnd:
		return at, nil
	case len(old) == 0:
		return len(lines), nil
	case c.atEnd:
		at = max(at, len(lines)-len(old))
	}
	if i := find(lines, old, at); i >= 0 {
		return i, nil
	}
	return 0, team.Errorf(team.Conflict, "its %d old lines are not in the file from line %d on; the first is %.100q", len(old), at+1, old[0])
}

// find returns the first place of want in lines from at on; -1 if there is none. Models lose blanks: lines that are
// equal come first, then those that differ in blanks at their end, then those that differ at both ends.
func find(lines, want []string, at int) int {
	for _, plain := range []func(string) string{
		func(s string) string { return strings.TrimRight(s, "\r\n") },
		func(s string) string { return strings.TrimRight(s, " \t\r\n") },
		strings.TrimSpace,
	} {
		for i := at; i+len(want) <= len(lines); i++ {
			if slices.EqualFunc(lines[i:i+len(want)], want, func(a, b string) bool { return plain(a) == plain(b) }) {
				return i
			}
		}
	}
	return -1
}
