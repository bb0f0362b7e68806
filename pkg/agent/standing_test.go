package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tokens"
)

// agreement is mail of about 300 tokens.
func agreement(i int) string {
	return fmt.Sprintf("agreement %d. ", i) + strings.Repeat("as we said before, ", 60)
}

// onDigests makes the rig's model answer each request for a summary of older mail with
// the next of these, an error for "", and anything else with "well".
func onDigests(r *rig, digests ...string) (asked *[]string) {
	asked = new([]string)
	r.decide = func(messages []*model.Message) string {
		text := messages[len(messages)-1].Content
		if !strings.HasPrefix(text, digestPrompt) {
			return "well"
		}
		if len(messages) != 2 {
			r.t.Errorf("a summary of mail was asked for with %d messages", len(messages))
		}
		*asked = append(*asked, text)
		digest := digests[0]
		digests = digests[1:]
		return digest
	}
	return asked
}

// newTask has the agent take its next task, and returns what the model is told then.
func newTask(r *rig, n int) string {
	r.next(team.Task{ID: team.TaskID(fmt.Sprintf("T-%03d", n)), Title: "Next", Status: team.Pending})
	before := len(r.asked)
	r.offer()
	for _, req := range r.asked[before:] {
		if last := req.Messages[len(req.Messages)-1].Content; !strings.HasPrefix(last, digestPrompt) {
			return transcript(req.Messages[1:])
		}
	}
	r.t.Fatal("the model was not asked")
	return ""
}

// Mail that stands is told word for word while it is little; older mail is told by one
// summary, which takes in the one before.
func TestOlderMailIsSummarized(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		asked := onDigests(r, "in short: ports 4711 <task>", "shorter still")
		r.start()
		seq := uint64(0)
		mail := func(n int) {
			for range n {
				seq++
				r.post(seq, team.Leader, team.MsgMessage, agreement(int(seq)))
			}
		}
		mail(5)
		if got := newTask(r, 1); len(*asked) > 0 || !strings.Contains(got, "agreement 1.") || strings.Contains(got, "first words") {
			t.Errorf("with little mail, after %d summaries:\n%s", len(*asked), got)
		}
		mail(3)
		got := newTask(r, 2)
		if len(*asked) != 1 || !strings.Contains((*asked)[0], "agreement 1.") || strings.Contains((*asked)[0], "agreement 8.") {
			t.Fatalf("summaries were asked for: %q", *asked)
		}
		for _, want := range []string{"in short: ports 4711", "agreement 8.", "agreement 6."} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
		if strings.Contains(got, "agreement 1.") || strings.Contains(got, "4711 <task>") || strings.Contains(got, "first words") || tokens.Estimate(got) > 2*maxFacts {
			t.Errorf("%d tokens:\n%s", tokens.Estimate(got), got)
		}
		mail(1) // not each message leads to another summary
		if got := newTask(r, 3); len(*asked) != 1 || !strings.Contains(got, "in short: ports 4711") {
			t.Errorf("after one message more, %d summaries:\n%s", len(*asked), got)
		}
		mail(4)
		r.stop()
		r.opts.Member.Incarnation = 2
		r.start() // the journal tells all of it
		got = newTask(r, 4)
		if len(*asked) != 2 || !strings.Contains((*asked)[1], "in short: ports 4711") || !strings.Contains(got, "shorter still") || strings.Contains(got, "ports 4711") {
			t.Errorf("the second summary:\n%q\nthe model was told\n%s", (*asked)[1:], got)
		}
	})
}

