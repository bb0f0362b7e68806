package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
)

// desk stands for the endpoints of a router: each alias answers as refusals says.
type desk struct {
	mu      sync.Mutex
	refuses map[string]error // by model
	asked   []string
	opened  []string
}

func (d *desk) open(o model.Options) (func(prometheus.Registerer) asker, error) {
	if o.Model == "" {
		return nil, team.Errorf(team.InvalidArgument, "no model").WithHint("name one")
	}
	d.opened = append(d.opened, o.Model)
	return func(prometheus.Registerer) asker { return deskClient{d, o} }, nil
}

type deskClient struct {
	*desk
	o model.Options
}

func (e deskClient) Limits() model.Limits { return model.Limits{Window: e.o.Window} }

func (e deskClient) Patches() bool { return false }

func (e deskClient) Complete(_ context.Context, req model.Request, _ func(string)) (model.Reply, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, e.o.Model+req.Model) // the client is told no alias
	if err := e.refuses[e.o.Model]; err != nil {
		return model.Reply{}, err
	}
	return model.Reply{Model: e.o.Model, Usage: model.Usage{PromptTokens: 1000, CachedTokens: 400, CompletionTokens: 100}}, nil
}

// took returns who was asked since the last time.
func (d *desk) took() (asked []string) {
	asked, d.asked = d.asked, nil
	return asked
}

func refusal(a model.Advice, r model.Reason, used model.Usage) *model.Refusal {
	return &model.Refusal{Advice: a, Reason: r, Used: used, Err: errors.New("no: " + string(r))}
}

func alias(name string, fallbacks ...string) Alias {
	return Alias{Name: name, Options: model.Options{Model: name, Window: len(name)}, Fallbacks: fallbacks}
}

func newDesk(t *testing.T, o Options, aliases ...Alias) (*desk, *Router) {
	t.Helper()
	d := &desk{refuses: map[string]error{}}
	o.open = d.open
	r, err := New(Routes{Aliases: aliases, Names: map[string]string{"sonnet": aliases[0].Name}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return d, r
}

func TestRouterFallsBack(t *testing.T) {
	for name, tt := range map[string]struct {
		model   string
		refuses map[string]error
		asked   []string
		alias   string // that answers; "" if none does
		advice  model.Advice
		reason  model.Reason
		words   string // in the error
	}{
		"the default":         {"", nil, []string{"a"}, "a", "", "", ""},
		"by name":             {"d", nil, []string{"d"}, "d", "", "", ""},
		"by a further name":   {"sonnet", nil, []string{"a"}, "a", "", "", ""},
		"a stranger":          {"opus", nil, []string{"a"}, "a", "", "", ""},
		"parked":              {"", map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{})}, []string{"a", "b"}, "b", "", "", ""},
		"away":                {"", map[string]error{"a": refusal(model.TryAgain, model.Silent, model.Usage{})}, []string{"a", "b"}, "b", "", "", ""},
		"a fallback's own":    {"", map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{}), "b": refusal(model.Park, model.NoCredit, model.Usage{})}, []string{"a", "b", "d"}, "d", "", "", ""},
		"too long":            {"", map[string]error{"a": refusal(model.Compact, model.ContextLength, model.Usage{})}, []string{"a"}, "", model.Compact, model.ContextLength, ""},
		"not let through":     {"", map[string]error{"a": refusal(model.GiveUp, model.ContentFilter, model.Usage{})}, []string{"a"}, "", model.GiveUp, model.ContentFilter, ""},
		"too long for second": {"", map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{}), "b": refusal(model.Compact, model.ContextLength, model.Usage{})}, []string{"a", "b"}, "", model.Compact, model.ContextLength, ""},
		"no refusal":          {"", map[string]error{"a": context.Canceled}, []string{"a"}, "", "", "", "canceled"},
		"no fallback":         {"d", map[string]error{"d": refusal(model.Park, model.BadKey, model.Usage{})}, []string{"d"}, "", model.Park, model.BadKey, "no: bad_key"},
		"all, for good": {"", map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{}), "b": refusal(model.Park, model.NoCredit, model.Usage{}), "c": refusal(model.Park, model.BadKey, model.Usage{}), "d": refusal(model.Park, model.UnknownModel, model.Usage{})},
			[]string{"a", "b", "d", "c"}, "", model.Park, model.BadKey, "no: bad_key; so do those that stand in for it: b (no_credit), d (unknown_model), c (bad_key)"},
		"all, one only away": {"", map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{}), "b": refusal(model.TryAgain, model.Silent, model.Usage{}), "c": refusal(model.Park, model.BadKey, model.Usage{}), "d": refusal(model.Park, model.BadKey, model.Usage{})},
			[]string{"a", "b", "d", "c"}, "", model.TryAgain, model.BadKey, "b (silent)"},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := newDesk(t, Options{}, alias("a", "b", "c"), alias("b", "d"), alias("c", "d"), alias("d"))
			d.refuses = tt.refuses
			reply, err := r.Complete(t.Context(), model.Request{Model: tt.model}, nil)
			if got := d.took(); !slices.Equal(got, tt.asked) {
				t.Errorf("asked %v, want %v", got, tt.asked)
			}
			if reply.Alias != tt.alias || (err == nil) != (tt.alias != "") {
				t.Fatalf("answered by %q, %v; want %q", reply.Alias, err, tt.alias)
			}
			refused, _ := errors.AsType[*model.Refusal](err)
			if tt.advice != "" && (refused == nil || refused.Advice != tt.advice || refused.Reason != tt.reason) {
				t.Errorf("refused with %+v, want %s, %s", refused, tt.advice, tt.reason)
			}
			if err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%q does not say %q", err, tt.words)
			}
		})
	}
}

