package election_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/election"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// long is a lease that nobody in a test waits out.
const long = 10 * time.Minute

// event is the beginning of a term, or with a cause its end.
type event struct {
	process string
	team    team.TeamID
	term    uint64
	cause   error
}

// race is a number of electors for the teams of one server.
type race struct {
	t      *testing.T
	url    string
	bucket *broker.Bucket
	events chan event
}

func newRace(t *testing.T) *race {
	t.Helper()
	r := &race{t: t, url: brokertest.Server(t), events: make(chan event, 100)}
	r.bucket = r.registry(r.url)
	return r
}

func (r *race) registry(url string) *broker.Bucket {
	r.t.Helper()
	b, err := brokertest.Connect(r.t, url).Registry(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// register stores the small record of a team as package registry does.
func (r *race) register(id team.TeamID, s team.Status) { r.registerAt(id, s, "", 0) }

// registerAt is register of a team that works in a folder, for its goal of that number.
func (r *race) registerAt(id team.TeamID, s team.Status, folder string, goal int) {
	r.t.Helper()
	data, err := json.Marshal(team.Small{V: team.Protocol, ID: id, Status: s, Op: string(s), Workspace: folder, Goal: goal})
	if err != nil {
		r.t.Fatal(err)
	}
	var rev uint64
	if e, err := r.bucket.Get(r.t.Context(), subject.KeyRegistered(id)); err == nil {
		rev = e.Revision
	}
	if _, err := r.bucket.Put(r.t.Context(), subject.KeyRegistered(id), data, rev); err != nil {
		r.t.Fatal(err)
	}
}

// enter starts an elector, whose terms last until their context ends, and returns
// how to stop it in good order.
func (r *race) enter(o election.Options) (stop func()) {
	r.t.Helper()
	if o.Bucket == nil {
		o.Bucket = r.registry(r.url)
	}
	o.Lead = func(ctx context.Context, id team.TeamID, term uint64) error {
		r.events <- event{o.Process, id, term, nil}
		<-ctx.Done()
		r.events <- event{o.Process, id, term, context.Cause(ctx)}
		return nil
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- election.New(o).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := brokertest.Receive(r.t, "the elector ends", done); err != nil {
			r.t.Errorf("%s: Run = %v", o.Process, err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// next is the next term that begins or, with ends, that ends.
func (r *race) next(ends bool) event {
	r.t.Helper()
	for {
		if e := brokertest.Receive(r.t, "the next term begins or ends", r.events); (e.cause != nil) == ends {
			return e
		}
	}
}

func (r *race) holder(id team.TeamID) string {
	r.t.Helper()
	l, ok, err := election.Holder(r.t.Context(), r.bucket, id)
	if err != nil {
		r.t.Fatal(err)
	}
	if !ok {
		return "nobody"
	}
	return fmt.Sprintf("%s in term %d", l.Process, l.Incarnation)
}

// One of three leads. The lease outlasts the test, so whoever follows a leader
// that stops in good order does so because the lease was given back.
func TestHandOver(t *testing.T) {
	r := newRace(t)
	if got := r.holder("a"); got != "nobody" {
		t.Errorf("led by %s before anybody campaigned", got)
	}
	r.register("a", team.Active)
	stop := map[string]func(){}
	for _, p := range []string{"p1", "p2", "p3"} {
		stop[p] = r.enter(election.Options{Process: p, Lease: long})
	}
	led := map[string]bool{}
	for term := uint64(1); term <= 3; term++ {
		e := r.next(false)
		if e.team != "a" || e.term != term || led[e.process] {
			t.Errorf("term %d: %+v, after %v", term, e, led)
		}
		if got, want := r.holder("a"), fmt.Sprintf("%s in term %d", e.process, term); got != want {
			t.Errorf("the lease is held by %s, want %s", got, want)
		}
		led[e.process] = true
		stop[e.process]()
	}
	if got := r.holder("a"); got != "nobody" {
		t.Errorf("led by %s after all have stopped", got)
	}
	if n := len(r.events); n != 1 { // the end of the last term
		t.Errorf("%d more events", n-1)
	}
}

// A leader that is cut off is succeeded once its lease has run out, knows by itself
// that it was deposed, and takes part again when it is back.
func TestCutOff(t *testing.T) {
	t.Parallel()
	r := newRace(t)
	r.register("a", team.Active)
	p := brokertest.NewProxy(t, r.url)
	r.enter(election.Options{Process: "p1", Lease: time.Second, Bucket: r.registry(p.URL)})
	first := r.next(false)
	stop := r.enter(election.Options{Process: "p2", Lease: time.Second})
	p.Close()
	if e := r.next(true); e.process != "p1" || !errors.Is(e.cause, election.ErrDeposed) {
		t.Errorf("the first end is that of %+v, want p1, deposed", e)
	}
	second := r.next(false)
	if second.process != "p2" || second.term <= first.term {
		t.Errorf("succeeded by %+v after term %d", second, first.term)
	}
	p.Open()
	stop()
	if e := r.next(false); e.process != "p1" || e.term <= second.term {
		t.Errorf("back again: %+v after term %d", e, second.term)
	}
}

// A lease whose taking is answered only when it may have run out is not held: it
// runs out, and the next term begins.
func TestTakenLate(t *testing.T) {
	t.Parallel()
	const lease = 600 * time.Millisecond
	r := newRace(t)
	r.register("a", team.Active)
	p := brokertest.NewProxy(t, r.url)
	r.enter(election.Options{Process: "p1", Lease: lease, Bucket: r.registry(p.URL)})
	first := r.next(false)
	r.usurp("a", first.term+1)
	r.next(true) // so it has seen the usurper, whose lease will run out
	taken := p.Swallow(fmt.Sprintf(`"incarnation":%d`, first.term+2))
	brokertest.Receive(t, "the feed shows the next lease", taken) // as the feed says
	<-time.After(lease)
	p.Close()
	p.Open()
	if e := r.next(false); e.term != first.term+3 {
		t.Errorf("leads in term %d after term %d and the usurper's; want %d", e.term, first.term, first.term+3)
	}
}

// usurp writes another's name into the lease.
func (r *race) usurp(id team.TeamID, term uint64) {
	r.t.Helper()
	data, err := json.Marshal(team.Lease{Process: "usurper", Incarnation: term, N: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		e, err := r.bucket.Get(r.t.Context(), subject.KeyLead(id))
		if err != nil {
			r.t.Fatal(err)
		}
		_, err = r.bucket.Put(r.t.Context(), subject.KeyLead(id), data, e.Revision)
		if err == nil {
			return
		}
		if !errors.Is(err, team.Conflict) { // with a renewal
			r.t.Fatal(err)
		}
	}
}

// One that was killed gives nothing back.
func TestKilled(t *testing.T) {
	r := newRace(t)
	r.register("a", team.Active)
	data, err := json.Marshal(team.Lease{Process: "killed", Incarnation: 7, N: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bucket.Put(t.Context(), subject.KeyLead("a"), data, 0); err != nil {
		t.Fatal(err)
	}
	r.enter(election.Options{Process: "p1", Lease: 100 * time.Millisecond})
	if e := r.next(false); e.term != 8 {
		t.Errorf("its successor leads in term %d, want 8", e.term)
	}
}

// Who held the lease in an earlier embedded cluster ended with it: nobody waits for its
// lease to run out.
func TestEndedWithItsCluster(t *testing.T) {
	t.Parallel()
	r := newRace(t)
	r.register("a", team.Active)
	data, err := json.Marshal(team.Lease{Process: "killed", Cluster: "before", Incarnation: 7, N: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bucket.Put(t.Context(), subject.KeyLead("a"), data, 0); err != nil {
		t.Fatal(err)
	}
	r.enter(election.Options{Process: "p1", Cluster: "now", Lease: time.Hour})
	if e := r.next(false); e.term != 8 {
		t.Errorf("its successor leads in term %d, want 8", e.term)
	}
}

// Whoever finds another's name in its lease ends its term at once.
func TestDeposed(t *testing.T) {
	r := newRace(t)
	r.register("a", team.Active)
	r.enter(election.Options{Process: "p1", Lease: long})
	first := r.next(false)
	r.usurp("a", first.term+1)
	if end := r.next(true); !errors.Is(end.cause, election.ErrDeposed) {
		t.Errorf("the term ended with %v, want ErrDeposed", end.cause)
	}
	if got := r.holder("a"); !strings.HasPrefix(got, "usurper") {
		t.Errorf("the lease is held by %s", got)
	}
}

// Only active teams are led, and of those only the one that was named, if one was.
func TestWhichTeams(t *testing.T) {
	r := newRace(t)
	r.register("finished", team.TeamFinished)
	r.register("other", team.Active)
	r.register("mine", team.Active)
	r.enter(election.Options{Process: "p1", Lease: long, Only: "mine"})
	if e := r.next(false); e.team != "mine" {
		t.Errorf("leads %s", e.team)
	}
	r.enter(election.Options{Process: "p2", Lease: long})
	if e := r.next(false); e.team != "other" || e.process != "p2" {
		t.Errorf("%s leads %s", e.process, e.team)
	}
	if got := r.holder("finished"); got != "nobody" {
		t.Errorf("a finished team is led by %s", got)
	}
	r.register("finished", team.Active)
	if e := r.next(false); e.team != "finished" || e.process != "p2" {
		t.Errorf("%s leads %s, which became active", e.process, e.team)
	}
}

// rests hands on the rests that are logged.
type rests struct {
	slog.Handler
	rests chan time.Duration
}

func (r rests) Handle(_ context.Context, rec slog.Record) error {
	rec.Attrs(func(a slog.Attr) bool {
		if a.Key == "rest" {
			r.rests <- a.Value.Duration()
		}
		return true
	})
	return nil
}

// A team that cannot be led is tried again more and more rarely.
func TestFailedTerms(t *testing.T) {
	t.Parallel()
	r := newRace(t)
	r.register("t", team.Active)
	const lease = 3 * time.Second // a term that lasts so long begins the rests anew
	begun, logged := make(chan time.Time, 100), make(chan time.Duration, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- election.New(election.Options{Bucket: r.registry(r.url), Process: "a", Lease: lease, Logger: slog.New(rests{slog.NewTextHandler(io.Discard, nil), logged}),
			Lead: func(context.Context, team.TeamID, uint64) error {
				begun <- time.Now()
				return errors.New("its record cannot be read")
			}}).Run(ctx)
	}()
	last := brokertest.Receive(t, "a term begins", begun)
	for _, want := range []time.Duration{lease / 5, lease * 2 / 5} {
		if rest := brokertest.Receive(t, "the wait is logged", logged); rest != want {
			t.Errorf("it rests %v, want %v", rest, want)
		}
		now := brokertest.Receive(t, "a term begins", begun)
		if got := now.Sub(last); got < want {
			t.Errorf("tried again after %v, want %v at least", got, want)
		}
		last = now
	}
	if rest, want := brokertest.Receive(t, "the wait is logged", logged), lease*4/5; rest != want {
		t.Errorf("it rests %v, want %v", rest, want)
	}
	cancel()
	if err := brokertest.Receive(t, "the elector ends", done); err != nil {
		t.Error(err)
	}
}

// A team that cannot be led is tried again at once when it is given another folder or goal, also
// while a term is about to fail in the old one.
func TestFailedTermsElsewhere(t *testing.T) {
	t.Parallel()
	r := newRace(t)
	r.registerAt("t", team.Active, "/a", 0)
	begun, fail := make(chan struct{}), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- election.New(election.Options{Bucket: r.registry(r.url), Process: "a", Lease: time.Hour, // a fifth of which it would rest
			Lead: func(context.Context, team.TeamID, uint64) error {
				begun <- struct{}{}
				return <-fail
			}}).Run(ctx)
	}()
	brokertest.Receive(t, "a term begins", begun)
	brokertest.Send(t, "the term waits for its end", fail, errors.New("there is no such folder"))
	r.registerAt("t", team.Active, "/b", 0)
	brokertest.Receive(t, "a term begins", begun)
	brokertest.Send(t, "the term waits for its end", fail, errors.New("there is no such folder"))
	r.registerAt("t", team.Active, "/b", 1)
	brokertest.Receive(t, "a term begins", begun)
	r.registerAt("t", team.Active, "/c", 1)
	r.registerAt("u", team.Active, "", 0) // which comes after that
	brokertest.Receive(t, "a term begins", begun)
	for range 2 {
		brokertest.Send(t, "the term waits for its end", fail, errors.New("there is no such folder"))
	}
	brokertest.Receive(t, "a term begins", begun)
	close(fail)
	cancel()
	if err := brokertest.Receive(t, "the elector ends", done); err != nil {
		t.Error(err)
	}
}

// The lease outlasts the election of a new stream leader where the registry is
// replicated: some 6 s, within two thirds of it with time for a second try.
func TestLeaseOn(t *testing.T) {
	for replicas, want := range map[int]time.Duration{1: 10 * time.Second, 3: 25 * time.Second, 5: 25 * time.Second} {
		if got := election.LeaseOn(replicas); got != want {
			t.Errorf("with %d replicas the lease is %v, want %v", replicas, got, want)
		}
	}
}

// While a lease is overdue the process prepares for leading, and until its term ends. It does not
// while the holder rewrites its lease, and stops when another takes it.
func TestOverdue(t *testing.T) {
	r := newRace(t)
	r.register("a", team.Active)
	put := func(holder string, n, rev uint64) uint64 {
		t.Helper()
		data, err := json.Marshal(team.Lease{Process: holder, Incarnation: n, N: n})
		if err == nil {
			rev, err = r.bucket.Put(t.Context(), subject.KeyLead("a"), data, rev)
		}
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	rev := put("killed", 1, 0)
	begun, ended := make(chan team.TeamID, 10), make(chan team.TeamID, 10)
	stop := r.enter(election.Options{Process: "p1", Lease: 2 * time.Second, Overdue: func(ctx context.Context, id team.TeamID) {
		begun <- id
		<-ctx.Done()
		ended <- id
	}})
	brokertest.Receive(t, "the lease is overdue", begun)
	put("alive", 2, rev)
	brokertest.Receive(t, "the lease was rewritten", ended)
	brokertest.Receive(t, "the lease is overdue again", begun)
	r.next(false)
	select {
	case <-ended:
		t.Error("it ended with the beginning of the term")
	default:
	}
	stop()
	brokertest.Receive(t, "the term has ended", ended)
}
