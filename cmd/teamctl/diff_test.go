package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// On a terminal a difference has our colours, and of what files have in them nothing moves the
// cursor or writes the title.
func TestPaintedDiff(t *testing.T) {
	const diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ head\n same \x1b[2J\n--- gone\n+++ came \x1b]0;title\a\r\n+\u202etxet\n\\ No newline at end of file\n" +
		"\n9f T-002: next\n\ndiff --git a/y b/y\n"
	var out bytes.Buffer
	painted(&out, diff)
	want := []string{
		"\x1b[1mdiff --git a/x b/x\x1b[m", "\x1b[1mindex 1..2 100644\x1b[m", "\x1b[1m--- a/x\x1b[m", "\x1b[1m+++ b/x\x1b[m", "\x1b[36m@@ -1,3 +1,3 @@ head\x1b[m",
		" same ⟨U+001B⟩[2J", "\x1b[31m--- gone\x1b[m", "\x1b[32m+++ came ⟨U+001B⟩]0;title⟨U+0007⟩⟨U+000D⟩\x1b[m", "\x1b[32m+⟨U+202E⟩txet\x1b[m", `\ No newline at end of file`,
		"", "9f T-002: next", "", "\x1b[1mdiff --git a/y b/y\x1b[m",
	}
	if got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("it is\n%q, want\n%q", got, want)
	}
	if plain := ansi.Strip(out.String()); strings.ContainsAny(plain, "\x1b\a\r") {
		t.Errorf("without our colours it is %q", plain)
	}
}

// The end of a run tells of some files, and of all by their sum.
func TestEndOfLine(t *testing.T) {
	var stat strings.Builder
	for i := range 30 {
		fmt.Fprintf(&stat, " f%02d.txt | 1 +\n", i)
	}
	stat.WriteString(" 30 files changed, 30 insertions(+)\n create mode 100644 f00.txt\n")
	for name, tt := range map[string]struct {
		end  *branchEnd
		want []string
		not  string
	}{
		"shared":  {nil, nil, "\n"},
		"nothing": {&branchEnd{take: "teamctl land"}, nil, "\n"},
		"many":    {&branchEnd{Commits: 3, stat: stat.String(), take: "teamctl land"}, []string{" f19.txt | 1 +\n and 10 more\n 30 files changed, 30 insertions(+)\nto take it over: teamctl land\n"}, "f20"},
		"landed":  {&branchEnd{Commits: 1, stat: " a\x1b[2J | 1 +\n 1 file changed\n", Landed: true, Head: "0123456789abcdef"}, []string{" a[2J | 1 +\n 1 file changed\nlanded: your checkout is at 0123456789\n"}, "take"},
	} {
		var out strings.Builder
		tt.end.write(&out)
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q lacks %q", name, out.String(), want)
			}
		}
		if strings.Contains(out.String(), tt.not) {
			t.Errorf("%s: %q has %q", name, out.String(), tt.not)
		}
	}
}
