package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options are the parts of a [Meter].
type Options struct {
	Team    *broker.Storage    // required
	Member  team.Member        // required
	Role    string             // of the member
	Record  func() team.Team   // returns the team's record, as last received; required
	Task    func() team.TaskID // returns the task that the member holds; default: none
	Working func() bool        // reports whether the member works, and is not idle or waiting; default: it always does
	// Warn is called once an account's use has reached four fifths of its limit, by one process of the team.
	Warn   func(ctx context.Context, s team.BudgetState)
	Logger *slog.Logger // default: discard
}

// Meter draws the model calls of one member from its budgets. It is safe for concurrent use: a member's subagents share
// it.
type Meter struct {
	o Options
	b *broker.Bucket

	mu     sync.Mutex
	goal   int           // of which the slice is
	slice  slice         // ID "": none is open
	hold   hold          // as last stored
	spent  team.Budget   // of the slice, by calls that have ended
	calls  team.Budget   // the most that the calls under way may use
	active int           // calls of the slice that are under way
	stored time.Time     // when hold was stored
	worked time.Time     // when the member was last seen at work; zero: it was not
	unsure bool          // the ledger's copy of the slice is not known
	late   bool          // the working time of some account is used up
	ended  chan struct{} // closed once a call ends
	seen   map[team.AgentID]sighting
}

// sighting is when another member's open slice was first seen as it is.
type sighting struct {
	slice    string
	revision uint64
	at       time.Time
}

// New returns the meter of a member, which draws nothing yet.
func New(o Options) *Meter {
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.Task == nil {
		o.Task = func() team.TaskID { return "" }
	}
	if o.Working == nil {
		o.Working = func() bool { return true }
	}
	if o.Warn == nil {
		o.Warn = func(context.Context, team.BudgetState) {}
	}
	return &Meter{o: o, b: o.Team.Bucket, unsure: true, ended: make(chan struct{}), seen: map[team.AgentID]sighting{}}
}

// ExceededError is the error of a call that would exceed a budget. It has the code [team.BudgetExceeded].
type ExceededError struct {
	Account string
	Limit   team.Budget // the whole limit
	Used    team.Budget
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("the budget of %s is used up: %s of %s", e.Account, e.Used.Of(e.Limit), e.Limit)
}

// Unwrap returns the code of the error.
func (e *ExceededError) Unwrap() error { return team.BudgetExceeded }

// NeedsPrice returns an account that limits the cost of the member's calls and not those of unknown price; "" if there
// is none.
func (m *Meter) NeedsPrice() (account string) {
	for name, l := range m.limits(m.o.Record()) {
		if l.Cost > 0 && l.Unpriced == 0 {
			account = name
		}
	}
	return account
}

func (m *Meter) limits(t team.Team) map[string]team.Budget {
	return t.Budgets.Limits(m.o.Role, m.o.Member.AgentID, m.o.Task())
}

// Begin draws a call that uses at most so much, and returns the function that takes what it has used, which must be
// called once. It waits while the rest of a budget is in open slices of other members. Errors: [*ExceededError]: then
// nothing was drawn; [team.ErrSuperseded]; Unavailable; ctx's.
func (m *Meter) Begin(ctx context.Context, most team.Budget) (end func(used team.Budget), err error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		end, warned, state, err := m.draw(ctx, most)
		for _, w := range warned {
			m.o.Warn(ctx, w)
		}
		if err != nil {
			return nil, err
		}
		switch state {
		case drawn:
			return end, nil
		case free:
			return func(team.Budget) {}, nil
		case lost: // at once again
			wait = 10 * time.Millisecond
			continue
		}
		if !m.rest(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// rest waits that long, or until a call of this member ends.
func (m *Meter) rest(ctx context.Context, d time.Duration) bool {
	m.mu.Lock()
	ended := m.ended
	m.mu.Unlock()
	part, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-ended:
			stop()
		case <-part.Done():
		}
	}()
	shutdown.Sleep(part, d)
	return ctx.Err() == nil
}

// state is the outcome of a try to draw.
type state int

const (
	drawn state = iota
	free        // no budget limits the call
	lost        // the slice was given back meanwhile
	held        // the rest is in open slices of others, or of calls under way
)