// A model is not asked to stand in with a window that the request does not fit, and what
// it says of its own window says nothing of the model that it stands in for.
func TestRouterWindows(t *testing.T) {
	text := strings.Repeat("word", 1000) // a thousand tokens, estimated
	window := func(n int, a Alias) Alias { a.Options.Window = n; return a }
	for name, tt := range map[string]struct {
		a, b    int // the windows
		refuses map[string]error
		asked   []string
		reason  model.Reason // "" if one answers
		by      string
		window  int
	}{
		"a stand-in too small":        {2000, 999, map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{})}, []string{"a", "c"}, "", "c", 0},
		"just large enough":           {2000, 1000, map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{})}, []string{"a", "b"}, "", "b", 0},
		"not known":                   {2000, 0, map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{})}, []string{"a", "b"}, "", "b", 0},
		"the model itself, too small": {999, 1, nil, []string{"a"}, "", "a", 0},
		"none left":                   {2000, 999, map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{}), "c": refusal(model.Park, model.NoCredit, model.Usage{})}, []string{"a", "c"}, model.BadKey, "a", 0},
		"too long for the model":      {0, 0, map[string]error{"a": &model.Refusal{Advice: model.Compact, Reason: model.ContextLength, Window: 900, Err: io.EOF}}, []string{"a"}, model.ContextLength, "a", 900},
		"too long for one in its place": {0, 0, map[string]error{"a": refusal(model.Park, model.BadKey, model.Usage{}), "b": &model.Refusal{Advice: model.Compact, Reason: model.ContextLength, Window: 900, Err: io.EOF}},
			[]string{"a", "b"}, model.ContextLength, "b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := newDesk(t, Options{}, window(tt.a, alias("a", "b", "c")), window(tt.b, alias("b")), window(0, alias("c")))
			d.refuses = tt.refuses
			reply, err := r.Complete(t.Context(), model.Request{
				Messages: []*model.Message{{Content: text[:1000], Parts: []model.Part{{Text: text[:1000]}}, ToolCalls: []model.ToolCall{{Arguments: text[:1000]}}}},
				Tools:    []model.ToolSpec{{Description: text[:500], Schema: json.RawMessage(text[:500])}},
			}, nil)
			if got := d.took(); !slices.Equal(got, tt.asked) {
				t.Errorf("asked %v, want %v", got, tt.asked)
			}
			refused, _ := errors.AsType[*model.Refusal](err)
			switch {
			case tt.reason == "" && (err != nil || reply.Alias != tt.by):
				t.Errorf("answered by %q, %v; want %q", reply.Alias, err, tt.by)
			case tt.reason != "" && (refused == nil || refused.Reason != tt.reason || refused.Alias != tt.by || refused.Window != tt.window):
				t.Errorf("refused with %+v, want %s by %s, window %d", refused, tt.reason, tt.by, tt.window)
			}
			if got := r.Limits("a").Window; got != tt.a {
				t.Errorf("the window of a is %d, want %d", got, tt.a)
			}
		})
	}
}

