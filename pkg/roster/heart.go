package roster

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"agentteam/pkg/subject"
	"agentteam/pkg/team"

	"github.com/nats-io/nats.go"
)

// Interval is the time between two beats of a member.
const Interval = 2 * time.Second

// Heart beats for one incarnation of a member, every [Interval] and at once when
// the member's state changes. Safe for concurrent use.
type Heart struct {
	roster *Roster
	lease  time.Duration
	fence  *fence
	subj   string

	mu   sync.Mutex
	beat team.Beat
}

// NewHeart returns the heart of m. The lease is the team's: the record is read
// again every sixth of it.
func NewHeart(r *Roster, m team.Member, lease time.Duration) *Heart {
	return &Heart{
		roster: r, lease: lease, fence: newFence(lease, time.Now()), subj: subject.Beat(r.team.ID, m.AgentID),
		beat: team.Beat{AgentID: m.AgentID, Incarnation: m.Incarnation, Role: m.Role, State: team.Running, ProgressAt: time.Now().UTC()},
	}
}

// Set changes what the beat says, and beats at once if that changed the state or
// the task. f must not call back into the Heart.
func (h *Heart) Set(f func(*team.Beat)) {
	h.mu.Lock()
	before := h.beat
	f(&h.beat)
	after := h.beat
	h.mu.Unlock()
	if before.State != after.State || before.Task != after.Task || before.Unseen != after.Unseen {
		h.publish("")
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

func (h *Heart) publish(nonce string) {
	data, err := json.Marshal(h.Now(nonce))
	if err != nil {
		return
	}
	// A beat that cannot be sent now is worth nothing later.
	_ = h.roster.team.Conn.NATS().Publish(h.subj, data)
}

// Run beats until ctx ends, then returns nil. It returns [ErrSuperseded] once the
// member's record says that this incarnation is over: that is how a process that
// was frozen or cut off learns that it was replaced.
func (h *Heart) Run(ctx context.Context) error {
	beat := time.NewTicker(Interval)
	defer beat.Stop()
	check := time.NewTicker(h.lease / 6)
	defer check.Stop()
	h.publish("")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			h.publish("")
		case <-check.C:
			began := time.Now()
			attempt, cancel := context.WithTimeout(ctx, h.lease/6)
			err := h.roster.Check(attempt, h.beat.AgentID, h.beat.Incarnation)
			cancel()
			switch {
			case errors.Is(err, ErrSuperseded):
				return err
			case err == nil:
				h.fence.confirm(began)
			}
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
		if json.Unmarshal(m.Data, &b) == nil && b.AgentID == subject.Sender(m.Subject) {
			f(b)
		}
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
