// Package watchdog detects, for the process that leads a team, lost members, tasks to free, and a
// team in which all are idle. The decisions are pure functions of a snapshot (judge.go); the loop
// here takes snapshots, pings once more, and acts.
//
// It does not decide what the team does next: it notifies the leader. Nor does it start processes:
// it requests a respawn.
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

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Index returns the current state of the team's board; *index.Index is one.
type Index interface {
	Snapshot() index.Snapshot
	EndsSince(revision uint64) []index.End
	DoneSince(revision uint64) []team.Task
	Unfinished(limit int) (first []index.Unfinished, total int)
}

// Actions are the watchdog's requests to members and changes to the team; package leader implements
// them.
type Actions interface {
	// Ping asks a member's process for a new heartbeat.
	Ping(ctx context.Context, a team.AgentID, wait time.Duration) (team.Heartbeat, error)
	// Unread counts the mail that wakes a member and is not in its journal.
	Unread(ctx context.Context, m team.Member) (int, error)
	// Reap frees a task if it is still held under this epoch.
	Reap(ctx context.Context, t team.Task, f team.Freed) error
	// Answered reports whether its holder's model has answered at work on a task.
	Answered(ctx context.Context, t team.Task) (bool, error)
	// Unreserve ends the reservation of a task, unless it was written since it was read.
	Unreserve(ctx context.Context, t team.Task) error
	// Respawn brings a lost member back after that wait. It must not block. A failure is recorded
	// in the member's record, as a later incarnation that is lost.
	Respawn(ctx context.Context, m team.Member, wait time.Duration) error
	// MayReturn asks a person, once for an incarnation, whether a lost member may be brought back,
	// and reports whether it may.
	MayReturn(ctx context.Context, m team.Member, t team.Team) (bool, error)
	// Ready spawns n members of a role. It must not block.
	Ready(ctx context.Context, t team.Team, role string, n int) error
	// Lose records that a member is lost, and why.
	Lose(ctx context.Context, m team.Member, why string) error
	// Dismiss stops a member that is gone.
	Dismiss(ctx context.Context, m team.Member) error
	// GiveUp stops a lost member for good and notifies the leader of the reason.
	GiveUp(ctx context.Context, m team.Member, why string) error
	// Mark writes a member's fault into its record, and notifies the leader once.
	Mark(ctx context.Context, m team.Member, why, notice string) error
	// Refuse stops a member that joined without permission, and notifies the leader of the reason.
	Refuse(ctx context.Context, m team.Member, why string) error
	// Notify sends the leader a notice; of several with one id, sent one after another, it gets the
	// first.
	Notify(ctx context.Context, id, text string) error
	// End ends the goal, with the leader's last text as its result, and the reason if it has
	// failed.
	End(ctx context.Context, status team.Status, reason string) error
}

// Options are the parts of a Watchdog.
type Options struct {
	Index   Index         // required
	Pulse   *roster.Pulse // receives the heartbeats of all members, the leader's own too; required
	Bucket  Bucket        // required
	Actions Actions       // required
	Cluster string        // the embedded cluster of this process; "" = none
	Server  func() string // returns the id of the NATS server, if there is only one; "" = unknown
	Lease   time.Duration // required: the team's

	// Since returns since when a member has been silent, if this process listened before it led the
	// team; ok is false if it did not. Default: it did not.
	Since func(m team.Member) (at time.Time, ok bool)

	Interval time.Duration // between checks; default 1 s, half a heartbeat
	Logger   *slog.Logger
	Metrics  prometheus.Registerer
}

const (
	settleTime    = 50 * time.Millisecond // after a member becomes quiet: its messages and writes arrive
	maxRounds     = 4                     // of pings in one check whether all are idle
	pingWait      = time.Second           // for a process to answer before its task is freed
	maxPings      = 64                    // under way at the same time
	adoptWithin   = 5 * time.Second       // for a later incarnation to take over its task
	spawnWithin   = 15 * time.Second      // a spawner gives up after 10 s; one that died left the record
	respawnWithin = time.Minute           // for a respawn to write the next incarnation; its backoff may take half of that
	maxSilent     = 5                     // unanswered requests in a row of a member that sends heartbeats
	maxListed     = 3                     // notices in one quiet spell; the next text ends the goal
	againAfter    = roster.Interval       // the minimum from one of these to the next, or to the end: a person or a process may be about to act
	maxNamed      = 50                    // tasks in a notice: it must not outgrow a message, nor a model's patience
)

