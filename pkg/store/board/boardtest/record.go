package boardtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Recorder passes every write of a bucket to a Judge as it is made: the bucket keeps only the last writes of each key.
type Recorder struct {
	bucket *broker.Bucket

	mu    sync.Mutex
	judge Judge
	err   error         // why the feed has ended
	moved chan struct{} // has an element after a change of judge or err
}

// Record watches a bucket, before the first write to it, until the test ends. It continues automatically after restarts
// of the server.
func Record(t testing.TB, b *broker.Bucket) *Recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{bucket: b, moved: make(chan struct{}, 1)}
	var done sync.WaitGroup
	done.Go(func() {
		err := b.Changes(ctx, 1, func(e broker.Entry) error {
			r.change(func() { r.judge.See(e) })
			return nil
		}, nil, ">")
		r.change(func() { r.err = err })
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return r
}

// KeepAll makes the team's bucket keep every write. On a cluster whose servers are killed a feed may be seconds behind
// the writers, and would miss the writes that the bucket no longer keeps.
func KeepAll(t testing.TB, bt *broker.Storage) {
	t.Helper()
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_"+subject.Bucket(bt.ID))
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxMsgsPerSubject = 1 << 20
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func (r *Recorder) change(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// Acknowledged adds a write that the board acknowledged as stored.
func (r *Recorder) Acknowledged(a Ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judge.Acknowledged(a)
}

// patience is the longest time without a write in the feed although more are stored.
const patience = time.Minute

// Judge waits until it has seen all writes stored now. It reports each violation, and each lost acknowledged write, as an
// error of the test, and returns the number of tasks with each status.
func (r *Recorder) Judge(t testing.TB, acked ...Ack) map[team.TaskStatus]int {
	t.Helper()
	end, err := r.bucket.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for {
		r.mu.Lock()
		seen, err := r.judge.Last(), r.err
		r.mu.Unlock()
		if seen >= end {
			break
		}
		select {
		case <-r.moved:
		case <-time.After(patience):
			t.Fatalf("the feed stands still at revision %d of %d (%v)", seen, end, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range acked {
		r.judge.Acknowledged(a)
	}
	for _, v := range r.judge.Verdict() {
		t.Error(v)
	}
	return r.judge.Count()
}
