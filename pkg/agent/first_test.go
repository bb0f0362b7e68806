package agent

import (
	"context"
	"strings"
	"testing"

	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// inOrder checks that the texts stand in the newest request one behind another, each once.
func (r *rig) inOrder(texts ...string) {
	r.t.Helper()
	heard := transcript(r.asked[len(r.asked)-1].Messages)
	rest := heard
	for _, text := range texts {
		before, after, ok := strings.Cut(rest, text)
		if !ok || strings.Count(heard, text) != 1 {
			r.t.Errorf("%q does not stand once behind what comes before it:\n%s", text, heard)
			return
		}
		_, rest = before, after
	}
}

// waiting puts mail there that the agent has yet to read.
func (r *rig) waiting(seq uint64) {
	r.mail <- mailbox.Delivery{Message: team.Message{ID: "waits", Type: team.MsgMessage, From: "coder-2", To: "coder-1", Content: "old news"}, Seq: seq, Ack: func() {}}
}

// reserve reserves the test's task for the agent, which finds it when it begins.
func (r *rig) reserve() {
	r.team.reserved = func(context.Context) (team.TaskID, bool) { return r.id, true }
}

// What a member was spawned with begins its first run, before all else; once, however often
// its process is replaced, and anew if it is spawned again with another.
func TestPrompt(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.Prompt, r.opts.Member.PromptFor, r.opts.Member.SpawnedBy = "Look after the parser.", 1, team.UserAgent
		r.reserve()
		r.waiting(7)
		r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.says("!complete", "done", "the lexer")
		r.start()
		r.inOrder(`<mail from="user" id="prompt-1"`, "Look after the parser.", "title: Count", "old news")
		r.stop()
		r.team.reserved = nil
		for incarnation := uint64(2); incarnation <= 3; incarnation++ {
			r.opts.Member.Incarnation = incarnation
			if incarnation == 3 {
				r.opts.Member.Prompt, r.opts.Member.PromptFor, r.opts.Member.SpawnedBy = "Now the lexer.", 3, team.Leader
			}
			r.start()
			r.stop()
		}
		r.inOrder("Look after the parser.", `<mail from="leader" id="prompt-3"`, "Now the lexer.")
		if r.cancel = nil; len(r.asked) != 2 {
			t.Errorf("the model was asked %d times: %s", len(r.asked), r.kinds())
		}
		r.wantKinds("start mail task mail turn result end mail turn end")
	})
}

// A process that dies anywhere around the first record of the prompt is followed by one that
// tells it once.
func TestPromptSurvivesKill(t *testing.T) {
	for n := range 4 {
		for _, after := range []bool{false, true} {
			loop(t, func(t *testing.T, r *rig) {
				r.opts.Member.Prompt, r.opts.Member.PromptFor = "Look after the parser.", 1
				if r.says("hello", "hello"); after {
					r.killAfter = n + 1
				} else {
					r.killBefore = n + 1
				}
				r.start()
				r.cancel()
				<-r.ended
				r.killBefore, r.killAfter = 0, 0
				r.opts.Member.Incarnation = 2
				r.start()
				told := 0
				for _, rec := range r.journal {
					if rec.Spawn == 1 {
						told++
					}
				}
				if told != 1 {
					t.Errorf("killed at record %d: the prompt was recorded %d times", n+1, told)
				}
				r.inOrder("Look after the parser.")
			})
		}
	}
}

// A task that was assigned is told before the mail that came meanwhile, whether the agent was
// away or idle.
func TestAssignedBeforeMail(t *testing.T) {
	t.Run("away", func(t *testing.T) {
		loop(t, func(t *testing.T, r *rig) {
			r.reserve()
			r.waiting(7)
			r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
			r.says("!complete", "done")
			r.start()
			r.inOrder("title: Count", "old news")
		})
	})
	t.Run("idle", func(t *testing.T) {
		loop(t, func(t *testing.T, r *rig) {
			task, _, err := r.hand.Assign(t.Context(), team.Assignment{Task: r.id, By: team.Leader})
			if err != nil {
				t.Fatal(err)
			}
			r.given <- task
			r.waiting(7)
			r.tools["complete"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
			r.says("!complete", "done")
			r.start()
			r.inOrder("title: Count", "old news")
		})
	})
}