// Watchdog watches one team. Use it from one goroutine.
type Watchdog struct {
	o       Options
	metrics metrics

	selfSeen     time.Time // when our own heartbeat was last received
	server       string    // the NATS server
	serverAt     time.Time // when we first saw that server in place of another; zero: since the start
	blind        time.Time // until then we do not trust our own reception
	orphans      map[team.TaskID]noted
	reserved     map[team.TaskID]noted // the reservations that lapse
	members      map[team.AgentID]*record
	readied      map[string]readied    // by role, while members of it are missing
	warned       bool                  // a silence of many was reported
	notified     notices               // notices to the leader about dependencies
	asked        knowing               // the leader's knowledge when it waits for a person
	counted      map[team.AgentID]bool // members within the limit at the last count
	episode      string                // of the last notice
	notices      int                   // notices in it
	notifiedTurn uint64                // the leader's turn at the last notice
	notifiedAt   time.Time             // the time of that notice
	notifiedSeq  uint64                // revision of the newest change of a task then
}

// notices records the notices to the leader about failed and cancelled dependencies. It is stored,
// so that a later leader's watchdog continues from there: it neither repeats notices nor misses
// events while no process led.
type notices struct {
	read     bool // the stored note was read
	revision uint64
	tasks    []team.TaskID
}

// noted is a hold of a task, and since when this watchdog has seen the task in this state.
type noted struct {
	epoch uint64
	since time.Time
}

// New returns a watchdog.
func New(o Options) *Watchdog {
	o.Interval = cmp.Or(o.Interval, roster.Interval/2)
	if o.Server == nil {
		o.Server = func() string { return "" }
	}
	if o.Since == nil {
		o.Since = func(team.Member) (at time.Time, ok bool) { return at, false }
	}
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Watchdog{o: o, metrics: newMetrics(o.Metrics), orphans: map[team.TaskID]noted{},
		members: map[team.AgentID]*record{}, readied: map[string]readied{}}
}

// Run watches until ctx ends, then returns nil. It checks the team in every interval, and soon
// after a member became quiet if all may be.
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
		case <-w.o.Pulse.Settled():
			if !shutdown.Sleep(ctx, settleTime) {
				return nil
			}
			if w.checkLost().Activity() != "" {
				continue
			}
		}
		// A check that failed (NATS is unavailable) is repeated at the next tick.
		if err := w.step(ctx); err != nil && ctx.Err() == nil {
			w.o.Logger.WarnContext(ctx, "watchdog", "err", err)
		}
	}
}

func (w *Watchdog) step(ctx context.Context) error {
	look, heard := w.o.Index.Snapshot(), w.o.Pulse.Last()
	if look.Team.ID == "" {
		return nil // the index has not read the bucket yet
	}
	look.Members = unjudged(look)
	now := time.Now()
	w.metrics.show(look, heard, now)
	if err := w.notifyBlocked(ctx); err != nil {
		return err
	}
	if err := w.notifyStalled(ctx, look, heard, now); err != nil {
		return err
	}
	if err := w.unreserve(ctx, look, now); err != nil {
		return err
	}
	for _, m := range look.Members {
		if m.HasProcess() && slices.Contains(look.Deaf, m.AgentID) {
			if err := w.mark(ctx, m, noOffer); err != nil {
				return err
			}
		}
	}
	var late []team.Member
	late, w.counted = crowd(look.Team, look.Members, w.counted)
	for _, m := range late {
		why := fmt.Sprintf("the team has its %d teammates (max_teammates) without it", look.Team.MaxTeammates)
		w.o.Logger.WarnContext(ctx, "member refused", "agent", m.AgentID, "incarnation", m.Incarnation, "why", why)
		if err := w.o.Actions.Refuse(ctx, m, why); err != nil {
			return err
		}
	}
	for _, m := range look.Members {
		if look.Team.Dismissed(m) {
			if err := w.o.Actions.Dismiss(ctx, m); err != nil {
				return err
			}
		}
	}
	// Tasks of a dismissed member are orphans.
	look.Members = slices.DeleteFunc(slices.Clone(look.Members), look.Team.Dismissed)
	if err := w.freeEnded(ctx, look, now); err != nil {
		return err
	}
	if !w.hearing(heard, now) {
		return nil
	}
	if err := w.free(ctx, look, heard, now); err != nil {
		return err
	}
	if err := w.keepReady(ctx, look, now); err != nil {
		return err
	}
	return w.allIdle(ctx)
}

