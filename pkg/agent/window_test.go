package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// onProbes has the rig's model call look 30 times, count prompts as reported says, and answer
// probes by answer. It returns how often it was probed.
func onProbes(r *rig, reported func(messages []*model.Message) int, answer func(prompt string) string) (probes *int) {
	probes = new(int)
	turns := 0
	r.model = func(_ context.Context, req model.Request) (model.Reply, error) {
		r.asked = append(r.asked, req)
		text := ""
		prompt := transcript(req.Messages)
		switch {
		case strings.Contains(prompt, "The word of the day is "):
			*probes++
			text = answer(prompt)
		case strings.HasPrefix(req.Messages[len(req.Messages)-1].Content, summaryPrompt[:20]):
			text = "in short"
		default:
			if turns++; turns > 30 {
				text = "done"
			} else {
				text = "!look"
			}
		}
		reply := r.reply(text)
		reply.Usage = model.Usage{PromptTokens: reported(req.Messages), CompletionTokens: 5}
		return reply, nil
	}
	return probes
}

// A window that is set stays, however few tokens the endpoint reports, unless a probe is cut
// too. Here it makes fewer tokens than we think of what the tools return.
func TestGuessNeverOverrulesSetting(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits.Window = 1_000_000
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: fmt.Sprintf("%d ", len(r.ran)) + strings.Repeat("q9Zx7LmT2cVb", 2000)}
		}
		probes := onProbes(r, func(messages []*model.Message) (n int) {
			for _, m := range messages {
				if m.Role == "tool" {
					n += size(m) / 4
				} else {
					n += size(m)
				}
			}
			return n
		}, func(string) string { return "sunshine" })
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if k := r.kinds(); r.beat.Window != 1_000_000 || strings.Contains(k, "compact") || *probes != 1 || strings.Count(k, "refused") != 1 {
			t.Errorf("the window is %d after %d probes; journal %s", r.beat.Window, *probes, k)
		}
	})
}

// A cut is proven by a probe, also where tokens are reported as cached, and then told to
// people with what they can do.
func TestCutIsProven(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits.Window = 32_000
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat(fmt.Sprintf("finding %d of the survey\n", len(r.ran)), 200)}
		}
		probes := onProbes(r, func(messages []*model.Message) int { return min(sizeOf(messages), 8192) }, func(string) string { return "sunshine" })
		ask := r.model
		r.model = func(ctx context.Context, req model.Request) (model.Reply, error) {
			reply, err := ask(ctx, req)
			reply.Usage.CachedTokens = reply.Usage.PromptTokens / 2
			return reply, err
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if r.beat.Window != 8192 || *probes != 1 || !strings.Contains(r.kinds(), "compact") {
			t.Errorf("the window is %d after %d probes; journal %s", r.beat.Window, *probes, r.kinds())
		}
		var told string
		for _, rec := range r.journal {
			if rec.Refusal != nil {
				told += rec.Refusal.Cause
			}
		}
		if !strings.Contains(told, "is taken for 8192 tokens, in place of 32000 (enlarge it") {
			t.Errorf("people are told %q", told)
		}
	})
}

// Each probe that is not answered doubles the low reports that lead to the next one: an
// endpoint that counts low and refuses probes is not probed every second turn.
func TestUnansweredProbesBackOff(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.limits.Window = 1_000_000
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			return tool.Result{Content: fmt.Sprintf("%d ", len(r.ran)) + strings.Repeat("q9Zx7LmT2cVb", 2000)}
		}
		probes := onProbes(r, func(messages []*model.Message) int { return sizeOf(messages)/4 + 2000 }, nil)
		ask := r.model
		r.model = func(ctx context.Context, req model.Request) (model.Reply, error) {
			if strings.Contains(transcript(req.Messages), "The word of the day is ") {
				*probes++
				return model.Reply{}, &model.Refusal{Advice: model.GiveUp, Reason: model.InvalidRequest}
			}
			return ask(ctx, req)
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		if *probes < 2 || *probes > 4 {
			t.Errorf("%d probes in 30 turns", *probes)
		}
	})
}

// What a probe has shown ends with a larger request that is reported whole, and holds for

func (s *shelf) Get(context.Context, string) (string, error) { return "", team.ErrUnreadable }
