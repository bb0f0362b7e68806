package mergequeue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/election"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Check is the check of a task, in its assignee's name, or the team's.
type Check struct {
	Task    team.TaskID  // "" = it is the team's
	Title   string       // of that task
	Agent   team.AgentID // the member whose sandbox and grant it runs under
	Command string
	Earlier bool  // the task is completed, and in the integration branch
	Unknown error // why it is not known whether there is one: the task's record cannot be read ([team.ErrUnreadable])
}

// ErrNotHere is in the error of a check whose failure on this host proves nothing about the work.
var ErrNotHere = errors.New("this host cannot judge it")

// Checker runs checks.
type Checker interface {
	// Able returns the reason why this process may not merge the entry, or nil: it has a sandbox no weaker than the
	// assignee's, and the files of the user's folder that its check needs.
	Able(ctx context.Context, e Entry) error
	// Check runs a check on the files in dir, which it may change. An error is not the work's fault: the entry is tried
	// again later. [ErrNotHere] is in the error of an earlier task's failed check if this host may lack something.
	Check(ctx context.Context, dir string, c Check) (passed bool, output string, err error)
	// LeftOut reports that the entry is merged without the check of an earlier task, which Check has refused
	// (PermissionDenied, ErrNotHere), or which is unknown. An error keeps the entry from being merged now.
	LeftOut(ctx context.Context, e Entry, c Check, why error) error
}

// Tasks is the part of the board that a queue needs. Each call may be repeated after it has taken effect. A call is tried
// again after an error without a code, Unavailable or [team.ErrUnreadable]; any other error is the answer.
type Tasks interface {
	// Held returns nil while the task is in progress under the entry's epoch.
	Held(ctx context.Context, e Entry) error
	// Complete completes the task, whose work is now in the integration branch as that commit.
	Complete(ctx context.Context, e Entry, commit gitrepo.Hash) error
	// Release puts the task back, whose work is not in the integration branch.
	Release(ctx context.Context, e Entry, o Outcome) error
	// Checks returns the checks of the tasks that have one, or may have one.
	Checks(ctx context.Context, ids []team.TaskID) ([]Check, error)
}

// Kind is the reason why work was not merged.
type Kind string

// The kinds of outcomes that release a task.
const (
	Conflicting Kind = "conflict" // the integration branch has changed the same lines
	CheckFailed Kind = "check"    // a check fails on the merged files
	Refused     Kind = "refused"  // no task may add it, or it is damaged
)

// Outcome describes why work was not merged, with all facts that the next holder of the task needs.
type Outcome struct {
	Kind      Kind               `json:"kind"`
	Head      gitrepo.Hash       `json:"head"`                // the commit that it was to be merged onto
	Base      gitrepo.Hash       `json:"base,omitempty"`      // the commit that it was made on
	Commit    gitrepo.Hash       `json:"commit,omitempty"`    // the work itself; "" if refused
	Agent     team.AgentID       `json:"agent,omitempty"`     // its author
	Title     string             `json:"title,omitempty"`     // the task's title
	Summary   string             `json:"summary,omitempty"`   // the author's summary
	Conflicts []gitrepo.Conflict `json:"conflicts,omitempty"` // the files, with both differences
	Since     []Since            `json:"since,omitempty"`     // the commits since the work's base, the newest last: in the files that conflict, or in all
	Failed    team.TaskID        `json:"failed,omitempty"`    // the task whose check fails
	Own       bool               `json:"own,omitempty"`       // that check also fails on the work without what was merged since its base
	Output    string             `json:"output,omitempty"`    // of that check
	Reason    string             `json:"reason"`              // in one line
}

// Since is a commit of the integration branch that returned work was not made on.
type Since struct {
	gitrepo.Entry
	Summary string `json:"summary,omitempty"` // its purpose, at most 1 KiB
}

// Options configure a queue.
type Options struct {
	Site    *Site         // required
	Tasks   Tasks         // required
	Checker Checker       // required
	Process string        // names this queue in the lease; unique, required
	Check   func() string // the team's present check of each merge, "" = none; default: none
	Lease   time.Duration // default: [election.LeaseOn]
	Logger  *slog.Logger
	Metrics prometheus.Registerer // may be nil
}

