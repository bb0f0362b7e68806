package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// beside has another member stand beside the agent.
func (r *rig) beside(s team.MemberState, window int) {
	r.opts.Peers = func(context.Context) (team.Situation, error) {
		return team.Situation{Members: []team.Standing{
			{Member: r.opts.Member, State: team.Running},
			{Member: team.Member{AgentID: "coder-2", Role: "coder", State: team.Joined}, State: s, Window: window},
		}}, nil
	}
}

// Whose fault a refusal is follows from whether the agent is answered without the task, and
// from who else is there.
func TestBlame(t *testing.T) {
	for name, tt := range map[string]struct {
		advice model.Advice
		reason model.Reason
		play   func(*rig)
		probe  func(*rig)
		status team.TaskStatus
		why    []team.Declined
		parked bool
		text   string
	}{
		"the task's, and nobody else is there": {model.GiveUp, model.ContentFilter, func(*rig) {}, func(r *rig) { r.says("ready") },
			team.Failed, []team.Declined{{By: "coder-1", Why: team.DeclineRefused}}, false, "nobody else could take it"},
		"the task's, perhaps": {model.GiveUp, model.ContentFilter, func(r *rig) { r.beside(team.Running, 0) }, func(r *rig) { r.says("ready") },
			team.Pending, []team.Declined{{By: "coder-1", Why: team.DeclineRefused}}, false, "refuses this task by itself"},
		"of any other request": {model.GiveUp, model.InvalidRequest, func(r *rig) { r.beside(team.Running, 0) }, func(r *rig) { r.says("ready") },
			team.Pending, []team.Declined{{By: "coder-1", Why: team.DeclineRefused}}, false, "refuses this task by itself"},
		"the other one waits for a person": {model.GiveUp, model.ContentFilter, func(r *rig) { r.beside(team.WaitingUser, 0) }, func(r *rig) { r.says("ready") },
			team.Failed, []team.Declined{{By: "coder-1", Why: team.DeclineRefused}}, false, "nobody else could take it"},
		"another model has refused it": {model.GiveUp, model.ContentFilter, func(r *rig) {
			r.beside(team.Running, 0)
			r.edit(func(t *team.Task) { t.Declined = []team.Declined{{By: "coder-9", Why: team.DeclineRefused}} })
		}, func(r *rig) { r.says("ready") }, team.Failed, []team.Declined{{By: "coder-9", Why: team.DeclineRefused}, {By: "coder-1", Why: team.DeclineRefused}}, false, "two members; that of coder-9"},
		"the agent's": {model.GiveUp, model.ContentFilter, func(*rig) {}, func(r *rig) { r.refuses(model.GiveUp, model.ContentFilter) },
			team.Pending, nil, true, "gives no usable answer: the endpoint says no"},
		"the account's": {model.GiveUp, model.ContentFilter, func(*rig) {}, func(r *rig) { r.refuses(model.Park, model.NoCredit) },
			team.Pending, nil, true, "gives no usable answer: the endpoint says no"},
		"larger than any window": {model.Compact, model.ContextLength, func(r *rig) { r.beside(team.Running, 8192) }, func(*rig) {},
			team.Failed, []team.Declined{{By: "coder-1", Why: team.DeclineTooLarge}}, false, "nobody else could take it"},
		"not larger than another window": {model.Compact, model.ContextLength, func(r *rig) { r.beside(team.Running, 100_000) }, func(*rig) {},
			team.Pending, []team.Declined{{By: "coder-1", Why: team.DeclineTooLarge}}, false, "refuses this task by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				if tt.reason == model.ContextLength {
					r.limits.Window = 8192
					r.edit(func(t *team.Task) { t.Description = strings.Repeat("word ", 7000) })
				}
				tt.play(r)
				r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
					if strings.Contains(transcript(q.Messages), "<task") {
						return model.Reply{}, no(tt.advice, tt.reason)
					}
					r.model = nil
					tt.probe(r)
					f := r.answers[0]
					r.answers = r.answers[1:]
					return f(q)
				}
				r.start()
				r.offer()
				r.pass(time.Second)
				got := r.task()
				if got.Status != tt.status || got.Attempts != 0 || !strings.Contains(got.Reason, tt.text) {
					t.Errorf("the task is %s after %d attempts: %q", got.Status, got.Attempts, got.Reason)
				}
				if len(got.Declined) != len(tt.why) || len(tt.why) > 0 && got.Declined[len(tt.why)-1] != tt.why[len(tt.why)-1] {
					t.Errorf("its record says %+v, want %+v", got.Declined, tt.why)
				}
				if r.beat.Parked() != tt.parked {
					t.Errorf("the agent is %s", r.beat.State)
				}
			})
		})
	}
}

