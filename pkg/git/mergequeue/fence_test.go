package mergequeue_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// gate stops a queue at a step, its renewals too, as a process is that is frozen.
type gate struct {
	at          string
	once        sync.Once
	there, open chan struct{}
}

func freeze(q *mergequeue.Queue, at string) *gate {
	g := &gate{at: at, there: make(chan struct{}), open: make(chan struct{})}
	q.At(func(ctx context.Context, step string) error {
		if step == g.at {
			g.once.Do(func() { close(g.there) })
		}
		select {
		case <-g.there:
			<-g.open
		default:
		}
		return ctx.Err()
	})
	return g
}

// spoken is a log handler that closes heard at the first record.
type spoken struct {
	once  *sync.Once
	heard chan struct{}
}

func (s spoken) Handle(context.Context, slog.Record) error {
	s.once.Do(func() { close(s.heard) })
	return nil
}

func (s spoken) Enabled(context.Context, slog.Level) bool { return true }
func (s spoken) WithGroup(string) slog.Handler            { return s }

func (s spoken) WithAttrs([]slog.Attr) slog.Handler { return s }

// A queue that was frozen beyond its lease moves nothing, even while the head is as it left it.
func TestFrozenQueueMovesNothing(t *testing.T) {
	for _, step := range []string{"move", "seal"} {
		t.Run(step, func(t *testing.T) {
			r := setUp(t)
			r.lease = time.Second
			base := r.head()
			e := r.submit("T-001", base, "sed -i '5s/.*/one/' numbers.txt")
			if step == "seal" { // whose work conflicts
				to, err := r.repo.Commit(r.ctx, treeOf(r, r.elsewhere(base)), gitrepo.Message{Subject: "Next goal", Agent: team.Leader}, base)
				r.must(err)
				r.must(r.home.Advance(r.ctx, base, to))
			}
			stopped := spoken{new(sync.Once), make(chan struct{})}
			r.log = slog.New(stopped)
			frozen, _ := r.queue("a")
			g := freeze(frozen, step)
			r.run(frozen)
			brokertest.Receive(t, "the queue is at the step", g.there)

			r.log = nil
			other, _ := r.queue("b")
			busy := freeze(other, "bring")
			if step == "seal" {
				busy = freeze(other, "release")
			}
			r.run(other)
			brokertest.Receive(t, "the other queue is at the step", busy.there) // it has the lease, and the head is as before
			before, err := r.records.Head(r.ctx)
			r.must(err)
			close(g.open)
			brokertest.Receive(t, "the frozen queue says that it stops", stopped.heard)
			after, err := r.records.Head(r.ctx)
			r.must(err)
			if after.Commit != before.Commit || after.Process != before.Process || len(r.board.of("T-001").outcomes) > 0 {
				t.Errorf("the frozen queue has written: %+v, before %+v", after, before)
			}
			close(busy.open)
			r.settled()
			r.once()
			if tk := r.board.of("T-001"); step == "seal" && len(tk.outcomes) != 1 || step == "move" && tk.commit == "" {
				t.Errorf("%+v of epoch %d", tk, e.Epoch)
			}
		})
	}
}

// elsewhere makes a commit on base that no task's work goes with.
func (r *rig) elsewhere(base gitrepo.Hash) gitrepo.Hash {
	r.t.Helper()
	_, b := r.work("T-900", base, "sed -i '5s/.*/elsewhere/' numbers.txt")
	h, err := r.repo.Import(r.ctx, b, base)
	r.must(err)
	return h
}

