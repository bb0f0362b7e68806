package mergequeue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
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

// told is a log in which a test waits for a line.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *told) await(t *testing.T, words string) {
	t.Helper()
	brokertest.Until(t, fmt.Sprintf("%q is in the log", words), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.text.String(), words)
	})
}

// listening has the next queues of r write to a log that the test reads.
func (r *rig) listening() *told {
	l := &told{}
	r.log = slog.New(slog.NewTextHandler(io.MultiWriter(l, r.t.Output()), nil))
	return l
}

// Where the branch was moved by hand nothing is merged, and it stays as it is; other hosts continue.
func TestBranchMovedByHand(t *testing.T) {
	r := setUp(t)
	heard := r.listening()
	q, repo := r.queue("a")
	base := r.head()
	if _, err := (&mergequeue.Site{Records: r.records, Repo: repo}).Bring(r.ctx); err != nil {
		t.Fatal(err)
	}
	stray := sh(t, r.root, `cd a/line.git; c=$(git -c user.name=x -c user.email=x@x commit-tree -m stray `+string(base)+`^{tree}); git update-ref refs/heads/agentteam/red $c; echo $c`)
	e := r.submit("T-001", base, "echo 1 > one")
	stop := r.run(q)
	heard.await(t, "was moved by hand: it is at "+stray[:8])
	stop()
	if why, tried := q.Trouble(r.ctx, e); why == nil || !strings.Contains(why.Error(), "was moved by hand") || !tried {
		t.Errorf("its trouble is %v, tried: %v", why, tried)
	}
	if h, err := repo.Head(r.ctx); err != nil || string(h) != stray {
		t.Errorf("the branch is at %s, %v; it was put to %s", h, err, stray)
	}
	if h, err := r.records.Head(r.ctx); err != nil || h.Commit != base || h.Process != "" {
		t.Errorf("the line is at %+v, %v", h, err)
	}
	r.log = nil
	q, _ = r.queue("b")
	r.run(q)
	r.settled()
	r.once()
}

// A record that was put to what is no commit moves nothing; once it is put back, all continues.
func TestRecordMovedByHand(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"no such commit": func(s string) string { return s },
		"no commit": func(string) string {
			return `{"v":2,"op":"x","head":"../../etc","begun":"","at":"2026-01-01T00:00:00Z","term":1}`
		},
		"no record": func(string) string { return "{" },
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			base := r.head()
			was, err := r.storage.Bucket.Get(r.ctx, subject.KeyBranch)
			r.must(err)
			elsewhere := strings.ReplaceAll(string(was.Value), string(base), strings.Repeat("ab", 20))
			moved, err := r.storage.Bucket.Put(r.ctx, subject.KeyBranch, []byte(change(elsewhere)), was.Revision)
			r.must(err)
			heard := r.listening()
			q, repo := r.queue("a")
			e := r.submit("T-001", base, "echo 1 > one")
			r.run(q)
			if name != "no such commit" {
				heard.await(t, "the line cannot be read")
				if why, tried := q.Trouble(r.ctx, e); !errors.Is(why, team.ErrUnreadable) || !tried {
					t.Errorf("its trouble is %v, tried: %v", why, tried)
				}
			} else {
				heard.await(t, "an entry could not be merged")
			}
			if _, err := r.home.Bring(r.ctx); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("brought to it: %v", err)
			}
			if h, err := repo.Head(r.ctx); err == nil && h != base {
				t.Errorf("the branch is at %s, %v", h, err)
			}
			now, err := r.storage.Bucket.Get(r.ctx, subject.KeyBranch) // with the queue's lease since
			r.must(err)
			_, err = r.storage.Bucket.Put(r.ctx, subject.KeyBranch, was.Value, max(now.Revision, moved))
			for errors.Is(err, team.Conflict) {
				if now, err = r.storage.Bucket.Get(r.ctx, subject.KeyBranch); err == nil {
					_, err = r.storage.Bucket.Put(r.ctx, subject.KeyBranch, was.Value, now.Revision)
				}
			}
			r.must(err)
			r.settled()
			r.once()
		})
	}
}

