package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The causes of a context that ended since the endpoint took too long.
var (
	errSilent  = errors.New("the endpoint keeps silent")
	errTooLong = errors.New("the endpoint did not come to an end")
)

// exchange is one HTTP request and its answer, called off when the endpoint takes
// too long.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the deadline for the whole
	alarm  *time.Timer
	resp   *http.Response // nil if none came
}

// open sends q to the endpoint and waits for the headers of the answer. The caller
// must close the exchange, also after an error.
func (c *Client) open(ctx context.Context, method string, q call) (*exchange, error) {
	x := &exchange{}
	ctx, x.cancel = context.WithCancelCause(ctx)
	x.ctx, x.stop = context.WithTimeoutCause(ctx, c.opt.Total, errTooLong)
	x.alarm = time.AfterFunc(c.opt.FirstByte, func() { x.cancel(errSilent) })

	r, err := http.NewRequestWithContext(x.ctx, method, c.address(q.path), nil)
	if err != nil {
		return x, err
	}
	if q.body != nil {
		r.ContentLength = int64(len(q.body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.body)), nil } // for a connection that turns out to be closed
		r.Body, _ = r.GetBody()
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream, application/json"}}
	maps.Copy(r.Header, q.header)
	x.resp, err = c.http.Do(r)
	return x, err
}

// address is the base URL with path, which may have a query, after it.
func (c *Client) address(path string) string {
	path, query, _ := strings.Cut(path, "?")
	u := c.base.JoinPath(path)
	if query != "" {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+query, "&")
	}
	return u.String()
}

// close ends the exchange. A connection whose answer was read to its end is used
// again.
func (x *exchange) close() {
	x.alarm.Stop()
	if x.resp != nil {
		_ = x.resp.Body.Close() // what came of it is known already
	}
	x.stop()
	x.cancel(nil)
}

// expect calls the exchange off unless it is heard of again within d.
func (x *exchange) expect(d time.Duration) { x.alarm.Reset(d) }

// stopAlarm keeps the alarm from ringing until the next expect: what the reader of an
// answer does with it takes time that is not the endpoint's.
func (x *exchange) stopAlarm() { x.alarm.Stop() }

// status is that of the answer; 0 if none came.
func (x *exchange) status() int {
	if x.resp == nil {
		return 0
	}
	return x.resp.StatusCode
}

// tooLong reports whether the endpoint took longer than our patience lasts.
func (x *exchange) tooLong() (cause error, ok bool) {
	cause = context.Cause(x.ctx)
	return cause, cause == errSilent || cause == errTooLong
}

// plain is err without the address, which errors of package net/http repeat.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