func TestWithdraw(t *testing.T) {
	r := setUp(t)
	q, _ := r.queue("a")
	e, b := r.work("T-001", r.head(), "echo 1 > one")
	e, err := r.records.Submit(r.ctx, e, b)
	r.must(err)
	r.submit("T-009", e.Base, "echo 9 > nine") // once that is merged, the queue is past the other
	// At the last moment: the queue is about to move the head.
	q.At(func(ctx context.Context, step string) error {
		if step == "move" {
			if err := r.records.Withdraw(r.ctx, "T-001", 1); err != nil {
				t.Error(err)
			}
		}
		return ctx.Err()
	})
	stop := r.run(q)
	r.settled()
	stop()
	if tk := r.board.of("T-001"); tk.commit != "" {
		t.Fatal("what was withdrawn was merged")
	}
	r.must(r.records.Withdraw(r.ctx, "T-001", 1))
	_, err = r.records.Submit(r.ctx, e, b)
	refuses(t, err, team.Conflict, "withdrawn")

	// The same before anything was submitted, and for a later epoch.
	r.must(r.records.Withdraw(r.ctx, "T-002", 3))
	_, err = r.records.Submit(r.ctx, mergequeue.Entry{Task: "T-002", Epoch: 3, Agent: "coder-1", Base: e.Base}, b)
	refuses(t, err, team.Conflict, "withdrawn")
	_, err = r.records.Submit(r.ctx, mergequeue.Entry{Task: "T-002", Epoch: 2, Agent: "coder-1", Base: e.Base}, b)
	refuses(t, err, team.Conflict, "epoch 3")

	r.must(r.board.Release(r.ctx, e, mergequeue.Outcome{}))
	e, b = r.work("T-001", r.head(), "echo 2 > one")
	first, err := r.records.Submit(r.ctx, e, b)
	r.must(err)
	again, err := r.records.Submit(r.ctx, e, []byte("another"))
	if err != nil || again.Revision != first.Revision || again.Digest != first.Digest {
		t.Errorf("submitted again: %+v, %v; before %+v", again, err, first)
	}
	refuses(t, r.records.Withdraw(r.ctx, "T-001", 1), team.Conflict, "epoch 2")
	q, _ = r.queue("a")
	q.At(func(ctx context.Context, step string) error {
		if step == "complete" { // too late
			refuses(t, r.records.Withdraw(r.ctx, "T-001", 2), team.InvalidState, "in the line")
		}
		return ctx.Err()
	})
	r.run(q)
	r.settled()
	r.once()
}