// A probe is what the agent would ask, but for the conversation.
func TestProbe(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.GiveUp, model.ContentFilter)
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("ready")
		r.start()
		r.offer()
		real, probe := r.asked[0], r.asked[len(r.asked)-1]
		if len(probe.Messages) != 2 || probe.Messages[0].Content != real.Messages[0].Content || len(probe.Tools) != len(real.Tools) || probe.Messages[1].Content != probeText {
			t.Errorf("it asked\n%s", transcript(probe.Messages))
		}
		if used := r.agent.conv.Usage.PromptTokens; used == 0 {
			t.Error("what the probe has cost is not counted")
		}
	})
}

// An outage says nothing of a task: the agent keeps it, and asks again.
func TestOutageAtAProbe(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.GiveUp, model.ContentFilter)
		r.refuses(model.GiveUp, model.ContentFilter)
		r.refuses(model.TryAgain, model.ServerError)
		r.says("!work", "done", "done")
		r.start()
		r.offer()
		if !r.holds() || r.beat.State != team.WaitingModel || r.beat.Parked() {
			t.Errorf("it is %s", r.beat.State)
		}
		r.pass(modelRest)
		if len(r.task().Declined) != 1 || r.task().Declined[0].Why != "" { // of its last answers
			t.Errorf("the record says %+v", r.task().Declined)
		}
	})
}

// An agent that parks because of whatever it asks is back with the first answer, and its
// request then holds nothing of the task that it had.
func TestParkedByItsProbe(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		for range 3 {
			r.refuses(model.GiveUp, model.ContentFilter)
		}
		r.says("I am back")
		r.start()
		r.offer()
		if r.holds() || !r.beat.Parked() || len(r.parked) != 1 {
			t.Fatalf("it is %s, parked %q", r.beat.State, r.parked)
		}
		r.pass(firstPark)
		if got := r.last(); strings.Contains(got, "title: Count") || r.beat.State != team.Idle || len(r.parked) != 2 {
			t.Errorf("it is %s, parked %q, asked\n%s", r.beat.State, r.parked, got)
		}
	})
}

// Three runs in a row that come to nothing park the agent. None is an attempt, since the run
// before none was of use.
func TestUselessRuns(t *testing.T) {
	for name, answer := range map[string]func(*rig){"empty": func(r *rig) { r.says("") }, "cut": (*rig).cuts} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				for range maxUseless*maxCuts + 2 { // the agent asks twice while it is parked
					answer(r)
				}
				r.says("ready")
				r.start()
				for run := range maxUseless {
					if r.beat.Parked() {
						t.Fatalf("parked after %d runs", run)
					}
					r.offer()
					r.pass(time.Second) // else the next claim seems to be this one
					if got := r.task(); got.Status != team.Pending || got.Attempts != 0 || !got.HasDeclined("coder-1") {
						t.Errorf("after run %d the task is %s after %d attempts, declined by %+v", run, got.Status, got.Attempts, got.Declined)
					}
				}
				if !r.beat.Parked() || len(r.parked) != 1 || !strings.Contains(r.parked[0], "3 runs in a row came to nothing") {
					t.Errorf("it is %s, parked %q", r.beat.State, r.parked)
				}
				r.pass(firstPark)
				r.pass(2 * firstPark)
				if !r.beat.Parked() || len(r.parked) != 1 {
					t.Errorf("it is %s, parked %q", r.beat.State, r.parked)
				}
				r.pass(4 * firstPark)
				if r.beat.State != team.Idle || len(r.parked) != 2 || strings.Contains(r.last(), "title: Count") {
					t.Errorf("it is %s, parked %q, asked\n%s", r.beat.State, r.parked, r.last())
				}
				told := 0
				for _, m := range r.sent {
					if strings.Contains(m.Content, "My model gives no usable answers") {
						told++
					}
				}
				if told != 1 {
					t.Errorf("the leader was told %d times", told)
				}
			})
		})
	}
}

// A useless run is an attempt if the run before was of use.
func TestUselessRunIsAnAttempt(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("hello")
		for range 2 * maxCuts {
			r.says("")
		}
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "hi")
		for run, want := range []int{1, 1} {
			r.offer()
			r.pass(time.Second)
			if got := r.task().Attempts; got != want {
				t.Errorf("after run %d %d attempts, want %d", run, got, want)
			}
		}
	})
}

// An answer that meets its limit before it says anything is asked for once more with all that
// the window leaves.
func TestLimitIsRaised(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits = model.Limits{Window: 32_000, MaxOutput: 4000}
		r.cuts()
		for range maxCuts {
			r.cuts()
		}
		r.start()
		r.offer()
		if len(r.asked) != maxCuts+1 || r.asked[0].MaxTokens != 0 || r.asked[1].MaxTokens < 20_000 || r.asked[1].MaxTokens >= 32_000 {
			t.Errorf("asked %d times, limits %d and %d", len(r.asked), r.asked[0].MaxTokens, r.asked[1].MaxTokens)
		}
	})
}