// hearing reports whether our own heartbeat was received in every sixth of the last lease. If it
// was not, the silence of others proves nothing.
func (w *Watchdog) hearing(heard map[team.AgentID]roster.Heard, now time.Time) bool {
	gap := max(w.o.Lease/6, roster.Interval*3/2) // a heartbeat comes every 2 s, also under a short lease
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

// freeEnded takes tasks from members whose processes are known to have ended, with an earlier
// cluster on the same storage, and respawns those members. That needs no judgement of silence.
func (w *Watchdog) freeEnded(ctx context.Context, look index.Snapshot, now time.Time) error {
	var errs []error
	for _, m := range look.Members {
		if m.AgentID != team.Leader && m.Ended(w.o.Cluster) {
			errs = append(errs, w.reap(ctx, look, m, "ended with its cluster", noMember, now))
		}
	}
	return errors.Join(errs...)
}

// free takes tasks from lost members, and respawns those members.
func (w *Watchdog) free(ctx context.Context, look index.Snapshot, heard map[team.AgentID]roster.Heard, now time.Time) error {
	judged := slices.DeleteFunc(slices.Clone(look.Members), func(m team.Member) bool { return m.Ended(w.o.Cluster) })
	server := w.seeServer(now)
	lost, held := silentOf(judged, func(m team.Member) (time.Duration, bool) {
		known := w.of(m)
		if known.seenAt.IsZero() {
			known.seenAt = now
			if at, ok := w.o.Since(m); ok {
				known.seenAt = at
			}
		}
		restarted := m.Server != "" && server != "" && m.Server != server
		if h := heard[m.AgentID]; h.Incarnation == m.Incarnation && h.At.After(known.seenAt) {
			return now.Sub(h.At), restarted && h.At.Before(w.serverAt)
		}
		return now.Sub(known.seenAt), restarted // no heartbeat since we began: the silence counts from then
	}, w.o.Lease)
	if held && !w.warned {
		w.o.Logger.WarnContext(ctx, "more than half of the members are silent; their tasks are freed after three leases only")
	}
	w.warned = held
	silent := make([]team.Member, len(lost))
	for i, s := range lost {
		silent[i] = s.Member
	}
	answered := w.ping(ctx, silent)
	var errs []error
	for _, s := range lost {
		if _, lives := answered[s.Member.AgentID]; lives {
			continue // its heartbeats get lost
		}
		last := heard[s.Member.AgentID].Heartbeat
		errs = append(errs, w.reap(ctx, look, s.Member, "was not heard for "+w.o.Lease.String(), func(ctx context.Context, t team.Task) (bool, error) {
			if last.Incarnation == t.Incarnation && last.Task == t.ID && last.Begun {
				return true, nil
			}
			return w.o.Actions.Answered(ctx, t) // a heartbeat is too late if the task ended the process immediately
		}, now))
	}
	errs = append(errs, w.bringUp(ctx, look, now), w.reapOrphans(ctx, look, now))
	return errors.Join(errs...)
}

// seeServer returns the id of the NATS server, and records when it has become another one.
func (w *Watchdog) seeServer(now time.Time) string {
	id := w.o.Server()
	if id != "" && id != w.server {
		if w.server != "" {
			w.serverAt = now
		}
		w.server = id
	}
	return id
}

// ping asks the processes of members for new heartbeats and returns the answers. They are asked in
// parallel: a host that is gone may have many, and each takes the whole wait.
func (w *Watchdog) ping(ctx context.Context, members []team.Member) map[team.AgentID]team.Heartbeat {
	answers := map[team.AgentID]team.Heartbeat{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(maxPings)
	for _, m := range members {
		g.Go(func() error {
			b, err := w.o.Actions.Ping(ctx, m.AgentID, pingWait)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				answers[m.AgentID] = b
			}
			return nil
		})
	}
	_ = g.Wait() // members that did not answer are missing in the answers
	return answers
}

// noMember reports no attempt for any task: the task did not end the members.
func noMember(context.Context, team.Task) (bool, error) { return false, nil }

// reap frees the task of a member whose process is gone, with why as the reason, and brings the
// member back. begun reports whether it was lost at work on the task, which is an attempt.
func (w *Watchdog) reap(ctx context.Context, look index.Snapshot, m team.Member, why string, begun func(context.Context, team.Task) (bool, error), now time.Time) error {
	for _, t := range look.Running {
		if t.Assignee != m.AgentID || t.Incarnation != m.Incarnation {
			continue
		}
		attempt, err := begun(ctx, t)
		if err != nil {
			return err
		}
		if err := w.o.Actions.Reap(ctx, t, team.Freed{Reason: string(m.AgentID) + " " + why, Attempt: attempt, Keep: w.returns(look.Team, m), Work: leftBy(look.Team, m, t)}); err != nil {
			return err
		}
		w.metrics.count(w.metrics.expired)
	}
	return w.bringBack(ctx, look.Team, m, why, now)
}

// leftBy returns the work on t of a holder whose process is gone: in a tree on its host. It is nil
// if members share the workspace.
func leftBy(in team.Team, m team.Member, t team.Task) *team.Try {
	if !in.HasBranch() || m.AgentID != t.Assignee || m.Incarnation != t.Incarnation {
		return nil
	}
	return t.LeftOn(m.Host)
}

// returns reports whether m, whose process is gone, is brought back now.
func (w *Watchdog) returns(t team.Team, m team.Member) bool {
	if m.State == team.Lost && m.LastError != "" || m.Absent(t.Policies) != "" {
		return false
	}
	if cmp.Or(t.Policies.Respawn, team.RespawnAlways) != team.RespawnAlways || m.Program != "" {
		return false
	}
	m.Losses = lossesOf(m, w.o.Cluster)
	return hopeless(m) == ""
}

// bringBack respawns a lost member, with why as the reason. If the team's policy forbids that, or
// another program runs the member, it only marks the member lost; so it does under the policy ask,
// until a person allows it. A member that was lost too often is given up. A failed respawn is tried
// again after a backoff; once several have failed, the leader is notified and the team no longer
// waits for the member.
func (w *Watchdog) bringBack(ctx context.Context, t team.Team, m team.Member, why string, now time.Time) error {
	policy := cmp.Or(t.Policies.Respawn, team.RespawnAlways)
	if m.Program != "" {
		policy = team.RespawnRelease
	}
	if policy != team.RespawnAlways && m.State != team.Lost {
		w.metrics.count(w.metrics.lost)
		w.o.Logger.WarnContext(ctx, "member lost, and not brought back", "agent", m.AgentID, "incarnation", m.Incarnation)
		return w.o.Actions.Lose(ctx, m, string(m.AgentID)+" "+why)
	}
	switch policy {
	case team.RespawnRelease:
		return nil
	case team.RespawnAsk:
		if may, err := w.o.Actions.MayReturn(ctx, m, t); err != nil || !may {
			return err
		}
	}
	known := w.of(m)
	again := known.respawned == m.Incarnation
	if again && now.Sub(known.respawnedAt) < respawnWithin {
		return nil
	}
	m.Losses = lossesOf(m, w.o.Cluster)
	if why := hopeless(m); why != "" {
		w.o.Logger.WarnContext(ctx, "member given up", "agent", m.AgentID, "incarnation", m.Incarnation, "why", why)
		return w.o.Actions.GiveUp(ctx, m, why)
	}
	f := known.failures.after(m, now)
	if f.n >= notifyAfter && !f.notified {
		if err := w.o.Actions.Notify(ctx, fmt.Sprintf("still-lost-%s-%d", m.AgentID, m.Incarnation), stillLostText(m.AgentID, m.LastError)); err != nil {
			return err
		}
		f.notified = true
	}
	known.failures, known.respawned, known.respawnedAt = f, m.Incarnation, now
	if !again {
		w.metrics.count(w.metrics.lost)
		w.o.Logger.WarnContext(ctx, "member lost", "agent", m.AgentID, "incarnation", m.Incarnation)
	}
	return w.o.Actions.Respawn(ctx, m, f.wait(m))
}

// bringUp handles members without a process that no other part handles: those whose process signed
// off, and those whose spawner died before a process took them.
func (w *Watchdog) bringUp(ctx context.Context, look index.Snapshot, now time.Time) error {
	var errs []error
	for _, m := range look.Members {
		switch m.State {
		case team.Lost:
			errs = append(errs, w.bringBack(ctx, look.Team, m, "", now))
		case team.Created:
			known := w.of(m)
			if known.createdAt.IsZero() || known.created != m.Revision {
				known.created, known.createdAt = m.Revision, now
			}
			if now.Sub(known.createdAt) >= spawnWithin {
				errs = append(errs, w.bringBack(ctx, look.Team, m, "was taken by no process", now))
			}
		}
	}
	return errors.Join(errs...)
}

// reapOrphans frees tasks of holders that have left, or that have a later incarnation, once no
// incarnation has adopted them within adoptWithin. That is an attempt if a holder was lost at work,
// and none if it left in order.
func (w *Watchdog) reapOrphans(ctx context.Context, look index.Snapshot, now time.Time) error {
	seen := map[team.TaskID]noted{}
	var errs []error
	for _, t := range orphansOf(look.Members, look.Running) {
		o, ok := w.orphans[t.ID]
		if !ok || o.epoch != t.Epoch {
			o = noted{t.Epoch, now}
		}
		seen[t.ID] = o
		if now.Sub(o.since) >= adoptWithin {
			f := team.Freed{Reason: "its holder " + string(t.Assignee) + " has left"}
			if i := slices.IndexFunc(look.Members, func(m team.Member) bool { return m.AgentID == t.Assignee && m.State != team.Stopped }); i >= 0 {
				m := look.Members[i]
				f.Work = leftBy(look.Team, m, t)
				if f.Keep = w.returns(look.Team, m); m.Incarnation > t.Incarnation {
					f.Keep = m.State == team.Created || m.State == team.Joined
					f.Reason = "its holder " + string(t.Assignee) + " was restarted and has not taken it over"
					var err error
					if f.Attempt, err = w.o.Actions.Answered(ctx, t); err != nil {
						errs = append(errs, err)
						continue
					}
				}
			}
			errs = append(errs, w.o.Actions.Reap(ctx, t, f))
		}
	}
	w.orphans = seen
	return errors.Join(errs...)
}

// notifyBlocked notifies the leader, once, of tasks that wait for one that failed or was cancelled,
// and of those that were failed since their holders were lost at work.
//
// The notice is sent before it is recorded, under its own id: if this process dies in between, the
// next sends the same, which the server drops.
func (w *Watchdog) notifyBlocked(ctx context.Context) error {
	if !w.notified.read {
		n, _, err := readNote(ctx, w.o.Bucket)
		if err != nil {
			return err
		}
		w.notified = notices{true, n.Notified, n.Tasks}
	}
	upTo, note := w.notified.revision, false
	for _, e := range w.o.Index.EndsSince(upTo) {
		text := blockedText(e)
		if len(e.Blocks) == 0 {
			text = failedText(e.Task)
		}
		if text != "" && !slices.Contains(w.notified.tasks, e.Task.ID) {
			if err := w.o.Actions.Notify(ctx, "blocked-"+string(e.Task.ID), text); err != nil {
				return err
			}
			w.notified.tasks = append(w.notified.tasks, e.Task.ID)
		}
		upTo, note = e.Revision, note || slices.Contains(w.notified.tasks, e.Task.ID)
	}
	if note {
		switch err := storeNote(ctx, w.o.Bucket, upTo, w.notified.tasks); {
		case errors.Is(err, team.Conflict): // another leader's watchdog was first: the next check stores it
			return nil
		case err != nil:
			return err
		}
	}
	w.notified.revision = upTo
	return nil
}

// notifyStalled notifies the leader, once in a spell, of a teammate at work that makes no progress.
// Another leader's watchdog reports the same spell under the same id.
func (w *Watchdog) notifyStalled(ctx context.Context, look index.Snapshot, heard map[team.AgentID]roster.Heard, now time.Time) error {
	for _, m := range look.Members {
		h := heard[m.AgentID]
		if m.AgentID == team.Leader || h.State(m, look.Team, now) != team.Stalled || w.of(m).stalledAt.Equal(h.ProgressAt) {
			continue
		}
		id := fmt.Sprintf("stalled-%s-%d-%d", m.AgentID, m.Incarnation, h.ProgressAt.UnixMilli())
		if err := w.o.Actions.Notify(ctx, id, stalledText(h.Heartbeat)); err != nil {
			return err
		}
		w.of(m).stalledAt = h.ProgressAt
		w.metrics.count(w.metrics.stalled)
		w.o.Logger.WarnContext(ctx, "member stalled", "agent", m.AgentID, "task", h.Task, "tool", h.Tool, "progress", h.ProgressAt)
	}
	return nil
}
