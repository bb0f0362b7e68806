package watchdog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/board/index"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"

	"github.com/prometheus/client_golang/prometheus"
)

const lease = 30 * time.Second

// fake is a team whose members beat all the time, unless they are made silent.
type fake struct {
	t   *testing.T
	reg *prometheus.Registry

	mu     sync.Mutex
	look   index.Look // but for what follows from the tasks
	tasks  []team.Task
	ends   []index.End
	stored uint64 // up to which the leader was told of ends
	seq    uint64 // of the bucket, if it is ahead of what the index knows
	beats  map[team.AgentID]team.Beat
	silent map[team.AgentID]time.Time // since when no beat of it is heard
	dead   map[team.AgentID]bool      // does not answer a ping
	mail   uint64
	unread int
	text   string
	ids    map[string]time.Time // of the notices, when they came
	broken error                // of every call to the server
	freeze time.Duration        // the process stands still this long, once

	did []string // what the watchdog did, in order
}

func newFake(t *testing.T) *fake {
	l := quiet()
	return &fake{t: t, reg: prometheus.NewRegistry(), beats: l.Beats, silent: map[team.AgentID]time.Time{}, dead: map[team.AgentID]bool{}, ids: map[string]time.Time{},
		look: index.Look{Team: l.Team, Members: l.Members, Seq: l.Seq}, text: "that is all"}
}

// watch runs f beside a watchdog of the team, in a bubble.
func watch(t *testing.T, f func(t *testing.T, w *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFake(t)
		w.term(func() { f(t, w) })
	})
}

// term runs f beside a watchdog of the team: that of one leader.
func (w *fake) term(f func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error)
	go func() { done <- New(Options{Team: w, Lease: lease, Registry: w.reg}).Run(ctx) }()
	f()
	cancel()
	if err := <-done; err != nil {
		w.t.Errorf("Run = %v", err)
	}
}

// change changes the team, and lets time go by.
func (w *fake) change(d time.Duration, f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
}

func (w *fake) pass(d time.Duration) { w.change(d, func() {}) }

func (w *fake) task(t team.Task) { w.tasks = append(w.tasks, t) }

// end ends a task without success.
func (w *fake) end(id team.TaskID, s team.TaskStatus) {
	e := index.End{Revision: uint64(len(w.ends) + 1)}
	for i := range w.tasks {
		switch t := &w.tasks[i]; {
		case t.ID == id:
			t.Status, t.Revision = s, e.Revision
			e.Task = *t
		case t.Status == team.Pending && slices.Contains(t.Dependencies, id):
			e.Blocks = append(e.Blocks, t.ID)
		}
	}
	w.ends = append(w.ends, e)
}

// on returns the look at a board with these tasks.
func on(l index.Look, tasks []team.Task) index.Look {
	l.Tasks, l.Claimable, l.Running, l.Moved = map[team.TaskStatus]int{}, map[string]int{}, nil, 0
	for _, v := range team.View(tasks) {
		l.Tasks[v.Status]++
		l.Moved = max(l.Moved, v.Revision)
		switch {
		case v.Status == team.InProgress:
			l.Running = append(l.Running, v.Task)
		case v.Status == team.Pending && !v.IsBlocked:
			l.Claimable[v.Role]++
		}
	}
	return l
}

func unfinished(tasks []team.Task, limit int) (first []index.Unfinished, total int) {
	status := func(id team.TaskID) team.TaskStatus {
		return tasks[slices.IndexFunc(tasks, func(t team.Task) bool { return t.ID == id })].Status
	}
	for _, v := range team.View(tasks) {
		if !v.Status.Open() && v.Status != team.Failed {
			continue
		}
		u := index.Unfinished{TaskView: v}
		if by, dead := v.Dead(status); dead {
			u.Dead, u.DeadStatus = by, status(by)
		}
		if total++; total <= limit {
			first = append(first, u)
		}
	}
	return first, total
}

func (w *fake) goSilent(a team.AgentID) { w.silent[a], w.dead[a] = time.Now(), true }

// turn is a turn of the agent; its beat tells.
func (w *fake) turn(a team.AgentID) {
	b := w.beats[a]
	b.Turn++
	w.beats[a] = b
}

// want checks what the watchdog did since the last time it was asked.
func (w *fake) want(did ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.did, did) {
		w.t.Errorf("the watchdog did %q, want %q", w.did, did)
	}
	w.did = nil
}

func (w *fake) note(format string, args ...any) { w.did = append(w.did, fmt.Sprintf(format, args...)) }

func (w *fake) Look() index.Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(w.freeze)
	w.freeze = 0
	l := on(w.look, w.tasks)
	l.Members = slices.Clone(l.Members)
	return l
}

func (w *fake) EndsSince(revision uint64) []index.End {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.ends), func(e index.End) bool { return e.Revision <= revision })
}

func (w *fake) Unfinished(limit int) ([]index.Unfinished, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return unfinished(w.tasks, limit)
}

func (w *fake) Told(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored, w.broken
}

func (w *fake) SetTold(_ context.Context, revision uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.stored = revision
	}
	return w.broken
}

func (w *fake) Heard() map[team.AgentID]roster.Heard {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := map[team.AgentID]roster.Heard{}
	for a, b := range maps.Clone(w.beats) {
		at, ok := w.silent[a]
		if !ok {
			at = time.Now()
		}
		heard[a] = roster.Heard{Beat: b, At: at}
	}
	return heard
}

func (w *fake) BucketSeq(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.seq, w.look.Seq), w.broken
}

func (w *fake) MailSeq(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mail, w.broken
}

func (w *fake) Unread(context.Context, team.Member) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unread, w.broken
}

func (w *fake) Ping(_ context.Context, a team.AgentID, nonce string, wait time.Duration) (team.Beat, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead[a] {
		w.mu.Unlock()
		time.Sleep(wait)
		w.mu.Lock()
		return team.Beat{}, team.Unavailable
	}
	b := w.beats[a]
	b.Nonce = nonce
	return b, nil
}

func (w *fake) Reap(_ context.Context, t team.Task, reason string, attempt bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("reap %s attempt=%v: %s", t.ID, attempt, reason)
	for i := range w.tasks {
		if w.tasks[i].ID == t.ID {
			w.tasks[i].Status = team.Cancelled // so that nothing more happens to it
		}
	}
	return nil
}

func (w *fake) Respawn(_ context.Context, m team.Member) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("respawn %s %d", m.AgentID, m.Incarnation)
	return nil
}

func (w *fake) Tell(_ context.Context, id, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.ids[id]; w.broken != nil || ok && time.Since(at) < 2*time.Minute { // as the server does
		return w.broken
	}
	w.ids[id] = time.Now()
	w.mail++
	word, _, _ := cut(text)
	w.note("tell %s", word)
	return nil
}

func (w *fake) LastText() string { return w.text }

func (w *fake) End(_ context.Context, s team.Status, summary string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("end %s: %s", s, summary)
	w.look.Team.Status = s
	return nil
}

// cut is text up to the end of its first bracket.
func cut(text string) (word, rest string, ok bool) {
	for i, r := range text {
		if r == ']' {
			return text[:i+1], text[i+1:], true
		}
	}
	return text, "", false
}
