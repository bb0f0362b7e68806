package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/event"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// say stores an event of coder-1 as of at.
func (r *rig) say(t *testing.T, text string, at time.Time) {
	t.Helper()
	data, err := json.Marshal(team.Event{TeamID: "t", AgentID: "coder-1", Event: team.EventBody{Type: team.TextChunk, Delta: text}.Stamp(at)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bt.Events.Publish(t.Context(), subject.Event("t", "coder-1", team.TextChunk), text, data); err != nil {
		t.Fatal(err)
	}
}

// told is an entry in a few words.
func told(e client.Entry) string {
	if e.Event.Event.Delta != "" {
		return fmt.Sprintf("%s says %s", e.AgentID, e.Event.Event.Delta)
	}
	return fmt.Sprintf("%s %s", e.AgentID, e.Event.Event.Type)
}

// The two sources are merged by time, whichever is read first.
func TestFeed(t *testing.T) {
	r := newRig(t)
	r.say(t, "later", time.Now().Add(time.Hour))
	r.say(t, "before", time.Now().Add(-time.Hour))
	r.add(t, 1)
	r.claim(t, "T-001", "alice")
	if _, err := r.Release(t.Context(), "T-001", "alice", ""); err != nil {
		t.Fatal(err)
	}
	r.claim(t, "T-001", "alice")
	if _, err := r.Complete(t.Context(), "T-001", "alice", "done"); err != nil {
		t.Fatal(err)
	}
	var got []string
	var last time.Time
	err := r.Feed(t.Context(), false, func(e client.Entry) error {
		if e.Time.Before(last) {
			t.Errorf("%s is of %v, the entry before of %v", told(e), e.Time, last)
		}
		if e.TeamID != "t" || e.Cursor == "" || e.Event.Event.Timestamp != e.Time.UnixMilli() {
			t.Errorf("entry %+v", e)
		}
		last = e.Time
		got = append(got, told(e))
		return nil
	})
	want := []string{
		"coder-1 says before", "user TASK_CREATED", "alice MEMBER_JOINED", "alice TASK_CLAIMED",
		"alice TASK_RELEASED", "alice MEMBER_UPDATED", "alice TASK_CLAIMED", "alice TASK_COMPLETED", "coder-1 says later",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the feed is\n%q, %v; want\n%q", got, err, want)
	}
}

// What happens between the past and the following is told once, and so is what
// happens later.
func TestFeedFollows(t *testing.T) {
	r := newRig(t)
	log := event.New(r.bt, slog.New(slog.DiscardHandler))
	emit := func(text string) {
		log.Emit(t.Context(), team.Event{AgentID: "coder-1", Event: team.EventBody{Type: team.TextChunk, Delta: text}})
	}
	emit("one")
	r.add(t, 1)
	r.claim(t, "T-001", "alice")

	ctx, cancel := context.WithCancel(t.Context())
	entries, done := make(chan client.Entry, 100), make(chan error, 1)
	first := true
	go func() {
		done <- r.Feed(ctx, true, func(e client.Entry) error {
			if first { // the past was read, and the following has not begun
				first = false
				emit("two")
				if _, err := r.Release(ctx, "T-001", "alice", ""); err != nil {
					return err
				}
			}
			entries <- e
			return nil
		})
	}()
	read := func(n int) (got []string) {
		for range n {
			select {
			case e := <-entries:
				got = append(got, told(e))
			case err := <-done:
				t.Fatalf("Feed ended with %v after %q", err, got)
			}
		}
		slices.Sort(got) // the sources keep order each, not with one another
		return got
	}
	past := []string{"alice MEMBER_JOINED", "alice TASK_CLAIMED", "coder-1 says one", "user TASK_CREATED"}
	if got := read(len(past)); !slices.Equal(got, past) {
		t.Errorf("the past is %q, want %q", got, past)
	}
	if got, want := read(2), []string{"alice TASK_RELEASED", "coder-1 says two"}; !slices.Equal(got, want) {
		t.Errorf("what happened in between is %q, want %q", got, want)
	}
	emit("three")
	if _, err := r.Cancel(t.Context(), "T-001", "", ""); err != nil {
		t.Fatal(err)
	}
	if got, want := read(2), []string{"alice TASK_CANCELLED", "coder-1 says three"}; !slices.Equal(got, want) {
		t.Errorf("followed %q, want %q", got, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Feed = %v", err)
	}
	if len(entries) != 0 {
		t.Errorf("then came %s", told(<-entries))
	}
}

// The error of whoever reads ends the feed, in the past and when following.
func TestFeedEndsWithReader(t *testing.T) {
	r := newRig(t)
	r.add(t, 1)
	enough := errors.New("enough")
	for _, at := range []int{1, 2} {
		n := 0
		err := r.Feed(t.Context(), true, func(client.Entry) error {
			if n++; n == at {
				return enough
			}
			r.say(t, fmt.Sprint("go on ", n), time.Now())
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("Feed = %v, want the reader's error", err)
		}
	}
}
