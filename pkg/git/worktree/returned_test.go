package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// stored lists what the object store has of tasks' work.
func (r *rig) stored() []string {
	r.Helper()
	names, err := r.storage.Files.List(r.Context(), "merge/")
	r.must(err)
	return names
}

// returns has work of m on a task returned, since it conflicts with another task by other, and returns the
// task's record.
func (m *mate) returns(id team.TaskID, other *mate) team.Task {
	m.Helper()
	mine := m.does(id, "sed -i 's/^3$/mine/' numbers.txt; echo 1 > mine.txt")
	_, err := other.completes(other.does(m.add("Theirs", ""), "sed -i 's/^3$/theirs/' numbers.txt"))
	m.must(err)
	back, err := m.completes(mine)
	if !errors.Is(err, team.InvalidState) || back.Status != team.Pending || len(back.Returned) != 1 {
		m.Fatalf("it is %s with %+v, %v", back.Status, back.Returned, err)
	}
	return back
}

// Three hosts share nothing but the server. The work that was done on one and returned by the queue of
// another is in the tree of the next holder on the third, with all that it needs to take it up; once that
// is merged, nothing of it is left anywhere.
func TestReturnedWorkOnAnotherHost(t *testing.T) {
	r := setUp(t)
	hosts := map[team.AgentID]string{"coder-1": r.dir, "coder-2": t.TempDir(), "coder-3": t.TempDir()}
	on := func(a team.AgentID, incarnation uint64) *mate {
		r.dir = hosts[a]
		return r.mate(a, incarnation)
	}
	one, two, three := on("coder-1", 1), on("coder-2", 1), on("coder-3", 1)
	one.merges()
	id := r.add("Mine", "grep -q mine numbers.txt && test -f mine.txt")
	back := two.returns(id, one)
	work := back.Returned[0]
	if work.By != "coder-2" || work.Epoch != back.Epoch || len(work.Commit) != 40 || back.Attempts != 0 {
		t.Errorf("its record names %+v after %d attempts", work, back.Attempts)
	}

	decliner := on("coder-3", 1)
	if _, err := decliner.hand.Claim(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err := decliner.hand.GiveBack(t.Context(), id, team.GiveBack{Freed: team.Freed{Reason: "no compiler"}})
	r.must(err)

	held, err := three.hand.Claim(t.Context(), id)
	r.must(err)
	last, earlier, err := three.hand.LastTry(t.Context(), held)
	if err != nil || last == nil || last.Reason != "no compiler" || earlier == nil {
		t.Fatalf("it reads %+v and %+v, %v", last, earlier, err)
	}
	branch := work.Branch(id)
	for _, want := range []string{"it conflicts with the line in numbers.txt.\n", work.Commit, "`git show " + branch + "`", "between <<<<<<< and =======", "of coder-2: Mine - done as told",
		"T-002 by coder-1 came into the line", "Theirs - done as told", "In conflict (1): numbers.txt (contents)\n",
		"The line has in numbers.txt:\ndiff --git", "-3\n+theirs\n", "This work has in numbers.txt:\ndiff --git", "-3\n+mine\n"} {
		if !strings.Contains(earlier.Reason, want) {
			t.Errorf("%q is not in what it reads:\n%s", want, earlier.Reason)
		}
	}
	if got := three.runs("git rev-parse " + branch + "; git diff --name-only HEAD..." + branch); got != work.Commit+"\nmine.txt\nnumbers.txt" {
		t.Errorf("its tree has %s", got)
	}
	if got := three.runs("git status --porcelain; sed -n 3,7p numbers.txt | cut -c1-10; cat mine.txt"); got != "M numbers.txt\n?? mine.txt\n<<<<<<< "+string(one.line.Head())[:2]+"\ntheirs\n=======\nmine\n>>>>>>> "+work.Commit[:2]+"\n1" {
		t.Errorf("its tree begins with %s", got)
	}
	if _, err := three.completes(held); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "both sides of a conflict are still in numbers.txt") {
		t.Errorf("with both sides it is completed: %v", err)
	}
	three.runs("sed -i '/^[<=>]/d' numbers.txt; git add -A")
	three.at.Close()
	three = on("coder-3", 2) // its next incarnation continues there
	held, _, err = three.hand.Adopt(t.Context(), "")
	r.must(err)
	if got := three.runs("sed -n 3,4p numbers.txt; git rev-parse " + branch); got != "theirs\nmine\n"+work.Commit {
		t.Errorf("the successor has %s", got)
	}
	done, err := three.completes(held)
	if err != nil || done.Status != team.Completed || len(done.Returned) > 0 {
		t.Fatalf("it is %s with %+v, %v", done.Status, done.Returned, err)
	}
	if got := one.runs("sed -n 2,5p numbers.txt; cat mine.txt"); got != "2\ntheirs\nmine\n4\n1" {
		t.Errorf("the line has %s", got)
	}
	r.until(func() bool { return len(r.stored()) == 0 })
	three.at.Close()
	for _, a := range []team.AgentID{"coder-1", "coder-3"} { // the queue's host, and that of the tree
		on(a, 9).merges() // sweeps
		r.until(func() bool { return r.pins(hosts[a]) == "" })
	}
}

