package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// beside has another member stand beside the agent.
func (r *rig) beside(s team.MemberState, window int) {
	r.team.peers = func(context.Context) (explain.Situation, error) {
		return explain.Situation{Members: []explain.Standing{
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
		if len(probe.Messages) != 2 || probe.Messages[0].Content != real.Messages[0].Content || len(probe.Tools) != len(real.Tools) || probe.Messages[1].Content != engine.ProbeText {
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
		r.says("!work", "done", "done", "done")
		r.start()
		r.offer()
		if !r.holds() || r.beat.State != team.WaitingModel || r.beat.Parked() {
			t.Errorf("it is %s", r.beat.State)
		}
		r.pass(modelBackoff)
		if len(r.task().Declined) != 1 || r.task().Declined[0].Why != "" { // of its last answers
			t.Errorf("the record says %+v", r.task().Declined)
		}
	})
}

// However long a parked agent is refused, it has something to ask with: no endpoint takes a
// system message alone.
func TestParkedForLong(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		for range 40 {
			r.refuses(model.GiveUp, model.ContentFilter)
		}
		r.start()
		r.offer()
		r.pass(20 * time.Minute)
		if r.holds() || !r.beat.Parked() || len(r.asked) < 8 {
			t.Fatalf("it is %s after %d requests", r.beat.State, len(r.asked))
		}
		for _, asked := range r.asked {
			if len(asked.Messages) < 2 {
				t.Errorf("it asked with\n%s", transcript(asked.Messages))
			}
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

// A call that the model writes as text is named to it twice; then the agent parks with that cause, and no attempt is counted.
func TestCallsAsText(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		written := func(model.Request) (model.Reply, error) {
			reply := r.reply("<tool_call> ...")
			reply.Written = "bash"
			return reply, nil
		}
		r.says("hello")
		r.answers = append(r.answers, written, written, written)
		r.says("ready")
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "hi")
		r.offer()
		r.pass(time.Second)
		if got := r.task(); got.Status != team.Pending || got.Attempts != 0 || !r.beat.Parked() || len(r.parked) != 1 || !strings.Contains(r.parked[0], "writes calls of tools, such as bash, as text") {
			t.Errorf("the task is %s after %d attempts; it is %s, parked %q", got.Status, got.Attempts, r.beat.State, r.parked)
		}
		notes := 0
		for _, rec := range r.journal {
			if rec.Kind == journal.Note && strings.HasPrefix(rec.Text, "You wrote a call of bash as text") {
				notes++
			}
		}
		if notes != maxWritten {
			t.Errorf("%d notes", notes)
		}
		r.pass(firstPark)
		if r.beat.State != team.Idle {
			t.Errorf("it answers again, and is %s", r.beat.State)
		}
	})
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

// A task whose turns are all refused is refused too: the agent is free for the next one, and not
// parked with what no endpoint takes.
func TestEveryTurnOfATaskIsRefused(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.beside(team.Running, 0)
		n := 0
		r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
			n++
			switch text := transcript(q.Messages); {
			case strings.Contains(text, "result of look"):
				return model.Reply{}, no(model.GiveUp, model.InvalidRequest)
			case strings.Contains(text, "<task"):
				return r.reply("!look"), nil
			}
			return r.reply("ready"), nil
		}
		r.start()
		r.offer()
		r.pass(time.Hour)
		got := r.task()
		if got.Status != team.Pending || got.Attempts != 0 || len(got.Declined) != 1 || got.Declined[0].Why != team.DeclineRefused {
			t.Errorf("the task is %s after %d attempts, declined by %+v", got.Status, got.Attempts, got.Declined)
		}
		if r.beat.State != team.Idle || n > 2*mostEpisodes+4 {
			t.Errorf("after %d requests the agent is %s", n, r.beat.State)
		}
	})
}

// A leader whose turns are all refused keeps its goal, and goes on once what they lead to is let
// through: each time that it asks again, it goes down the ladder.
func TestEveryTurnOfALeaderIsRefused(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.journal[0].Goal = 1
		n := 0
		r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
			if n++; q.Messages[len(q.Messages)-1].Role == "tool" {
				return model.Reply{}, no(model.GiveUp, model.InvalidRequest)
			}
			return r.reply("!look-" + strings.Repeat("x", n)), nil
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "migrate the API")
		if !r.beat.Parked() {
			t.Fatalf("after %d requests the leader is %s", n, r.beat.State)
		}
		last := ""
		r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
			last = transcript(q.Messages[1:])
			if q.Messages[len(q.Messages)-1].Role == "tool" {
				return model.Reply{}, no(model.GiveUp, model.InvalidRequest)
			}
			return r.reply("I do it in another way"), nil
		}
		r.pass(firstPark)
		if r.beat.State != team.Idle || !strings.Contains(last, "migrate the API") {
			t.Errorf("the leader is %s, and asked\n%s", r.beat.State, last)
		}
	})
}

