package roster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// claimGrace delays the heartbeat "started a task". The board already shows the claim, and a task shorter than this needs
// only one heartbeat.
const claimGrace = 100 * time.Millisecond

// Interval is the time between two heartbeats of a member.
const Interval = 2 * time.Second

// Heart publishes the heartbeats of one incarnation of a member, every [Interval], and immediately when the member's
// state changes and when its connection is back. Safe for concurrent use.
type Heart struct {
	lease time.Duration
	begun time.Time
	fence *fence
	send  func(beat []byte)                                    // publishes a heartbeat
	conn  func(ctx context.Context, f func(connected bool))    // calls f when the connection is lost and back
	check func(ctx context.Context, lived time.Duration) error // reads the member's record, as Roster.Lives
	jobs  func() []team.Job                                    // the running jobs of the member; nil: none
	store func() string                                        // why writes of the process are not stored

	claimed chan struct{} // signals that the member has begun on a task
	back    chan struct{} // signals that the connection is back
	mu      sync.Mutex
	current team.Heartbeat
	moved   time.Time // last progress, by this process's clock
	untold  bool      // no heartbeat has shown the last task begun
}

// NewHeart returns the heart of m. The lease is the team's: the record is read again every sixth of it.
func NewHeart(r *Roster, m team.Member, lease time.Duration) *Heart {
	subj, now := subject.Heartbeat(r.team.ID, m.AgentID), time.Now()
	return &Heart{
		lease: lease, begun: now, fence: newFence(lease, now), claimed: make(chan struct{}, 1), back: make(chan struct{}, 1),
		// A heartbeat that cannot be sent now has no value later.
		send: func(beat []byte) { _ = r.team.Conn.NATS().Publish(subj, beat) },
		conn: r.team.Conn.Follow,
		check: func(ctx context.Context, lived time.Duration) error {
			return r.Lives(ctx, m.AgentID, m.Incarnation, lived)
		},
		store:   r.team.Conn.Refused,
		current: team.Heartbeat{AgentID: m.AgentID, Incarnation: m.Incarnation, Role: m.Role, State: team.Running}, moved: now,
	}
}

// Jobs has all heartbeats show the jobs that jobs returns; jobs must not call back into the Heart. Call it before Run.
func (h *Heart) Jobs(jobs func() []team.Job) { h.jobs = jobs }

// Set changes the heartbeat. It publishes immediately if that changed the state, the task or the flag for unseen input.
// Only the change from idle to a task waits up to [claimGrace], and for [Heart.Run]. f must not call back into the Heart.
func (h *Heart) Set(f func(*team.Heartbeat)) {
	h.mu.Lock()
	before := h.current
	f(&h.current)
	after := h.current
	claimed := before.State == team.Idle && after.State == team.Running && after.Task != ""
	h.untold = h.untold || claimed
	h.mu.Unlock()
	switch {
	case claimed:
		select {
		case h.claimed <- struct{}{}:
		default:
		}
	case before.State != after.State || before.Task != after.Task || before.Unseen != after.Unseen:
		h.publish(false)
	}
}

// Progress records that the member has made progress. The next heartbeat shows it; none is sent for it.
func (h *Heart) Progress() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved = time.Now()
}

// Now returns the present heartbeat with the next number, as the answer to a ping.
func (h *Heart) Now() team.Heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.N++
	b := h.current
	if h.jobs != nil {
		b.Jobs = h.jobs()
	}
	b.ProgressAt, b.Still, b.Storage = h.moved.UTC(), int(time.Since(h.moved)/time.Second), h.store()
	return b
}

func (h *Heart) publish(back bool) {
	h.mu.Lock()
	h.untold = false
	h.mu.Unlock()
	b := h.Now()
	b.Back = back
	if data, err := codec.Marshal(b); err == nil {
		h.send(data)
	}
}

// Run publishes heartbeats until ctx ends, then returns nil. It returns [team.ErrSuperseded] once the member's record
// states that this incarnation is over: so a process that was frozen or cut off learns that it was replaced.
func (h *Heart) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		h.sendOn(ctx)
		return nil
	})
	g.Go(func() error {
		h.conn(ctx, func(connected bool) {
			if connected {
				select {
				case h.back <- struct{}{}:
				default:
				}
			}
		})
		return nil
	})
	// On a goroutine of its own: a slow read must not delay the heartbeats.
	g.Go(func() error { return h.confirm(ctx) })
	return g.Wait()
}

func (h *Heart) sendOn(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for back := false; ; {
		h.publish(back)
		back = false
		for told := true; told; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				told = false
			case <-h.back:
				told, back = false, true
			case <-h.claimed:
				told = h.sentWithin(ctx, claimGrace)
			}
		}
	}
}

// sentWithin waits for d and reports whether a heartbeat has shown the last task begun in the meantime; true also if ctx
// ends.
func (h *Heart) sentWithin(ctx context.Context, d time.Duration) bool {
	if !shutdown.Sleep(ctx, d) {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.untold
}

// confirm reads the member's record every sixth of the lease. It returns nil when ctx ends, and team.ErrSuperseded when
// the record shows that the membership is over.
func (h *Heart) confirm(ctx context.Context) error {
	tick := time.NewTicker(h.lease / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, h.lease/6)
		err := h.check(attempt, began.Sub(h.begun))
		cancel()
		switch {
		case errors.Is(err, team.ErrSuperseded):
			return err
		case err == nil:
			h.fence.confirm(began)
		}
	}
}

// Certain blocks until the member may begin new work, that is, until the last answered read of its record began less than
// two thirds of the lease ago, and returns nil; ctx's error if that ends first. [Heart.Run] does the reading.
func (h *Heart) Certain(ctx context.Context) error { return h.fence.wait(ctx) }

// Within returns a context for the member's work. It ends, with the cause [ErrFenced], five sixths of the lease after the
// last answered read of the record began: at the end of the lease another member may get the task.
func (h *Heart) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return h.fence.within(ctx)
}

// Allowed returns the time until which the member's work may continue without another answered read of its record, as in
// [Heart.Within], and a channel that is closed when that time moves. It is for work that must end although this process
// is frozen.
func (h *Heart) Allowed() (until time.Time, moved <-chan struct{}) { return h.fence.allowed() }

// Listen calls f for every heartbeat of one member, or of [team.Everyone], until stop is called. f runs on one goroutine
// and must not block.
func (r *Roster) Listen(whose team.AgentID, f func(team.Heartbeat)) (stop func(), err error) {
	subj := subject.Heartbeats(r.team.ID)
	if whose != team.Everyone {
		subj = subject.Heartbeat(r.team.ID, whose)
	}
	sub, err := r.team.Conn.NATS().Subscribe(subj, func(m *nats.Msg) {
		var b team.Heartbeat
		if codec.Unmarshal(m.Data, &b) == nil && b.AgentID == subject.Sender(m.Subject) {
			f(b)
		}
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
