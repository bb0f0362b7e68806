package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// What the loop does about a refusal follows from what the endpoint says and what the
// agent is at.
func TestAfterRefusal(t *testing.T) {
	member, lead := situation{holds: true}, situation{leader: true, first: true}
	for name, tt := range map[string]struct {
		advice model.Advice
		reason model.Reason
		next   engine.Rung // of the ladder
		at     situation
		want   step
	}{
		"an outage":                                  {model.TryAgain, model.ServerError, engine.Whole, member, wait},
		"an outage at a goal's first call":           {model.TryAgain, model.RateLimited, engine.Whole, lead, wait},
		"a wrong key":                                {model.Park, model.BadKey, engine.Whole, member, park},
		"a wrong key at a goal's first call":         {model.Park, model.BadKey, engine.Whole, lead, endGoal},
		"a wrong key later":                          {model.Park, model.BadKey, engine.Whole, situation{leader: true}, park},
		"too long":                                   {model.Compact, model.ContextLength, engine.Compacted, member, shorten},
		"too long alone":                             {model.Compact, model.ContextLength, engine.Whole, situation{holds: true, large: true}, declineTask},
		"too long alone, though the task is small":   {model.Compact, model.ContextLength, engine.Whole, member, park},
		"a filter":                                   {model.GiveUp, model.ContentFilter, engine.Undone, member, shorten},
		"a filter of the task alone":                 {model.GiveUp, model.ContentFilter, engine.Whole, member, blame},
		"a filter of mail alone":                     {model.GiveUp, model.ContentFilter, engine.Whole, situation{}, blame},
		"a filter of the goal alone":                 {model.GiveUp, model.ContentFilter, engine.Whole, lead, endGoal},
		"a request that is refused":                  {model.GiveUp, model.InvalidRequest, engine.Undone, member, shorten},
		"one that is refused however little it says": {model.GiveUp, model.InvalidRequest, engine.Whole, member, blame},
		"the same without a task":                    {model.GiveUp, model.InvalidRequest, engine.Whole, situation{}, blame},
		"the same at a goal that goes on":            {model.GiveUp, model.InvalidRequest, engine.Whole, situation{leader: true}, park},
	} {
		t.Run(name, func(t *testing.T) {
			tt.at.next = tt.next
			if got := (state{}).afterRefusal(&model.Refusal{Advice: tt.advice, Reason: tt.reason}, tt.at); got != tt.want {
				t.Errorf("step %d, want %d", got, tt.want)
			}
		})
	}
}

// An agent whose endpoint refuses it gives its task back, without an attempt, takes no
// other, says so once, and comes back by itself.
func TestParked(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		for range 3 {
			r.refuses(model.Park, model.NoCredit)
		}
		r.says("I am back", "!work", "done", "done")
		r.start()
		r.offer()
		if r.task().Status != team.Pending || r.task().Attempts != 0 || !strings.Contains(r.task().Reason, "the endpoint says no") {
			t.Errorf("the task is %s after %d attempts: %q", r.task().Status, r.task().Attempts, r.task().Reason)
		}
		if !r.beat.Parked() || !r.beat.Quiet() || time.Until(*r.beat.RetryAt) != firstPark {
			t.Errorf("beat: %+v", r.beat)
		}
		select {
		case r.offers <- r.task():
			t.Error("took an offer while its endpoint refuses it")
		default:
		}
		r.pass(firstPark)
		r.pass(2*firstPark - time.Second)
		if len(r.asked) != 2 {
			t.Errorf("asked %d times, want 2: the rests grow", len(r.asked))
		}
		r.pass(time.Second)
		r.pass(4 * firstPark)
		if r.beat.State != team.Idle || r.beat.RetryAt != nil {
			t.Errorf("beat: %+v", r.beat)
		}
		told := 0
		for _, m := range r.sent {
			if strings.Contains(m.Content, "My model refuses") {
				told++
			}
		}
		if want := []string{"the endpoint says no", ""}; told != 1 || len(r.parked) != 2 || r.parked[0] != want[0] || r.parked[1] != want[1] {
			t.Errorf("the leader was told %d times, the record says %q", told, r.parked)
		}
		if len(r.asked[3].Tools) != 1 || r.asked[3].Messages[0].Content != r.opts.System {
			t.Errorf("it did not try its real call: %+v", r.asked[3])
		}
		r.offer()
		if len(r.asked) < 5 {
			t.Error("it takes no task again")
		}
	})
}

