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
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/control"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
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
	log  *slog.Logger
	m    metrics

	mu    sync.Mutex
	state state
	kick  chan struct{}
}

// New returns the index of a team; Run makes it work.
func New(t *broker.Team, log *slog.Logger, reg prometheus.Registerer) *Index {
	return &Index{team: t, log: log, m: newMetrics(reg), state: newState(), kick: make(chan struct{}, 1)}
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
		feed <- x.team.Bucket.Watch(ctx, x.take, func() { close(ready) }, subject.AllTasks)
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

func (x *Index) take(e broker.Entry) error {
	t, err := board.Decode(e)
	if err != nil {
		x.log.Warn("task set aside", "err", err)
		return nil // one bad record must not stop the rest of the board
	}
	x.mu.Lock()
	x.state.put(t)
	x.m.show(x.team.ID, x.state.count())
	x.mu.Unlock()
	x.wake()
	return nil
}

func (x *Index) offer() {
	x.mu.Lock()
	offers := x.state.match(time.Now())
	x.mu.Unlock()
	for _, o := range offers {
		x.m.offers.Inc()
		if err := control.Notify(x.team.Conn, x.team.ID, o.agent, subject.Offer, Offer{o.task, o.task.Revision}); err != nil {
			x.log.Debug("offer not sent", "task", o.task.ID, "agent", o.agent, "err", err)
		}
	}
}

// state is the pure part: what is known, and who is to be offered what.
type state struct {
	tasks  map[team.TaskID]team.Task
	agents map[team.AgentID]*asker
	out    map[team.TaskID]time.Time // offers under way, and until when
}

type asker struct {
	beat  team.Beat
	heard time.Time
	until time.Time // it has an offer until then
}

func newState() state {
	return state{map[team.TaskID]team.Task{}, map[team.AgentID]*asker{}, map[team.TaskID]time.Time{}}
}

func (s *state) put(t team.Task) {
	if old, ok := s.tasks[t.ID]; ok && old.Revision >= t.Revision {
		return
	}
	s.tasks[t.ID] = t
	delete(s.out, t.ID)
	if t.Status == team.InProgress {
		// Its idle beat is older than its claim.
		if a := s.agents[t.Assignee]; a != nil && a.beat.Incarnation == t.Incarnation {
			a.beat.State = team.Running
		}
	}
}

func (s *state) hear(b team.Beat, now time.Time) {
	a := s.agents[b.AgentID]
	if a == nil {
		a = &asker{}
		s.agents[b.AgentID] = a
	} else if !b.Newer(a.beat) {
		return
	}
	if b.State != team.Idle {
		a.until = time.Time{}
	}
	a.beat, a.heard = b, now
}

func (s *state) count() map[team.TaskStatus]int {
	n := map[team.TaskStatus]int{}
	for _, t := range s.tasks {
		n[t.Status]++
	}
	return n
}

type offer struct {
	agent team.AgentID
	task  team.Task
}

// silent is after how long an agent that was idle is offered nothing more.
const silent = 3 * 2 * time.Second

// match decides the offers to be made now: tasks in order of work, each to the
// idle agent that has waited longest of those whose role fits.
func (s *state) match(now time.Time) []offer {
	idle := make([]*asker, 0, len(s.agents))
	for _, a := range s.agents {
		if a.beat.State == team.Idle && !a.beat.Unseen && a.beat.Task == "" && a.beat.AgentID != team.Leader &&
			now.Sub(a.heard) < silent && now.After(a.until) {
			idle = append(idle, a)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	slices.SortFunc(idle, func(a, b *asker) int {
		if c := a.until.Compare(b.until); c != 0 {
			return c
		}
		if a.beat.AgentID < b.beat.AgentID {
			return -1
		}
		return 1
	})
	var offers []offer
	for _, t := range s.claimable(now) {
		i := slices.IndexFunc(idle, func(a *asker) bool { return t.Role == "" || t.Role == a.beat.Role })
		if i < 0 {
			continue
		}
		idle[i].until, s.out[t.ID] = now.Add(Patience), now.Add(Patience)
		offers = append(offers, offer{idle[i].beat.AgentID, t})
		if idle = slices.Delete(idle, i, i+1); len(idle) == 0 {
			break
		}
	}
	return offers
}

func (s *state) claimable(now time.Time) []team.Task {
	var list []team.Task
	for _, t := range s.tasks {
		if t.Status == team.Pending && now.After(s.out[t.ID]) && !slices.ContainsFunc(t.Dependencies, func(d team.TaskID) bool {
			return s.tasks[d].Status != team.Completed
		}) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, team.Task.Compare)
	return list
}

type metrics struct {
	tasks  *prometheus.GaugeVec
	offers prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		tasks: telemetry.Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentteam_tasks", Help: "Tasks on the board, by team and status; only the process that leads the team tells."}, []string{"team", "status"})),
		offers: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_offers_total", Help: "Tasks offered to idle agents."})),
	}
}

// show publishes the size of the board; every status is told, so that none stays
// at an old figure.
func (m metrics) show(id team.TeamID, n map[team.TaskStatus]int) {
	for _, s := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed, team.Failed, team.Cancelled} {
		m.tasks.WithLabelValues(string(id), string(s)).Set(float64(n[s]))
	}
}
