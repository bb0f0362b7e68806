package mergequeue_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// TestMain gives git a home of its own, with the settings of a user.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "merge-home-")
	if err != nil {
		panic(err)
	}
	settings := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Unsetenv("XDG_CONFIG_HOME")
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, &stderr)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// rig is a team with a line, and the host where its members work.
type rig struct {
	t       *testing.T
	ctx     context.Context
	storage *broker.Storage
	records *mergequeue.Records
	board   *board
	checks  *checks
	user    string
	home    *mergequeue.Site // of the members' host
	repo    *gitrepo.Repo    // on that host
	root    string           // has the folders of the hosts
	hosts   map[string]int   // how many queues each had
	trees   int
	lease   time.Duration
	log     *slog.Logger          // default: the test's
	check   string                // the team's
	metrics prometheus.Registerer // of queues; may be nil
}

func setUp(t *testing.T) *rig {
	t.Helper()
	return setUpOn(t, brokertest.Server(t))
}

// setUpOn is setUp on a server.
func setUpOn(t *testing.T, url string) *rig {
	t.Helper()
	c := brokertest.Connect(t, url)
	_, err := c.Registry(t.Context()) // which is there before any team
	var storage *broker.Storage
	if err == nil {
		storage, err = c.Make(t.Context(), "red")
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, ctx: t.Context(), storage: storage, lease: 10 * time.Second}
	r.records = mergequeue.New(r.storage)
	r.board = &board{t: t, tasks: map[team.TaskID]*task{}}
	r.checks = &checks{}
	r.user = filepath.Join(t.TempDir(), "project")
	r.must(os.MkdirAll(r.user, 0o755))
	sh(t, r.user, "seq 20 > numbers.txt; git init -q; git add -A; git commit -qm first")
	r.root, r.hosts = r.t.TempDir(), map[string]int{}
	r.repo, err = gitrepo.Open(r.ctx, filepath.Join(r.root, "home"), "red", gitrepo.Limits{})
	r.must(err)
	r.home = &mergequeue.Site{Records: r.records, Repo: r.repo, Dir: r.t.TempDir()}
	at, err := gitrepo.Inspect(r.ctx, r.user)
	r.must(err)
	r.must(r.repo.Fetch(r.ctx, at))
	r.must(r.home.Advance(r.ctx, "", at.Head))
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// queue makes a queue on a host, which has a folder of its own and shares no other.
func (r *rig) queue(host string) (*mergequeue.Queue, *gitrepo.Repo) {
	r.t.Helper()
	r.hosts[host]++
	process := fmt.Sprintf("%s-%d", host, r.hosts[host])
	repo, err := gitrepo.Open(r.ctx, filepath.Join(r.root, host), "red", gitrepo.Limits{})
	r.must(err)
	q, err := mergequeue.NewQueue(mergequeue.Options{
		Site: &mergequeue.Site{Records: r.records, Repo: repo, Dir: r.t.TempDir()}, Tasks: r.board, Checker: r.checks, Process: process, Check: func() string { return r.check }, Metrics: r.metrics,
		Lease: r.lease, Logger: cmp.Or(r.log, slog.New(slog.NewTextHandler(r.t.Output(), nil)).With("queue", process)),
	})
	r.must(err)
	return q, repo
}

// run runs a queue until stop is called or the test ends.
func (r *rig) run(q *mergequeue.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := brokertest.Receive(r.t, "the queue ends", done); err != nil && !errors.Is(err, errKilled) {
				r.t.Error(err)
			}
		})
	}
	r.t.Cleanup(stop)
	return stop
}

// work does a task in a tree at a commit and returns what its holder submits.
func (r *rig) work(id team.TaskID, at gitrepo.Hash, script string) (mergequeue.Entry, []byte) {
	r.t.Helper()
	return r.workOf("coder-1", r.repo, id, at, script)
}