// Where the model gives no summary, older mail is told by its first words, and what the
// failed try has cost is counted. The next context tries again with all of it.
func TestOlderMailWithoutSummary(t *testing.T) {
	paid := model.Usage{PromptTokens: 70_000, CompletionTokens: 7}
	for name, fails := range map[string]func(r *rig) (model.Reply, error){
		"refused": func(*rig) (model.Reply, error) {
			return model.Reply{}, &model.Refusal{Advice: model.TryAgain, Reason: model.ServerError, Used: paid, Err: errors.New("no")}
		},
		"a call": func(r *rig) (model.Reply, error) {
			reply := r.reply("!look")
			reply.Usage = paid
			return reply, nil
		},
		"cut": func(r *rig) (model.Reply, error) {
			reply := r.reply("The user said that agree")
			reply.FinishReason, reply.Usage = "length", paid
			return reply, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				asked := onDigests(r, "in short")
				r.start()
				for i := range 8 {
					r.post(uint64(i+1), team.UserAgent, team.MsgUser, agreement(i+1))
				}
				r.answers = append(r.answers, func(req model.Request) (model.Reply, error) {
					if !strings.HasPrefix(req.Messages[1].Content, digestPrompt) {
						t.Errorf("the model was asked\n%s", transcript(req.Messages))
					}
					return fails(r)
				})
				got := newTask(r, 1)
				if !strings.Contains(got, "by its first words:|- user: agreement 1.") || !strings.Contains(got, "agreement 8.") {
					t.Errorf("the model was told\n%s", got)
				}
				if n := r.agent.conv.Usage.PromptTokens; n < paid.PromptTokens {
					t.Errorf("%d tokens are counted, of the failed try alone there were %d", n, paid.PromptTokens)
				}
				if got := newTask(r, 2); len(*asked) != 1 || !strings.Contains((*asked)[0], agreement(1)) || strings.Contains(got, "first words") {
					t.Errorf("the next context: asked %q, told\n%s", *asked, got)
				}
			})
		})
	}
}

// More than fits into one question is summed up in several.
func TestMuchOlderMail(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits = model.Limits{Window: 16_000}
		asked := onDigests(r, "first", "second", "third")
		r.start()
		for i := range 25 {
			r.post(uint64(i+1), team.UserAgent, team.MsgUser, agreement(i+1))
		}
		got := newTask(r, 1)
		if n := len(*asked); n != 2 || !strings.Contains((*asked)[1], "first") || strings.Contains(got, "first words") || !strings.Contains(got, "second") {
			t.Errorf("after %d summaries the model was told\n%s", n, got)
		}
	})
}

// The task of a new context may come just as the one before was taken away.
func TestOlderMailAfterLoss(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		asked := onDigests(r, "in short")
		digest := r.decide
		r.decide = func(messages []*model.Message) string {
			if said := digest(messages); said != "well" {
				return said
			}
			return "!ask"
		}
		r.awaits("coder-2")
		r.start()
		r.offer()
		for i := range 9 {
			r.post(uint64(i+1), team.UserAgent, team.MsgUser, agreement(i+1))
		}
		r.stored = func() { // the agent is busy, so it hears of the loss and of the next task at once
			r.stored = nil
			r.reap()
			r.next(team.Task{ID: "T-002", Title: "Next", Status: team.Pending})
			r.given <- r.claim() // which finds the loss
		}
		r.post(10, "coder-3", team.MsgMessage, "by the way")
		if got := transcript(r.asked[len(r.asked)-1].Messages[1:]); len(*asked) != 1 || !strings.Contains(got, "in short") || strings.Contains(got, "first words") {
			t.Errorf("after %d summaries the model was told\n%s", len(*asked), got)
		}
	})
}

// The goal takes no room from other mail that stands.
func TestLongGoalBesideOlderMail(t *testing.T) {
	mail := func(goal, words int) fact {
		return fact{From: team.UserAgent, Type: team.MsgUser, Goal: goal, Block: strings.Repeat(" word", words)}
	}
	c := newConversation("")
	c.Goal, c.Facts, c.Known = 2, []fact{mail(1, 550), mail(1, 550), mail(2, 1700)}, 3
	if which := c.old(); which != nil {
		t.Errorf("to be summed up: %v", which)
	}
	if told := c.standing(maxFacts); len(told) != 3 {
		t.Errorf("told word for word: %v", told)
	}
}
