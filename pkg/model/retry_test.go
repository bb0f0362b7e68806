package model

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// pupil is a dialect that learns as often as there are lessons; its requests say how
// often it has learned.
type pupil struct {
	speaker
	lessons, learned int
	window           int
	fits             bool // its requests grow smaller once it knows the window
}

func (p *pupil) encode(Request) (call, error) {
	form := p.learned
	if p.fits && p.window > 0 {
		form++
	}
	return call{path: "/chat/completions", body: fmt.Appendf(nil, `{"form":%d}`, form)}, nil
}

func (p *pupil) learn(apiError) bool {
	if p.learned == p.lessons {
		return false
	}
	p.learned++
	return true
}

func (p *pupil) told(window int) { p.window = window }

func (p *pupil) taught() bool { return false }

func (p *pupil) origin(model string) string { return "pupil of " + model }

// A refused form is tried in another one at once, which is no attempt; what the
// endpoint would refuse in any form comes back.
func TestOtherForms(t *testing.T) {
	for name, tt := range map[string]struct {
		lessons  int
		fits     bool
		answers  []http.HandlerFunc
		requests int64
		want     Reason // "" for an answer
	}{
		"one lesson":                   {1, false, []http.HandlerFunc{status(400, "X", "", "no such field"), good}, 2, ""},
		"two lessons":                  {2, false, []http.HandlerFunc{status(400, "X", "", "a"), status(422, "X", "", "b"), good}, 3, ""},
		"a template's lesson":          {1, false, []http.HandlerFunc{status(500, "X", "", "roles must alternate"), good}, 2, ""},
		"a lesson inside a stream":     {1, false, []http.HandlerFunc{events(`{"error":{"message":"no such field","code":400}}`), good}, 2, ""},
		"nothing to learn":             {0, false, []http.HandlerFunc{status(400, "X", "", "no")}, 1, InvalidRequest},
		"no lesson helps":              {2, false, []http.HandlerFunc{status(400, "X", "", "no")}, 3, InvalidRequest},
		"lessons without end":          {1000, false, []http.HandlerFunc{status(400, "X", "", "no")}, 1 + mostAdapted, InvalidRequest},
		"a key is nothing to learn of": {5, false, []http.HandlerFunc{status(401, "X", "", "no")}, 1, BadKey},
		"a limit that is too high":     {0, true, []http.HandlerFunc{status(400, "X", "", "maximum context length is 4096 tokens"), good}, 2, ""},
		"a form that is too long":      {0, false, []http.HandlerFunc{status(400, "X", "", "maximum context length is 4096 tokens")}, 1, ContextLength},
	} {
		t.Run(name, func(t *testing.T) {
			var bodies []string
			record := func(h http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					bodies = append(bodies, string(body))
					h(w, r)
				}
			}
			var answers []http.HandlerFunc
			for _, h := range tt.answers {
				answers = append(answers, record(h))
			}
			url, requests := endpoint(t, answers...)
			reg := prometheus.NewPedanticRegistry()
			c := client(t, Options{BaseURL: url, Attempts: 1}).Counting(reg)
			p := &pupil{speaker: c.dialect, lessons: tt.lessons, fits: tt.fits}
			c.dialect = p
			_, err := c.Complete(t.Context(), asked, nil)
			var refusal *Refusal
			errors.As(err, &refusal)
			if tt.want == "" && err != nil || tt.want != "" && (refusal == nil || refusal.Reason != tt.want) || requests.Load() != tt.requests {
				t.Errorf("Complete = %v after %d requests, want %q after %d", err, requests.Load(), tt.want, tt.requests)
			}
			for i, body := range bodies {
				if body != fmt.Sprintf(`{"form":%d}`, i) {
					t.Errorf("request %d was %s", i, body)
				}
			}
			if n := testutil.ToFloat64(c.metrics.retries.WithLabelValues(otherForm)); n != float64(tt.requests-1) {
				t.Errorf("%v retries in another form counted", n)
			}
			if (tt.want == ContextLength || tt.fits) != (p.window == 4096) {
				t.Errorf("the dialect was told of a window of %d", p.window)
			}
		})
	}
}

// Each silent try may be billed, so there are few; each is counted.
func TestSilentTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c := bubbleClient(t, Options{Attempts: 8, FirstByte: time.Minute}, func(r *http.Request) (*http.Response, error) {
			requests++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		_, err := c.Complete(t.Context(), asked, nil)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason != Silent || refusal.Advice != TryAgain || requests != 3 {
			t.Fatalf("Complete = %v after %d requests, want silence after 3", err, requests)
		}
		q, _ := c.dialect.encode(Request{Model: "m", Messages: asked.Messages, Tools: asked.Tools})
		if want := (Usage{WastedPrompt: 3 * tokensIn(len(q.body)), Estimated: true}); refusal.Used != want {
			t.Errorf("used %+v, want %+v", refusal.Used, want)
		}
	})
}

