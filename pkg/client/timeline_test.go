package client_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// The timeline of a goal is read from what is stored, also once a next goal is worked on.
func TestTimeline(t *testing.T) {
	r := newRig(t)
	_, err := r.Goals().Timeline(t.Context(), 0)
	wantCode(t, "the timeline of a team that never had a goal", err, team.NotFound)
	if !strings.Contains(err.Error(), "no goal yet") {
		t.Errorf("the timeline of a team that never had a goal: %v", err)
	}
	r.start(t, "migrate")
	m := r.join(t)
	r.add(t, 2)
	log := runlog.New(r.bt, nil)
	log.Emit(t.Context(), team.Event{AgentID: m.AgentID, RunID: "r1", Event: team.EventBody{Type: team.RunStarted}})
	task, err := r.board.Claim(t.Context(), "T-001", m.Holder())
	if err == nil {
		_, err = r.board.Complete(t.Context(), "T-001", m.Holder(), task.Epoch, team.Done{Summary: "done"})
	}
	if err != nil {
		t.Fatal(err)
	}
	log.Emit(t.Context(), team.Event{AgentID: m.AgentID, RunID: "r1", Event: team.EventBody{Type: team.RunFinished}})
	if _, err := r.Board().Cancel(t.Context(), "T-002", "", ""); err != nil {
		t.Fatal(err)
	}
	got, err := r.Goals().Timeline(t.Context(), 0)
	if err != nil || got.Goal != 1 || !got.Whole || len(got.Lanes) != 1 || len(got.Tasks) != 1 || len(got.Critical) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if l := got.Lanes[0]; l.AgentID != m.AgentID || len(l.Spans) == 0 {
		t.Errorf("the lane is %+v", l)
	}
	if b := got.Tasks[0]; b.Task != "T-001" || b.AgentID != m.AgentID || b.Status != team.Completed || b.To.Before(b.From) {
		t.Errorf("the bar is %+v", b)
	}
	if c := got.Counts[len(got.Counts)-1]; c.Done != 1 || c.Failed != 0 || c.Cancelled != 1 {
		t.Errorf("the last count is %+v", c)
	}

	r.end(t, "migrated")
	r.start(t, "document")
	past, err := r.Goals().Timeline(t.Context(), 1)
	if err != nil || len(past.Tasks) != 1 || !past.To.Equal(*record(t, r.Team).PastGoals[0].EndedAt) {
		t.Errorf("once it has ended: %+v, %v", past, err)
	}
	if next, err := r.Goals().Timeline(t.Context(), 2); err != nil || len(next.Tasks) != 0 || next.Counts[len(next.Counts)-1].Done != 0 {
		t.Errorf("of the next goal: %+v, %v", next, err)
	}
	_, err = r.Goals().Timeline(t.Context(), 7)
	wantCode(t, "the timeline of a goal that never was", err, team.NotFound)
	goals, err := r.Goals().Ended(t.Context())
	if err != nil || len(goals) != 1 || goals[0].Summary != "migrated" || goals[0].Tasks == "" {
		t.Errorf("the goals that have ended: %+v, %v", goals, err)
	}
}

// worked is a goal of four tasks, of which the first one was worked on, and what works on another.
func worked(t *testing.T) (*rig, func(team.TaskID)) {
	t.Helper()
	r := newRig(t)
	r.start(t, "migrate")
	m := r.join(t)
	r.add(t, 4)
	log := runlog.New(r.bt, nil)
	work := func(id team.TaskID) {
		t.Helper()
		log.Emit(t.Context(), team.Event{AgentID: m.AgentID, RunID: string(id), Event: team.EventBody{Type: team.RunStarted}})
		task, err := r.board.Claim(t.Context(), id, m.Holder())
		if err == nil {
			_, err = r.board.Complete(t.Context(), id, m.Holder(), task.Epoch, team.Done{Summary: "done"})
		}
		if err != nil {
			t.Fatal(err)
		}
		log.Emit(t.Context(), team.Event{AgentID: m.AgentID, RunID: string(id), Event: team.EventBody{Type: team.RunFinished}})
	}
	work("T-001")
	return r, work
}

func (r *rig) timeline(t *testing.T) timeline.Timeline {
	t.Helper()
	got, err := r.Goals().Timeline(t.Context(), 0)
	if err != nil || len(got.Lanes) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	return got
}

// events is the stream of the team's runs.
func (r *rig) events(t *testing.T) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	js, err := jetstream.New(r.bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	name, _ := subject.Events("t")
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return js, s
}

// A next look at a goal reads only what has come since, and knows what was there before, also what
// was removed meanwhile. What was removed before any look had it is missing.
func TestTimelineAgain(t *testing.T) {
	r, work := worked(t)
	before := r.timeline(t)
	_, stream := r.events(t)
	purge := func() {
		t.Helper()
		if err := stream.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	purge()
	n := len(before.Lanes[0].Spans) - 1 // the last one is under way
	if again := r.timeline(t); !again.Whole || len(again.Lanes[0].Spans) <= n || !slices.Equal(again.Lanes[0].Spans[:n], before.Lanes[0].Spans[:n]) {
		t.Errorf("again it is %+v, was %+v", again.Lanes[0].Spans, before.Lanes[0].Spans)
	}
	work("T-002")
	if more := r.timeline(t); !more.Whole || len(more.Tasks) != 2 || len(more.Lanes[0].Spans) <= n+1 {
		t.Errorf("once more was done it is %+v", more)
	}
	work("T-003")
	purge()
	work("T-004")
	if more := r.timeline(t); more.Whole || len(more.Tasks) != 4 || !slices.Equal(more.Lanes[0].Spans[:n], before.Lanes[0].Spans[:n]) {
		t.Errorf("once some was removed that no look had it is %+v", more)
	}
}

// Where a stream was made anew, the goal is read from its beginning again.
func TestTimelineMadeAnew(t *testing.T) {
	r, work := worked(t)
	r.timeline(t)
	js, stream := r.events(t)
	cfg := stream.CachedInfo().Config
	if err := js.DeleteStream(t.Context(), cfg.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	work("T-002")
	if got := r.timeline(t); !got.Whole || len(got.Tasks) != 2 {
		t.Errorf("it is %+v", got)
	}
}

// wantFresh checks that a look has what a client has that reads all of the goal.
func (r *rig) wantFresh(t *testing.T, tasks int) {
	t.Helper()
	other, err := connect(t, r.client.Server()).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	want, err := other.Goals().Timeline(t.Context(), 0)
	if got := r.timeline(t); err != nil || len(got.Tasks) != tasks || !reflect.DeepEqual(got, want) {
		t.Errorf("it is\n%+v\nwant\n%+v, %v", got, want, err)
	}
}

// Several who look at a goal while it is worked on have what one has who reads it all.
func TestTimelineOfMany(t *testing.T) {
	r, work := worked(t)
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 5 {
				if _, err := r.Goals().Timeline(t.Context(), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work("T-002")
	work("T-003")
	g.Wait()
	r.end(t, "migrated")
	r.wantFresh(t, 3)
}

// A look that is given up in the middle of its reading leaves what it has read to the next one.
func TestTimelineGivenUp(t *testing.T) {
	r, work := worked(t)
	for _, id := range r.add(t, 50) {
		work(id.ID)
	}
	r.end(t, "migrated")
	err := context.Canceled
	for d := time.Millisecond; err != nil; d += d / 20 {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		_, err = r.Goals().Timeline(ctx, 0)
		cancel()
	}
	r.wantFresh(t, 51)
}
