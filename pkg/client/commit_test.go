package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// seats is the board as the queue of some member's process writes it; it runs no check.
type seats struct{ *lineRig }

func holder(e mergequeue.Entry) team.Holder {
	return team.Holder{Agent: e.Agent, Incarnation: e.Incarnation}
}

func (s seats) Held(ctx context.Context, e mergequeue.Entry) error {
	t, err := s.board.Get(ctx, e.Task)
	if err == nil {
		err = t.MayComplete(holder(e), e.Epoch)
	}
	return err
}

func (s seats) Complete(ctx context.Context, e mergequeue.Entry, commit gitrepo.Hash) error {
	_, err := s.board.Complete(ctx, e.Task, holder(e), e.Epoch, team.Done{Summary: e.Summary, Digest: e.Deliverable, Commit: string(commit)})
	return err
}

func (s seats) Release(ctx context.Context, e mergequeue.Entry, o mergequeue.Outcome) error {
	work := &team.Try{By: e.Agent, Epoch: e.Epoch, Commit: string(o.Commit), Base: string(o.Base)}
	_, err := s.board.GiveBack(ctx, e.Task, holder(e), e.Epoch, team.GiveBack{Freed: team.Freed{Reason: o.Reason, Work: work}, Merge: true})
	return err
}

func (s seats) Checks(context.Context, []team.TaskID) ([]mergequeue.Check, error) { return nil, nil }

func (s seats) Able(context.Context, mergequeue.Entry) error { return nil }

func (s seats) Check(context.Context, string, mergequeue.Check) (bool, string, error) {
	return true, "", nil
}

func (s seats) LeftOut(context.Context, mergequeue.Entry, mergequeue.Check, error) error { return nil }

// merges runs a queue until the test ends.
func (r *lineRig) merges(t *testing.T) {
	t.Helper()
	q, err := mergequeue.NewQueue(mergequeue.Options{Site: r.site, Tasks: seats{r}, Checker: seats{r}, Process: "p-1", Lease: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(t, "the queue ends", ended); err != nil {
			t.Error(err)
		}
	})
}

// A person's commits are one commit of the line, which the queue merges; the check has seen them
// merged with what others have done.
func TestCompleteWithCommit(t *testing.T) {
	r := newLineRig(t)
	ctx := t.Context()
	created, _, err := r.Board().Add(ctx, "", team.NewTask{Title: "Edit five", Check: "grep -qx five numbers.txt && grep -qx three numbers.txt && test -f mine.txt"})
	if err != nil {
		t.Fatal(err)
	}
	id := created[0].ID
	r.claim(t, id, "alice")
	r.git(t, "git checkout -qb mine; echo 1 > mine.txt; git add -A; git commit -qm one; sed -i s/^5$/five/ numbers.txt; git commit -qam two; git checkout -q main")
	with := func(ref string) (team.Task, error) {
		return r.Board().CompleteWith(ctx, id, "alice", "five is a word", r.user, ref)
	}
	_, err = with("nowhere")
	says(t, "no such commit", err, team.NotFound, "nowhere")
	_, err = with("--all")
	says(t, "an option", err, team.NotFound)
	_, err = with("mine")
	says(t, "work that fails the check", err, team.InvalidState, "the check of "+string(id))
	r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")

	early, cancel := context.WithTimeout(ctx, 3*time.Second) // no queue runs yet
	defer cancel()
	if task, err := r.Board().CompleteWith(early, id, "alice", "five is a word", r.user, "mine"); err == nil {
		t.Fatalf("completed without a queue: %+v", task)
	}
	r.merges(t)
	task, err := with("mine") // the same again waits for what was submitted
	if err != nil || task.Status != team.Completed || task.Commit == "" {
		t.Fatalf("it is %s with commit %q, %v", task.Status, task.Commit, err)
	}
	d := r.diff(t, client.DiffOptions{Task: id})
	if len(d.Commits) != 1 || d.Commits[0].Agent != "alice" || len(d.Files) != 2 {
		t.Errorf("the line has %+v of it, in %+v", d.Commits, d.Files)
	}
	if r.at(t, "mine.txt") != "1\n" {
		t.Error("the line lacks the work")
	}
	if status := r.git(t, "git status --porcelain; git branch --show-current"); status != "main" {
		t.Errorf("the checkout has changed: %q", status)
	}
}

