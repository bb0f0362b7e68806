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

// Check is the check of a task, in its assignee's name.
type Check struct {
	Task    team.TaskID
	Title   string       // of that task
	Agent   team.AgentID // whose sandbox and grant it runs under
	Command string
	Earlier bool  // the task is completed, and in the line
	Unknown error // why it is not known whether there is one: the task's record cannot be read ([team.ErrUnreadable])
}

// ErrNotHere is in the errors of a check of which this host cannot tell whether the work fails it.
var ErrNotHere = errors.New("this host cannot judge it")

// Checker runs checks.
type Checker interface {
	// Able returns why this process may not merge the entry, or nil: it has a sandbox no weaker than the
	// assignee's, and what of the user's folder its check needs.
	Able(ctx context.Context, e Entry) error
	// Check runs a check on the files in dir, which are its to change. An error is not the
	// work's fault: the entry is tried again later. [ErrNotHere] is in that of an earlier task's check which fails, perhaps
	// since this host lacks something.
	Check(ctx context.Context, dir string, c Check) (passed bool, output string, err error)
	// LeftOut reports that the entry is merged without the check of an earlier task, which Check has refused
	// (PermissionDenied, ErrNotHere), or which is unknown. An error keeps the entry from being merged now.
	LeftOut(ctx context.Context, e Entry, c Check, why error) error
}

// Tasks is what a queue needs of the board. Each call may be repeated after it has taken effect.
// An error without a code, Unavailable and [team.ErrUnreadable] are tried again; any other is the answer.
type Tasks interface {
	// Held returns nil while the task is in progress under the entry's epoch.
	Held(ctx context.Context, e Entry) error
	// Complete completes the task, whose work is in the line now as that commit.
	Complete(ctx context.Context, e Entry, commit gitrepo.Hash) error
	// Release puts the task back, whose work is not in the line.
	Release(ctx context.Context, e Entry, o Outcome) error
	// Checks returns the checks of those of the tasks that have one, or may have one.
	Checks(ctx context.Context, ids []team.TaskID) ([]Check, error)
}

// Kind is why work was not merged.
type Kind string

// The kinds of outcomes that release a task.
const (
	Conflicting Kind = "conflict" // the line has changed the same lines
	CheckFailed Kind = "check"    // a check fails on the merged files
	Refused     Kind = "refused"  // it is nothing that a task may bring in, or it is damaged
)

// Outcome is why work was not merged, and all that the next holder of the task needs to know.
type Outcome struct {
	Kind      Kind               `json:"kind"`
	Head      gitrepo.Hash       `json:"head"`                // what it was to be merged onto
	Base      gitrepo.Hash       `json:"base,omitempty"`      // what it was made on
	Commit    gitrepo.Hash       `json:"commit,omitempty"`    // the work itself; "" if refused
	Agent     team.AgentID       `json:"agent,omitempty"`     // who has done it
	Title     string             `json:"title,omitempty"`     // what it was meant to do
	Summary   string             `json:"summary,omitempty"`   // and how
	Conflicts []gitrepo.Conflict `json:"conflicts,omitempty"` // the files, with both differences
	Since     []Since            `json:"since,omitempty"`     // what came into the line since the work's base, the newest last: in the files that conflict, or in all
	Failed    team.TaskID        `json:"failed,omitempty"`    // whose check fails
	Output    string             `json:"output,omitempty"`    // of that check
	Reason    string             `json:"reason"`              // in one line
}

// Since is a commit of the line that returned work was not made on.
type Since struct {
	gitrepo.Entry
	Summary string `json:"summary,omitempty"` // what it was meant to do, at most 1 KiB
}

// Options are what a queue works with.
type Options struct {
	Site    *Site               // required
	Tasks   Tasks               // required
	Checker Checker             // required
	Process string              // names this queue in the lease; unique, required
	Recheck func() team.Recheck // as the team has it at the moment; default: always touched
	Lease   time.Duration       // default: [election.LeaseOn]
	Logger  *slog.Logger
	Metrics prometheus.Registerer // may be nil
}

// Queue merges what is submitted, in turn with the queues of other processes.
type Queue struct {
	o    Options
	m    metrics
	step func(ctx context.Context, name string) error // before each step; tests fail there
	wake chan struct{}

	mu      sync.Mutex
	head    Head                          // as last seen
	damage  error                         // why that cannot be read
	changed time.Time                     // when it was seen to change, by the monotonic clock
	entries map[team.TaskID]Entry         // as last seen
	trouble map[team.TaskID]*postponement // of entries that this host cannot merge now
	failed  postponement                  // of terms
}

// postponement is when something that failed is tried again.
type postponement struct {
	until time.Time
	tries int
	err   error // of the last try
}

func (p *postponement) again(err error) {
	p.err = err
	p.until = time.Now().Add(min(time.Second<<min(p.tries, 5), longestRest))
	p.tries++
}

// longestRest is how long an entry that one host cannot merge waits there at most.
const longestRest = 30 * time.Second

