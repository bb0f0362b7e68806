// Package watchdog judges, for the process that leads a team: who is lost, whose
// task is to be freed, and when nobody has anything left to do. The judgements
// are pure functions of what was seen (judge.go); the loop here looks, asks once
// more, and acts.
//
// It does not decide what the team does next: it tells the leader. Nor does it
// start processes itself: it asks for a respawn.
package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/board/index"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
)

// Team is what the watchdog sees and does; package leader provides it.
type Team interface {
	// Look is the bucket as the index knows it; the other two are its details.
	Look() index.Look
	EndsSince(revision uint64) []index.End
	Unfinished(limit int) (first []index.Unfinished, total int)
	// Heard is the last beat of every member.
	Heard() map[team.AgentID]roster.Heard
	// BucketSeq and MailSeq are the newest sequences, read from the server.
	BucketSeq(ctx context.Context) (uint64, error)
	MailSeq(ctx context.Context) (uint64, error)
	// Unread counts the mail that wakes a member and is not in its journal.
	Unread(ctx context.Context, m team.Member) (int, error)
	// Ping asks a member's process for a beat with this nonce.
	Ping(ctx context.Context, a team.AgentID, nonce string, wait time.Duration) (team.Beat, error)
	// Reap frees a task if it is still held under this epoch.
	Reap(ctx context.Context, t team.Task, reason string, attempt bool) error
	// Respawn brings a lost member back.
	Respawn(ctx context.Context, m team.Member) error
	// Tell sends the leader a notice; of several with one id, sent one after another,
	// it gets the first.
	Tell(ctx context.Context, id, text string) error
	// Told is the revision of the bucket up to which the leader was told of tasks
	// that failed or were cancelled; SetTold stores it.
	Told(ctx context.Context) (uint64, error)
	SetTold(ctx context.Context, revision uint64) error
	// LastText is the leader's last text answer.
	LastText() string
	// End ends the goal.
	End(ctx context.Context, status team.Status, summary string) error
}

// Options are what a Watchdog needs.
type Options struct {
	Team     Team          // required
	Lease    time.Duration // required: the team's
	Interval time.Duration // between looks; default 1 s, half a heartbeat
	Logger   *slog.Logger
	Registry prometheus.Registerer
}

const (
	pingWait      = time.Second      // for a process to answer before its task is freed
	maxPings      = 64               // on their way at once
	adoptWithin   = 5 * time.Second  // for a later incarnation to take over its task
	spawnWithin   = 15 * time.Second // a spawner gives up after 10 s; one that died left the record
	respawnWithin = time.Minute      // for a respawn to write the next incarnation; one may rest half as long first
	maxTold       = 3                // notices in one quiet spell; the next text ends the goal
	maxNamed      = 50               // tasks in a notice: it must not outgrow a message, nor a model's patience
)

// Watchdog watches one team. Use it from one goroutine.
type Watchdog struct {
	o       Options
	metrics metrics

	selfSeen  time.Time // last time our own beat was heard
	blind     time.Time // until then we do not trust our own hearing
	orphans   map[team.TaskID]orphan
	joined    map[team.AgentID]since // when each incarnation was first seen in the roster
	waiting   map[team.AgentID]waiter
	respawned map[team.AgentID]since // the lost incarnation that a respawn was asked for
	warned    bool                   // a silence of many was reported
	told      told                   // what the leader was told of dependencies
	spell     string                 // of the last notice
	notices   int                    // notices in it
	toldTurn  uint64                 // the leader's turn when it was told last
}

// told is what the leader was told of failed and cancelled dependencies. The
// revision is stored, so that a later leader's watchdog goes on from there: it
// neither repeats what was told nor misses what happened while nobody led.
type told struct {
	read     bool // what is stored
	revision uint64
	tasks    map[team.TaskID]bool // by this watchdog
}

// waiter is a member without a process, and since when its record is as it is.
type waiter struct {
	revision uint64
	since    time.Time
}

type since struct {
	incarnation uint64
	at          time.Time
}

type orphan struct {
	epoch uint64
	since time.Time
}

