package place

import (
	"regexp"
	"strings"
)

// importsIn returns the paths that a text of Markdown imports by "@path", in their order. In code
// and in comments nothing is imported.
func importsIn(text string) (paths []string) {
	fence, comment, code, blank := "", false, false, true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		in := strings.TrimLeft(line, " \t")
		indent := len(strings.ReplaceAll(line[:len(line)-len(in)], "\t", "    "))
		if mark := fenceOf(in); fence == "" && mark != "" && indent < 4 {
			fence = mark
			continue
		} else if fence != "" {
			if mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && strings.Trim(in, mark[:1]+" ") == "" {
				fence = ""
			}
			continue
		}
		if in == "" {
			blank = true
			continue
		}
		code = indent >= 4 && (blank || code)
		if blank = false; code {
			continue
		}
		line, comment = uncommented(line, comment)
		for _, m := range importPattern.FindAllStringSubmatch(uncoded(line), -1) {
			if path := strings.TrimRight(m[1], `.,;:!?)"'*_`); path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// importPattern finds an import: an @ at the beginning of a word.
var importPattern = regexp.MustCompile(`(?:^|\s)@([^\s@` + "`" + `]+)`)

// fenceOf returns the marks with which a line begins or ends a block of code; "" if it does not.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, mark))
		if n >= 3 && (mark == "~" || !strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// uncommented returns a line without what is in HTML comments; open reports whether one has begun
// in a line before, and then whether one is open behind it.
func uncommented(line string, open bool) (rest string, still bool) {
	for {
		if open {
			_, after, closed := strings.Cut(line, "-->")
			if !closed {
				return rest, true
			}
			line, open = after, false
		}
		before, after, begun := strings.Cut(line, "<!--")
		if rest += before; !begun {
			return rest, false
		}
		line, open = after, true
	}
}

// uncoded returns a line with a blank in place of each span of code.
func uncoded(line string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			return b.String() + line
		}
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		b.WriteString(line[:i])
		rest := line[i+n:]
		end := spanEnd(rest, n)
		if end < 0 { // no span: the marks are letters
			b.WriteString("_")
			line = rest
			continue
		}
		b.WriteString("_")
		line = rest[end:]
	}
}

// spanEnd returns where a span of code ends that was begun by n marks; -1 if it does not end.
func spanEnd(s string, n int) int {
	for at := 0; at < len(s); {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return -1
		}
		at += i
		k := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if at += k; k == n {
			return at
		}
	}
	return -1
}
