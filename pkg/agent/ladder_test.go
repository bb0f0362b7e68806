package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

const rule = "From now on: never run git push."

// atTurnSix has the agent work on a task, read a person's rule at its third turn, and come
// to its seventh request.
func (r *rig) atTurnSix() {
	r.says("!look", "!look-here")
	r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
		d := delivery(1, team.MsgUser)
		d.Message.Content = rule
		r.mail <- d
		return r.reply("!look-there"), nil
	})
	r.says("!look-a", "!look-b", "!look-last")
	r.start()
}

// offered offers the task, and lets the time go by that mail is waited for.
func (r *rig) offered() {
	r.offer()
	r.pass(time.Second)
}

// last is the newest request, without its system message.
func (r *rig) last() string { return transcript(r.asked[len(r.asked)-1].Messages[1:]) }

// One refusal of a request leaves the conversation as it is, but for the last turn, and
// the model knows what a person has ordered.
func TestOneRefusalKeepsTheConversation(t *testing.T) {
	for _, reason := range []model.Reason{model.FailedCall, model.InvalidRequest, model.ContentFilter} {
		t.Run(string(reason), func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.atTurnSix()
				r.refuses(model.GiveUp, reason)
				r.says("I go on", "done")
				r.offered()
				after := transcript(r.asked[7].Messages[1:])
				for _, want := range []string{"title: Count", rule, "result of look-here", "result of look-a", "result of look-b"} {
					if !strings.Contains(after, want) {
						t.Errorf("the request after the refusal has no %q:\n%s", want, after)
					}
				}
				if kept := strings.Contains(after, "result of look-last"); kept != (reason == model.FailedCall) {
					t.Errorf("the last turn stays: %v\n%s", kept, after)
				}
				if reason != model.FailedCall && !strings.Contains(after, "It called look-last") {
					t.Errorf("the model is not told what was taken out:\n%s", after)
				}
				if r.holds() && r.task().Attempts != 0 {
					t.Errorf("%d attempts", r.task().Attempts)
				}
			})
		})
	}
}

// The ladder goes down a rung at a time. What a person has ordered is left out last, and
// only for a filter.
func TestLadder(t *testing.T) {
	type has struct{ rule, turns, account bool }
	for reason, want := range map[model.Reason][]has{
		model.FailedCall:     {{true, true, false}, {true, true, false}, {true, false, true}},
		model.InvalidRequest: {{true, true, false}, {true, false, true}},
		model.ContentFilter:  {{true, true, false}, {true, false, false}, {false, false, false}},
	} {
		t.Run(string(reason), func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.atTurnSix()
				for range len(want) + 1 {
					r.refuses(model.GiveUp, reason)
				}
				r.says("ready")
				r.offered()
				if len(r.asked) != 8+len(want) { // with the probe
					t.Fatalf("asked %d times, want %d", len(r.asked), 8+len(want))
				}
				for i, want := range want {
					text := transcript(r.asked[7+i].Messages[1:])
					got := has{strings.Contains(text, rule), strings.Contains(text, "assistant"), strings.Contains(text, "- you called look-b")}
					if got != want || !strings.Contains(text, "title: Count") || !strings.Contains(text, "The model's endpoint") {
						t.Errorf("rung %d: %+v, want %+v:\n%s", i, got, want, text)
					}
					if !want.turns && !strings.Contains(text, "read_mail") {
						t.Errorf("rung %d does not say where mail is to be had:\n%s", i, text)
					}
				}
				if r.task().Status != team.Failed { // nobody else could take it
					t.Errorf("the task is %s: %s", r.task().Status, r.task().Reason)
				}
			})
		})
	}
}

// While the window is not known, markers that do not help are followed by an account: the orders
// alone are left only if that is too long as well.
func TestAccountAfterMarkers(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["read_file"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat("a line of a file\n", 4000)}
		}
		r.says("!read_file", "!read_file", "!look")
		for range 3 {
			r.refuses(model.Compact, model.ContextLength)
		}
		r.says("I go on", "done")
		r.start()
		r.offered()
		for i, want := range []struct{ marker, account bool }{{true, false}, {false, true}, {false, false}} {
			text := transcript(r.asked[4+i].Messages[1:])
			marker, account := strings.Contains(text, "tool call2-read_file: [The result"), strings.Contains(text, "- you called read_file")
			if marker != want.marker || account != want.account || !strings.Contains(text, "title: Count") {
				t.Errorf("after refusal %d: markers %v, account %v:\n%s", i+1, marker, account, text)
			}
		}
	})
}

