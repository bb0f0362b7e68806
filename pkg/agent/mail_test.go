package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
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

func TestDuplicateDelivery(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("one", "two")
		r.start()
		r.post(3, team.UserAgent, team.MsgUser, "go")
		r.post(3, team.UserAgent, team.MsgUser, "go")
		r.post(2, team.UserAgent, team.MsgUser, "older")
		r.wantKinds("start mail turn end")
		if !slices.Equal(r.acked, []uint64{3, 3, 2}) {
			t.Errorf("acked %v: what came again must be acked too", r.acked)
		}
		r.post(4, team.UserAgent, team.MsgUser, "more")
		r.wantKinds("start mail turn end mail turn end")
	})
}

// A message is acknowledged only once it is in the journal.
func TestAckAfterRecord(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Journal = failing{journal.ErrSuperseded}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if err := <-r.ended; !errors.Is(err, journal.ErrSuperseded) || len(r.acked) != 0 {
			t.Errorf("Run = %v, acked %v", err, r.acked)
		}
		r.cancel = nil
	})
}

type failing struct{ err error }

func (f failing) Append(context.Context, journal.Record) (journal.Record, error) {
	return journal.Record{}, f.err
}

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
