package projectcontext

import (
	"regexp"
	"strings"
)

// importsIn returns the paths that a Markdown text imports by "@path", in their order. Code and comments import nothing.
func importsIn(text string) (paths []string) {
	for line := range strings.Lines(comments.ReplaceAllString(prose(text), "")) {
		for _, m := range imports.FindAllStringSubmatch(uncoded(line), -1) {
			if path := strings.TrimRight(m[1], `.,;:!?)"'*_`); path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

var (
	imports  = regexp.MustCompile("(?:^|\\s)@([^\\s@`]+)") // an @ at the beginning of a word
	comments = regexp.MustCompile(`(?s)<!--.*?(-->|$)`)
	fences   = regexp.MustCompile("^(`{3,}|~{3,})(.*)$")
	marks    = regexp.MustCompile("`+")
)

// prose returns a text without its code blocks.
func prose(text string) string {
	var b strings.Builder
	fence, code, blank := "", false, true
	for line := range strings.Lines(text) {
		in := strings.TrimSpace(line)
		space, _, _ := strings.Cut(line, in)
		deep := len(strings.ReplaceAll(space, "\t", "    ")) >= 4
		m := fences.FindStringSubmatch(in)
		switch {
		case fence != "":
			if m != nil && strings.HasPrefix(m[1], fence) && m[2] == "" {
				fence = ""
			}
		case m != nil && !deep && !(m[1][0] == '`' && strings.Contains(m[2], "`")):
			fence = m[1]
		case in == "":
			blank = true
		default:
			code = deep && (blank || code)
			if blank = false; !code {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// uncoded returns a line with a letter in place of each code span, and of marks that begin none.
func uncoded(line string) string {
	var b strings.Builder
	for {
		begin := marks.FindStringIndex(line)
		if begin == nil {
			return b.String() + line
		}
		b.WriteString(line[:begin[0]] + "_")
		line = line[begin[1]:]
		for _, end := range marks.FindAllStringIndex(line, -1) {
			if end[1]-end[0] == begin[1]-begin[0] {
				line = line[end[1]:]
				break
			}
		}
	}
}
