package screen

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"agentteam/pkg/client"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// Intervals and amounts of requests.
const (
	batchTime = 100 * time.Millisecond // of what happens, for one message
	mostBatch = 500
	recently  = 2000 // messages of each stream that are read when a team is entered
	pollEvery = 2 * time.Second
	costEvery = 2 * pollEvery
	askedWait = 10 * time.Second // for an answer of the cluster
	costWait  = time.Minute      // for the sum of all journals
	againWait = time.Second      // before what failed is tried again
)

// backend is the cluster through package client. Update calls its methods one at a time.
type backend struct {
	ctx    context.Context // ends with the screen
	client *client.Client
	send   func(tea.Msg)
	quit   func()

	visit  session
	here   context.Context    // ends when another team is entered
	stop   context.CancelFunc // ends it
	silent context.CancelFunc // ends the conversation that is followed
	nudge  chan struct{}      // of the team that is shown: there is something to look at
	team   atomic.Pointer[client.Team]

	parts    sync.WaitGroup
	panicked atomic.Pointer[string] // with its stack
}

// run runs f in the background. A panic in it ends the screen first.
func (b *backend) run(ctx context.Context, f func(context.Context)) {
	b.parts.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				text := fmt.Sprintf("%v\n%s", v, debug.Stack())
				b.panicked.CompareAndSwap(nil, &text)
				b.quit()
			}
		}()
		f(ctx)
	})
}

// begin ends the present session and starts another.
func (b *backend) begin(visit session) context.Context {
	if b.stop != nil {
		b.stop()
	}
	b.team.Store(nil)
	b.visit = visit
	b.here, b.stop = context.WithCancel(b.ctx)
	b.nudge = make(chan struct{}, 1)
	return b.here
}

func (b *backend) again() { nudge(b.nudge) }

// nudge makes every call its function again soon.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// teams lists the teams repeatedly.
func (b *backend) teams(visit session) tea.Cmd {
	ctx, nudged := b.begin(visit), b.nudge
	b.run(ctx, func(ctx context.Context) {
		every(ctx, nudged, pollEvery, func() error {
			ctx, cancel := context.WithTimeout(ctx, askedWait)
			defer cancel()
			teams, err := b.client.Teams(ctx)
			if teams == nil && err == nil {
				teams = []client.TeamStatus{}
			}
			b.send(listed{teams, err})
			return err
		})
	})
	return nil
}

// every calls f now, and again after a wait or a nudge until ctx ends. It calls a slow f less often, unless f failed.
func every(ctx context.Context, nudge <-chan struct{}, wait time.Duration, f func() error) {
	for ctx.Err() == nil {
		began := time.Now()
		rested := wait / 4
		if err := f(); err == nil {
			rested = max(rested, 4*time.Since(began))
		}
		rest := time.NewTimer(rested)
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
		more := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-nudge:
		case <-more.C:
		}
		more.Stop()
	}
}

// enter opens a team and follows it.
func (b *backend) enter(visit session, id team.TeamID) tea.Cmd {
	ctx, nudged := b.begin(visit), b.nudge
	b.run(ctx, func(ctx context.Context) {
		t, e, after := b.open(ctx, id)
		if ctx.Err() != nil {
			return
		}
		e.session, e.id = visit, id
		if e.err == nil {
			b.team.Store(t)
		}
		if b.send(e); e.err != nil {
			return
		}
		f := &following{backend: b, team: t, visit: visit, nudge: nudged}
		f.asks.Store(true)
		f.used.Store(true)
		b.run(ctx, func(ctx context.Context) { every(ctx, nudged, pollEvery, func() error { return f.poll(ctx) }) })
		b.run(ctx, func(ctx context.Context) { every(ctx, nil, costEvery, func() error { return f.cost(ctx) }) })
		f.follow(ctx, after)
	})
	return nil
}

// open reads the state of a team, and the beginning of the shown part of its feed.
func (b *backend) open(ctx context.Context, id team.TeamID) (t *client.Team, e entered, after client.Cursor) {
	ctx, cancel := context.WithTimeout(ctx, askedWait)
	defer cancel()
	if t, e.err = b.client.Open(ctx, id); e.err != nil {
		return nil, e, ""
	}
	if e.record, e.err = t.Record(ctx); e.err != nil {
		return nil, e, ""
	}
	g, err := t.Goals().Present(ctx)
	switch {
	case err == nil:
		e.begun, e.counts = g.Begun(), g.Has
	case !errors.Is(err, team.InvalidState): // it never had one
		e.err = err
		return nil, e, ""
	}
	from, _, err := t.Recent(ctx, e.begun, recently)
	if err == nil {
		after = from.Cursor(id)
		e.members, e.tasks, err = t.Before(ctx, after)
	}
	e.err = err
	return t, e, after
}

