package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

const (
	largestEvent  = 32 << 20  // bytes; some endpoints send a whole turn as one event
	largestAnswer = 256 << 20 // bytes; what is longer was not meant to end
	largestError  = 256 << 10 // bytes of an error's body that are read

	// After the finish reason only the usage may follow, and after the end mark only the end of the answer, which frees
	// the connection for the next. Neither is worth a long wait.
	lateUsage = 10 * time.Second
	lateEnd   = 100 * time.Millisecond
)

// The last event of a stream: its data, or its type in Anthropic's Messages.
const (
	endMark     = "[DONE]"
	lastMessage = "message_stop"
)

// attempt sends q in one HTTP request and reads its answer to the end.
func (c *Client) attempt(ctx context.Context, req Request, q call, onDelta func(string)) (Reply, *failure) {
	x, err := c.open(ctx, http.MethodPost, q)
	defer x.close()
	if err != nil {
		return Reply{}, c.unanswered(x, q, err)
	}
	if s := x.status(); s < 200 || s >= 300 {
		return Reply{}, c.refused(x)
	}
	turn := c.dialect.reader(req, onDelta)
	if fail := c.read(x, q, turn); fail != nil {
		return Reply{}, fail
	}
	reply := turn.reply()
	known := namesOf(req)
	for i, call := range reply.Message.ToolCalls {
		reply.Message.ToolCalls[i].Name = known.plain(call.Name)
	}
	reply.takeWritten(req, known)
	reply.Usage = completed(reply.Usage, len(q.body), turn.size())
	reply.Message.Origin = c.dialect.origin(req.Model)
	if reply.Message.Extra[answerBlocks] != nil {
		reply.Message.Extra[answersTo], _ = json.Marshal(q.bound) // a string always encodes
	}
	return reply, nil
}

// read passes the answer to turn and returns nil once that is finished.
func (c *Client) read(x *exchange, q call, turn turnReader) *failure {
	body := bufio.NewReader(io.LimitReader(x.resp.Body, largestAnswer))
	first, err := firstByte(body)
	if err != nil && err != io.EOF {
		return c.brokenOff(x, q, turn, err)
	}
	switch first {
	case '{', '[', '<': // no event begins so
		x.expect(c.opt.Idle)
		return c.readWhole(x, q, body, turn)
	}

	head, _ := body.Peek(min(body.Buffered(), mostSaid)) // for the case that it is no stream
	head = bytes.Clone(head)
	x.begin(body)
	for err = nil; err == nil; {
		var name string
		var data []byte
		if name, data, err = x.event(q); err == nil {
			err = turn.event(name, data)
		}
		if turn.finished() && x.wait == c.opt.Idle {
			x.wait = min(c.opt.Idle, lateUsage)
		}
	}
	if err == io.EOF {
		err = nil
	}
	if x.marked && !turn.finished() {
		turn.over()
	}
	// Some endpoints break the connection after a complete answer, others end a broken one politely. Only the finish
	// reason distinguishes them.
	switch {
	case turn.finished():
		return nil
	case x.events == 0 && len(head) > 0 && err == nil && !isStream(x.resp.Header):
		return c.noEndpoint(x, head)
	}
	return c.brokenOff(x, q, turn, err)
}

// readWhole reads an answer that is not a stream: an error, a whole turn of an endpoint that does not stream, or
// neither.
func (c *Client) readWhole(x *exchange, q call, body io.Reader, turn turnReader) *failure {
	data, err := io.ReadAll(body)
	if err != nil {
		return c.brokenOff(x, q, turn, err)
	}
	if data[0] != '<' {
		if err = turn.event("", data); err == nil && !turn.finished() {
			turn.over()
		}
	}
	if turn.finished() {
		return nil
	}
	if said, ok := errors.AsType[*apiError](err); ok {
		return c.chooseDialect(x, *said)
	}
	return c.noEndpoint(x, data)
}

// firstByte returns the first byte of r that is not blank, and leaves it in r.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		head, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		switch head[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = r.Discard(1) // it was there a moment ago
		default:
			return head[0], nil
		}
	}
}

func isStream(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "text/event-stream"
}

