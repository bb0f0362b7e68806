package screen

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	tea "charm.land/bubbletea/v2"
)

// backstage is a cluster of a test as the screen has it, over a way that can be closed.
type backstage struct {
	*backend
	t        *testing.T
	url      string // of the server, past the way
	way      *brokertest.Proxy
	messages chan tea.Msg
	note     func(text string) // into the journal of the leader
}

func newBackstage(t *testing.T, teams ...team.TeamID) *backstage {
	url := brokertest.Server(t)
	s := &backstage{backend: &backend{}, t: t, url: url, way: brokertest.NewProxy(t, url), messages: make(chan tea.Msg, 1000)}
	connect := func(url string) *client.Client {
		c, err := client.Connect(t.Context(), client.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	direct := connect(url)
	for _, id := range teams {
		if _, err := direct.Make(t.Context(), client.NewTeam{ID: id, Roles: map[string]team.Role{"coder": {Name: "coder", Description: "writes code"}}}); err != nil {
			t.Fatal(err)
		}
	}
	storage, err := brokertest.Connect(t, url).Open(t.Context(), teams[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := roster.New(storage).Put(t.Context(), member(team.Leader, "leader", "")); err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(t.Context(), storage, team.Leader, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.note = func(text string) {
		t.Helper()
		if _, err := j.Append(t.Context(), journal.Record{Kind: journal.Note, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	var stop context.CancelFunc
	s.ctx, stop = context.WithCancel(t.Context())
	s.client = connect(s.way.URL)
	s.send = func(msg tea.Msg) {
		select {
		case s.messages <- msg:
		case <-s.ctx.Done():
		}
	}
	s.quit = func() { t.Error("something has panicked") }
	t.Cleanup(func() { stop(); s.parts.Wait() })
	return s
}

// gets waits for a message.
func gets[T any](s *backstage, ok func(T) bool) (found T) {
	s.t.Helper()
	var others []tea.Msg
	for end := time.After(time.Minute); ; {
		select {
		case msg := <-s.messages:
			if m, is := msg.(T); is && ok(m) {
				return m
			}
			others = append(others, msg)
		case <-end:
			s.t.Fatalf("no %T comes, but %+v", found, others)
		}
	}
}

// A conversation that breaks off is read again behind what there was; another fault is said.
func TestTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, tries := make(chan client.Entry, 10), 0
		err := transcript(t.Context(), func(f func(client.Entry) error) error {
			tries++
			for _, minute := range [][]int{{1}, {1, 2, 2}, {1, 2, 2, 3}}[tries-1] {
				if err := f(client.Entry{Time: at(minute)}); err != nil {
					return err
				}
			}
			return team.Errorf(map[bool]team.Code{true: team.Unavailable, false: team.NotFound}[tries < 3], "it breaks off")
		}, to)
		if len(to) != 4 || team.CodeOf(err) != team.NotFound {
			t.Errorf("%d entries come, and %v", len(to), err)
		}
	})
}

// After an outage all is read again soon, however long it was: how the team stands, and a
// conversation that was begun meanwhile, of which nothing comes twice.
func TestOutage(t *testing.T) {
	t.Parallel() // it takes what a request may take
	s := newBackstage(t, "red")
	s.note("first")
	s.enter(1, "red")
	gets(s, func(e entered) bool { return e.err == nil })
	gets(s, func(l looked) bool { return l.snapshot.err == nil })
	s.run(s.ctx, func(ctx context.Context) {
		s.client.Connection(ctx, func(connected bool) { s.send(linked(connected)) })
	})
	s.way.Close()
	gets(s, func(l linked) bool { return !bool(l) })
	s.follow(team.Leader)
	gets(s, func(l looked) bool { return l.snapshot.err != nil })
	s.way.Open()
	gets(s, func(l linked) bool { return bool(l) })
	s.again()
	var heard []string
	hears := func(n int) {
		t.Helper()
		for len(heard) < n {
			for _, e := range gets(s, func(m reply) bool { return true }).entries {
				heard = append(heard, e.Event.Event.Message)
			}
		}
	}
	hears(1)
	s.note("second")
	hears(2)
	if !slices.Equal(heard, []string{"first", "second"}) {
		t.Errorf("of the conversation comes %q", heard)
	}
	gets(s, func(l looked) bool { return l.snapshot.err == nil })
}

// How the team stands, and what waits for the person, is seen also where the cost cannot be read; that is
// tried again.
func TestLookWithoutCost(t *testing.T) {
	s := newBackstage(t, "red")
	tm, err := s.client.Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	storage, err := brokertest.Connect(t, s.url).Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := mailbox.New(storage, mailbox.Options{}).Send(t.Context(), team.Message{Type: team.MsgMessage, From: team.Leader, To: team.UserAgent, Content: "It works."}); err != nil {
		t.Fatal(err)
	}
	f := &following{backend: s.backend, team: tm, visit: 1, nudge: make(chan struct{}, 1)}
	f.asks.Store(true)
	f.used.Store(true)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.cost(late); err == nil || !f.used.Load() {
		t.Errorf("too late the cost is read: %v; again: %v", err, f.used.Load())
	}
	if err := f.poll(t.Context()); err != nil {
		t.Error(err)
	}
	if l := gets(s, func(looked) bool { return true }).snapshot; l.err != nil || len(l.messages) != 1 {
		t.Errorf("of the letters %v are seen, %v", l.messages, l.err)
	}
	f.bill = time.Now().Add(time.Hour) // until when it waits, the longer the slower the machine is
	if err := f.cost(t.Context()); err != nil || !f.used.Load() {
		t.Errorf("while a goal is under way the cost is read early: %v; again: %v", err, f.used.Load())
	}
	f.over.Store(true)
	if err := f.cost(t.Context()); err != nil || f.used.Load() {
		t.Errorf("once it can be, the cost is read: %v; again: %v", err, f.used.Load())
	}
	gets(s, func(billed) bool { return true })
}

// What fails is tried again soon, also if it took long to fail; what succeeds is done less often the
// longer it takes.
func TestEvery(t *testing.T) {
	for _, tt := range []struct {
		err   error
		waits time.Duration
	}{{team.Errorf(team.Unavailable, "no answer"), pollEvery / 4}, {nil, 4 * askedWait}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			nudged := make(chan struct{}, 1)
			nudge(nudged)
			var ended, again time.Time
			every(ctx, nudged, pollEvery, func() error {
				if !ended.IsZero() {
					again = time.Now()
					stop()
					return nil
				}
				time.Sleep(askedWait)
				ended = time.Now()
				return tt.err
			})
			if waits := again.Sub(ended); waits != tt.waits {
				t.Errorf("after %v it waits %v, want %v", tt.err, waits, tt.waits)
			}
		})
	}
}

// A deed is for the team that was shown when it was wanted.
func TestDeedIsForItsTeam(t *testing.T) {
	s := newBackstage(t, "red", "blue")
	s.enter(1, "red")
	gets(s, func(e entered) bool { return e.err == nil })
	s.enter(2, "blue")
	gets(s, func(e entered) bool { return e.err == nil && e.session == 2 })
	for id, fails := range map[team.TeamID]bool{"red": true, "blue": false} {
		d := action{kind: adds, team: id, text: "Port it"}
		if msg := s.do(d)().(done); (msg.err != nil) != fails || msg.action != d {
			t.Errorf("for %s comes %+v", id, msg)
		}
	}
	tm, err := s.client.Open(t.Context(), "blue")
	if err != nil {
		t.Fatal(err)
	}
	if tasks, err := tm.Board().Tasks(t.Context()); err != nil || len(tasks) != 1 {
		t.Errorf("blue has %d tasks, %v", len(tasks), err)
	}
}
