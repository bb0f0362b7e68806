package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type none struct{}

// returns makes a tool that answers every call alike.
func returns(name string, value any, err error, opts ...tool.Option) tool.Tool {
	return tool.New(name, "about "+name, func(context.Context, none) (tool.Output, error) { return tool.Output{Value: value}, err }, opts...)
}

func newSet(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(prometheus.NewRegistry(), tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// failed checks that r is an error of that code which parses, and returns its
// message and hint.
func failed(t *testing.T, r tool.Result, code team.Code) (message, hint string) {
	t.Helper()
	var got struct {
		Error, Status, Hint string
		Code                team.Code
	}
	if err := json.Unmarshal([]byte(r.Content), &got); err != nil {
		t.Fatalf("error result %q: %v", r.Content, err)
	}
	if !r.IsError || r.Code != code || got.Code != code || got.Status != "error" || got.Error == "" || r.Value != nil {
		t.Fatalf("result = %+v, want the error %s", r, code)
	}
	return got.Error, got.Hint
}

func TestNewSetRefuses(t *testing.T) {
	for name, tools := range map[string][]tool.Tool{
		"one name twice":            {returns("a", "", nil), returns("a", "", nil)},
		"one alias twice":           {returns("a", "", nil, tool.Alias("x")), returns("b", "", nil, tool.Alias("x"))},
		"an alias that is a name":   {returns("a", "", nil), returns("b", "", nil, tool.Alias("a"))},
		"a tool that New never saw": {{Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tool.NewSet(nil, tools...); !errors.Is(err, team.InvalidArgument) {
				t.Errorf("NewSet: %v, want invalid_argument", err)
			}
		})
	}
}

func TestAllow(t *testing.T) {
	all := newSet(t, returns("bash", "ran", nil, tool.Alias("Bash"), tool.Traits{Writes: true}), returns("glob", "found", nil), returns("grep", "hit", nil))
	names := func(s *tool.Set) (out string) {
		for _, spec := range s.Specs() {
			out += spec.Name + " "
		}
		return out
	}
	allow := func(s *tool.Set, list ...string) *tool.Set {
		t.Helper()
		s, err := s.Allow(list)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, tt := range []struct {
		got  *tool.Set
		want string
	}{
		{all, "bash glob grep "},
		{allow(all), "bash glob grep "},
		{allow(all, "grep", "*"), "bash glob grep "},
		{allow(all, "grep", "Bash"), "bash grep "}, // an alias; and the order stays
		{allow(allow(all, "grep"), "*"), "grep "},  // never wider than before
	} {
		if got := names(tt.got); got != tt.want {
			t.Errorf("allowed: %q, want %q", got, tt.want)
		}
	}
	if _, err := all.Allow([]string{"grep", "rm_rf"}); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "rm_rf") {
		t.Errorf("Allow of an unknown name: %v", err)
	}
	if _, err := allow(all, "grep").Allow([]string{"bash"}); !errors.Is(err, team.PermissionDenied) {
		t.Errorf("Allow of more than there was: %v", err)
	}
	if !all.Traits("Bash").Writes || all.Traits("grep").Writes || all.Traits("nothing").Writes {
		t.Error("Writes: want true for Bash only")
	}
}

func TestRunEnforcesWhoMayUseWhat(t *testing.T) {
	ran := false
	touch := tool.New("touch", "", func(context.Context, none) (tool.Output, error) { ran = true; return tool.Output{}, nil }, tool.Alias("Touch"))
	s, err := newSet(t, touch, returns("look", "seen", nil)).Allow([]string{"look"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"touch", "Touch"} {
		failed(t, s.Run(t.Context(), tool.Call{Name: name}), team.PermissionDenied)
	}
	if ran {
		t.Error("a tool that is not allowed ran")
	}
	_, hint := failed(t, s.Run(t.Context(), tool.Call{Name: "飞 🚀"}), team.NotFound)
	if !strings.Contains(hint, "look") || strings.Contains(hint, "touch") {
		t.Errorf("hint %q, want the names of the allowed tools", hint)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(team.Errorf(team.Conflict, "the task is another's now"))
	failed(t, s.Run(over, tool.Call{Name: "look"}), team.Conflict)
	over, stop := context.WithCancel(t.Context())
	stop()
	failed(t, s.Run(over, tool.Call{Name: "look"}), team.Unavailable)
}

func TestResults(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"text as it is":          {"a < b && c\n任务 🚀", "a < b && c\n任务 🚀"},
		"a value as JSON":        {map[string]any{"to": "<你好>", "n": 1}, `{"n":1,"to":"<你好>"}`},
		"an empty list":          {[]string{}, "[]"},
		"nothing":                {nil, "(no output)"},
		"an empty text":          {" \n", "(no output)"},
		"bytes that are no text": {"ok \xff\xfe", "ok \uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSet(t, returns("x", tt.value, nil)).Run(t.Context(), tool.Call{Name: "x"})
			if r.IsError || r.Content != tt.want {
				t.Errorf("content %q, want %q", r.Content, tt.want)
			}
		})
	}
}

func TestLongResultIsCutInTheMiddle(t *testing.T) {
	run := func(text string) tool.Result {
		return newSet(t, returns("x", text, nil)).Run(t.Context(), tool.Call{Name: "x"})
	}
	if whole := strings.Repeat("x", tool.MaxContent); run(whole).Content != whole {
		t.Error("a text of just the limit was cut")
	}
	for _, pad := range []string{"", "x", "xx", "xxx"} { // each way to hit a character
		text := "first " + pad + strings.Repeat("🚀", 20_000) + " last"
		got := run(text).Content
		head, rest, _ := strings.Cut(got, "\n[... ")
		note, tail, _ := strings.Cut(rest, " ...]\n")
		if len(got) > tool.MaxContent || !utf8.ValidString(got) || !strings.HasPrefix(head, "first ") || !strings.HasSuffix(tail, " last") {
			t.Errorf("%d bytes, %.20q ... %q", len(got), got, note)
		}
		if want := fmt.Sprintf("%d bytes cut", len(text)-len(head)-len(tail)); note != want {
			t.Errorf("note %q, want %q", note, want)
		}
	}
}

func TestErrors(t *testing.T) {
	run := func(err error) tool.Result {
		return newSet(t, returns("x", nil, err)).Run(t.Context(), tool.Call{Name: "x"})
	}
	message, hint := failed(t, run(fmt.Errorf("claim: %w", team.Errorf(team.Blocked, "T-2 waits for <T-1>").WithHint("do T-1"))), team.Blocked)
	if message != "claim: T-2 waits for <T-1>" || hint != "do T-1" {
		t.Errorf("error %q, hint %q", message, hint)
	}
	failed(t, run(errors.New("disk on fire")), team.Unavailable)

	// The worst case of escaping: an error must parse however long its text is.
	long := run(team.Errorf(team.InvalidState, "%s", strings.Repeat("\x01", 1<<20)).WithHint("%s", strings.Repeat("\x01", 1<<20)))
	failed(t, long, team.InvalidState)
	if len(long.Content) > tool.MaxContent {
		t.Errorf("an error of %d bytes", len(long.Content))
	}
	failed(t, newSet(t, returns("x", make(chan int), nil)).Run(t.Context(), tool.Call{Name: "x"}), team.Unavailable)
}

func TestPanicIsAResult(t *testing.T) {
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	s := newSet(t, tool.New("x", "", func(context.Context, none) (tool.Output, error) { panic("secret") }))
	message, _ := failed(t, s.Run(t.Context(), tool.Call{Name: "x"}), team.Unavailable)
	if strings.Contains(message, "secret") || !strings.Contains(log.String(), "secret") {
		t.Errorf("want the panic in the log only; the model is told %q, the log has %q", message, log.String())
	}
}

// A gate is asked about each call, once the arguments are known to be valid, and what it
// refuses does not run.
func TestGate(t *testing.T) {
	type args struct {
		Give bool   `json:"give,omitempty"`
		Path string `json:"path,omitempty"`
	}
	ran := ""
	make := func(name string, opts ...tool.Option) tool.Tool {
		return tool.New(name, "", func(context.Context, args) (tool.Output, error) {
			ran += name + " "
			return tool.Output{Value: "done"}, nil
		}, opts...)
	}
	open := newSet(t, make("look", tool.Traits{ReadOnly: true}), make("write", tool.Traits{Writes: true}, tool.Alias("Write")), make("plain"), make("talk", tool.Traits{Ungated: true}),
		make("update", tool.UngatedIf(func(in args) bool { return in.Give })))
	asked := ""
	refuse := error(team.Errorf(team.PermissionDenied, "no plan"))
	s, err := open.Behind(func(_ context.Context, r tool.Request) error {
		asked += fmt.Sprintf("%s=%s%s ", r.Called, r.Tool, r.Arguments)
		if !r.Changes() {
			return nil
		}
		return refuse
	}).Allow([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool, arguments string
		want            team.Code
	}{
		{"look", "", ""}, {"write", `{"path":"a","give":null}`, team.PermissionDenied}, {"Write", "", team.PermissionDenied}, {"plain", "", team.PermissionDenied},
		{"talk", "", ""}, {"update", `{"give":true}`, ""}, {"update", "", team.PermissionDenied}, {"update", `{"take":true}`, team.InvalidArgument},
	} {
		if r := s.Run(t.Context(), tool.Call{Name: tt.tool, Arguments: tt.arguments}); r.Code != tt.want {
			t.Errorf("%s %s: %s, want %q", tt.tool, tt.arguments, r.Content, tt.want)
		}
	}
	if want := "look talk update "; ran != want {
		t.Errorf("ran %s, want %s", ran, want)
	}
	if want := `look=look{} write=write{"path":"a"} Write=write{} plain=plain{} talk=talk{} update=update{"give":true} update=update{} `; asked != want {
		t.Errorf("the gate was asked about %s, want %s", asked, want)
	}
	refuse = nil
	if r := s.Run(t.Context(), tool.Call{Name: "write"}); r.IsError {
		t.Errorf("what the gate lets pass is refused: %s", r.Content)
	}
	defer func() {
		if recover() == nil {
			t.Error("an option for other arguments passes")
		}
	}()
	tool.New("broken", "", func(context.Context, none) (tool.Output, error) { return tool.Output{}, nil }, tool.UngatedIf(func(in args) bool { return true }))
}

// Several gates are asked in their order, also those of a set that is behind one already; the
// first that refuses ends it. A gate may wait, and ends with the call's context.
func TestGatesInOrder(t *testing.T) {
	asked := ""
	gate := func(name string, err error) tool.Gate {
		return func(context.Context, tool.Request) error {
			asked += name
			return err
		}
	}
	var cancel context.CancelCauseFunc
	waits := func(ctx context.Context, _ tool.Request) error {
		asked += "w"
		go cancel(team.Errorf(team.Busy, "urgent mail"))
		<-ctx.Done()
		return context.Cause(ctx)
	}
	no := team.Errorf(team.PermissionDenied, "no")
	set := newSet(t, returns("x", "ran", nil))
	for name, tt := range map[string]struct {
		set   *tool.Set
		asked string
		code  team.Code
	}{
		"none":              {set, "", ""},
		"all let it pass":   {set.Behind(gate("a", nil)).Behind(gate("b", nil), gate("c", nil)), "abc", ""},
		"the first":         {set.Behind(gate("a", no)).Behind(gate("b", team.Errorf(team.Conflict, "b"))), "a", team.PermissionDenied},
		"the second":        {set.Behind(gate("a", nil), gate("b", no)).Behind(gate("c", nil)), "ab", team.PermissionDenied},
		"it waits, in vain": {set.Behind(waits), "w", team.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			asked = ""
			var ctx context.Context
			ctx, cancel = context.WithCancelCause(t.Context())
			defer cancel(nil)
			if r := tt.set.Run(ctx, tool.Call{Name: "x"}); r.Code != tt.code || asked != tt.asked {
				t.Errorf("%s, asked %q; want %q, %q", r.Content, asked, tt.code, tt.asked)
			}
		})
	}
}

// The effects of a call, its value and its parts come with the result; what a model cannot
// see is described to it.
func TestOutput(t *testing.T) {
	moved := team.Task{ID: "T-001", Status: team.Completed}
	big := make([]byte, tool.MaxPartData+1)
	run := func(out tool.Output) tool.Result {
		return newSet(t, tool.New("x", "", func(context.Context, none) (tool.Output, error) { return out, nil })).Run(t.Context(), tool.Call{Name: "x"})
	}
	r := run(tool.Output{Value: moved, Brief: "done", Effects: tool.Effects{Moved: &moved, Backoff: true}})
	if r.Content != "done" || r.Effects.Moved != &moved || !r.Effects.Backoff || r.Effects.Ends || r.Value == nil {
		t.Errorf("%+v", r)
	}
	r = run(tool.Output{Parts: []tool.Part{{MediaType: "image/png", Data: []byte("png"), Name: "a\nb"}, {MediaType: "image/png", Data: big, Name: "c"}}})
	want := "[image image/png a b, 3 bytes]\n[image image/png c, 5242881 bytes, left out: at most 5242880 are kept; you cannot see it here]"
	if r.Content != want || len(r.Parts) != 2 || string(r.Parts[0].Data) != "png" || r.Parts[1].Data != nil {
		t.Errorf("%s", r.Content)
	}
	r = run(tool.Output{Value: strings.Repeat("x", tool.MaxContent), Parts: make([]tool.Part, 2)})
	if !strings.HasSuffix(r.Content, " bytes]") || len(r.Content) > tool.MaxContent || len(r.Parts) != 2 {
		t.Errorf("%d parts, %d bytes: ...%s", len(r.Parts), len(r.Content), r.Content[len(r.Content)-200:])
	}
}
