package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// changes is what a member does in its tree before its hold ends: it changes, adds and removes files, one of which
// git ignores.
const changes = "sed -i 's/^3$/three/' numbers.txt; mkdir new; echo new > new/a.txt; rm old.txt; echo log > x.log"

// changed is what the next holder has of that.
const changed = "three\nnew\nlog\n M numbers.txt\n D old.txt\n?? new/\n!! x.log"

func (m *mate) sees() string {
	m.Helper()
	return m.runs("sed -n 3p numbers.txt; cat new/a.txt x.log; test ! -e old.txt; git status --porcelain --ignored | cat; git status --porcelain | head -c0")
}

// withOld adds to the user's repository a file that is removed and one that ignores logs, before the goal begins.
func withOld(t *testing.T) *rig {
	t.Helper()
	r := setUp(t)
	r.sh(r.user, "echo old > old.txt; echo '*.log' > .gitignore; git add -A; git commit -qm old")
	decided, err := r.decide()
	r.must(err)
	r.record.Branch = &decided
	return r
}

// Whichever way a hold ends in order, the next holder begins with its files on another host, and reads that it does. What
// the line has got meanwhile is there, too. Once the task is completed nothing of it is stored, and no tree is left.
func TestUnfinishedWork(t *testing.T) {
	for name, end := range map[string]func(r *rig, m *mate, id team.TaskID) error{
		"stopped": func(r *rig, m *mate, id team.TaskID) error {
			_, err := m.hand.Release(r.Context(), id, team.Freed{Reason: "its process was stopped", Keep: true})
			return err
		},
		"given back": func(r *rig, m *mate, id team.TaskID) error {
			_, err := m.hand.GiveBack(r.Context(), id, team.GiveBack{Freed: team.Freed{Reason: "no compiler", Attempt: true}})
			return err
		},
		"put back by its successor": func(r *rig, m *mate, id team.TaskID) error {
			m.at.Close()
			return r.mate("coder-1", 2).hand.PutBack(r.Context(), "its journal cannot be read")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := withOld(t)
			here, elsewhere := r.dir, t.TempDir()
			one := r.mate("coder-1", 1)
			id := r.add("Three", "")
			task := one.does(id, changes)
			r.must(end(r, one, id))
			one.at.Close()
			back, err := r.board.Get(t.Context(), id)
			r.must(err)
			if work, ok := back.Work(); back.Status != team.Pending || !ok || !work.Unfinished || work.By != "coder-1" || work.Epoch != task.Epoch || work.Ignored == "" || work.Host != "" {
				t.Fatalf("it is %s with %+v", back.Status, back.Returned)
			}
			r.until(func() bool {
				left, _ := filepath.Glob(here + "/*/trees/t-001*")
				return len(left) == 0
			})
			r.dir = elsewhere
			other := r.mate("coder-9", 1)
			other.merges()
			_, err = other.completes(other.does(r.add("Seventeen", ""), "sed -i 's/^17$/seventeen/' numbers.txt"))
			r.must(err)
			next := r.mate("coder-2", 1)
			if back.ReservedFor != "" {
				_, err := r.board.Reserve(t.Context(), id, "coder-2", team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true})
				r.must(err)
			}
			held, err := next.hand.Claim(t.Context(), id)
			r.must(err)
			if got := next.sees(); got != changed {
				t.Errorf("its next holder sees\n%s", got)
			}
			if last, earlier, err := next.hand.LastTry(t.Context(), held); err != nil || last == nil || earlier != nil || last.Reason != back.Reason || !strings.Contains(last.Left(), "in the files of your tree") {
				t.Errorf("it reads %+v and %+v, %v", last, earlier, err)
			}
			done, err := next.completes(held)
			if err != nil || done.Status != team.Completed || len(done.Returned) > 0 {
				t.Fatalf("it is %s, %v", done.Status, err)
			}
			if got := next.runs("sed -n '3p;17p' numbers.txt; git ls-files"); got != "three\nseventeen\n.gitignore\nnew/a.txt\nnumbers.txt" {
				t.Errorf("the line has\n%s", got)
			}
			r.until(func() bool { return len(r.stored()) == 0 })
		})
	}
}

