package board_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// diamond is a plan of four whose tasks name each other by position, also forwards.
func diamond() []team.NewTask {
	return []team.NewTask{
		{Title: "report 报告", After: []int{2, 3}},
		{Title: "survey"},
		{Title: "left", After: []int{1}},
		{Title: "right", After: []int{1, 1}, Dependencies: []team.TaskID{"T-001"}},
	}
}

// three is a plan of a task that comes after two others.
func three() []team.NewTask {
	return []team.NewTask{{Title: "a"}, {Title: "b"}, {Title: "c", After: []int{1, 0}}}
}

func TestCreatePlan(t *testing.T) {
	b, _ := open(t)
	add(t, b)
	plan, err := b.Create(t.Context(), "leader", diamond()...)
	if err != nil {
		t.Fatal(err)
	}
	want := map[team.TaskID][]team.TaskID{"T-002": {"T-004", "T-005"}, "T-003": {}, "T-004": {"T-003"}, "T-005": {"T-001", "T-003"}}
	for _, task := range plan {
		if got := get(t, b, task.ID).Dependencies; !slices.Equal(got, want[task.ID]) {
			t.Errorf("%s (%s) depends on %v, want %v", task.ID, task.Title, got, want[task.ID])
		}
	}
	_, err = b.Claim(t.Context(), "T-002", ann)
	wantCode(t, "claim of the last", err, team.Blocked)
	for _, id := range []team.TaskID{"T-001", "T-003", "T-004", "T-005", "T-002"} {
		done(t, b, id, ann)
	}
}

func TestCreatePlanRefused(t *testing.T) {
	b, bt := open(t)
	for name, plan := range map[string][]team.NewTask{
		"nothing":       {},
		"itself":        {{Title: "a", After: []int{0}}},
		"cycle":         {{Title: "a", After: []int{1}}, {Title: "b", After: []int{2}}, {Title: "c", After: []int{0}}},
		"cycle further": {{Title: "a", After: []int{1}}, {Title: "b", After: []int{2}}, {Title: "c", After: []int{1}}},
		"no such":       {{Title: "a"}, {Title: "b", After: []int{2}}},
		"negative":      {{Title: "a"}, {Title: "b", After: []int{-1}}},
	} {
		_, err := b.Create(t.Context(), "leader", plan...)
		wantCode(t, name, err, team.InvalidArgument)
	}
	if last, err := bt.Bucket.LastSeq(t.Context()); err != nil || last != 0 {
		t.Errorf("refused plans wrote something: the bucket is at %d, %v", last, err)
	}
}

// A creator that died at any point leaves all of its plan or none: whoever reads
// first finishes it.
func TestPlanOfDeadCreator(t *testing.T) {
	tasks := func() []team.Task { return team.Number(three(), 1, "coder-9", time.Now().UTC()) }
	for keys := range len(tasks()) + 1 {
		for name, read := range map[string]func(b *board.Board) error{
			"list":          func(b *board.Board) error { _, err := b.All(t.Context()); return err },
			"get":           func(b *board.Board) error { _, err := b.Get(t.Context(), "T-003"); return err },
			"get the first": func(b *board.Board) error { _, err := b.Get(t.Context(), "T-001"); return err },
			"claim the first": func(b *board.Board) error {
				_, err := b.Claim(t.Context(), "T-001", ann)
				return err
			},
			"cancel the second": func(b *board.Board) error {
				_, err := b.Cancel(t.Context(), "T-002", leader, "")
				return err
			},
			"assign the first": func(b *board.Board) error {
				_, err := b.Assign(t.Context(), team.Assignment{Task: "T-001", By: "leader"}, ann)
				return err
			},
			"edit the first": func(b *board.Board) error {
				_, _, err := b.Edit(t.Context(), "T-001", leader, team.Edit{Title: new("x")})
				return err
			},
			"read its history": func(b *board.Board) error { _, err := b.History(t.Context(), "T-001"); return err },
			"claim what comes after it": func(b *board.Board) error {
				_, err := b.Claim(t.Context(), "T-003", ann)
				if errors.Is(err, team.Blocked) {
					err = nil
				}
				return err
			},
			"create": func(b *board.Board) error {
				_, err := b.Create(t.Context(), "leader", team.NewTask{Title: "next"})
				return err
			},
			"finish": func(b *board.Board) error { return b.FinishCreate(t.Context()) },
		} {
			t.Run(fmt.Sprintf("%d keys, then %s", keys, name), func(t *testing.T) {
				b, bt := open(t)
				writeSequence(t, bt, 4, tasks())
				for _, task := range tasks()[:keys] {
					put(t, bt, subject.KeyTask(task.ID), task)
				}
				if err := read(b); err != nil {
					t.Fatal(err)
				}
				for _, task := range tasks() {
					if _, err := bt.Bucket.Get(t.Context(), subject.KeyTask(task.ID)); err != nil {
						t.Errorf("%s: %v", task.ID, err)
					}
				}
			})
		}
	}
}

