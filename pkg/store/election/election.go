// Package election elects a leader process for each team: it watches the registry of all teams and takes the lease of
// each active team without a leader.
//
// A lease is a key that its holder rewrites every third of the lease's length. A candidate takes it by compare-and-set
// once it has seen no change for the whole length, on its own monotonic clock, so no two machines' clocks are compared
// (the observed-time scheme of Kubernetes' client-go leader election). It takes the lease of a holder that ended with an
// earlier embedded cluster immediately. The lease only keeps two leaders from working at the same time for long; the
// journal makes a deposed leader harmless: a successor's start record closes it.
package election

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Lead serves a team as its leader for one term. It returns when ctx ends (the
// lease was lost or the process stops) or when the team is no longer active. The
// term is the leader's incarnation.
type Lead func(ctx context.Context, id team.TeamID, term uint64) error

// Options describe the candidate and the teams it campaigns for.
type Options struct {
	Bucket  *broker.Bucket // required
	Process string         // names this process in the lease; unique, required
	Cluster string         // the embedded cluster that this process ends with; "" = none
	Only    team.TeamID    // campaign for this team only; "" = all
	Lease   time.Duration  // default: see LeaseOn
	Lead    Lead           // required

	// Overdue, if there is one, runs while the holder of a team's lease is late in rewriting it, and
	// during the term with which this process succeeds it. It returns when ctx ends.
	Overdue func(ctx context.Context, id team.TeamID)

	Logger *slog.Logger
}

// Elector campaigns for teams on behalf of one process.
type Elector struct {
	o Options

	mu    sync.Mutex
	teams map[team.TeamID]*candidacy
	wg    sync.WaitGroup
}

// candidacy is the process's knowledge of one team.
type candidacy struct {
	active  bool
	lead    team.Lease
	rev     uint64    // of the lease; 0 = there is none
	changed time.Time // when the lease was last seen to change, by the monotonic clock
	retry   time.Time // not before this, after a term that failed
	failed  int       // terms that failed soon, one after the other
	folder  string    // where the team works
	goal    int       // the number of its goal
	changes int       // changes in the registry of facts by which a term may have failed
	tries   uint64    // of taking the lease; makes each such write unlike any other
	cancel  context.CancelCauseFunc
	relax   context.CancelFunc // ends Options.Overdue; nil if that does not run
}

// ErrDeposed is the cause of a term's context when another process took the lease or it could not be renewed.
var ErrDeposed = errors.New("the lease on the team was lost")

// LeaseOn returns the length of the lease for a registry with this many replicas. A replicated stream whose leader dies
// takes no write for some 6 s, until another is elected: with a lease of 10 s, of which a leader steps down after two
// thirds, that leaves no time for a second try. Two thirds of 25 s outlast two such elections.
func LeaseOn(replicas int) time.Duration {
	if replicas > 1 {
		return 25 * time.Second
	}
	return 10 * time.Second
}

// New returns an elector.
func New(o Options) *Elector {
	o.Lease = cmp.Or(o.Lease, LeaseOn(o.Bucket.Replicas()))
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Elector{o: o, teams: map[team.TeamID]*candidacy{}}
}

// Run campaigns until ctx ends, then waits until every term has ended and its
// lease is given back, and returns nil.
func (e *Elector) Run(ctx context.Context) error {
	defer e.wg.Wait()
	return shutdown.Together(ctx, e.watch, e.tick)
}

// watch watches the registry until ctx ends.
func (e *Elector) watch(ctx context.Context) error {
	return e.o.Bucket.Watch(ctx, func(entry broker.Entry) error {
		e.observe(entry)
		e.campaign(ctx)
		return nil
	}, nil, subject.AllOfRegistry)
}

// tick takes the leases that run out, until ctx ends.
func (e *Elector) tick(ctx context.Context) error {
	shutdown.Every(ctx, min(e.o.Lease/10, time.Second/4), e.campaign)
	return nil
}

// observe applies a change of the registry.
func (e *Elector) observe(entry broker.Entry) {
	kind, name := subject.ParseKey(entry.Key)
	id := team.TeamID(name)
	if kind != subject.Registered && kind != subject.Lead || e.o.Only != "" && id != e.o.Only {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.teams[id]
	if c == nil {
		c = &candidacy{}
		e.teams[id] = c
	}
	switch kind {
	case subject.Registered:
		s, err := team.DecodeSmall(entry.Value, id)
		// An entry that cannot be read may be an active team's: the next leader reads the team's own record, and
		// repairs the entry.
		active := !entry.Deleted && (err != nil || s.Status == team.Active)
		if active != c.active || s.Workspace != c.folder || s.Goal != c.goal { // else it may be our own term that has corrected the entry
			c.active, c.folder, c.goal, c.retry, c.failed = active, s.Workspace, s.Goal, time.Time{}, 0
			c.changes++
		}
	case subject.Lead:
		if entry.Revision <= c.rev {
			return // an echo of our own renewal
		}
		var l team.Lease
		_ = json.Unmarshal(entry.Value, &l) // unreadable counts as a lease that may run out
		if c.cancel != nil && l.Process != "" && l.Process != e.o.Process {
			c.cancel(ErrDeposed)
		}
		c.rev, c.lead, c.changed = entry.Revision, l, time.Now()
		if l.Process != e.o.Process { // else this process has succeeded it
			c.calm()
		}
	}
}

// calm ends Options.Overdue.
func (c *candidacy) calm() {
	if c.relax != nil {
		c.relax()
		c.relax = nil
	}
}

// overdue returns the time without a change after which a lease is overdue: its holder rewrites it every third.
func (e *Elector) overdue() time.Duration { return e.o.Lease * 2 / 5 }

// expect starts Options.Overdue, unless it runs already.
func (e *Elector) expect(ctx context.Context, id team.TeamID, c *candidacy) {
	if e.o.Overdue == nil || c.relax != nil {
		return
	}
	ctx, c.relax = context.WithCancel(ctx)
	e.wg.Go(func() { e.o.Overdue(ctx, id) })
}

// campaign takes every lease that is free.
func (e *Elector) campaign(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for id, c := range e.teams {
		if !c.active || c.cancel != nil || now.Before(c.retry) || ctx.Err() != nil {
			continue
		}
		ended := team.Foreign(c.lead.Cluster, e.o.Cluster) // with its holder
		if silent := now.Sub(c.changed); c.lead.Process != "" && !ended && silent < e.o.Lease {
			if silent >= e.overdue() {
				e.expect(ctx, id, c)
			}
			continue // another process leads it, as far as we know
		}
		term, cancel := context.WithCancelCause(ctx)
		c.cancel = cancel
		changes := c.changes
		e.wg.Go(func() {
			defer cancel(nil)
			err := e.term(term, id, c)
			e.mu.Lock()
			c.cancel = nil
			c.calm()
			if err == nil || time.Since(now) > e.o.Lease {
				c.failed = 0
			}
			var rest time.Duration
			if err != nil && changes == c.changes {
				rest = min(e.o.Lease/5<<c.failed, 6*e.o.Lease)
				c.retry, c.failed = time.Now().Add(rest), min(c.failed+1, 8)
			}
			e.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				e.o.Logger.Warn("term ended", "team", id, "err", err, "rest", rest)
			}
		})
	}
}

// term takes the lease, leads, and gives it back. Each term's number is one more than the previous one, also across
// leases that were given back.
func (e *Elector) term(ctx context.Context, id team.TeamID, c *candidacy) error {
	e.mu.Lock()
	c.tries++
	lead, rev := team.Lease{Process: e.o.Process, Cluster: e.o.Cluster, Incarnation: c.lead.Incarnation + 1, N: c.tries}, c.rev
	e.mu.Unlock()
	begun := time.Now()
	rev, err := e.within(ctx, begun, id, lead, rev)
	if errors.Is(err, team.Conflict) || err != nil && errors.Is(context.Cause(ctx), ErrDeposed) {
		return nil // another process was first, as the feed shows or will show
	}
	if err != nil && time.Since(begun) >= e.o.Lease*2/3 {
		e.o.Logger.Debug("lease not taken: no answer in time", "team", id, "err", err)
		return nil // no term has failed: as soon as NATS answers, it is tried again
	}
	if err != nil {
		return err
	}
	e.note(c, lead, rev)
	e.o.Logger.Info("leading", "team", id, "term", lead.Incarnation)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		if err := e.renew(ctx, id, c, lead, rev, begun); err != nil {
			cancel(err)
		}
	}()
	err = e.o.Lead(ctx, id, lead.Incarnation)
	deposed := errors.Is(context.Cause(ctx), ErrDeposed)
	cancel(nil)
	<-renewed
	if deposed {
		return ErrDeposed
	}
	e.giveBack(ctx, id, c, lead)
	return err
}