// workOf is work of a member on a host.
func (r *rig) workOf(who team.AgentID, repo *gitrepo.Repo, id team.TaskID, at gitrepo.Hash, script string) (mergequeue.Entry, []byte) {
	r.t.Helper()
	r.trees++
	tr, err := repo.Tree(r.ctx, gitrepo.Plan{Name: fmt.Sprintf("tree-%d", r.trees), At: at, Member: who})
	r.must(err)
	sh(r.t, tr.Dir, script)
	b, _, err := tr.Commit(r.ctx, command.Plain{}, gitrepo.Message{Subject: "Work", Agent: who, Task: id})
	r.must(err)
	r.must(tr.Remove())
	return mergequeue.Entry{Task: id, Epoch: r.board.claim(id, who), Incarnation: 1, Agent: who, Base: at, Title: "Work on " + string(id), Summary: "What it is for"}, b
}

// submit does a task and submits it.
func (r *rig) submit(id team.TaskID, at gitrepo.Hash, script string) mergequeue.Entry {
	r.t.Helper()
	e, b := r.work(id, at, script)
	e, err := r.records.Submit(r.ctx, e, b)
	r.must(err)
	return e
}

// head brings the members' host to the line's head.
func (r *rig) head() gitrepo.Hash {
	r.t.Helper()
	h, err := r.home.Bring(r.ctx)
	r.must(err)
	return h
}

// settled waits until nothing waits but the entries of these tasks.
func (r *rig) settled(but ...team.TaskID) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, brokertest.Longest)
	defer cancel()
	open, live := map[string]bool{}, false
	err := r.storage.Bucket.Watch(ctx, func(e broker.Entry) error {
		if delete(open, e.Key); !e.Deleted && !bytes.Contains(e.Value, []byte(`"withdrawn"`)) &&
			!slices.ContainsFunc(but, func(id team.TaskID) bool { return e.Key == subject.KeyMerge(id) }) {
			open[e.Key] = true
		}
		if live && len(open) == 0 {
			cancel()
		}
		return nil
	}, func() {
		if live = true; len(open) == 0 {
			cancel()
		}
	}, subject.AllMerges)
	if err != nil || len(open) > 0 {
		r.t.Fatalf("not settled: %v %v", err, open)
	}
}

// once checks that the line has each completed task once, and nothing else.
func (r *rig) once() {
	r.t.Helper()
	head := r.head()
	log, err := r.repo.Log(r.ctx, "", head)
	r.must(err)
	seen := map[team.TaskID]gitrepo.Hash{}
	for _, e := range log {
		if seen[e.Task] != "" {
			r.t.Errorf("the line has %s twice", e.Task)
		}
		seen[e.Task] = e.Commit
	}
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	for id, tk := range r.board.tasks {
		if (tk.commit != "") != (seen[id] != "") || tk.commit != seen[id] {
			r.t.Errorf("%s: completed as %q, in the line as %q", id, tk.commit, seen[id])
		}
	}
}

// at returns a file of the line's head.
func (r *rig) at(name string) string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "export")
	r.must(r.repo.Export(r.ctx, r.head(), dir))
	text, err := os.ReadFile(filepath.Join(dir, name))
	r.must(err)
	return string(text)
}

// task is one of the board's.
type task struct {
	epoch    uint64
	held     bool
	commit   gitrepo.Hash // "" unless completed
	check    string
	outcomes []mergequeue.Outcome
	record   team.Task // by the rules of claims and of what was not merged
}

// board is the tasks in memory, with the rules that matter here.
type board struct {
	t     *testing.T
	mu    sync.Mutex
	tasks map[team.TaskID]*task

	refuse  func(mergequeue.Outcome) error // of a release; may be nil
	damaged team.TaskID                    // whose record cannot be read
}

func (b *board) claim(id team.TaskID, who team.AgentID) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	tk := b.tasks[id]
	if tk == nil {
		tk = &task{record: team.Task{ID: id, Status: team.Pending}}
		b.tasks[id] = tk
	}
	if tk.held || tk.commit != "" {
		b.t.Errorf("%s is claimed while it is held or completed", id)
	}
	var err error
	if tk.record, err = tk.record.Claim(team.Holder{Agent: who, Incarnation: 1}, time.Now()); err != nil {
		b.t.Error(err)
	}
	tk.held = true
	tk.epoch++
	return tk.epoch
}

func (b *board) of(id team.TaskID) task {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.tasks[id]
}