// A bundle that was cut short in the object store is refused, that of a task as that of the line.
func TestBundleCutShort(t *testing.T) {
	r := setUp(t)
	base := r.head()
	e, b := r.work("T-001", base, "echo 1 > one")
	_, err := r.records.Submit(r.ctx, e, b[:len(b)-20])
	r.must(err)
	e, b = r.work("T-002", base, "echo 2 > two")
	e, err = r.records.Submit(r.ctx, e, b)
	r.must(err)
	_, err = r.storage.Files.Put(r.ctx, e.Bundle, bytes.NewReader(b[:len(b)-20])) // since it was submitted
	r.must(err)
	r.submit("T-003", base, "echo 3 > three")
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	for id, why := range map[team.TaskID]string{"T-001": "cut short", "T-002": "not the one that was submitted"} {
		if o := r.board.of(id).outcomes; len(o) != 1 || o[0].Kind != mergequeue.Refused || !strings.Contains(o[0].Reason, why) {
			t.Errorf("%s: %+v", id, o)
		}
	}
	r.once()

	head := r.head()
	name := subject.BranchBundle(string(head))
	f, err := r.storage.Files.Open(r.ctx, name)
	r.must(err)
	whole, err := io.ReadAll(f)
	r.must(errors.Join(err, f.Close()))
	_, err = r.storage.Files.Put(r.ctx, name, bytes.NewReader(whole[:len(whole)-20]))
	r.must(err)
	repo, err := gitrepo.Open(r.ctx, filepath.Join(r.root, "late"), "red", gitrepo.Limits{})
	r.must(err)
	late := &mergequeue.Site{Records: r.records, Repo: repo}
	_, err = late.Bring(r.ctx)
	refuses(t, err, team.InvalidArgument, "cut short")
	if h, err := repo.Head(r.ctx); !errors.Is(err, team.NotFound) {
		t.Errorf("its branch is at %s, %v", h, err)
	}
	_, err = r.storage.Files.Put(r.ctx, name, bytes.NewReader(whole))
	r.must(err)
	if h, err := late.Bring(r.ctx); err != nil || h != head {
		t.Errorf("brought to %s, %v", h, err)
	}
}

// A cache folder in which nothing can be written is one clear line.
func TestReadOnlyCache(t *testing.T) {
	r := setUp(t)
	dir := filepath.Join(t.TempDir(), "cache")
	r.must(os.WriteFile(dir, nil, 0o400)) // for root too, whom modes do not hold
	for _, dir := range []string{dir, "/proc/agentteam"} {
		_, err := mergequeue.At(r.ctx, dir, r.storage, team.Team{ID: "red"})
		refuses(t, err, team.InvalidState, "cannot be kept in "+dir)
		if strings.Contains(team.Line(err), "\n") || !strings.Contains(team.Line(err), "XDG_CACHE_HOME") {
			t.Errorf("%s", team.Line(err))
		}
	}
}

// The server is away for longer than the lease while work waits, in the middle of a merge: it is merged once after that.
func TestServerAway(t *testing.T) {
	for _, step := range []string{"import", "move", "complete"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			way := brokertest.NewProxy(t, brokertest.Server(t))
			r := setUpOn(t, way.URL)
			r.lease = time.Second
			base := r.head()
			r.submit("T-001", base, "echo 1 > one")
			r.submit("T-002", base, "echo 2 > two")
			heard := r.listening()
			q, _ := r.queue("a")
			var once sync.Once
			q.At(func(ctx context.Context, at string) error {
				if at == step {
					once.Do(way.Close)
				}
				return ctx.Err()
			})
			r.run(q)
			heard.await(t, "stopped merging") // the lease could not be renewed
			way.Open()
			r.settled()
			r.once()
		})
	}
}

