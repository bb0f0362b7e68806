package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// submits makes the tool submit ask the leader for a decision on the plan r1.
func (r *rig) submits() {
	r.tools["submit"] = func(context.Context, tool.Call) tool.Result {
		return tool.Result{Content: "pending", Effects: tool.Effects{Await: &team.Await{Plan: "r1", From: team.Leader, About: "first this"}}}
	}
}

// An agent waits for the decision on its plan as long as it takes, also as its next
// incarnation. Only the decision itself ends the wait, and only at rest is the agent idle.
func TestAwaitDecision(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.submits()
		rests := 0
		r.team.rests = func(context.Context) { rests++ }
		r.says("!submit", "I still wait", "I am back, and wait", "now I go on", "done", "done")
		r.start()
		r.offer()
		r.pass(100 * time.Hour)
		r.wantStates(team.Idle, team.Running, team.WaitingApproval)
		if b := r.beat; b.Awaits != team.Leader || b.Asked != "r1" || b.About != "first this" || !b.Quiet() {
			t.Errorf("the beat tells %+v", b)
		}
		if len(r.sent) != 0 { // the leader has the plan
			t.Errorf("the leader was sent %+v besides", r.sent)
		}
		r.post(1, team.Leader, team.MsgMessage, "plan_approval_response: r1 is approved")
		if r.beat.State != team.WaitingApproval || r.task().Status != team.InProgress || rests != 1 {
			t.Errorf("after mail that looks like a decision: %s, the task is %s, %d rests", r.beat.State, r.task().Status, rests)
		}
		r.stop()
		r.opts.Member.Incarnation = 2
		r.start()
		r.post(2, team.Leader, team.MsgPlanResponse, "Your plan r1 is approved.")
		if got := transcript(r.asked[len(r.asked)-1].Messages); !strings.Contains(got, "is approved") || r.beat.State == team.WaitingApproval {
			t.Errorf("after the decision the agent is %s, and was told\n%s", r.beat.State, got)
		}
	})
}

// A decision whose mail is lost with its sender is told all the same; one whose mail comes
// is not told twice.
func TestDecisionWithoutMail(t *testing.T) {
	for name, mail := range map[string]bool{"with mail": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.submits()
				decided := make(chan struct{})
				r.team.decided = func(ctx context.Context, plan string) (string, error) {
					select {
					case <-decided:
						return "Your plan " + plan + " is rejected: smaller", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}
				r.says("!submit", "I see", "done")
				r.start()
				r.offer()
				close(decided)
				if mail {
					r.post(1, team.Leader, team.MsgPlanResponse, "Your plan r1 is rejected: smaller")
				}
				r.pass(2 * mailWithin)
				if told := strings.Contains(r.notes(), "r1 is rejected: smaller"); told == mail || len(r.asked) < 2 {
					t.Errorf("noted: %v, with mail: %v, after %d questions", told, mail, len(r.asked))
				}
			})
		})
	}
}

// inherited is what T-001 brings along for coder-1, whose plan r1 waits for the leader.
func inherited() team.Inherited {
	a := team.Approval{ID: "r1", AgentID: "coder-1", Task: "T-001", Plan: "first this", Status: team.PlanPending, Approver: team.ByLeader}
	note, _ := a.Note(team.ByLeader, true)
	return team.Inherited{Note: note, Plan: a.Plan, Await: a.Await()}
}

// A successor that claims the task of its plan again is told that the plan still waits, so that
// it does not submit another, which would make that one void. Another member that has the task now waits as well.
func TestPlanStillWaits(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.submits()
		r.says("!submit", "I stop", "I wait on", "now I go on", "done", "done")
		r.start()
		r.offer()
		r.wantStates(team.Idle, team.Running, team.WaitingApproval)
		r.stop()
		freed, err := r.task().Reap(team.Freed{Reason: "lost"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r.put(freed)
		r.opts.Member.Incarnation = 2
		r.team.brings = inherited()
		r.start()
		r.offer()
		r.pass(time.Minute)
		if got := transcript(r.asked[len(r.asked)-1].Messages); strings.Count(got, "Your plan r1 for this task still waits for the decision of leader.") != 1 {
			t.Errorf("it was told\n%s", got)
		}
		if r.beat.State != team.WaitingApproval || r.beat.Asked != "r1" {
			t.Errorf("it is %s, for %s", r.beat.State, r.beat.Asked)
		}
		r.post(1, team.Leader, team.MsgPlanResponse, "Your plan r1 is approved.")
		if r.beat.State == team.WaitingApproval {
			t.Error("it waits after the decision")
		}
	})
}