func (b *board) damage(id team.TaskID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.damaged = id
}

// readable is the error of a record that cannot be read. The caller holds mu.
func (b *board) readable(id team.TaskID) error {
	if b.damaged == id {
		return team.Errorf(team.InvalidState, "record %w", team.ErrUnreadable)
	}
	return nil
}

func (b *board) Held(_ context.Context, e mergequeue.Entry) error {
	b.mu.Lock()
	err := b.readable(e.Task)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if tk := b.of(e.Task); !tk.held || tk.epoch != e.Epoch {
		return team.Errorf(team.Conflict, "%s is not held under epoch %d", e.Task, e.Epoch)
	}
	return nil
}

func (b *board) Complete(_ context.Context, e mergequeue.Entry, commit gitrepo.Hash) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.readable(e.Task); err != nil {
		return err
	}
	tk := b.tasks[e.Task]
	switch {
	case tk.epoch != e.Epoch:
		b.t.Errorf("%s is in the line under epoch %d, and is at %d", e.Task, e.Epoch, tk.epoch)
		return team.Errorf(team.Conflict, "epoch")
	case tk.commit != "" && tk.commit != commit:
		b.t.Errorf("%s is completed as %s and as %s", e.Task, tk.commit, commit)
	case tk.commit == "" && !tk.held:
		b.t.Errorf("%s is completed after it was released", e.Task)
	}
	tk.held, tk.commit = false, commit
	return nil
}

func (b *board) Release(_ context.Context, e mergequeue.Entry, o mergequeue.Outcome) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	tk := b.tasks[e.Task]
	if tk.epoch != e.Epoch || !tk.held {
		return team.Errorf(team.Conflict, "%s is not held under epoch %d", e.Task, e.Epoch)
	}
	if b.refuse != nil {
		if err := b.refuse(o); err != nil {
			return err
		}
	}
	g := team.GiveBack{Freed: team.Freed{Reason: o.Reason, Work: &team.Try{By: e.Agent, Epoch: e.Epoch, Commit: string(o.Commit), Base: string(o.Base)}}, Merge: true}
	for _, s := range o.Since {
		g.Others = append(g.Others, s.Agent)
	}
	var err error
	if tk.record, err = tk.record.GiveBack(team.Holder{Agent: e.Agent, Incarnation: e.Incarnation}, e.Epoch, g, time.Now()); err != nil {
		b.t.Error(err)
	}
	tk.held = false
	tk.outcomes = append(tk.outcomes, o)
	return nil
}

func (b *board) Checks(_ context.Context, ids []team.TaskID) (all []mergequeue.Check, _ error) {
	for _, id := range ids {
		if tk := b.of(id); tk.check != "" {
			all = append(all, mergequeue.Check{Task: id, Agent: "coder-1", Command: tk.check})
		}
	}
	return all, nil
}

// checks runs checks as shell scripts, and notes whose.
type checks struct {
	mu  sync.Mutex
	ran []team.TaskID
	no  map[team.TaskID]bool // what no queue may merge

	denied  team.TaskID   // whose check a rule denies
	leftOut []team.TaskID // each entry, and whose check was left out with it
}

func (c *checks) Able(_ context.Context, e mergequeue.Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.no[e.Task] {
		return team.Errorf(team.InvalidState, "its sandbox is another")
	}
	return nil
}

func (c *checks) Check(ctx context.Context, dir string, k mergequeue.Check) (bool, string, error) {
	c.mu.Lock()
	denied := c.denied != "" && c.denied == k.Task
	c.ran = append(c.ran, k.Task)
	c.mu.Unlock()
	if denied {
		return false, "", team.Errorf(team.PermissionDenied, "a rule denies it")
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", k.Command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return false, string(out), nil
	}
	return err == nil, string(out), err
}

func (c *checks) LeftOut(_ context.Context, e mergequeue.Entry, k mergequeue.Check, _ error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leftOut = append(c.leftOut, e.Task, k.Task)
	return nil
}

func refuses(t testing.TB, err error, code team.Code, words string) {
	t.Helper()
	if err == nil || team.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		t.Errorf("error %v, want %s with %q", err, code, words)
	}
}