// A word of a person is a reason to try at once; so are settings that changed.
func TestParkedTriesAtOnce(t *testing.T) {
	for name, tt := range map[string]func(*rig, chan struct{}){
		"a person writes":      func(r *rig, _ chan struct{}) { r.post(1, team.UserAgent, team.MsgMessage, "I have paid") },
		"the settings changed": func(r *rig, changed chan struct{}) { close(changed); r.pass(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				changed := make(chan struct{})
				r.team.changed = func() <-chan struct{} { return changed }
				r.refuses(model.Park, model.NoCredit)
				r.says("I am back")
				r.start()
				r.offer()
				tt(r, changed)
				if len(r.asked) != 2 || r.beat.State != team.Idle {
					t.Errorf("asked %d times; it is %s", len(r.asked), r.beat.State)
				}
			})
		})
	}
}

// Answers that break off are billed: the rests between the rounds grow, and after ten prompts
// thrown away in a row the agent parks and says what they have cost.
func TestAnswersThatBreakOff(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var asked []time.Duration // after the first request
		began := time.Now()
		r.model = func(context.Context, model.Request) (model.Reply, error) {
			asked = append(asked, time.Since(began))
			if len(asked) == 3 { // free of charge
				return model.Reply{}, no(model.TryAgain, model.ServerError)
			}
			return model.Reply{}, &model.Refusal{Advice: model.TryAgain, Reason: model.Incomplete, Thrown: 2, Err: errors.New("the answer broke off"),
				Used: model.Usage{WastedPrompt: 4000, WastedCompletion: 20, Estimated: true, Cost: 0.15, Currency: "USD"}}
		}
		r.start()
		began = time.Now()
		r.offer()
		for range 60 {
			r.pass(10 * time.Second)
		}
		want := []time.Duration{0, 2, 10, 30, 62, 190, 220}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(asked[:min(len(asked), len(want))], want) {
			t.Errorf("asked after %v, want %v", asked, want)
		}
		if !r.beat.Parked() || r.task().Status != team.Pending || r.task().Attempts != 0 {
			t.Errorf("the agent is %s, the task %s after %d attempts", r.beat.State, r.task().Status, r.task().Attempts)
		}
		cause := "the answer broke off; 10 prompts were thrown away in a row, some 20100 tokens, 0.75 USD"
		if len(r.parked) != 1 || r.parked[0] != cause || !slices.ContainsFunc(r.sent, func(m team.Message) bool { return m.To == team.Leader && strings.Contains(m.Content, cause) }) {
			t.Errorf("the record says %q; sent %+v", r.parked, r.sent)
		}
		r.model = func(context.Context, model.Request) (model.Reply, error) { return r.reply("I am back"), nil }
		r.pass(maxPark)
		if r.beat.Parked() || len(r.parked) != 2 {
			t.Errorf("after an answer it is %s", r.beat.State)
		}
	})
}

// A successor knows that the leader was told, and tries at once.
func TestParkedIsRemembered(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.Park, model.BadKey)
		r.refuses(model.Park, model.BadKey)
		r.start()
		r.offer()
		r.stop()
		r.opts.Member.Incarnation = 2
		r.start()
		told := map[string]bool{} // by id: of one id the leader reads one
		for _, m := range r.sent {
			if strings.Contains(m.Content, "My model refuses") {
				told[m.ID] = true
			}
		}
		if len(told) != 1 || told[""] || len(r.asked) != 2 {
			t.Errorf("the leader was told %v; asked %d times", told, len(r.asked))
		}
	})
}

func TestLeaderRefusedAtFirstCall(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var ended []string
		r.opts.Member.AgentID = team.Leader
		r.team.endGoal = func(_ context.Context, cause string) { ended = append(ended, cause) }
		r.refuses(model.Park, model.BadKey)
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if len(ended) != 1 || ended[0] != "the endpoint says no" || len(r.parked) != 0 {
			t.Errorf("the goal was ended with %q; parked %q", ended, r.parked)
		}
		r.wantKinds("start mail refused end")
	})
}