// A process that dies between giving a refused task back and forgetting it leaves a conversation
// that no endpoint takes. Its successor is answered without it.
func TestKilledAfterDeclining(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.beside(team.Running, 0)
		last := ""
		r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
			if last = transcript(q.Messages[1:]); strings.Contains(last, "<task") {
				return model.Reply{}, no(model.GiveUp, model.ContentFilter)
			}
			return r.reply("ready"), nil
		}
		r.killBefore = 5 // start, task, refused, compact, refused: the task is back, and not forgotten
		r.start()
		r.offer()
		r.pass(time.Second)
		r.killBefore = 0
		r.opts.Member.Incarnation = 2
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 2})
		r.start()
		r.pass(time.Hour)
		if r.beat.State != team.Idle || strings.Contains(last, "<task") {
			t.Errorf("the successor is %s, and asked\n%s\njournal: %s", r.beat.State, last, r.kinds())
		}
	})
}

// Mail that the model has not seen when its task is refused is named to it afterwards: nobody
// else has it.
func TestMailOfARefusedTask(t *testing.T) {
	for name, probe := range map[string]func(*rig){
		"the task's fault":  func(r *rig) { r.says("ready") },
		"the agent's fault": func(r *rig) { r.refuses(model.GiveUp, model.ContentFilter) },
		"the process dies once it has forgotten the task": func(r *rig) {
			r.says("ready")
			r.stored = func() {
				if last := r.journal[len(r.journal)-1]; last.Kind == journal.Compact && strings.Contains(string(last.Context), "What you were at is gone") {
					r.killAfter = r.appends
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.beside(team.Running, 0)
				r.says("!look")
				r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
					r.mail <- delivery(7, team.MsgMessage)
					return model.Reply{}, no(model.TryAgain, model.ServerError)
				})
				for range 4 { // whole, without its last turn, the orders, alone
					r.refuses(model.GiveUp, model.ContentFilter)
				}
				probe(r)
				r.says("I have seen it")
				r.start()
				r.offer()
				r.pass(time.Hour)
				if r.dead != (r.stored != nil) {
					t.Fatalf("the process has died: %v", r.dead)
				}
				if r.dead {
					r.opts.Member.Incarnation, r.stored, r.killAfter = 2, nil, 0
					r.start()
				}
				if got := r.last(); strings.Contains(got, "<task") || !strings.Contains(got, "id m7") || r.beat.State != team.Idle {
					t.Errorf("it is %s, and was told at last\n%s", r.beat.State, got)
				}
			})
		})
	}
}

// A task that the endpoint refuses, and whose record cannot be read, is given back once it can.
func TestRefusedTaskIsUnreadable(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.beside(team.Running, 0)
		asked := 0
		r.model = func(_ context.Context, q model.Request) (model.Reply, error) {
			if asked++; strings.Contains(transcript(q.Messages), "<task") {
				return model.Reply{}, no(model.GiveUp, model.ContentFilter)
			}
			if r.healthy.ID == "" {
				r.damage()
			}
			return r.reply("ready"), nil
		}
		r.start()
		r.offer()
		r.pass(time.Hour)
		before := asked
		r.pass(time.Hour)
		if asked != before || len(r.parked) != 0 {
			t.Errorf("asked %d times meanwhile, parked %q", asked-before, r.parked)
		}
		r.heal()
		r.pass(time.Minute)
		if got := r.task(); r.beat.State != team.Idle || len(got.Declined) != 1 {
			t.Errorf("it is %s, the task declined by %+v", r.beat.State, got.Declined)
		}
	})
}

// A probe that is answered with nothing says that the agent is at fault.
func TestEmptyProbe(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.GiveUp, model.ContentFilter)
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("")
		r.start()
		r.offer()
		if !r.beat.Parked() || r.task().Status != team.Pending || len(r.task().Declined) != 0 {
			t.Errorf("it is %s, the task %s, declined by %+v", r.beat.State, r.task().Status, r.task().Declined)
		}
	})
}
