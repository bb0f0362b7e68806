package board_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// writeSequence stores seq.task as a creator does that dies before it creates its
// tasks' keys.
func writeSequence(t *testing.T, bt *broker.Storage, next int, intent []team.Task) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"v": team.Protocol, "op": "x", "next": next, "intent": intent})
	if err != nil {
		t.Fatal(err)
	}
	var revision uint64
	if e, err := bt.Bucket.Get(t.Context(), subject.KeySequence); err == nil {
		revision = e.Revision
	}
	if _, err := bt.Bucket.Put(t.Context(), subject.KeySequence, data, revision); err != nil {
		t.Fatal(err)
	}
}

func made(n int, title string) team.Task {
	task := team.NewTask{Title: title}.Task(team.MakeTaskID(n), "coder-9", time.Now().UTC())
	task.Op = fmt.Sprint("op ", n)
	return task
}

func TestCreateTogether(t *testing.T) {
	b, bt := open(t)
	const creators, each = 16, 25
	var mu sync.Mutex
	titles := map[team.TaskID]string{}
	codes := atOnce(creators, func(i int) error {
		mine := board.New(bt.Bucket, board.Options{})
		for n := range each {
			title := fmt.Sprintf("creator %d task %d", i, n)
			tasks, err := mine.Create(t.Context(), "leader", team.NewTask{Title: title})
			if err != nil {
				return err
			}
			mu.Lock()
			if other, ok := titles[tasks[0].ID]; ok {
				t.Errorf("%s was given to %q and %q", tasks[0].ID, other, title)
			}
			titles[tasks[0].ID] = title
			mu.Unlock()
		}
		return nil
	})
	if codes[""] != creators {
		t.Fatalf("creators ended with %v", codes)
	}
	tasks, err := b.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) != creators*each {
		t.Errorf("%d tasks, want %d", len(tasks), creators*each)
	}
	for i, task := range tasks {
		if task.ID != team.MakeTaskID(i+1) {
			t.Fatalf("task %d is %s: the ids have a gap", i+1, task.ID)
		}
		if task.Title != titles[task.ID] {
			t.Errorf("%s is %q on the board, its creator was told it is %q", task.ID, task.Title, titles[task.ID])
		}
	}
}