// A hold in which nothing has changed leaves nothing behind.
func TestNothingUnfinished(t *testing.T) {
	r := withOld(t)
	m := r.mate("coder-1", 1)
	id := r.add("Three", "")
	m.does(id, "ls")
	back, err := m.hand.Release(t.Context(), id, team.Freed{})
	r.must(err)
	m.at.Close()
	m.line.Settled(t.Context())
	if left, _ := filepath.Glob(r.dir + "/*/trees/t-001*"); len(back.Returned) > 0 || len(r.stored()) > 0 || len(left) > 0 {
		t.Errorf("there is %+v, stored %q, trees %q", back.Returned, r.stored(), left)
	}
}

// restarted is the next incarnation of a member, which finds no task to adopt.
func (r *rig) restarted(a team.AgentID) *mate {
	r.Helper()
	m := r.mate(a, 2)
	if t, ok, err := m.hand.Adopt(r.Context(), ""); ok || err != nil {
		r.Fatalf("it adopts %s, %v", t.ID, err)
	}
	return m
}

// reaped frees a task as the watchdog does whose holder's process is gone.
func (r *rig) reaped(t team.Task) {
	r.Helper()
	r.must(r.board.Reap(r.Context(), t.ID, t.Epoch, team.Freed{Reason: "its process is gone", Work: t.LeftOn("alpha")}))
}

// After a kill the member's next hold of the task continues in the tree on its host, at the line's head. Any other holder
// reads which host has the files, and the tree stays there until the task is over.
func TestUnfinishedAfterKill(t *testing.T) {
	r := withOld(t)
	id := r.add("Three", "")
	killed := r.mate("coder-1", 1)
	task := killed.does(id, changes)
	killed.at.Close()
	r.reaped(task)
	other := r.mate("coder-2", 1)
	other.merges()
	_, err := other.completes(other.does(r.add("Theirs", ""), "sed -i 's/^3$/theirs/; s/^17$/seventeen/' numbers.txt"))
	r.must(err)
	held, err := other.hand.Claim(t.Context(), id)
	r.must(err)
	if got := other.runs("sed -n 3p numbers.txt; ls"); got != "theirs\nnumbers.txt\nold.txt" {
		t.Errorf("another member sees\n%s", got)
	}
	last, _, err := other.hand.LastTry(t.Context(), held)
	if err != nil || last == nil || last.Reason != "its process is gone" || !strings.Contains(last.Left(), "They are on host alpha") {
		t.Errorf("it reads %+v, %v", last, err)
	}
	_, err = other.hand.Release(t.Context(), id, team.Freed{})
	r.must(err)
	r.must(other.line.Sweep(t.Context()))
	again := r.restarted("coder-1")
	held, err = again.hand.Claim(t.Context(), id)
	r.must(err)
	if got := again.runs("grep -v '^[<>]' numbers.txt | sed -n '3,5p;19p'; cat new/a.txt x.log; git status --porcelain"); got != "theirs\n=======\nthree\nseventeen\nnew\nlog\n M numbers.txt\n D old.txt\n?? new/" {
		t.Errorf("the member sees\n%s", got)
	}
	if trees, _ := filepath.Glob(r.dir + "/*/trees/t-001.coder-1.*.json"); len(trees) != 1 {
		t.Errorf("there are %q", trees)
	}
	again.runs("sed -i '/^[<=>]/d' numbers.txt")
	_, err = again.completes(held)
	r.must(err)
}

