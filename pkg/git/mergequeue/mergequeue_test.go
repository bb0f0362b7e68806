package mergequeue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

var errKilled = errors.New("killed")

// kill has a queue end at a step, as if its process were killed there: nothing is done after it.
// dead is closed then.
func kill(q *mergequeue.Queue, at string) (dead chan struct{}) {
	dead = make(chan struct{})
	q.At(func(ctx context.Context, step string) error {
		select {
		case <-dead:
			return errKilled
		default:
		}
		if step == at {
			close(dead)
			return errKilled
		}
		return ctx.Err()
	})
	return dead
}

func id(n int) team.TaskID { return team.TaskID(fmt.Sprintf("T-%03d", n)) }

func TestTwoQueuesMergeEachTaskOnce(t *testing.T) {
	r := setUp(t)
	base := r.head()
	const tasks = 8
	for n := 1; n <= tasks; n++ {
		// Two neighbours change the same line, and each task has a file of its own.
		r.submit(id(n), base, fmt.Sprintf("sed -i '%ds/.*/by %d/' numbers.txt; echo %d > own-%d", 4*((n+1)/2), n, n, n))
	}
	for _, name := range []string{"a", "b"} {
		q, _ := r.queue(name)
		r.run(q)
	}
	r.settled()
	r.once()
	again := 0
	for n := 1; n <= tasks; n++ {
		tk := r.board.of(id(n))
		if odd := n%2 == 1; odd != (tk.commit != "") || odd != (len(tk.outcomes) == 0) {
			t.Errorf("%s: %+v; the first of a pair is merged, the second is not", id(n), tk)
			continue
		}
		if len(tk.outcomes) == 0 {
			continue
		}
		o := tk.outcomes[0]
		if o.Kind != mergequeue.Conflicting || len(o.Conflicts) != 1 || o.Conflicts[0].Path != "numbers.txt" ||
			!strings.Contains(o.Conflicts[0].Ours, fmt.Sprintf("+by %d\n", n-1)) || !strings.Contains(o.Conflicts[0].Theirs, fmt.Sprintf("+by %d\n", n)) {
			t.Errorf("%s: outcome %+v", id(n), o)
		}
		if !slices.ContainsFunc(o.Since, func(e mergequeue.Since) bool {
			return e.Task == id(n-1) && e.Subject == "Work on "+string(id(n-1)) && e.Summary == "What it is for"
		}) || o.Title != "Work on "+string(id(n)) || o.Summary != "What it is for" || o.Agent != "coder-1" {
			t.Errorf("%s: one of the intents is not in %+v", id(n), o)
		}
		r.submit(id(n), r.head(), fmt.Sprintf("sed -i 's/^by %d$/by %d and %d/' numbers.txt; echo %d > own-%d", n-1, n-1, n, n, n))
		again++
	}
	if again == 0 {
		t.Fatal("no conflict")
	}
	r.settled()
	r.once()
	for n := 1; n <= tasks; n++ {
		if r.board.of(id(n)).commit == "" {
			t.Errorf("%s is not completed", id(n))
		}
	}
	if text := r.at("numbers.txt"); !strings.Contains(text, "by 1 and 2\n") || !strings.Contains(text, "by 7 and 8\n") {
		t.Errorf("numbers.txt lost a change:\n%s", text)
	}
}

