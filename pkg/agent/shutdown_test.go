package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// decides makes the tool name answer request r1, as send_message does.
func (r *rig) decides(name string, approve bool, reason string) {
	r.tools[name] = func(context.Context, tool.Call) tool.Result {
		if err := r.agent.conv.Asks("r1"); err != nil {
			return tool.Result{Content: err.Error(), IsError: true}
		}
		return tool.Result{Content: "answered", Effects: tool.Effects{Verdict: &team.Verdict{RequestID: "r1", Approve: approve, Reason: reason}}}
	}
}

// responses are the answers to requests to shut down that were sent.
func (r *rig) responses() (all []team.Message) {
	for _, m := range r.sent {
		if m.Type == team.MsgShutdownResponse {
			all = append(all, m)
		}
	}
	return all
}

// wantResponses says what the asker was told: one answer to r1.
func (r *rig) wantResponse(to team.AgentID, approve bool, reason string) {
	r.t.Helper()
	all := r.responses()
	if len(all) == 0 {
		r.t.Error("nobody was told an answer")
		return
	}
	for _, m := range all { // a successor repeats the same message
		if m.ID != "answer-r1" || m.To != to || m.RequestID != "r1" || m.Approve == nil || *m.Approve != approve || !strings.Contains(m.Content, reason) {
			r.t.Errorf("told %+v, want approve %t, %q, to %s", m, approve, reason, to)
		}
	}
}

// wantLeft says that the agent has left the team.
func (r *rig) wantLeft() {
	r.t.Helper()
	r.settle()
	select {
	case err := <-r.ended:
		if !errors.Is(err, ErrShutdown) {
			r.t.Errorf("Run = %v", err)
		}
		r.cancel = nil
	default:
		r.t.Fatalf("the agent stays; %s", r.kinds())
	}
}

func (r *rig) wantStays() {
	r.t.Helper()
	r.settle()
	select {
	case err := <-r.ended:
		r.t.Fatalf("Run = %v, want that it stays", err)
	default:
	}
}

// asksDuring has a request come while the tool look runs.
func (r *rig) asksDuring(m team.Message) {
	r.tools["look"] = func(context.Context, tool.Call) tool.Result {
		r.tools["look"] = nil
		m.ID, m.Type, m.RequestID, m.To = "m1", team.MsgShutdownRequest, "r1", "coder-1"
		r.mail <- mailbox.Delivery{Message: m, Seq: 1, Ack: func() {}}
		return tool.Result{Content: "seen"}
	}
}

func TestShutdownWhileIdle(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.start()
		r.post(1, team.Leader, team.MsgShutdownRequest, "please")
		if err := <-r.ended; !errors.Is(err, ErrShutdown) {
			t.Errorf("Run = %v", err)
		}
		r.cancel = nil
		if len(r.sent) != 1 || r.sent[0].Type != team.MsgShutdownResponse || r.sent[0].RequestID != "r1" || r.sent[0].Approve == nil || !*r.sent[0].Approve {
			t.Errorf("sent: %+v", r.sent)
		}
		if !slices.Equal(r.acked, []uint64{1}) || len(r.asked) != 0 {
			t.Errorf("acked %v, asked the model %d times", r.acked, len(r.asked))
		}
	})
}

// A request that was recorded and not carried out, because the process was killed,
// is carried out by the successor: its redelivery is skipped as known.
func TestShutdownSurvivesKill(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.journal = append(r.journal, journal.Record{Kind: journal.Mail, InboxSeq: 1, Message: &team.Message{ID: "m1", Type: team.MsgShutdownRequest, From: team.Leader}})
		r.start()
		if err := <-r.ended; !errors.Is(err, ErrShutdown) {
			t.Errorf("Run = %v", err)
		}
		r.cancel = nil
		r.wantKinds("start mail end")
	})
}

// Who is at work is told of the request before the next turn, and how to answer it.
func TestModelIsAsked(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.asksDuring(team.Message{From: team.UserAgent, Content: "we have too many"})
		r.decides("approve", true, "gladly")
		r.says("!look", "!approve,look", "never said")
		r.start()
		r.offer()
		r.wantLeft()
		if r.task().Status != team.Pending || r.task().Attempts != 0 || !strings.Contains(r.task().Reason, "shut down") {
			t.Errorf("the task is %s after %d attempts: %q", r.task().Status, r.task().Attempts, r.task().Reason)
		}
		told := transcript(r.asked[1].Messages)
		for _, want := range []string{"we have too many", `request_id="r1"`, "shutdown_response", "approve"} {
			if !strings.Contains(told, want) {
				t.Errorf("the model is not told %q:\n%s", want, told)
			}
		}
		if len(r.asked) != 2 || len(r.ran) != 2 {
			t.Errorf("asked %d times, ran %v", len(r.asked), r.ran)
		}
		r.wantResponse(team.UserAgent, true, "gladly")
		if _, err := r.hand.Claim(t.Context(), r.id); team.CodeOf(err) != team.InvalidState {
			t.Errorf("a claim after that: %v", err)
		}
	})
}

