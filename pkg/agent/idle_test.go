package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// idler starts an agent that leaves after ten minutes without work.
func idler(r *rig) {
	r.opts.Idle = 10 * time.Minute
	r.decide = nil
	r.start()
}

// gone reports whether the agent has left since it had no work.
func (r *rig) gone() bool {
	r.t.Helper()
	r.settle()
	select {
	case err := <-r.ended:
		var idle *Idled
		if !errors.As(err, &idle) || !errors.Is(err, ErrShutdown) {
			r.t.Errorf("Run = %v, want *Idled", err)
		}
		r.cancel = nil
		return true
	default:
		return false
	}
}

// An agent without work leaves after the time of its role, and the leader can read why. What comes
// in between begins the time again.
func TestLeavesIdle(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("well")
		idler(r)
		r.pass(9 * time.Minute)
		r.post(1, team.Leader, team.MsgMessage, "hello")
		r.pass(9 * time.Minute)
		if r.gone() {
			t.Fatal("it left although it had mail 9 minutes ago")
		}
		r.pass(2 * time.Minute)
		if !r.gone() {
			t.Fatal("it has not left")
		}
		last := r.sent[len(r.sent)-1]
		if last.Type != team.MsgIdle || last.To != team.Leader || !strings.Contains(last.Content, "no work for 10m0s (idle_timeout of role coder)") {
			t.Errorf("the leader is sent %+v", last)
		}
	})
}

// It stays while work is kept for it, and leaves once none is.
func TestStaysForWorkThatIsKept(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.team.expected.Store(true)
		idler(r)
		r.pass(25 * time.Minute)
		if r.gone() {
			t.Fatal("it left although a task is reserved for it")
		}
		r.team.expected.Store(false)
		r.pass(11 * time.Minute)
		if !r.gone() {
			t.Error("it has not left")
		}
	})
}

// A task that it has claimed in the moment of leaving is done first. Then it leaves, also if another one
// is kept for it by that time: it takes no task any more.
func TestLeavesAfterALastTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!complete")
		r.retires = func() {
			r.retires = nil
			r.given <- r.claim()
			r.team.expected.Store(true)
		}
		idler(r)
		r.pass(11 * time.Minute)
		if !r.gone() || r.task().Status != team.Completed {
			t.Errorf("it has not left; its task is %s", r.task().Status)
		}
		if looks := r.team.looks.Load(); looks != 1 {
			t.Errorf("it has looked %d times for what is kept for it", looks)
		}
	})
}

// It does not leave while it waits for an answer, or a leader at all.
func TestStaysWhileItWaits(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		idler(r)
		r.stop()
		r.cancel = nil
		r.agent.conv.Await = &team.Await{MessageID: "m9", From: team.UserAgent}
		if r.agent.idleEnds() != nil {
			t.Error("it leaves while it waits for a person")
		}
		r.agent.conv.Await = nil
		r.agent.o.Member.AgentID = team.Leader
		if r.agent.idleEnds() != nil {
			t.Error("a leader leaves")
		}
	})
}