// What is too large for the store is named with its host; the others are stored. The tree stays, also once the task was cancelled, and
// its member continues in it, although work of it is stored.
func TestUnfinishedTooLarge(t *testing.T) {
	r := withOld(t)
	id := r.add("Three", "")
	one := r.mate("coder-1", 1)
	one.does(id, changes+"; truncate -s 65M large.bin")
	back, err := one.hand.Release(t.Context(), id, team.Freed{Reason: "stopped"})
	r.must(err)
	one.at.Close()
	host, err := os.Hostname()
	r.must(err)
	work, ok := back.Work()
	if !ok || work.LeftOut != "large.bin (65 MiB)" || work.Host != host || !strings.Contains(work.Left(), "large.bin (65 MiB). They are on host "+host) {
		t.Fatalf("it names %+v", work)
	}
	r.must(one.line.Leave(t.Context(), true))
	r.must(one.line.Sweep(t.Context()))
	two := r.mate("coder-2", 1)
	_, err = two.hand.Claim(t.Context(), id)
	r.must(err)
	if got := two.sees(); got != changed {
		t.Errorf("another member sees\n%s", got)
	}
	_, err = two.hand.GiveBack(t.Context(), id, team.GiveBack{Freed: team.Freed{Reason: "no"}})
	r.must(err)
	two.at.Close()
	one = r.restarted("coder-1")
	_, err = one.hand.Claim(t.Context(), id)
	r.must(err)
	if got := one.runs("ls"); got != "new\nnumbers.txt\nx.log" {
		t.Errorf("newer work of another is stored, and it sees %q", got)
	}
	_, err = one.hand.Release(t.Context(), id, team.Freed{})
	r.must(err)
	one.at.Close()
	leads := team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}
	_, err = r.board.Cancel(t.Context(), id, leads, "not wanted")
	r.must(err)
	one.line.Settled(t.Context())
	r.must(one.line.Sweep(t.Context()))
	if left, _ := filepath.Glob(r.dir + "/*/trees/t-001.coder-1*.json"); len(left) != 1 {
		t.Errorf("of the files that are not stored there is %q", left)
	}
}

// Without the time to store them the files stay in the tree, the record names the host, and the member continues in the tree.
func TestUnfinishedWithoutTime(t *testing.T) {
	r := withOld(t)
	id := r.add("Three", "")
	one := r.mate("coder-1", 1)
	one.does(id, changes+"; truncate -s 65M large.bin")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	one.hand.Unfinished(func(_ context.Context, held team.Task) *team.Try { return one.line.Unfinished(over, held) })
	back, err := one.hand.Release(t.Context(), id, team.Freed{Reason: "stopped"})
	r.must(err)
	one.at.Close()
	if _, ok := back.Work(); ok || len(back.Returned) != 1 || back.Returned[0].Host == "" {
		t.Fatalf("it names %+v", back.Returned)
	}
	r.must(one.line.Sweep(t.Context()))
	one = r.restarted("coder-1")
	_, err = one.hand.Claim(t.Context(), id)
	r.must(err)
	if got := one.runs("test -f large.bin; rm large.bin; echo there") + "\n" + one.sees(); got != "there\n"+changed {
		t.Errorf("it sees\n%s", got)
	}
}

// joined puts a member's record onto the roster, as that of a process that runs.
func (r *rig) joined(all ...team.AgentID) {
	r.Helper()
	for _, a := range all {
		_, err := roster.New(r.storage).Put(r.Context(), team.Member{AgentID: a, Role: "coder", Backend: team.Exec, State: team.Joined, Incarnation: 1})
		r.must(err)
	}
}

// conflicts has the work of m on a task conflict with that of other, and returns what m reads, and the task.
func (m *mate) conflicts(id team.TaskID, other *mate) (team.Task, error) {
	m.Helper()
	mine := m.does(id, changes)
	_, err := other.completes(other.does(m.add("Theirs", ""), "sed -i 's/^3$/theirs/; s/^17$/seventeen/' numbers.txt"))
	m.must(err)
	back, err := m.completes(mine)
	if !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "T-001 was not merged: it conflicts with the line in numbers.txt") {
		m.Fatalf("it reads %v", err)
	}
	return back, err
}

