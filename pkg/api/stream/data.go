package stream

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Data writes server-sent events that are nothing but JSON, one line of data each, for
// protocols that know no ids and no names of events. It is for one goroutine. How long a
// client may take to take one in is told by package api.
type Data struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
}

// NewData begins the answer; from here on an error can only be an event.
func NewData(w http.ResponseWriter) *Data {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no") // else nginx gathers it
	w.WriteHeader(http.StatusOK)
	d := &Data{w: w, control: http.NewResponseController(w)}
	_ = d.control.Flush() // that a client has left is noticed at the first event
	return d
}

// Write writes v as an event, and sends it. The error is that of a client that has left.
func (d *Data) Write(v any) error {
	d.buffer.Reset()
	d.buffer.WriteString("data: ")
	e := json.NewEncoder(&d.buffer)
	e.SetEscapeHTML(false) // what reads it reads JSON
	if err := e.Encode(v); err != nil {
		return err
	}
	d.buffer.WriteByte('\n')
	if _, err := d.w.Write(d.buffer.Bytes()); err != nil {
		return err
	}
	return d.control.Flush()
}
