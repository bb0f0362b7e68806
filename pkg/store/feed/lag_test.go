package feed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
)

// lagging is a stream whose messages come only once the gate is open.
type lagging struct {
	stream
	gate  chan struct{}
	asked chan struct{} // a value for each question that was answered
}

func lag(s stream) *lagging { return &lagging{s, make(chan struct{}), make(chan struct{}, 1000)} }

func (l *lagging) Follow(ctx context.Context, after broker.Mark, f func(broker.Msg) error, caughtUp func(), filters ...string) error {
	return l.stream.Follow(ctx, after, func(m broker.Msg) error {
		select {
		case <-l.gate:
			return f(m)
		case <-ctx.Done():
			return ctx.Err()
		}
	}, caughtUp, filters...)
}

func (l *lagging) State(ctx context.Context) (broker.State, error) {
	s, err := l.stream.State(ctx)
	l.asked <- struct{}{}
	return s, err
}

// An entry waits for an older one that is on its way.
func TestWaitsForTheOlder(t *testing.T) {
	r := newRig(t)
	streams := streamsOf(r.bt)
	late := lag(streams[logs])
	streams[logs] = late
	f := r.follow(Options{}, streams)
	brokertest.Receive(t, "the state is asked for", late.asked) // at the start
	r.says("ann", "older")
	r.mails("ann", "leader", "younger")
	brokertest.Receive(t, "the state is asked for", late.asked) // since the mail has come
	close(late.gate)
	differs(t, "what was followed", tell(f.take(2)), []string{"ann TEXT_MESSAGE_CHUNK older", "ann MAIL_SENT younger"})
	f.end()
}

// It waits no longer than patience allows, and those behind it not anew. What was late
// comes all the same, and only once, and the cursor of each entry has all that was given
// before it.
func TestWaitsNoLonger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	streams := streamsOf(r.bt)
	late := lag(streams[logs])
	streams[logs] = late
	f := r.follow(Options{}, streams)
	brokertest.Receive(t, "the state is asked for", late.asked)
	r.says("ann", "late", "bash")
	begun := time.Now()
	const n = 100 // of which each would wait on its own for a quarter of a second
	var want []string
	for i := range n {
		text := fmt.Sprint("mail ", i)
		r.mails("ann", "leader", text)
		want = append(want, "ann MAIL_SENT "+text)
	}
	got := f.take(1)
	if took := time.Since(begun); took < patience {
		t.Errorf("it came after %v, while an older one was on its way", took)
	}
	got = append(got, f.take(n-1)...)
	if took := time.Since(begun); took > n*patience/2 {
		t.Errorf("%d entries took %v", n, took)
	}
	close(late.gate)
	want = append(want, "ann TEXT_MESSAGE_CHUNK late", "ann TOOL_CALL_CHUNK bash")
	got = append(got, f.take(2)...)
	differs(t, "what was followed", tell(got), want)
	f.end()

	var before Place
	whole := r.past(Options{})
	for i, e := range got {
		p, err := e.Cursor.Place("t")
		r.ok(err)
		for k := range p {
			if p[k].seq < before[k].seq {
				t.Errorf("the cursor of %s goes back in %v from %d to %d", told(e), kind(k), before[k].seq, p[k].seq)
			}
		}
		before = p
		given := got[:i+1]
		var missing []string // of the whole, in its order: given late or not, each once
		for _, w := range whole {
			if !slices.ContainsFunc(given, func(g Entry) bool { return reflect.DeepEqual(g.Event, w.Event) }) {
				missing = append(missing, told(w))
			}
		}
		differs(t, "what comes behind "+told(e), tell(r.past(Options{After: e.Cursor})), missing)
	}
}

// The past is waited for, however long it takes: it is the same for everybody.
func TestPastIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, follow := range []bool{false, true} {
		t.Run(fmt.Sprint("follow ", follow), func(t *testing.T) {
			r := newRig(t)
			r.says("ann", "older")
			r.mails("ann", "leader", "younger")
			streams := streamsOf(r.bt)
			late := lag(streams[logs])
			streams[logs] = late
			go func() {
				for range 3 { // at the start, and each time that patience was over
					select {
					case <-late.asked:
					case <-t.Context().Done():
					}
				}
				close(late.gate)
			}()
			var got []string
			enough := errors.New("enough")
			err := newMerge(r.bt, Options{Follow: follow}, streams, func(s Step) error {
				if got = append(got, told(s.Entry)); len(got) == 2 {
					return enough
				}
				return nil
			}).run(brokertest.Context(t))
			if !errors.Is(err, enough) {
				t.Error(err)
			}
			differs(t, "the past", got, []string{"ann TEXT_MESSAGE_CHUNK older", "ann MAIL_SENT younger"})
		})
	}
}

// A reader that takes its time keeps nobody from writing, and is told all, in order.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, next := make(chan Entry), make(chan struct{})
	go func() {
		_ = Read(ctx, r.bt, Options{Follow: true}, func(e Entry) error {
			read <- e
			<-next
			return nil
		})
		close(read)
	}()
	var want, got []string
	r.says("ann", "begin")
	want = append(want, "ann TEXT_MESSAGE_CHUNK begin")
	got = append(got, told(brokertest.Receive(t, "the feed begins", read)))
	for i := range 3 * queued { // more than is kept of a stream
		text := fmt.Sprint("text ", i)
		r.says("ann", text)
		want = append(want, "ann TEXT_MESSAGE_CHUNK "+text)
		if i%10 == 0 {
			r.mails("ann", "leader", text)
			want = append(want, "ann MAIL_SENT "+text)
		}
	}
	for len(got) < len(want) {
		brokertest.Send(t, "the feed continues", next, struct{}{})
		e, ok := <-read
		if !ok {
			t.Fatalf("the feed ended after %d entries of %d", len(got), len(want))
		}
		got = append(got, told(e))
	}
	differs(t, "what a slow reader was told", got, want)
}