func (e *Elector) note(c *candidacy, l team.Lease, rev uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if rev > c.rev {
		c.lead, c.rev, c.changed = l, rev, time.Now()
	}
}

// renew rewrites the lease every third of its length until ctx ends. It returns ErrDeposed once two thirds have passed
// since the start of the last answered write, which at first is the write that took the lease: from then on a candidate
// may soon consider the lease free.
func (e *Elector) renew(ctx context.Context, id team.TeamID, c *candidacy, l team.Lease, rev uint64, good time.Time) error {
	for {
		if !shutdown.Sleep(ctx, time.Until(good.Add(e.o.Lease/3))) {
			return nil
		}
		begun := time.Now()
		l.N++
		next, err := e.within(ctx, good, id, l, rev)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return errors.Join(ErrDeposed, err)
		}
		good, rev = begun, next
		e.note(c, l, rev)
	}
}

// giveBack ends the lease immediately, so that a successor need not wait. The entry stays, with its term and no process,
// so that terms keep growing.
func (e *Elector) giveBack(ctx context.Context, id team.TeamID, c *candidacy, l team.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown.Lease)
	defer cancel()
	e.mu.Lock()
	rev, mine := c.rev, c.lead.Process == l.Process && c.lead.Incarnation == l.Incarnation
	e.mu.Unlock()
	if !mine {
		return // a successor took it while this term was ending
	}
	l.Process, l.N = "", 0
	rev, err := e.put(ctx, id, l, rev)
	if err != nil {
		e.o.Logger.Warn("lease not given back; a successor waits for it to run out", "team", id, "err", err)
		return
	}
	e.note(c, l, rev)
}

// within is put with a deadline at two thirds of the lease after good. A write that is answered later holds nothing:
// candidates count from the moment they saw it, which may have been long before the answer.
func (e *Elector) within(ctx context.Context, good time.Time, id team.TeamID, l team.Lease, rev uint64) (uint64, error) {
	ctx, cancel := context.WithDeadline(ctx, good.Add(e.o.Lease*2/3))
	defer cancel()
	return e.put(ctx, id, l, rev)
}

func (e *Elector) put(ctx context.Context, id team.TeamID, l team.Lease, rev uint64) (uint64, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return 0, err
	}
	return e.o.Bucket.Put(ctx, subject.KeyLead(id), data, rev)
}

// Holder returns the present lease on a team; ok is false if no process holds it.
func Holder(ctx context.Context, registry *broker.Bucket, id team.TeamID) (l team.Lease, ok bool, err error) {
	e, err := registry.Get(ctx, subject.KeyLead(id))
	if errors.Is(err, team.NotFound) {
		return l, false, nil
	}
	if err != nil {
		return l, false, err
	}
	err = json.Unmarshal(e.Value, &l) // an unreadable lease may run out, as for a candidate
	return l, err == nil && l.Process != "", nil
}
