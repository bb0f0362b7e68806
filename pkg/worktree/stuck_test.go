package worktree_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/merge"
	"agentteam/pkg/team"
	"agentteam/pkg/worktree"
)

// A notice is due once it was the turn of an entry for five minutes, and again each hour; those behind it have
// their turn then.
func TestStuckWorkIsDue(t *testing.T) {
	due, begun := worktree.Due(), time.Now()
	a, b, again := merge.Entry{Task: "T-001", Epoch: 1}, merge.Entry{Task: "T-002", Epoch: 1}, merge.Entry{Task: "T-001", Epoch: 2}
	for _, look := range []struct {
		minutes int
		waiting []merge.Entry
		want    []team.TaskID
	}{
		{0, []merge.Entry{a, b}, nil},
		{4, []merge.Entry{a, b}, nil},
		{5, []merge.Entry{a, b}, []team.TaskID{"T-001"}},
		{9, []merge.Entry{a, b}, nil},
		{10, []merge.Entry{a, b}, []team.TaskID{"T-002"}},
		{64, []merge.Entry{a, b}, nil},
		{65, []merge.Entry{a, b}, []team.TaskID{"T-001"}},
		{66, []merge.Entry{b}, nil},
		{70, []merge.Entry{b, again}, []team.TaskID{"T-002"}},
		{75, []merge.Entry{again}, []team.TaskID{"T-001"}},
	} {
		if got := due(look.waiting, begun.Add(time.Duration(look.minutes)*time.Minute)); !slices.Equal(got, look.want) {
			t.Errorf("after %d minutes due is %q, want %q", look.minutes, got, look.want)
		}
	}
}

// sent is a notice.
type sent struct {
	to       team.AgentID
	id, text string
}

// sends has members note what they notify others of.
func (r *rig) sends() <-chan sent {
	all := make(chan sent, 100)
	r.notify = func(_ context.Context, to team.AgentID, id, text string) error {
		all <- sent{to, id, text}
		return nil
	}
	return all
}

// next returns the next notice.
func (r *rig) next(all <-chan sent) sent {
	r.Helper()
	select {
	case n := <-all:
		return n
	case <-time.After(brokertest.Longest):
		r.Fatal("no notice came")
		return sent{}
	}
}

// The leader is notified of work that waits and that this host may not merge, or has tried to in vain, with what is
// wrong: the holder waits for as long as that takes.
func TestStuckWork(t *testing.T) {
	denied := func(_ context.Context, id team.TaskID, _, check, _ string) error {
		return team.Errorf(team.PermissionDenied, "the check of %s is not run: a rule denies %q", id, check)
	}
	for name, tt := range map[string]struct {
		here  team.Sandbox
		may   worktree.May
		id    string
		wants []string
	}{
		"it may not": {team.Unconfined, nil, "stuck-T-001-1-unable-0", []string{"may not merge it", "ran in the sandbox confined, and would run in " + string(team.Unconfined)}},
		"in vain":    {team.Confined, denied, "stuck-T-001-1-tried-0", []string{"has tried in vain", `a rule denies "test -e theirs.txt"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setUp(t)
			notices := r.sends()
			r.level, r.may = level(tt.here), tt.may
			here := r.mate("coder-1", 1)
			r.level, r.may = level(team.Confined), nil
			holder := r.mate("coder-2", 1)
			here.line.Hurry(0, time.Hour, time.Millisecond)
			here.merges()
			theirs := holder.does(r.add("Theirs", "test -e theirs.txt"), "echo theirs > theirs.txt")
			_, err := here.completes(here.does(r.add("Mine", ""), "echo mine > mine.txt")) // the line moves
			r.must(err)
			ended := make(chan error, 1)
			go func() {
				_, err := holder.completes(theirs)
				ended <- err
			}()
			n := r.next(notices)
			if n.to != team.Leader || n.id != tt.id {
				t.Errorf("%s is notified as %s", n.to, n.id)
			}
			for _, want := range append(tt.wants, "[Not merged] The work of coder-2 on T-001 (Theirs)") {
				if !strings.Contains(n.text, want) {
					t.Errorf("%q is not in the notice: %s", want, n.text)
				}
			}
			holder.merges()
			r.must(<-ended)
			if len(notices) > 0 {
				t.Errorf("another notice: %+v", <-notices)
			}
		})
	}
}

// A leader whose own work is not merged reads no mail while its call waits, so that ends; the work stays in the queue.
func TestLeaderDoesNotWaitForEver(t *testing.T) {
	r := setUp(t)
	leader := r.mate(team.Leader, 1)
	leader.line.Hurry(time.Millisecond, time.Hour, time.Millisecond)
	task := leader.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	if _, err := leader.completes(task); !errors.Is(err, team.Busy) {
		t.Fatalf("with nobody to merge it the call ended with %v", err)
	}
	leader.line.Hurry(time.Hour, time.Hour, time.Hour)
	leader.merges()
	if done, err := leader.completes(task); err != nil || done.Status != team.Completed || done.Commit == "" {
		t.Errorf("it is %s, commit %q, %v", done.Status, done.Commit, err)
	}
}
