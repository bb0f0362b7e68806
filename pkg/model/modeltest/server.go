package modeltest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Next chooses the outcome of the n-th request for a turn, counted from 1: a fault, or nil for an answer. body is the
// request's; its system message names the agent. Calls may be concurrent.
type Next func(n int, body []byte) *Fault

// Server starts an endpoint on a free loopback port and returns its base URL, which ends in /v1. answer serves the
// turns without a fault, and all other requests; nil answers with a short text. It stops when the test ends, with the
// requests that it leaves unanswered.
func Server(t testing.TB, answer http.Handler, next Next) (baseURL string) {
	t.Helper()
	srv := httptest.NewServer(Handler(answer, next))
	t.Cleanup(func() {
		srv.CloseClientConnections() // else it would wait for those who wait for it
		srv.Close()
	})
	return srv.URL + "/v1"
}

// Handler returns the handler of [Server], to put before another endpoint in a process.
func Handler(answer http.Handler, next Next) http.Handler {
	if answer == nil {
		answer = http.HandlerFunc(fine)
	}
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			answer.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // whoever asked is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if f := next(int(asked.Add(1)), body); f != nil {
			f.ServeHTTP(w, r)
			return
		}
		answer.ServeHTTP(w, r)
	})
}

// fine answers with the text "fine" and a usage of 11 and 7 tokens.
func fine(w http.ResponseWriter, _ *http.Request) {
	send(w, "", event(text("fi")), event(text("ne")), event(stop),
		event(`{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}`), event("[DONE]"))
}