func TestSubmitNeedsAllOfIt(t *testing.T) {
	r := setUp(t)
	good := mergequeue.Entry{Task: "T-001", Epoch: 1, Agent: "coder-1", Base: r.head()}
	for name, change := range map[string]func(*mergequeue.Entry){
		"no task":  func(e *mergequeue.Entry) { e.Task = "" },
		"no agent": func(e *mergequeue.Entry) { e.Agent = "" },
		"no base":  func(e *mergequeue.Entry) { e.Base = "main" },
		"no epoch": func(e *mergequeue.Entry) { e.Epoch = 0 },
	} {
		e := good
		change(&e)
		if _, err := r.records.Submit(r.ctx, e, []byte("x")); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := r.records.Submit(r.ctx, good, nil)
	refuses(t, err, team.InvalidArgument, "bundle")
	_, err = mergequeue.NewQueue(mergequeue.Options{Site: r.home})
	refuses(t, err, team.InvalidArgument, "needs")
}

func TestChecksOfMergedFiles(t *testing.T) {
	r := setUp(t)
	base := r.head()
	q, _ := r.queue("a")
	r.run(q)
	check := func(e mergequeue.Entry, b []byte, script string) {
		r.board.mu.Lock()
		r.board.tasks[e.Task].check = script
		r.board.mu.Unlock()
		e.Check = script
		_, err := r.records.Submit(r.ctx, e, b)
		r.must(err)
		r.settled()
	}
	ran := func(want ...team.TaskID) {
		t.Helper()
		r.checks.mu.Lock()
		defer r.checks.mu.Unlock()
		if !slices.Equal(r.checks.ran, want) {
			t.Errorf("the checks of %v ran, want %v", r.checks.ran, want)
		}
		r.checks.ran = nil
	}
	e2, b2 := r.work("T-002", base, "sed -i '20s/.*/x/' numbers.txt")
	e3, b3 := r.work("T-003", base, "echo 3 > three")
	e4, b4 := r.work("T-004", base, "sed -i '10s/.*/broken/' numbers.txt")

	e, b := r.work("T-001", base, "sed -i '1s/.*/one/' numbers.txt")
	check(e, b, "! grep -q broken numbers.txt")
	ran("T-001")
	check(e2, b2, "grep -q x numbers.txt")
	ran("T-002", "T-001") // both changed the file
	check(e3, b3, "! grep one numbers.txt")
	ran("T-003", "T-003") // and fails, but not on its own work
	if o := r.board.of("T-003").outcomes; len(o) != 1 || o[0].Kind != mergequeue.CheckFailed || o[0].Failed != "T-003" || o[0].Own || len(o[0].Since) != 2 || o[0].Commit == "" {
		t.Errorf("outcomes %+v", o)
	}
	check(e4, b4, "true")
	ran("T-004", "T-001", "T-001") // it breaks the check of the first, whose file it changes, and would do so alone
	o := r.board.of("T-004").outcomes
	if len(o) != 1 || o[0].Kind != mergequeue.CheckFailed || o[0].Failed != "T-001" || !o[0].Own || !strings.Contains(o[0].Reason, "T-001") {
		t.Errorf("outcomes %+v", o)
	}
	r.once()
}

// The check of a task that is over cannot be changed any more: a rule that denies it holds no later work, and that it was left
// out is reported.
func TestDeniedRecheck(t *testing.T) {
	r := setUp(t)
	base := r.head()
	q, _ := r.queue("a")
	r.run(q)
	e, b := r.work("T-001", base, "sed -i '1s/.*/one/' numbers.txt")
	later, laterBundle := r.work("T-002", base, "sed -i '20s/.*/x/' numbers.txt")
	r.board.tasks["T-001"].check = "true"
	e.Check = "true"
	_, err := r.records.Submit(r.ctx, e, b)
	r.must(err)
	r.settled()
	r.checks.mu.Lock()
	r.checks.denied = "T-001"
	r.checks.mu.Unlock()
	_, err = r.records.Submit(r.ctx, later, laterBundle)
	r.must(err)
	r.settled()
	if h, err := r.records.Head(r.ctx); err != nil || len(h.Last) != 1 || h.Last[0].Task != "T-002" {
		t.Errorf("merged last is %v, %v", h.Last, err)
	}
	r.checks.mu.Lock()
	defer r.checks.mu.Unlock()
	if got := r.checks.leftOut; !slices.Equal(got, []team.TaskID{"T-002", "T-001"}) {
		t.Errorf("left out are %q", got)
	}
}

// While another queue holds the lease an entry only waits: nothing is wrong that its queue knows.
func TestNoTroubleMeanwhile(t *testing.T) {
	r := setUp(t)
	r.lease = time.Hour
	q, _ := r.queue("a")
	r.checks.no = map[team.TaskID]bool{"T-001": true}
	e := r.submit("T-001", r.head(), "echo 1 > one")
	r.run(q)
	trouble := func() bool {
		why, _ := q.Trouble(r.ctx, e)
		return why != nil
	}
	brokertest.Until(t, "it may not merge it", trouble)
	h, err := r.records.Head(r.ctx)
	r.must(err)
	h.Process = "b-1"
	text, err := json.Marshal(h)
	r.must(err)
	r.must(r.storage.Bucket.Set(r.ctx, subject.KeyBranch, text))
	brokertest.Until(t, "it waits for the other", func() bool { return !trouble() })
}

func TestRefusedBundle(t *testing.T) {
	r := setUp(t)
	e, _ := r.work("T-001", r.head(), "echo 1 > one")
	_, err := r.records.Submit(r.ctx, e, []byte("no bundle"))
	r.must(err)
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	if o := r.board.of("T-001").outcomes; len(o) != 1 || o[0].Kind != mergequeue.Refused || !strings.Contains(o[0].Reason, "the bundle is refused") {
		t.Errorf("outcomes %+v", o)
	}
	r.once()
}

// What no queue here may merge waits for another one, and keeps nothing else from its turn.
func TestEntryForAnotherQueue(t *testing.T) {
	r := setUp(t)
	base := r.head()
	r.checks.no = map[team.TaskID]bool{"T-001": true}
	e := r.submit("T-001", base, "echo 1 > one")
	r.submit("T-002", base, "echo 2 > two")
	q, _ := r.queue("a")
	stop := r.run(q)
	r.settled("T-001")
	stop()
	if why, tried := q.Trouble(r.ctx, e); why == nil || tried {
		t.Errorf("its trouble is %v, tried: %v", why, tried)
	}
	if all, err := r.records.Waiting(r.ctx); err != nil || len(all) != 1 || all[0].Task != "T-001" {
		t.Errorf("waiting: %+v, %v", all, err)
	}
	r.checks.no = nil
	q, _ = r.queue("b")
	if why, _ := q.Trouble(r.ctx, e); why != nil {
		t.Errorf("the trouble of one that may is %v", why)
	}
	r.run(q)
	r.settled()
	r.once()
}

func TestAdvance(t *testing.T) {
	r := setUp(t)
	base := r.head()
	r.must(r.home.Advance(r.ctx, "", base)) // again
	next := r.elsewhere(base)
	refuses(t, r.home.Advance(r.ctx, "", next), team.Conflict, "head is")
	refuses(t, r.home.Advance(r.ctx, next, base), team.Conflict, "lacks its head")
	_, repo := r.queue("b")
	other := mergequeue.Site{Records: r.records, Repo: repo}
	if h, err := other.Bring(r.ctx); err != nil || h != base {
		t.Fatalf("Bring = %s, %v; want %s", h, err, base)
	}
	if h, err := repo.Head(r.ctx); err != nil || h != base {
		t.Errorf("the other host's head is %s, %v; want %s", h, err, base)
	}
}

// slowly is a checker that is asked for a long time what it may merge, as while the server is away.
type slowly struct {
	*checks
	asked, answer chan struct{}
}

func (s slowly) Able(context.Context, mergequeue.Entry) error {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.answer
	return errors.New("no answer")
}

// Whether a queue may merge an entry can be in doubt while the server is away: it is asked again,
// and meanwhile the line can be seen.
func TestAbleInDoubt(t *testing.T) {
	r := setUp(t)
	s := slowly{r.checks, make(chan struct{}, 1), make(chan struct{})}
	q, err := mergequeue.NewQueue(mergequeue.Options{Site: r.home, Tasks: r.board, Checker: s, Process: "a"})
	r.must(err)
	r.run(q)
	head := r.head()
	r.submit("T-001", head, "echo 1 > one")
	brokertest.Receive(t, "the checker is asked", s.asked)
	seen := make(chan gitrepo.Hash, 1)
	go func() { seen <- q.Seen() }()
	if h := brokertest.Receive(t, "Seen does not wait for the checker", seen); h != head {
		t.Errorf("seen %s, want %s", h, head)
	}
	close(s.answer)
	if wait := q.Rests(); wait > time.Minute {
		t.Errorf("it looks again in %v", wait)
	}
}

// The repository of this host is removed while work is merged: that is no fault of the work.
func TestRepositoryGoneInTheMiddle(t *testing.T) {
	r := setUp(t)
	r.submit("T-001", r.head(), "echo 1 > one")
	q, _ := r.queue("a")
	once := sync.OnceFunc(func() { sh(t, r.root, "mv a/line.git gone") })
	q.At(func(ctx context.Context, step string) error {
		if step == "merge" {
			once()
		}
		return ctx.Err()
	})
	r.run(q)
	r.settled()
	r.once()
	if tk := r.board.of("T-001"); tk.commit == "" || len(tk.outcomes) > 0 {
		t.Errorf("%+v", tk)
	}
}

// A decision that is not carried out yet waits for a queue too: until then the task is not adopted.
func TestReturnedWaits(t *testing.T) {
	r := setUp(t)
	base := r.head()
	r.submit("T-001", base, "sed -i '5s/.*/one/' numbers.txt")
	to, err := r.repo.Commit(r.ctx, treeOf(r, r.elsewhere(base)), gitrepo.Message{Subject: "Next goal", Agent: team.Leader}, base)
	r.must(err)
	r.must(r.home.Advance(r.ctx, base, to))
	q, _ := r.queue("a")
	dead := kill(q, "release")
	stop := r.run(q)
	brokertest.Receive(t, "the queue is at the step", dead)
	stop()
	if all, err := r.records.Waiting(r.ctx); err != nil || len(all) != 1 || all[0].State != mergequeue.Returned {
		t.Errorf("waiting %+v, %v", all, err)
	}
}