// A refusal ends the request: the member stays and works on. A second answer is a conflict,
// and a new request may be approved.
func TestRefusal(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.asksDuring(team.Message{From: team.Leader})
		r.decides("refuse", false, "half of it is written")
		r.says("!look", "!refuse,refuse", "!ask")
		r.awaits("coder-2")
		r.start()
		r.offer()
		r.wantStays()
		r.wantResponse(team.Leader, false, "half of it is written")
		if n := len(r.responses()); n != 1 || r.task().Status != team.InProgress || len(r.asked) != 3 {
			t.Errorf("%d answers; the task is %s", n, r.task().Status)
		}
		if err := r.agent.conv.Asks("r1"); team.CodeOf(err) != team.Conflict {
			t.Errorf("a second answer: %v, want conflict", err)
		}
		if err := r.agent.conv.Asks("r2"); team.CodeOf(err) != team.NotFound {
			t.Errorf("an answer to nothing: %v, want not_found", err)
		}
	})
}

// Whenever the process is killed, the successor goes on: what was decided is not decided
// again, and whoever asked hears of one decision.
func TestKilledWhileAsked(t *testing.T) {
	for _, approve := range []bool{true, false} {
		for kill := 1; ; kill++ {
			done, decided, asks := false, false, 0
			loop(t, func(t *testing.T, r *rig) {
				r.asksDuring(team.Message{From: team.Leader})
				r.decides("answer", approve, "so be it")
				asked := r.tools["look"]
				r.decide = func(m []*model.Message) string {
					told := transcript(m)
					switch {
					case !strings.Contains(told, "r1"):
						r.tools["look"] = asked
						return "!look"
					case !strings.Contains(told, "answered"):
						return "!answer"
					}
					if r.holds() {
						r.complete("done")
					}
					return "ready"
				}
				r.killAfter = kill
				r.start()
				r.offer()
				r.settle()
				if r.dead {
					<-r.ended
					last := r.journal[len(r.journal)-1]
					decided, asks = last.Result != nil && last.Result.Verdict != nil, len(r.asked)
					r.opts.Member.Incarnation = 2
					r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 2})
					r.tools["look"] = asked
					r.start()
					if !strings.Contains(r.kinds(), "mail") { // it was not taken in yet, so it comes again
						r.post(1, team.Leader, team.MsgShutdownRequest, "please")
					}
				} else {
					done = true
				}
				if approve {
					r.wantLeft()
					if decided && len(r.asked) != asks {
						t.Errorf("killed after record %d: the successor asked the model once more", kill)
					}
				} else {
					r.wantStays()
				}
				verdicts := 0
				for _, rec := range r.journal {
					if rec.Result != nil && rec.Result.Verdict != nil {
						verdicts++
					}
				}
				// One that was free has agreed without its model.
				if free := strings.HasSuffix(r.kinds(), "start mail end"); verdicts != 1 && !(verdicts == 0 && free) {
					t.Errorf("killed after record %d: %d answers in %s", kill, verdicts, r.kinds())
				}
				if verdicts == 1 {
					r.wantResponse(team.Leader, approve, "so be it")
				}
			})
			if done || t.Failed() {
				break
			}
		}
	}
}

// A member that ends its work without an answer leaves then.
func TestUnanswered(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.asksDuring(team.Message{From: team.Leader})
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!look", "!complete", "bye")
		r.start()
		r.offer()
		r.wantLeft()
		r.wantResponse(team.Leader, true, "shuts down")
		if r.task().Status != team.Completed {
			t.Errorf("the task is %s", r.task().Status)
		}
	})
}