// A plan whose creator is at work is completed by whoever gets at one of its tasks,
// and the creator is told what became of them.
func TestPlanOfSlowCreator(t *testing.T) {
	b, bt := open(t)
	others := brokertest.Connect(t, bt.Conn.Server())
	ot, err := others.Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	brokertest.Intercept(t, others, "t", subject.KeySequence, func(_ int, w brokertest.Write) ([]byte, bool) {
		answer := w.Store(t, others) // the intent, before any key
		seq, err := board.DecodeSequence(broker.Entry{Key: subject.KeySequence, Value: w.Data})
		if err != nil {
			t.Error(err)
		}
		put(t, ot, subject.KeyTask("T-001"), seq.Intent[0])
		if _, err := board.New(ot.Bucket, board.Options{}).Claim(t.Context(), "T-001", ann); err != nil {
			t.Error(err)
		}
		if _, err := ot.Bucket.Get(t.Context(), subject.KeyTask("T-003")); err != nil {
			t.Errorf("a task was claimed before the last of its call was there: %v", err)
		}
		return answer, false
	})
	tasks, err := b.Create(t.Context(), "leader", three()...)
	if err != nil || !slices.Equal(ids(tasks), []team.TaskID{"T-001", "T-002", "T-003"}) || !tasks[0].HeldBy(ann) || tasks[2].Revision == 0 {
		t.Errorf("created %+v, %v", tasks, err)
	}
}

