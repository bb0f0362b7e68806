package stream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"
)

// output writes the events of one stream. What is gathered in its buffer, under its lock, is
// sent as a whole. Safe for concurrent use.
type output struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	within  time.Duration // of a write
	fail    func(error)   // called when a write has failed
	stalled func()        // called when the reader does not even take a sign of life

	mu      sync.Mutex
	buffer  bytes.Buffer
	written bool // since the last sign of life
	failed  bool // nothing more can be written
}

// errCutOff is the error of writes after one that has failed.
var errCutOff = errors.New("the reader was cut off")

// full is how much is gathered before it is sent, in bytes.
const full = 16 << 10

// open begins the answer.
func (o *output) open() {
	head := o.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no") // else nginx gathers it
	o.w.WriteHeader(http.StatusOK)
}

// flush sends what was gathered.
func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.send()
}

// send is flush, under the lock.
func (o *output) send() error {
	switch {
	case o.failed:
		return errCutOff
	case o.buffer.Len() == 0:
		return nil
	}
	o.written = true
	err := o.rc.SetWriteDeadline(time.Now().Add(o.within))
	if err == nil || errors.Is(err, http.ErrNotSupported) { // a writer of tests
		_, err = o.w.Write(o.buffer.Bytes())
	}
	if err == nil {
		err = o.rc.Flush()
	}
	if o.buffer.Reset(); o.buffer.Cap() > 4*full { // it was a large one
		o.buffer = bytes.Buffer{}
	}
	if err != nil {
		o.failed = true
		o.fail(err)
	}
	return err
}

// broken reports whether nothing more can be written.
func (o *output) broken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// keepAlive writes a comment whenever nothing else was written for so long, so that nobody
// between takes the connection for dead. It returns when ctx ends.
func (o *output) keepAlive(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.sign()
		}
	}
}

func (o *output) sign() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.written && !o.failed {
		o.buffer.WriteString(": keep-alive\n\n")
		if errors.Is(o.send(), os.ErrDeadlineExceeded) {
			o.stalled() // of an event, whoever writes it sees so
		}
	}
	o.written = false
}
