package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// awaits makes the tool ask send a message whose answer the agent waits for.
func (r *rig) awaits(from team.AgentID) {
	r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
		return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: from, Until: time.Now().Add(10 * time.Minute)}}}
	}
}

func TestAwaitReply(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.awaits("coder-2")
		r.says("!ask", "not from you", "!ask", "done")
		r.start()
		r.offer()
		r.wantStates(team.Idle, team.Running, team.WaitingAnswer)
		if r.task().Status != team.InProgress || !strings.Contains(r.sent[0].Content, "waits for an answer from coder-2") {
			t.Errorf("the task is %s; sent %+v", r.task().Status, r.sent)
		}
		select {
		case r.offers <- r.task():
			t.Error("took an offer while it waits with its task")
		default:
		}
		r.post(1, "coder-3", team.MsgMessage, "by the way")
		if r.beat.State != team.WaitingAnswer {
			t.Errorf("after mail of somebody else: %s", r.beat.State)
		}
		r.post(2, "coder-2", team.MsgMessage, "the answer")
		if r.beat.State != team.WaitingAnswer || len(r.asked) != 3 {
			t.Errorf("after the answer it asked again: %s after %d questions", r.beat.State, len(r.asked))
		}
		r.complete("done") // so that it may go idle
		r.post(3, "coder-2", team.MsgMessage, "the other answer")
		if r.beat.State != team.Idle {
			t.Errorf("after the second answer: %s", r.beat.State)
		}
	})
}

// The leader has the question that the agent waits with, and gets no notice besides. It gets
// one of what came of a task before.
func TestAwaitLeader(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.awaits(team.Leader)
		r.says("!ask")
		r.start()
		r.offer()
		r.wantStates(team.Idle, team.Running, team.WaitingAnswer)
		if len(r.sent) != 0 {
			t.Errorf("the leader was sent %+v", r.sent)
		}
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result {
			result := r.complete("done")
			r.next(team.Task{ID: "T-002", Title: "Next", Status: team.Pending})
			r.claim()
			return result
		}
		r.says("!complete", "!ask")
		r.post(1, team.Leader, team.MsgMessage, "do it")
		if len(r.sent) != 1 || !strings.Contains(r.sent[0].Content, "T-001 (Count) completed: done\n") {
			t.Errorf("the leader was sent %+v", r.sent)
		}
	})
}

// A person takes as long as it takes, and may answer under the name of their seat or as
// the user.
func TestAwaitPerson(t *testing.T) {
	for _, answers := range []team.AgentID{"ann", team.UserAgent} {
		t.Run(string(answers), func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
					return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: "ann", MessageID: "q1"}}}
				}
				r.says("!ask", "thank you", "done", "done", "done")
				r.start()
				r.offer()
				r.pass(100 * time.Hour)
				r.wantStates(team.Idle, team.Running, team.WaitingUser)
				if len(r.asked) != 1 || r.task().Status != team.InProgress {
					t.Errorf("the model was asked %d times while a person was waited for; the task is %s", len(r.asked), r.task().Status)
				}
				r.stop() // a successor waits on
				r.opts.Member.Incarnation = 2
				r.start()
				r.post(1, answers, team.MsgMessage, "the answer")
				if got := transcript(r.asked[len(r.asked)-1].Messages); !strings.Contains(got, `in_reply_to="q1"`) || !strings.Contains(got, "the answer") || r.beat.State == team.WaitingUser {
					t.Errorf("after the answer the agent is %s, and was told\n%s", r.beat.State, got)
				}
			})
		})
	}
}

