package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// rig is an engine among fakes: no team, no broker. It is its journal, its model and its owner.
type rig struct {
	t       *testing.T
	engine  *Engine
	records []journal.Record
	asked   []model.Request
	answers []any // a string, "!name" for a call; or an error
	window  int
	tool    func(ctx context.Context, name string) tool.Result // default: answers in a few words
	steps   []Step
	leave   func(Step) error
	effects []tool.Effects
}

func newRig(t *testing.T, answers ...any) *rig {
	r := &rig{t: t, answers: answers}
	r.engine = New(Options{Name: "a", System: "You are a.", Model: r, Tools: tools{r}, Journal: r, Owner: r})
	return r
}

func (r *rig) Append(_ context.Context, rec journal.Record) (journal.Record, error) {
	r.records = append(r.records, rec)
	return rec, nil
}

func (r *rig) Enqueue(ctx context.Context, rec journal.Record) journal.Record {
	rec, _ = r.Append(ctx, rec)
	return rec
}

func (r *rig) Flush() error { return nil }

func (r *rig) Limits(string) model.Limits { return model.Limits{Window: r.window} }

func (r *rig) Meant(name string) (string, string) { return name, "m" }

func (r *rig) Complete(ctx context.Context, req model.Request, _ func(string)) (model.Reply, error) {
	r.asked = append(r.asked, req)
	if ctx.Err() != nil {
		return model.Reply{}, ctx.Err()
	}
	if len(r.answers) == 0 {
		r.t.Fatal("the model has no more answers")
	}
	next := r.answers[0]
	r.answers = r.answers[1:]
	reply := model.Reply{Message: model.Message{Role: "assistant"}}
	switch next := next.(type) {
	case error:
		return reply, next
	case string:
		reply.Message.Content = next
		if names, calls := strings.CutPrefix(next, "!"); calls {
			reply.Message.Content = ""
			for name := range strings.SplitSeq(names, ",") {
				reply.Message.ToolCalls = append(reply.Message.ToolCalls, model.ToolCall{ID: fmt.Sprintf("%d-%s", len(r.asked), name), Name: name, Arguments: "{}"})
			}
		}
	}
	return reply, nil
}

func (r *rig) Leave(_ context.Context, s Step) error {
	r.steps = append(r.steps, s)
	if r.leave != nil {
		return r.leave(s)
	}
	return nil
}

func (r *rig) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (r *rig) Returned(e tool.Effects, _ *journal.ToolResult) { r.effects = append(r.effects, e) }

// tools has any tool: one whose name begins with "write" writes, and does not yield.
type tools struct{ *rig }

func (t tools) Specs() []tool.Spec { return nil }

func (t tools) Traits(name string) tool.Traits {
	writes := strings.HasPrefix(name, "write")
	return tool.Traits{ReadOnly: !writes, Writes: writes, Yields: !writes, Bulky: name == "read", Stored: []string{"content"}, Parallel: strings.HasPrefix(name, "part")}
}

func (t tools) TraitsOf(c tool.Call) tool.Traits { return t.Traits(c.Name) }

func (t tools) Run(ctx context.Context, c tool.Call) tool.Result {
	if t.tool != nil {
		return t.tool(ctx, c.Name)
	}
	return tool.Result{Content: "result of " + c.Name}
}

// told is what the model was asked last, a message a line.
func (r *rig) told() string {
	var b strings.Builder
	for _, m := range r.asked[len(r.asked)-1].Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
	}
	return b.String()
}

func refusal(advice model.Advice, reason model.Reason) error {
	return &model.Refusal{Advice: advice, Reason: reason, Err: errors.New("no")}
}

// An engine asks for leave before each step, and hands what a call has led to to its owner.
func TestOwner(t *testing.T) {
	r := newRig(t, "!look,write", "done")
	r.tool = func(context.Context, string) tool.Result {
		return tool.Result{Content: "ok", Effects: tool.Effects{Backoff: true}}
	}
	if text, err := r.engine.Run(t.Context(), "go"); text != "done" || err != nil {
		t.Fatalf("Run = %q, %v", text, err)
	}
	if got := fmt.Sprint(r.steps); got != fmt.Sprint([]Step{Ask, Read, Write, Ask}) {
		t.Errorf("leave was asked for %v", got)
	}
	if len(r.effects) != 2 || !r.effects[0].Backoff {
		t.Errorf("the owner was given %+v", r.effects)
	}
}

// Without leave nothing is done.
func TestNoLeave(t *testing.T) {
	for _, step := range []Step{Ask, Write} {
		r := newRig(t, "!write", "done")
		stop := errors.New("stop")
		r.leave = func(s Step) error {
			if s == step {
				return stop
			}
			return nil
		}
		r.tool = func(context.Context, string) tool.Result {
			t.Error("the tool ran")
			return tool.Result{}
		}
		if _, err := r.engine.Run(t.Context(), "go"); !errors.Is(err, stop) {
			t.Errorf("step %d: Run = %v", step, err)
		}
	}
}

