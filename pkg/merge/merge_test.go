package merge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/line"
	"agentteam/pkg/merge"
	"agentteam/pkg/team"
)

var errKilled = errors.New("killed")

// kill has a queue end at a step, as if its process were killed there: nothing is done after it.
// dead is closed then.
func kill(q *merge.Queue, at string) (dead chan struct{}) {
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
		if o.Kind != merge.Conflicting || len(o.Conflicts) != 1 || o.Conflicts[0].Path != "numbers.txt" ||
			!strings.Contains(o.Conflicts[0].Ours, fmt.Sprintf("+by %d\n", n-1)) || !strings.Contains(o.Conflicts[0].Theirs, fmt.Sprintf("+by %d\n", n)) {
			t.Errorf("%s: outcome %+v", id(n), o)
		}
		if !slices.ContainsFunc(o.Since, func(e line.Entry) bool { return e.Task == id(n-1) && e.Subject == "Work on "+string(id(n-1)) }) {
			t.Errorf("%s: the intent of the other is not in %+v", id(n), o.Since)
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
	r := setUp(t)
	r.lease = 800 * time.Millisecond
	n := 0
	for _, tt := range []struct {
		step  string
		fails bool // the work conflicts
	}{
		{"bring", false}, {"import", false}, {"merge", false}, {"commit", false}, {"check", false}, {"store", false}, {"move", false},
		{"follow", false}, {"complete", false}, {"remove", false}, {"give back", false},
		{"decide", true}, {"seal", true}, {"release", true}, {"remove", true},
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
				to, err := r.repo.Commit(r.ctx, treeOf(r, base), line.Message{Subject: "Next goal", Agent: team.Leader}, base)
				r.must(err)
				r.must(r.home.Advance(r.ctx, base, to))
			}
			_, err := r.records.Submit(r.ctx, e, b)
			r.must(err)
		}
		q, _ := r.queue("a")
		dead := kill(q, tt.step)
		stop := r.run(q)
		select {
		case <-dead:
		case <-time.After(time.Minute):
			t.Fatalf("the queue did not get to %q", tt.step)
		}
		stop()
		q, _ = r.queue("b")
		stop = r.run(q)
		r.settled()
		stop()
		if tt.fails {
			if tk := r.board.of(second); tk.commit != "" || tk.held || len(tk.outcomes) != 1 {
				t.Errorf("killed at %q: %+v", tt.step, tk)
			}
		} else if tk := r.board.of(first); tk.commit == "" {
			t.Errorf("killed at %q: not completed: %+v", tt.step, tk)
		}
		r.once()
	}
}

// treeOf returns the files of a commit.
func treeOf(r *rig, h line.Hash) line.Hash {
	r.t.Helper()
	m, err := r.repo.Merge(r.ctx, h, h)
	r.must(err)
	return m.Tree
}