// pins lists the refs by which the repository of a host holds returned work.
func (r *rig) pins(host string) string {
	r.Helper()
	repos, err := filepath.Glob(filepath.Join(host, "*", "line.git"))
	r.must(err)
	if len(repos) != 1 {
		r.Fatalf("there are %v", repos)
	}
	return r.sh(repos[0], "git for-each-ref refs/agentteam/pins")
}

// Work whose check fails on the merged files only is returned with what the check prints, whatever
// characters that has, and can be taken up.
func TestReturnedByCheck(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", `if test -f theirs.txt && ! test -f fixed.txt; then printf '\033[31mboth\033[0m of them\n'; exit 3; fi`)
	mine := two.does(id, "sed -i 's/^17$/seventeen/' numbers.txt")
	_, err := one.completes(one.does(r.add("Theirs", ""), "touch theirs.txt"))
	r.must(err)
	back, err := two.completes(mine)
	if !errors.Is(err, team.InvalidState) || back.Status != team.Pending || len(back.Returned) != 1 || back.Attempts != 0 {
		t.Fatalf("it is %s with %+v after %d attempts, %v", back.Status, back.Returned, back.Attempts, err)
	}
	for _, want := range []string{"the check of T-001 (Mine) fails on the merged files: if test", "The check prints:\n", "both", "exit status 3", back.Returned[0].Commit, "Theirs - done as told"} {
		if !strings.Contains(back.Reason, want) {
			t.Errorf("%q is not in the reason:\n%s", want, back.Reason)
		}
	}
	held := one.does(id, "touch fixed.txt")
	if done, err := one.completes(held); err != nil || done.Status != team.Completed {
		t.Fatalf("it is %s, %v", done.Status, err)
	}
	if got := two.runs("sed -n 17p numbers.txt; ls"); got != "seventeen\nfixed.txt\nnumbers.txt\ntheirs.txt" {
		t.Errorf("the line has %s", got)
	}
}

