package workspace

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"agentteam/pkg/team"
)

// The bounds of a diff in a result. The model has written most of it in the call, so it is
// shown little: where the change is, and what stood there.
const (
	maxDiffed    = 512 << 10 // bytes of a file; of a larger one there is none
	maxDiff      = 3000      // bytes
	maxDiffLine  = 200       // characters
	diffContext  = 1         // lines around a change
	diffHeadings = 2         // lines with file names, which are known
)

// diff is the change of a text as hunks of a unified diff, on lines behind what is said
// of it; "" if there is none, or it is of a large file.
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