// New returns a watchdog.
func New(o Options) *Watchdog {
	o.Interval = cmp.Or(o.Interval, roster.Interval/2)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Watchdog{o: o, metrics: newMetrics(o.Registry), orphans: map[team.TaskID]orphan{},
		joined: map[team.AgentID]since{}, respawned: map[team.AgentID]since{}}
}

// Run watches until ctx ends, then returns nil.
func (w *Watchdog) Run(ctx context.Context) error {
	w.selfSeen = time.Now()
	tick := time.NewTicker(w.o.Interval)
	defer tick.Stop()
	defer w.metrics.clear()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// A look that failed (NATS is away) is taken again at the next tick.
		if err := w.step(ctx); err != nil && ctx.Err() == nil {
			w.o.Logger.WarnContext(ctx, "watchdog", "err", err)
		}
	}
}

func (w *Watchdog) step(ctx context.Context) error {
	look, heard := w.o.Team.Look(), w.o.Team.Heard()
	if look.Team.ID == "" {
		return nil // the index has not read the bucket yet
	}
	now := time.Now()
	w.metrics.show(look, heard, w.o.Lease, now)
	if err := w.tellBlocked(ctx); err != nil {
		return err
	}
	if !w.hearing(heard, now) {
		return nil
	}
	if err := w.free(ctx, look, heard, now); err != nil {
		return err
	}
	return w.allIdle(ctx)
}

// hearing reports whether our own beat was heard in every sixth of the last
// lease. If it was not, the silence of others proves nothing.
func (w *Watchdog) hearing(heard map[team.AgentID]roster.Heard, now time.Time) bool {
	gap := max(w.o.Lease/6, roster.Interval*3/2) // a beat comes every 2 s, also under a short lease
	if at := heard[team.Leader].At; at.After(w.selfSeen) {
		if at.Sub(w.selfSeen) > gap {
			w.blind = now.Add(w.o.Lease)
		}
		w.selfSeen = at
	}
	if now.Sub(w.selfSeen) > gap {
		w.blind = now.Add(w.o.Lease)
	}
	return now.After(w.blind)
}

// free takes tasks from members that are lost, and respawns those.
func (w *Watchdog) free(ctx context.Context, look index.Look, heard map[team.AgentID]roster.Heard, now time.Time) error {
	lost, many := Silent(look.Members, func(m team.Member) time.Duration {
		seen := w.joined[m.AgentID]
		if seen.incarnation != m.Incarnation {
			seen = since{m.Incarnation, now}
			w.joined[m.AgentID] = seen
		}
		if h := heard[m.AgentID]; h.Incarnation == m.Incarnation && h.At.After(seen.at) {
			return now.Sub(h.At)
		}
		return now.Sub(seen.at) // not heard yet since we look: it has had that long
	}, w.o.Lease)
	if many && !w.warned {
		w.o.Logger.WarnContext(ctx, "more than half of the members are silent; their tasks are freed after three leases only")
	}
	w.warned = many
	silent := make([]team.Member, len(lost))
	for i, s := range lost {
		silent[i] = s.Member
	}
	answered := w.ping(ctx, silent)
	var errs []error
	for _, s := range lost {
		if _, lives := answered[s.Member.AgentID]; lives {
			continue // its beats get lost
		}
		errs = append(errs, w.reap(ctx, look, s, heard[s.Member.AgentID].Beat, now))
	}
	errs = append(errs, w.bringUp(ctx, look, now), w.reapOrphans(ctx, look, now))
	return errors.Join(errs...)
}

// ping asks the processes of members for fresh beats and returns the answers. They are
// asked at once: a host that is gone may have many, and each takes the whole wait.
func (w *Watchdog) ping(ctx context.Context, members []team.Member) map[team.AgentID]team.Beat {
	answers := map[team.AgentID]team.Beat{}
	nonce := ulid.Make().String()
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(maxPings)
	for _, m := range members {
		g.Go(func() error {
			b, err := w.o.Team.Ping(ctx, m.AgentID, nonce, pingWait)
			if err == nil && b.Nonce == nonce {
				mu.Lock()
				defer mu.Unlock()
				answers[m.AgentID] = b
			}
			return nil
		})
	}
	_ = g.Wait() // who did not answer is not among the answers
	return answers
}

