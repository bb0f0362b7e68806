package mergequeue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// together submits work of tasks from 1 to last with one check for all; the work of task n is a file of its own, and what script
// returns for it.
func (r *rig) together(last int, check string, script func(n int) string) {
	r.t.Helper()
	base := r.head()
	for n := 1; n <= last; n++ {
		e, b := r.work(id(n), base, fmt.Sprintf("echo %d > own-%[1]d; %s", n, script(n)))
		r.board.mu.Lock()
		r.board.tasks[e.Task].check = check
		r.board.mu.Unlock()
		e.Check = check
		_, err := r.records.Submit(r.ctx, e, b)
		r.must(err)
	}
}

// ran returns whose checks have run.
func (r *rig) ran() []team.TaskID {
	r.checks.mu.Lock()
	defer r.checks.mu.Unlock()
	return slices.Clone(r.checks.ran)
}

func nothing(int) string { return ":" }

// Work that waits together is checked once, and one move of the head brings all of it, in order.
func TestBatch(t *testing.T) {
	r := setUp(t)
	r.together(8, "test -e own-1 -a -e own-8", nothing)
	before, err := r.records.Head(r.ctx)
	r.must(err)
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	r.once()
	if ran := r.ran(); len(ran) != 1 {
		t.Errorf("the checks of %v ran, want one", ran)
	}
	h, err := r.records.Head(r.ctx)
	r.must(err)
	log, err := r.repo.Log(r.ctx, before.Commit, h.Commit)
	r.must(err)
	if len(h.Last) != 8 || len(log) != 8 {
		t.Fatalf("the last move brought %d tasks and %d commits, want 8", len(h.Last), len(log))
	}
	for i, m := range h.Last {
		if m.Task != id(i+1) || m.Commit != log[i].Commit || r.board.of(m.Task).commit != m.Commit {
			t.Errorf("commit %d is %+v, in the branch %s of %s, of the completed task %s", i, m, log[i].Commit, log[i].Task, r.board.of(m.Task).commit)
		}
	}
}

// Of eight tasks whose work waits together one breaks the check: the others are merged, and the culprit goes back. So many halves
// as it takes to find it are checked, not each task.
func TestBatchWithACulprit(t *testing.T) {
	for culprit := 1; culprit <= 8; culprit += 3 {
		t.Run(fmt.Sprint(culprit), func(t *testing.T) {
			r := setUp(t)
			r.together(8, "test ! -e broken", func(n int) string {
				if n == culprit {
					return "touch broken"
				}
				return ":"
			})
			q, _ := r.queue("a")
			r.run(q)
			r.settled()
			r.once()
			for n := 1; n <= 8; n++ {
				tk := r.board.of(id(n))
				if (tk.commit == "") != (n == culprit) {
					t.Errorf("%s: %+v", id(n), tk)
				}
			}
			o := r.board.of(id(culprit)).outcomes
			if len(o) != 1 || o[0].Kind != mergequeue.CheckFailed || !o[0].Own || o[0].Failed != id(culprit) {
				t.Errorf("outcomes %+v", o)
			}
			// All, three halvings with at most two checks each, and the culprit's own work.
			if ran := len(r.ran()); ran > 8 {
				t.Errorf("%d checks ran", ran)
			}
		})
	}
}

// The team's check runs on each merge; a task that has the same command adds no second run.
func TestCheckOfTheTeam(t *testing.T) {
	r := setUp(t)
	r.check = "test ! -e own-2"
	r.together(2, r.check, nothing)
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	o := r.board.of(id(2)).outcomes
	if r.board.of(id(1)).commit == "" || len(o) != 1 || o[0].Kind != mergequeue.CheckFailed || o[0].Failed != "" || !strings.HasPrefix(o[0].Reason, "the team's check fails on this work") {
		t.Errorf("T-001: %+v, T-002: %+v", r.board.of(id(1)), o)
	}
	if ran := r.ran(); len(ran) != 4 { // both, each alone, and the own work of the second
		t.Errorf("the checks of %q ran", ran)
	}
}

// Both halves pass and both together do not: the earlier task is merged, and the later one goes back with the name of the other.
func TestBatchThatFailsTogether(t *testing.T) {
	r := setUp(t)
	r.together(2, "! test -e own-1 -a -e own-2", nothing)
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	if tk := r.board.of(id(1)); tk.commit == "" {
		t.Errorf("the first: %+v", tk)
	}
	o := r.board.of(id(2)).outcomes
	if len(o) != 1 || o[0].Own || len(o[0].Since) != 1 || o[0].Since[0].Task != id(1) {
		t.Errorf("the second: %+v", o)
	}
}

