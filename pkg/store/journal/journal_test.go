package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func open(t *testing.T, bt *broker.Storage, incarnation uint64) (*journal.Journal, []journal.Record) {
	t.Helper()
	j, records, err := journal.Open(t.Context(), bt, "coder-1", incarnation, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j, records
}

func note(t *testing.T, j *journal.Journal, text string) journal.Record {
	t.Helper()
	r, err := j.Append(t.Context(), journal.Record{Kind: journal.Note, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// show is a journal in short: "1:start 1:note hello".
func show(records []journal.Record) string {
	var s []string
	for _, r := range records {
		s = append(s, strings.TrimSpace(fmt.Sprintf("%d:%s %s", r.Incarnation, r.Kind, r.Text)))
	}
	return strings.Join(s, ", ")
}

func inStream(t *testing.T, bt *broker.Storage) []journal.Record {
	t.Helper()
	var records []journal.Record
	err := bt.Logs.Read(t.Context(), 1, func(m broker.Msg) error {
		r := journal.Record{Seq: m.Seq}
		records = append(records, r)
		return json.Unmarshal(m.Data, &records[len(records)-1])
	}, subject.Log("t", "coder-1"))
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestAppend(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, records := open(t, bt, 1)
	if got := show(records); got != "1:start" {
		t.Errorf("a new journal holds %q", got)
	}
	if r := note(t, j, "你好 🚀"); r.Seq == 0 || r.ID == "" || r.At.IsZero() {
		t.Errorf("appended %+v", r)
	}
	// Another agent's records in between are no conflict.
	if _, _, err := journal.Open(t.Context(), bt, "coder-2", 1, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	note(t, j, strings.Repeat("x", team.MaxTextBytes))
	records = inStream(t, bt)
	if len(records) != 3 || records[1].Text != "你好 🚀" || len(records[2].Text) != team.MaxTextBytes {
		t.Errorf("%d records: %.200s", len(records), show(records))
	}
	if !slices.IsSortedFunc(records, func(a, b journal.Record) int { return int(a.Seq) - int(b.Seq) }) {
		t.Error("the records are not in the order of their sequences")
	}
}

// Many goroutines of one incarnation append one after another.
// Whether a lost agent had begun to work on its task stands in its journal.
func TestAnswered(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 2)
	held := team.Task{ID: "T-001", Assignee: "coder-1", Incarnation: 2, Epoch: 5}
	turn := func(id team.TaskID) journal.Record {
		return journal.Record{Kind: journal.Turn, Turn: json.RawMessage("{}"), TaskID: id}
	}
	told := journal.Record{Kind: journal.Task, Task: &held}
	for i, step := range []struct {
		record journal.Record
		want   bool
	}{{turn("T-002"), false}, {told, false}, {turn("T-001"), true}, {told, false}, {turn("T-001"), true}, {journal.Record{Kind: journal.Stop}, false}} {
		if _, err := j.Append(t.Context(), step.record); err != nil {
			t.Fatal(err)
		}
		if got, err := journal.Answered(t.Context(), bt, held); err != nil || got != step.want {
			t.Errorf("step %d: answered %v, want %v, %v", i, got, step.want, err)
		}
	}
	other := held
	other.Incarnation = 3
	if got, err := journal.Answered(t.Context(), bt, other); got || err != nil {
		t.Errorf("another incarnation has answered: %v, %v", got, err)
	}
}

func TestAppendTogether(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Note, Text: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(inStream(t, bt)); n != 17 {
		t.Errorf("%d records, want the start and 16", n)
	}
}

// Records are stored in the order in which they were enqueued, before what is appended
// after them.
func TestEnqueue(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	want := "1:start"
	for i := range 30 {
		text := fmt.Sprint(i)
		if want += ", 1:note " + text; i%10 == 9 {
			note(t, j, text)
			continue
		}
		if r := j.Enqueue(t.Context(), journal.Record{Kind: journal.Note, Text: text}); r.ID == "" || r.At.IsZero() {
			t.Errorf("enqueued %+v", r)
		}
	}
	j.Enqueue(t.Context(), journal.Record{Kind: journal.Note, Text: "last"})
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := show(inStream(t, bt)); got != want+", 1:note last" {
		t.Errorf("the journal holds %q", got)
	}
}

// What is enqueued after the end of an incarnation is not stored, and whoever flushes or
// appends next is told.
func TestEnqueueSuperseded(t *testing.T) {
	bt := brokertest.Team(t, "t")
	old, _ := open(t, bt, 1)
	open(t, bt, 2)
	for range 3 {
		old.Enqueue(t.Context(), journal.Record{Kind: journal.Note, Text: "late"})
	}
	if err := old.Flush(); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("Flush = %v, want team.ErrSuperseded", err)
	}
	if got := show(inStream(t, bt)); got != "1:start, 2:start" {
		t.Errorf("the journal holds %q", got)
	}
}

// A record that could not be stored leaves no gap: nothing is stored after it.
func TestEnqueueLeavesNoGap(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	j.Enqueue(gone, journal.Record{Kind: journal.Note, Text: "lost"})
	j.Enqueue(t.Context(), journal.Record{Kind: journal.Note, Text: "after"})
	if err := j.Flush(); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush = %v, want that the context ended", err)
	}
	if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Note, Text: "after"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want that the context ended", err)
	}
	if got := show(inStream(t, bt)); got != "1:start" {
		t.Errorf("the journal holds %q", got)
	}
}

// The start record of a later incarnation shuts the earlier one out.
func TestSuperseded(t *testing.T) {
	bt := brokertest.Team(t, "t")
	old, _ := open(t, bt, 1)
	note(t, old, "before")
	next, records := open(t, bt, 2)
	if got := show(records); got != "1:start, 1:note before, 2:start" {
		t.Errorf("the successor read %q", got)
	}
	for range 2 { // and it stays out
		if _, err := old.Append(t.Context(), journal.Record{Kind: journal.Note, Text: "late"}); !errors.Is(err, team.ErrSuperseded) {
			t.Errorf("append by the old incarnation: %v, want team.ErrSuperseded", err)
		}
	}
	if _, _, err := journal.Open(t.Context(), bt, "coder-1", 1, journal.Options{}); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("open by the old incarnation: %v, want team.ErrSuperseded", err)
	}
	note(t, next, "after")
	if got := show(inStream(t, bt)); got != "1:start, 1:note before, 2:start, 2:note after" {
		t.Errorf("the journal holds %q", got)
	}
}

// Of two processes that take themselves for the same incarnation, one writes.
func TestSameIncarnation(t *testing.T) {
	bt := brokertest.Team(t, "t")
	type opened struct {
		j   *journal.Journal
		err error
	}
	var wg sync.WaitGroup
	all := make(chan opened, 8)
	for range cap(all) {
		wg.Go(func() {
			j, _, err := journal.Open(t.Context(), bt, "coder-1", 1, journal.Options{})
			all <- opened{j, err}
		})
	}
	wg.Wait()
	close(all)
	n := 0
	for o := range all {
		switch {
		case o.err == nil:
			n++
			note(t, o.j, "mine")
		case !errors.Is(o.err, team.ErrSuperseded):
			t.Error(o.err)
		}
	}
	if got := show(inStream(t, bt)); n != 1 || got != "1:start, 1:note mine" {
		t.Errorf("%d opened it, and it holds %q", n, got)
	}
}

// Old and new write at once, as when a frozen process thaws: whatever the order,
// nothing of the old one stands behind the start of the new one.
func TestSupersededRace(t *testing.T) {
	bt := brokertest.Team(t, "t")
	old, _ := open(t, bt, 1)
	for n := uint64(2); n < 12; n++ {
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 200 {
				if _, err := old.Append(t.Context(), journal.Record{Kind: journal.Note}); err != nil {
					if !errors.Is(err, team.ErrSuperseded) {
						t.Error(err)
					}
					return
				}
			}
		})
		next, _ := open(t, bt, n)
		note(t, next, "")
		wg.Wait()
		old = next
	}
	records := inStream(t, bt)
	if !slices.IsSortedFunc(records, func(a, b journal.Record) int { return int(a.Incarnation) - int(b.Incarnation) }) {
		t.Errorf("an old incarnation wrote behind a new one's start: %s", show(records))
	}
}

