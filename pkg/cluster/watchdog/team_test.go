package watchdog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

const lease = 30 * time.Second

// fake is a team whose members beat all the time, unless they are made silent.
type fake struct {
	t   *testing.T
	reg *prometheus.Registry

	mu           sync.Mutex
	look         index.Snapshot // but for what follows from the tasks
	tasks        []team.Task
	ends         []index.End
	note         []byte                          // what the watchdog has stored under its key
	seq          uint64                          // of the bucket, if it is ahead of what the index knows
	beats        map[team.AgentID]team.Heartbeat // of those that are heard now
	pulse        *roster.Pulse
	silent       map[team.AgentID]bool // no beat of it is heard any more
	dead         map[team.AgentID]bool // does not answer a ping
	answered     map[team.TaskID]bool  // a journal shows work on it
	unread       int
	inboxless    team.AgentID         // whose inbox is not there
	restless     team.AgentID         // makes a turn between any two pings
	pings        int                  // how many there were
	server       string               // the NATS server
	ids          map[string]time.Time // of the notices, when they came
	broken       error                // of every call to the server
	onUnfinished func()               // happens just before the unfinished tasks are read, once
	freeze       time.Duration        // the process stands still this long, once
	poolless     bool                 // nobody can be brought back
	since        time.Time            // its process has listened since then, before the term; zero: it has not
	returns      bool                 // a person lets lost members come back
	asks         []string             // what a person was asked

	did  []string // what the watchdog did, in order
	text string   // of the last message to the leader
}

func newFake(t *testing.T) *fake {
	l := quiet()
	return &fake{t: t, reg: prometheus.NewRegistry(), beats: l.Beats, pulse: roster.NewPulse(), silent: map[team.AgentID]bool{}, dead: map[team.AgentID]bool{}, answered: map[team.TaskID]bool{}, ids: map[string]time.Time{},
		look: index.Snapshot{Team: l.Team, Members: l.Members, Seq: l.Seq}}
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
	go func() {
		done <- New(Options{Index: w, Pulse: w.pulse, Bucket: bucket{w}, Actions: w, Cluster: "now", Server: w.serverID, Lease: lease, Since: func(team.Member) (time.Time, bool) { return w.since, !w.since.IsZero() }, Metrics: w.reg}).Run(ctx)
	}()
	f()
	cancel()
	if err := <-done; err != nil {
		w.t.Errorf("Run = %v", err)
	}
}

func (w *fake) serverID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.server
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
func on(l index.Snapshot, tasks []team.Task) index.Snapshot {
	l.Tasks, l.Claimable, l.Running, l.Reserved, l.Moved = map[team.TaskStatus]int{}, map[string]int{}, nil, nil, 0
	for _, v := range team.View(tasks) {
		l.Tasks[v.Status]++
		l.Moved = max(l.Moved, v.Revision)
		switch {
		case v.Status == team.InProgress:
			l.Running = append(l.Running, v.Task)
		case v.ReservedFor != "":
			l.Reserved = append(l.Reserved, index.Reserved{Task: v.Task, Claimable: !v.IsBlocked})
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

// goSilent has an agent's process die just after a beat.
func (w *fake) goSilent(a team.AgentID) {
	w.beat()
	w.silent[a], w.dead[a] = true, true
}

// turn is a turn of the agent; its beat tells.
func (w *fake) turn(a team.AgentID) {
	b := w.beats[a]
	b.Turn++
	w.beats[a] = b
}

// sit gives ann a seat.
func (w *fake) sit() {
	w.look.Members = append(w.look.Members, team.Member{AgentID: "ann", State: team.Joined, Backend: team.Person, Incarnation: 1})
}

// stand stops ann's seat.
func (w *fake) stand() {
	m := &w.look.Members[len(w.look.Members)-1]
	m.State, m.Revision, w.look.Seq = team.Stopped, 99, 99
}

// ask has a member make a turn in which it asks a person, for whose answer it then waits.
func (w *fake) ask(a, person team.AgentID) {
	b := w.beats[a]
	b.State, b.Awaits = team.WaitingUser, person
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

func (w *fake) act(format string, args ...any) { w.did = append(w.did, fmt.Sprintf(format, args...)) }

// snapshot is the board. Just before it is looked at, all have beaten.
func (w *fake) Snapshot() index.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(w.freeze)
	w.freeze = 0
	w.beat()
	l := on(w.look, w.tasks)
	l.Members = slices.Clone(l.Members)
	return l
}

// beat has everybody heard who is not silent.
func (w *fake) beat() {
	for a, b := range w.beats {
		if !w.silent[a] {
			b.N++
			w.beats[a] = b
			w.pulse.Hear(b)
		}
	}
}

func (w *fake) DoneSince(revision uint64) []team.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.tasks), func(t team.Task) bool { return t.Status != team.Completed || t.Revision <= revision })
}

func (w *fake) EndsSince(revision uint64) []index.End {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.ends), func(e index.End) bool { return e.Revision <= revision })
}