// Whoever has refused is asked first again only after its rest; each switch counts and
// is told once.
func TestRouterRests(t *testing.T) {
	for name, tt := range map[string]struct {
		advice model.Advice
		rest   time.Duration
	}{
		"parked": {model.Park, 5 * time.Minute},
		"away":   {model.TryAgain, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				var log bytes.Buffer
				d, r := newDesk(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, alias("a", "b"), alias("b"))
				r = r.Counting(reg)
				ask := func(want ...string) {
					t.Helper()
					if _, err := r.Complete(t.Context(), model.Request{}, nil); err != nil {
						t.Fatal(err)
					}
					if got := d.took(); !slices.Equal(got, want) {
						t.Errorf("asked %v, want %v", got, want)
					}
				}
				d.refuses["a"] = refusal(tt.advice, model.BadKey, model.Usage{})
				ask("a", "b")
				ask("b")
				time.Sleep(tt.rest - time.Nanosecond)
				ask("b")
				time.Sleep(time.Nanosecond)
				ask("a", "b")
				delete(d.refuses, "a")
				d.refuses["b"] = refusal(tt.advice, model.BadKey, model.Usage{})
				ask("b", "a") // who rests is still asked, last
				ask("a")      // and is back once it has answered
				err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP agentteam_model_switches_total Switches to a fallback alias.
# TYPE agentteam_model_switches_total counter
agentteam_model_switches_total{from="a",to="b"} 2
agentteam_model_switches_total{from="b",to="a"} 1
`), "agentteam_model_switches_total")
				if err != nil {
					t.Error(err)
				}
				if n := strings.Count(log.String(), "level=WARN"); n != 3 {
					t.Errorf("%d warnings, want 3:\n%s", n, &log)
				}
			})
		})
	}
}

// network stands for the network inside a synctest bubble.
type network func(*http.Request) (*http.Response, error)

func (f network) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// An outage is waited out only where nobody else is left to ask.
func TestRouterWaitsLast(t *testing.T) {
	const answer = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	good := func(*http.Request) (*http.Response, error) { return response(200, answer), nil }
	silent := func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
	broken := func(*http.Request) (*http.Response, error) { return response(503, ""), nil }
	limited := func(*http.Request) (*http.Response, error) {
		resp := response(429, "slow down")
		resp.Header.Set("Retry-After", "60")
		return resp, nil
	}
	for name, tt := range map[string]struct {
		first   string // asked before; "" for nobody
		answers map[string]network
		want    string        // who gets which requests, of the last call
		most    time.Duration // it takes
	}{
		"a limit":          {"", map[string]network{"a": limited, "b": good}, "ab", 0},
		"silence":          {"", map[string]network{"a": silent, "b": good}, "ab", time.Minute},
		"all away":         {"", map[string]network{"a": limited, "b": limited, "c": silent}, "abccc", 4 * time.Minute},
		"all that rest":    {"a", map[string]network{"a": broken, "b": broken, "c": broken}, "abcccc", 4 * time.Second},
		"another rests":    {"c", map[string]network{"a": limited, "b": silent, "c": limited}, "abbbcccc", 8 * time.Minute},
		"nobody stands in": {"", map[string]network{"a": good, "b": good, "c": limited}, "a", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked string
				open := func(o model.Options) (func(prometheus.Registerer) asker, error) {
					o.Transport = network(func(r *http.Request) (*http.Response, error) {
						asked += o.Model
						return tt.answers[o.Model](r)
					})
					return openClient(o)
				}
				var aliases []Alias
				for name, next := range map[string][]string{"a": {"b", "c"}, "b": nil, "c": nil} {
					aliases = append(aliases, Alias{Name: name, Fallbacks: next, Options: model.Options{BaseURL: "http://" + name + ".test/v1", Model: name, Attempts: 4, FirstByte: time.Minute}})
				}
				r, err := New(Routes{Aliases: aliases}, Options{open: open})
				if err != nil {
					t.Fatal(err)
				}
				ask := func(name string) error {
					asked = ""
					_, err := r.Complete(t.Context(), model.Request{Model: name, Messages: []*model.Message{{Role: "user", Content: "hello"}}}, nil)
					return err
				}
				if tt.first != "" && ask(tt.first) == nil {
					t.Fatalf("%s answers", tt.first)
				}
				began := time.Now()
				err = ask("a")
				if took := time.Since(began); asked != tt.want || took > tt.most {
					t.Errorf("asked %s within %v, want %s within %v (%v)", asked, took, tt.want, tt.most, err)
				}
				if err != nil && !strings.Contains(err.Error(), "http://a.test/v1 failed: it answered ") {
					t.Errorf("the error is %q", err)
				}
			})
		})
	}
}

// An alias that rests is passed over without being asked. That is told once in a spell, and
// only by a view that has not told of the refusal itself.
func TestRouterPassesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d, all := newDesk(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, alias("a", "b"), alias("b"))
		met, other := all.Counting(prometheus.NewRegistry()), all.Counting(prometheus.NewRegistry())
		check := func(r *Router, ab, ba float64, warnings int) {
			t.Helper()
			if got := [2]float64{testutil.ToFloat64(r.switches.WithLabelValues("a", "b")), testutil.ToFloat64(r.switches.WithLabelValues("b", "a"))}; got != [2]float64{ab, ba} {
				t.Errorf("switches %v, want %v and %v", got, ab, ba)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != warnings {
				t.Errorf("%d warnings, want %d:\n%s", n, warnings, &log)
			}
			d.took()
		}
		d.refuses["a"], d.refuses["b"] = refusal(model.Park, model.BadKey, model.Usage{}), refusal(model.TryAgain, model.Silent, model.Usage{})
		if _, err := met.Complete(t.Context(), model.Request{}, nil); err == nil {
			t.Fatal("somebody answered")
		}
		check(met, 1, 0, 1)
		delete(d.refuses, "b")
		time.Sleep(retryCooldown)
		for range 2 { // the refusal was told
			if _, err := met.Complete(t.Context(), model.Request{}, nil); err != nil || !slices.Equal(d.took(), []string{"b"}) {
				t.Fatal("b was not asked alone", err)
			}
		}
		check(met, 1, 0, 1)
		for range 2 {
			_, _ = other.Complete(t.Context(), model.Request{}, nil)
		}
		check(other, 1, 0, 2)
		d.refuses["b"] = refusal(model.TryAgain, model.Silent, model.Usage{})
		_, _ = other.Complete(t.Context(), model.Request{}, nil) // a is asked at last, and refuses: it rests on
		delete(d.refuses, "b")
		time.Sleep(retryCooldown)
		_, _ = other.Complete(t.Context(), model.Request{}, nil)
		check(other, 1, 1, 3)
		time.Sleep(parkedCooldown)
		_, _ = met.Complete(t.Context(), model.Request{}, nil) // a refuses again: another spell
		check(met, 2, 0, 4)
		_, _ = other.Complete(t.Context(), model.Request{}, nil)
		_, _ = other.Complete(t.Context(), model.Request{}, nil)
		check(other, 2, 1, 5)
	})
}

// What calls have cost is counted where it is priced, what they have wasted included.
func TestRouterCountsCost(t *testing.T) {
	prices := &Prices{Input: 10, Cached: 10, Output: 100, Currency: "USD"}
	a, b := alias("a", "b"), alias("b", "c")
	a.Prices, b.Prices = prices, prices
	d, all := newDesk(t, Options{}, a, b, alias("c"), Alias{Name: "d", Options: model.Options{Model: "d"}, Prices: &Prices{Output: 1}})
	r := all.Counting(prometheus.NewRegistry())
	if n := testutil.CollectAndCount(r.cost); n != 2 {
		t.Errorf("%d currencies begin at 0, want 2", n)
	}
	d.refuses["a"] = refusal(model.Park, model.BadKey, model.Usage{WastedPrompt: 500_000}) // 5
	for _, name := range []string{"a", "c", "d"} {                                         // 0.02, not known, 0.0001
		if _, err := r.Complete(t.Context(), model.Request{Model: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	d.refuses["d"] = refusal(model.GiveUp, model.ContentFilter, model.Usage{WastedCompletion: 1_000_000}) // 1
	_, _ = r.Complete(t.Context(), model.Request{Model: "d"}, nil)
	for currency, want := range map[string]float64{"USD": 5.02, "none": 1.0001} {
		if got := testutil.ToFloat64(r.cost.WithLabelValues(currency)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v %s, want %v", got, currency, want)
		}
	}
}

func TestRouterPrices(t *testing.T) {
	prices := &Prices{Input: 10, Cached: 1, Output: 100, Currency: "USD"}
	wasted := model.Usage{WastedPrompt: 1000, WastedCompletion: 10}
	const answer = (600*10 + 400*1 + 100*100) / 1e6 // what a desk's answer costs
	const waste = (1000*10 + 10*100) / 1e6
	for name, tt := range map[string]struct {
		a, b    *Prices
		refuses error
		cost    float64
		unknown int
	}{
		"known":                        {prices, nil, nil, answer, 0},
		"free":                         {&Prices{}, nil, nil, 0, 0},
		"unknown":                      {nil, nil, nil, 0, 1},
		"after a refusal":              {prices, prices, refusal(model.Park, model.BadKey, model.Usage{}), answer, 0},
		"with what that wasted":        {prices, prices, refusal(model.TryAgain, model.Incomplete, wasted), answer + waste, 0},
		"wasted at an unknown price":   {nil, prices, refusal(model.TryAgain, model.Incomplete, wasted), answer, 1},
		"nothing wasted at an unknown": {nil, prices, refusal(model.Park, model.BadKey, model.Usage{}), answer, 0},
		"both unknown":                 {nil, nil, refusal(model.TryAgain, model.Incomplete, wasted), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := alias("a", "b"), alias("b")
			a.Prices, b.Prices = tt.a, tt.b
			d, r := newDesk(t, Options{}, a, b)
			d.refuses["a"] = tt.refuses
			reply, err := r.Complete(t.Context(), model.Request{}, nil)
			if err != nil || math.Abs(reply.Usage.Cost-tt.cost) > 1e-12 || reply.Usage.Unpriced != tt.unknown {
				t.Errorf("%+v, %v; want a cost of %v, %d unknown", reply.Usage, err, tt.cost, tt.unknown)
			}
			if want := map[bool]string{true: "USD"}[tt.cost > 0]; reply.Usage.Currency != want {
				t.Errorf("in %q, want %q", reply.Usage.Currency, want)
			}
			if tt.refuses != nil && reply.Usage.WastedPrompt != tt.refuses.(*model.Refusal).Used.WastedPrompt {
				t.Errorf("%+v does not count what was wasted", reply.Usage)
			}
		})
	}
	d, r := newDesk(t, Options{}, Alias{Name: "a", Options: model.Options{Model: "a"}, Prices: prices, Fallbacks: []string{"b"}}, alias("b"))
	for _, advice := range []model.Advice{model.Park, model.GiveUp} {
		d.refuses["a"], d.refuses["b"] = refusal(advice, model.Incomplete, wasted), refusal(model.Park, model.BadKey, wasted)
		_, err := r.Complete(t.Context(), model.Request{}, nil)
		refused, _ := errors.AsType[*model.Refusal](err)
		tries := 1
		if advice == model.Park {
			tries = 2
		}
		if refused.Used.WastedPrompt != tries*1000 || refused.Used.Cost != waste || refused.Used.Unpriced != tries-1 {
			t.Errorf("%s: the refusal used %+v", advice, refused.Used)
		}
	}
}

func TestRouterReload(t *testing.T) {
	d, r := newDesk(t, Options{}, alias("a", "b"), alias("b"))
	view := r.Counting(prometheus.NewRegistry())
	ask := func(want ...string) {
		t.Helper()
		if _, err := view.Complete(t.Context(), model.Request{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := d.took(); !slices.Equal(got, want) {
			t.Errorf("asked %v, want %v", got, want)
		}
	}
	d.refuses["a"] = refusal(model.Park, model.BadKey, model.Usage{})
	ask("a", "b")

	changed := view.Changed()
	if err := r.Reload(Routes{Aliases: []Alias{{Name: "c"}}}); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "alias c") || team.HintOf(err) == "" {
		t.Errorf("Reload of what is wrong = %v", err)
	}
	if err := r.Reload(Routes{Aliases: []Alias{alias("c", "nobody")}}); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("Reload of what is wrong = %v", err)
	}
	select {
	case <-changed:
		t.Error("changed by what is wrong")
	default:
	}
	ask("b")

	if err := r.Reload(Routes{Aliases: []Alias{alias("b"), alias("a", "b"), alias("c")}, Default: "a"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("not told of the change")
	}
	ask("a", "b") // it is not known any more that a refused
	if want := []string{"b", "a", "c"}; !slices.Equal(view.Names(), want) {
		t.Errorf("Names = %v, want %v", view.Names(), want)
	}
	if want := []string{"a", "b", "c", "c"}; !slices.Equal(d.opened, want) { // once for the Reload that failed
		t.Errorf("opened clients of %v, want %v: the others are as they were", d.opened, want)
	}
	for name, want := range map[string]string{"": "a", "a": "a", "c": "c", "inherit": "a", "sonnet": "a", "x": "a"} {
		got, known := view.Resolve(name)
		if got != want || known != (name != "x" && name != "sonnet") {
			t.Errorf("Resolve(%q) = %s, %v, want %s", name, got, known, want)
		}
	}
	if l := view.Limits("c"); l.Window != 1 {
		t.Errorf("Limits = %+v", l)
	}
}

func TestRouterWithoutModels(t *testing.T) {
	r, err := New(Routes{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Complete(t.Context(), model.Request{Model: "a"}, nil)
	if refused, ok := errors.AsType[*model.Refusal](err); !ok || refused.Advice != model.Park {
		t.Errorf("Complete = %v, want a refusal to park", err)
	}
	if name, known := r.Resolve(""); name != "" || !known || r.Limits("") != (model.Limits{}) || len(r.Names()) != 0 {
		t.Errorf("Resolve = %q, %v; %+v", name, known, r.Limits(""))
	}
}

// Two endpoints on the wire: each is asked for its own model, with its own key.
func TestRouterOverHTTP(t *testing.T) {
	var broken atomic.Int32 // status of the first endpoint; 0: it answers
	serve := func(key, name string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Model string }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != name || r.Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s is asked for %q with %q, %v", name, body.Model, r.Header.Get("Authorization"), err)
			}
			if status := int(broken.Load()); status != 0 && name == "big-1" {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I am %s\"}}]}\n\n"+
				"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000000,\"completion_tokens\":0}}\n\ndata: [DONE]\n\n", name)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	routes := Routes{Aliases: []Alias{
		{Name: "strong", Options: model.Options{BaseURL: serve("k1", "big-1"), APIKey: "k1", Model: "big-1", Attempts: 1}, Prices: &Prices{Input: 3}, Fallbacks: []string{"fast"}},
		{Name: "fast", Options: model.Options{BaseURL: serve("k2", "small-1"), APIKey: "k2", Model: "small-1", Attempts: 1}, Prices: &Prices{Input: 1}},
	}}
	reg := prometheus.NewRegistry()
	r, err := New(routes, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r = r.Counting(reg)
	ask := func(name, alias, text string, cost float64) {
		t.Helper()
		reply, err := r.Complete(t.Context(), model.Request{Model: name, Messages: []*model.Message{{Role: "user", Content: "who?"}}}, nil)
		if err != nil || reply.Alias != alias || reply.Message.Content != text || reply.Usage.Cost != cost {
			t.Errorf("%+v, %v; want %q by %s at %v", reply, err, text, alias, cost)
		}
	}
	ask("", "strong", "I am big-1", 3)
	ask("fast", "fast", "I am small-1", 1)
	for _, status := range []int{http.StatusUnauthorized, http.StatusServiceUnavailable} {
		broken.Store(int32(status))
		if err := r.Reload(routes); err != nil {
			t.Fatal(err)
		}
		ask("", "fast", "I am small-1", 1)
	}
	broken.Store(0)
	if err := r.Reload(routes); err != nil {
		t.Fatal(err)
	}
	ask("", "strong", "I am big-1", 3)
	if n := testutil.ToFloat64(r.switches.WithLabelValues("strong", "fast")); n != 2 {
		t.Errorf("%v switches, want 2", n)
	}
}

// Many agents ask while the settings change.
func TestRouterTogether(t *testing.T) {
	_, r := newDesk(t, Options{}, alias("a", "b"), alias("b"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			view := r.Counting(nil)
			for range 50 {
				if _, err := view.Complete(t.Context(), model.Request{Model: "b"}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		b := alias("b")
		b.Options.Window = i
		if err := r.Reload(Routes{Aliases: []Alias{b}}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}
