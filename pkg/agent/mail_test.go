package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Mail that comes during a run is seen at the next question, not after the run.
func TestMailDuringRun(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.mail <- mailbox.Delivery{Message: team.Message{ID: "m2", Type: team.MsgMessage, From: "coder-2", Content: "stop that"}, Seq: 2,
				Ack: func() { r.acked = append(r.acked, 2) }}
			return tool.Result{Content: "seen"}
		}
		r.says("!look", "stopped")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		r.wantKinds("start mail turn result mail turn end")
		last := r.asked[1].Messages
		if got := transcript(last[len(last)-2:]); !strings.HasPrefix(got, "tool call1-look: seen\nuser: <mail from=\"coder-2\"") {
			t.Errorf("the model was told\n%s", got)
		}
		if !slices.Equal(r.acked, []uint64{1, 2}) {
			t.Errorf("acked %v", r.acked)
		}
	})
}

// Of a text that its sender has stored, the block says where the whole is.
func TestStoredMail(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("read")
		r.start()
		d := delivery(1, team.MsgUser)
		d.Stored = "stored:abc"
		r.mail <- d
		synctest.Wait()
		if got := transcript(r.asked[0].Messages); !strings.Contains(got, `whole="stored:abc"`) || r.journal[1].Stored != "stored:abc" {
			t.Errorf("the model was told\n%s", got)
		}
	})
}

// What is recorded and comes again, since its acknowledgement got lost, is told to
// nobody. (What was never recorded comes before all that is newer: package broker.)
func TestDuplicateDelivery(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("one", "two", "three")
		r.start()
		r.post(2, team.UserAgent, team.MsgUser, "go")
		r.post(3, team.UserAgent, team.MsgUser, "go on")
		r.post(3, team.UserAgent, team.MsgUser, "go on")
		r.post(2, team.UserAgent, team.MsgUser, "go")
		r.wantKinds("start mail turn end mail turn end")
		if !slices.Equal(r.acked, []uint64{2, 3, 3, 2}) {
			t.Errorf("acked %v: what came again must be acked too", r.acked)
		}
		r.post(4, team.UserAgent, team.MsgUser, "more")
		r.wantKinds("start mail turn end mail turn end mail turn end")
	})
}

// A message is acknowledged only once it is in the journal.
func TestAckAfterRecord(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Journal = failing{team.ErrSuperseded}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if err := <-r.ended; !errors.Is(err, team.ErrSuperseded) || len(r.acked) != 0 {
			t.Errorf("Run = %v, acked %v", err, r.acked)
		}
		r.cancel = nil
	})
}

type failing struct{ err error }

func (f failing) Append(context.Context, journal.Record) (journal.Record, error) {
	return journal.Record{}, f.err
}

func (f failing) Enqueue(_ context.Context, r journal.Record) journal.Record { return r }
func (f failing) Flush() error                                               { return f.err }

func TestIdleNotificationWakesNobody(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("hello")
		r.start()
		r.post(1, "coder-2", team.MsgIdle, "coder-2 is idle")
		r.wantKinds("start mail")
		r.wantStates(team.Idle)
		r.post(2, "coder-2", team.MsgMessage, "hi")
		if got := r.asked[0].Messages[1].Content; !strings.Contains(got, "coder-2 is idle") || !strings.Contains(got, "hi") {
			t.Errorf("the model was told\n%s", got)
		}
	})
}

// A sender that had no answer for longer than the server remembers ids stores its
// message twice.
func TestMessageStoredTwice(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("read", "read the other")
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "hello")
		r.mail <- mailbox.Delivery{Message: team.Message{ID: "m1", Type: team.MsgMessage, From: "coder-2", To: "coder-1", Content: "hello"},
			Seq: 2, Ack: func() { r.acked = append(r.acked, 2) }}
		synctest.Wait()
		r.wantKinds("start mail turn end")
		if !slices.Equal(r.acked, []uint64{1, 2}) {
			t.Errorf("acknowledged %v", r.acked)
		}
		r.post(3, "coder-2", team.MsgMessage, "hello") // the same words, but another message
		r.wantKinds("start mail turn end mail turn end")
	})
}