// A member that takes a task whose plan waits, in whatever way, waits for that decision and is not asked on meanwhile.
func TestPlanOfEarlierHolder(t *testing.T) {
	for name, take := range map[string]func(r *rig){
		"offered": func(r *rig) {
			r.says("I wait", "now I go on", "done", "done")
			r.start()
			r.offer()
		},
		"claimed by a tool": func(r *rig) {
			r.tools["claim"] = func(context.Context, tool.Call) tool.Result {
				r.claim()
				return tool.Result{Content: "claimed", Effects: tool.Effects{Await: r.team.brings.Await}}
			}
			r.says("!claim", "now I go on", "done", "done")
			r.start()
			r.post(7, team.Leader, team.MsgMessage, "take T-001")
		},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.team.brings = inherited()
				take(r)
				r.pass(100 * time.Hour)
				if r.beat.State != team.WaitingApproval || r.beat.Asked != "r1" || r.beat.Awaits != team.Leader || len(r.asked) != 1 || r.task().Status != team.InProgress {
					t.Errorf("it is %s for %s, after %d turns", r.beat.State, r.beat.Asked, len(r.asked))
				}
				r.post(8, team.Leader, team.MsgPlanResponse, "Your plan r1 is approved.")
				if r.beat.State == team.WaitingApproval || len(r.asked) == 1 {
					t.Error("it waits after the decision")
				}
			})
		})
	}
}

// A question that an earlier holder has asked is waited for under its id, and the answer is read wherever it was sent.
func TestQuestionOfEarlierHolder(t *testing.T) {
	q := team.Message{ID: "q1", From: "joe", To: team.UserAgent, Content: "tabs?", TaskID: "T-001"}
	port := team.Message{ID: "q0", From: "joe", To: "ann", Content: "which port?", TaskID: "T-001"}
	for name, mail := range map[string]bool{"by mail": true, "to the holder before": false} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.team.brings = team.Inherited{Asked: []team.Message{q, port}, Answers: map[string]team.Message{"q0": {ID: "a", From: "ann", Content: "80"}}, Await: q.Await()}
				answered := make(chan struct{})
				r.team.answered = func(ctx context.Context, w team.Await) (string, error) {
					select {
					case <-answered:
						return w.MessageID + " is answered: tabs", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}
				r.says("I wait", "thank you", "done", "done")
				r.start()
				r.offer()
				r.pass(100 * time.Hour)
				if got := transcript(r.asked[0].Messages); !strings.Contains(got, "tabs?") || !strings.Contains(got, "│ 80") {
					t.Errorf("it reads\n%s", got)
				}
				if r.beat.State != team.WaitingUser || r.beat.Asked != "q1" || r.beat.Awaits != team.UserAgent || len(r.asked) != 1 {
					t.Errorf("it is %s for %s, after %d turns", r.beat.State, r.beat.Asked, len(r.asked))
				}
				if mail {
					r.mail <- mailbox.Delivery{Message: team.Message{ID: "answer-q1", Type: team.MsgUser, From: team.UserAgent, To: "coder-1", Content: "tabs", InReplyTo: "q1"}, Seq: 9, Ack: func() {}}
					r.settle()
				}
				close(answered)
				r.pass(2 * mailWithin)
				if noted := strings.Contains(r.notes(), "q1 is answered: tabs"); noted == mail || len(r.asked) == 1 || r.beat.State == team.WaitingUser {
					t.Errorf("noted: %v, with mail: %v; it is %s after %d turns", noted, mail, r.beat.State, len(r.asked))
				}
			})
		})
	}
}

// A task that is taken away ends the wait for its plan.
func TestPlanOfLostTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.submits()
		r.says("!submit", "I stop")
		r.start()
		r.offer()
		r.wantStates(team.Idle, team.Running, team.WaitingApproval)
		r.reap()
		r.revoke()
		r.pass(time.Second)
		if r.beat.State != team.Idle {
			t.Errorf("it is %s", r.beat.State)
		}
	})
}

// With a task that it has claimed since, it does not wait for the plan of the one that was taken away.
func TestNextAfterLostTask(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.submits()
		r.tools["claim"] = func(context.Context, tool.Call) tool.Result {
			r.claim()
			return tool.Result{Content: "claimed"}
		}
		r.says("!submit", "I stop", "!claim", "I look", "I do nothing")
		r.start()
		r.offer()
		r.reap()
		r.revoke()
		r.pass(time.Second)
		r.next(team.Task{ID: "T-002", Title: "Next", Status: team.Pending})
		r.post(1, team.Leader, team.MsgMessage, "take T-002")
		r.pass(time.Minute)
		if got := r.task(); got.Status != team.Pending || got.Epoch == 0 {
			t.Errorf("T-002 is %s after %d holds", got.Status, got.Epoch)
		}
	})
}

// Once another member has held the task in between, no decision on its call can come.
func TestCallAfterAnothersHold(t *testing.T) {
	for by, want := range map[team.AgentID]bool{"coder-1": true, "coder-2": false} {
		ask := awaitRecord("a", team.Leader)
		ask.Result.Await = &team.Await{Plan: "r1", Permission: true, From: team.UserAgent, Task: "T-001"}
		again := taskRecord(team.Task{ID: "T-001", Assignee: "coder-1", Epoch: 3})
		again.LastTry = &team.Try{By: by, Epoch: 2}
		c := fold(t, taskRecord(team.Task{ID: "T-001", Assignee: "coder-1", Epoch: 1}), turnRecord("", "a"), ask, turnRecord("I wait"), endRecord(), again)
		if waits := c.Await != nil; waits != want {
			t.Errorf("after a hold of %s it waits: %v", by, waits)
		}
	}
}
