// Package index offers each claimable task to one idle agent whose role fits. It reads the bucket's feed once, in the
// process that leads the team, and also serves the watchdog (Look) and queries for lists of tasks (Ask).
//
// An offer is never a right. A second index, a lost or doubled offer, a stale record cost one failed try; the
// compare-and-set of the claim decides. To recover an offer that was lost with its index, an idle agent that has heard no
// leader for a while reads the board itself (package agent).
package index

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// patience is the time for which an offer may stay unclaimed before the task is offered to another agent.
const patience = 2 * time.Second

// Index offers a team's tasks. Safe for concurrent use.
type Index struct {
	o    Options
	log  *slog.Logger
	m    metrics
	tick <-chan time.Time // it is time for a check

	mu      sync.Mutex
	state   state
	ready   bool          // the bucket was read once
	news    chan struct{} // closed at the next entry; nil while no query waits for one
	lapse   *time.Timer   // wakes Run when an offer lapses; nil while none may be made
	lapseAt time.Time     // when that is; zero if it is not set
}

// Options configure an Index.
type Options struct {
	Team *broker.Storage // required
	// Send carries an offer of t to an agent's process; required. It must not block. It is
	// called from several goroutines, and Hear may call it once more just after Run's end.
	Send   func(to team.AgentID, t team.Task) error
	Finish func(context.Context) error // finishes a creation whose creator may have died; required
	// Taken notifies an agent's process that another one freed, ended or took its task; default: no notice. It must
	// not block.
	Taken func(from team.AgentID, id team.TaskID)
	// Heard is called with each new heartbeat of a member's present incarnation; default: no call. It must not block.
	Heard   func(team.Heartbeat)
	Logger  *slog.Logger // default: discard
	Metrics prometheus.Registerer
}

// New returns the index of a team; Run starts it.
func New(o Options) *Index {
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.Taken == nil {
		o.Taken = func(team.AgentID, team.TaskID) {}
	}
	if o.Heard == nil {
		o.Heard = func(team.Heartbeat) {}
	}
	return &Index{o: o, log: o.Logger, m: newMetrics(o.Metrics, o.Team.ID), state: newState(), tick: time.Tick(time.Second)}
}

// Hear reads a heartbeat: that of an idle agent is its request for work. A heartbeat of another incarnation than its
// member's record changes nothing, until the feed shows a record of that incarnation.
func (x *Index) Hear(b team.Heartbeat) {
	x.mu.Lock()
	now := time.Now()
	foreign := x.state.foreign(b)
	news := x.state.hear(b, now)
	made := x.match(now)
	x.mu.Unlock()
	if foreign {
		x.m.foreign.Inc()
		x.log.Debug("beat of another incarnation", "agent", b.AgentID, "incarnation", b.Incarnation)
	}
	if news {
		x.o.Heard(b)
	}
	x.send(made)
}

// Run watches the board, makes offers and answers queries until ctx ends, then
// returns nil.
func (x *Index) Run(ctx context.Context) error {
	defer x.m.clear()
	ready := make(chan struct{})
	feed := func(ctx context.Context) error {
		return x.o.Team.Bucket.Watch(ctx, x.take, func() { close(ready) }, ">")
	}
	return shutdown.Together(ctx, feed, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-ready: // before that a dependency might be unknown only because it was not read yet
		}
		return x.work(ctx)
	})
}

// work makes offers and answers queries until ctx ends.
func (x *Index) work(ctx context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x.mu.Lock()
	x.ready = true
	x.mu.Unlock()
	if err := x.serve(ctx, &parts); err != nil {
		return err
	}
	lapse := x.open()
	defer x.shut()
	x.check(ctx, &parts)
	for {
		x.offer()
		select {
		case <-ctx.Done():
			return nil
		case <-lapse:
		case <-x.tick:
			x.check(ctx, &parts)
		}
	}
}

// open starts the making of offers, and returns a channel that signals that an offer may have lapsed.
func (x *Index) open() <-chan time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lapse = time.NewTimer(patience)
	x.lapse.Stop() // nothing is offered yet
	x.lapseAt = time.Time{}
	return x.lapse.C
}

