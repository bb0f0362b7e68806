package team_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// A title is one line that can be seen as it was written; spaces around it are not
// part of it.
func TestTitles(t *testing.T) {
	for title, want := range map[string]string{
		"Build it":        "Build it",
		"  Build it \t":   "Build it",
		"Build it\n":      "Build it",
		"\u00a0做 🎯\u3000": "做 🎯",
		"\u0645\u06cc\u200c\u062e 👩\u200d👧": "\u0645\u06cc\u200c\u062e 👩\u200d👧", // joiners are part of words and pictures
		"-":                            "-",
		strings.Repeat("x", 512):       strings.Repeat("x", 512),
		strings.Repeat("x", 512) + " ": strings.Repeat("x", 512),
	} {
		n := team.NewTask{Title: title}
		if err := n.Validate(); err != nil {
			t.Errorf("%q: %v", title, err)
		}
		if got := n.Task("T-001", "leader", at); got.Title != want || strings.Contains(got.DeliverablePath, " ") {
			t.Errorf("%q became %q, %s", title, got.Title, got.DeliverablePath)
		}
		task := must(t)(team.Edit{Title: &title}.Apply(pending(), "leader", at))
		if task.Title != want {
			t.Errorf("%q: edited to %q", title, task.Title)
		}
	}
	for title, want := range map[string]string{
		"":                           "the title is empty",
		" \t\n\u3000":                "the title is empty",
		"\u200b":                     "no visible character",
		" \u200b\u200d\ufeff\u2060 ": "no visible character",
		"\u00ad \u3164 \u2800":       "no visible character",
		"one\ntwo":                   "more than one line",
		"one\u2028two":               "more than one line",
		"one\u2029two":               "more than one line",
		"safe\u202etxt.exe":          "U+202E at byte 5",
		"\u2066x\u2069":              "U+2066 at byte 1",
		"\u200fx":                    "U+200F at byte 1",
		"a\x1b[31m":                  "U+001B at byte 2",
		"a\xff":                      "not valid UTF-8 at byte 2",
		"\ufffda\xff":                "not valid UTF-8 at byte 5",
		strings.Repeat("x", 513):     "the limit is 512",
	} {
		err := team.NewTask{Title: title}.Validate()
		if team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), want) || team.HintOf(err) == "" {
			t.Errorf("%q: %v, hint %q; want %s", title, err, team.HintOf(err), want)
		}
		if _, err := (team.Edit{Title: &title}).Apply(pending(), "leader", at); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("edit to %q: %v", title, err)
		}
	}
}
