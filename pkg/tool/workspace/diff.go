package workspace

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"agentteam/pkg/team"
)

// The bounds of a diff in a result. The model wrote most of it, so the diff shows only the place of the change and the
// old text.
const (
	maxDiffed    = 512 << 10 // bytes of a file; of a larger one there is none
	maxDiff      = 3000      // bytes
	maxDiffLine  = 200       // characters
	diffContext  = 1         // lines around a change
	diffHeadings = 2         // lines with file names, which are known
)

// diff returns the change of a text as hunks of a unified diff, after a line end; "" if there is no change, or the file
// is large.
func diff(old, now string) string {
	if old == now || len(old) > maxDiffed || len(now) > maxDiffed {
		return ""
	}
	text, err := udiff.ToUnified("", "", old, udiff.Lines(old, now), diffContext)
	if err != nil { // the edits are those of this text
		return ""
	}
	var b strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")[diffHeadings:]
	for i, line := range lines {
		line = team.Clean(line, maxDiffLine)
		if b.Len()+len(line) > maxDiff {
			fmt.Fprintf(&b, "\n[%d more lines of the diff]", len(lines)-i)
			break
		}
		b.WriteString("\n" + line)
	}
	return b.String()
}
