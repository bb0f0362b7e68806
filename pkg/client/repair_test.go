package client_test

import (
	"strings"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/client/repair"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// The record of a line that was damaged, or put by hand to what is no commit of the team, is found, and
// the copy before it is put back: the line can be used again, and nothing was guessed.
func TestRepairLine(t *testing.T) {
	r := newLineRig(t)
	was, err := r.bt.Bucket.Get(t.Context(), subject.KeyBranch)
	if err != nil {
		t.Fatal(err)
	}
	head := string(record(t, r.Team).Branch.Begun)
	for name, value := range map[string]string{
		"cut short":      string(was.Value[:len(was.Value)-9]),
		"no hash":        strings.ReplaceAll(string(was.Value), head, "../../etc"),
		"no such commit": strings.ReplaceAll(string(was.Value), head, strings.Repeat("ab", 20)),
	} {
		if damage, err := r.Damaged(t.Context(), agent.Takes); err != nil || len(damage) != 0 {
			t.Fatalf("before: %+v, %v", damage, err)
		}
		is, err := r.bt.Bucket.Get(t.Context(), subject.KeyBranch)
		if err == nil {
			_, err = r.bt.Bucket.Put(t.Context(), subject.KeyBranch, []byte(value), is.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.site.Bring(t.Context()); err == nil || !strings.Contains(team.Line(err), "teamctl repair") || strings.Contains(team.Line(err), "\n") {
			t.Errorf("%s: %s", name, team.Line(err))
		}
		damage, err := r.Damaged(t.Context(), agent.Takes)
		if err != nil || len(damage) != 1 || damage[0].Key != "branch" || damage[0].Remedy != repair.PutBack || damage[0].Copy == nil {
			t.Errorf("%s: %+v, %v", name, damage, err)
		}
		if done, err := r.Repair(t.Context(), "branch", agent.Takes); err != nil || len(done) != 1 || !done[0].Repaired {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		if h, err := r.site.Bring(t.Context()); err != nil || string(h) != head {
			t.Errorf("%s: the line is at %s, %v", name, h, err)
		}
	}
}