// Returned work stays as long as its task is not completed, whoever looks for what is not needed; the
// leader's process removes it once the task is completed without the queue.
func TestReturnedIsCleaned(t *testing.T) {
	r := setUp(t)
	one, two, leader := r.mate("coder-1", 1), r.mate("coder-2", 1), r.mate("leader", 1)
	one.merges()
	id := r.add("Mine", "")
	back := two.returns(id, one)
	bundle := subject.MergeBundle(id, back.Epoch)
	has := func(want ...string) bool { return strings.Join(r.stored(), " ") == strings.Join(want, " ") }
	r.until(func() bool { return has(bundle, bundle+"/outcome") })
	withdrawn := two.does(r.add("Withdrawn", ""), "touch withdrawn.txt")
	if _, err := r.storage.Files.Put(t.Context(), subject.MergeBundle(withdrawn.ID, withdrawn.Epoch), strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	_, err := r.board.Release(t.Context(), withdrawn.ID, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, 0, team.Freed{Reason: "not now"})
	r.must(err)
	_, err = two.hand.Claim(t.Context(), withdrawn.ID) // the next hold: what the former has submitted is never merged
	r.must(err)
	leader.merges()
	r.until(func() bool { return has(bundle, bundle+"/outcome") })
	if r.pins(r.dir) == "" {
		t.Error("nothing holds the work")
	}
	_, err = one.hand.Claim(t.Context(), id)
	r.must(err)
	_, err = one.hand.Complete(t.Context(), id, team.Done{Summary: "as it is"})
	r.must(err)
	r.mate("leader", 2).merges() // sweeps
	r.until(func() bool { return has() && r.pins(r.dir) == "" })
}

// What is stored of a team is listed only if the team has written something since it was swept.
func TestIdleTeamIsNotListed(t *testing.T) {
	r := setUp(t)
	leader, mate := r.mate("leader", 1), r.mate("coder-1", 1)
	done, err := mate.completes(mate.does(r.add("Look", ""), "true"))
	r.must(err)
	bundle := subject.MergeBundle(done.ID, done.Epoch)
	for n, change := range []func(){func() {}, func() {}, func() { r.add("Other", "") }} {
		if _, err := r.storage.Files.Put(t.Context(), bundle, strings.NewReader("x")); err != nil { // as by a holder that was frozen
			t.Fatal(err)
		}
		change()
		r.must(leader.line.Sweep(t.Context()))
		if listed := len(r.stored()) == 0; listed != (n != 1) {
			t.Errorf("sweep %d has listed: %v", n+1, listed)
		}
	}
}

// Work that is not stored any more keeps nobody from the task.
func TestReturnedIsGone(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "")
	back := two.returns(id, one)
	r.must(r.storage.Files.Delete(t.Context(), subject.MergeBundle(id, back.Epoch)))
	r.dir = t.TempDir()
	three := r.mate("coder-3", 1)
	held := three.does(id, "touch mine.txt; ! git rev-parse --verify --quiet "+back.Returned[0].Branch(id))
	if done, err := three.completes(held); err != nil || done.Status != team.Completed {
		t.Errorf("it is %s, %v", done.Status, err)
	}
}

// Work that cannot be removed keeps no trees: that of a task that is over is removed all the same.
func TestNotRemovedKeepsNoTrees(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "")
	two.returns(id, one)
	_, err := r.board.Cancel(t.Context(), id, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, "not wanted")
	r.must(err)
	at := filepath.Join(r.dir, r.sh(r.dir, "at=$(echo */trees); mkdir $at/t-009.coder-9.0; touch $at/../line.git/packed-refs.lock; echo $at"))
	r.mate("coder-3", 1).merges() // sweeps
	r.until(func() bool {
		_, err := os.Stat(filepath.Join(at, "t-009.coder-9.0"))
		return err != nil
	})
	if r.pins(r.dir) == "" {
		t.Error("the work could be removed")
	}
}

// A holder that asks once the task is completed by another, and the reasons are removed, is not told that its
// task was taken.
func TestReturnedAndReadLate(t *testing.T) {
	r := setUp(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	back := two.returns(r.add("Mine", ""), one)
	done, err := one.completes(one.does(back.ID, "sed -i '/^[<=>]/d' numbers.txt"))
	r.must(err)
	r.until(func() bool { return len(r.stored()) == 0 })
	_, err = worktree.Outcome(two.line, t.Context(), back)
	if !errors.Is(err, team.Conflict) || !strings.Contains(err.Error(), fmt.Sprintf("T-001 was not merged, and you do not hold it any more: it is completed under epoch %d", done.Epoch)) {
		t.Errorf("its holder reads %v", err)
	}
}