// Merging does not stop when what is stored of a completed task cannot be removed.
func TestNotRemoved(t *testing.T) {
	r := setUp(t)
	heard := r.listening()
	q, repo := r.queue("a")
	base := r.head()
	if _, err := (&mergequeue.Site{Records: r.records, Repo: repo}).Bring(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.must(repo.Pin(r.ctx, "returned/T-001/1", base))
	sh(t, r.root, "touch a/line.git/packed-refs.lock") // as of a git that was killed
	r.submit("T-001", base, "echo 1 > one")
	r.submit("T-002", base, "echo 2 > two")
	stop := r.run(q)
	heard.await(t, "was not removed")
	r.settled()
	r.once()
	stop()
	sh(t, r.root, "rm a/line.git/packed-refs.lock")
	works, err := (&mergequeue.Site{Records: r.records, Repo: repo}).Works(r.ctx, true)
	if want := []mergequeue.Work{{Task: "T-001", Epoch: 1}}; err != nil || !slices.Equal(works, want) {
		t.Errorf("left to be removed: %v, %v", works, err)
	}
}

// A task whose record cannot have the reasons is released without them, and never left in progress
// without an entry.
func TestReasonsRefused(t *testing.T) {
	r := setUp(t)
	base := r.head()
	r.submit("T-001", base, "sed -i '5s/.*/one/' numbers.txt")
	r.submit("T-002", base, "sed -i '5s/.*/two/' numbers.txt")
	r.board.refuse = func(o mergequeue.Outcome) error {
		if len(o.Conflicts) > 0 {
			return team.Errorf(team.InvalidArgument, "the reason cannot be shown")
		}
		return nil
	}
	q, _ := r.queue("a")
	r.run(q)
	r.settled()
	r.once()
	if tk := r.board.of("T-002"); tk.held || len(tk.outcomes) != 1 || tk.outcomes[0].Kind != mergequeue.Conflicting || tk.outcomes[0].Commit == "" || !strings.Contains(tk.outcomes[0].Reason, "cannot have the reasons") {
		t.Errorf("%+v", tk)
	}
}

// Work whose task's record is damaged stays in the queue, and is merged once the record is put back.
func TestTaskCannotBeRead(t *testing.T) {
	r := setUp(t)
	base := r.head()
	r.submit("T-001", base, "echo 1 > one")
	r.submit("T-002", base, "echo 2 > two")
	r.board.damage("T-001")
	heard := r.listening()
	q, _ := r.queue("a")
	r.run(q)
	heard.await(t, "an entry could not be merged")
	r.settled("T-001")
	r.board.damage("")
	r.settled()
	r.once()
	for _, id := range []team.TaskID{"T-001", "T-002"} {
		if r.board.of(id).commit == "" {
			t.Errorf("%s is not completed", id)
		}
	}
}

// A task that is merged, and whose record cannot be read then, is completed later: others are merged meanwhile, and
// it is not put back.
func TestMergedTaskCannotBeRead(t *testing.T) {
	r := setUp(t)
	base := r.head()
	r.submit("T-001", base, "echo 1 > one")
	heard := r.listening()
	q, _ := r.queue("a")
	q.At(func(ctx context.Context, step string) error {
		if step == "move" {
			r.board.damage("T-001")
		}
		return ctx.Err()
	})
	stop := r.run(q)
	heard.await(t, "completed once its record can be read")
	r.submit("T-002", base, "echo 2 > two")
	r.settled("T-001")
	stop()
	refuses(t, r.records.Withdraw(r.ctx, "T-001", 1), team.InvalidState, "in the line")
	if r.board.of("T-001").commit != "" || r.board.of("T-002").commit == "" {
		t.Errorf("completed are %+v and %+v", r.board.of("T-001"), r.board.of("T-002"))
	}
	r.board.damage("")
	q, _ = r.queue("b") // another host
	r.run(q)
	r.settled()
	r.once()
	if r.board.of("T-001").commit == "" {
		t.Error("T-001 is not completed once its record can be read")
	}
}
