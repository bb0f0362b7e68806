package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
)

// notices are all occasions on which the runtime says something to an agent, or says
// something to the leader in its name, with how to bring them about.
var notices = []struct {
	when string
	do   func(r *rig)
}{
	{"It stops with a task in hand, three times.", func(r *rig) {
		r.says("I think", "I still think", "I think on")
		r.start()
		r.offer()
	}},
	{"Its answer is cut at the output limit; then one is empty, with a task in hand.", func(r *rig) {
		r.answers = append(r.answers, func(model.Request) (model.Reply, error) {
			reply := r.reply("and th")
			reply.FinishReason = "length"
			return reply, nil
		})
		r.says("", "!complete")
		r.start()
		r.offer()
	}},
	{"Its turns run out.", func(r *rig) {
		r.opts.MaxTurns = 3
		r.says("!look", "!peek", "!stare")
		r.start()
		r.offer()
	}},
	{"It goes in circles.", func(r *rig) {
		r.says(slices.Repeat([]string{"!look"}, 2*maxRepeats)...)
		r.start()
		r.offer()
	}},
	{"It asks for too many calls in one turn.", func(r *rig) {
		r.says("!"+strings.Repeat("look,", maxCalls)+"look", "bye")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "Do it.")
	}},
	{"Its task is taken away.", func(r *rig) {
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.reap()
			r.revoke()
			return tool.Result{Content: "seen"}
		}
		r.says("!look", "bye")
		r.start()
		r.offer()
	}},
	{"The record of its task cannot be read.", func(r *rig) {
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.damage()
			time.Sleep(r.opts.Lease) // so that it makes sure of its task before its next turn
			return tool.Result{Content: "seen"}
		}
		r.says("!look", "!complete")
		r.start()
		r.offers <- r.task()
		r.pass(time.Minute)
		r.heal()
		r.pass(time.Minute)
	}},
	{"The same, as its task is to be put back.", func(r *rig) {
		r.opts.MaxTurns = 1
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			r.damage()
			return tool.Result{Content: "seen"}
		}
		r.says("!look", "!complete")
		r.start()
		r.offer()
	}},
	{"Its process is replaced amid a call; the task is still its own.", func(r *rig) {
		r.killBefore = 3
		r.says("!write")
		r.start()
		r.offers <- r.task()
		<-r.ended
		r.killBefore = 0
		r.opts.Member.Incarnation = 2
		r.says("!complete")
		r.start()
	}},
	{"Its process is replaced, and its task is no longer its own.", func(r *rig) {
		r.killAfter = 2
		r.start()
		r.offers <- r.task()
		<-r.ended
		r.reap()
		r.killAfter = 0
		r.opts.Member.Incarnation = 2
		r.says("bye")
		r.start()
	}},
	{"No answer comes.", func(r *rig) {
		r.awaits("coder-2")
		r.says("!ask", "!complete")
		r.start()
		r.offer()
		r.pass(11 * time.Minute)
	}},
	{"The person whom it asked leaves.", func(r *rig) {
		r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: "sent", Effects: tool.Effects{Await: &team.Await{From: "ann", MessageID: "q1", About: "Which colour?"}}}
		}
		r.team.left = func(context.Context, team.AgentID) error { time.Sleep(time.Hour); return nil }
		r.says("!ask", "!complete")
		r.start()
		r.offer()
		r.pass(2 * time.Hour)
	}},
	{"It waits for a decision on its plan, whose mail is lost.", func(r *rig) {
		r.submits()
		r.team.decided = func(context.Context, string) (string, error) {
			return team.Approval{ID: "9f0c", Status: team.PlanRejected, Feedback: "Leave the lexer as it is."}.Verdict(), nil
		}
		r.says("!submit", "!complete")
		r.start()
		r.offer()
		r.pass(time.Minute)
	}},
	{"A leader answers a question, and a plan, with text.", func(r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.team.asking = func() []team.Heartbeat {
			return []team.Heartbeat{
				{AgentID: "coder-1", State: team.WaitingAnswer, Awaits: team.Leader, Asked: "m1", About: "Which colour?"},
				{AgentID: "coder-2", State: team.WaitingApproval, Awaits: team.Leader, Asked: "r1", About: "first the lexer"},
			}
		}
		r.says("Hm.", "Blue.", "As I said.", "Good.", "Bye.", "Bye.")
		r.start()
		r.post(1, "coder-1", team.MsgMessage, "Which colour?")
		r.post(2, "coder-2", team.MsgPlanRequest, "coder-2 asks for approval of its plan r1 and changes nothing before.\n\nfirst the lexer")
	}},
	{"A leader's team has changed since its last turn.", func(r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.team.overview = func(context.Context) (explain.Overview, error) {
			return explain.Overview{Members: map[team.MemberState]int{team.Idle: 1, team.Running: 2}, Running: 2, Claimable: 1, Blocked: 3, Failed: 1, Plans: 1, Questions: 1, Unread: 2}, nil
		}
		r.says("I see.")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "Do it.")
	}},
	{"It is asked to shut down while it works.", func(r *rig) {
		r.decides("answer", false, "the parser is half done")
		r.asksDuring(team.Message{From: team.UserAgent, Content: "We have too many."})
		r.says("!look", "!answer", "!complete")
		r.start()
		r.offer()
	}},
	{"It is to leave once it has no task.", func(r *rig) {
		r.asksDuring(team.Message{From: team.UserAgent, Content: "We have too many.", Drain: true})
		r.says("!look", "!complete")
		r.start()
		r.offer()
	}},
	{"Its conversation is made shorter before it has answered such a request.", func(r *rig) {
		r.limits.Window = 12_000
		r.asksDuring(team.Message{From: team.Leader, Content: "We have too many."})
		r.decide = func(messages []*model.Message) string {
			switch text := messages[len(messages)-1].Content; {
			case strings.HasPrefix(text, summaryPrompt):
				return "I counted, and found 42 lines."
			case strings.Contains(transcript(messages), "42 lines"):
				return "!complete"
			}
			return "!peek"
		}
		r.tools["peek"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: fmt.Sprintf("finding %d\n", len(r.ran)) + strings.Repeat("more\n", 4000)}
		}
		r.says("!look")
		r.start()
		r.offer()
	}},
	{"It takes its next task.", func(r *rig) {
		r.says("I see.", "!complete", "!complete")
		r.start()
		r.post(1, team.Leader, team.MsgMessage, "Use the new parser.")
		r.offer()
		r.next(team.Task{ID: "T-002", Title: "Sum up", Status: team.Pending})
		r.offer()
	}},
	{"Urgent mail comes amid its calls.", func(r *rig) {
		r.tools["write"] = func(context.Context, tool.Call) tool.Result {
			r.urge(2)
			return tool.Result{Content: "written"}
		}
		r.says("!write,look", "bye")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "Do it.")
		r.pass(time.Second)
	}},
	{"Mail has piled up.", func(r *rig) {
		var in inbox
		in.add(team.Leader, team.MsgMessage, "Use the new parser.")
		for i := range 60 {
			in.add(team.AgentID(fmt.Sprintf("coder-%d", 2+i%2)), team.MsgMessage, fmt.Sprintf("Thank you, %d.", i))
		}
		r.team.backlog = in.read
		r.says("bye")
		r.start()
		r.deliver(in, 1)
		synctest.Wait()
	}},
	{"Mail is too long for its window.", func(r *rig) {
		r.opts.Store, r.limits = &shelf{}, model.Limits{Window: 8000}
		r.says("bye")
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "first line\n"+strings.Repeat("0123456789 abcdef 0123456789 abcdef 0123456789 abcdef\n", 2000)+"last line")
		for i := range r.journal {
			if m := r.journal[i].Message; m != nil { // for who reads this
				short := *m
				at, end := strings.Index(m.Content, "\n["), strings.Index(m.Content, "]\n")
				short.Content = "first line\n..." + m.Content[at:end+2] + "...\nlast line"
				r.journal[i].Message = &short
			}
		}
	}},
	{"Its model's endpoint refuses to answer for good.", func(r *rig) {
		r.says("!look")
		r.refuses(model.Park, model.NoCredit)
		r.start()
		r.offer()
	}},
	{"The endpoint refuses the conversation as too long.", func(r *rig) {
		r.says("!look")
		r.refuses(model.Compact, model.ContextLength)
		r.refuses(model.Compact, model.ContextLength)
		r.says("!complete")
		r.asksDuring(team.Message{From: team.Leader, Content: "We have too many."})
		r.start()
		r.offer()
	}},
	{"The endpoint refuses the conversation's content.", func(r *rig) {
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("bye")
		r.start()
		r.post(1, "coder-2", team.MsgMessage, "something awful")
	}},
	{"The endpoint cannot read a tool call, again and again.", func(r *rig) {
		r.refuses(model.GiveUp, model.FailedCall)
		r.says("ok", "ok", "ok")
		r.start()
		r.offer()
	}},
	{"The endpoint refuses the results of a turn, and then the conversation.", func(r *rig) {
		r.says("!look,look-twice")
		r.refuses(model.GiveUp, model.InvalidRequest)
		r.refuses(model.GiveUp, model.InvalidRequest)
		r.says("ok", "ok", "ok")
		r.start()
		r.offer()
	}},
	{"Its answers are cut at the output limit before they say anything, three runs long.", func(r *rig) {
		r.limits = model.Limits{Window: 32_000, MaxOutput: 4000}
		for range 12 {
			r.cuts()
		}
		r.says("ready")
		r.start()
		for range 3 {
			r.offer()
			r.pass(time.Second)
		}
		r.pass(firstPark)
	}},
	{"The endpoint refuses whatever it asks.", func(r *rig) {
		for range 3 {
			r.refuses(model.GiveUp, model.ContentFilter)
		}
		r.says("ready")
		r.start()
		r.offer()
		r.pass(firstPark)
	}},
	{"The endpoint refuses the task by itself.", func(r *rig) {
		r.refuses(model.GiveUp, model.ContentFilter)
		r.refuses(model.GiveUp, model.ContentFilter)
		r.says("ready", "bye")
		r.start()
		r.offer()
		r.post(1, team.UserAgent, team.MsgUser, "Go on.")
	}},
}

