package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"
)

// The causes of a context that ended because the endpoint took too long.
var (
	errSilent  = errors.New("the endpoint keeps silent")
	errTooLong = errors.New("the endpoint did not come to an end")
)

// exchange is one HTTP request and its answer, cancelled when the endpoint takes too long.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the deadline for the whole
	alarm  *time.Timer
	resp   *http.Response // nil if none came

	next   func() (sse.Event, error, bool) // the events of the answer; nil before they are read
	halt   func()
	idle   time.Duration // how long an event may take
	wait   time.Duration // how long the next event may take; 0: as the alarm is set already
	events int
	marked bool      // the end mark came
	newest sse.Event // the last event that says something
	unread bool      // newest was not given to a turn yet
	line   []byte    // of newest, as far as go-openai has not read it
}

// open sends q to the endpoint and waits for the headers of the answer. The caller must close the exchange, also after
// an error.
func (c *Client) open(ctx context.Context, method string, q call) (*exchange, error) {
	x := &exchange{idle: c.opt.Idle}
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

// address returns the base URL with path, which may have a query, after it.
func (c *Client) address(path string) string {
	path, query, _ := strings.Cut(path, "?")
	u := c.base.JoinPath(path)
	if query != "" {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+query, "&")
	}
	return u.String()
}

// close ends the exchange. The connection is reused if its answer was read to the end.
func (x *exchange) close() {
	x.alarm.Stop()
	if x.halt != nil {
		x.halt()
	}
	if x.resp != nil {
		_ = x.resp.Body.Close() // what came of it is known already
	}
	x.stop()
	x.cancel(nil)
}

// expect cancels the exchange unless data arrives within d.
func (x *exchange) expect(d time.Duration) { x.alarm.Reset(d) }

// begin prepares to read the events of body.
func (x *exchange) begin(body io.Reader) {
	// The parser drops a last line without an end, which may be a whole event.
	x.next, x.halt = iter.Pull2(sse.Read(io.MultiReader(body, strings.NewReader("\n\n")), &sse.ReadConfig{MaxEventSize: largestEvent}))
}

// advance waits for the next event with data.
func (x *exchange) advance() error {
	for {
		if x.wait > 0 {
			x.alarm.Reset(x.wait)
		}
		e, err, ok := x.next()
		x.alarm.Stop() // what the reader of an answer does with it takes time that is not the endpoint's
		switch {
		case !ok:
			return io.EOF
		case err != nil:
			return err
		}
		x.events++
		switch e.Data {
		case endMark:
			x.marked = true
			x.wait = min(x.idle, lateEnd)
		case "":
			x.wait = cmp.Or(x.wait, x.idle) // no news: after the end it prolongs nothing
		default:
			x.newest, x.unread, x.wait = e, true, x.idle
			if x.marked = e.Type == lastMessage; x.marked {
				x.wait = min(x.idle, lateEnd)
			}
			return nil
		}
	}
}

// Read gives go-openai the events, each as one line of data: go-openai would end at comments, names of events, the end
// mark, and data of two lines.
func (x *exchange) Read(p []byte) (int, error) {
	if len(x.line) == 0 {
		if err := x.advance(); err != nil {
			return 0, err
		}
		x.line = append(append(x.line[:0], "data: "...), strings.ReplaceAll(x.newest.Data, "\n", " ")...)
		if x.line = append(x.line, '\n'); strings.Contains(x.newest.Data, `"error":`) {
			x.line = append(x.line, '\n') // it waits for one line more then
		}
	}
	n := copy(p, x.line)
	x.line = x.line[n:]
	return n, nil
}

// event returns the next event of the answer to q, with the data that go-openai has read.
func (x *exchange) event(q call) (name string, data []byte, err error) {
	if q.stream == nil {
		err = x.advance()
	} else {
		q.stream.Reader = x
		data, err = q.stream.next()
	}
	if !x.unread {
		return "", nil, cmp.Or(err, io.EOF)
	}
	x.unread = false
	if err != nil || len(data) == 0 { // an error, of which go-openai may know nothing more
		data = []byte(x.newest.Data)
	}
	return x.newest.Type, data, nil
}

// status returns the status of the answer; 0 if none arrived.
func (x *exchange) status() int {
	if x.resp == nil {
		return 0
	}
	return x.resp.StatusCode
}

// tooLong reports whether the endpoint exceeded a time limit.
func (x *exchange) tooLong() (cause error, ok bool) {
	cause = context.Cause(x.ctx)
	return cause, cause == errSilent || cause == errTooLong
}

// plain returns err without the address, which errors of package net/http repeat.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
