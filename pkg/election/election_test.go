package election_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/election"
	"agentteam/pkg/subject"
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
func (r *race) register(id team.TeamID, s team.Status) {
	r.t.Helper()
	data, err := json.Marshal(team.Small{V: team.Protocol, ID: id, Status: s, Op: string(s)})
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
	if o.Registry == nil {
		o.Registry = r.registry(r.url)
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
		if err := <-done; err != nil {
			r.t.Errorf("%s: Run = %v", o.Process, err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// next is the next term that begins or, with ends, that ends.
func (r *race) next(ends bool) event {
	r.t.Helper()
	for e := range r.events {
		if (e.cause != nil) == ends {
			return e
		}
	}
	return event{}
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
	r := newRace(t)
	r.register("a", team.Active)
	p := newProxy(t, r.url)
	r.enter(election.Options{Process: "p1", Lease: time.Second, Registry: r.registry(p.url)})
	first := r.next(false)
	stop := r.enter(election.Options{Process: "p2", Lease: time.Second})
	p.set(false)
	if e := r.next(true); e.process != "p1" || !errors.Is(e.cause, election.ErrDeposed) {
		t.Errorf("the first end is that of %+v, want p1, deposed", e)
	}
	second := r.next(false)
	if second.process != "p2" || second.term <= first.term {
		t.Errorf("succeeded by %+v after term %d", second, first.term)
	}
	p.set(true)
	stop()
	if e := r.next(false); e.process != "p1" || e.term <= second.term {
		t.Errorf("back again: %+v after term %d", e, second.term)
	}
}

// One that was killed gives nothing back.
func TestKilled(t *testing.T) {
	r := newRace(t)
	r.register("a", team.Active)
	data, err := json.Marshal(team.Lead{Process: "killed", Incarnation: 7, N: 3})
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

// Whoever finds another's name in its lease ends its term at once.
func TestDeposed(t *testing.T) {
	r := newRace(t)
	r.register("a", team.Active)
	r.enter(election.Options{Process: "p1", Lease: long})
	first := r.next(false)
	e, err := r.bucket.Get(t.Context(), subject.KeyLead("a"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(team.Lead{Process: "usurper", Incarnation: first.term + 1, N: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bucket.Put(t.Context(), subject.KeyLead("a"), data, e.Revision); err != nil {
		t.Fatal(err)
	}
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

// proxy is a way to the server that can be closed and opened.
type proxy struct {
	url, server string

	mu    sync.Mutex
	open  bool
	conns []net.Conn
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "nats://" + l.Addr().String(), server: strings.TrimPrefix(server, "nats://"), open: true}
	t.Cleanup(func() { l.Close(); p.set(false) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := net.Dial("tcp", p.server)
	if err != nil || !p.open {
		c.Close()
		return
	}
	p.conns = append(p.conns, c, s)
	for _, pair := range [][2]net.Conn{{c, s}, {s, c}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			pair[0].Close()
		}()
	}
}

func (p *proxy) set(open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
	for _, c := range p.conns {
		if !open {
			c.Close()
		}
	}
}