// A holder whose work conflicts keeps its task, in a tree that has what the line has now with its work in it, and completes it there. That
// is an attempt from the third time on. The only idle member has done the work that it conflicts with.
func TestConflictStaysWithItsHolder(t *testing.T) {
	r := withOld(t)
	r.joined("coder-1", "coder-2")
	r.peers = func(context.Context) (explain.Situation, error) {
		return explain.Situation{Members: []explain.Standing{{Member: team.Member{AgentID: "coder-1", Role: "coder", State: team.Joined}, State: team.Idle}}}, nil
	}
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "")
	back, err := two.conflicts(id, one)
	if held, ok := two.hand.Task(); !ok || held.Epoch != 2 || back.Status != team.InProgress || back.Epoch != 2 || back.Attempts != 0 || back.Unmerged != 1 || !strings.Contains(team.ModelHintOf(err), "is still yours") {
		t.Fatalf("it is %s under epoch %d after %d attempts, held is epoch %d; %v", back.Status, back.Epoch, back.Attempts, held.Epoch, team.ModelHintOf(err))
	}
	if got := two.runs("grep -v '^[<>]' numbers.txt | sed -n '3,5p;19p'; git status --porcelain --ignored"); got != "theirs\n=======\nthree\nseventeen\n M numbers.txt\n D old.txt\n?? new/\n!! x.log" {
		t.Errorf("its tree has\n%s", got)
	}
	if _, err := two.completes(back); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("with both sides it is completed: %v", err)
	}
	for n := 2; n <= 3; n++ {
		two.bash("sed -i '/^[<=>]/d; s/^17.*$/mine " + string(rune('0'+n)) + "/' numbers.txt")
		_, err := one.completes(one.does(r.add("Theirs again", ""), "sed -i 's/^seventeen.*$/seventeen "+string(rune('0'+n))+"/' numbers.txt; sed -i 's/^three$/four/' numbers.txt"))
		r.must(err)
		two.bash("sed -i 's/^seventeen.*$/mine/' numbers.txt")
		if back, err = two.completes(back); err == nil || back.Status != team.InProgress || back.Unmerged != n || back.Attempts != n/3 {
			t.Fatalf("try %d: it is %s, unmerged %d after %d attempts, %v", n, back.Status, back.Unmerged, back.Attempts, err)
		}
	}
	two.bash("sed -i '/^[<=>]/d' numbers.txt")
	done, err := two.completes(back)
	if err != nil || done.Status != team.Completed || len(done.Returned) > 0 {
		t.Fatalf("it is %s, %v", done.Status, err)
	}
	r.until(func() bool { return len(r.stored()) == 0 })
}

// A third member that is idle takes work that conflicts, with all files of it, those that git ignores too; its former holder
// reads the conflict, and that.
func TestConflictGoesToAThird(t *testing.T) {
	r := withOld(t)
	r.joined("coder-1", "coder-2", "coder-3")
	r.peers = func(context.Context) (explain.Situation, error) {
		return explain.Situation{Members: []explain.Standing{{Member: team.Member{AgentID: "coder-3", Role: "coder", State: team.Joined}, State: team.Idle}}}, nil
	}
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "")
	back, err := two.conflicts(id, one)
	if _, ok := two.hand.Task(); ok || back.Status != team.Pending || !back.HasDeclined("coder-1") || !back.HasDeclined("coder-2") || !strings.Contains(team.ModelHintOf(err), "no longer yours") {
		t.Fatalf("it is %s, declined by %v, and its holder reads %q", back.Status, back.Declined, team.ModelHintOf(err))
	}
	r.dir = t.TempDir()
	three := r.mate("coder-3", 1)
	held, err := three.hand.Claim(t.Context(), id)
	r.must(err)
	if got := three.runs("grep -v '^[<>]' numbers.txt | sed -n '3,5p'; cat new/a.txt x.log; git status --porcelain"); got != "theirs\n=======\nthree\nnew\nlog\n M numbers.txt\n D old.txt\n?? new/" {
		t.Errorf("its tree has\n%s", got)
	}
	last, _, err := three.hand.LastTry(t.Context(), held)
	if err != nil || last == nil || !strings.Contains(last.Reason, "In conflict (1): numbers.txt (contents)") {
		t.Errorf("it reads %+v, %v", last, err)
	}
}