// draw makes one try to draw a call.
func (m *Meter) draw(ctx context.Context, most team.Budget) (end func(team.Budget), warned []team.BudgetState, s state, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.o.Record()
	limits := m.limits(record)
	accounts := slices.Sorted(maps.Keys(limits))
	if len(limits) == 0 && m.slice.ID == "" {
		return nil, nil, free, nil
	}
	if m.unsure {
		if err := m.sync(ctx); err != nil {
			return nil, nil, held, err
		}
	}
	if m.slice.ID != "" && (m.goal != record.GoalNumber || !slices.Equal(m.slice.Accounts, accounts)) {
		if m.active > 0 {
			return nil, nil, held, nil
		}
		if err := m.giveBack(ctx); err != nil {
			return nil, nil, held, err
		}
	}
	if len(limits) == 0 {
		return nil, nil, free, nil
	}
	need := m.spent.Plus(m.calls).Plus(most)
	if m.slice.ID == "" || m.late || !m.slice.Amount.Holds(need, limits) {
		warned, s, err = m.extend(ctx, record, limits, accounts, most)
		if err != nil || s != drawn {
			return nil, warned, s, err
		}
	}
	// The record of the call is the fence: a process that closes the slice changes the key first.
	next := m.hold
	next.Slice, next.Incarnation, next.Spent, next.Calls, next.Closed = m.slice.ID, m.o.Member.Incarnation, m.spent, m.calls.Plus(most), false
	switch next, err = next.put(ctx, m.b, m.o.Member.AgentID); {
	case errors.Is(err, team.Conflict):
		m.unsure = true
		return nil, warned, lost, nil
	case err != nil:
		m.unsure = true
		return nil, warned, held, err
	}
	m.hold, m.calls, m.stored = next, next.Calls, time.Now()
	m.active++
	id := m.slice.ID
	return func(used team.Budget) { m.end(id, most, used) }, warned, drawn, nil
}

// end counts a call of a slice that has ended. If the slice was settled meanwhile, the call was counted with it.
func (m *Meter) end(slice string, most, used team.Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slice.ID == slice {
		m.active, m.calls, m.spent = m.active-1, m.calls.Less(most), m.spent.Plus(used)
	}
	close(m.ended)
	m.ended = make(chan struct{})
}

// sync reads what is stored of the member's slice. A slice of an earlier incarnation is settled: its calls under way
// count as spent.
func (m *Meter) sync(ctx context.Context) error {
	me := m.o.Member
	h, err := readHold(ctx, m.b, me.AgentID)
	if err != nil {
		return err
	}
	if h.Incarnation > me.Incarnation {
		return team.ErrSuperseded
	}
	l, err := readLedger(ctx, m.b)
	if err != nil {
		return err
	}
	open, is := l.Open[me.AgentID]
	switch mine := is && open.ID == m.slice.ID; {
	case mine && !(h.Slice == open.ID && h.Closed):
		m.slice.Amount = open.Amount
	case is:
		if err := closeSlice(ctx, m.b, me.AgentID, open, h); err != nil {
			return err
		}
		if h, err = readHold(ctx, m.b, me.AgentID); err != nil {
			return err
		}
		fallthrough
	default: // a call under way was counted as the slice was settled
		m.slice, m.spent, m.calls, m.active = slice{}, team.Budget{}, team.Budget{}, 0
	}
	m.hold, m.unsure = h, false
	return nil
}

// extend draws as much as the call needs, and the rest of a slice.
func (m *Meter) extend(ctx context.Context, record team.Team, limits map[string]team.Budget, accounts []string, most team.Budget) (warned []team.BudgetState, s state, err error) {
	me := m.o.Member.AgentID
	var next slice
	var over *ExceededError
	var others []team.AgentID
	_, err = update(ctx, m.b, func(l *ledger) (bool, error) {
		l.begins(record.GoalNumber)
		warned, s, over, others = nil, drawn, nil, nil
		if at, open := l.Open[me]; open != (m.slice.ID != "") || open && at.ID != m.slice.ID {
			s = lost
			return false, nil
		}
		next = slice{ID: cmp.Or(m.slice.ID, ulid.Make().String()), Accounts: accounts}
		base := m.spent.Plus(m.calls)
		for _, extra := range []team.Budget{most.AtLeast(sliceOf(limits)), most} {
			next.Amount = base.Plus(extra)
			if over, others = l.fits(me, limits, next.Amount); over == nil {
				break
			}
		}
		switch {
		case over == nil:
			l.Open[me] = next
			warned = l.warn(limits)
			return true, nil
		case len(others) > 0 || m.active > 0:
			s = held
			return false, nil
		case m.slice.ID != "": // its rest may be what another member lacks
			s = held
			return false, nil
		}
		if l.Reached[over.Account] == limits[over.Account] {
			return false, nil
		}
		l.Reached[over.Account] = limits[over.Account]
		return true, nil
	})
	switch {
	case err != nil:
		m.unsure = true
		return nil, held, err
	case s == lost:
		m.unsure = true
		return nil, lost, nil
	case over == nil:
		m.slice, m.goal, m.late = next, record.GoalNumber, false
		return warned, drawn, nil
	}
	if m.slice.ID != "" && m.active == 0 {
		if err := m.giveBack(ctx); err != nil {
			return nil, held, err
		}
		return nil, lost, nil
	}
	if s == held {
		return nil, held, m.reap(ctx, others)
	}
	return nil, held, over
}

