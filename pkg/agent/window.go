package agent

import (
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/journal"
	"agentteam/pkg/model"
)

// tryWindow finds out whether the endpoint cuts prompts without a word, once its reports of
// usage look like that. A window that is known, from the settings or otherwise, stays until
// a probe has been cut too. What was found is recorded, and so told to people.
func (a *Agent) tryWindow(ctx context.Context) error {
	size := a.gauge.probeSize()
	if size == 0 {
		return nil
	}
	known, guess := a.gauge.window(), a.gauge.guess
	p := model.NewProbe(string(a.o.Member.AgentID), size)
	step, done := a.step(ctx)
	reply, err := a.o.Model.Complete(step, p.Request(a.gauge.alias), nil)
	interrupted := step.Err() != nil
	done()
	if interrupted { // another turn tries it again
		return ctx.Err()
	}
	found := journal.Refusal{Advice: string(model.TryAgain), Reason: string(model.ContextLength), Alias: reply.Alias, Usage: usageJSON(reply.Usage)}
	r, refused := errors.AsType[*model.Refusal](err)
	if refused {
		found.Alias, found.Usage = r.Alias, usageJSON(r.Used)
	}
	switch {
	case refused && r.Reason == model.ContextLength, !refused && reply.Alias == a.gauge.by && p.Read(reply) == model.ReadCut:
		window := max(guess, reply.Usage.PromptTokens)
		if refused && r.Window > 0 {
			window = r.Window
		}
		a.gauge.probed(window)
		found.Advice = string(model.Compact)
		found.Cause = fmt.Sprintf("the endpoint cuts long prompts without a word: it did not read the beginning of one of %d tokens. Its window is taken for %d tokens%s (enlarge it where the model is served, or correct window in the settings)",
			p.Tokens, window, inPlaceOf(known))
	case !refused && reply.Alias == a.gauge.by:
		a.gauge.probed(0)
		found.Cause = fmt.Sprintf("the endpoint reports fewer tokens than it is sent, but reads a prompt of %d tokens whole: its window stays as it is", p.Tokens)
	default: // two low reports more lead to another one
		a.gauge.guess, a.gauge.low = 0, 0
		found.Cause = "the endpoint may cut long prompts without a word, and a probe of that was not answered"
	}
	a.log.WarnContext(ctx, "window probed", "tokens", p.Tokens, "window", a.gauge.window(), "found", found.Cause)
	return a.record(ctx, journal.Record{Kind: journal.Refused, TaskID: a.atWork(), Refusal: &found})
}

func inPlaceOf(window int) string {
	if window == 0 {
		return ""
	}
	return fmt.Sprintf(", in place of %d", window)
}