// shut ends the making of offers: heartbeats may come for as long as the connection lasts.
func (x *Index) shut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lapse.Stop()
	x.lapse = nil
}

// check does the work that is due by time alone: metrics, and creations that were left half done.
func (x *Index) check(ctx context.Context, parts *sync.WaitGroup) {
	x.mu.Lock()
	now := time.Now()
	x.m.show(&x.state, now)
	unfinished := x.state.unfinished(now)
	x.mu.Unlock()
	if unfinished {
		parts.Go(func() {
			if err := x.o.Finish(ctx); err != nil && ctx.Err() == nil {
				x.log.WarnContext(ctx, "creation of tasks not finished", "err", err)
			}
		})
	}
}

// take reads an entry of the feed. One bad record must not stop the others of the board: it is set aside and named in
// the log.
func (x *Index) take(e broker.Entry) error {
	x.mu.Lock()
	now := time.Now()
	err := x.state.take(e, now)
	made := x.match(now)
	x.m.observe(&x.state)
	lost, wrong, heard := x.state.taken, x.state.unlawful, x.state.heard
	x.state.taken, x.state.unlawful, x.state.heard = nil, nil, nil
	// During the first read of the bucket these losses are old, and their holders know them.
	if !x.ready {
		lost, wrong = nil, nil
	}
	if x.news != nil {
		close(x.news)
		x.news = nil
	}
	x.mu.Unlock()
	if err != nil {
		x.log.Warn("record set aside", "key", e.Key, "revision", e.Revision, "err", err)
	}
	for _, b := range heard {
		x.o.Heard(b)
	}
	for _, l := range lost {
		x.o.Taken(l.from, l.task)
	}
	for _, u := range wrong { // by a program that keeps other rules, or none
		x.m.unlawful.Inc()
		x.log.Warn("task written against the rules", "task", u.task.ID, "agent", u.task.UpdatedBy, "status", u.task.Status, "revision", u.task.Revision, "why", u.why)
	}
	x.send(made)
	return nil
}

// Snapshot returns the present state of the team by the feed.
func (x *Index) Snapshot() Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.snapshot()
}

// EndsSince returns the tasks that failed or were cancelled after a revision of the bucket, in that order, and only those
// that are still in that state.
func (x *Index) EndsSince(revision uint64) []End {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.endsSince(revision)
}

// DoneSince returns the tasks that were completed after a revision of the bucket, in that order.
func (x *Index) DoneSince(revision uint64) []team.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.doneSince(revision)
}

// LastDone returns the last completed task of each of these members that completed one.
func (x *Index) LastDone(members ...team.AgentID) map[team.AgentID]team.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.lastDone(members)
}

// Unfinished returns the first limit tasks that are open or have failed, by number, and the total number of such tasks.
func (x *Index) Unfinished(limit int) (first []Unfinished, total int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.unfinishedTasks(limit)
}

// offer makes the offers that have become possible by time alone.
func (x *Index) offer() {
	x.mu.Lock()
	made := x.match(time.Now())
	x.mu.Unlock()
	x.send(made)
}

// match returns the offers to make now. It runs on the goroutine that brought the news, since an agent waits for it. x.mu
// is held.
func (x *Index) match(now time.Time) (made []offered) {
	if x.lapse == nil {
		return nil
	}
	if !now.Before(x.lapseAt) {
		x.lapseAt = time.Time{}
	}
	for _, o := range x.state.match(now) {
		made = append(made, offered{o.node.task, o.agent.heartbeat.AgentID})
	}
	// Most offers are settled long before they lapse, so one timer setting serves many.
	if due := x.state.due(); x.lapseAt.IsZero() && !due.IsZero() {
		x.lapseAt = due
		x.lapse.Reset(due.Sub(now))
	}
	return made
}

// send sends the offers to the agents.
func (x *Index) send(made []offered) {
	for _, m := range made {
		x.m.offers.Inc()
		if err := x.o.Send(m.to, m.task); err != nil {
			x.log.Debug("offer not sent", "task", m.task.ID, "agent", m.to, "err", err)
		}
	}
}

// offered is a task on its way to an agent.
type offered struct {
	task team.Task
	to   team.AgentID
}