// sliceOf returns the size of a slice: a two-hundredth of each limit.
func sliceOf(limits map[string]team.Budget) (size team.Budget) {
	for _, l := range limits {
		size = size.Least(l.Share(shares))
	}
	return size
}

// fits reports whether the accounts have room for a slice of that amount of a member. If not, over is the first account
// without, and others are the members whose open slices hold the rest.
func (l ledger) fits(me team.AgentID, limits map[string]team.Budget, amount team.Budget) (over *ExceededError, others []team.AgentID) {
	for _, account := range slices.Sorted(maps.Keys(limits)) {
		limit := limits[account]
		room := limit
		if me != team.Leader && (account == team.BudgetOf{}.Account() || account == team.BudgetOf{Team: true}.Account()) {
			room = limit.Less(limit.Each(limit, func(x, _ int64) int64 { return x / reserve }))
		}
		used := l.Used[account]
		sum, _ := l.drawn(account, me)
		amount.WallTime = 0
		switch {
		case limit.WallTime > 0 && used.WallTime >= room.WallTime:
			return &ExceededError{account, limit, used}, nil
		case sum.Plus(amount).Above(room) == team.Budget{}:
			continue
		}
		over = &ExceededError{account, limit, used}
		for of, s := range l.Open {
			if of != me && slices.Contains(s.Accounts, account) {
				others = append(others, of)
			}
		}
		return over, others
	}
	return nil, nil
}

// warn returns the accounts whose use has reached four fifths for the first time, and records them.
func (l *ledger) warn(limits map[string]team.Budget) (warned []team.BudgetState) {
	for account, limit := range limits {
		sum, _ := l.drawn(account, "")
		most := limit.Each(limit, func(x, _ int64) int64 { return x - (x+4)/5 })
		if l.Warned[account] == limit || (sum.Above(most) == team.Budget{}) {
			continue
		}
		l.Warned[account] = limit
		warned = append(warned, team.BudgetState{Account: account, Limit: limit, Used: sum})
	}
	return warned
}

// giveBack settles the member's slice, which has no calls under way. The caller holds the lock.
func (m *Meter) giveBack(ctx context.Context) error {
	_, err := update(ctx, m.b, func(l *ledger) (bool, error) {
		l.begins(m.o.Record().GoalNumber)
		return l.settle(m.o.Member.AgentID, m.slice.ID, m.spent), nil
	})
	if err != nil {
		m.unsure = true
		return err
	}
	m.slice, m.spent = slice{}, team.Budget{}
	return nil
}

// Settle gives the rest of the member's slice back, unless a call is under way. Errors: Unavailable.
func (m *Meter) Settle(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slice.ID == "" || m.active > 0 || m.unsure {
		return nil
	}
	return m.giveBack(ctx)
}

// reap settles the slices of members whose key has not changed for a lease: they are gone. The caller holds the lock.
func (m *Meter) reap(ctx context.Context, of []team.AgentID) error {
	l, err := readLedger(ctx, m.b)
	if err != nil {
		return err
	}
	lease := m.o.Record().Lease()
	for _, a := range of {
		s, open := l.Open[a]
		if !open {
			continue
		}
		h, err := readHold(ctx, m.b, a)
		if err != nil {
			return err
		}
		was := m.seen[a]
		if was.slice != s.ID || was.revision != h.revision {
			m.seen[a] = sighting{s.ID, h.revision, time.Now()}
			continue
		}
		if time.Since(was.at) < lease && !(h.Closed && h.Slice == s.ID) {
			continue
		}
		m.o.Logger.InfoContext(ctx, "budget slice of a silent member given back", "agent", a)
		if err := closeSlice(ctx, m.b, a, s, h); err != nil && !errors.Is(err, team.Conflict) {
			return err
		}
	}
	return nil
}

// closeSlice ends a slice of a member that is gone: first its key, so that no call of it begins any more, then its entry
// in the ledger. Errors: Conflict if the member has changed its key since h was read.
func closeSlice(ctx context.Context, b *broker.Bucket, of team.AgentID, s slice, h hold) (err error) {
	if h.Slice != s.ID { // no call of it has begun
		h.Slice, h.Spent, h.Calls, h.Closed = s.ID, team.Budget{}, team.Budget{}, false
	}
	if !h.Closed {
		h.Closed = true
		if h, err = h.put(ctx, b, of); err != nil {
			return err
		}
	}
	_, err = update(ctx, b, func(l *ledger) (bool, error) { return l.settle(of, s.ID, h.Spent.Plus(h.Calls)), nil })
	return err
}