// The mail was restored from an older copy: what is stored from then on has sequences that were
// read, and later times. Each is taken in once, also by a successor, and a request to shut down
// counts although an earlier membership has read its sequence.
func TestRestoredSequences(t *testing.T) {
	t.Run("lives", func(t *testing.T) { loop(t, func(t *testing.T, r *rig) { restoredSequences(t, r, false) }) })
	t.Run("has a successor", func(t *testing.T) { loop(t, func(t *testing.T, r *rig) { restoredSequences(t, r, true) }) })
}

func restoredSequences(t *testing.T, r *rig, successor bool) {
	r.opts.Member.ObeysFrom = 8
	begun := time.Now()
	post := func(seq uint64, after time.Duration, typ team.MessageType) {
		id := fmt.Sprintf("%d after %v", seq, after)
		r.mail <- mailbox.Delivery{Message: team.Message{ID: id, Type: typ, From: team.Leader, To: "coder-1", Content: id, RequestID: "r1"},
			Seq: seq, At: begun.Add(after), Ack: func() { r.acked = append(r.acked, seq) }}
		r.settle()
	}
	heard := func(want int) {
		t.Helper()
		if n := strings.Count(r.kinds(), "mail"); n != want {
			t.Errorf("%d messages are in the journal, want %d: %s", n, want, r.kinds())
		}
	}
	r.says("one", "two", "three", "four", "five")
	r.start()
	post(8, 1, team.MsgMessage)
	post(9, 2, team.MsgMessage)
	heard(2)
	post(8, 1, team.MsgMessage) // again
	heard(2)
	post(4, 3, team.MsgMessage) // restored up to 3
	heard(3)
	if got := r.agent.Taken(); got.Seq != 4 || r.beat.InboxSeq != 4 {
		t.Errorf("it is at %v, its heartbeat says %d", got, r.beat.InboxSeq)
	}
	post(4, 3, team.MsgMessage) // again
	heard(3)
	if successor {
		r.stop()
		r.opts.Member.Incarnation, r.opts.Member.ObeysFrom = 2, 5
		r.start()
		post(4, 3, team.MsgMessage)
		heard(3)
	}
	post(5, 4, team.MsgShutdownRequest)
	heard(4)
	select {
	case err := <-r.ended:
		if !errors.Is(err, ErrShutdown) {
			t.Errorf("Run = %v", err)
		}
	default:
		t.Error("the request is not obeyed")
		return
	}
	r.ended <- nil // for the rig
}

// A request to shut down is heard also while the model is away.
func TestShutdownWhileModelIsAway(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		for range 20 {
			r.refuses(model.TryAgain, model.Connection)
		}
		r.start()
		r.offer()
		r.post(1, "coder-2", team.MsgMessage, "hello")
		asked := len(r.asked)
		r.post(2, team.Leader, team.MsgShutdownRequest, "please stop")
		select {
		case err := <-r.ended:
			if !errors.Is(err, ErrShutdown) {
				t.Errorf("Run = %v", err)
			}
		default:
			t.Fatal("the agent goes on")
		}
		if len(r.asked) != asked {
			t.Errorf("the model was asked %d times more", len(r.asked)-asked)
		}
		if r.task().Status != team.Pending {
			t.Errorf("the task is %s", r.task().Status)
		}
		r.ended <- nil // for the rig
	})
}

// Mail that comes when the turns of a run are used up wakes the agent again.
func TestMailAtTurnLimit(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.MaxTurns = 1
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.tools["look"] = nil
			r.mail <- mailbox.Delivery{Message: team.Message{ID: "m2", Type: team.MsgMessage, From: "coder-2", To: "coder-1", Content: "the question"},
				Seq: 2, Ack: func() {}}
			return tool.Result{Content: "seen"}
		}
		r.says("!look", "the answer")
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "hello")
		r.wantKinds("start mail turn result end mail turn end")
	})
}

// What an endpoint answers is not fit for a record as it is.
func TestRefusalWithControlCharacters(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
			return model.Reply{}, &model.Refusal{Advice: model.Park, Reason: model.BadKey, Err: fmt.Errorf("401 \x1b[31m\xff%s", strings.Repeat("拒绝", 40_000))}
		})
		r.start()
		r.offer()
		if len(r.parked) != 1 || strings.Contains(r.parked[0], "\x1b") || len(r.parked[0]) > 4*maxCause || r.task().Status != team.Pending {
			t.Errorf("told %q; the task is %s", r.parked, r.task().Status)
		}
		r.wantStates(team.Idle, team.Running, team.WaitingModel)
	})
}