// follow reads the conversation of an agent.
func (b *backend) follow(a team.AgentID) {
	if b.silent != nil {
		b.silent()
	}
	t, visit := b.team.Load(), b.visit
	if a == "" || t == nil {
		return
	}
	ctx, cancel := context.WithCancel(b.here)
	b.silent = cancel
	b.run(ctx, func(ctx context.Context) {
		entries := make(chan client.Entry, mostBatch)
		ended := make(chan error, 1)
		b.run(ctx, func(ctx context.Context) {
			ended <- transcript(ctx, func(f func(client.Entry) error) error { return t.Members().Transcript(ctx, a, true, f) }, entries)
		})
		for {
			select {
			case <-ctx.Done():
				return
			case err := <-ended:
				last := reply{session: visit, agent: a, err: err}
				for len(entries) > 0 {
					last.entries = append(last.entries, <-entries)
				}
				b.send(last)
				return
			case e := <-entries:
				all := []client.Entry{e}
				gather(ctx, entries, nil, func(e client.Entry) bool { all = append(all, e); return len(all) < mostBatch }, nil)
				b.send(reply{session: visit, agent: a, entries: all})
			}
		}
	})
}

// transcript passes on the entries of a conversation until ctx ends. After a failure it continues behind the last
// entry: entries of one record have one time, and arrive together.
func transcript(ctx context.Context, read func(func(client.Entry) error) error, to chan<- client.Entry) error {
	var last, had time.Time
	for {
		err := read(func(e client.Entry) error {
			if !e.Time.After(had) {
				return nil
			}
			last = e.Time
			return put(ctx, to, e)
		})
		if ctx.Err() != nil || team.CodeOf(err) != team.Unavailable {
			return err
		}
		had = last
		shutdown.Sleep(ctx, againWait)
	}
}

// put passes v on, unless ctx ends first.
func put[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gather collects what arrives within a time, until a function has enough.
func gather(ctx context.Context, entries <-chan client.Entry, deltas <-chan team.Delta, entry func(client.Entry) bool, delta func(team.Delta) bool) {
	end := time.NewTimer(batchTime)
	defer end.Stop()
	for more := true; more; {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case e := <-entries:
			more = entry(e)
		case d := <-deltas:
			more = delta(d)
		}
	}
}

// asked runs f for the screen, within a time limit.
func (b *backend) asked(limit time.Duration, f func(ctx context.Context, t *client.Team) tea.Msg) tea.Cmd {
	t := b.team.Load()
	return func() tea.Msg {
		if t == nil {
			return done{err: team.Errorf(team.InvalidState, "no team is shown")}
		}
		ctx, cancel := context.WithTimeout(b.ctx, limit)
		defer cancel()
		return f(ctx, t)
	}
}

func (b *backend) life(id team.TaskID) tea.Cmd {
	visit := b.visit
	return b.asked(2*askedWait, func(ctx context.Context, t *client.Team) tea.Msg {
		steps, whole, err := t.Board().History(ctx, id)
		told := lived{session: visit, task: id, err: err, steps: []string{}}
		if !whole && err == nil {
			told.steps = append(told.steps, "… what was before is no longer stored")
		}
		for _, s := range steps {
			text := s.At.Local().Format("15:04:05") + "  " + string(s.By) + " " + s.What
			if s.Why != "" {
				text += ": " + team.OneLine(s.Why)
			}
			told.steps = append(told.steps, text)
		}
		return told
	})
}

func (b *backend) whole(id string) tea.Cmd {
	visit := b.visit
	return b.asked(2*askedWait, func(ctx context.Context, t *client.Team) tea.Msg {
		l, err := t.Mail().Message(ctx, id)
		return read{visit, id, l.Content, err}
	})
}

func (b *backend) chart() tea.Cmd {
	visit := b.visit
	return b.asked(2*askedWait, func(ctx context.Context, t *client.Team) tea.Msg {
		began := time.Now()
		all, err := t.Goals().Timeline(ctx, 0)
		return charted{visit, all, time.Since(began), err}
	})
}

func (b *backend) do(d action) tea.Cmd {
	nudged := b.nudge
	limit := 2 * askedWait
	if d.kind == stops || d.kind == ends {
		limit += stopWait
	}
	did := b.asked(limit, func(ctx context.Context, t *client.Team) tea.Msg {
		if t.ID() != d.team {
			return done{err: team.Errorf(team.InvalidState, "team %s is no longer shown; nothing was done", d.team)}
		}
		text, err := perform(ctx, t, d)
		nudge(nudged)
		if err != nil && ctx.Err() != nil {
			err = team.Errorf(team.Unavailable, "no answer in time; it may have been done: %s", d.kind)
		}
		return done{text: text, err: err}
	})
	return func() tea.Msg {
		msg := did().(done)
		msg.action = d
		return msg
	}
}

// following is a followed team.
type following struct {
	*backend
	team  *client.Team
	visit session
	nudge chan<- struct{}

	asks atomic.Bool // mail or plans may have changed since the last look
	used atomic.Bool // models were called since the cost was read
	over atomic.Bool // no goal is under way: the last cost is not put off
	last snapshot    // of the goroutine that looks
	mail time.Time   // when the mail was read, by the same
	bill time.Time   // when the cost is read next, of the goroutine that does
}

