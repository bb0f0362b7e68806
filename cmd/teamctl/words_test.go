package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// What is sent says when it is read, if that is not immediately; urgent mail interrupts a
// member at work.
func TestReadWhen(t *testing.T) {
	for _, tt := range []struct {
		state  team.MemberState
		urgent bool
		want   string
	}{
		{team.Running, true, ", which is busy: it is interrupted and reads it now"},
		{team.Running, false, ", which is busy: it reads it at its next turn"},
		{team.Idle, true, ""},
		{team.Idle, false, ""},
		{team.WaitingModel, true, ", which waits for its model: it reads it then"},
	} {
		if got := readWhen(tt.state, tt.urgent); got != tt.want {
			t.Errorf("%s, urgent %t: %q, want %q", tt.state, tt.urgent, got, tt.want)
		}
	}
}

// A time in a list has its day, unless that is today.
func TestClockOf(t *testing.T) {
	now := time.Date(2026, 11, 24, 0, 5, 0, 0, time.Local)
	for want, at := range map[string]time.Time{
		"00:04:59":            now.Add(-time.Second),
		"2026-11-23 23:59:59": now.Add(-5*time.Minute - time.Second),
		"2025-11-24 00:05:00": now.AddDate(-1, 0, 0),
	} {
		if got := clockOf(at, now); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}

// A task shows where its deliverable is, if it has one or must have one.
func TestDeliverableOfATask(t *testing.T) {
	for want, v := range map[string]team.Task{
		"deliverable  out/T-001.md (required)": {DeliverablePath: "out/T-001.md", DeliverableReq: true},
		"deliverable  out/T-002.md":            {DeliverablePath: "out/T-002.md", Digest: "sha256:00"},
		"":                                     {DeliverablePath: "out/T-003.md"},
	} {
		var out bytes.Buffer
		writeFields(colours(&out), taskFields(team.TaskView{Task: v}))
		got := ""
		for line := range strings.Lines(out.String()) {
			if name, text, _ := strings.Cut(line, " "); name == "deliverable" {
				got = "deliverable  " + strings.TrimSpace(text)
			}
		}
		if got != want {
			t.Errorf("%+v shows %q, want %q", v, got, want)
		}
	}
}

// The sum of a run is broken between words where the terminal is narrow.
func TestSumOnNarrowTerminal(t *testing.T) {
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string)
	go func() {
		all, _ := io.ReadAll(screen) // ends with an error once the terminal is closed
		printed <- string(all)
	}()
	if err := newApp(terminal, io.Discard).printOutcome(outcome{Status: "finished", completed: 12, all: 12, Elapsed: 3.5}, ""); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	text := <-printed
	for line := range strings.Lines(text) {
		if len(strings.TrimRight(line, "\r\n")) > 40 {
			t.Errorf("a line of more than 40 cells: %q", line)
		}
	}
	if want := "finished: 12 of 12 tasks completed, 0 model calls, 0 tokens, 3.5 s"; strings.Join(strings.Fields(text), " ") != want {
		t.Errorf("the sum is %q, want %q", text, want)
	}
}

// disk is a server's storage, which is full where err is set, and what is said of it.
type disk struct {
	mu   sync.Mutex
	err  error
	told strings.Builder
}

func (d *disk) Storage(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *disk) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told.Write(text)
}

// becomes sets the state of the storage, and returns what was said until then.
func (d *disk) becomes(err error) (told string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	told = strings.TrimSpace(d.told.String())
	d.err = err
	d.told.Reset()
	return told
}

// A command that follows a goal says once that the team has a trouble, and once that it is over.
func TestTellTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		stop := newApp(io.Discard, &d).printOf(t.Context(), trouble{d.Storage, broker.ErrNoRoom, "; it waits", "it is over"})
		defer stop()
		time.Sleep(askTrouble / 2) // between two looks
		for _, step := range []struct {
			err  error
			want string
		}{
			{nil, ""},
			{broker.ErrNoRoom, "; it waits"},
			{broker.ErrNoRoom, ""},
			{team.Errorf(team.Unavailable, "no answer"), ""},
			{nil, "it is over"},
			{nil, ""},
		} {
			d.becomes(step.err)
			time.Sleep(askTrouble)
			synctest.Wait()
			if got := d.becomes(step.err); (step.want == "") != (got == "") || !strings.HasSuffix(got, step.want) {
				t.Errorf("storage %v: told %q, want %q", step.err, got, step.want)
			}
		}
	})
}
