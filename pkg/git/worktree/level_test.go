package worktree_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

func level(s team.Sandbox) func(context.Context, team.Team, string) team.Sandbox {
	return func(context.Context, team.Team, string) team.Sandbox { return s }
}

// A queue whose host confines commands less than that of the assignee leaves the work to another queue,
// and merges what comes after it.
func TestQueueOfLesserLevel(t *testing.T) {
	r := setUp(t)
	r.level = level(team.Unconfined)
	lesser := r.mate("coder-1", 1)
	r.level = level(team.Confined)
	confined := r.mate("coder-2", 1)
	lesser.merges()
	first := confined.does(r.add("First", "true"), "echo first > first.txt")
	ended := make(chan error, 1)
	go func() {
		_, err := confined.completes(first)
		ended <- err
	}()
	records := mergequeue.New(r.storage)
	r.until(func() bool {
		_, err := records.Get(t.Context(), first.ID)
		return err == nil
	})
	_, err := lesser.completes(lesser.does(r.add("Second", ""), "echo second > second.txt"))
	r.must(err)
	if got := lesser.runs("ls"); got != "numbers.txt\nsecond.txt" {
		t.Errorf("of the lesser queue the line has %q", got)
	}
	confined.merges()
	r.must(brokertest.Receive(t, "the task is completed", ended))
	if got := lesser.runs("ls"); got != "first.txt\nnumbers.txt\nsecond.txt" {
		t.Errorf("the line has %q", got)
	}
}

// members is a source that notes for whom it opens what is no member's tree.
type members struct {
	source
	mu  sync.Mutex
	all []team.Member
}

func (s *members) Open(ctx context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	s.mu.Lock()
	if w.Tree.ReadOnly == nil {
		s.all = append(s.all, w.Member)
	}
	s.mu.Unlock()
	return s.source.Open(ctx, w, o)
}

// The check of merged files has the network, the tools and the level of the assignee, whoever's queue
// merges: it is run as that member.
func TestCheckedAsItsAssignee(t *testing.T) {
	r := setUp(t)
	opened := &members{}
	r.source = opened
	_, err := roster.New(r.storage).Put(t.Context(), team.Member{AgentID: "coder-2", Role: "tester", Backend: team.Exec, State: team.Created})
	r.must(err)
	queue, other := r.mate("coder-1", 1), r.mate("coder-2", 1)
	queue.merges()
	theirs := other.does(r.add("Theirs", "test -e theirs.txt"), "echo theirs > theirs.txt")
	_, err = queue.completes(queue.does(r.add("Mine", ""), "echo mine > mine.txt")) // the line moves
	r.must(err)
	_, err = other.completes(theirs)
	r.must(err)
	if !slices.ContainsFunc(opened.all, func(m team.Member) bool { return m.AgentID == "coder-2" && m.Role == "tester" }) {
		t.Errorf("checked as %+v", opened.all)
	}
}

// Where a rule denies a check, no queue runs it on merged files: the work waits for a queue of another host, which
// may.
func TestDeniedCheckIsNotRun(t *testing.T) {
	r := setUp(t)
	tried := make(chan team.TaskID, 1)
	r.may = func(_ context.Context, id team.TaskID, role, check, dir string) error {
		select {
		case tried <- id:
		default:
		}
		return team.Errorf(team.PermissionDenied, "the check of %s is not run: a rule denies %q to a %q in %s", id, check, role, dir)
	}
	strict := r.mate("coder-1", 1)
	r.may = nil
	lax := r.mate("coder-2", 1)
	strict.merges()
	ran := filepath.Join(t.TempDir(), "ran")
	theirs := lax.does(r.add("Theirs", "echo ran >> "+ran), "echo theirs > theirs.txt")
	_, err := strict.completes(strict.does(r.add("Mine", ""), "echo mine > mine.txt")) // the line moves
	r.must(err)
	ended := make(chan error, 1)
	go func() {
		_, err := lax.completes(theirs)
		ended <- err
	}()
	select {
	case id := <-tried:
		if id != theirs.ID {
			t.Errorf("%s was judged", id)
		}
	case err := <-ended:
		t.Fatalf("it was not judged, and ended with %v", err)
	}
	if _, err := strict.completes(strict.does(r.add("More", ""), "echo more > more.txt")); err != nil { // others are merged
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the check ran there")
	}
	lax.merges()
	r.must(<-ended)
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("the check ran nowhere: %v", err)
	}
}

// Where a rule denies the check of an earlier task whose file a later one changes, that is merged without it, and the leader
// is notified of what was not checked.
func TestLeftOutCheckIsNamed(t *testing.T) {
	r := setUp(t)
	notices := r.sends()
	var denied atomic.Bool
	r.may = func(_ context.Context, id team.TaskID, _, check, _ string) error {
		if !denied.Load() {
			return nil
		}
		return team.Errorf(team.PermissionDenied, "the check of %s is not run: the rule %q denies it", id, "Bash(grep *)")
	}
	m := r.mate("coder-1", 1)
	m.merges()
	_, err := m.completes(m.does(r.add("First", "grep -qx 17 numbers.txt"), "sed -i 's/^3$/three/' numbers.txt"))
	r.must(err)
	denied.Store(true)
	if _, err := m.completes(m.does(r.add("Second", ""), "sed -i 's/^17$/seventeen/' numbers.txt")); err != nil {
		t.Fatal(err)
	}
	n := r.next(notices)
	if want := "[Not checked] The work of coder-1 on T-002 (Second) is merged without the check of T-001 (First), whose files it changes. Host "; n.to != team.Leader || !strings.HasPrefix(n.text, want) || !strings.Contains(n.text, `the rule "Bash(grep *)" denies it`) {
		t.Errorf("%s reads %s", n.to, n.text)
	}
}
