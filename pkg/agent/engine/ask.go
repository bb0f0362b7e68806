package engine

import (
	"context"
	"errors"
	"strings"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// ErrInterrupted ends a turn because of an [Interrupt], or because a step may not continue: check
// the state and ask again.
var ErrInterrupted = errors.New("the model was interrupted")

// Turn gets one complete answer of the model and records it. If long is set, the answer may fill
// the rest of the window. Errors: *model.Refusal; [ErrInterrupted]; ctx's; those of the journal and
// of the owner.
func (e *Engine) Turn(ctx context.Context, long bool) (model.Reply, error) {
	if err := e.o.Owner.Leave(ctx, Ask); err != nil {
		return model.Reply{}, err
	}
	step, done := e.step(ctx, true)
	id := journal.NewID() // those who watch the text know it by the id of its record
	most := 0
	if long {
		most = e.calibration.spare(e.conv)
	}
	reply, err := e.complete(step, e.conv.Messages, most, e.o.Stream(id))
	interrupted := step.Err() != nil
	done()
	switch {
	case err == nil: // what came before it was stored before the model was asked
		return reply, e.Enqueue(ctx, journal.Record{ID: id, Kind: journal.Turn, Turn: JSON(reply)})
	case ctx.Err() != nil:
		return reply, ctx.Err()
	case interrupted:
		return reply, ErrInterrupted
	}
	if u, ok := errors.AsType[unstored](err); ok {
		return reply, u.error
	}
	e.log.WarnContext(ctx, "model call failed", "err", err)
	r := asRefusal(err)
	if r.Window > 0 {
		e.calibration.bound = r.Window
	}
	return reply, r
}

// asRefusal returns err as a refusal. Any other error means that the request could not even be
// made.
func asRefusal(err error) *model.Refusal {
	if r, ok := errors.AsType[*model.Refusal](err); ok {
		return r
	}
	return &model.Refusal{Advice: model.GiveUp, Reason: model.InvalidRequest, Err: err}
}

// overBudget reports whether a call was not made, since it would exceed a budget.
func overBudget(err error) bool {
	r, ok := errors.AsType[*model.Refusal](err)
	return ok && r.OverBudget
}

// complete asks the model to continue messages; speech, which may be nil, receives its text.
func (e *Engine) complete(ctx context.Context, messages []*model.Message, maxTokens int, speech TextStream) (model.Reply, error) {
	if e.o.Model == nil {
		return model.Reply{}, &model.Refusal{Advice: model.Park, Reason: model.NoEndpoint,
			Err: team.Errorf(team.InvalidArgument, "no model is configured for %s", e.o.Name).
				WithHint("set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, for the leader and teammate processes")}
	}
	r := e.calibration.request(messages)
	r.Image = func(i model.Image) ([]byte, error) { return e.image(ctx, i) }
	r.Ready = func() error {
		// A successor must not find the result of a call unknown that the model has seen.
		if err := e.o.Journal.Flush(); err != nil {
			return unstored{err}
		}
		return nil
	}
	r.MaxTokens, r.OnRetry = maxTokens, func(t model.Retry) {
		e.Trouble = team.Clean(t.String(), MaxTrouble)
		e.o.Watcher.Retry(t)
	}
	r.Quoted = e.conv.Quoted
	var onDelta func(string)
	if speech != nil {
		onDelta, r.OnTry = speech.Add, speech.Begin
		defer speech.End()
	}
	reply, err := e.o.Model.Complete(ctx, r, onDelta)
	if err == nil {
		e.calibration.counted(messages, reply.Alias, reply.Usage)
		e.Trouble = ""
		e.o.Watcher.Progress()
	}
	return reply, err
}

// MaxTrouble is how many characters of a model's failure are shown while the call is retried.
const MaxTrouble = 200

// unstored wraps the journal's error if the records before a request could not be stored.
type unstored struct{ error }

func (u unstored) Unwrap() error { return u.error }

// Refused records that a call gave no turn, and the advice that is followed.
func (e *Engine) Refused(ctx context.Context, r *model.Refusal, advice model.Advice, cause string) error {
	return e.Record(ctx, journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{
		Advice: string(advice), Reason: string(r.Reason), Cause: cause, Alias: r.Alias, Usage: usageJSON(r.Used)}})
}

// maxCause is how many characters of a model's refusal are shown: an endpoint may answer with a
// whole page.
const maxCause = 1000

// Cause returns a refusal as text for people, with its hint.
func Cause(r *model.Refusal) string {
	text := r.Error()
	if hint := team.HintOf(r); hint != "" {
		text += " (" + hint + ")"
	}
	return team.Clean(text, maxCause)
}

func usageJSON(u model.Usage) []byte {
	if u == (model.Usage{}) {
		return nil
	}
	return JSON(u)
}

// Usable reports whether an answer has text or calls and was not cut off.
func Usable(r model.Reply) bool { return !CutOff(r) && !Empty(r) }

// CutOff reports whether an answer reached its length limit without a complete call.
func CutOff(r model.Reply) bool { return r.FinishReason == "length" && len(r.Message.ToolCalls) == 0 }

// Empty reports whether an answer has neither text nor calls, as models return now and then after a
// tool's result.
func Empty(r model.Reply) bool {
	return len(r.Message.ToolCalls) == 0 && strings.TrimSpace(r.Message.Content) == ""
}