// What the runtime tells a model, and the leader in a member's name, in each dialect where
// they differ: to be read in testdata/notices.txt.
func TestNotices(t *testing.T) {
	var b strings.Builder
	for _, n := range notices {
		told := map[team.Dialect]string{}
		for _, d := range []team.Dialect{team.Native, team.Claude} {
			t.Run(n.when+" "+string(d), func(t *testing.T) {
				loop(t, func(t *testing.T, r *rig) {
					r.opts.Dialect = d
					r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("42 lines") }
					n.do(r)
					r.settle()
					told[d] = r.told()
				})
			})
		}
		fmt.Fprintf(&b, "# %s\n%s\n", n.when, told[team.Native])
		if told[team.Claude] != told[team.Native] {
			fmt.Fprintf(&b, "## In the dialect claude\n%s\n", told[team.Claude])
		}
	}
	golden(t, "notices", b.String())
}

// told is all that the runtime has told the agent, and others in its name.
func (r *rig) told() string {
	var b strings.Builder
	for _, rec := range r.journal {
		c := newConversation(r.opts.Dialect)
		switch {
		case rec.Kind == journal.Result && rec.Result.IsError:
			fmt.Fprintf(&b, "result of %s: %s\n", rec.Result.Name, rec.Result.Content)
		case rec.Kind == journal.Mail && rec.Message.Type == team.MsgUser: // of a person, who needs no runtime
		case rec.Context != nil, rec.Kind == journal.Note, rec.Kind == journal.Mail, rec.Kind == journal.Backlog, rec.Kind == journal.Overview:
			if err := c.Add(rec); err != nil {
				r.t.Fatal(err)
			}
			for _, m := range c.Messages {
				if m.Role == "user" {
					b.WriteString(m.Content + "\n")
				}
			}
		}
	}
	for _, m := range r.sent {
		fmt.Fprintf(&b, "to %s, %s: %s\n", m.To, m.Type, m.Content)
	}
	return b.String()
}