func (w *Watchdog) reap(ctx context.Context, look index.Look, s Silence, last team.Beat, now time.Time) error {
	m := s.Member
	for _, t := range look.Running {
		if t.Assignee != m.AgentID || t.Incarnation != m.Incarnation {
			continue
		}
		begun := last.Incarnation == m.Incarnation && last.Task == t.ID && last.Begun
		if err := w.o.Team.Reap(ctx, t, string(m.AgentID)+" was not heard for "+w.o.Lease.String(), begun); err != nil {
			return err
		}
		w.metrics.countExpired()
	}
	return w.bringBack(ctx, look.Team, m, now)
}

// bringBack asks for the next incarnation of a member that is lost, if that is the
// team's policy. A respawn that failed leaves a later incarnation lost; one that left
// everything as it was is asked for again after a while.
func (w *Watchdog) bringBack(ctx context.Context, t team.Team, m team.Member, now time.Time) error {
	if t.Policies.Respawn != "" && t.Policies.Respawn != team.RespawnAlways {
		return nil
	}
	asked := w.respawned[m.AgentID]
	again := asked.incarnation == m.Incarnation
	if again && now.Sub(asked.at) < respawnWithin {
		return nil
	}
	w.respawned[m.AgentID] = since{m.Incarnation, now}
	if !again {
		w.metrics.countLost()
		w.o.Logger.WarnContext(ctx, "member lost", "agent", m.AgentID, "incarnation", m.Incarnation)
	}
	return w.o.Team.Respawn(ctx, m)
}

// bringUp sees to members that have no process and nobody else sees to: those
// whose process said goodbye, and those whose spawner died before one took them.
func (w *Watchdog) bringUp(ctx context.Context, look index.Look, now time.Time) error {
	var errs []error
	waiting := map[team.AgentID]waiter{}
	for _, m := range look.Members {
		switch m.State {
		case team.Lost:
			errs = append(errs, w.bringBack(ctx, look.Team, m, now))
		case team.Created:
			c, ok := w.waiting[m.AgentID]
			if !ok || c.revision != m.Revision {
				c = waiter{m.Revision, now}
			}
			waiting[m.AgentID] = c
			if now.Sub(c.since) >= spawnWithin {
				errs = append(errs, w.bringBack(ctx, look.Team, m, now))
			}
		}
	}
	w.waiting = waiting
	return errors.Join(errs...)
}

// reapOrphans frees tasks of holders that are gone for good, at once if they have
// left, after a while if a later incarnation may adopt them. Neither is an attempt.
func (w *Watchdog) reapOrphans(ctx context.Context, look index.Look, now time.Time) error {
	seen := map[team.TaskID]orphan{}
	var errs []error
	for _, t := range Orphans(look.Members, look.Running) {
		o, ok := w.orphans[t.ID]
		if !ok || o.epoch != t.Epoch {
			o = orphan{t.Epoch, now}
		}
		seen[t.ID] = o
		if now.Sub(o.since) >= adoptWithin {
			reason := "its holder " + string(t.Assignee) + " has left"
			if slices.ContainsFunc(look.Members, func(m team.Member) bool {
				return m.AgentID == t.Assignee && m.Incarnation > t.Incarnation && m.State != team.Stopped
			}) {
				reason = "its holder " + string(t.Assignee) + " was restarted and has not taken it over"
			}
			errs = append(errs, w.o.Team.Reap(ctx, t, reason, false))
		}
	}
	w.orphans = seen
	return errors.Join(errs...)
}

