package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/cluster/process"
	"agentteam/pkg/execenv"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// rig is a term without its membership: the test is the leader's agent.
type rig struct {
	*term
	registry *registry.Registry
	person   *client.Team
	seen     atomic.Uint64 // sequence of the last message that the model has seen
}

func newRig(t *testing.T, url string) *rig {
	t.Helper()
	conn := brokertest.Connect(t, url)
	r := &rig{}
	var err error
	if r.registry, err = registry.Open(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	person, err := client.Connect(t.Context(), client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(person.Close)
	if r.person, err = person.Make(t.Context(), client.NewTeam{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	bt, err := conn.Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{Process: &process.Process{Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry(),
		Workspaces: execenv.New(execenv.Options{Sandbox: team.Unconfined})}, registry: r.registry}
	r.term = l.newTerm(bt, team.Member{AgentID: team.Leader, Incarnation: 1}, context.Background(), nil)
	stop, err := control.Serve(t.Context(), conn, control.Membership{Team: "t", AgentID: team.Leader}, control.Handlers{
		Ping: func() team.Heartbeat {
			return team.Heartbeat{AgentID: team.Leader, Incarnation: 1, InboxSeq: r.seen.Load()}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return r
}

func (r *rig) goal(t *testing.T, text string) *client.Goal {
	t.Helper()
	g, err := r.person.Goals().Start(t.Context(), text, "")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// read lets the model see all mail that there is.
func (r *rig) read(t *testing.T) uint64 {
	t.Helper()
	last, err := r.team.Messages.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.seen.Store(last)
	return last
}

func (r *rig) record(t *testing.T) team.Team {
	t.Helper()
	record, err := registry.Record(t.Context(), r.team)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// Mail that the model has not seen refuses an end: for as long as it has not seen
// what was there when it was told, and again if a goal came since.
func TestFinishWithUnseenMail(t *testing.T) {
	r := newRig(t, brokertest.Server(t))
	ctx := t.Context()
	finish := func(what string, want team.Code) {
		t.Helper()
		if err := r.Finish(ctx, "done", nil); team.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %q", what, err, want)
		}
	}
	say := func() {
		t.Helper()
		if _, _, err := r.mailbox.Send(ctx, team.Message{Type: team.MsgMessage, From: "coder-1", To: team.Leader, Content: "看 🚀"}); err != nil {
			t.Fatal(err)
		}
	}
	r.goal(t, "first")
	finish("with the goal unseen", team.Conflict)
	finish("called twice in one turn", team.Conflict)
	r.read(t)
	say()
	r.goal(t, "and more")
	finish("with another goal unseen", team.Conflict)
	r.read(t)
	say()
	if err := r.End(ctx, team.TeamFailed, ""); team.CodeOf(err) != team.Conflict {
		t.Errorf("the watchdog's end with mail unseen: %v, want conflict", err)
	}
	if record := r.record(t); record.Status != team.Active {
		t.Fatalf("the team is %s", record.Status)
	}
	r.read(t)
	consents := true // asks for nothing, as the mail of a member that leaves does
	if _, _, err := r.mailbox.Send(ctx, team.Message{Type: team.MsgShutdownResponse, From: "coder-1", To: team.Leader, RequestID: "r", Approve: &consents}); err != nil {
		t.Fatal(err)
	}
	if n, _, _, err := r.unseen(ctx); n != 0 || err != nil {
		t.Errorf("the consent of a member to leave counts as %d unread messages, %v", n, err)
	}
	say() // came after the refusal: "refused once"
	finish("with mail that came after the refusal", "")
	if record := r.record(t); record.Status != team.TeamFinished || record.Summary != "done" {
		t.Errorf("the team is %s: %q", record.Status, record.Summary)
	}
}

// An end closes the board, whoever asks for it; a goal that has failed leaves its
// tasks as they are.
func TestEndClosesTheBoard(t *testing.T) {
	for status, open := range map[team.Status]bool{team.TeamFinished: false, team.TeamFailed: true} {
		t.Run(string(status), func(t *testing.T) {
			r := newRig(t, brokertest.Server(t))
			ctx := t.Context()
			r.goal(t, "go")
			r.read(t)
			if open {
				if _, err := r.board.Create(ctx, team.Leader, team.NewTask{Title: "open"}); err != nil {
					t.Fatal(err)
				}
				if err := r.End(ctx, team.TeamFinished, ""); team.CodeOf(err) != team.InvalidState {
					t.Errorf("finished with an open task: %v, want invalid_state", err)
				}
			}
			if err := r.End(ctx, status, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := r.board.Create(ctx, "coder-1", team.NewTask{Title: "too late"}); team.CodeOf(err) != team.InvalidState {
				t.Errorf("a task after the end: %v, want invalid_state", err)
			}
			all, err := r.board.All(ctx)
			if err != nil || open != (len(all) == 1) || open && all[0].Status != team.Pending {
				t.Errorf("the board: %+v, %v", all, err)
			}
		})
	}
}

// A goal that is set at the moment at which the one before ends is never swallowed:
// either it is the team's next goal, or the leader has seen it before the end.
func TestGoalAgainstEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, brokertest.Server(t))
	ctx := t.Context()
	mailed := 0
	for round := range 150 {
		if r.goal(t, fmt.Sprint("goal ", round)); r.record(t).Status != team.Active {
			t.Fatal("the team is not active")
		}
		r.read(t)
		var g *client.Goal
		var sent uint64
		var wg sync.WaitGroup
		wg.Go(func() {
			// The race at each of its points.
			for begun := time.Now(); time.Since(begun) < time.Duration(round%15)*100*time.Microsecond; {
				runtime.Gosched()
			}
			var err error
			if g, err = r.person.Goals().Start(ctx, "late", ""); err != nil {
				t.Error(err)
			}
			if sent, err = r.team.Messages.LastSeq(ctx); err != nil {
				t.Error(err)
			}
		})
		var atEnd uint64
		for late := time.Now().Add(brokertest.Longest); ; {
			atEnd = r.seen.Load()
			err := r.Finish(ctx, "done", nil)
			if err == nil {
				break
			}
			if !errors.Is(err, team.Conflict) || time.Now().After(late) {
				t.Fatal(err)
			}
			r.read(t)
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		record := r.record(t)
		if g.Started() {
			if record.Status != team.Active || record.Goal != "late" {
				t.Fatalf("round %d: the next goal was started, and the team is %s with goal %q", round, record.Status, record.Goal)
			}
			if _, err := r.registry.End(ctx, r.team, team.Ending{Status: team.TeamStopped}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mailed++
		if record.Status != team.TeamFinished || atEnd < sent {
			t.Fatalf("round %d: the team is %s, and its leader has seen %d of %d messages: the goal is lost", round, record.Status, atEnd, sent)
		}
	}
	t.Logf("%d of 150 goals were mail to the leader", mailed)
}

// With NATS away the end of a goal does not outlast its term by more than a moment.
func TestEndWhileServerIsAway(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	r := newRig(t, srv.URL())
	ctx, cancel := context.WithCancel(t.Context())
	bye, done := shutdown.Outlive(ctx, 100*time.Millisecond)
	defer done()
	r.bye = bye
	revision := r.record(t).Revision
	srv.Shutdown()
	ended := make(chan error, 2)
	go func() { ended <- r.Finish(ctx, "done", nil) }()
	go func() { // past the point at which a call of finish_team can be interrupted
		_, err := r.registry.EndAt(r.bye, r.team, revision, team.Ending{Status: team.TeamFinished, Summary: "done"})
		ended <- err
	}()
	cancel()
	for range 2 {
		select {
		case err := <-ended:
			if team.CodeOf(err) != team.Unavailable {
				t.Errorf("%v, want unavailable", err)
			}
		case <-time.After(brokertest.Longest):
			t.Fatal("the end hangs")
		}
	}
	if err := r.leave(); team.CodeOf(err) != team.Unavailable {
		t.Errorf("leave: %v, want unavailable", err)
	}
}

// With NATS away, a spawn that is cut off is not taken back for longer than the term
// has left.
func TestSpawnWhileServerIsAway(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	r := newRig(t, srv.URL())
	person, err := client.Connect(t.Context(), client.Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(person.Close)
	if _, err := person.Make(t.Context(), client.NewTeam{ID: "t", Roles: map[string]team.Role{"coder": {Name: "coder"}}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bye, done := shutdown.Outlive(ctx, 100*time.Millisecond)
	defer done()
	r.bye = bye
	ended := make(chan error, 1)
	go func() {
		_, err := r.Spawn(ctx, team.Member{AgentID: "coder-1", Role: "coder"})
		ended <- err
	}()
	begun := errors.New("begun")
	err = r.team.Bucket.Watch(brokertest.Context(t), func(broker.Entry) error { return begun }, nil, subject.KeyMember("coder-1"))
	if !errors.Is(err, begun) {
		t.Fatal(err)
	}
	srv.Shutdown()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the spawn ended with %v", err)
		}
	case <-time.After(brokertest.Longest):
		t.Error("the spawn hangs on taking its member back")
	}
	r.settle()
}
