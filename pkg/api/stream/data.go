package stream

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Data writes server-sent events that are nothing but JSON, one line of data each, for
// protocols that know no ids and no names of events. Safe for concurrent use.
type Data struct{ output }

// Data begins the answer; from here on an error can only be an event. A reader that takes
// nothing for 10 s is cut off.
func (h *Hub) Data(w http.ResponseWriter) *Data {
	d := &Data{output{
		w: w, rc: http.NewResponseController(w), within: h.times.write,
		fail: func(error) {}, stalled: h.metrics.slow.Inc,
	}}
	d.open()
	_ = d.rc.Flush() // that a client has left is noticed at the first event
	return d
}

// Write writes v as an event, and sends it. The error is that of a client that has left, or
// was cut off; nothing can be written after one.
func (d *Data) Write(v any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buffer.WriteString("data: ")
	e := json.NewEncoder(&d.buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // which ends the line
		d.buffer.Reset()
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
	signs.Go(func() { d.keepAlive(ctx, every) })
	return func() { cancel(); signs.Wait() }
}