// tellBlocked tells the leader, once, of tasks that wait for one that failed or
// was cancelled.
//
// The notice is sent before it is noted, and goes under an id of its own: should
// this process die in between, the next sends the same, which the server drops.
func (w *Watchdog) tellBlocked(ctx context.Context) error {
	if !w.told.read {
		revision, err := w.o.Team.Told(ctx)
		if err != nil {
			return err
		}
		w.told = told{true, revision, map[team.TaskID]bool{}}
	}
	upTo, note := w.told.revision, false
	for _, e := range w.o.Team.EndsSince(upTo) {
		if len(e.Blocks) > 0 && !w.told.tasks[e.Task.ID] {
			id := fmt.Sprintf("blocked-%s-%d", e.Task.ID, e.Task.Revision)
			if err := w.o.Team.Tell(ctx, id, Blocked(e)); err != nil {
				return err
			}
			w.told.tasks[e.Task.ID] = true
		}
		upTo, note = e.Revision, note || w.told.tasks[e.Task.ID]
	}
	if note {
		if err := w.o.Team.SetTold(ctx, upTo); err != nil {
			return err
		}
	}
	w.told.revision = upTo
	return nil
}

// allIdle tells the leader when the team is quiet, and ends the goal when it has
// been told often enough (rule 8).
func (w *Watchdog) allIdle(ctx context.Context) error {
	before, err := w.look(ctx, false)
	if err != nil || before.Stirs() != "" {
		return err
	}
	now, err := w.look(ctx, true)
	if err != nil || !Quiet(before, now) {
		return err
	}
	mail, err := w.o.Team.MailSeq(ctx)
	if err != nil {
		return err
	}
	turn := now.Beats[team.Leader].Turn
	if now.spell(mail) != w.spell {
		w.notices = 0
	} else if turn == w.toldTurn {
		return nil // it has been told and has not answered yet
	}
	if w.notices > 0 && now.stands() {
		return nil // it knows what the team waits for, and that does not end the goal
	}
	if w.notices >= maxTold || w.notices > 0 && now.deserted() {
		status := team.TeamFinished
		if now.open() || w.failed(now.Team) {
			status = team.TeamFailed
		}
		w.o.Logger.InfoContext(ctx, "goal ended: the leader has nothing more to do", "status", status)
		return w.o.Team.End(ctx, status, w.o.Team.LastText())
	}
	if err := w.o.Team.Tell(ctx, ulid.Make().String(), now.Notice(w.o.Team.Unfinished(maxNamed))); err != nil {
		return err
	}
	w.metrics.countAllIdle()
	w.o.Logger.InfoContext(ctx, "all idle", "told", w.notices+1)
	if mail, err = w.o.Team.MailSeq(ctx); err != nil {
		return err
	}
	w.spell, w.toldTurn = now.spell(mail), turn
	w.notices++
	return nil
}

// failed reports whether a task has failed since the goal was set.
func (w *Watchdog) failed(t team.Team) bool {
	return slices.ContainsFunc(w.o.Team.EndsSince(t.GoalSeq), func(e index.End) bool { return e.Task.Status == team.Failed })
}

// look takes one look. With ask, every process is asked for a fresh beat, and the
// unread mail is counted: the second round begins after the first is complete.
func (w *Watchdog) look(ctx context.Context, ask bool) (Look, error) {
	l := w.o.Team.Look()
	look := Look{Look: l, Beats: map[team.AgentID]team.Beat{}}
	heard := w.o.Team.Heard()
	members := slices.DeleteFunc(slices.Clone(l.Members), func(m team.Member) bool { return !m.HasProcess() })
	if ask {
		look.Beats = w.ping(ctx, members) // one that does not answer is not known to be idle
	}
	for _, m := range members {
		if !ask {
			look.Beats[m.AgentID] = heard[m.AgentID].Beat
			continue
		}
		if _, ok := look.Beats[m.AgentID]; !ok {
			continue
		}
		n, err := w.o.Team.Unread(ctx, m)
		if err != nil {
			return look, err
		}
		look.Unread += n
	}
	if look.Stirs() != "" {
		return look, nil // no need to ask the server
	}
	seq, err := w.o.Team.BucketSeq(ctx)
	if err == nil && seq != look.Seq {
		look.Team.Goal = "" // the index is behind: not a look to judge by
	}
	return look, err
}
