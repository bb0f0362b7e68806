package model_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/model/modeltest"
	"agentteam/pkg/team"
)

// patience returns the options of a client of baseURL that waits for as long as
// anybody does, but for a fault that is silence.
func patience(baseURL string, attempts int, f *modeltest.Fault) model.Options {
	o := model.Options{BaseURL: baseURL, Model: "m", Attempts: attempts}
	if f.Silent {
		o.FirstByte, o.Idle = 2*time.Second, 2*time.Second // what is no silence comes sooner, on any machine
	}
	return o
}

var question = model.Request{Messages: []*model.Message{{Role: "user", Content: "hello"}}}

func client(t *testing.T, o model.Options) *model.Client {
	t.Helper()
	c, err := model.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// requests is how many a call sends at most whose only try meets f: where the window is
// told, it may ask for a shorter answer at once.
func requests(f modeltest.Fault) int64 {
	if f.Window > 0 {
		return 2
	}
	return 1
}

// Whatever an endpoint does wrong, the client says what to do.
func TestFaults(t *testing.T) {
	for _, f := range modeltest.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			url := modeltest.Server(t, nil, func(n int, _ []byte) *modeltest.Fault { asked.Store(int64(n)); return &f })
			_, err := client(t, patience(url, 1, &f)).Complete(t.Context(), question, nil)
			var got *model.Refusal
			if !errors.As(err, &got) {
				t.Fatalf("Complete = %v, want a refusal", err)
			}
			if got.Reason != f.Reason || got.Advice != f.Advice || got.Window != f.Window {
				t.Errorf("refused with %s, %s, a window of %d; want %s, %s, %d\n%v", got.Reason, got.Advice, got.Window, f.Reason, f.Advice, f.Window, err)
			}
			if most := requests(f); asked.Load() < 1 || asked.Load() > most {
				t.Errorf("%d requests, want 1 to %d", asked.Load(), most)
			}
			if code := team.CodeOf(err); (code == team.Unavailable) != (f.Advice == model.TryAgain) || code == "" {
				t.Errorf("the error carries the code %q", code)
			}
			if f.Silent && (got.Used.WastedPrompt == 0 || !got.Used.Estimated) {
				t.Errorf("used %+v, want the prompt counted", got.Used)
			}
		})
	}
}

// What is no use to anybody is still a turn: what to do about it is the caller's to judge.
func TestTurnsOfNoUse(t *testing.T) {
	for _, f := range modeltest.Turns() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := modeltest.Server(t, nil, func(int, []byte) *modeltest.Fault { return &f })
			if _, err := client(t, patience(url, 1, &f)).Complete(t.Context(), question, nil); err != nil || f.Reason != "" {
				t.Errorf("Complete = %v; the catalogue says %q", err, f.Reason)
			}
		})
	}
}

// An outage is over when the endpoint is back, and costs what it has cost. So is what an
// endpoint may refuse by chance; of any other refusal it is not asked twice.
func TestFaultsThenAnAnswer(t *testing.T) {
	for _, f := range modeltest.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := modeltest.Server(t, nil, func(n int, _ []byte) *modeltest.Fault {
				if n == 1 {
					return &f
				}
				return nil
			})
			got, err := client(t, patience(url, 2, &f)).Complete(t.Context(), question, nil)
			if f.Advice != model.TryAgain && f.Reason != model.FailedCall && f.Reason != model.InvalidRequest {
				if err == nil && requests(f) == 1 {
					t.Error("a refusal was asked for again")
				}
				return
			}
			if err != nil || got.Message.Content != "fine" || len(got.Message.ToolCalls) > 0 {
				t.Fatalf("Complete = %+v, %v", got, err)
			}
			if u := got.Usage; u.PromptTokens != 11 || u.CompletionTokens != 7 || u.Estimated != (u.WastedPrompt > 0) || f.Silent && u.WastedPrompt == 0 {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

// A try is paid for once the model has read the prompt: a refusal that comes first
// costs nothing, one in the middle of an answer does.
func TestWhatARefusalCosts(t *testing.T) {
	for name, paid := range map[string]struct{ prompt, completion bool }{
		"401":                                  {},
		"429":                                  {},
		"503":                                  {},
		"hangs up at once":                     {},
		"in stream: quota":                     {},
		"200, a web page":                      {},
		"no headers":                           {prompt: true},
		"ends in the middle":                   {true, true},
		"silent in the middle":                 {true, true},
		"in stream: overloaded":                {true, true},
		"in stream: content filter after text": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := modeltest.Named(t, name)
			url := modeltest.Server(t, nil, func(int, []byte) *modeltest.Fault { return f })
			_, err := client(t, patience(url, 1, f)).Complete(t.Context(), question, nil)
			var got *model.Refusal
			if !errors.As(err, &got) {
				t.Fatal(err)
			}
			if u := got.Used; (u.WastedPrompt > 0) != paid.prompt || (u.WastedCompletion > 0) != paid.completion || u.Estimated != paid.prompt || u.PromptTokens+u.CompletionTokens != 0 {
				t.Errorf("used %+v", u)
			}
		})
	}
}

// Whatever Anthropic's service, or what stands before it, does wrong is judged alike.
func TestFaultsOfMessages(t *testing.T) {
	for _, f := range modeltest.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if f.Name == "in stream: provider broke down" {
				return // in words of chat completions only
			}
			url := modeltest.Server(t, nil, func(int, []byte) *modeltest.Fault { return &f })
			o := patience(url, 1, &f)
			o.Profile = "anthropic"
			_, err := client(t, o).Complete(t.Context(), question, nil)
			var got *model.Refusal
			if !errors.As(err, &got) || got.Reason != f.Reason || got.Advice != f.Advice || got.Window != f.Window {
				t.Errorf("Complete = %v; want a refusal with %s, %s, a window of %d", err, f.Reason, f.Advice, f.Window)
			}
		})
	}
}