func TestNoAnswerComes(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.awaits("coder-2")
		r.says("!ask", "!ask")
		r.start()
		r.offer()
		begun := time.Now()
		r.pass(10*time.Minute - time.Second)
		if len(r.asked) != 1 {
			t.Fatalf("woke after %v", time.Since(begun))
		}
		r.pass(2 * time.Second)
		if !strings.Contains(r.notes(), "No answer came from coder-2") || len(r.asked) != 2 {
			t.Errorf("after 10 minutes: %d questions, notes %q", len(r.asked), r.notes())
		}
		if r.beat.State != team.WaitingAnswer || r.task().Status != team.InProgress {
			t.Errorf("it asked again: %s, the task is %s", r.beat.State, r.task().Status)
		}
	})
}

// A successor of an agent that gave up waiting does not give up again.
func TestNoAnswerIsRemembered(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.awaits("coder-2")
		r.says("!ask", "then without", "I stop", "I stop")
		r.start()
		r.offer()
		r.pass(11 * time.Minute)
		r.wantStates(team.Idle, team.Running, team.WaitingAnswer, team.Running, team.Idle)
		r.stop()
		before := r.kinds()
		r.start()
		r.pass(time.Minute)
		if r.kinds() != before || r.beat.State != team.Idle {
			t.Errorf("the successor is %s; journal: %s", r.beat.State, r.kinds())
		}
	})
}

// A person may be asked without a task, and for the sake of a task. The wait ends with that
// task, or when the person leaves; a successor does not wait again.
func TestPersonIsAskedAndLeaves(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		leave := make(chan struct{})
		r.team.left = func(ctx context.Context, _ team.AgentID) error {
			select {
			case <-ctx.Done():
			case <-leave:
			}
			return ctx.Err()
		}
		r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: "ann"}}}
		}
		r.says("!ask", "then without", "done")
		r.start()
		r.post(1, team.Leader, team.MsgMessage, "ask ann which colour")
		r.pass(time.Hour)
		r.wantStates(team.Idle, team.Running, team.WaitingUser)
		if r.beat.Awaits != "ann" || r.beat.HeardSeq != 1 || len(r.asked) != 1 {
			t.Errorf("it waits for %q, heard %d, after %d questions", r.beat.Awaits, r.beat.HeardSeq, len(r.asked))
		}
		close(leave)
		synctest.Wait()
		if !strings.Contains(r.notes(), "ann has left the team") || r.beat.State != team.Idle {
			t.Errorf("ann has left: %s, notes %q", r.beat.State, r.notes())
		}
		r.stop()
		before := r.kinds()
		r.start()
		r.post(2, team.Watchdog, team.MsgWatchdog, "[All Idle]")
		if got, ok := strings.CutPrefix(r.kinds(), before); !ok || r.beat.State != team.Idle || r.beat.HeardSeq != 1 {
			t.Errorf("its successor is %s, heard %d, and wrote %s", r.beat.State, r.beat.HeardSeq, got)
		}
	})
	loop(t, func(t *testing.T, r *rig) {
		r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: "ann"}}}
		}
		r.says("!ask", "I stop")
		r.start()
		r.offer()
		r.reap()
		r.revoke()
		synctest.Wait()
		r.wantStates(team.Idle, team.Running, team.WaitingUser, team.Running, team.Idle)
	})
}

// Without a task there is nothing to wait with: the next task is taken.
func TestAwaitWithoutTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.awaits("coder-2")
		r.says("!ask", "I wait", "done")
		r.start()
		r.post(1, team.Leader, team.MsgMessage, "ask coder-2")
		r.wantStates(team.Idle, team.Running, team.Idle)
	})
}

func TestModelAway(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.TryAgain, model.Connection)
		r.refuses(model.TryAgain, model.Connection)
		r.says("done")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if r.beat.State != team.WaitingModel || len(r.asked) != 1 {
			t.Fatalf("%s after %d tries", r.beat.State, len(r.asked))
		}
		r.pass(3 * modelBackoff)
		r.wantStates(team.Idle, team.Running, team.WaitingModel, team.Running, team.WaitingModel, team.Running, team.Idle)
		r.wantKinds("start mail refused refused turn end")
	})
}
