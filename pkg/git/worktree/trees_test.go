package worktree_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// A person changes what a member may do while it is at a task: it goes on in the same tree, with
// what it has done, also while a call runs there.
func TestHandsChange(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	m.merges()
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	ws, done, err := m.at.Use(t.Context())
	r.must(err)
	for _, dir := range []string{t.TempDir(), t.TempDir()} {
		r.record.Policy.Paths.Read = []string{dir}
		if got := m.runs("sed -n 3p numbers.txt; echo more >> more.txt"); got != "three" {
			t.Fatalf("its line is %q", got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(ws.Dir(), "more.txt")); err != nil || string(text) != "more\nmore\n" {
		t.Errorf("the call that runs sees %q, %v", text, err)
	}
	done()
	_, err = m.completes(task)
	r.must(err)
	if got := m.runs("sed -n 3p numbers.txt; wc -l < more.txt"); got != "three\n2" {
		t.Errorf("the line has %q", got)
	}
}

// A member without a task sees the line as it is, whatever its commands have changed before: else a
// reviewer whose checks leave files would look at old ones for ever.
func TestBehind(t *testing.T) {
	r := setUp(t)
	m, reviewer := r.mate("coder-1", 1), r.mate("reviewer-1", 1)
	m.merges()
	reviewer.merges() // or hears nothing of the line
	reviewer.runs("echo mine > numbers.txt; git init -q nested; touch left")
	for _, word := range []string{"three", "drei"} {
		merged, err := m.completes(m.does(r.add("Three", ""), "sed -i '3s/.*/"+word+"/' numbers.txt"))
		r.must(err)
		r.until(func() bool { return string(reviewer.line.Head()) == merged.Commit })
		if got := reviewer.runs("sed -n 3p numbers.txt; ls; touch again"); got != word+"\nnumbers.txt" {
			t.Errorf("it sees %q", got)
		}
	}
	_, done, err := reviewer.at.Use(t.Context())
	r.must(err)
	merged, err := m.completes(m.does(r.add("Four", ""), "sed -i '4s/.*/four/' numbers.txt"))
	r.must(err)
	r.until(func() bool { return string(reviewer.line.Head()) == merged.Commit })
	if got := reviewer.runs("sed -n 4p numbers.txt"); got != "four" { // while another call runs
		t.Errorf("it sees %q", got)
	}
	done()
}

// What a member without a task has begun lives on while others' work is merged, and sees it.
func TestMergeLeavesWhatWasBegun(t *testing.T) {
	r := setUp(t)
	ended := make(chan string, 1)
	r.begin = func(is team.Job, run func(context.Context, io.Writer) string) (team.Job, error) {
		go func() { ended <- run(t.Context(), io.Discard) }()
		return is, nil
	}
	coder, leader := r.mate("coder-1", 1), r.mate("leader", 1)
	coder.merges()
	leader.merges() // or hears nothing of the line
	r.until(func() bool { return leader.line.Head() != "" })
	set, err := tool.NewSet(nil, leader.at.Tools()...)
	r.must(err)
	if got := set.Run(t.Context(), tool.Call{Name: "bash", Arguments: `{"command":"until grep -q three numbers.txt; do sleep 0.02; done; exit 3","run_in_background":true}`}); got.IsError {
		t.Fatal(got.Content)
	}
	bound, err := tool.NewSet(nil, leader.at.Bound()...)
	r.must(err)
	here := leader.at.Here()(t.Context())
	merged, err := coder.completes(coder.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt"))
	r.must(err)
	r.until(func() bool { return string(leader.line.Head()) == merged.Commit })
	if got := bound.Run(here, tool.Call{Name: "bash", Arguments: `{"command":"sed -n 3p numbers.txt"}`}); got.Content != "three\n" {
		t.Errorf("a subagent's call: %s", got.Content)
	}
	leader.runs("true")
	if got := brokertest.Receive(t, "the command in the background ends", ended); got != "exit status 3" {
		t.Errorf("the command in the background: %s", got)
	}
}

// Members may be called like the files that are kept beside the trees.
func TestNames(t *testing.T) {
	r := setUp(t)
	for _, name := range []team.AgentID{"lock", "json", "at", "t-001"} {
		if got := r.mate(name, 1).runs("ls"); got != "numbers.txt" {
			t.Errorf("%s sees %q", name, got)
		}
	}
	m := r.mate("t-001", 1)
	m.does(r.add("One", ""), "touch one")
	m.at.Close()
	r.must(r.mate("at", 1).line.Leave(r.Context(), false))
	if got := r.mate("t-001", 1).runs("ls"); got != "numbers.txt" {
		t.Errorf("it sees %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "*", "trees", "t-001.t-001.*", "one")); err != nil || len(left) != 1 {
		t.Errorf("its work is %v, %v", left, err)
	}
}

// A member that puts a link in place of the folder that it works in does not lead the host out of its tree.
func TestFolderBecomesLink(t *testing.T) {
	r := setUp(t)
	outside := t.TempDir()
	r.record.Branch.Prefix = "sub"
	m := r.mate("coder-1", 1)
	task := m.does(r.add("Out", ""), "cd ..; rmdir sub; ln -s "+outside+" sub")
	m.at.Close()
	next := r.mate("coder-1", 2)
	if _, ok, err := next.hand.Adopt(t.Context(), ""); !ok || err != nil {
		t.Fatalf("%s is not adopted: %v", task.ID, err)
	}
	if ws, _, err := next.at.Use(t.Context()); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "sub") {
		t.Errorf("it works in %v, %v", ws, err)
	}
	notices := r.notices()
	idle := r.mate("coder-2", 1)
	idle.runs("cd ..; rmdir sub; ln -s " + outside + " sub")
	idle.at.Close()
	if got := r.mate("coder-2", 2).runs("touch here; ls .."); got != "numbers.txt\nsub" {
		t.Errorf("it sees %q", got)
	}
	if len(*notices) != 1 || !strings.Contains((*notices)[0], "may have changed without a task") {
		t.Errorf("notices: %q", *notices)
	}
	if got := r.sh(outside, "ls -A"); got != "" {
		t.Errorf("outside there is %s", got)
	}
}

// While a frozen process of the member has its tree, its successor has another one; the one
// after that continues in the latest.
func TestFrozenPredecessor(t *testing.T) {
	r := setUp(t)
	frozen := r.mate("coder-1", 1)
	frozen.does(r.add("Three", ""), "touch first")
	second := r.mate("coder-1", 2)
	_, _, err := second.hand.Adopt(t.Context(), "")
	r.must(err)
	second.runs("touch second")
	second.at.Close()
	frozen.at.Close()
	third := r.mate("coder-1", 3)
	third.merges() // sweeps
	task, _, err := third.hand.Adopt(t.Context(), "")
	r.must(err)
	if got := third.runs("ls"); got != "numbers.txt\nsecond" {
		t.Errorf("it sees %q", got)
	}
	if done, err := third.completes(task); err != nil || done.Commit == "" {
		t.Errorf("commit %q, %v", done.Commit, err)
	}
}

// The end of the goal leaves no tree, not of a member that was killed either, on whichever host: the last
// member there removes it. A tree that another one has open stays until that leaves, and that of a task which is not over stays: its
// files are nowhere else.
func TestGoalLeavesNoTree(t *testing.T) {
	r := setUp(t)
	lost, coder, last := r.mate("coder-1", 1), r.mate("coder-2", 1), r.mate("coder-3", 1)
	over := lost.does(r.add("Three", ""), "touch three")
	lost.at.Close()
	_, err := r.board.Cancel(r.Context(), over.ID, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, "not wanted")
	r.must(err)
	killed := r.mate("coder-4", 1)
	killed.does(r.add("Four", ""), "touch four")
	killed.at.Close()
	last.runs("touch open")
	coder.runs("ls")
	coder.at.Close()
	r.must(coder.line.Leave(r.Context(), true))
	if left, err := filepath.Glob(filepath.Join(r.dir, "*", "trees", "*", "*")); err != nil || len(left) != 6 {
		t.Errorf("there are %v, %v; want those of coder-3 and coder-4", left, err)
	}
	last.at.Close()
	r.must(last.line.Leave(r.Context(), true))
	if left := r.sh(r.dir, "ls -d */trees/*/*"); strings.Count(left, "\n") != 1 || !strings.Contains(left, "trees/t-002.coder-4.") {
		t.Errorf("there are %s", left)
	}
}

// A member that leaves late, when the next goal has begun, removes no tree of that.
func TestLeavesInNextGoal(t *testing.T) {
	r := setUp(t)
	next := r.record
	next.Status, next.GoalNumber = team.Active, 2
	text, err := json.Marshal(next)
	r.must(err)
	r.must(r.storage.Bucket.Set(t.Context(), subject.KeyTeam, text))
	killed, late := r.mate("coder-1", 1), r.mate("coder-2", 1)
	killed.does(r.add("Three", ""), "touch three")
	killed.at.Close()
	late.runs("ls")
	late.at.Close()
	r.must(late.line.Leave(t.Context(), true))
	if left, err := filepath.Glob(filepath.Join(r.dir, "*", "trees", "*", "three")); err != nil || len(left) != 1 {
		t.Errorf("the work is %v, %v", left, err)
	}
}

// A cache folder that is emptied while the team works costs what was not submitted, and nothing
// else.
func TestRepositoryVanishes(t *testing.T) {
	r := setUp(t)
	m, other := r.mate("coder-1", 1), r.mate("coder-2", 1)
	m.merges()
	_, err := m.completes(m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt"))
	r.must(err)
	task := other.does(r.add("Four", ""), "sed -i 's/^4$/four/' numbers.txt")
	r.sh(r.dir, "rm -rf */line.git")
	m.runs("ls") // brings the repository back
	done, err := other.completes(task)
	if err != nil || done.Status != team.Completed {
		t.Fatalf("it is %s, %v", done.Status, err)
	}
	if got := m.runs("sed -n 3,4p numbers.txt"); got != "three\nfour" {
		t.Errorf("the line has %q", got)
	}
}

// A team whose members share the workspace by now has no queue: what waits there keeps no task
// from being freed.
func TestMergingInSharedTeam(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	task := m.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
	go func() { _, _ = m.completes(task) }()
	records := mergequeue.New(r.storage)
	merging := func() bool {
		is, err := worktree.Merging(t.Context(), records, r.record, task)
		r.must(err)
		return is
	}
	r.until(merging)
	shared := r.record
	shared.Branch = &team.GoalBranch{Goal: 2, Why: "isolation is set to shared"}
	if is, err := worktree.Merging(t.Context(), records, shared, task); is || err != nil {
		t.Errorf("merging %v, %v", is, err)
	}
	_, err := r.board.Release(t.Context(), task.ID, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, 0, team.Freed{Reason: "over"})
	r.must(err)
	r.until(func() bool { return !merging() })
}

// A machine without git is told so, merges nothing, and keeps no task: another one does it.
func TestNoGitOnOneMachine(t *testing.T) {
	r := setUp(t)
	path := os.Getenv("PATH")
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	id := r.add("Three", "")
	_, err := two.hand.Claim(t.Context(), id)
	r.must(err)
	t.Setenv("PATH", t.TempDir())
	_, _, err = two.at.Use(t.Context())
	if !errors.Is(err, team.Unavailable) || !strings.Contains(team.Line(err), "there is no git here (install git") || strings.Contains(team.Line(err), "\n") {
		t.Errorf("its files: %v", err)
	}
	two.merges()
	_, err = two.hand.GiveBack(t.Context(), id, team.GiveBack{Freed: team.Freed{Reason: "there is no git here"}})
	r.must(err)
	t.Setenv("PATH", path) // git is installed while the process runs
	done, err := one.completes(one.does(id, "sed -i 's/^3$/three/' numbers.txt"))
	if err != nil || done.Status != team.Completed || done.Commit == "" {
		t.Errorf("it is %s, commit %q, %v", done.Status, done.Commit, err)
	}
}

// Nobody loses a tree by a task's record that cannot be read.
func TestTreeOfDamagedTask(t *testing.T) {
	r := setUp(t)
	m := r.mate("coder-1", 1)
	id := r.add("Mine", "")
	m.does(id, "echo mine > mine.txt")
	m.at.Close() // as if its process had ended
	task, err := r.storage.Bucket.Get(t.Context(), subject.KeyTask(id))
	r.must(err)
	_, err = r.storage.Bucket.Put(t.Context(), subject.KeyTask(id), []byte("{"), task.Revision)
	r.must(err)
	r.sweeps()
	if got := r.sh(r.dir, "cat */trees/t-001.coder-1.*/mine.txt"); got != "mine" {
		t.Errorf("its file is %q", got)
	}
}
