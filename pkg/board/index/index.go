// Package index is the one place that knows what is claimable: it reads the
// bucket's feed once, in the process that leads the team, and offers each task
// that may be claimed to one idle agent whose role fits.
//
// An offer is never a right. A second index, a lost or doubled offer, a stale
// record cost one failed try; what decides is the compare-and-set of the claim.
// So that an offer lost with its index heals, an agent that is idle and has heard
// no leader for a while looks by itself (package agent).
package index

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/broker"
	"agentteam/pkg/team"
)

// Patience is how long an offer may stay unclaimed before the task is offered to
// another agent.
const Patience = 2 * time.Second

// Offer is what is sent to an agent's process: the task as it was read, with its
// revision, so that the agent can claim it without reading it again.
type Offer struct {
	Task     team.Task `json:"task"`
	Revision uint64    `json:"revision"`
}

// Index offers a team's tasks. Safe for concurrent use.
type Index struct {
	team *broker.Team
	send func(team.AgentID, Offer) error
	log  *slog.Logger
	m    metrics

	mu    sync.Mutex
	state state
	kick  chan struct{}
}

// Options are what an Index needs.
type Options struct {
	Team     *broker.Team                         // required
	Send     func(to team.AgentID, o Offer) error // carries an offer to an agent's process; required
	Logger   *slog.Logger                         // default: discard
	Registry prometheus.Registerer
}

// New returns the index of a team; Run makes it work.
func New(o Options) *Index {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Index{team: o.Team, send: o.Send, log: o.Logger, m: newMetrics(o.Registry), state: newState(), kick: make(chan struct{}, 1)}
}

// Hear takes in a beat: an idle agent's is its request for work.
func (x *Index) Hear(b team.Beat) {
	x.mu.Lock()
	x.state.hear(b, time.Now())
	x.mu.Unlock()
	x.wake()
}

func (x *Index) wake() {
	select {
	case x.kick <- struct{}{}:
	default:
	}
}

// Run follows the board and makes offers until ctx ends, then returns nil.
func (x *Index) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer x.m.tasks.DeletePartialMatch(prometheus.Labels{"team": string(x.team.ID)})
	feed := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		feed <- x.team.Bucket.Watch(ctx, x.take, func() { close(ready) }, ">")
	}()
	select {
	case err := <-feed:
		return err
	case <-ready: // before that a dependency might be unknown only because it was not read yet
	}
	tick := time.NewTicker(Patience / 2)
	defer tick.Stop()
	for {
		x.offer()
		select {
		case err := <-feed:
			return err
		case <-x.kick:
		case <-tick.C:
		}
	}
}

// take takes in an entry of the feed. One bad record must not stop the rest of
// the board: it is set aside and named in the log.
func (x *Index) take(e broker.Entry) error {
	x.mu.Lock()
	err := x.state.take(e)
	x.m.show(x.team.ID, x.state.count())
	x.mu.Unlock()
	if err != nil {
		x.log.Warn("record set aside", "err", err)
	}
	x.wake()
	return nil
}

// Look is the team's bucket as the feed has shown it so far. Its slices are the
// caller's own.
type Look struct {
	Team    team.Team
	Members []team.Member
	Tasks   []team.Task // by number
	Seq     uint64      // of the newest entry taken in
}

// Look returns what is known now.
func (x *Index) Look() Look {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &x.state
	return Look{
		Team: s.team, Seq: s.seq,
		Members: slices.SortedFunc(maps.Values(s.members), func(a, b team.Member) int {
			return cmp.Or(a.JoinedAt.Compare(b.JoinedAt), cmp.Compare(a.AgentID, b.AgentID))
		}),
		Tasks: slices.SortedFunc(maps.Values(s.tasks), func(a, b team.Task) int { return cmp.Compare(a.ID.Number(), b.ID.Number()) }),
	}
}

func (x *Index) offer() {
	x.mu.Lock()
	offers := x.state.match(time.Now())
	x.mu.Unlock()
	for _, o := range offers {
		x.m.offers.Inc()
		if err := x.send(o.agent, Offer{o.task, o.task.Revision}); err != nil {
			x.log.Debug("offer not sent", "task", o.task.ID, "agent", o.agent, "err", err)
		}
	}
}