// Later the leader parks, and keeps its goal.
func TestLeaderRefusedLater(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.team.endGoal = func(context.Context, string) { t.Error("the goal was ended") }
		r.says("!look")
		r.refuses(model.Park, model.NoCredit)
		r.says("I go on")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if !r.beat.Parked() || len(r.parked) != 1 || len(r.sent) != 0 {
			t.Errorf("beat %+v, parked %q, sent %+v", r.beat, r.parked, r.sent)
		}
		r.pass(firstPark)
		r.wantKinds("start mail turn result refused turn end")
	})
}

func TestNoModel(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var ended string
		r.opts.Member.AgentID = team.Leader
		r.opts.Model, r.team.endGoal = nil, func(_ context.Context, cause string) { ended = cause }
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if !strings.Contains(ended, "no model is configured") || !strings.Contains(ended, "OPENAI_MODEL") {
			t.Errorf("the goal was ended with %q", ended)
		}
	})
}

// A conversation that the endpoint calls too long is shortened and asked again; the
// task neither fails nor counts an attempt.
func TestTooLong(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.tools["read_file"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat("a line of the file\n", 3000)}
		}
		r.says("!read_file", "!read_file,look", "!read_file", "!read_file", "!read_file")
		r.refuses(model.Compact, model.ContextLength)
		r.says("go on", "done", "done")
		r.start()
		r.offer()
		if got := len(r.asked); got != 9 {
			t.Errorf("asked %d times", got)
		}
		before, after := sizeOf(r.asked[5].Messages), sizeOf(r.asked[6].Messages)
		if after*2 > before || !strings.Contains(transcript(r.asked[6].Messages), "title: Count") {
			t.Errorf("after the refusal a request of %d tokens instead of %d:\n%s", after, before, transcript(r.asked[6].Messages))
		}
		if !strings.Contains(r.kinds(), "result refused compact turn") {
			t.Errorf("journal: %s", r.kinds())
		}
	})
}

// A task that is refused alone, on a fresh context, while the agent is answered without it, is
// failed if nobody else could take it, with that reason; the agent goes on with the next.
func TestRefusedAlone(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.says("!look")
		for range 3 { // whole, without its last turn, alone
			r.refuses(model.GiveUp, model.ContentFilter)
		}
		r.says("ready")
		r.start()
		r.offer()
		if r.task().Status != team.Failed || r.task().Attempts != 0 || !strings.Contains(r.task().Reason, "refuses this task by itself: the endpoint says no") {
			t.Errorf("the task is %s after %d attempts: %q", r.task().Status, r.task().Attempts, r.task().Reason)
		}
		r.wantStates(team.Idle, team.Running, team.Idle)
		r.next(team.Task{ID: "T-002", Title: "Harmless", Status: team.Pending})
		r.says("ok", "done")
		r.offer()
		if got := transcript(r.asked[5].Messages); strings.Contains(got, "title: Count") || !strings.Contains(got, "T-001 (left out): failed") {
			t.Errorf("for the next task the model was told\n%s", got)
		}
	})
}

// A filter that refuses one task, and the next one once with what came before, fails
// the first only.
func TestFilterDoesNotSpread(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		for range 2 {
			r.refuses(model.GiveUp, model.ContentFilter)
		}
		r.says("ready")
		r.start()
		r.offer()
		r.next(team.Task{ID: "T-002", Title: "Harmless", Status: team.Pending})
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("ok", "done")
		r.offer()
		if r.task().Status == team.Failed {
			t.Errorf("T-002 is failed: %s", r.task().Reason)
		}
	})
}

// A task that is assigned just as the endpoint begins to refuse does not stay in the
// hand of an agent that cannot work.
func TestAssignedWhileParked(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.refuses(model.Park, model.BadKey)
		r.start()
		r.post(1, team.Leader, team.MsgMessage, "hello")
		r.given <- r.claim()
		r.pass(time.Second)
		if r.holds() || r.task().Status != team.Pending || r.task().Attempts != 0 {
			t.Errorf("the task is %s after %d attempts", r.task().Status, r.task().Attempts)
		}
	})
}
