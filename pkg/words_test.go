package pkg

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const wordList = "testdata/words.txt"

// TestPlainWords counts the words of testdata/words.txt in the comments of the code and the
// prose of the docs. A count may only become smaller: new text uses the plainer word. The
// counts are rounded up to tens, so that one that moves costs nothing; UPDATE_WORDS=1 lowers
// them.
func TestPlainWords(t *testing.T) {
	list, err := os.ReadFile(wordList)
	if err != nil {
		t.Fatal(err)
	}
	text := prose(t)
	var lowered strings.Builder
	for line := range strings.Lines(string(list)) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			lowered.WriteString(line)
			continue
		}
		most, err := strconv.Atoi(fields[1])
		word, bad := regexp.Compile(`(?i)\b(?:` + fields[0] + `)\b`)
		if err != nil || bad != nil {
			t.Fatalf("%s: %q: %v %v", wordList, line, err, bad)
		}
		n := len(word.FindAllStringIndex(text, -1))
		if n > most {
			t.Errorf("%q is there %d times, at most %d: write %s\n%s", fields[0], n, most, fields[2], added(word))
		}
		fmt.Fprintf(&lowered, "%s\t%d\t%s\n", fields[0], min(most, (n+9)/10*10), fields[2])
	}
	if os.Getenv("UPDATE_WORDS") != "" {
		if err := os.WriteFile(wordList, []byte(lowered.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// prose returns all comments of the code, without those of tests, and the docs without code.
func prose(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, group := range f.Comments {
			b.WriteString(group.Text())
		}
	}
	for _, p := range pages(t) {
		for _, line := range p.lines {
			b.WriteString(span.ReplaceAllString(line, "") + "\n")
		}
	}
	return b.String()
}

// added returns the lines with the word that this tree has and main has not.
func added(word *regexp.Regexp) string {
	root, err := filepath.Abs("..")
	if err != nil {
		return ""
	}
	diff := exec.Command("git", "diff", "-U0", "--no-color", "main", "--", "*.go", "*.md")
	diff.Dir = root
	out, err := diff.Output()
	if err != nil {
		return "see what you have added: " + err.Error()
	}
	var b strings.Builder
	for line := range bytes.Lines(out) {
		if line[0] == '+' && word.Match(line) {
			fmt.Fprintf(&b, "\t%s", line)
		}
	}
	return b.String()
}
