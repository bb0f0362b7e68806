package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/team"
)

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		opt  Options
		want string // in the error; "" if there is none
	}{
		"no model":      {Options{APIKey: "k"}, "OPENAI_MODEL"},
		"no endpoint":   {Options{Model: "m"}, "OPENAI_API_KEY nor OPENAI_BASE_URL"},
		"no scheme":     {Options{Model: "m", BaseURL: "localhost:11434"}, "OPENAI_BASE_URL"},
		"not a URL":     {Options{Model: "m", BaseURL: "http://a b"}, "OPENAI_BASE_URL"},
		"not http":      {Options{Model: "m", BaseURL: "nats://a"}, "OPENAI_BASE_URL"},
		"no key needed": {Options{Model: "m", BaseURL: "http://localhost:11434/v1"}, ""},
		"OpenAI":        {Options{Model: "m", APIKey: "k"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.opt)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), tt.want) || team.HintOf(err) == "" {
				t.Errorf("New = %v (hint %q), want one naming %s", err, team.HintOf(err), tt.want)
			}
		})
	}
}

// roundTripper stands for the network inside a synctest bubble, where time is
// what the waits make it.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func bubbleClient(t *testing.T, opt Options, rt roundTripper) *Client {
	t.Helper()
	opt.BaseURL, opt.Transport = "http://model.test/v1", rt
	return client(t, opt)
}

func response(code int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(body)}
}

// stream is a body that a test writes to; a read ends with the request.
func stream(r *http.Request) (*io.PipeWriter, *http.Response) {
	out, in := io.Pipe()
	context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	return in, response(200, out)
}

func TestWaitsBetweenAttempts(t *testing.T) {
	for name, tt := range map[string]struct {
		asked    string // Retry-After
		attempts int
		least    time.Duration
		most     time.Duration
	}{
		"backoff":             {"", 8, 0, 61500 * time.Millisecond},
		"Retry-After":         {"7", 3, 14 * time.Second, 15500 * time.Millisecond},
		"Retry-After, a date": {time.Date(2000, 1, 1, 0, 0, 9, 0, time.UTC).Format(http.TimeFormat), 2, 9 * time.Second, 9500 * time.Millisecond},
		"a date long past":    {time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat), 2, 0, 500 * time.Millisecond},
		"too long":            {"86400", 2, 2 * time.Minute, 2*time.Minute + 500*time.Millisecond},
		"nonsense":            {"soon", 2, 0, 500 * time.Millisecond},
		"negative":            {"-5", 2, 0, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock begins with the year 2000
				requests := 0
				c := bubbleClient(t, Options{Attempts: tt.attempts}, func(*http.Request) (*http.Response, error) {
					requests++
					resp := response(429, strings.NewReader(`{"error":{"message":"slow down"}}`))
					resp.Header.Set("Retry-After", tt.asked)
					return resp, nil
				})
				began := time.Now()
				_, err := c.Complete(t.Context(), asked, nil)
				took := time.Since(began)
				if !errors.Is(err, team.Unavailable) || !strings.Contains(err.Error(), "slow down") || requests != tt.attempts {
					t.Errorf("Complete = %v after %d requests, want unavailable after %d", err, requests, tt.attempts)
				}
				if took < tt.least || took > tt.most {
					t.Errorf("it took %v, want %v to %v", took, tt.least, tt.most)
				}
			})
		})
	}
}