// Silence among other outages counts as silence all the same.
func TestOutagesThenSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c := bubbleClient(t, Options{Attempts: 100, FirstByte: time.Minute}, func(r *http.Request) (*http.Response, error) {
			if requests++; requests%2 == 1 {
				return response(503, strings.NewReader("")), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		if _, err := c.Complete(t.Context(), asked, nil); err == nil || requests != 6 {
			t.Errorf("Complete = %v after %d requests, want silence after 6", err, requests)
		}
	})
}

// Over a real connection too a call ends at once with its context, wherever it is.
func TestCancelIsPrompt(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"before the headers": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() },
		"in the stream": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			streamed("data: "+text("a")+"\n\n")(w, r)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"between two tries": status(503, "Retry-After", "100", ""),
	} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{}, 1)
			url, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				reached <- struct{}{}
				answer(w, r)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() {
				_, err := client(t, Options{BaseURL: url}).Complete(ctx, asked, nil)
				ended <- err
			}()
			<-reached
			cancelled := time.Now()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || errors.As(err, new(*Refusal)) {
				t.Errorf("Complete = %v, want the context's error", err)
			}
			if took := time.Since(cancelled); took > 30*time.Second { // each of the three goes on for longer
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Calls share connections, as long as their answers come to an end.
func TestConnectionsAreUsedAgain(t *testing.T) {
	var connections atomic.Int64
	srv := httptest.NewUnstartedServer(good)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c := client(t, Options{BaseURL: srv.URL + "/v1"})
	for range 10 {
		if _, err := c.Complete(t.Context(), asked, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 10 calls one after another, want 1", n)
	}
}

// Where HTTP/2 is offered it is spoken.
func TestHTTP2(t *testing.T) {
	var spoken atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spoken.Store(int64(r.ProtoMajor))
		good(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c := client(t, Options{BaseURL: srv.URL + "/v1"})
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if _, err := c.Complete(t.Context(), asked, nil); err != nil || spoken.Load() != 2 {
		t.Errorf("Complete = %v over HTTP/%d, want 2", err, spoken.Load())
	}
}

// The settings' headers and the key go out, to the endpoint and to nobody whom it
// points to.
func TestHeaders(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	url, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" || r.Header.Get("X-Service") != "a" || r.URL.String() != "/v1/chat/completions?v=1" {
			t.Errorf("%s with %v", r.URL, r.Header)
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	c := client(t, Options{BaseURL: url + "/?v=1", APIKey: "key", Headers: map[string]string{"x-service": "a"}})
	_, err := c.Complete(t.Context(), asked, nil)
	if err == nil || !strings.Contains(err.Error(), "it redirects to "+other.URL) || elsewhere.Load() != 0 {
		t.Errorf("Complete = %v, with %d requests to another host", err, elsewhere.Load())
	}
	url, _ = endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Api-Key") != "service" {
			t.Errorf("headers %v, want the service's own key only", r.Header)
		}
		good(w, r)
	})
	if _, err := client(t, Options{BaseURL: url, APIKey: "key", Headers: map[string]string{"api-key": "service"}}).Complete(t.Context(), asked, nil); err != nil {
		t.Error(err)
	}
}

// Who wrote a turn is noted with it, so that no other is sent the fields of its own.
func TestOrigin(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"fields of the message": {delta(`{"reasoning":"hm"}`), "pupil of m"},
		"fields of a call":      {calls(`{"index":0,"id":"a","function":{"name":"bash","arguments":"{}"},"extra_content":{"x":1}}`), "pupil of m"},
		"no such fields":        {text("a"), "pupil of m"},
	} {
		url, _ := endpoint(t, events(tt.answer, finish("stop")))
		c := client(t, Options{BaseURL: url})
		c.dialect = &pupil{speaker: c.dialect}
		if got, err := c.Complete(t.Context(), asked, nil); err != nil || got.Message.Origin != tt.want {
			t.Errorf("%s: origin %q, %v; want %q", name, got.Message.Origin, err, tt.want)
		}
	}
}

// Whatever body comes with a good status, what Complete returns is a finished turn or
// a refusal.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"data: " + text("a") + "\n\ndata: " + finish("stop") + "\n\ndata: [DONE]\n\n", "\ufeff\r\r\n:\nevent: error\ndata: x\r\r", "<html>", "{}", "[]",
		`{"error":"x"}`, "data:\ndata:\n\n", "\n\n\n", "data", "id: \x00\nretry: 1\n\n", " {\"choices\":[{\"message\":{},\"finish_reason\":\"stop\"}]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := bubbleClient(t, Options{Attempts: 1}, func(*http.Request) (*http.Response, error) { return response(200, strings.NewReader(body)), nil })
		got, err := c.Complete(t.Context(), asked, nil)
		var refusal *Refusal
		switch {
		case err == nil && got.FinishReason == "":
			t.Errorf("a turn without a finish reason: %+v", got)
		case err != nil && (!errors.As(err, &refusal) || refusal.Advice == "" || refusal.Reason == "" || strings.ContainsAny(err.Error(), "\r\n")):
			t.Errorf("Complete = %#v", err)
		}
	})
}