// A record of an earlier incarnation that arrives late is taken in, not a reason
// to stop.
func TestLateRecordTakenIn(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 2)
	last, err := bt.Logs.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := []byte(`{"v":2,"id":"late","kind":"note","incarnation":1,"text":"late"}`)
	if _, err := bt.Logs.Append(t.Context(), subject.Log("t", "coder-1"), late, last); err != nil {
		t.Fatal(err)
	}
	note(t, j, "mine")
	if got := show(inStream(t, bt)); got != "2:start, 1:note late, 2:note mine" {
		t.Errorf("the journal holds %q", got)
	}
}

func TestUnreadableRecord(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON": "nonsense", "another version": `{"v":9,"kind":"note"}`,
		"mail without a message": `{"v":2,"kind":"mail","inbox_seq":3}`, "a task without one": `{"v":2,"kind":"task","task":null}`,
		"a turn without one": `{"v":2,"kind":"turn"}`, "a result without one": `{"v":2,"kind":"result"}`,
		"a refusal without one": `{"v":2,"kind":"refused"}`, "a compaction without a context": `{"v":2,"kind":"compact"}`,
	} {
		t.Run(name, func(t *testing.T) {
			bt := brokertest.Team(t, "t")
			if _, err := bt.Logs.Append(t.Context(), subject.Log("t", "coder-1"), []byte(data), 0); err != nil {
				t.Fatal(err)
			}
			if _, _, err := journal.Open(t.Context(), bt, "coder-1", 1, journal.Options{}); team.CodeOf(err) != team.InvalidState {
				t.Errorf("open: %v, want invalid_state", err)
			}
		})
	}
}