// A task that is known to be of a complete plan is got by one reading, and one that
// somebody has changed as well.
func TestGetCosts(t *testing.T) {
	b, bt := open(t)
	plan, err := b.Create(t.Context(), "leader", three()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Claim(t.Context(), "T-002", ann); err != nil {
		t.Fatal(err)
	}
	fresh := board.New(bt.Bucket, board.Options{})
	reads := func(b *board.Board, id team.TaskID) uint64 {
		before := bt.Conn.NATS().Stats().OutMsgs
		get(t, b, id)
		return bt.Conn.NATS().Stats().OutMsgs - before
	}
	for _, tt := range []struct {
		what string
		b    *board.Board
		id   team.TaskID
		want uint64
	}{
		{"by its creator", b, plan[0].ID, 1},
		{"claimed", fresh, plan[1].ID, 1},
		{"the first look at a plan", fresh, plan[0].ID, 3},
		{"the second", fresh, plan[2].ID, 1},
	} {
		if got := reads(tt.b, tt.id); got != tt.want {
			t.Errorf("%s: %d requests, want %d", tt.what, got, tt.want)
		}
	}
}

// The last key tells that all are there, so it must be the last one written.
func TestLastKeyComesLast(t *testing.T) {
	b, bt := open(t)
	plan := slices.Repeat([]team.NewTask{{Title: "x"}}, 60)
	if _, _, err := b.CreateOnce(t.Context(), "leader", "key", plan...); err != nil {
		t.Fatal(err)
	}
	last, err := bt.Bucket.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if task := get(t, b, "T-060"); task.Revision != last {
		t.Errorf("the last task is at revision %d, the bucket at %d: something came after it", task.Revision, last)
	}
}

func TestCreateOnce(t *testing.T) {
	b, _ := open(t)
	ctx := t.Context()
	first, existed, err := b.CreateOnce(ctx, "leader", "订单 1", three()...)
	if err != nil || existed {
		t.Fatal(existed, err)
	}
	add(t, b)
	done(t, b, "T-002", ann)
	again, existed, err := b.CreateOnce(ctx, "leader", "订单 1", team.NewTask{Title: "other"})
	if err != nil || !existed || !slices.Equal(ids(again), ids(first)) || again[1].Status != team.Completed {
		t.Errorf("the second call returned %v, %v; want the tasks of the first as they stand", ids(again), err)
	}
	other, existed, err := b.CreateOnce(ctx, "leader", "order 2", team.NewTask{Title: "other"})
	if err != nil || existed || other[0].ID != "T-005" {
		t.Errorf("another key created %v, %v", ids(other), err)
	}
	if err := cancelAll(t, b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if again, _, err = b.CreateOnce(ctx, "leader", "订单 1", diamond()...); err != nil || len(again) != 3 {
		t.Errorf("after the end of the goal a repeated call returned %v, %v", ids(again), err)
	}
	for _, key := range []string{"", strings.Repeat("x", 257)} {
		_, _, err := b.CreateOnce(ctx, "leader", key, team.NewTask{Title: "x"})
		wantCode(t, "key of bad length", err, team.InvalidArgument)
	}
}

// What a newer program noted under a key is not taken for what this one understands.
func TestCreateOnceOfAnotherVersion(t *testing.T) {
	b, bt := open(t)
	if _, err := bt.Bucket.Put(t.Context(), subject.KeyOnce("key"), []byte(`{"v":99,"key":"key","first":"T-001","count":1}`), 0); err != nil {
		t.Fatal(err)
	}
	if tasks, _, err := b.CreateOnce(t.Context(), "leader", "key", team.NewTask{Title: "x"}); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("CreateOnce = %v, %v", tasks, err)
	}
}

// Of many calls with one key, at once and from several processes, one creates.
func TestCreateOnceAtOnce(t *testing.T) {
	b, bt := open(t)
	results := make([][]team.TaskID, 16)
	codes := atOnce(len(results), func(i int) error {
		tasks, _, err := board.New(bt.Bucket, board.Options{}).CreateOnce(t.Context(), "leader", fmt.Sprint("key ", i%2), three()...)
		results[i] = ids(tasks)
		return err
	})
	if codes[""] != len(results) {
		t.Fatalf("ended with %v", codes)
	}
	for i, got := range results {
		if !slices.Equal(got, results[i%2]) {
			t.Errorf("call %d returned %v, call %d of the same key %v", i, got, i%2, results[i%2])
		}
	}
	if tasks, err := b.All(t.Context()); err != nil || len(tasks) != 6 {
		t.Errorf("%d tasks were created, want 6; %v", len(tasks), err)
	}
}

// A creator that died after its intent was stored has used its key.
func TestCreateOnceAfterDeath(t *testing.T) {
	b, bt := open(t)
	intent := []team.Task{made(1, "mine"), made(2, "mine too")}
	put(t, bt, subject.KeySequence, map[string]any{"v": team.Protocol, "op": "x", "next": 3, "intent": intent, "key": "k"})
	got, _, err := b.CreateOnce(t.Context(), "leader", "k", team.NewTask{Title: "mine"}, team.NewTask{Title: "mine too"})
	if err != nil || !slices.Equal(ids(got), ids(intent)) {
		t.Errorf("the repeated call returned %v, %v", ids(got), err)
	}
}

// Fields that this program does not know go from the intent into the task.
func TestIntentKeepsUnknownFields(t *testing.T) {
	b, bt := open(t)
	data, err := json.Marshal(made(1, "of a newer program"))
	if err != nil {
		t.Fatal(err)
	}
	var task map[string]any
	if err := json.Unmarshal(data, &task); err != nil {
		t.Fatal(err)
	}
	task["x_new"] = "kept"
	put(t, bt, subject.KeySequence, map[string]any{"v": team.Protocol, "op": "x", "next": 2, "intent": []any{task}, "x_seq": 1})
	if err := b.Close(t.Context()); team.CodeOf(err) != team.InvalidState { // rewrites nothing, but creates the key
		t.Fatalf("Close = %v", err)
	}
	add(t, b)
	e, err := bt.Bucket.Get(t.Context(), subject.KeyTask("T-001"))
	if err != nil || !strings.Contains(string(e.Value), `"x_new":"kept"`) {
		t.Errorf("stored %s, %v", e.Value, err)
	}
	if e, err = bt.Bucket.Get(t.Context(), subject.KeySequence); err != nil || !strings.Contains(string(e.Value), `"x_seq":1`) {
		t.Errorf("the sequence is %s, %v", e.Value, err)
	}
}

// One record that cannot be read takes nothing else with it.
func TestCorruptRecord(t *testing.T) {
	for name, value := range map[string]string{
		"no JSON": "\x00\xff{", "other type": `{"v":2,"id":["T-002"]}`, "other version": `{"v":3,"id":"T-002","status":"pending"}`, "empty": "",
		"no task": `{"v":2}`, "other id": `{"v":2,"id":"T-009","status":"pending"}`, "no status": `{"v":2,"id":"T-002","status":"blocked"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b, bt := open(t)
			plan, err := b.Create(t.Context(), "leader", team.NewTask{Title: "a"}, team.NewTask{Title: "b"}, team.NewTask{Title: "c"}, team.NewTask{Title: "d", After: []int{1}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bt.Bucket.Put(t.Context(), subject.KeyTask("T-002"), []byte(value), plan[1].Revision); err != nil {
				t.Fatal(err)
			}
			l, err := b.Load(t.Context())
			if err != nil || len(l.Tasks) != 3 || len(l.Bad) != 1 || l.Bad[0].Key != "task.T-002" || l.Bad[0].Error == "" {
				t.Fatalf("Load = %v, bad %v, %v", ids(l.Tasks), l.Bad, err)
			}
			done(t, b, "T-001", ann)
			add(t, b)
			_, err = b.Get(t.Context(), "T-002")
			wantCode(t, "get", err, team.InvalidState)
			_, err = b.Claim(t.Context(), "T-004", bob)
			wantCode(t, "claim of a dependent", err, team.InvalidState)
		})
	}
}

func cancelAll(t *testing.T, b *board.Board) error {
	t.Helper()
	tasks, err := b.All(t.Context())
	for _, task := range tasks {
		if err == nil && task.Status.Open() {
			_, err = b.Cancel(t.Context(), task.ID, leader, "")
		}
	}
	return err
}

func put(t *testing.T, bt *broker.Storage, key string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		_, err = bt.Bucket.Put(t.Context(), key, data, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}