func TestKilledAtEachStep(t *testing.T) {
	testenv.Long(t)
	r := setUp(t)
	r.lease = 800 * time.Millisecond
	returned, n := map[mergequeue.Work]bool{}, 0
	for _, tt := range []struct {
		step  string
		fails bool // the work conflicts
	}{
		{"bring", false}, {"import", false}, {"merge", false}, {"commit", false}, {"check", false}, {"store", false}, {"move", false},
		{"follow", false}, {"complete", false}, {"clean", false}, {"remove", false}, {"give back", false},
		{"pin", true}, {"decide", true}, {"seal", true}, {"release", true}, {"remove", true},
	} {
		n += 2
		first, second := id(n-1), id(n)
		base := r.head()
		if tt.fails { // the first changes the line that the second changes too
			q, _ := r.queue("b")
			e, b := r.work(second, base, fmt.Sprintf("sed -i '5s/.*/by %d/' numbers.txt", n))
			r.submit(first, base, fmt.Sprintf("sed -i '5s/.*/by %d/' numbers.txt", n-1))
			stop := r.run(q)
			r.settled()
			stop()
			_, err := r.records.Submit(r.ctx, e, b)
			r.must(err)
		} else {
			e, b := r.work(first, base, fmt.Sprintf("echo %d > own-%d", n, n))
			e.Check = "test -f own-" + fmt.Sprint(n)
			if tt.step == "check" { // which is run only if the line has moved
				to, err := r.repo.Commit(r.ctx, treeOf(r, base), gitrepo.Message{Subject: "Next goal", Agent: team.Leader}, base)
				r.must(err)
				r.must(r.home.Advance(r.ctx, base, to))
			}
			_, err := r.records.Submit(r.ctx, e, b)
			r.must(err)
		}
		q, _ := r.queue("a")
		dead := kill(q, tt.step)
		stop := r.run(q)
		brokertest.Receive(t, "the queue is at the step "+tt.step, dead)
		stop()
		q, _ = r.queue("b")
		stop = r.run(q)
		r.settled()
		stop()
		if tt.fails {
			tk := r.board.of(second)
			if tk.commit != "" || tk.held || len(tk.outcomes) != 1 {
				t.Fatalf("killed at %q: %+v", tt.step, tk)
			}
			r.takesUp(second, tk, fmt.Sprintf("+by %d\n", n))
			returned[mergequeue.Work{Task: second, Epoch: tk.epoch}] = true
		} else if tk := r.board.of(first); tk.commit == "" {
			t.Errorf("killed at %q: not completed: %+v", tt.step, tk)
		}
		r.once()
		all, err := r.home.Works(r.ctx, true)
		r.must(err)
		for _, w := range all {
			if !returned[w] {
				t.Errorf("killed at %q: of %s epoch %d there is still something", tt.step, w.Task, w.Epoch)
			}
		}
		if len(all) != len(returned) {
			t.Errorf("killed at %q: there is %v, want %v", tt.step, all, returned)
		}
	}
}

// seat is a member with its host.
type seat struct {
	name team.AgentID
	site *mergequeue.Site
}

// sixMembers are on two hosts, which share nothing.
func (r *rig) sixMembers() (all []seat) {
	r.t.Helper()
	_, repo := r.queue("away")
	away := &mergequeue.Site{Records: r.records, Repo: repo, Dir: r.t.TempDir()}
	for n := range 6 {
		all = append(all, seat{team.AgentID(fmt.Sprintf("coder-%d", n+1)), []*mergequeue.Site{r.home, away}[n%2]})
	}
	return all
}

// next takes from seats the first that has not declined a task, or the first if all have.
func (r *rig) next(id team.TaskID, seats []seat) (next seat, left []seat) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	tk := r.board.tasks[id]
	n := max(0, slices.IndexFunc(seats, func(s seat) bool { return tk == nil || !tk.record.HasDeclined(s.name) }))
	return seats[n], slices.Delete(slices.Clone(seats), n, n+1)
}

// retries has a member do a task on the line's head, with what was returned of it there, and submits it.
func (r *rig) retries(m seat, n int, check string) {
	r.t.Helper()
	base, err := m.site.Bring(r.ctx)
	r.must(err)
	e, b := r.workOf(m.name, m.site.Repo, id(n), base, fmt.Sprintf("sed -i '%ds/.*/by %[1]d/' numbers.txt; touch own-%[1]d", n))
	e.Check = check
	r.board.mu.Lock()
	r.board.tasks[e.Task].check = check
	record := r.board.tasks[e.Task].record
	r.board.mu.Unlock()
	e.Returned = record.ReturnedEpochs()
	for _, y := range record.Returned {
		if commit, err := m.site.Pinned(r.ctx, e.Task, y); err != nil || string(commit.Files) != y.Commit {
			r.t.Errorf("%s takes up %s as %s, %v", m.name, y.Commit, commit, err)
		}
	}
	_, err = r.records.Submit(r.ctx, e, b)
	r.must(err)
}