func TestCreateSeveral(t *testing.T) {
	b, _ := open(t)
	first := add(t, b)
	got, err := b.Create(t.Context(), "leader", team.NewTask{Title: "a"}, team.NewTask{Title: "b", Dependencies: []team.TaskID{first.ID}}, team.NewTask{Title: "cafe\u0301 J\u030c"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []team.TaskID{"T-002", "T-003", "T-004"}; !slices.Equal(ids(got), want) || got[1].Title != "b" {
		t.Errorf("created %v, want %v", ids(got), want)
	}
	if want := "deliverables/T-004-caf\u00e9-\u01f0.md"; got[2].DeliverablePath != want {
		t.Errorf("the deliverable is %q, want %q", got[2].DeliverablePath, want)
	}
	for _, task := range got {
		if stored := get(t, b, task.ID); stored.Revision != task.Revision || stored.Revision == 0 {
			t.Errorf("%s: revision %d was returned, %d is stored", task.ID, task.Revision, stored.Revision)
		}
	}
}

// Either all tasks of a call exist or none.
func TestCreateRefused(t *testing.T) {
	b, bt := open(t)
	first := add(t, b)
	big := strings.Repeat("字", team.MaxTextBytes/3)
	many := slices.Repeat([]team.NewTask{{Title: "x", Description: big}}, 9)
	for name, tt := range map[string]struct {
		tasks []team.NewTask
		want  team.Code
	}{
		"unknown dependency":      {[]team.NewTask{{Title: "a"}, {Title: "b", Dependencies: []team.TaskID{first.ID, "T-099"}}}, team.NotFound},
		"dependency in the call":  {[]team.NewTask{{Title: "a"}, {Title: "b", Dependencies: []team.TaskID{"T-002"}}}, team.NotFound},
		"dependency on itself":    {[]team.NewTask{{Title: "a", Dependencies: []team.TaskID{"T-002"}}}, team.NotFound},
		"one bad of two":          {[]team.NewTask{{Title: "a"}, {Title: ""}}, team.InvalidArgument},
		"too much for one record": {many, team.InvalidArgument},
	} {
		_, err := b.Create(t.Context(), "leader", tt.tasks...)
		wantCode(t, name, err, tt.want)
	}
	if last, err := bt.Bucket.LastSeq(t.Context()); err != nil || last != first.Revision {
		t.Errorf("refused creations wrote something: the bucket is at %d, want %d, %v", last, first.Revision, err)
	}
	if _, err := b.Create(t.Context(), "leader", team.NewTask{Title: "字", Description: big}); err != nil {
		t.Errorf("a description at the limit: %v", err)
	}
}

// The answer to a creator is lost, and before it asks again more is created than the
// history of the sequence holds: its tasks are created once, by whichever try.
func TestCreateOvertaken(t *testing.T) {
	for name, tt := range map[string]struct {
		applied bool
		others  func(*board.Board, *testing.T) // what they do meanwhile
		want    team.TaskID                    // the first task of the call
		code    team.Code
	}{
		"applied":                         {true, func(b *board.Board, t *testing.T) { addMany(t, b, 70) }, "T-002", ""},
		"lost":                            {false, func(b *board.Board, t *testing.T) { addMany(t, b, 70) }, "T-072", ""},
		"one later":                       {true, func(b *board.Board, t *testing.T) { addMany(t, b, 1) }, "T-002", ""},
		"applied, then closed and opened": {true, func(b *board.Board, t *testing.T) { closeMany(t, b, 70) }, "T-002", ""},
		"lost, and closed and opened":     {false, func(b *board.Board, t *testing.T) { closeMany(t, b, 70) }, "T-002", ""},
		"applied, and worked on": {true, func(b *board.Board, t *testing.T) {
			addMany(t, b, 70)
			editMany(t, b, "T-002", 3)
		}, "T-002", ""},
		"applied, and worked on without end": {true, func(b *board.Board, t *testing.T) {
			addMany(t, b, 70)
			editMany(t, b, "T-002", 70)
		}, "", team.Unavailable},
		"lost, and another was worked on without end": {false, func(b *board.Board, t *testing.T) {
			addMany(t, b, 70)
			editMany(t, b, "T-002", 70)
		}, "", team.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot := brokertest.Team(t, "t")
			others := ot.Conn
			link := brokertest.NewProxy(t, others.Server())
			bt, err := brokertest.Connect(t, link.URL).Open(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			b := board.New(bt.Bucket, board.Options{})
			add(t, b)
			brokertest.Intercept(t, others, "t", subject.KeySequence, func(_ int, w brokertest.Write) ([]byte, bool) {
				link.Close() // it asks again once the others are done, however long they take
				if tt.applied {
					w.Store(t, others)
				}
				tt.others(board.New(ot.Bucket, board.Options{}), t)
				link.Open()
				return nil, false
			})
			tasks, err := b.Create(t.Context(), "coder-9", team.NewTask{Title: "mine"}, team.NewTask{Title: "mine too"})
			if team.CodeOf(err) != tt.code || err == nil && tasks[0].ID != tt.want {
				t.Errorf("Create = %v, %v; want %s, %q", ids(tasks), err, tt.want, tt.code)
			}
			all, err := b.All(t.Context())
			mine := 0
			for i, task := range all {
				if task.CreatedBy == "coder-9" {
					mine++
				}
				if task.ID != team.MakeTaskID(i+1) {
					t.Fatalf("task %d is %s: the ids have a gap", i+1, task.ID)
				}
			}
			if want := 2; err != nil || mine != want && (tt.code == "" || tt.applied) {
				t.Errorf("%d tasks were created, %v, want %d", mine, err, want)
			}
		})
	}
}

func addMany(t *testing.T, b *board.Board, n int) {
	for range n {
		if _, err := b.Create(t.Context(), "leader", team.NewTask{Title: "another"}); err != nil {
			t.Error(err)
		}
	}
}

func closeMany(t *testing.T, b *board.Board, n int) {
	for range n / 2 {
		if err := errors.Join(b.Seal(t.Context()), b.Reopen(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

func editMany(t *testing.T, b *board.Board, id team.TaskID, n int) {
	for i := range n {
		if _, _, err := b.Edit(t.Context(), id, leader, team.Edit{Priority: new(i % 3)}); err != nil {
			t.Error(err)
		}
	}
}

// A creator that was killed after its intent and before its keys: the tasks exist
// for whoever needs them.
func TestUnfinishedCreate(t *testing.T) {
	intent := []team.Task{made(2, "second"), made(3, "third")}
	want := []team.TaskID{"T-001", "T-002", "T-003"}
	for name, use := range map[string]func(*testing.T, *board.Board){
		"get": func(t *testing.T, b *board.Board) {
			if task := get(t, b, "T-003"); task.Title != "third" || task.Revision == 0 {
				t.Errorf("got %+v", task)
			}
		},
		"all": func(t *testing.T, b *board.Board) {
			if tasks, err := b.All(t.Context()); err != nil || !slices.Equal(ids(tasks), want) {
				t.Errorf("All is %v, %v", ids(tasks), err)
			}
		},
		"claim": func(t *testing.T, b *board.Board) {
			if _, err := b.Claim(t.Context(), "T-002", ann); err != nil {
				t.Error(err)
			}
		},
		"next create": func(t *testing.T, b *board.Board) {
			if task := add(t, b); task.ID != "T-004" {
				t.Errorf("the next task is %s", task.ID)
			}
		},
		"close": func(t *testing.T, b *board.Board) {
			wantCode(t, "close", b.Close(t.Context()), team.InvalidState)
		},
		"many at once": func(t *testing.T, b *board.Board) {
			codes := atOnce(8, func(i int) error {
				if i%2 == 0 {
					_, err := b.Get(t.Context(), "T-003")
					return err
				}
				_, err := b.All(t.Context())
				return err
			})
			if codes[""] != 8 {
				t.Errorf("readers ended with %v", codes)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, bt := open(t)
			add(t, b)
			writeSequence(t, bt, 4, intent)
			use(t, b)
			entries, err := bt.Bucket.Load(t.Context(), subject.AllTasks)
			if err != nil || len(entries) < len(want) {
				t.Errorf("%d keys of tasks exist, %v, want at least %d", len(entries), err, len(want))
			}
		})
	}
}

// Half the keys are there and one task has moved on: finishing must not undo that.
func TestFinishCreateKeepsProgress(t *testing.T) {
	b, bt := open(t)
	one, two := made(1, "one"), made(2, "two")
	data, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Bucket.Put(t.Context(), subject.KeyTask(one.ID), data, 0); err != nil {
		t.Fatal(err)
	}
	writeSequence(t, bt, 3, []team.Task{one, two})
	done(t, b, "T-001", ann)
	if tasks, err := b.All(t.Context()); err != nil || len(tasks) != 2 || tasks[0].Status != team.Completed {
		t.Errorf("All is %+v, %v", tasks, err)
	}
	if _, err := b.Get(t.Context(), "T-003"); team.CodeOf(err) != team.NotFound {
		t.Errorf("a task beyond the intent: %v, want not_found", err)
	}
}

func TestClose(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	id := add(t, b).ID
	err := b.Close(ctx)
	wantCode(t, "close with an open task", err, team.InvalidState)
	if !strings.Contains(fmt.Sprint(err), "T-001 is pending") {
		t.Errorf("the error %q must name the open task", err)
	}
	done(t, b, id, ann)
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = b.Create(ctx, "coder-1", team.NewTask{Title: "too late"})
	wantCode(t, "create after the end", err, team.InvalidState)
	if err := b.Close(ctx); err != nil {
		t.Errorf("close again: %v", err)
	}
	if err := b.Reopen(ctx); err != nil {
		t.Fatal(err)
	}
	if task := add(t, b); task.ID != "T-002" {
		t.Errorf("the first task of the next goal is %s", task.ID)
	}
}

// A goal that has failed leaves its tasks as they are, and none is added to them.
func TestSeal(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	before := add(t, b)
	if err := b.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := b.Create(ctx, "coder-1", team.NewTask{Title: "too late"})
	wantCode(t, "create after the end", err, team.InvalidState)
	if after, err := b.Get(ctx, before.ID); err != nil || after.Revision != before.Revision {
		t.Errorf("the open task is %+v, %v", after, err)
	}
}

// No create slips in beside a close: of the two exactly one succeeds.
func TestCloseRace(t *testing.T) {
	b, bt := open(t)
	for round := range 10 {
		if err := b.Reopen(t.Context()); err != nil {
			t.Fatal(err)
		}
		var created []team.Task
		var createErr, closeErr error
		atOnce(2, func(i int) error {
			if i == 0 {
				created, createErr = b.Create(t.Context(), "coder-1", team.NewTask{Title: "in time?"})
				return createErr
			}
			closeErr = board.New(bt.Bucket, board.Options{}).Close(t.Context())
			return closeErr
		})
		if (createErr == nil) == (closeErr == nil) {
			t.Fatalf("round %d: create %v, close %v", round, createErr, closeErr)
		}
		for _, task := range created {
			done(t, b, task.ID, ann)
		}
	}
}

// The last task of the newest call was deleted with other tools. It stays deleted, whoever
// reads the board or adds to it.
func TestDeletedTaskStaysDeleted(t *testing.T) {
	b, bt := open(t)
	if _, err := b.Create(t.Context(), "leader", team.NewTask{Title: "one"}, team.NewTask{Title: "two"}); err != nil {
		t.Fatal(err)
	}
	two := done(t, b, "T-002", ann)
	if err := bt.Bucket.Delete(t.Context(), subject.KeyTask("T-002"), two.Revision); err != nil {
		t.Fatal(err)
	}
	later := board.New(bt.Bucket, board.Options{})
	if tasks, err := later.All(t.Context()); err != nil || !slices.Equal(ids(tasks), []team.TaskID{"T-001"}) {
		t.Errorf("All is %v, %v", ids(tasks), err)
	}
	if task := add(t, board.New(bt.Bucket, board.Options{})); task.ID != "T-003" {
		t.Errorf("the next task is %s", task.ID)
	}
	if _, err := later.Get(t.Context(), "T-002"); team.CodeOf(err) != team.NotFound {
		t.Errorf("the deleted task: %v, want not_found", err)
	}
}