// An interrupt ends the step that it cuts, and skips or cuts the calls that are not begun.
func TestInterrupt(t *testing.T) {
	cause := errors.New("look up")
	for name, tt := range map[string]struct {
		interrupt Interrupt
		calls     string
		want      string // the results, each with its context's end
	}{
		"a yielding call is cut, the rest skipped": {Interrupt{Skip: "skipped"}, "!look,look-on", "look up; skipped"},
		"a call that writes is left to end":        {Interrupt{Skip: "skipped"}, "!write,look", "ran; skipped"},
		"any step is cut":                          {Interrupt{Any: true}, "!write,write-on", "look up; look up"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tt.calls, "done")
			over := false
			tt.interrupt.Cause, tt.interrupt.Over = cause, func() bool { return over }
			r.tool = func(ctx context.Context, name string) tool.Result {
				if name == "look" || name == "write" {
					r.engine.Interrupt(tt.interrupt)
				}
				if ctx.Err() != nil {
					return tool.Result{Content: context.Cause(ctx).Error(), IsError: true}
				}
				return tool.Result{Content: "ran"}
			}
			r.leave = func(s Step) error {
				over = s == Ask && len(r.asked) > 0 // the owner has looked
				return nil
			}
			if reply, err := r.engine.Turn(t.Context(), false); err != nil {
				t.Fatal(err)
			} else if _, _, err := r.engine.Call(t.Context(), reply.Message.ToolCalls); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, rec := range r.records {
				if rec.Kind == journal.Result {
					got = append(got, rec.Result.Content)
				}
			}
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("results %q, want %q", got, tt.want)
			}
			if _, err := r.engine.Turn(t.Context(), false); !errors.Is(err, ErrInterrupted) {
				t.Errorf("a turn before the owner has looked: %v", err)
			}
			r.engine.NewTurn()
			if _, err := r.engine.Turn(t.Context(), false); err != nil {
				t.Errorf("the next turn: %v", err)
			}
		})
	}
}

// A run ends with an interrupt that is not over: its caller has to look at it.
func TestRunIsInterrupted(t *testing.T) {
	r := newRig(t, "done")
	r.engine.Interrupt(Interrupt{Cause: errors.New("stop"), Any: true, Over: func() bool { return false }})
	if _, err := r.engine.Run(t.Context(), "go"); !errors.Is(err, ErrInterrupted) || len(r.asked) > 1 {
		t.Errorf("Run = %v after %d requests", err, len(r.asked))
	}
}

// A run that ends in the middle of a turn leaves calls open. The next one answers them first, as
// endpoints demand.
func TestRunAfterOpenCalls(t *testing.T) {
	r := newRig(t, "!look,write", "done")
	stop := errors.New("stop")
	r.leave = func(s Step) error {
		if s == Write {
			return stop
		}
		return nil
	}
	if _, err := r.engine.Run(t.Context(), "go"); !errors.Is(err, stop) {
		t.Fatalf("Run = %v", err)
	}
	r.leave = nil
	if text, err := r.engine.Run(t.Context(), "and now?"); text != "done" || err != nil {
		t.Fatalf("Run = %q, %v", text, err)
	}
	if got := r.told(); !strings.Contains(got, "not known") || strings.Index(got, "not known") > strings.Index(got, "and now?") {
		t.Errorf("the model was told\n%s", got)
	}
}