// Queue merges submitted work, in turn with the queues of other processes.
type Queue struct {
	o    Options
	m    metrics
	step func(ctx context.Context, name string) error // before each step; tests fail there
	wake chan struct{}

	mu      sync.Mutex
	live    bool                          // all stored records were seen: what waits is merged together
	head    Head                          // as last seen
	damage  error                         // why the head cannot be read
	changed time.Time                     // when it was seen to change, by the monotonic clock
	entries map[team.TaskID]Entry         // as last seen
	trouble map[team.TaskID]*postponement // of entries that this host cannot merge now
	failed  postponement                  // of terms
}

// postponement is the backoff after a failure.
type postponement struct {
	until time.Time
	tries int
	err   error // of the last try
}

func (p *postponement) again(err error) {
	p.err = err
	p.until = time.Now().Add(min(time.Second<<min(p.tries, 5), maxBackoff))
	p.tries++
}

// maxBackoff is the longest backoff of an entry that one host cannot merge.
const maxBackoff = 30 * time.Second

// NewQueue returns a queue. Error: InvalidArgument for a missing option.
func NewQueue(o Options) (*Queue, error) {
	if o.Site == nil || o.Tasks == nil || o.Checker == nil || o.Process == "" {
		return nil, team.Errorf(team.InvalidArgument, "a queue needs a site, tasks, a checker and the name of its process")
	}
	if o.Check == nil {
		o.Check = func() string { return "" }
	}
	o.Lease = cmp.Or(o.Lease, election.LeaseOn(o.Site.Records.bucket.Replicas()))
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Queue{
		o: o, m: newMetrics(o.Metrics), wake: make(chan struct{}, 1), step: func(ctx context.Context, _ string) error { return ctx.Err() },
		entries: map[team.TaskID]Entry{}, trouble: map[team.TaskID]*postponement{},
	}, nil
}

// Seen returns the last known head of the integration branch; "" if none is known, or there is no branch.
func (q *Queue) Seen() gitrepo.Hash {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head.Commit
}

// Run merges submitted work until ctx ends, and then returns nil. It holds the lease only while an entry waits, so an idle
// branch is not written.
func (q *Queue) Run(ctx context.Context) error {
	return shutdown.Together(ctx, q.watch, q.work)
}

// watch watches the head's record and the entries.
func (q *Queue) watch(ctx context.Context) error {
	return q.o.Site.Records.bucket.Watch(ctx, func(e broker.Entry) error {
		q.observe(e)
		q.news()
		return nil
	}, func() { // all that is stored was shown
		q.mu.Lock()
		q.live = true
		q.mu.Unlock()
		q.news()
	}, subject.KeyBranch, subject.AllMerges)
}

// news wakes the queue.
func (q *Queue) news() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) observe(stored broker.Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if stored.Key == subject.KeyBranch {
		h, err := decodeHead(stored)
		if err != nil {
			q.o.Logger.Warn("the line cannot be read", "err", err)
			h = Head{}
		}
		q.head, q.damage, q.changed = h, err, time.Now()
		return
	}
	e, err := decodeEntry(stored)
	if err != nil && !stored.Deleted {
		q.o.Logger.Warn("an entry of the line's queue cannot be read", "err", err)
	}
	_, name := subject.ParseKey(stored.Key)
	id := team.TaskID(name)
	defer q.count()
	delete(q.trouble, id)
	if stored.Deleted || err != nil {
		delete(q.entries, id)
	} else {
		q.entries[id] = e
	}
}

