package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// watched is what a watch tells, a line a time: "T-001 pending, T-002 blocked".
type watched struct {
	told  <-chan string
	ended <-chan error
	stop  context.CancelFunc
}

func (w watched) next(t *testing.T) string {
	t.Helper()
	select {
	case s := <-w.told:
		return s
	case err := <-w.ended:
		t.Fatalf("the watch ended with %v", err)
	case <-time.After(brokertest.Longest):
		t.Fatal("nothing was told")
	}
	return ""
}

func (w watched) want(t *testing.T, want string) {
	t.Helper()
	if got := w.next(t); got != want {
		t.Errorf("was told %q, want %q", got, want)
	}
}

func watchBoard(t *testing.T, tm *client.Team) watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan string, 1000), make(chan error, 1)
	go func() {
		ended <- tm.Board().Watch(ctx, func(b client.Snapshot) error {
			var parts []string
			for _, v := range b.Tasks {
				parts = append(parts, fmt.Sprintf("%s %s", v.ID, v.Shown()))
			}
			for _, q := range b.Bad {
				parts = append(parts, q.Key+" bad")
			}
			for _, id := range b.Gone {
				parts = append(parts, string(id)+" gone")
			}
			told <- strings.Join(parts, ", ")
			return nil
		})
	}()
	t.Cleanup(cancel)
	return watched{told, ended, cancel}
}

func TestWatch(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	w := watchBoard(t, r.Team)
	w.want(t, "T-001 pending")

	// What is created together comes together, however it is written.
	plan := []team.NewTask{{Title: "b", Dependencies: []team.TaskID{"T-001"}}, {Title: "c", After: []int{0}}, {Title: "d", Dependencies: []team.TaskID{"T-001"}}}
	if _, _, err := r.Board().Add(t.Context(), "", plan...); err != nil {
		t.Fatal(err)
	}
	w.want(t, "T-002 blocked, T-003 blocked, T-004 blocked")

	r.claim(t, "T-001", "alice")
	w.want(t, "T-001 in_progress")
	if _, err := r.Board().Complete(t.Context(), "T-001", "alice", "done"); err != nil {
		t.Fatal(err)
	}
	w.want(t, "T-001 completed, T-002 pending, T-004 pending")
	if _, _, err := r.Board().Edit(t.Context(), "T-004", "", team.Edit{AddDependencies: []team.TaskID{"T-003"}, RemoveDependencies: []team.TaskID{"T-001"}}); err != nil {
		t.Fatal(err)
	}
	w.want(t, "T-004 blocked")
	if _, err := r.Board().Cancel(t.Context(), "T-003", "", ""); err != nil {
		t.Fatal(err)
	}
	w.want(t, "T-003 cancelled, T-004 blocked")

	v, err := r.Board().Task(t.Context(), "T-002")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bt.Bucket.Put(t.Context(), subject.KeyTask("T-002"), []byte("{"), v.Revision); err != nil {
		t.Fatal(err)
	}
	w.want(t, "T-003 cancelled, task.T-002 bad") // with those that wait for it

	// A deleted task is told as such, with those that wait for it.
	if v, err = r.Board().Task(t.Context(), "T-003"); err == nil {
		err = r.bt.Bucket.Delete(t.Context(), subject.KeyTask("T-003"), v.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.want(t, "T-004 blocked, T-003 gone")

	w.stop()
	if err := brokertest.Receive(t, "the watch ends", w.ended); err != nil {
		t.Errorf("Watch = %v", err)
	}
}

// Tasks whose creator is between the first of their keys and the last do not exist
// yet for those who watch.
func TestWatchHalfCreated(t *testing.T) {
	r := newRig(t)
	w := watchBoard(t, r.Team)
	w.want(t, "")
	plan := team.Number([]team.NewTask{{Title: "a"}, {Title: "b"}}, 1, "leader", time.Now().UTC())
	put := func(key string, value any) {
		t.Helper()
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.bt.Bucket.Put(t.Context(), key, data, 0); err != nil {
			t.Fatal(err)
		}
	}
	put(subject.KeySequence, map[string]any{"v": team.Protocol, "op": "x", "next": 3, "intent": plan})
	put(subject.KeyTask("T-001"), plan[0])
	put(subject.KeyTask("T-009"), team.NewTask{Title: "of an older call"}.Task("T-009", "leader", time.Now().UTC()))
	w.want(t, "T-009 pending")
	put(subject.KeyTask("T-002"), plan[1])
	w.want(t, "T-001 pending, T-002 pending")
}

// A creator that died would hide its tasks from those who watch, if nobody leads.
func TestWatchFinishesCreation(t *testing.T) {
	r := newRig(t)
	plan := team.Number([]team.NewTask{{Title: "a"}, {Title: "b"}}, 1, "leader", time.Now().UTC())
	data, err := json.Marshal(map[string]any{"v": team.Protocol, "op": "x", "next": 3, "intent": plan})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bt.Bucket.Put(t.Context(), subject.KeySequence, data, 0); err != nil {
		t.Fatal(err)
	}
	watchBoard(t, r.Team).want(t, "T-001 pending, T-002 pending")
}

func TestWatchEndsWithReader(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	enough := errors.New("enough")
	for _, at := range []int{1, 2} {
		n := 0
		err := r.Board().Watch(brokertest.Context(t), func(client.Snapshot) error {
			if n++; n == at {
				return enough
			}
			_, _, err := r.Board().Add(t.Context(), "", team.NewTask{Title: "x"})
			return err
		})
		if !errors.Is(err, enough) {
			t.Errorf("Watch = %v, want the reader's error", err)
		}
	}
}

// A server that restarts makes no gap: what was written while the watcher was cut
// off is told too, each change once.
func TestWatchSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), brokertest.Port()
	srv, err := embedded.Start(embedded.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { srv.Shutdown() }()
	address := srv.URL()
	tm := makeTeam(t, connect(t, address), client.NewTeam{ID: "t", Roles: roles("coder")})
	other, err := connect(t, address).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	add := func(n int) {
		t.Helper()
		for range n {
			if _, _, err := other.Board().Add(t.Context(), "", team.NewTask{Title: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := watchBoard(t, tm)
	w.want(t, "")
	n := 0
	for range 3 {
		add(5)
		srv.Shutdown()
		if srv, err = embedded.Start(embedded.Options{Dir: dir, Port: port}); err != nil {
			t.Fatal(err)
		}
		add(5)
		for range 10 {
			n++
			w.want(t, string(team.MakeTaskID(n))+" pending")
		}
	}
}