// blames checks what the record of a task that is not completed states of a try: it was m's, and cost no attempt the first two times; m is
// offered other tasks first, and so is who has done what it conflicts with.
func (r *rig) blames(m seat, tk task, authors map[team.TaskID]team.AgentID) {
	r.t.Helper()
	o := tk.outcomes[len(tk.outcomes)-1]
	if o.Agent != m.name || o.Kind != mergequeue.Conflicting || len(o.Since) == 0 {
		r.t.Errorf("%s of %s: %+v", tk.record.ID, m.name, o)
	}
	for _, s := range o.Since {
		if s.Agent != authors[s.Task] || !tk.record.HasDeclined(s.Agent) {
			r.t.Errorf("%s conflicts with %s of %s, which %s has done; declined by %v", tk.record.ID, s.Task, s.Agent, authors[s.Task], tk.record.Declined)
		}
	}
	if u := len(tk.outcomes); tk.record.Status != team.Pending || tk.record.Unmerged != u || tk.record.Attempts != max(0, u-2) || !tk.record.HasDeclined(m.name) {
		r.t.Errorf("%s is %s after %d tries: unmerged %d, %d attempts, declined by %v", tk.record.ID, tk.record.Status, u, tk.record.Unmerged, tk.record.Attempts, tk.record.Declined)
	}
}

// Of 20 tasks six members on two hosts do six at a time, neighbours on lines that conflict, while queues of two more hosts are killed
// at each step; none of the hosts share a thing: each task is in the line once, by who has done it, all checks pass there, and the user's checkout is as it was.
func TestManyTasksWhileQueuesAreKilled(t *testing.T) {
	testenv.Long(t)
	r := setUp(t)
	r.lease = 800 * time.Millisecond
	const state = "git rev-parse HEAD; git status --porcelain --ignored; cat numbers.txt"
	user := sh(t, r.user, state)
	steps := []string{"pin", "decide", "seal", "release", "remove", "bring", "import", "merge", "commit", "check", "store", "move", "follow", "complete", "clean", "give back"}
	check := func(n int) string {
		if n > 20 {
			return fmt.Sprintf("test -f own-%d", n)
		}
		return fmt.Sprintf(`grep -qx "by %d" numbers.txt && test -f own-%[1]d`, n)
	}
	var open []int
	for n := range 20 {
		open = append(open, n+1)
	}
	members, authors, again := r.sixMembers(), map[team.TaskID]team.AgentID{}, 0
	for more := 21; len(open) > 0 || len(steps) > 0 && more < 40; more++ {
		if len(open) == 0 { // and there are steps at which no queue was killed yet
			open = append(open, more)
		}
		free, by := members, map[int]seat{}
		for _, n := range open[:min(6, len(open))] {
			by[n], free = r.next(id(n), free)
			r.retries(by[n], n, check(n))
		}
		steps = r.killedAt(steps, 3)
		q, _ := r.queue("a")
		stop := r.run(q)
		r.settled()
		stop()
		r.once()
		for n, m := range by {
			if r.board.of(id(n)).commit != "" {
				authors[id(n)] = m.name
			}
		}
		for n, m := range by {
			if tk := r.board.of(id(n)); tk.commit == "" {
				r.blames(m, tk, authors)
				again++
			}
		}
		open = slices.DeleteFunc(open, func(n int) bool { return authors[id(n)] != "" })
	}
	if len(steps) > 0 || again == 0 {
		t.Errorf("no queue was killed at the steps %q; %d conflicts", steps, again)
	}
	log, err := r.repo.Log(r.ctx, "", r.head())
	r.must(err)
	for _, e := range log {
		if e.Task != "" && e.Agent != authors[e.Task] {
			t.Errorf("%s is in the line as work of %s, and %s has done it", e.Task, e.Agent, authors[e.Task])
		}
	}
	out := filepath.Join(t.TempDir(), "export")
	r.must(r.repo.Export(r.ctx, r.head(), out))
	for n := range 20 {
		sh(t, out, check(n+1))
	}
	if now := sh(t, r.user, state); now != user {
		t.Errorf("the user's checkout is %s, and was %s", now, user)
	}
}

