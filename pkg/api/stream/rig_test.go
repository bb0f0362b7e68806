package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/client"
	"agentteam/pkg/model"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/tokenstream"
	"agentteam/pkg/team"
)

// rig is a team of which the test says what happens, and a hub that streams it.
type rig struct {
	t    testing.TB
	url  string
	hub  *Hub
	team *client.Team
	bt   *broker.Storage
	log  *journal.Journal
	live *tokenstream.Publisher

	metrics *prometheus.Registry // of all hubs
}

func newRig(t testing.TB) *rig { return rigAt(t, brokertest.Server(t)) }

func rigAt(t testing.TB, url string) *rig {
	t.Helper()
	r := &rig{t: t, url: url, metrics: prometheus.NewRegistry()}
	c, err := client.Connect(t.Context(), client.Options{URL: r.url})
	r.ok(err)
	t.Cleanup(c.Close)
	r.team, err = c.Make(t.Context(), client.NewTeam{ID: "t"})
	r.ok(err)
	r.bt, err = brokertest.Connect(t, r.url).Open(t.Context(), "t")
	r.ok(err)
	r.log, _, err = journal.Open(t.Context(), r.bt, "ann", 1, journal.Options{})
	r.ok(err)
	r.live = tokenstream.NewPublisher(r.bt)
	go r.live.Run(t.Context())
	r.hub = r.another()
	return r
}

// another is the hub of another process.
func (r *rig) another() *Hub {
	r.t.Helper()
	c, err := client.Connect(r.t.Context(), client.Options{URL: r.url})
	r.ok(err)
	h := New(c, HubOptions{Metrics: r.metrics})
	r.t.Cleanup(func() { h.Close(); c.Close() })
	return h
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// count is the value of a counter or a gauge.
func (r *rig) count(name string) (sum float64) {
	r.t.Helper()
	families, err := r.metrics.Gather()
	r.ok(err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// says stores a turn of ann and returns the id of its message.
func (r *rig) says(text string) string {
	r.t.Helper()
	turn, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", Content: text}})
	r.ok(err)
	rec, err := r.log.Append(r.t.Context(), journal.Record{Kind: journal.Turn, Turn: turn})
	r.ok(err)
	return rec.ID
}

// mails writes to the leader.
func (r *rig) mails(text string) {
	r.t.Helper()
	box := mailbox.New(r.bt, mailbox.Options{Members: roster.New(r.bt)})
	_, _, err := box.Send(r.t.Context(), team.Message{Type: team.MsgMessage, From: "ann", To: team.Leader, Content: text})
	r.ok(err)
}

// runs stores an event of the log.
func (r *rig) runs(a team.AgentID) {
	r.t.Helper()
	runlog.New(r.bt, nil).Emit(r.t.Context(), team.Event{AgentID: a, Event: team.EventBody{Type: team.RunStarted}})
}

// writes publishes a delta of ann.
func (r *rig) writes(message string, offset int, text string) {
	r.live.Publish(team.Delta{TeamID: "t", AgentID: "ann", Incarnation: 1, MessageID: message, Offset: offset, Text: text})
}

// past is the feed up to now, as everybody is told it in the end.
func (r *rig) past(o client.FeedOptions) (all []client.Entry) {
	r.t.Helper()
	r.ok(r.team.Feed(r.t.Context(), o, func(e client.Entry) error { all = append(all, e); return nil }))
	return all
}

// told is an item in a few words.
func told(i Item) string {
	if i.Delta != nil {
		return fmt.Sprintf("%s %d+%s", i.Delta.AgentID, i.Delta.Offset, i.Delta.Text)
	}
	b := i.Entry.Event.Event
	return fmt.Sprintf("%s %s %s", i.Entry.AgentID, b.Type, b.Delta)
}

// same tells two entries from all others, whoever read them.
func same(a, b client.Entry) bool {
	a.Cursor, b.Cursor = "", ""
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// reading is a stream as one reader is told it.
type reading struct {
	t     testing.TB
	items chan Item
	done  chan error
	stop  context.CancelFunc
}

func (r *rig) follow(h *Hub, o Options) *reading {
	ctx, stop := context.WithCancel(r.t.Context())
	o.Follow = true
	f := &reading{r.t, make(chan Item, 10_000), make(chan error, 1), stop}
	go func() {
		f.done <- h.Follow(ctx, "t", o, func(i Item) error { f.items <- i; return nil })
	}()
	return f
}

// take returns the next n items.
func (f *reading) take(n int) (all []Item) {
	f.t.Helper()
	for len(all) < n {
		select {
		case i := <-f.items:
			all = append(all, i)
		case err := <-f.done:
			f.t.Fatalf("the stream ended with %v after %q", err, tell(all))
		case <-time.After(brokertest.Longest):
			f.t.Fatalf("nothing comes after %q", tell(all))
		}
	}
	return all
}

// end has the reader leave, to whom nothing more has come.
func (f *reading) end() {
	f.t.Helper()
	f.stop()
	if err := brokertest.Receive(f.t, "the stream ends", f.done); err != nil {
		f.t.Errorf("a stream that its reader leaves ends with %v", err)
	}
	if len(f.items) > 0 {
		f.t.Errorf("then came %q", told(<-f.items))
	}
}

func tell(all []Item) (out []string) {
	for _, i := range all {
		out = append(out, told(i))
	}
	return out
}
