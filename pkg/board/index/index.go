// Package index is the one place that knows what is claimable: it reads the
// bucket's feed once, in the process that leads the team, and offers each task
// that may be claimed to one idle agent whose role fits. What it knows it tells the
// watchdog (Look) and whoever asks for a list (Ask).
//
// An offer is never a right. A second index, a lost or doubled offer, a stale
// record cost one failed try; what decides is the compare-and-set of the claim.
// So that an offer lost with its index heals, an agent that is idle and has heard
// no leader for a while looks by itself (package agent).
package index

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/wire"
)

// Patience is how long an offer may stay unclaimed before the task is offered to
// another agent.
const Patience = 2 * time.Second

// offerMessage is what is sent to an agent's process: the task's record as it was
// read, and its revision, so that the agent can claim it without reading it again.
type offerMessage struct {
	team.Task
	Revision uint64 `json:"revision"`
}

// EncodeOffer returns the message that offers t. A record has no field revision: it
// tells that of an offer, and of a printed task.
func EncodeOffer(t team.Task) ([]byte, error) {
	kept := t.Kept
	if _, clash := kept["revision"]; clash {
		kept = maps.Clone(kept)
		delete(kept, "revision")
	}
	return wire.Encode(&offerMessage{t, t.Revision}, kept)
}

// DecodeOffer returns the task that data offers.
func DecodeOffer(data []byte) (team.Task, error) {
	var o offerMessage
	kept, err := wire.Decode(data, &o)
	if err != nil {
		return team.Task{}, team.Errorf(team.InvalidArgument, "offer: %w", err)
	}
	o.Task.Revision, o.Task.Kept = o.Revision, kept
	return o.Task, nil
}

// Index offers a team's tasks. Safe for concurrent use.
type Index struct {
	o    Options
	log  *slog.Logger
	m    metrics
	tick <-chan time.Time // it is time for a check

	mu      sync.Mutex
	state   state
	ready   bool          // the bucket was read once
	news    chan struct{} // closed at the next entry; nil while nobody waits for one
	lapse   *time.Timer   // wakes Run when an offer lapses; nil while none may be made
	lapseAt time.Time     // when that is; zero if it is not set
}

// Options are what an Index needs.
type Options struct {
	Team *broker.Team // required
	// Send carries an offer of t to an agent's process; required. It must not block, and
	// is called from several goroutines, by Hear perhaps once more just after Run's end.
	Send   func(to team.AgentID, t team.Task) error
	Finish func(context.Context) error // finishes a creation whose creator may have died; required
	// Taken tells an agent's process that a task which it held was freed, ended or
	// taken by somebody else; default: nobody is told. It must not block.
	Taken    func(from team.AgentID, id team.TaskID)
	Logger   *slog.Logger // default: discard
	Registry prometheus.Registerer
}

// New returns the index of a team; Run makes it work.
func New(o Options) *Index {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Taken == nil {
		o.Taken = func(team.AgentID, team.TaskID) {}
	}
	return &Index{o: o, log: o.Logger, m: newMetrics(o.Registry, o.Team.ID), state: newState(), tick: time.Tick(time.Second)}
}

// Hear takes in a beat: an idle agent's is its request for work.
func (x *Index) Hear(b team.Beat) {
	x.mu.Lock()
	now := time.Now()
	x.state.hear(b, now)
	made := x.match(now)
	x.mu.Unlock()
	x.send(made)
}

// Run follows the board, makes offers and answers queries until ctx ends, then
// returns nil.
func (x *Index) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	defer x.m.clear()
	feed := make(chan error, 1)
	ready := make(chan struct{})
	parts.Go(func() {
		feed <- x.o.Team.Bucket.Watch(ctx, x.take, func() { close(ready) }, ">")
	})
	select {
	case err := <-feed:
		return err
	case <-ready: // before that a dependency might be unknown only because it was not read yet
	}
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
		case err := <-feed:
			return err
		case <-lapse:
		case <-x.tick:
			x.check(ctx, &parts)
		}
	}
}

// open begins to make offers, and returns what tells that one may have lapsed.
func (x *Index) open() <-chan time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lapse = time.NewTimer(Patience)
	x.lapse.Stop() // nothing is offered yet
	x.lapseAt = time.Time{}
	return x.lapse.C
}

// shut ends that: beats may come for as long as the connection lasts.
func (x *Index) shut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lapse.Stop()
	x.lapse = nil
}

// check does what time alone demands.
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

// take takes in an entry of the feed. One bad record must not stop the rest of
// the board: it is set aside and named in the log.
func (x *Index) take(e broker.Entry) error {
	x.mu.Lock()
	now := time.Now()
	err := x.state.take(e, now)
	made := x.match(now)
	x.m.observe(&x.state)
	lost := x.state.taken
	x.state.taken = nil
	// While the bucket is being read for the first time this is an old story, and
	// the holder has long found out.
	if !x.ready {
		lost = nil
	}
	if x.news != nil {
		close(x.news)
		x.news = nil
	}
	x.mu.Unlock()
	if err != nil {
		x.log.Warn("record set aside", "key", e.Key, "revision", e.Revision, "err", err)
	}
	for _, l := range lost {
		x.o.Taken(l.from, l.task)
	}
	x.send(made)
	return nil
}

// Look returns what is known now.
func (x *Index) Look() Look {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.look()
}

// EndsSince returns the tasks that failed or were cancelled after a revision of the
// bucket, in that order, and only those that still are as they were then.
func (x *Index) EndsSince(revision uint64) []End {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.endsSince(revision)
}

// Unfinished returns the first limit tasks that are open or have failed, by number,
// and how many there are.
func (x *Index) Unfinished(limit int) (first []Unfinished, total int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.unfinishedTasks(limit)
}

// offer makes the offers that time alone has made possible.
func (x *Index) offer() {
	x.mu.Lock()
	made := x.match(time.Now())
	x.mu.Unlock()
	x.send(made)
}

// match decides the offers that can be made now. Whatever makes one possible calls it,
// on the goroutine that brought the news: an agent waits for it. x.mu is held.
func (x *Index) match(now time.Time) (made []offered) {
	if x.lapse == nil {
		return nil
	}
	if !now.Before(x.lapseAt) {
		x.lapseAt = time.Time{}
	}
	for _, o := range x.state.match(now) {
		made = append(made, offered{o.node.task, o.agent.beat.AgentID})
	}
	// Most offers are settled long before they lapse: one setting serves for many.
	if due := x.state.due(); x.lapseAt.IsZero() && !due.IsZero() {
		x.lapseAt = due
		x.lapse.Reset(due.Sub(now))
	}
	return made
}

// send tells the agents of offers.
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