// Each result tells how its call was made, or that it was not or may not have been.
func TestAccounts(t *testing.T) {
	r := newRig(t, "!look,skipped", "done")
	r.tool = func(context.Context, string) tool.Result {
		r.engine.Interrupt(Interrupt{Skip: "skipped", Cause: errors.New("look up"), Over: func() bool { return false }})
		return tool.Result{Content: "ran", Account: team.Account{Arguments: "digest", Rule: "Look"}}
	}
	if _, err := r.engine.Run(t.Context(), "go"); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	open := newRig(t, "!open", "done")
	stop := errors.New("stop")
	open.leave = func(s Step) error {
		if s == Ask {
			return nil
		}
		return stop
	}
	if _, err := open.engine.Run(t.Context(), "go"); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if _, err := open.engine.Run(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	var got []team.Account
	for _, rec := range append(r.records, open.records...) {
		if rec.Kind == journal.Result {
			got = append(got, *rec.Result.Account)
		}
	}
	want := []team.Account{{Arguments: "digest", Rule: "Look"}, {Arguments: team.DigestOf("{}"), State: team.CallNotRun}, {Arguments: team.DigestOf("{}"), State: team.CallUnknown}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// A refused conversation is tried again with less of it; what it was asked to do stays.
func TestRefusedAlone(t *testing.T) {
	r := newRig(t, "!look", refusal(model.GiveUp, model.InvalidRequest), refusal(model.GiveUp, model.InvalidRequest), "done")
	if text, err := r.engine.Run(t.Context(), "count the lines"); text != "done" || err != nil {
		t.Fatalf("Run = %q, %v", text, err)
	}
	if got := r.told(); !strings.Contains(got, "count the lines") || !strings.Contains(got, "you called look") || strings.Contains(got, "tool:") {
		t.Errorf("at last the model was told\n%s", got)
	}
	r = newRig(t, refusal(model.Park, model.BadKey))
	var refused *model.Refusal
	if _, err := r.engine.Run(t.Context(), "go"); !errors.As(err, &refused) || refused.Reason != model.BadKey {
		t.Errorf("a wrong key: %v", err)
	}
}

// A model that repeats itself comes to an end.
func TestCirclesEnd(t *testing.T) {
	r := newRig(t)
	for range maxRepeats {
		r.answers = append(r.answers, "!look")
	}
	if _, err := r.engine.Run(t.Context(), "go"); !errors.Is(err, errCircles) {
		t.Errorf("Run = %v", err)
	}
}

// A window that is full is compacted, with a summary of the model, and the task stays.
func TestFullWindow(t *testing.T) {
	r := newRig(t)
	r.window = 8000
	r.tool = func(_ context.Context, name string) tool.Result {
		return tool.Result{Content: strings.Repeat(fmt.Sprintf("line %d of %s\n", len(r.asked), name), 150)}
	}
	for i := range 12 {
		r.answers = append(r.answers, fmt.Sprintf("!look-%d", i))
	}
	r.answers = append(r.answers, "in short", "in short", "done", "done")
	text, err := r.engine.Run(t.Context(), "count the lines")
	if err != nil {
		t.Fatal(err)
	}
	compacted := 0
	for _, rec := range r.records {
		if rec.Kind == journal.Compact {
			compacted++
		}
	}
	if got := r.told(); compacted == 0 || !strings.Contains(got, "count the lines") || Size(&model.Message{Content: got}) > r.window {
		t.Errorf("%q after %d compactions; the model was told\n%s", text, compacted, got)
	}
}

// Once a result that holds a call is left out, a call that the model writes as text may be a quotation.
func TestQuotedCallIsLeftOut(t *testing.T) {
	for _, holds := range []bool{false, true} {
		r := newRig(t)
		r.window = 8000
		r.engine.calibration.tools = []model.ToolSpec{{Name: "look"}}
		r.tool = func(_ context.Context, name string) tool.Result {
			text := strings.Repeat(fmt.Sprintf("line %d of %s\n", len(r.asked), name), 150)
			if holds && len(r.asked) == 2 {
				text += `<tool_call>{"name":"look","arguments":{"at":1}}</tool_call>`
			}
			return tool.Result{Content: text}
		}
		for i := range 12 {
			r.answers = append(r.answers, fmt.Sprintf("!look-%d", i))
		}
		r.answers = append(r.answers, "in short", "in short", "done", "done")
		if _, err := r.engine.Run(t.Context(), "count the lines"); err != nil {
			t.Fatal(err)
		}
		again := NewConversation() // as a successor reads it
		for _, rec := range r.records {
			if err := again.Add(rec); err != nil {
				t.Fatal(err)
			}
		}
		first, last := r.asked[2].Quoted, r.asked[len(r.asked)-1].Quoted
		if first || last != holds || again.Quoted != holds {
			t.Errorf("with a call: %v; quoted at first %v, at last %v, for a successor %v", holds, first, last, again.Quoted)
		}
	}
}

// Of an account that takes the place of a summary, the next one keeps what it can.
func TestAccountKeepsEarlier(t *testing.T) {
	c := NewConversation()
	add := func(r journal.Record) {
		if err := c.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	note := journal.Record{Kind: journal.Note, Text: "go on"}
	for i := range 40 {
		add(note)
		add(journal.Record{Kind: journal.Turn, Turn: JSON(model.Reply{Message: model.Message{Role: "assistant", Content: fmt.Sprint("said ", i)}})})
	}
	for range 3 {
		next := c.Summarized(tools{}, &alone{Conversation: c}, c.account(c.tail(100), 400), "", 100)
		add(journal.Record{Kind: journal.Compact, Context: JSON(next)})
		add(note)
		add(journal.Record{Kind: journal.Turn, Turn: JSON(model.Reply{Message: model.Message{Role: "assistant", Content: "well"}})})
	}
	if got := c.Messages[0].Content; !strings.Contains(got, "you said: said") {
		t.Errorf("the account of the first compaction is forgotten:\n%s", got)
	}
}

// Calls that may run at the same time do, if they follow one another; their results are recorded in
// the order of the calls.
func TestParallelCalls(t *testing.T) {
	r := newRig(t, "!look,part1,part2,write", "done")
	second := make(chan struct{})
	r.tool = func(_ context.Context, name string) tool.Result {
		switch name {
		case "part1":
			select {
			case <-second:
			case <-time.After(time.Minute):
				t.Error("the second part does not run beside the first")
			}
		case "part2":
			close(second)
		}
		return tool.Result{Content: "result of " + name}
	}
	if text, err := r.engine.Run(t.Context(), "go"); text != "done" || err != nil {
		t.Fatalf("Run = %q, %v", text, err)
	}
	told := r.told()
	at := -1
	for _, name := range []string{"look", "part1", "part2", "write"} {
		next := strings.Index(told, "tool: result of "+name)
		if next <= at {
			t.Errorf("the result of %s is not in its place:\n%s", name, told)
		}
		at = next
	}
}
