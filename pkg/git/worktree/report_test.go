package worktree

import (
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/team"
)

// Whatever was returned, the next holder reads how to see each part of it, the report is bounded, and a
// task's record can have it.
func TestReport(t *testing.T) {
	o := mergequeue.Outcome{Kind: mergequeue.Conflicting, Head: gitrepo.Hash(strings.Repeat("a", 40)), Base: gitrepo.Hash(strings.Repeat("b", 40)), Commit: gitrepo.Hash(strings.Repeat("c", 40)),
		Agent: "coder-2", Title: "Mine", Summary: "Mine", Reason: "it conflicts with the line in it's.txt and 299 more"}
	small := "@@ -1 +1 @@\n-a\x1b[31m\xff\n+b\n"
	large := "@@ -1 +1 @@\n" + strings.Repeat("+line\n", 2000)
	o.Conflicts = []gitrepo.Conflict{{Path: "it's.txt", Kind: "contents", Ours: small, Theirs: large}, {Path: "min.js", Kind: "contents", Ours: "diff --git\n", Theirs: small, Cut: true}}
	for n := range 298 {
		o.Conflicts = append(o.Conflicts, gitrepo.Conflict{Path: fmt.Sprintf("a/long/name/of/a/folder/%d.txt", n), Kind: "contents", Ours: small, Theirs: small})
	}
	for n := range 30 {
		o.Since = append(o.Since, mergequeue.Since{Entry: gitrepo.Entry{Commit: o.Head, Task: team.MakeTaskID(n), Agent: "coder-1", Subject: "Theirs"}, Summary: strings.Repeat("why ", 400)})
	}
	for name, o := range map[string]mergequeue.Outcome{
		"many": o,
		"few":  {Kind: o.Kind, Head: o.Head, Base: o.Base, Commit: o.Commit, Agent: o.Agent, Title: o.Title, Reason: o.Reason, Conflicts: o.Conflicts[:2], Since: o.Since[29:]},
		"long": {Kind: o.Kind, Head: o.Head, Base: o.Base, Commit: o.Commit, Agent: o.Agent, Title: o.Title, Reason: "the check fails: " + strings.Repeat("x", 1<<16), Conflicts: o.Conflicts[:2], Since: o.Since[29:]},
	} {
		got := report("T-001", 3, o)
		if _, err := (team.Task{ID: "T-001", Status: team.InProgress, Assignee: "coder-2", Incarnation: 1}).
			Release(team.Actor{Holder: team.Holder{Agent: "coder-2", Incarnation: 1}}, 0, team.Freed{Reason: got}, o.Since[0].Time); err != nil {
			t.Errorf("%s: no record can have it: %v", name, err)
		}
		if len(got) > 24<<10 {
			t.Errorf("%s: it has %d bytes", name, len(got))
		}
		wants := []string{"returned/T-001/3", string(o.Commit), "of coder-2: Mine\n", small[:13], "⟨U+001B⟩[31m⟨0xFF⟩", "+line\n[more: `git diff bbbbbbbbbb returned/T-001/3 -- 'it'\\''s.txt'`]\n",
			"diff --git\n[more: `git diff bbbbbbbbbb aaaaaaaaaa -- min.js`]\n", "T-029 by coder-1 came into the line meanwhile, as commit aaaaaaaaaa: Theirs - why "}
		if name == "many" {
			wants = append(wants, "In conflict (300): it's.txt (contents) min.js (contents) a/long/name", " more: `git grep -l '^<<<<<<< '`\n",
				"The differences of 290 more files: `git diff bbbbbbbbbb aaaaaaaaaa` and `git diff bbbbbbbbbb returned/T-001/3`", "20 tasks came into the line before these: `git log bbbbbbbbbb..aaaaaaaaaa`")
		} else {
			wants = append(wants, strings.Repeat("+line\n", 1200)) // as much of it as there is room for
		}
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in it:\n%.3000s", name, want, got)
			}
		}
	}
	checked := report("T-001", 3, mergequeue.Outcome{Kind: mergequeue.CheckFailed, Commit: o.Commit, Reason: "the check fails", Output: "first\n" + strings.Repeat("\x1b[0mx\n", 5000) + "last\n"})
	if len(checked) > 6<<10 || !strings.Contains(checked, "first\n") || !strings.Contains(checked, "last\n") || !strings.Contains(checked, "bytes are left out") {
		t.Errorf("of a check: %s", checked)
	}
}