// killedAt runs so many queues, one after the other on two hosts, each killed at the first of the steps that are left, unless nothing is
// left to do before. It returns the steps at which none was.
func (r *rig) killedAt(steps []string, queues int) []string {
	r.t.Helper()
	for n := 0; n < queues && len(steps) > 0; n++ {
		q, _ := r.queue([]string{"a", "b"}[n%2])
		dead, killed := kill(q, steps[0]), false
		stop := r.run(q)
		brokertest.Until(r.t, "the queue is killed at the step "+steps[0]+", or there is nothing left to do", func() bool {
			select {
			case <-dead:
				killed = true
				return true
			default:
			}
			waiting, err := r.records.Waiting(r.ctx)
			h, herr := r.records.Head(r.ctx)
			return errors.Join(err, herr) == nil && len(waiting) == 0 && h.Process == ""
		})
		stop()
		if killed {
			steps = steps[1:]
		}
	}
	return steps
}

// takesUp checks that a host which had no part in it gets the returned work of a task, with what it has
// changed, and that nothing which git removes there takes it.
func (r *rig) takesUp(id team.TaskID, tk task, change string) {
	r.t.Helper()
	o := tk.outcomes[0]
	_, repo := r.queue("host-of-" + strings.ToLower(string(id)))
	site := &mergequeue.Site{Records: r.records, Repo: repo, Dir: r.t.TempDir()}
	_, err := site.Bring(r.ctx)
	r.must(err)
	work := team.Try{By: o.Agent, Epoch: tk.epoch, Commit: string(o.Commit), Base: string(o.Base)}
	for range 2 {
		commit, err := site.Pinned(r.ctx, id, work)
		r.must(err)
		if commit.Files != o.Commit {
			r.t.Errorf("%s: it gets %s, want %s", id, commit, o.Commit)
		}
		sh(r.t, r.root, "cd host-of-"+strings.ToLower(string(id))+"/line.git; git gc -q --prune=now")
	}
	if diff, _, err := repo.Diff(r.ctx, gitrepo.Patch, 1<<20, o.Base, o.Commit); err != nil || !strings.Contains(diff, change) {
		r.t.Errorf("%s: it has %s, %v", id, diff, err)
	}
	work.Commit = strings.Repeat("ab", 20)
	work.Epoch++
	_, err = site.Returned(r.ctx, id, work)
	refuses(r.t, err, team.NotFound, "no file")
}

// A queue holds the lease only while something waits: no queue writes the bucket of an idle line, where each write counts as
// movement.
func TestIdleLineIsNotWritten(t *testing.T) {
	r := setUp(t)
	r.lease = 300 * time.Millisecond
	a, _ := r.queue("a")
	b, _ := r.queue("b")
	r.run(a)
	r.run(b)
	r.submit("T-001", r.head(), "echo 1 > one")
	r.settled()
	brokertest.Until(t, "the lease is given back", func() bool {
		h, err := r.records.Head(r.ctx)
		return err == nil && h.Process == ""
	})
	before, err := r.storage.Bucket.LastSeq(r.ctx)
	r.must(err)
	brokertest.Until(t, "both queues have heard of that", func() bool { return a.Rests() > time.Minute && b.Rests() > time.Minute })
	renewed := time.Now().Add(2 * r.lease)
	brokertest.Until(t, "a lease would have been renewed", func() bool { return time.Now().After(renewed) })
	if now, err := r.storage.Bucket.LastSeq(r.ctx); err != nil || now != before {
		t.Errorf("the bucket was written %d times, %v", now-before, err)
	}
}

// treeOf returns the files of a commit.
func treeOf(r *rig, h gitrepo.Hash) gitrepo.Hash {
	r.t.Helper()
	m, err := r.repo.Merge(r.ctx, h, h)
	r.must(err)
	return m.Tree
}
