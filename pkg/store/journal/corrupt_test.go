package journal_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func spoil(t *testing.T, bt *broker.Storage, record string) (seq uint64) {
	t.Helper()
	seq, err := bt.Logs.Publish(t.Context(), subject.Log("t", "a"), rand.Text(), []byte(record))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// Garbage in a journal does not stop the incarnation that writes it. The next cannot open it,
// and appends nothing, until the record was set aside; of several repairs at once each comes
// to the same, and the one at work goes on.
func TestGarbage(t *testing.T) {
	bt, err := brokertest.Connect(t, brokertest.Server(t)).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(t.Context(), bt, "a", 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	note := func(text string) {
		t.Helper()
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Note, Text: text}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	first := spoil(t, bt, "garbage")
	note("one")
	spoil(t, bt, `{"v":2,"kind":"turn","incarnation":1}`)
	last, err := bt.Logs.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bad *journal.Bad
	if _, _, err := journal.Open(t.Context(), bt, "a", 2, journal.Options{}); !errors.As(err, &bad) || !errors.Is(err, team.ErrUnreadable) {
		t.Errorf("Open = %v", err)
	}
	if now, err := bt.Logs.LastSeq(t.Context()); err != nil || now != last {
		t.Errorf("something was appended: %d after %d, %v", now, last, err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := journal.SkipUnreadable(context.Background(), bt, "a", nil); err != nil {
				t.Errorf("SetAside: %v", err)
			}
		})
	}
	wg.Wait()
	note("two")
	_, records, err := journal.Open(t.Context(), bt, "a", 2, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var aside []uint64
	for _, r := range records {
		aside = append(aside, r.Unreadable...)
	}
	if len(records) != 5 || len(aside) != 2 || aside[0] != first {
		t.Errorf("the journal has %d records, set aside are %v", len(records), aside)
	}
	f, err := bt.Files.Open(t.Context(), (&journal.Bad{Seq: first}).Kept("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if kept, err := io.ReadAll(f); err != nil || string(kept) != "garbage" {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

// What other records say of a later incarnation holds, also of one that cannot be read.
func TestUnreadableStart(t *testing.T) {
	bt, err := brokertest.Connect(t, brokertest.Server(t)).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(t.Context(), bt, "a", 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, bt, `{"v":3,"kind":"start","incarnation":2}`) // of a newer program
	if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Note, Text: "late"}); !errors.Is(err, team.ErrSuperseded) {
		t.Errorf("Append = %v", err)
	}
}