// The call of a holder whose task another has already taken, since its process was gone for the queue, is interrupted by that. It reads why
// its work was not merged, and not that it was interrupted.
func TestInterruptedByTheOutcome(t *testing.T) {
	r := withOld(t)
	one, two := r.mate("coder-1", 1), r.mate("coder-2", 1)
	one.merges()
	id := r.add("Mine", "")
	mine := two.does(id, changes)
	_, err := one.completes(one.does(r.add("Theirs", ""), "sed -i 's/^3$/theirs/' numbers.txt"))
	r.must(err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	two.hand.OnLoss(func(team.Task, error) { cancel() })
	submitted, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := two.line.Complete(submitted, mine, team.Done{Summary: "done as told"})
		ended <- err
	}()
	r.until(func() bool {
		merging, err := two.line.Merging(t.Context(), mine)
		back, failed := r.board.Get(t.Context(), id)
		return err == nil && merging || failed == nil && back.Status == team.Pending
	})
	stop()
	first := brokertest.Receive(t, "the call ends", ended)
	r.until(func() bool {
		_, err := r.mate("coder-3", 1).hand.Claim(t.Context(), id)
		return err == nil
	})
	_, err = worktree.Answer(two.line, over, mine)
	for _, err := range []error{first, err} {
		if errors.Is(err, context.Canceled) && err == first { // nothing had come of it by then
			continue
		}
		if !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "it conflicts with the line in numbers.txt") {
			t.Errorf("it reads %v", err)
		}
	}
	if !strings.Contains(team.ModelHintOf(err), "no longer yours: coder-3 has it") {
		t.Errorf("its hint: %s", team.ModelHintOf(err))
	}
}

// loses finds that a task which was m's is not any more, as its process does.
func (m *mate) loses(task team.Task) {
	m.Helper()
	_, _ = m.hand.Confirm(m.Context(), task.ID) // the error is the loss
	if now, holds := m.hand.Task(); holds {
		m.Fatalf("it still holds %s", now.ID)
	}
	m.line.Taken(m.Context(), task)
}

// A task that is taken from its holder is free at that moment. Once its holder's process notices it, the files are stored: the next
// holder begins with them on another host, also one that took the task before that and has no tree yet. It reads that they are there.
func TestTakenAway(t *testing.T) {
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
	for name, tt := range map[string]struct {
		take   func(r *rig, next *mate, id team.TaskID) error
		status team.TaskStatus
		notice bool
	}{
		"released": {func(r *rig, _ *mate, id team.TaskID) error {
			_, err := r.board.Release(r.Context(), id, leads, 0, team.Freed{})
			return err
		}, team.Pending, false},
		"freed by the watchdog": {func(r *rig, _ *mate, id team.TaskID) error {
			return r.board.Reap(r.Context(), id, 1, team.Freed{Reason: "frozen", Work: &team.Try{By: "coder-1", Epoch: 1, Unfinished: true, Host: "alpha"}})
		}, team.Pending, false},
		"reassigned": {func(_ *rig, next *mate, id team.TaskID) error {
			_, _, err := next.hand.Assign(next.Context(), team.Assignment{Task: id, By: team.Leader, Take: true, Epoch: 1})
			return err
		}, team.InProgress, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := withOld(t)
			notices := r.notices()
			one := r.mate("coder-1", 1)
			id := r.add("Three", "")
			task := one.does(id, changes)
			r.dir = t.TempDir()
			next := r.mate("coder-2", 1)
			r.must(tt.take(r, next, id))
			one.loses(task)
			one.at.Settle()
			one.line.Settled(t.Context())
			now, err := r.board.Get(t.Context(), id)
			r.must(err)
			if work, ok := now.Work(); now.Status != tt.status || len(now.Returned) != 1 || !ok || !work.Unfinished || work.By != "coder-1" || work.Epoch != task.Epoch || work.Host != "" {
				t.Fatalf("it is %s with %+v", now.Status, now.Returned)
			}
			if tt.notice != (len(*notices) == 1 && strings.Contains((*notices)[0], "coder-1 held T-001 before you")) {
				t.Errorf("notices: %q", *notices)
			}
			held, err := next.hand.Claim(t.Context(), id)
			r.must(err)
			if got := next.sees(); got != changed {
				t.Errorf("its next holder sees\n%s", got)
			}
			if last, _, err := next.hand.LastTry(t.Context(), held); err != nil || last == nil || !tt.notice && !strings.Contains(last.Left(), "in the files of your tree") {
				t.Errorf("it reads %+v, %v", last, err)
			}
			next.merges()
			if done, err := next.completes(held); err != nil || len(done.Returned) > 0 {
				t.Errorf("it is %s, %v", done.Status, err)
			}
		})
	}
}