// A journal is opened at the newest record that holds the conversation as a whole,
// whatever was appended since; what came before it stays stored.
func TestOpenAtContext(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	compact := func(j *journal.Journal, text string) {
		t.Helper()
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Compact, Text: text, Context: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	note(t, j, "old")
	compact(j, "first")
	note(t, j, "between")
	compact(j, "second")
	j, records := open(t, bt, 2) // the newest record is the one to begin at
	if got := show(records); got != "1:compact second, 2:start" {
		t.Errorf("the second incarnation reads %q", got)
	}
	note(t, j, "new")
	_, records = open(t, bt, 3) // the newest record names it
	if got := show(records); got != "1:compact second, 2:start, 2:note new, 3:start" {
		t.Errorf("the third incarnation reads %q", got)
	}
	if got := show(inStream(t, bt)); !strings.HasPrefix(got, "1:start, 1:note old, 1:compact first") {
		t.Errorf("in the stream is %q", got)
	}
}

// An incarnation that began before the record at which its journal is opened is known
// as begun all the same.
func TestOpenTwiceAfterContext(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Compact, Context: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.Open(t.Context(), bt, "coder-1", 1, journal.Options{}); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("opened again as the same incarnation: %v", err)
	}
}

// With a limit, what a newer context has replaced for so long goes; the newest context
// and what follows it stay.
func TestTrim(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _, err := journal.Open(t.Context(), bt, "coder-1", 1, journal.Options{Keep: time.Nanosecond, Outlives: func(context.Context, uint64) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := journal.Open(t.Context(), bt, "coder-2", 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	note(t, other, "of another agent")
	for _, text := range []string{"first", "second", "third"} {
		note(t, j, "before "+text)
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Compact, Text: text, Context: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := show(inStream(t, bt)); got != "1:compact second, 1:note before third, 1:compact third" {
		t.Errorf("in the stream is %q", got)
	}
	n := 0
	if err := journal.Each(t.Context(), bt, 1, func(journal.Record) error { n++; return nil }); err != nil || n != 5 {
		t.Errorf("%d records in all journals (%v), want 5", n, err)
	}
}