// failure is an attempt without a turn.
type failure struct {
	reason Reason
	advice Advice
	status int           // of the answer, or what an error inside it names; 0: none came
	said   apiError      // as the endpoint told it; zero if it told nothing
	window int           // of the model in tokens, if it told; else 0
	asked  time.Duration // how long it asks to wait; else 0
	again  string        // whether it asks for another try: true, false, or "" if it does not say
	wasted Usage         // what the attempt has cost
	err    error         // one line, without secrets
}

// form reports whether the endpoint may reject the form of the request, rather than its content. Templates that run at
// the server refuse with 500.
func (f *failure) form() bool {
	return f.status == http.StatusBadRequest || f.status == http.StatusUnprocessableEntity || f.status == http.StatusInternalServerError
}

// stale reports whether a form that the endpoint wanted once, and wants no more, may be the reason.
func (f *failure) stale() bool {
	return f.reason == InvalidRequest || f.reason == UnknownModel || f.reason == NoEndpoint
}

// refused returns the failure of an answer with an error status.
func (c *Client) refused(x *exchange) *failure {
	x.expect(c.opt.Idle)
	body, _ := io.ReadAll(io.LimitReader(x.resp.Body, largestError)) // the status says the most
	e := parseError(body)
	e.status = x.status()
	e.retryAfter = cmp.Or(retryAfter(x.resp.Header, time.Now()), e.retryAfter)
	if to := x.resp.Header.Get("Location"); e.status < 400 && to != "" {
		e.message = "it redirects to " + to
	}
	f := c.chooseDialect(x, e)
	f.again = x.resp.Header.Get("X-Should-Retry") // of OpenAI and Anthropic
	return f
}

// chooseDialect returns the failure for an error that the endpoint reports, by status or in its answer.
func (c *Client) chooseDialect(x *exchange, e apiError) *failure {
	f := &failure{said: e, status: x.status(), window: cmp.Or(e.window, windowIn(e.message)), asked: min(e.retryAfter, longestAsked)}
	f.reason, f.advice = judge(f.status, e)
	if f.status < 300 {
		f.status = cmp.Or(e.status, f.status)
	}
	if f.reason != ContextLength {
		f.window = 0 // it speaks of other numbers
	}
	f.err = errors.New(c.secrets.line(cmp.Or(e.message, e.code, e.kind, http.StatusText(f.status))))
	if f.advice == TryAgain {
		f.err = fmt.Errorf("it answered %d: %w", f.status, f.err)
	}
	return f
}

// brokenOff returns the failure of a stream that ended before the turn did.
func (c *Client) brokenOff(x *exchange, q call, turn turnReader, err error) *failure {
	var f *failure
	if said, ok := errors.AsType[*apiError](err); ok {
		f = c.chooseDialect(x, *said)
		if turn.size() == 0 && turn.used() == (Usage{}) {
			return f // refused before the model had a word: that costs nothing
		}
	} else {
		f = c.unanswered(x, q, err)
	}
	f.wasted = thrownAway(turn.used(), len(q.body), turn.size())
	return f
}

// unanswered returns the failure of an exchange that err ended before or during the answer.
func (c *Client) unanswered(x *exchange, q call, err error) *failure {
	f := &failure{status: x.status(), advice: TryAgain}
	cause, late := x.tooLong()
	switch {
	case late:
		// The endpoint may have read the prompt, and be thinking still.
		f.reason, f.err, f.wasted = Silent, cause, estimate(len(q.body), 0)
	case f.status == 0:
		f.reason, f.err = Connection, errors.New(c.secrets.line(plain(err).Error()))
	case err == nil || errors.Is(err, io.EOF):
		f.reason, f.err = Incomplete, fmt.Errorf("the answer (%s) ended without a finish reason", c.secrets.line(x.resp.Header.Get("Content-Type")))
	default:
		f.reason, f.err = Incomplete, fmt.Errorf("the answer broke off: %s", c.secrets.line(plain(err).Error()))
	}
	return f
}

// noEndpoint returns the failure of an answer with a good status that does not come from a model endpoint.
func (c *Client) noEndpoint(x *exchange, body []byte) *failure {
	return &failure{reason: NoEndpoint, advice: advices[NoEndpoint], status: x.status(),
		err: errors.New(c.secrets.line(whatCame(x.resp.Header, body)))}
}
