package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"
)

// Data writes server-sent events that are nothing but JSON, one line of data each, for
// protocols that know no ids and no names of events. Safe for concurrent use.
type Data struct {
	hub     *Hub
	w       http.ResponseWriter
	control *http.ResponseController

	mu      sync.Mutex
	buffer  bytes.Buffer
	written bool // since the last sign of life
	broken  bool // nothing more can be written
}

// errCutOff is the error of writes after one that has failed.
var errCutOff = errors.New("the client was cut off")

// Data begins the answer; from here on an error can only be an event. A reader that takes
// nothing for 10 s is cut off.
func (h *Hub) Data(w http.ResponseWriter) *Data {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no") // else nginx gathers it
	w.WriteHeader(http.StatusOK)
	d := &Data{hub: h, w: w, control: http.NewResponseController(w)}
	_ = d.control.Flush() // that a client has left is noticed at the first event
	return d
}

// Write writes v as an event, and sends it. The error is that of a client that has left, or
// was cut off; nothing can be written after one.
func (d *Data) Write(v any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buffer.Reset()
	d.buffer.WriteString("data: ")
	e := json.NewEncoder(&d.buffer)
	e.SetEscapeHTML(false) // what reads it reads JSON
	if err := e.Encode(v); err != nil {
		return err
	}
	d.buffer.WriteByte('\n')
	return d.send()
}

// KeepAlive writes a comment every so often, if nothing else was written, until stop is
// called. That is before the handler returns. A comment that cannot be written ends the
// context of the request, as any write does.
func (d *Data) KeepAlive(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var signs sync.WaitGroup
	signs.Go(func() { keepAlive(ctx, every, d.sign) })
	return func() { cancel(); signs.Wait() }
}

func (d *Data) sign() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.written {
		d.buffer.Reset()
		d.buffer.WriteString(aliveComment)
		if errors.Is(d.send(), os.ErrDeadlineExceeded) {
			d.hub.metrics.slow.Inc() // of an event Hub.Follow counts it
		}
	}
	d.written = false
}

func (d *Data) send() error {
	if d.broken {
		return errCutOff
	}
	d.written = true
	err := d.control.SetWriteDeadline(time.Now().Add(d.hub.times.write))
	if err == nil || errors.Is(err, http.ErrNotSupported) { // a writer of tests
		_, err = d.w.Write(d.buffer.Bytes())
	}
	if err == nil {
		err = d.control.Flush()
	}
	d.broken = err != nil
	return err
}