// A successor stands where its predecessor stood on the ladder.
func TestLadderAfterRestart(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.atTurnSix()
		r.refuses(model.GiveUp, model.ContentFilter)
		r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
			r.cancel()
			return model.Reply{}, context.Canceled
		})
		r.offered()
		if err := <-r.ended; err != nil {
			t.Fatal(err)
		}
		r.opts.Member.Incarnation = 2
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("I go on")
		r.start()
		if got := transcript(r.asked[9].Messages[1:]); strings.Contains(got, "assistant") || !strings.Contains(got, rule) {
			t.Errorf("the successor asked\n%s", got)
		}
	})
}

// The orders of people are those that hold: not the goals before. What was shortened already is
// named by its id.
func TestOrders(t *testing.T) {
	c := newConversation(team.Native)
	c.Goal, c.Known = 2, 5
	c.Facts = []fact{
		{ID: "m1", From: team.UserAgent, Type: team.MsgUser, Goal: 1, Sets: true, Block: "<mail>the goal before</mail>"},
		{ID: "m2", From: team.UserAgent, Type: team.MsgMessage, Goal: 1, Brief: "no tabs"},
		{ID: "m3", From: team.UserAgent, Type: team.MsgUser, Goal: 2, Sets: true, Block: "<mail>this goal</mail>"},
		{ID: "m4", From: team.Leader, Type: team.MsgMessage, Goal: 2, Block: "<mail>of the leader</mail>"},
		{ID: "m5", From: team.UserAgent, Type: team.MsgMessage, Goal: 2, Block: "<mail>no push</mail>"},
	}
	got := c.orders()
	for word, want := range map[string]bool{"the goal before": false, "this goal": false, "of the leader": false, "m2": true, "no tabs": true, "<mail>no push</mail>": true} {
		if strings.Contains(got, word) != want {
			t.Errorf("%q is told: %v\n%s", word, !want, got)
		}
	}
	for _, to := range []engine.Rung{engine.Compacted, engine.OrdersOnly, engine.WorkOnly} {
		n := c.shortened(to, "", "why")
		if n.Known != len(n.Facts) {
			t.Errorf("rung %d: %d of %d facts are known", to, n.Known, len(n.Facts))
		}
		if !strings.Contains(transcript(n.Messages), "this goal") {
			t.Errorf("rung %d has no goal", to)
		}
	}
}

// Unread mail of others that is taken out with a conversation is named.
func TestUnreadMailIsNamed(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.GiveUp, model.InvalidRequest)
		r.says("I ask again")
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "the answer is 42")
		if got := r.last(); len(r.asked) != 2 || !strings.Contains(got, "from coder-2, id m1: the answer is 42") {
			t.Errorf("the model was told\n%s", got)
		}
	})
}

// A leader in the middle of a goal keeps the goal, whatever is refused.
func TestLeaderKeepsItsGoal(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.team.endGoal = func(context.Context, string) { t.Error("the goal was ended") }
		r.journal[0].Goal = 1
		r.says("!look")
		r.refuses(model.GiveUp, model.ContentFilter)
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("I go on")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "migrate the API")
		if got := r.last(); len(r.asked) != 4 || strings.Contains(got, "assistant") || !strings.Contains(got, "migrate the API") {
			t.Errorf("after the refusals the model was told\n%s", got)
		}
	})
}

// A leader whose first answers fail does not end its goal.
func TestLeadersFirstAnswersFail(t *testing.T) {
	for _, reason := range []model.Reason{model.FailedCall, model.InvalidRequest} {
		loop(t, func(t *testing.T, r *rig) {
			r.opts.Member.AgentID = team.Leader
			r.team.endGoal = func(_ context.Context, cause string) { t.Errorf("%s: the goal was ended: %s", reason, cause) }
			r.journal[0].Goal = 1
			r.refuses(model.GiveUp, reason)
			r.says("I begin")
			r.start()
			r.post(1, team.UserAgent, team.MsgUser, "migrate the API")
			r.pass(time.Second)
			if got := r.last(); len(r.asked) != 2 || !strings.Contains(got, "migrate the API") {
				t.Errorf("%s: asked %d times, at last\n%s", reason, len(r.asked), got)
			}
		})
	}
}
