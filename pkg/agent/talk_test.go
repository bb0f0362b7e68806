package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// talks makes the tools thank and ask write to another member.
func (r *rig) talks(to team.AgentID) {
	for name, question := range map[string]bool{"thank": false, "ask": true} {
		r.tools[name] = func(context.Context, tool.Call) tool.Result {
			e := r.agent.conv.Exchange(to, 0)
			return tool.Result{Content: "sent", Effects: tool.Effects{Backoff: true, Sent: &team.Sent{To: to, Exchange: e, Question: question}}}
		}
	}
}

// hears has a message of a model come. news: its sender had some.
func (r *rig) hears(seq uint64, from team.AgentID, news, question bool) {
	r.mail <- mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("m%d", seq), Type: team.MsgMessage, From: from, To: r.opts.Member.AgentID, AwaitReply: question,
		Content: fmt.Sprintf("thanks %d", seq), Exchange: &team.Exchange{N: 1, News: news}}, Seq: seq, Ack: func() { r.acked = append(r.acked, seq) }}
	r.settle()
}

// sentTo are the texts of the notices to somebody.
func (r *rig) sentTo(to team.AgentID) (texts []string) {
	for _, m := range r.sent {
		if m.To == to {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

// Two members that thank each other: from the seventh message on mail wakes the agent no more, also if its
// process is replaced meanwhile. It is read with the next news.
func TestHeldMail(t *testing.T) {
	for _, kill := range []uint64{0, 2, 4, 5, 7, 8} { // before this message
		loop(t, func(t *testing.T, r *rig) {
			r.talks("coder-2")
			for range 3 {
				r.says("!thank")
			}
			r.start()
			for seq := uint64(1); seq <= 8; seq++ {
				if seq == kill {
					r.stop()
					r.opts.Member.Incarnation++
					r.start()
				}
				r.hears(seq, "coder-2", false, false)
				want := min(int(seq), 3) // the 1st, 3rd and 5th are answered; the 7th of both is held
				if len(r.asked) != want {
					t.Fatalf("after its %d. message the model was asked %d times, want %d", seq, len(r.asked), want)
				}
			}
			told := r.sentTo(team.UserAgent)
			if len(told) != 1 || !strings.Contains(told[0], "[Held] coder-2 and coder-1 have written 7 messages") {
				t.Errorf("the person is notified of %q", told)
			}
			if r.beat.Unseen || r.beat.State != team.Idle || r.beat.InboxSeq != 8 || r.beat.HeardSeq != 3 || len(r.acked) != 8 {
				t.Errorf("beat %+v, acknowledged %v", r.beat, r.acked)
			}
			r.says("news", "news")
			r.post(9, team.UserAgent, team.MsgUser, "go on")
			if len(r.asked) != 4 {
				t.Fatalf("news has the model asked %d times", len(r.asked)-3)
			}
			last := r.asked[3].Messages
			if got := transcript(last[len(last)-1:]); !strings.Contains(got, "thanks 4") || !strings.Contains(got, "thanks 8") || !strings.Contains(got, "go on") {
				t.Errorf("with the news the model reads\n%s", got)
			}
			r.hears(10, "coder-2", false, false) // the row is over
			if len(r.asked) != 5 {
				t.Errorf("the next message did not wake it")
			}
		})
	}
}

// What is no talk, of either, begins the row again; a question always wakes, and so does the answer to one.
func TestNotHeld(t *testing.T) {
	for name, play := range map[string]func(r *rig, seq uint64){
		"the agent calls another tool": func(r *rig, seq uint64) { r.says("!look", "!thank"); r.hears(seq, "coder-2", false, false) },
		"its sender has news":          func(r *rig, seq uint64) { r.says("!thank"); r.hears(seq, "coder-2", true, false) },
		"its sender asks":              func(r *rig, seq uint64) { r.says("!thank"); r.hears(seq, "coder-2", false, true) },
		"the agent is given a task": func(r *rig, seq uint64) {
			r.says("!thank", "done")
			r.hears(seq, "coder-2", false, false)
			r.next(team.Task{ID: team.TaskID(fmt.Sprintf("T-%03d", seq)), Title: "Count", Status: team.Pending})
			r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
			r.answers = nil
			r.says("!complete")
			r.offer()
		},
		"people write": func(r *rig, seq uint64) {
			r.says("!thank", "yes")
			r.hears(2*seq, "coder-2", false, false)
			r.post(2*seq+1, team.UserAgent, team.MsgUser, "go on")
		},
		"the agent asks": func(r *rig, seq uint64) {
			r.tools["ask"] = func(context.Context, tool.Call) tool.Result {
				return tool.Result{Content: "sent", Effects: tool.Effects{Sent: &team.Sent{To: "coder-2", Question: true}, Await: &team.Await{From: "coder-2", MessageID: "q"}}}
			}
			r.says("!ask")
			r.hears(seq, "coder-2", false, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			loop(t, func(t *testing.T, r *rig) {
				r.talks("coder-2")
				r.start()
				for seq := uint64(1); seq <= 12; seq++ {
					play(r, seq)
				}
				if told := r.sentTo(team.UserAgent); told != nil || len(r.answers) > 0 {
					t.Errorf("the person is notified of %q; answers left: %d", told, len(r.answers))
				}
			})
		})
	}
}

// Many messages at once count as many, and wake nobody if all are held.
func TestHeldPile(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var in inbox
		r.says("well", "well")
		for range 70 {
			in.add("coder-2", team.MsgBroadcast, "thanks to all")
			in[len(in)-1].Exchange = &team.Exchange{N: 1}
		}
		r.team.backlog = in.read
		r.start()
		r.deliver(in, 1)
		r.pass(nextWithin)
		asked := len(r.asked)
		more := uint64(len(in))
		for range 70 {
			in.add("coder-2", team.MsgBroadcast, "thanks to all")
			in[len(in)-1].Exchange = &team.Exchange{N: 1}
		}
		r.deliver(in, more+1)
		r.pass(nextWithin)
		if asked != 1 || len(r.asked) != 1 || len(r.sentTo(team.UserAgent)) != 1 {
			t.Errorf("asked %d and %d times; journal %s; the person is notified of %q", asked, len(r.asked), r.kinds(), r.sentTo(team.UserAgent))
		}
	})
}

// The leader is notified that an agent is idle if a task, a question or a file has changed since the last
// notice.
func TestIdleNotice(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.talks(team.Leader)
		notices := 0
		step := func(what string, want int, do func()) {
			t.Helper()
			do()
			is := len(slices.DeleteFunc(slices.Clone(r.sent), func(m team.Message) bool { return m.Type != team.MsgIdle }))
			if got := is - notices; got != want {
				t.Errorf("%s: %d notices, want %d", what, got, want)
			}
			notices = is
		}
		seq := uint64(0)
		heard := func(question bool, answers ...string) func() {
			return func() { seq++; r.says(answers...); r.hears(seq, team.Leader, true, question) }
		}
		r.start()
		step("a text", 0, heard(false, "well"))
		step("a file is read", 0, heard(false, "!look", "well"))
		step("mail is sent", 0, heard(false, "!thank"))
		step("a file is written", 1, heard(false, "!write", "well"))
		step("a text after that", 0, heard(false, "well"))
		step("it is asked", 1, heard(true, "!thank"))
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("5 files") }
		r.says("!complete")
		step("a task is completed", 1, r.offer)
		if last := r.sent[len(r.sent)-1]; !strings.Contains(last.Content, "completed: 5 files") {
			t.Errorf("the notice is %q", last.Content)
		}
		r.stop()
		r.opts.Member.Incarnation = 2
		step("a new process", 0, r.start)
		step("a text after all", 0, heard(false, "well"))
	})
}