// follow passes on entries and deltas until ctx ends. After a failure it continues from its position.
func (f *following) follow(ctx context.Context, after client.Cursor) {
	entries, deltas := make(chan client.Entry, mostBatch), make(chan team.Delta, mostBatch)
	f.run(ctx, func(ctx context.Context) {
		for ctx.Err() == nil {
			_ = f.team.Feed(ctx, client.FeedOptions{After: after, Follow: true}, func(e client.Entry) error {
				after = e.Cursor
				return put(ctx, entries, e)
			})
			shutdown.Sleep(ctx, againWait)
		}
	})
	f.run(ctx, func(ctx context.Context) {
		for ctx.Err() == nil {
			_ = f.team.Live(ctx, nil, func(d team.Delta) { _ = put(ctx, deltas, d) })
			shutdown.Sleep(ctx, againWait)
		}
	})
	for ctx.Err() == nil {
		b := newEntries{session: f.visit}
		add := func(e client.Entry) bool {
			b.entries = append(b.entries, e)
			return len(b.entries) < mostBatch && !feed.IsReset(e.Event)
		}
		write := func(d team.Delta) bool {
			b.deltas = append(b.deltas, d)
			return len(b.deltas) < mostBatch
		}
		more := false
		select {
		case <-ctx.Done():
			return
		case e := <-entries:
			more = add(e)
		case d := <-deltas:
			more = write(d)
		}
		if more {
			gather(ctx, entries, deltas, add, write)
		}
		f.hand(ctx, b)
	}
}

// hand passes on a batch, with the present records where entries are missing.
func (f *following) hand(ctx context.Context, b newEntries) {
	if n := len(b.entries); n > 0 && feed.IsReset(b.entries[n-1].Event) {
		b.known = f.records(ctx)
	}
	for _, e := range b.entries {
		kind, _, _ := strings.Cut(string(e.Event.Event.Type), "_")
		if slices.Contains([]string{"MAIL", "APPROVAL", "MEMBER", "TASK"}, kind) {
			f.asks.Store(true)
		}
		if e.Event.Event.Tokens > 0 {
			f.used.Store(true)
		}
	}
	b.at = time.Now()
	f.send(b)
	if f.asks.Load() {
		nudge(f.nudge)
	}
}

func (f *following) records(ctx context.Context) *known {
	for ctx.Err() == nil {
		members, err := f.team.Members().Records(ctx)
		if err == nil {
			views, err := f.team.Board().Tasks(ctx)
			if err == nil {
				k := &known{members: members}
				for _, v := range views {
					k.tasks = append(k.tasks, v.Task)
				}
				return k
			}
		}
		shutdown.Sleep(ctx, againWait)
	}
	return nil
}

// poll reads the state that is not in the feed.
func (f *following) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askedWait)
	defer cancel()
	l := f.last
	if l.record, l.err = f.team.Record(ctx); l.err == nil {
		f.over.Store(l.record.Status != team.Active)
		l.agents, l.err = f.team.Members().List(ctx, l.record.Status != team.Active)
	}
	if l.err == nil && (f.asks.Swap(false) || time.Since(f.mail) > 15*pollEvery) {
		if l.err = f.pollMail(ctx, &l); l.err != nil {
			f.asks.Store(true)
		}
		f.mail = time.Now()
	}
	if l.err == nil {
		f.last = l
	}
	f.send(looked{f.visit, l})
	return l.err
}

func (f *following) pollMail(ctx context.Context, l *snapshot) (err error) {
	if l.messages, err = f.team.Mail().Inbox(ctx, team.UserAgent); err != nil {
		return err
	}
	plans, err := f.team.Plans().List(ctx)
	l.plans = slices.DeleteFunc(plans, func(p client.Plan) bool { return !p.Waits() || p.Asks() != team.UserAgent })
	if l.record.Status != team.Active { // no member waits in it
		l.plans = nil
		for i := range l.messages {
			l.messages[i].Open = false
		}
	}
	return err
}

// cost passes on the cost of the model calls, if there were new ones. It reads all journals, which may take long: look
// does not wait for it.
func (f *following) cost(ctx context.Context) error {
	if time.Now().Before(f.bill) && !f.over.Load() || !f.used.Swap(false) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, costWait)
	defer cancel()
	began := time.Now()
	b, err := f.costs(ctx)
	f.bill = time.Now().Add(20 * time.Since(began))
	if err != nil {
		f.used.Store(true)
		return err
	}
	f.send(billed{f.visit, b})
	return nil
}

// costs returns the cost of the model calls, or if that is unknown their tokens.
func (f *following) costs(ctx context.Context) (bill, error) {
	t, err := f.team.Cost(ctx, 0, "agent")
	if err != nil {
		return bill{}, err
	}
	text := func(u client.Usage, unit string) string {
		switch {
		case u.TotalTokens == 0:
			return ""
		case u.Cost != nil:
			return strings.TrimSpace(fmt.Sprintf("%.2f %s", *u.Cost, u.Currency))
		}
		return render.Amount(u.TotalTokens) + unit
	}
	b := bill{by: map[team.AgentID]string{}, total: text(client.UsageOf(t.Total), " tokens")}
	for _, r := range t.Rows {
		b.by[team.AgentID(r.Name)] = text(client.UsageOf(r.Sum), " tok")
	}
	return b, nil
}