// What does not merge, or is nothing that a task may bring in, is refused before anything is
// submitted: the seat still holds its task. What the line has already needs no queue.
func TestCompleteWithRefused(t *testing.T) {
	r := newLineRig(t)
	ctx := t.Context()
	id := r.add(t, 1)[0].ID
	r.claim(t, id, "alice")
	r.done(t, "coder-1", "Edit five", "sed -i s/^5$/cinq/ numbers.txt")
	r.git(t, "sed -i s/^5$/five/ numbers.txt; git commit -qam five; git branch five; git reset -q --hard HEAD~; ln -s /etc/passwd out; git add out; git commit -qm out; git branch out; git reset -q --hard HEAD~")
	for ref, want := range map[string]team.Code{"five": team.Conflict, "out": team.InvalidArgument} {
		_, err := r.Board().CompleteWith(ctx, id, "alice", "done", r.user, ref)
		wantCode(t, ref, err, want)
		if task, err := r.board.Get(ctx, id); err != nil || task.Status != team.InProgress || task.Assignee != "alice" {
			t.Errorf("after %s the task is %s of %s, %v", ref, task.Status, task.Assignee, err)
		}
	}
	if waiting, err := mergequeue.New(r.bt).Waiting(ctx); err != nil || len(waiting) > 0 {
		t.Errorf("in the queue are %+v, %v", waiting, err)
	}
	task, err := r.Board().CompleteWith(ctx, id, "alice", "done", r.user, "HEAD")
	if err != nil || task.Status != team.Completed || task.Commit != "" {
		t.Errorf("with what the line has it is %s, commit %q, %v", task.Status, task.Commit, err)
	}
}

// Work that the queue returns is shown as the task's until that is over, on a machine that has no part in
// it too.
func TestReturnedDiff(t *testing.T) {
	r := newLineRig(t)
	ctx := t.Context()
	id := r.add(t, 1)[0].ID
	task := r.claim(t, id, "alice")
	base, err := r.site.Bring(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := gitrepo.Inspect(ctx, r.user)
	if err != nil {
		t.Fatal(err)
	}
	r.git(t, "sed -i s/^5$/five/ numbers.txt; git commit -qam five")
	if c, err = c.At(ctx, "HEAD"); err == nil {
		err = r.site.Repo.Fetch(ctx, c)
	}
	var bundle bytes.Buffer
	if err == nil {
		err = r.site.Repo.Bundle(ctx, &bundle, base, c.Head)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.done(t, "coder-1", "Edit five", "sed -i s/^5$/cinq/ numbers.txt")
	if _, err := mergequeue.New(r.bt).Submit(ctx, mergequeue.Entry{Task: id, Epoch: task.Epoch, Incarnation: task.Incarnation, Agent: "alice", Base: base, Title: "Task 1"}, bundle.Bytes()); err != nil {
		t.Fatal(err)
	}
	r.merges(t)
	if err := mergequeue.New(r.bt).Over(ctx, id, task.Epoch); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache) // another machine
	for range 2 {
		d := r.diff(t, client.DiffOptions{Task: id})
		if !d.Returned || d.Head != c.Head || d.From != base || !strings.Contains(d.Text, "+five") || len(d.Files) != 1 {
			t.Errorf("it is %+v", d)
		}
	}
	if pins := r.git(t, "git --git-dir $(echo "+cache+"/agentteam/lines/*/line.git) for-each-ref refs/agentteam/pins"); pins != "" {
		t.Errorf("a machine that nothing sweeps has pinned %s", pins)
	}
	if _, err := r.Board().Cancel(ctx, id, "", "not wanted"); err != nil {
		t.Fatal(err)
	}
	if d := r.diff(t, client.DiffOptions{Task: id}); !d.Returned || d.Head != c.Head { // what is stored of a cancelled task stays
		t.Errorf("of the cancelled task it is %+v", d)
	}
}