func (w *fake) Unfinished(limit int) ([]index.Unfinished, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.onUnfinished; f != nil {
		w.onUnfinished = nil
		f()
	}
	return unfinished(w.tasks, limit)
}

// bucket is the team's bucket; of its keys, only the watchdog's own is there.
type bucket struct{ *fake }

func (b bucket) LastSeq(context.Context) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.seq, b.look.Seq), b.broken
}

func (b bucket) Get(_ context.Context, key string) (broker.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.broken != nil:
		return broker.Entry{}, b.broken
	case b.note == nil:
		return broker.Entry{}, team.NotFound
	}
	return broker.Entry{Key: key, Value: b.note, Revision: 1}, nil
}

func (b bucket) Put(_ context.Context, _ string, value []byte, _ uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.note = value
	}
	return 1, b.broken
}

func (w *fake) Unread(_ context.Context, m team.Member) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.AgentID == w.inboxless {
		return 0, team.NotFound
	}
	return w.unread, w.broken
}

func (w *fake) Ping(_ context.Context, a team.AgentID, wait time.Duration) (team.Heartbeat, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead[a] {
		w.mu.Unlock()
		time.Sleep(wait)
		w.mu.Lock()
		return team.Heartbeat{}, team.Unavailable
	}
	if w.pings++; a == w.restless {
		w.turn(a)
	}
	return w.beats[a], nil
}

func (w *fake) Reap(_ context.Context, t team.Task, f team.Freed) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := ""
	if f.Keep {
		kept = ", kept"
	}
	if f.Work != nil {
		kept += ", files on " + f.Work.Host
	}
	w.act("reap %s attempt=%v%s: %s", t.ID, f.Attempt, kept, f.Reason)
	for i := range w.tasks {
		if w.tasks[i].ID == t.ID {
			w.tasks[i].Status = team.Cancelled // so that nothing more happens to it
		}
	}
	return nil
}

func (w *fake) Unreserve(_ context.Context, t team.Task) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.tasks {
		if w.tasks[i].ID == t.ID && w.tasks[i].ReservedFor != "" { // else another leader was quicker
			w.act("unreserve %s", t.ID)
			w.tasks[i].ReservedFor = ""
		}
	}
	return w.broken
}

func (w *fake) Respawn(_ context.Context, m team.Member, _ time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("respawn %s %d", m.AgentID, m.Incarnation)
	if i := slices.IndexFunc(w.look.Members, func(o team.Member) bool { return o.AgentID == m.AgentID }); w.poolless {
		m.Incarnation, m.Revision, m.State, m.LastError = m.Incarnation+1, m.Revision+2, team.Lost, "no standby is free"
		w.look.Members[i] = m
	}
	return nil
}

func (w *fake) MayReturn(_ context.Context, m team.Member, _ team.Team) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ask := fmt.Sprintf("ask for %s %d", m.AgentID, m.Incarnation); !slices.Contains(w.asks, ask) { // as its record is made once
		w.asks = append(w.asks, ask)
		w.act("%s", ask)
	}
	return w.returns, nil
}

func (w *fake) Ready(_ context.Context, _ team.Team, role string, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("ready %d %s", n, role)
	return nil
}

func (w *fake) Lose(_ context.Context, m team.Member, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("lose %s", why)
	for i := range w.look.Members {
		if w.look.Members[i].AgentID == m.AgentID {
			w.look.Members[i].State = team.Lost
		}
	}
	return w.broken
}

func (w *fake) Answered(_ context.Context, t team.Task) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered[t.ID], w.broken
}

func (w *fake) Dismiss(_ context.Context, m team.Member) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("dismiss %s %d", m.AgentID, m.Incarnation)
	return w.stop(m)
}

func (w *fake) GiveUp(_ context.Context, m team.Member, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("give up %s %d: %s", m.AgentID, m.Incarnation, why)
	return w.stop(m)
}

func (w *fake) Mark(_ context.Context, m team.Member, why, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("mark %s: %s", m.AgentID, why)
	return w.broken
}

func (w *fake) Refuse(_ context.Context, m team.Member, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("refuse %s %d", m.AgentID, m.Incarnation)
	return w.stop(m)
}

func (w *fake) stop(m team.Member) error {
	i := slices.IndexFunc(w.look.Members, func(o team.Member) bool { return o.AgentID == m.AgentID })
	w.look.Members[i].State = team.Stopped
	return w.broken
}

func (w *fake) Notify(_ context.Context, id, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.ids[id]; w.broken != nil || ok && time.Since(at) < 2*time.Minute { // as the server does
		return w.broken
	}
	w.ids[id] = time.Now()
	word, _, _ := cut(text)
	w.act("tell %s", word)
	w.text = text
	return nil
}

func (w *fake) End(_ context.Context, s team.Status, reason string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act("end %s", strings.TrimSuffix(string(s)+": "+reason, ": "))
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