func TestSilence(t *testing.T) {
	opt := Options{Attempts: 1, FirstByte: 20 * time.Second, Idle: 5 * time.Second, Total: time.Minute}
	for name, tt := range map[string]struct {
		answer func(r *http.Request) (*http.Response, error)
		want   error
		took   time.Duration
	}{
		"no headers": {func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, team.Unavailable, 20 * time.Second},
		"headers only": {func(r *http.Request) (*http.Response, error) {
			_, resp := stream(r)
			return resp, nil
		}, team.Unavailable, 20 * time.Second},
		"stops in the middle": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go func() {
				<-time.After(15 * time.Second)
				io.WriteString(in, "data: "+text("half")+"\n\n")
			}()
			return resp, nil
		}, team.Unavailable, 20 * time.Second},
		"stops after the finish reason": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go io.WriteString(in, "data: "+finish("stop")+"\n\n")
			return resp, nil
		}, nil, 5 * time.Second},
		"no data after the end mark": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go io.WriteString(in, "data: "+finish("stop")+"\n\ndata: [DONE]\n\nevent: ping\n\n")
			return resp, nil
		}, nil, lateEnd},
		"slow but alive": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go func() {
				for range 10 {
					io.WriteString(in, "data: "+delta("{}")+"\n\n")
					<-time.After(4 * time.Second)
				}
				io.WriteString(in, "data: "+finish("stop")+"\n\ndata: [DONE]\n\n")
				in.Close()
			}()
			return resp, nil
		}, nil, 40 * time.Second},
		"nothing but comments and empty lines": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go func() {
				io.WriteString(in, "data: "+delta("{}")+"\n\n")
				for err := error(nil); err == nil; <-time.After(time.Second) {
					_, err = io.WriteString(in, ": keep-alive\n\n\n\n")
				}
			}()
			return resp, nil
		}, team.Unavailable, 5 * time.Second},
		"talks for ever": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go func() {
				for err := error(nil); err == nil; <-time.After(time.Second) {
					_, err = io.WriteString(in, "data: "+text("more")+"\n\n")
				}
			}()
			return resp, nil
		}, team.Unavailable, time.Minute},
		"does not hang up after its end mark": {func(r *http.Request) (*http.Response, error) {
			in, resp := stream(r)
			go io.WriteString(in, "data: "+finish("stop")+"\n\ndata: [DONE]\n\n")
			return resp, nil
		}, nil, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := bubbleClient(t, opt, tt.answer).Complete(t.Context(), asked, nil)
				if took := time.Since(began); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("Complete = %v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
				<-time.After(5 * time.Second) // until the endpoint has noticed
			})
		})
	}
	t.Run("a slow reader is not the endpoint's silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			opt.Total = 24 * time.Hour
			c := bubbleClient(t, opt, func(r *http.Request) (*http.Response, error) {
				in, resp := stream(r)
				go func() {
					io.WriteString(in, "data: "+text("a")+"\n\n")
					io.WriteString(in, "data: "+finish("stop")+"\n\ndata: [DONE]\n\n") // waits in the pipe
				}()
				return resp, nil
			})
			if _, err := c.Complete(t.Context(), asked, func(string) { <-time.After(time.Hour) }); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestEveryWaitEndsWithItsContext(t *testing.T) {
	for name, rt := range map[string]roundTripper{
		"for the endpoint": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"in the stream": func(r *http.Request) (*http.Response, error) {
			_, resp := stream(r)
			return resp, nil
		},
		"before the next attempt": func(*http.Request) (*http.Response, error) {
			resp := response(503, strings.NewReader(""))
			resp.Header.Set("Retry-After", "100")
			return resp, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				began := time.Now()
				_, err := bubbleClient(t, Options{}, rt).Complete(ctx, asked, nil)
				if !errors.Is(err, context.DeadlineExceeded) || team.CodeOf(err) != "" || time.Since(began) != 3*time.Second {
					t.Errorf("Complete = %v after %v, want the context's error after 3s", err, time.Since(began))
				}
			})
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(nil)
	base := srv.URL + "/v1"
	srv.Close() // nobody listens there now
	u, _ := url.Parse(base)
	u.User = url.UserPassword("me", "hidden")
	_, err := client(t, Options{BaseURL: u.String(), Attempts: 2}).Complete(t.Context(), asked, nil)
	if !errors.Is(err, team.Unavailable) || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("Complete = %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		code   team.Code // "" if all is well
		want   string
	}{
		"serves":             {status(200, "X", "", `{"object":"list","data":[{"id":"m"}]}`), "", ""},
		"serves a bare list": {status(200, "X", "", `[{"id":"m"}]`), "", ""},
		"wrong key":          {status(401, "X", "", `{"error":{"message":"no"}}`), team.InvalidArgument, "refuses the key"},
		"something else":     {status(200, "Content-Type", "text/plain", "It works!"), team.InvalidArgument, "text/plain: It works!"},
		"an error with 200":  {status(200, "X", "", `{"error":{"message":"unheard of","code":"invalid_api_key"}}`), team.InvalidArgument, "refuses the key (in an answer with status 200): unheard of"},
		"no credit":          {status(402, "X", "", `{"error":{"message":"pay"}}`), team.InvalidArgument, "no credit"},
		"moved":              {status(301, "Location", "https://elsewhere.test/v1", ""), team.InvalidArgument, "it redirects to https://elsewhere.test/v1"},
		"wrong address":      {status(404, "X", "", "404 page not found\n"), team.InvalidArgument, "no such address"},
		"a web page":         {status(200, "X", "", "<html><head><title>\nPlease log in</title></head>"), team.InvalidArgument, "is no model endpoint: it answered 200: an HTML page: Please log in"},
		"a web server":       {status(404, "X", "", "<html><title>Not here</title></html>"), team.InvalidArgument, "is no model endpoint: it answered 404: an HTML page: Not here"},
		"not implemented":    {status(501, "X", "", "<html><title>No</title></html>"), team.InvalidArgument, "is no model endpoint: it answered 501: an HTML page: No"},
		"in trouble":         {status(502, "X", "", "bad\ngateway"), team.Unavailable, "it answered 502: bad gateway"},
		"hangs up":           {hangUp, team.Unavailable, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			base, requests := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "GET" || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer key" {
					t.Errorf("request %s %s", r.Method, r.URL)
				}
				tt.answer(w, r)
			})
			err := client(t, Options{BaseURL: base, APIKey: "key"}).Check(t.Context())
			switch {
			case team.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("Check = %v (%s), want %s with %s", err, team.CodeOf(err), tt.code, tt.want)
			case err != nil && (strings.Contains(err.Error(), "\n") || team.HintOf(err) == ""):
				t.Errorf("not one line with a hint: %q, %q", err, team.HintOf(err))
			case requests.Load() != 1:
				t.Errorf("%d requests, want 1", requests.Load())
			}
		})
	}
	if err := client(t, Options{BaseURL: closed.URL}).Check(t.Context()); !errors.Is(err, team.Unavailable) {
		t.Errorf("nobody there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client(t, Options{BaseURL: closed.URL}).Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	call := func(attempts int, answers ...http.HandlerFunc) {
		base, _ := endpoint(t, answers...)
		// A client each: they share the metrics.
		_, _ = client(t, Options{BaseURL: base, Attempts: attempts}).Counting(reg).Complete(t.Context(), asked, nil)
	}
	call(8, good)
	call(8, status(429, "Retry-After", "0", ""), streamed(""), good)
	call(8, events(finish("length"), `{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`))
	call(8, status(400, "X", "", ""))
	call(8, status(413, "X", "", ""))
	call(1, status(500, "X", "", ""))
	base, _ := endpoint(t, good)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = client(t, Options{BaseURL: base}).Counting(reg).Complete(ctx, asked, nil)

	sent, err := client(t, Options{BaseURL: base}).dialect.encode(Request{Model: "m", Messages: asked.Messages, Tools: asked.Tools})
	if err != nil {
		t.Fatal(err)
	}
	want := `
# HELP agentteam_model_calls_total Model calls: ok, cut, too_long, refused, unavailable or canceled.
# TYPE agentteam_model_calls_total counter
agentteam_model_calls_total{outcome="canceled"} 1
agentteam_model_calls_total{outcome="cut"} 1
agentteam_model_calls_total{outcome="ok"} 2
agentteam_model_calls_total{outcome="refused"} 1
agentteam_model_calls_total{outcome="too_long"} 1
agentteam_model_calls_total{outcome="unavailable"} 1
# HELP agentteam_model_refusals_total Model calls that gave no turn, by reason.
# TYPE agentteam_model_refusals_total counter
agentteam_model_refusals_total{reason="bad_key"} 0
agentteam_model_refusals_total{reason="connection"} 0
agentteam_model_refusals_total{reason="content_filter"} 0
agentteam_model_refusals_total{reason="context_length"} 1
agentteam_model_refusals_total{reason="failed_call"} 0
agentteam_model_refusals_total{reason="incomplete"} 0
agentteam_model_refusals_total{reason="invalid_request"} 1
agentteam_model_refusals_total{reason="no_credit"} 0
agentteam_model_refusals_total{reason="no_endpoint"} 0
agentteam_model_refusals_total{reason="no_tools"} 0
agentteam_model_refusals_total{reason="rate_limited"} 0
agentteam_model_refusals_total{reason="server_error"} 1
agentteam_model_refusals_total{reason="silent"} 0
agentteam_model_refusals_total{reason="unknown_model"} 0
# HELP agentteam_model_retries_total Repeated attempts, by reason: as of refusals, or other_form.
# TYPE agentteam_model_retries_total counter
agentteam_model_retries_total{reason="bad_key"} 0
agentteam_model_retries_total{reason="connection"} 0
agentteam_model_retries_total{reason="failed_call"} 0
agentteam_model_retries_total{reason="incomplete"} 1
agentteam_model_retries_total{reason="invalid_request"} 1
agentteam_model_retries_total{reason="no_endpoint"} 0
agentteam_model_retries_total{reason="other_form"} 0
agentteam_model_retries_total{reason="rate_limited"} 1
agentteam_model_retries_total{reason="server_error"} 0
agentteam_model_retries_total{reason="silent"} 0
agentteam_model_retries_total{reason="unknown_model"} 0
# HELP agentteam_model_tokens_total Tokens: prompt and completion, their parts cached and reasoning, and wasted of discarded tries.
# TYPE agentteam_model_tokens_total counter
agentteam_model_tokens_total{direction="cached"} 4
agentteam_model_tokens_total{direction="completion"} 21
agentteam_model_tokens_total{direction="prompt"} 33
agentteam_model_tokens_total{direction="reasoning"} 2
agentteam_model_tokens_total{direction="wasted"} ` + strconv.Itoa(tokensIn(len(sent.body))) + "\n"
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "agentteam_model_calls_total",
		"agentteam_model_refusals_total", "agentteam_model_retries_total", "agentteam_model_tokens_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "agentteam_model_call_duration_seconds"); n != 6 || err != nil {
		t.Errorf("%d durations, %v; want 6", n, err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if len(problems) > 0 || err != nil {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func TestLogsKeepSecrets(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	const key, prompt = "sk-secret", "the prompt"
	base, _ := endpoint(t, status(500, "X", "", "bad key "+key), status(500, "X", "", "bad prompt "+prompt), good)
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		c := client(t, Options{BaseURL: base, APIKey: key, Logger: logger})
		if _, err := c.Complete(t.Context(), Request{Messages: []*Message{{Role: "user", Content: prompt}}}, nil); err != nil {
			t.Fatal(err)
		}
		if level == slog.LevelInfo && strings.Contains(log.String(), prompt) {
			t.Errorf("the prompt is logged at Info:\n%s", &log)
		}
	}
	if strings.Contains(log.String(), key) || !strings.Contains(log.String(), "reason=server_error") {
		t.Errorf("the log is\n%s", &log)
	}
}

func TestConcurrentCallsDoNotMix(t *testing.T) {
	base, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		i := bytes.Index(body, []byte("say ")) + 4
		events(text(string(body[i:i+1])), finish("stop"))(w, r)
	})
	c := client(t, Options{BaseURL: base})
	var wg sync.WaitGroup
	for _, letter := range strings.Split("abcdefgh", "") {
		wg.Go(func() {
			r, err := c.Complete(t.Context(), Request{Messages: []*Message{{Role: "user", Content: "say " + letter}}}, nil)
			if err != nil || r.Message.Content != letter {
				t.Errorf("say %s: %q, %v", letter, r.Message.Content, err)
			}
		})
	}
	wg.Wait()
}

func TestDeltasInOrder(t *testing.T) {
	base, _ := endpoint(t, good)
	var got []string
	if _, err := client(t, Options{BaseURL: base}).Complete(t.Context(), asked, func(s string) { got = append(got, s) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{"fi", "ne"}) {
		t.Errorf("deltas %q", got)
	}
}

func TestUsageAdd(t *testing.T) {
	got := Usage{PromptTokens: 1, CompletionTokens: 2}.Add(Usage{PromptTokens: 10, CompletionTokens: 20, Estimated: true})
	if got != (Usage{PromptTokens: 11, CompletionTokens: 22, Estimated: true}) {
		t.Errorf("Add = %+v", got)
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
