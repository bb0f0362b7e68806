package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errSilent is the cause of a context that ended because the endpoint sent
// nothing for too long.
var errSilent = errors.New("the endpoint keeps silent")

// exchange is one HTTP request and what the SDK does not tell about its answer.
// It travels to the wire inside the request's context.
type exchange struct {
	body   []byte // sent instead of the SDK's; nil: the SDK's is sent
	status int    // of the answer; 0 if none came
	header http.Header

	idle   time.Duration
	alarm  *time.Timer // calls the request off
	cancel context.CancelCauseFunc
	begun  bool // the first byte of the answer is here
}

type exchangeKey struct{}

func (x *exchange) end() {
	x.alarm.Stop()
	x.cancel(nil)
}

// wire is the round tripper under the SDK. It sends the exchange's own body,
// since the SDK's structs cannot carry provider fields or an empty content, and
// keeps status and headers, which the SDK drops when opening a stream fails.
type wire struct {
	base http.RoundTripper
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	x := req.Context().Value(exchangeKey{}).(*exchange)
	if x.body != nil {
		// A redirect may bring a second request for the same exchange.
		req = req.Clone(req.Context())
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(x.body))
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	resp.Body = &listener{ReadCloser: resp.Body, x: x}
	return resp, nil
}

// listener rings the alarm when a read takes too long. Only the time inside Read
// counts: a slow reader is not the endpoint's fault. A keep-alive comment is a
// sign of life like any other byte.
type listener struct {
	io.ReadCloser
	x *exchange
}

func (l *listener) Read(p []byte) (int, error) {
	if l.x.begun {
		l.x.alarm.Reset(l.x.idle)
	}
	n, err := l.ReadCloser.Read(p)
	if n > 0 || err != nil {
		l.x.begun = true
		l.x.alarm.Stop()
	}
	return n, err
}
