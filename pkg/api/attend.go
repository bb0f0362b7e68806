package api

import (
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/telemetry"
)

// metrics count requests. Package stream counts streams.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		requests: telemetry.Counters(reg, "agentteam_api_requests_total",
			"Requests to the HTTP API; the route of a refused one is none.", "route", "method", "code"),
		seconds: telemetry.Histograms(reg, "agentteam_api_request_seconds",
			"Time to answer a request, streams aside.", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}, "route"),
	}
}

// noRoute is the route of refused requests and unknown paths.
const noRoute = "none"

// attended counts the requests to next, sets deadlines for their bodies and each write, and answers if a handler
// panics.
func (s *Server) attended(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := &writer{ResponseWriter: rw, rc: http.NewResponseController(rw), within: s.limits.writeWait, route: noRoute}
		begun := time.Now()
		_ = w.rc.SetWriteDeadline(time.Time{}) // the last request of this connection had one
		if r.ContentLength != 0 {
			// Also for an unread body: before the server ends a connection, or takes the next request, it waits for the
			// rest.
			_ = w.rc.SetReadDeadline(begun.Add(s.limits.bodyWait))
		}
		defer func() {
			// The server sends the rest once the handlers have returned.
			defer w.limit()
			cause := recover()
			if cause != nil && cause != http.ErrAbortHandler {
				s.opt.Log.ErrorContext(r.Context(), "a handler of the API has panicked", "route", w.route, "err", cause, "stack", string(debug.Stack()))
				if w.code == 0 {
					problem.Document{Status: http.StatusInternalServerError, Detail: "the request has failed; the log of this process says why"}.Write(w)
					cause = nil
				} else {
					cause = http.ErrAbortHandler // the client must not take half an answer for a whole one
				}
			}
			s.count(w, r, time.Since(begun))
			if cause != nil {
				panic(cause)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) count(w *writer, r *http.Request, took time.Duration) {
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // a client may send any word
	}
	code := w.code
	if code == 0 {
		code = http.StatusOK // as the server answers for a handler that wrote nothing
	}
	s.metrics.requests.WithLabelValues(w.route, method, strconv.Itoa(code)).Inc()
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		s.metrics.seconds.WithLabelValues(w.route).Observe(took.Seconds())
	}
}

// writer is the ResponseWriter of handlers. Each write has a separate deadline, and none holds in between: a stream may
// be silent for any time, but a client that takes nothing is cut off.
type writer struct {
	http.ResponseWriter
	rc     *http.ResponseController
	within time.Duration
	route  string // pattern of the handler
	code   int    // of the answer; 0 = nothing was written yet
}

// Unwrap returns the wrapped writer, for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(code int) {
	if w.code == 0 && code >= http.StatusOK {
		w.code = code
	}
	w.limit()
	defer w.unlimit()
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	w.limit()
	defer w.unlimit()
	return w.ResponseWriter.Write(p)
}

// FlushError flushes the answer, for [http.ResponseController].
func (w *writer) FlushError() error {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	w.limit()
	defer w.unlimit()
	return w.rc.Flush()
}

func (w *writer) limit() { _ = w.rc.SetWriteDeadline(time.Now().Add(w.within)) }

// unlimit removes the deadline: under HTTP/2 a deadline that passes ends the stream even if nothing is being written.
func (w *writer) unlimit() { _ = w.rc.SetWriteDeadline(time.Time{}) }