// Of work that waits together one changes the same line as another: it waits for the next turn, and conflicts then.
func TestConflictInABatch(t *testing.T) {
	r := setUp(t)
	r.together(4, "true", func(n int) string { return fmt.Sprintf("sed -i '%ds/.*/by %d/' numbers.txt", 5*((n+1)/2), n) })
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	r.once()
	for n := 1; n <= 4; n++ {
		tk := r.board.of(id(n))
		if odd := n%2 == 1; odd != (tk.commit != "") || !odd && (len(tk.outcomes) != 1 || tk.outcomes[0].Kind != mergequeue.Conflicting || !slices.ContainsFunc(tk.outcomes[0].Since, func(s mergequeue.Since) bool { return s.Task == id(n-1) })) {
			t.Errorf("%s: %+v", id(n), tk)
		}
	}
}

// A task that is withdrawn after the check of its batch is not merged; the others are.
func TestWithdrawnFromABatch(t *testing.T) {
	r := setUp(t)
	r.together(3, "true", nothing)
	q, _ := r.queue("a")
	gate := freeze(q, "move")
	r.run(q)
	brokertest.Receive(t, "the queue is about to move the head", gate.there)
	r.must(r.records.Withdraw(r.ctx, id(2), r.board.of(id(2)).epoch))
	close(gate.open)
	r.settled(id(2))
	var merged []team.TaskID
	for n := 1; n <= 3; n++ {
		if r.board.of(id(n)).commit != "" {
			merged = append(merged, id(n))
		}
	}
	if !slices.Equal(merged, []team.TaskID{id(1), id(3)}) {
		t.Errorf("merged are %v", merged)
	}
}

// A queue that is killed with a batch under way leaves each task of it in the branch once.
func TestKilledWithABatch(t *testing.T) {
	for _, step := range []string{"check", "store", "move", "follow", "complete", "clean", "remove"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := setUp(t)
			r.lease = 800 * time.Millisecond
			r.together(4, "test ! -e broken", func(n int) string {
				if n == 3 {
					return "touch broken"
				}
				return ":"
			})
			q, _ := r.queue("a")
			dead := kill(q, step)
			stop := r.run(q)
			brokertest.Receive(t, "the queue is at the step "+step, dead)
			stop()
			q, _ = r.queue("b")
			r.run(q)
			r.settled()
			r.once()
			for n := 1; n <= 4; n++ {
				if tk := r.board.of(id(n)); (tk.commit == "") != (n == 3) {
					t.Errorf("%s: %+v", id(n), tk)
				}
			}
		})
	}
}

// A task supersedes the check of an earlier one, once it is merged and until it is undone; without that its work would break it.
func TestSupersededCheck(t *testing.T) {
	r := setUp(t)
	q, _ := r.queue("a")
	r.run(q)
	submit := func(n int, script, check string, supersedes ...team.TaskID) task {
		e, b := r.work(id(n), r.head(), script)
		r.board.mu.Lock()
		r.board.tasks[e.Task].check = check
		r.board.mu.Unlock()
		e.Check, e.Supersedes = check, supersedes
		_, err := r.records.Submit(r.ctx, e, b)
		r.must(err)
		r.settled()
		return r.board.of(id(n))
	}
	submit(1, "echo 1.1 > VERSION", "grep -q 1.1 VERSION")
	if tk := submit(2, "echo 1.2 > VERSION", "grep -q 1.2 VERSION"); tk.commit != "" || tk.outcomes[0].Failed != id(1) {
		t.Errorf("without supersedes: %+v", tk)
	}
	if tk := submit(3, "echo 1.2 > VERSION", "grep -q 1.2 VERSION", id(1)); tk.commit == "" {
		t.Errorf("with it: %+v", tk)
	}
	if tk := submit(4, "echo 1.2b > VERSION", "true"); tk.commit == "" {
		t.Errorf("later work: %+v", tk)
	}
	log, err := r.repo.Log(r.ctx, "", r.head())
	if err != nil || !slices.ContainsFunc(log, func(e gitrepo.Entry) bool { return e.Task == id(3) && slices.Equal(e.Supersedes, []team.TaskID{id(1)}) }) {
		t.Errorf("the log is %+v, %v", log, err)
	}
}