// If the time to store the files of a task that was taken away ends in the middle, its record names the host, and its present
// holder gets a message.
func TestTakenAwayWithoutTime(t *testing.T) {
	r := withOld(t)
	notices := r.notices()
	r.toStore = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	one, next := r.mate("coder-1", 1), r.mate("coder-2", 1)
	id := r.add("Three", "")
	task := one.does(id, changes)
	_, _, err := next.hand.Assign(t.Context(), team.Assignment{Task: id, By: team.Leader, Take: true, Epoch: 1})
	r.must(err)
	one.loses(task)
	now, err := r.board.Get(t.Context(), id)
	r.must(err)
	if len(now.Returned) != 1 || now.Returned[0].Epoch != 1 || now.Returned[0].Host == "" || now.Returned[0].Commit != "" || len(*notices) != 1 {
		t.Errorf("it has %+v, notices: %q", now.Returned, *notices)
	}
}

// Of a task that was cancelled while it was held, files that are not stored are named, and stay in their tree.
func TestFilesOfCancelledAreNotStored(t *testing.T) {
	r := withOld(t)
	one := r.mate("coder-1", 1)
	id := r.add("Three", "")
	task := one.does(id, "truncate -s 65M large.bin")
	_, err := r.board.Cancel(t.Context(), id, team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}, "")
	r.must(err)
	one.loses(task)
	one.at.Close()
	r.must(one.line.Leave(t.Context(), true))
	r.must(one.line.Sweep(t.Context()))
	now, err := r.board.Get(t.Context(), id)
	r.must(err)
	left := strings.Fields(r.sh(r.dir, "find . -name large.bin"))
	if len(now.Returned) != 1 || now.Returned[0].Host == "" || now.Returned[0].LeftOut != "large.bin (65 MiB)" || len(left) != 1 {
		t.Errorf("it has %+v, and its tree %q", now.Returned, left)
	}
}

// A task that has ended while it was held keeps its files for who looks at them: stored, and named by its record. One that is
// completed keeps nothing.
func TestFilesOfEndedTasks(t *testing.T) {
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}
	for name, tt := range map[string]struct {
		end    func(r *rig, m *mate, task team.Task) error
		status team.TaskStatus
	}{
		"given up": {func(r *rig, m *mate, task team.Task) error {
			_, err := m.hand.Fail(r.Context(), task.ID, "no compiler")
			return err
		}, team.Failed},
		"the last check has failed": {func(r *rig, m *mate, task team.Task) (err error) {
			for range team.MaxAttempts {
				if _, err = m.hand.FailCheck(r.Context(), task.ID, "red"); err != nil {
					return err
				}
			}
			return nil
		}, team.Failed},
		"failed by the leader": {func(r *rig, m *mate, task team.Task) error {
			_, err := r.board.Fail(r.Context(), task.ID, leads, 0, team.Freed{})
			m.loses(task)
			return err
		}, team.Failed},
		"cancelled": {func(r *rig, m *mate, task team.Task) error {
			_, err := r.board.Cancel(r.Context(), task.ID, leads, "")
			m.loses(task)
			return err
		}, team.Cancelled},
		"cancelled by its holder": {func(r *rig, m *mate, task team.Task) error {
			_, err := m.hand.Cancel(r.Context(), task.ID, team.Actor{Holder: m.hand.Holder(), Leads: true}, "no use")
			return err
		}, team.Cancelled},
		"completed": {func(r *rig, m *mate, task team.Task) error {
			_, err := m.hand.Complete(r.Context(), task.ID, team.Done{Summary: "done"})
			m.loses(task)
			return err
		}, team.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			r := withOld(t)
			one := r.mate("coder-1", 1)
			id := r.add("Three", "")
			r.must(tt.end(r, one, one.does(id, changes)))
			one.at.Settle()
			one.line.Settled(t.Context())
			r.must(one.line.Sweep(t.Context()))
			r.must(r.mate(team.Leader, 1).line.Sweep(t.Context()))
			now, err := r.board.Get(t.Context(), id)
			r.must(err)
			want := 1
			if tt.status == team.Completed {
				want = 0
			}
			if work, ok := now.Work(); now.Status != tt.status || len(now.Returned) != want || ok != (want == 1) || ok && work.Epoch != 1 || len(r.stored()) != want {
				t.Errorf("it is %s with %+v, stored %q", now.Status, now.Returned, r.stored())
			}
			if left, _ := filepath.Glob(r.dir + "/*/trees/t-001*"); len(left) > 0 {
				t.Errorf("there is still %q", left)
			}
		})
	}
}
