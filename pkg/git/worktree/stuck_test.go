package worktree_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A notice is due once it was the turn of an entry for five minutes, and again each hour; those behind it have
// their turn then. Work that is merged meanwhile, and not completed, is another matter.
func TestStuckWorkIsDue(t *testing.T) {
	due, begun := worktree.Due(), time.Now()
	a, b, again := mergequeue.Entry{Task: "T-001", Epoch: 1}, mergequeue.Entry{Task: "T-002", Epoch: 1}, mergequeue.Entry{Task: "T-001", Epoch: 2}
	merged := again
	merged.State = mergequeue.Merged
	for _, look := range []struct {
		minutes int
		waiting []mergequeue.Entry
		want    []team.TaskID
	}{
		{0, []mergequeue.Entry{a, b}, nil},
		{4, []mergequeue.Entry{a, b}, nil},
		{5, []mergequeue.Entry{a, b}, []team.TaskID{"T-001"}},
		{9, []mergequeue.Entry{a, b}, nil},
		{10, []mergequeue.Entry{a, b}, []team.TaskID{"T-002"}},
		{64, []mergequeue.Entry{a, b}, nil},
		{65, []mergequeue.Entry{a, b}, []team.TaskID{"T-001"}},
		{66, []mergequeue.Entry{b}, nil},
		{70, []mergequeue.Entry{b, again}, []team.TaskID{"T-002"}},
		{75, []mergequeue.Entry{again}, []team.TaskID{"T-001"}},
		{76, []mergequeue.Entry{merged}, nil},
		{81, []mergequeue.Entry{merged}, []team.TaskID{"T-001"}},
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
		"it may not": {team.Unconfined, nil, "stuck-T-001-1-unable-0", []string{"[Not merged] The work of coder-2 on T-001 (Theirs)", "may not merge it", "ran in the sandbox confined, and would run in " + string(team.Unconfined)}},
		"in vain":    {team.Confined, denied, "stuck-T-001-1-tried-0", []string{"[Not merged] The work of coder-2 on T-001 (Theirs)", "has tried in vain", `a rule denies "test -e theirs.txt"`}},
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
			for _, want := range tt.wants {
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

// damage replaces the record of a task by what no program can read, until the returned function puts it back.
func (r *rig) damage(id team.TaskID) (repair func()) {
	r.Helper()
	write := func(value []byte) (was []byte) {
		e, err := r.storage.Bucket.Get(r.Context(), subject.KeyTask(id))
		r.must(err)
		_, err = r.storage.Bucket.Put(r.Context(), e.Key, value, e.Revision)
		r.must(err)
		return e.Value
	}
	was := write([]byte("{"))
	return func() { write(was) }
}

// Of work that is in the line, and waits for the record of its task, the leader is notified so: it cannot be taken back.
func TestStuckRecord(t *testing.T) {
	r := setUp(t)
	notices := r.sends()
	repair := make(chan func(), 1)
	r.may = func(_ context.Context, id team.TaskID, _, _, _ string) error { // once the work is known to be held
		if len(repair) == 0 {
			repair <- r.damage(id)
		}
		return nil
	}
	here := r.mate("coder-1", 1)
	here.line.Hurry(0, time.Hour, time.Millisecond)
	here.merges()
	leader := r.mate(team.Leader, 1)
	leader.line.Hurry(time.Millisecond, time.Hour, time.Millisecond)
	theirs := leader.does(r.add("Theirs", "true"), "echo theirs > theirs.txt")
	_, err := here.completes(here.does(r.add("Mine", ""), "echo mine > mine.txt")) // the line moves
	r.must(err)
	if _, err := leader.completes(theirs); !errors.Is(err, team.Busy) {
		t.Errorf("completing it ends with %v", err)
	}
	n := r.next(notices)
	for strings.HasPrefix(n.text, "[Not merged]") { // on a slow machine one of before it was merged
		n = r.next(notices)
	}
	if want := "[Not completed] The work of leader on T-001 (Theirs) is in the line, and the record of T-001 has not been readable"; n.to != team.Leader || !strings.Contains(n.text, want) || strings.Contains(n.text, "takes the task back") {
		t.Errorf("%s reads %s", n.to, n.text)
	}
	_, err = leader.completes(theirs)
	if !errors.Is(err, team.Busy) || !strings.Contains(err.Error(), "T-001 is merged, and its record cannot be read") || strings.Contains(team.HintOf(err), "complete") {
		t.Errorf("completing it again ends with %v", err)
	}
	next := r.mate(team.Leader, 2)
	next.line.Hurry(time.Millisecond, time.Hour, time.Millisecond)
	r.must(next.line.Settle(t.Context()))
	if n := r.next(notices); n.to != team.Leader || !strings.Contains(n.text, "[Not completed] What you have done for T-001 (Theirs)") || strings.Contains(n.text, "update_task") {
		t.Errorf("its successor reads %s", n.text)
	}
	brokertest.Receive(t, "the record was damaged", repair)()
	r.until(func() bool {
		now, err := r.board.Get(t.Context(), theirs.ID)
		return err == nil && now.Status == team.Completed && now.Commit != ""
	})
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

// The successor of a member whose work is not merged waits for it no longer than a leader would have in its call: it is notified, takes over
// nothing, and no other task until that is over. The work stays in the queue, and is merged once, or taken back.
func TestMemberIsReplaced(t *testing.T) {
	merged := func(m *mate, _ team.TaskID) team.TaskStatus {
		m.merges()
		return team.Completed
	}
	takenBack := func(m *mate, id team.TaskID) team.TaskStatus {
		_, err := m.board.Release(m.Context(), id, team.Actor{Holder: team.Holder{Agent: team.Leader, Incarnation: 2}, Leads: true}, 0, team.Freed{Reason: "it waits for too long"})
		m.must(err)
		return team.Pending
	}
	for name, tt := range map[string]struct {
		who  team.AgentID
		end  func(m *mate, id team.TaskID) team.TaskStatus
		hint string
	}{
		"a leader, merged":       {team.Leader, merged, `update_task with status "pending" takes T-001 back`},
		"a leader, taken back":   {team.Leader, takenBack, `update_task with status "pending" takes T-001 back`},
		"a teammate, no notices": {"coder-1", merged, ""},
		"a teammate, merged":     {"coder-1", merged, "The leader can take T-001 back"},
		"a teammate, taken back": {"coder-1", takenBack, "The leader can take T-001 back"},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			notices := r.sends()
			first := r.mate(tt.who, 1)
			task := first.does(r.add("Three", ""), "sed -i 's/^3$/three/' numbers.txt")
			ctx, kill := context.WithCancel(t.Context())
			submitted := make(chan error, 1)
			go func() {
				_, err := first.line.Complete(ctx, task, team.Done{Summary: "done"})
				submitted <- err
			}()
			r.until(func() bool {
				merging, err := first.line.Merging(t.Context(), task)
				return err == nil && merging
			})
			kill()
			if err := brokertest.Receive(t, "the call ends", submitted); !errors.Is(err, context.Canceled) {
				t.Fatalf("the call ended with %v", err)
			}
			first.at.Close()
			if tt.hint == "" {
				r.notify = nil
			}
			next := r.mate(tt.who, 2)
			next.line.Hurry(time.Millisecond, time.Hour, time.Millisecond)
			settled := make(chan error, 1)
			go func() { settled <- next.line.Settle(t.Context()) }()
			r.must(brokertest.Receive(t, "the successor begins", settled))
			if want := "[Not merged] What you have done for T-001 (Three) before your process was restarted still waits"; r.notify != nil {
				if n := r.next(notices); n.to != tt.who || !strings.Contains(n.text, want) || !strings.Contains(n.text, tt.hint) {
					t.Errorf("%s reads %s", n.to, n.text)
				}
			}
			if adopted, ok, err := next.hand.Adopt(t.Context(), ""); ok || err != nil {
				t.Fatalf("adopted %s, %v", adopted.ID, err)
			}
			other := r.add("Other", "")
			if _, err := next.hand.Claim(t.Context(), other); !errors.Is(err, team.Busy) || !strings.Contains(err.Error(), "T-001 (Three)") {
				t.Errorf("claiming another ended with %v", err)
			}
			want := tt.end(next, task.ID)
			r.until(func() bool {
				now, err := r.board.Get(t.Context(), task.ID)
				return err == nil && now.Status == want && (want != team.Completed || now.Commit != "" && now.Epoch == task.Epoch)
			})
			if got := next.does(other, "true"); got.ID != other {
				t.Errorf("then it holds %q", got.ID)
			}
		})
	}
}
