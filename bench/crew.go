package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// crew is a team without models: workers that claim and complete as fast as they are
// offered tasks, each on a connection of its own, and the index that offers. Beats,
// offers and hands are the product's.
type crew struct {
	id      team.TeamID
	conn    *broker.Conn // of whoever leads
	team    *broker.Storage
	board   *board.Board
	workers []*worker

	created int // tasks so far
	offers  atomic.Int64

	completed  atomic.Int64
	progressed chan struct{} // a task was completed
	stop       context.CancelFunc
	ended      chan error
}

// finished is a task that was completed: when it was claimed and how long that took.
type finished struct {
	task    team.TaskID
	claim   time.Duration
	claimed time.Time
	at      time.Time
}

// worker is a teammate without a model.
type worker struct {
	crew   *crew
	conn   *broker.Conn
	hand   *board.ClaimSlot
	heart  *roster.Heart
	lost   atomic.Int64
	offers chan team.Task
	done   []finished // in this pass; nobody else reads it while run runs

	value             []byte // of bare updates
	followed, ignored *bare
}

// bare is a bucket in which a worker makes bare updates: the team's, which the index
// follows as it does while the product works, or one that nobody reads.
type bare struct {
	kv        jetstream.KeyValue
	revisions []uint64
}

func newCrew(ctx context.Context, r *rig, name string, workers int) (*crew, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	t := &crew{id: team.TeamID(name), conn: conn, ended: make(chan error, 1), progressed: make(chan struct{}, 1)}
	if t.team, err = r.makeTeam(ctx, conn, t.id); err != nil {
		conn.Close()
		return nil, err
	}
	t.board = board.New(t.team.Bucket, board.Options{})
	ctx, t.stop = context.WithCancel(ctx)
	if err = t.lead(ctx); err == nil {
		err = t.hire(ctx, r, workers)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// lead starts the index, as the process does that leads a team.
func (t *crew) lead(ctx context.Context) error {
	x := index.New(index.Options{Team: t.team, Finish: t.board.FinishCreate, Send: func(to team.AgentID, task team.Task) error {
		t.offers.Add(1)
		return control.SendOffer(t.team, to, task)
	}})
	if _, err := roster.New(t.team).Listen(team.Everyone, x.Hear); err != nil { // ends with the connection
		return err
	}
	go func() { t.ended <- x.Run(ctx) }()
	go beatAsLeader(ctx, t.conn.NATS(), t.id)
	return nil
}

// beatAsLeader keeps idle teammates from taking the team for leaderless.
func beatAsLeader(ctx context.Context, nc *nats.Conn, id team.TeamID) {
	tick := time.NewTicker(roster.Interval)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		if data, err := json.Marshal(team.Heartbeat{AgentID: team.Leader, Incarnation: 1, N: n, State: team.Running}); err == nil {
			_ = nc.Publish(subject.Heartbeat(id, team.Leader), data)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// hire starts n workers.
func (t *crew) hire(ctx context.Context, r *rig, n int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	t.workers = make([]*worker, n)
	for i := range n {
		g.Go(func() (err error) {
			t.workers[i], err = t.newWorker(gctx, r, ctx, i)
			return err
		})
	}
	return g.Wait()
}

func (t *crew) newWorker(ctx context.Context, r *rig, life context.Context, n int) (*worker, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &worker{crew: t, conn: conn, offers: make(chan team.Task, 1)}
	if err := w.open(ctx, life, n); err != nil {
		conn.Close()
		return nil, err
	}
	return w, nil
}

func (w *worker) open(ctx, life context.Context, n int) error {
	bt, err := w.conn.Open(ctx, w.crew.id)
	if err != nil {
		return err
	}
	m := team.Member{AgentID: team.AgentID(fmt.Sprintf("coder-%d", n+1)), Role: "coder", Incarnation: 1, State: team.Joined}
	w.hand = board.NewClaimSlot(life, board.New(bt.Bucket, board.Options{}), m.Holder())
	w.heart = roster.NewHeart(roster.New(bt), m, team.DefaultLease)
	go func() { _ = w.heart.Run(life) }() // ends with life, and nothing that counts comes of it
	_, err = control.Serve(life, w.conn, control.Membership{Team: bt.ID, AgentID: m.AgentID, Role: m.Role}, control.Handlers{
		Offer: func(t team.Task) {
			select {
			case w.offers <- t:
			default: // it has one already
			}
		},
	})
	if err != nil {
		return err
	}
	js, err := jetstream.New(w.conn.NATS())
	if err != nil {
		return err
	}
	kv, err := js.KeyValue(ctx, subject.Bucket(bt.ID))
	if err != nil {
		return err
	}
	w.followed = &bare{kv: kv}
	status, err := kv.Status(ctx)
	if err != nil {
		return err
	}
	kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: subject.Bucket(bt.ID) + "-ignored", History: uint8(status.History())})
	w.ignored = &bare{kv: kv}
	return err
}

func (t *crew) close() {
	t.stop()
	<-t.ended
	t.forget()
	for _, w := range t.workers {
		if w != nil {
			w.conn.Close()
		}
	}
	t.conn.Close()
}

// forget drops what the server holds of the crew's tasks: it lives in this process, and
// what it remembers makes the collection of garbage dearer for who is measured next.
func (t *crew) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	js, err := jetstream.New(t.conn.NATS())
	if err != nil {
		return
	}
	for _, bucket := range []string{subject.Bucket(t.id), subject.Bucket(t.id) + "-ignored"} {
		_ = js.DeleteKeyValue(ctx, bucket) // it goes with the server at the latest
	}
}

// newTask is a task with a record of a usual size, for the role that the workers play.
var newTask = team.NewTask{Role: "coder", Title: "Migrate the orders API to GraphQL", Description: strings.Repeat("Read the handlers, write the resolvers. ", 8)}

// batch is how many tasks one call creates, where that matters to nobody.
const batch = 100

// fill creates n tasks, so many a call. depends, if not nil, says on which tasks the
// i-th of them depends.
func (t *crew) fill(ctx context.Context, n, call int, depends func(i int) []team.TaskID) error {
	for first := 0; first < n; first += call {
		if _, err := t.board.Create(ctx, team.Leader, t.tasks(first, min(n, first+call), depends)...); err != nil {
			return err
		}
	}
	t.created += n
	return nil
}

func (t *crew) tasks(from, to int, depends func(i int) []team.TaskID) []team.NewTask {
	all := make([]team.NewTask, 0, to-from)
	for i := from; i < to; i++ {
		n := newTask
		if depends != nil {
			n.Dependencies = depends(i)
		}
		all = append(all, n)
	}
	return all
}

// worked is what a pass of the whole path brought.
type worked struct {
	begun  time.Time
	took   time.Duration
	cpu    time.Duration // that all processes used meanwhile, the server included
	done   int
	lost   int // claims that somebody else won
	offers int
	claims []float64 // ms that each claim took
	tasks  []finished
}

func (w worked) rate() float64 { return float64(w.done) / w.took.Seconds() }

// work lets the workers work until they have completed n tasks. When it begins they
// are not idle, so nothing was offered before.
func (t *crew) work(ctx context.Context, n int) (worked, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	offers, lost := t.offers.Load(), t.lost()
	var left atomic.Int64
	left.Store(int64(n))
	over := make(chan struct{})
	runtime.GC() // no pass is to clear up after the one before, as in package testing
	begun, cpu := time.Now(), cpuTime()
	for _, w := range t.workers {
		w.done = w.done[:0]
		wg.Go(func() {
			w.run(ctx, func() {
				t.completed.Add(1)
				select {
				case t.progressed <- struct{}{}:
				default:
				}
				if left.Add(-1) == 0 {
					close(over)
				}
			})
		})
	}
	select {
	case <-over:
	case err := <-t.ended:
		t.ended <- err
		return worked{}, errors.Join(errors.New("the index has ended"), err)
	case <-ctx.Done():
		return worked{}, context.Cause(ctx)
	}
	res := worked{begun: begun, took: time.Since(begun), cpu: cpuTime() - cpu, done: n,
		offers: int(t.offers.Load() - offers), lost: int(t.lost() - lost)}
	cancel()
	wg.Wait()
	for _, w := range t.workers {
		res.tasks = append(res.tasks, w.done...)
	}
	slices.SortFunc(res.tasks, func(a, b finished) int { return a.at.Compare(b.at) })
	res.tasks = res.tasks[:n] // there may have been more to do
	for _, f := range res.tasks {
		res.claims = append(res.claims, milliseconds(f.claim))
	}
	return res, nil
}

func (t *crew) lost() (n int64) {
	for _, w := range t.workers {
		n += w.lost.Load()
	}
	return n
}

// run is a teammate's life without its model: it says that it is idle, is offered a
// task, claims it, says that it works, completes it. Each time it calls completed.
func (w *worker) run(ctx context.Context, completed func()) {
	defer w.beat(team.Running)
	w.beat(team.Idle)
	for {
		var task team.Task
		select {
		case <-ctx.Done():
			return
		case task = <-w.offers:
		}
		begun := time.Now()
		task, err := w.hand.Take(ctx, task)
		if err != nil {
			w.lost.Add(1)
			w.beat(team.Running)
			w.beat(team.Idle)
			continue
		}
		claimed := time.Now()
		w.beat(team.Running)
		if task, err = w.hand.Complete(ctx, task.ID, team.Done{Summary: "The resolvers are written and their tests pass."}); err != nil {
			return // the pass is over
		}
		at := time.Now()
		w.beat(team.Idle)
		w.done = append(w.done, finished{task.ID, claimed.Sub(begun), claimed, at})
		completed()
	}
}

// beat tells the team of the worker as an agent does.
func (w *worker) beat(state team.MemberState) {
	t, seq := w.hand.Now()
	w.heart.Set(func(b *team.Heartbeat) { b.State, b.Task, b.BoardSeq = state, t.ID, seq })
}

// bare lets the workers make two updates with known revisions for each of n tasks,
// with get a read from the stream's leader before them. It returns tasks a second
// and how long single updates took, in ms.
func (t *crew) bare(ctx context.Context, n int, get bool, where func(*worker) *bare) (rate float64, updates []float64, err error) {
	each := max(1, n/len(t.workers))
	var mu sync.Mutex
	for _, w := range t.workers {
		if err := w.prepare(ctx, where(w), each); err != nil {
			return 0, nil, err
		}
	}
	var left atomic.Int64 // for whoever is ready, as with tasks that are offered
	left.Store(int64(n))
	g, gctx := errgroup.WithContext(ctx)
	runtime.GC()
	begun := time.Now()
	for _, w := range t.workers {
		g.Go(func() error {
			took, err := w.update(gctx, where(w), &left, get)
			mu.Lock()
			defer mu.Unlock()
			updates = append(updates, took...)
			return err
		})
	}
	err = g.Wait()
	return float64(n) / time.Since(begun).Seconds(), updates, err
}

func followed(w *worker) *bare { return w.followed }
func ignored(w *worker) *bare  { return w.ignored }

// prepare makes sure that the worker has n keys of its own in b, with values.
func (w *worker) prepare(ctx context.Context, b *bare, n int) error {
	if w.value == nil {
		task, err := newTask.Task("T-001", team.Leader, time.Now().UTC()).Claim(w.hand.Holder(), time.Now().UTC())
		if err != nil {
			return err
		}
		task.Op = strings.Repeat("0", 26)
		if w.value, err = json.Marshal(task); err != nil {
			return err
		}
	}
	for i := len(b.revisions); i < n; i++ {
		rev, err := b.kv.Create(ctx, w.key(i), w.value)
		if err != nil {
			return err
		}
		b.revisions = append(b.revisions, rev)
	}
	return nil
}

func (w *worker) key(i int) string { return fmt.Sprintf("bench.%s.%d", w.hand.Holder().Agent, i) }

// update makes two updates at a time, of one key after another, until none is left.
func (w *worker) update(ctx context.Context, b *bare, left *atomic.Int64, get bool) (took []float64, err error) {
	for next := 0; left.Add(-1) >= 0; next++ {
		i := next % len(b.revisions)
		if get {
			if _, err := b.kv.Get(ctx, w.key(i)); err != nil {
				return took, err
			}
		}
		for range 2 {
			begun := time.Now()
			if b.revisions[i], err = b.kv.Update(ctx, w.key(i), w.value, b.revisions[i]); err != nil {
				return took, err
			}
			took = append(took, milliseconds(time.Since(begun)))
		}
	}
	return took, nil
}

// crowd is n teammates that are idle all the time, beating over one connection, and
// play a role that no task is for.
func (t *crew) crowd(ctx context.Context, r *rig, n int) (stop func(), err error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { beatAll(ctx, conn.NATS(), t.id, n) })
	return func() { cancel(); wg.Wait(); conn.Close() }, nil
}

func beatAll(ctx context.Context, nc *nats.Conn, id team.TeamID, n int) {
	tick := time.NewTicker(roster.Interval / time.Duration(n))
	defer tick.Stop()
	for i := 0; ; i++ {
		b := team.Heartbeat{AgentID: team.AgentID(fmt.Sprintf("reviewer-%d", i%n+1)), Incarnation: 1, N: uint64(i/n + 1), State: team.Idle, Role: "reviewer"}
		if data, err := json.Marshal(b); err == nil {
			_ = nc.Publish(subject.Heartbeat(id, b.AgentID), data)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