// NewQueue returns a queue. Error: InvalidArgument for what is missing in o.
func NewQueue(o Options) (*Queue, error) {
	if o.Site == nil || o.Tasks == nil || o.Checker == nil || o.Process == "" {
		return nil, team.Errorf(team.InvalidArgument, "a queue needs a site, tasks, a checker and the name of its process")
	}
	if o.Recheck == nil {
		o.Recheck = func() team.Recheck { return team.RecheckTouched }
	}
	o.Lease = cmp.Or(o.Lease, election.LeaseOn(o.Site.Records.bucket.Replicas()))
	o.Logger = telemetry.OrDiscard(o.Logger)
	return &Queue{
		o: o, m: newMetrics(o.Metrics), wake: make(chan struct{}, 1), step: func(ctx context.Context, _ string) error { return ctx.Err() },
		entries: map[team.TaskID]Entry{}, trouble: map[team.TaskID]*postponement{},
	}, nil
}

// Seen is the line's head as it was heard of last; "" if nothing was heard, or there is no line.
func (q *Queue) Seen() gitrepo.Hash {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head.Commit
}

// Run merges what is submitted until ctx ends, and then returns nil. It holds the lease only while
// something waits, so an idle line is not written.
func (q *Queue) Run(ctx context.Context) error {
	return shutdown.Together(ctx, q.watch, q.work)
}

// watch follows the line and what waits for it.
func (q *Queue) watch(ctx context.Context) error {
	return q.o.Site.Records.bucket.Watch(ctx, func(e broker.Entry) error {
		q.observe(e)
		select {
		case q.wake <- struct{}{}:
		default:
		}
		return nil
	}, nil, subject.KeyLine, subject.AllMerges)
}

func (q *Queue) observe(stored broker.Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if stored.Key == subject.KeyLine {
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

// work takes the lease whenever something waits that this queue can merge.
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

// note notes how a term has ended.
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

// idle is how long a queue waits that waits for nothing but news.
const idle = time.Hour

// turn reports whether it is for this queue to take the lease, and else how long to wait for that
// if nothing is heard meanwhile.
func (q *Queue) turn(ctx context.Context, now time.Time) (seen Head, ready bool, wait time.Duration) {
	next, any := q.first(ctx, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	_, open := q.openEntry()
	switch {
	case q.head.Revision == 0 || !any && !open:
		return q.head, false, idle
	case now.Before(q.failed.until):
		return q.head, false, q.failed.until.Sub(now)
	case q.head.Process != "" && now.Sub(q.changed) < q.o.Lease:
		return q.head, false, q.changed.Add(q.o.Lease).Sub(now)
	case !open && next.Task == "":
		return q.head, false, q.soonest(now)
	}
	return q.head, true, 0
}

// openEntry returns the entry of the task that was merged last, if it is still there: the task
// may not be completed yet.
func (q *Queue) openEntry() (Entry, bool) {
	e, ok := q.entries[q.head.Task]
	return e, ok && q.head.has(e.Task, e.Epoch)
}

// first returns the entry whose turn it is; Task is "" if those that there are have to wait. One
// that this process may not merge now it may later: whether it may can be in doubt.
func (q *Queue) first(ctx context.Context, now time.Time) (e Entry, any bool) {
	for _, e := range q.due(now) {
		any = true
		if e.Task != "" && q.o.Checker.Able(ctx, e) == nil { // asks the server, so not under the lock
			return e, true
		}
	}
	return Entry{}, any
}

// due lists what waits, in its order; in place of what this host tries again later is the zero
// Entry.
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

// inOrder orders entries by when the server has stored them.
func inOrder(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) }

// soonest returns when the next of the entries that have to wait may be tried.
func (q *Queue) soonest(now time.Time) time.Duration {
	wait := longestRest
	for _, t := range q.trouble {
		wait = min(wait, max(t.until.Sub(now), time.Millisecond))
	}
	return wait
}

// next returns the entry whose turn it is now.
func (q *Queue) next(ctx context.Context) (Entry, bool) {
	e, _ := q.first(ctx, time.Now())
	return e, e.Task != ""
}

// postpone notes that an entry could not be merged here, and is tried again later.
func (q *Queue) postpone(e Entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.trouble[e.Task] == nil {
		q.trouble[e.Task] = &postponement{}
	}
	q.trouble[e.Task].again(err)
}

// Trouble returns why this queue has not merged an entry that waits: tried reports that it has done so in vain, else
// it may not. It is nil if the entry waits for its turn, or another queue works: a check may take minutes.
// And it is nil if that is not known.
func (q *Queue) Trouble(ctx context.Context, e Entry) (why error, tried bool) {
	q.mu.Lock()
	now := time.Now()
	elsewhere := q.head.Process != "" && q.head.Process != q.o.Process && now.Sub(q.changed) < q.o.Lease
	if now.Before(q.failed.until.Add(longestRest)) { // else it was long ago: others have led since
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

// forget drops an entry that is not there any more, before that is heard.
func (q *Queue) forget(e Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.entries[e.Task].Revision <= e.Revision {
		delete(q.entries, e.Task)
	}
	delete(q.trouble, e.Task)
	q.count()
}

// count sets how many entries wait; q.mu is held.
func (q *Queue) count() {
	n := 0
	for _, e := range q.entries {
		if e.State != Withdrawn {
			n++
		}
	}
	q.m.waiting.Set(float64(n))
}