// A drain asks nobody: the member ends its task, takes no other and leaves.
func TestDrain(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.asksDuring(team.Message{From: team.UserAgent, Drain: true})
		second := team.Task{ID: "T-002", Title: "Next", Status: team.Pending}
		r.put(second)
		r.tools["claim"] = func(context.Context, tool.Call) tool.Result {
			_, err := r.hand.Claim(t.Context(), "T-002")
			if team.CodeOf(err) != team.InvalidState || team.HintOf(err) == "" {
				t.Errorf("a claim of one that leaves: %v", err)
			}
			if !r.beat.Drains {
				t.Errorf("its beat does not tell that it leaves: %+v", r.beat)
			}
			return tool.Result{Content: "no", IsError: true}
		}
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!look", "!look", "!complete,claim", "bye")
		r.start()
		r.offer()
		r.wantLeft()
		if r.task().Status != team.Completed || len(r.asked) < 3 {
			t.Errorf("the task is %s after %d turns", r.task().Status, len(r.asked))
		}
		if err := r.agent.conv.Asks("r1"); team.CodeOf(err) != team.Conflict {
			t.Errorf("an answer to a drain: %v", err)
		}
		r.wantResponse(team.UserAgent, true, "shuts down")
	})
}

// A drained member that is replaced takes no other task either.
func TestDrainSurvivesKill(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.asksDuring(team.Message{From: team.UserAgent, Drain: true})
		r.awaits("coder-2")
		r.says("!look", "!ask")
		r.start()
		r.offer()
		r.wantStays()
		r.stop()
		r.opts.Member.Incarnation = 2
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 2})
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!complete", "bye")
		r.start()
		r.wantLeft()
		if r.task().Status != team.Completed {
			t.Errorf("the task is %s", r.task().Status)
		}
	})
}

// What becomes of members that wait when they are asked to leave.
func TestShutdownOfWaiting(t *testing.T) {
	person := func(r *rig) {
		r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: team.UserAgent}}}
		}
	}
	for name, tt := range map[string]struct {
		prepare func(r *rig)
		waits   team.MemberState
		asked   bool // its model is
	}{
		"for a member": {func(r *rig) { r.awaits("coder-2"); r.says("!ask") }, team.WaitingAnswer, true},
		"for a person": {func(r *rig) { person(r); r.says("!ask") }, team.WaitingUser, true},
		"through an outage": {func(r *rig) {
			for range 20 {
				r.refuses(model.TryAgain, model.Connection)
			}
		}, team.WaitingModel, false},
		"parked": {func(r *rig) { r.refuses(model.Park, model.NoEndpoint) }, team.WaitingModel, false},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				tt.prepare(r)
				r.decides("refuse", false, "not yet")
				r.start()
				r.offer()
				if r.beat.State != tt.waits {
					t.Fatalf("the agent is %s", r.beat.State)
				}
				turns := len(r.asked)
				if tt.asked {
					r.says("!refuse", "I wait on")
				}
				r.post(1, team.UserAgent, team.MsgShutdownRequest, "please")
				if tt.asked {
					r.wantStays()
					r.wantResponse(team.UserAgent, false, "not yet")
					if r.beat.State != tt.waits || r.task().Status != team.InProgress {
						t.Errorf("after its refusal the agent is %s, its task %s", r.beat.State, r.task().Status)
					}
					return
				}
				r.wantLeft()
				if len(r.asked) != turns || r.task().Status != team.Pending {
					t.Errorf("asked its model %d times; the task is %s", len(r.asked)-turns, r.task().Status)
				}
				r.wantResponse(team.UserAgent, true, "shuts down")
			})
		})
	}
}

// A member that waits without a task is drained at once, and one that waits with a task
// waits on.
func TestDrainOfWaiting(t *testing.T) {
	for _, holds := range []bool{false, true} {
		loop(t, func(t *testing.T, r *rig) {
			r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
				return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: team.UserAgent}}}
			}
			r.says("!ask")
			r.start()
			if holds {
				r.offer()
			} else {
				r.post(1, "coder-2", team.MsgMessage, "ask them")
			}
			if r.beat.State != team.WaitingUser {
				t.Fatalf("the agent is %s", r.beat.State)
			}
			r.mail <- mailbox.Delivery{Message: team.Message{ID: "m2", Type: team.MsgShutdownRequest, RequestID: "r1", From: team.Leader, Drain: true}, Seq: 2, Ack: func() {}}
			if holds {
				r.wantStays()
			} else {
				r.wantLeft()
			}
			if len(r.asked) != 1 {
				t.Errorf("its model was asked %d times", len(r.asked))
			}
		})
	}
}

// A request to shut down that nobody took before the member was stopped by force is
// not meant for the member that is brought back under its name.
func TestOldShutdownRequest(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.ObeysFrom = 2
		r.says("I see", "hello")
		r.start()
		r.post(1, team.Leader, team.MsgShutdownRequest, "please stop")
		r.post(2, team.Leader, team.MsgMessage, "hello")
		r.wantStates(team.Idle, team.Running, team.Idle, team.Running, team.Idle)
	})
}
