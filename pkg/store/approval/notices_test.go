package approval_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// What the plan gate tells an agent, its leader and a person: to be read in
// testdata/notices.txt.
func TestNotices(t *testing.T) {
	var b strings.Builder
	show := func(r *rig, a agent, when string) {
		fmt.Fprintf(&b, "# %s\n", when)
		r.post.mu.Lock()
		for _, m := range r.post.sent {
			fmt.Fprintf(&b, "to %s: %s\n", m.To, m.Content)
		}
		r.post.sent = nil
		r.post.mu.Unlock()
		if err := a.Pass(t.Context(), tool.Request{Called: "write_file"}); err != nil {
			fmt.Fprintf(&b, "a call is refused: %v (%s)\n", err, team.HintOf(err))
		}
		b.WriteByte('\n')
	}
	r := newRig(t)
	a := r.agent(1, "")
	task := r.task(a)
	show(r, a, "It has no plan yet.")
	p := a.submit("First the lexer,\nthen the parser.")
	show(r, a, "It has submitted a plan.")
	r.decide(p.ID, team.Decision{By: team.Leader, Feedback: "Leave the lexer as it is."})
	show(r, a, "Its plan is rejected.")
	p = a.submit("The parser.")
	r.post.sent = nil
	r.decide(p.ID, team.Decision{By: team.Leader, Approve: true, Feedback: "Mind the tests."})
	show(r, a, "Its plan is approved.")
	forged := r.stored(p.ID)
	forged.Status, forged.Plan = team.PlanApproved, "All of it."
	r.forge(forged)
	next := r.agent(2, "")
	show(r, next, "The record of its plan was tampered with.")
	r.forge(p)
	if _, err := next.hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	r.task(next)
	show(r, next, "Its plan was for its last task.")
	next.Gate = r.agent(3, team.ByHuman).Gate
	next.submit("For a person.")
	show(r, next, "A person decides.")
	show(r, next, "The same, and it tries again.")

	const file = "testdata/notices.txt"
	got := regexp.MustCompile(`\b[0-9a-f]{16}\b`).ReplaceAllString(b.String(), "ID")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || got != string(want) {
		t.Errorf("%s is another (%v; go test -update accepts it):\n%s", file, err, got)
	}
}
