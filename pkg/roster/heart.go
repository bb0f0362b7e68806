package roster

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/wire"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

// claimGrace is how long a beat may wait that says what the board has said before:
// that the member has begun on a task. One with a short task is idle again by then,
// and one beat tells it all.
const claimGrace = 100 * time.Millisecond

// Interval is the time between two beats of a member.
const Interval = 2 * time.Second

// Heart beats for one incarnation of a member, every [Interval] and at once when
// the member's state changes. Safe for concurrent use.
type Heart struct {
	lease time.Duration
	fence *fence
	send  func(beat []byte)           // tells the team
	check func(context.Context) error // reads the member's record, as Roster.Check

	claimed chan struct{} // the member has begun on a task
	mu      sync.Mutex
	beat    team.Beat
	untold  bool // no beat has told of that yet
}

// NewHeart returns the heart of m. The lease is the team's: the record is read
// again every sixth of it.
func NewHeart(r *Roster, m team.Member, lease time.Duration) *Heart {
	subj := subject.Beat(r.team.ID, m.AgentID)
	return &Heart{
		lease: lease, fence: newFence(lease, time.Now()), claimed: make(chan struct{}, 1),
		// A beat that cannot be sent now is worth nothing later.
		send:  func(beat []byte) { _ = r.team.Conn.NATS().Publish(subj, beat) },
		check: func(ctx context.Context) error { return r.Check(ctx, m.AgentID, m.Incarnation) },
		beat:  team.Beat{AgentID: m.AgentID, Incarnation: m.Incarnation, Role: m.Role, State: team.Running, ProgressAt: time.Now().UTC()},
	}
}

// Set changes what the beat says, and beats at once if that changed the state or
// the task; if an idle member has begun on a task, within [claimGrace] while
// [Heart.Run] runs. f must not call back into the Heart.
func (h *Heart) Set(f func(*team.Beat)) {
	h.mu.Lock()
	before := h.beat
	f(&h.beat)
	after := h.beat
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
		h.publish()
	}
}

// Now returns the present beat with the next number, as the answer to a ping.
func (h *Heart) Now(nonce string) team.Beat {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat.N++
	b := h.beat
	b.Nonce = nonce
	return b
}

func (h *Heart) publish() {
	h.mu.Lock()
	h.untold = false
	h.mu.Unlock()
	if data, err := wire.Marshal(h.Now("")); err == nil {
		h.send(data)
	}
}

// Run beats until ctx ends, then returns nil. It returns [ErrSuperseded] once the
// member's record says that this incarnation is over: that is how a process that
// was frozen or cut off learns that it was replaced.
func (h *Heart) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		h.beatOn(ctx)
		return nil
	})
	// Apart, since a reading may take long: who is slow to be answered is not silent.
	g.Go(func() error { return h.confirm(ctx) })
	return g.Wait()
}

func (h *Heart) beatOn(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		h.publish()
		for told := true; told; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				told = false
			case <-h.claimed:
				told = h.toldWithin(ctx, claimGrace)
			}
		}
	}
}

// toldWithin waits this long and reports whether the member has beaten since it began
// on a task, or has no more to tell since ctx ended.
func (h *Heart) toldWithin(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(d):
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.untold
}

// confirm reads the member's record every sixth of the lease until ctx ends, then
// returns nil, or until the record says that the membership is over.
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
		err := h.check(attempt)
		cancel()
		switch {
		case errors.Is(err, ErrSuperseded):
			return err
		case err == nil:
			h.fence.confirm(began)
		}
	}
}

// Certain returns once the member may begin something new: its record was last
// read, and answered, within two thirds of the lease. It blocks while NATS is away,
// until ctx ends. [Heart.Run] does the reading.
func (h *Heart) Certain(ctx context.Context) error { return h.fence.wait(ctx) }

// Within returns a context for something that the member does. It ends, with the
// cause [ErrFenced], when the record was last read five sixths of the lease ago: at
// the end of the lease the task may be given to another.
func (h *Heart) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return h.fence.within(ctx)
}

// Listen calls f for every beat of one member, or of [team.Everyone], until stop is
// called. f runs on one goroutine and must not block.
func (r *Roster) Listen(whose team.AgentID, f func(team.Beat)) (stop func(), err error) {
	subj := subject.Beats(r.team.ID)
	if whose != team.Everyone {
		subj = subject.Beat(r.team.ID, whose)
	}
	sub, err := r.team.Conn.NATS().Subscribe(subj, func(m *nats.Msg) {
		var b team.Beat
		if wire.Unmarshal(m.Data, &b) == nil && b.AgentID == subject.Sender(m.Subject) {
			f(b)
		}
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