// work takes the lease whenever an entry waits that this queue can merge.
func (q *Queue) work(ctx context.Context) error {
	for {
		seen, ready, wait := q.turn(ctx, time.Now())
		if ready {
			err := q.lead(ctx, seen)
			if ctx.Err() != nil {
				return nil
			}
			q.note(err)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// note records the result of a term.
func (q *Queue) note(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		q.failed = postponement{}
	case !errors.Is(err, errLost): // else the lease has to run out, or another queue has it
		q.o.Logger.Warn("the line's queue has failed; it continues later", "err", err)
		q.failed.again(err)
	}
}

// idle is the longest wait of a queue that waits only for news.
const idle = time.Hour

// turn reports whether this queue should take the lease now, and else the time to wait, unless there is news before.
func (q *Queue) turn(ctx context.Context, now time.Time) (seen Head, ready bool, wait time.Duration) {
	next, any := q.next(ctx, now, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	open := q.open()
	switch {
	case !q.live || q.head.Revision == 0 || !any && !open:
		return q.head, false, idle
	case now.Before(q.failed.until):
		return q.head, false, q.failed.until.Sub(now)
	case q.head.Process != "" && now.Sub(q.changed) < q.o.Lease:
		return q.head, false, q.changed.Add(q.o.Lease).Sub(now)
	case !open && len(next) == 0:
		return q.head, false, q.soonest(now)
	}
	return q.head, true, 0
}

// open reports whether an entry is left of the work that the last move brought: its task may not be completed yet.
func (q *Queue) open() bool {
	return slices.ContainsFunc(q.head.Last, func(m Merge) bool { return q.entries[m.Task].same(m.Task, m.Epoch) })
}

// next returns the entries whose turn it is, at most so many, in order; none if all have to wait. any reports whether there are
// entries. An entry that this process may not merge now it may merge later: Able may lack information.
func (q *Queue) next(ctx context.Context, now time.Time, most int) (all []Entry, any bool) {
	for _, e := range q.due(now) {
		any = true
		if e.Task != "" && len(all) < most && q.o.Checker.Able(ctx, e) == nil { // asks the server, so not under the lock
			all = append(all, e)
		}
	}
	return all, any
}

// due returns the waiting entries, in order; an entry with a backoff on this host is replaced by the zero Entry.
func (q *Queue) due(now time.Time) (all []Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range slices.SortedFunc(maps.Values(q.entries), inOrder) {
		if t := q.trouble[e.Task]; e.State == Withdrawn {
			continue
		} else if t != nil && now.Before(t.until) {
			e = Entry{}
		}
		all = append(all, e)
	}
	return all
}

// inOrder orders entries by the time at which the server stored them.
func inOrder(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) }

// soonest returns the shortest remaining backoff of the entries.
func (q *Queue) soonest(now time.Time) time.Duration {
	wait := maxBackoff
	for _, t := range q.trouble {
		wait = min(wait, max(t.until.Sub(now), time.Millisecond))
	}
	return wait
}

// postpone records that an entry could not be merged here, with a backoff.
func (q *Queue) postpone(e Entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.trouble[e.Task] == nil {
		q.trouble[e.Task] = &postponement{}
	}
	q.trouble[e.Task].again(err)
}

// Trouble returns the reason why this queue has not merged a waiting entry: tried is true if it has tried in vain, false if
// it may not. It returns nil if the entry waits for its turn, if another queue works (a check may take minutes), or if the
// reason is not known.
func (q *Queue) Trouble(ctx context.Context, e Entry) (why error, tried bool) {
	q.mu.Lock()
	now := time.Now()
	elsewhere := q.head.Process != "" && q.head.Process != q.o.Process && now.Sub(q.changed) < q.o.Lease
	if now.Before(q.failed.until.Add(maxBackoff)) { // else it was long ago: others have led since
		why = q.failed.err
	}
	if t := q.trouble[e.Task]; t != nil {
		why = t.err
	}
	if q.damage != nil { // no queue leads
		why = q.damage
	}
	q.mu.Unlock()
	switch {
	case elsewhere:
		return nil, false
	case why != nil:
		return why, true
	}
	if why = q.o.Checker.Able(ctx, e); !errors.Is(why, team.InvalidState) {
		return nil, false
	}
	return why, false
}

// forget drops a removed entry before the watch shows its removal.
func (q *Queue) forget(e Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.entries[e.Task].Revision <= e.Revision {
		delete(q.entries, e.Task)
	}
	delete(q.trouble, e.Task)
	q.count()
}

// count sets the metric of waiting entries; q.mu is held.
func (q *Queue) count() {
	n := 0
	for _, e := range q.entries {
		if e.State != Withdrawn {
			n++
		}
	}
	q.m.waiting.Set(float64(n))
}
