package projectcontext

import (
	"regexp"
	"strings"
)

var (
	imports = regexp.MustCompile("(?:^|\\s)@([^\\s@`]+)") // an @ at the beginning of a word
	// coded are blocks and spans of code, and comments.
	coded = regexp.MustCompile("(?ms)^[ \t]*```.*?(^[ \t]*```+[ \t]*$|\\z)|^[ \t]*~~~.*?(^[ \t]*~~~+[ \t]*$|\\z)|``[^\n]*?``|`[^`\n]*`|<!--.*?(-->|\\z)")
)

// importsIn returns the paths that a text of Markdown imports by "@path", in their order. In code
// and in comments nothing is imported.
func importsIn(text string) (paths []string) {
	for line := range strings.Lines(coded.ReplaceAllString(text, "_")) {
		for _, m := range imports.FindAllStringSubmatch(line, -1) {
			if path := strings.TrimRight(m[1], `.,;:!?)"'*_`); path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
