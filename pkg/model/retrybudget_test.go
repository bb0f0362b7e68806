package model

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// said answers with a status and a body.
func said(code int, body string) func() *http.Response {
	return func() *http.Response { return response(code, strings.NewReader(body)) }
}

// broken answers with half a turn.
func broken() *http.Response {
	return response(200, strings.NewReader("data: "+`{"choices":[{"index":0,"delta":{"content":"half"}}]}`+"\n\n"))
}

// brokenWhole answers with half a turn that is not streamed.
func brokenWhole() *http.Response {
	return response(200, io.MultiReader(strings.NewReader(`{"choices":[{"index":0,`), iotest.ErrReader(io.ErrUnexpectedEOF)))
}

func turn() *http.Response {
	return response(200, strings.NewReader("data: "+`{"choices":[{"index":0,"delta":{"content":"fine"}}]}`+"\n\ndata: "+finish("stop")+"\n\ndata: [DONE]\n\n"))
}

// again answers with a status, and says whether another try is wanted.
func again(status int, want string) func() *http.Response {
	return func() *http.Response {
		r := said(status, "")()
		r.Header.Set("x-should-retry", want)
		return r
	}
}

// How often a call is tried depends on what it fails of, and on whether the endpoint has
// answered before.
func TestTries(t *testing.T) {
	failedCall := said(400, `{"error":{"message":"Failed to call a function.","code":"tool_use_failed"}}`)
	page := said(200, "<!doctype html><title>Bad gateway</title>")
	for name, tt := range map[string]struct {
		answer   func() *http.Response
		known    bool // a turn was given before
		once     bool
		requests int
		advice   Advice
		thrown   int
		least    time.Duration
	}{
		"a failed call":                 {failedCall, false, false, 4, GiveUp, 0, 0},
		"a failed call with a stand-in": {failedCall, false, true, 4, GiveUp, 0, 0},
		"400":                           {said(400, "no"), false, false, 2, GiveUp, 0, time.Second},
		"422 with a stand-in":           {said(422, "no"), false, true, 2, GiveUp, 0, time.Second},
		"a filter":                      {said(400, `{"error":{"code":"content_filter"}}`), true, false, 1, GiveUp, 0, 0},
		"too long":                      {said(413, ""), true, false, 1, Compact, 0, 0},
		"an answer that breaks off":     {broken, true, false, 2, TryAgain, 2, 0},
		"one that does not stream":      {brokenWhole, true, false, 2, TryAgain, 2, 0},
		"503":                           {said(503, ""), true, false, 5, TryAgain, 0, 0},
		"503 that says no":              {again(503, "false"), true, false, 1, TryAgain, 0, 0},
		"413 that says again":           {again(413, "true"), true, false, 2, Compact, 0, 0},
		"401":                           {said(401, ""), false, false, 1, Park, 0, 0},
		"401 of a good key":             {said(401, ""), true, false, 2, Park, 0, 2 * time.Second},
		"403 of a good key":             {said(403, ""), true, false, 2, Park, 0, 2 * time.Second},
		"404 of a good address":         {said(404, "not found"), true, false, 2, Park, 0, 2 * time.Second},
		"404 with a stand-in":           {said(404, "not found"), true, true, 1, Park, 0, 0},
		"402 of a good key":             {said(402, ""), true, false, 1, Park, 0, 0},
		"a page of no endpoint":         {page, false, false, 1, Park, 0, 0},
		"a page of a gateway":           {page, true, false, 5, TryAgain, 0, 0},
		"a page with a stand-in":        {page, true, true, 1, TryAgain, 0, 0},
		"other JSON of a gateway":       {said(200, `{"status":"ok"}`), true, false, 5, TryAgain, 0, 0},
		"a login's redirect":            {said(302, ""), true, false, 5, TryAgain, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				answer := tt.answer
				if tt.known {
					answer = turn
				}
				c := bubbleClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
					_, _ = io.Copy(io.Discard, r.Body)
					requests++
					return answer(), nil
				})
				if tt.known {
					if _, err := c.Complete(t.Context(), asked, nil); err != nil {
						t.Fatal(err)
					}
					requests, answer = 0, tt.answer
				}
				began, req := time.Now(), asked
				req.Once = tt.once
				_, err := c.Counting(nil).Complete(t.Context(), req, nil)
				var refusal *Refusal
				if !errors.As(err, &refusal) {
					t.Fatal(err)
				}
				if requests != tt.requests || refusal.Advice != tt.advice || refusal.Thrown != tt.thrown || refusal.Longest*tt.thrown != refusal.Used.WastedPrompt || time.Since(began) < tt.least {
					t.Errorf("%d requests in %v, advice %s, %d prompts thrown away; want %d in at least %v, %s, %d", requests, time.Since(began), refusal.Advice, refusal.Thrown, tt.requests, tt.least, tt.advice, tt.thrown)
				}
				answer = turn // whatever it was, it is over
				if _, err := c.Complete(t.Context(), asked, nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An endpoint that answers like none again and again is none any more.
func TestStrayAnswersInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := turn
		c := bubbleClient(t, Options{}, func(*http.Request) (*http.Response, error) { return answer(), nil })
		ask := func() Advice {
			_, err := c.Complete(t.Context(), asked, nil)
			if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
				return refusal.Advice
			}
			return ""
		}
		page := said(200, "<!doctype html><title>Log in</title>")
		ask()
		answer = page
		if first, second, third := ask(), ask(), ask(); first != TryAgain || second != Park || third != Park {
			t.Errorf("advised %s, %s, %s", first, second, third)
		}
		answer = turn
		ask()
		answer = page
		if after := ask(); after != TryAgain {
			t.Errorf("after a turn: %s", after)
		}
	})
}

// A request is sent once its caller is ready, encoded meanwhile, and not at all if the caller
// never is.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, ready := 0, 0
		c := bubbleClient(t, Options{}, func(*http.Request) (*http.Response, error) {
			if requests++; ready != requests {
				t.Errorf("request %d was sent after %d words that all is stored", requests, ready)
			}
			if requests == 1 {
				return response(503, strings.NewReader("")), nil
			}
			return turn(), nil
		})
		req := asked
		req.Ready = func() error { ready++; return nil }
		if _, err := c.Complete(t.Context(), req, nil); err != nil || requests != 2 {
			t.Errorf("%v after %d requests", err, requests)
		}
		gone := errors.New("gone")
		req.Ready = func() error { return gone }
		if _, err := c.Complete(t.Context(), req, nil); err != gone || requests != 2 {
			t.Errorf("%v after %d requests", err, requests)
		}
	})
}
