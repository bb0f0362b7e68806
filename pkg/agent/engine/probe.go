package engine

import (
	"context"
	"errors"
	"fmt"

	"agentteam/pkg/model"
	"agentteam/pkg/model/probe"
	"agentteam/pkg/store/journal"
)

// tryWindow probes whether the endpoint cuts prompts silently, once its reports of usage suggest
// it. A known window stays until a probe has been cut too. The result is recorded, and so shown to
// people.
func (e *Engine) tryWindow(ctx context.Context) error {
	size := e.calibration.probeSize()
	if size == 0 {
		return nil
	}
	known, guess := e.calibration.window(), e.calibration.guess
	p := probe.New(e.o.Name, size)
	step, done := e.step(ctx, false)
	reply, err := e.o.Model.Complete(step, p.Request(e.calibration.alias), nil)
	interrupted := step.Err() != nil
	done()
	if interrupted { // another turn tries it again
		return ctx.Err()
	}
	if overBudget(err) {
		return err
	}
	found := journal.Refusal{Advice: string(model.TryAgain), Reason: string(model.ContextLength), Alias: reply.Alias, Usage: usageJSON(reply.Usage)}
	r, refused := errors.AsType[*model.Refusal](err)
	if refused {
		found.Alias, found.Usage = r.Alias, usageJSON(r.Used)
	}
	switch {
	case refused && r.Reason == model.ContextLength, !refused && reply.Alias == e.calibration.by && p.Read(reply) == probe.Cut:
		window, instead := max(guess, reply.Usage.PromptTokens), ""
		if known > 0 {
			instead = fmt.Sprintf(", in place of %d", known)
		}
		if refused && r.Window > 0 {
			window = r.Window
		}
		e.calibration.probed(window)
		found.Advice = string(model.Compact)
		found.Cause = fmt.Sprintf("the endpoint cuts long prompts without a word: it did not read the beginning of one of %d tokens. Its window is taken for %d tokens%s (enlarge it where the model is served, or correct window in the settings)",
			p.Tokens, window, instead)
	case !refused && reply.Alias == e.calibration.by:
		e.calibration.probed(0)
		found.Cause = fmt.Sprintf("the endpoint reports fewer tokens than it is sent, but reads a prompt of %d tokens whole: its window stays as it is", p.Tokens)
	default:
		e.calibration.unprobed()
		found.Cause = "the endpoint may cut long prompts without a word, and a probe of that was not answered"
	}
	e.log.WarnContext(ctx, "window probed", "tokens", p.Tokens, "window", e.calibration.window(), "found", found.Cause)
	return e.Record(ctx, journal.Record{Kind: journal.Refused, Refusal: &found})
}

// ProbeText is the user message of a probe.
const ProbeText = "Answer with the word ready."

// Probe asks the model for one line, with the system message and the tools of every request, and
// reports whether it answers. err is the refusal or [ErrInterrupted] if it does not. used is the
// cost of the probe.
func (e *Engine) Probe(ctx context.Context) (answers bool, used model.Usage, err error) {
	step, done := e.step(ctx, false)
	defer done()
	reply, err := e.complete(step, []*model.Message{userMessage(ProbeText)}, 0, nil)
	switch {
	case err == nil:
		return Usable(reply), reply.Usage, nil
	case ctx.Err() != nil:
		return false, used, ctx.Err()
	case step.Err() != nil:
		return false, used, ErrInterrupted
	}
	r := asRefusal(err)
	return false, r.Used, r
}
