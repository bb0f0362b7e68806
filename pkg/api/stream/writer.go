package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"agentteam/pkg/client"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Stream answers r with a stream of server-sent events, which read writes. The stream ends when read returns, when its
// reader leaves or takes nothing for too long, or when the process stops; ctx ends with the last three. Then end writes
// the reason, in the form of its protocol: err is nil if read returned nil, and [ErrClosed] if the process stops. A
// reader that has left, was cut off or asked for the head only gets no end.
//
// Each write to w has a deadline, which the server sets (package api). The answer begins with the first send. If there
// was none, Stream returns the error of read, and the caller answers with it; else it returns nil.
func (h *Hub) Stream(w http.ResponseWriter, r *http.Request, read func(ctx context.Context, out *Writer) error, end func(out *Writer, err error)) error {
	if !h.enter() {
		return ErrClosed
	}
	defer h.busy.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer context.AfterFunc(h.ctx, cancel)()
	out := &Writer{hub: h, w: w, body: w, r: r, rc: http.NewResponseController(w), cut: cancel}
	var signs sync.WaitGroup
	defer signs.Wait()
	defer cancel()
	signs.Go(func() { out.keepAlive(ctx) })
	err := read(ctx, out)
	if ctx.Err() != nil {
		err = ErrClosed
	}
	begun, broken := out.state()
	if !begun {
		return err
	}
	defer h.metrics.open.Dec()
	if broken {
		return nil
	}
	if err != nil && team.CodeOf(err) == "" {
		h.log.ErrorContext(ctx, "a stream has failed", "path", r.URL.Path, "err", err)
	}
	end(out, err)
	_ = out.Flush() // a reader that has left needs none
	out.close()
	return nil
}

// Writer writes one stream of server-sent events, for [Hub.Stream]. It buffers events, and sends them at 16 KiB or at a
// flush, which follows when there is nothing more at the moment. After a failed send nothing can be written. Safe for
// concurrent use.
type Writer struct {
	hub *Hub
	w   http.ResponseWriter
	r   *http.Request
	rc  *http.ResponseController
	cut func() // called when a send has failed

	mu      sync.Mutex
	buffer  bytes.Buffer
	body    io.Writer // w, or what compresses into it
	begun   bool
	written bool // since the last sign of life
	broken  bool // nothing more can be written
}

// errCutOff is the error of writes after the stream has broken.
var errCutOff = errors.New("the reader was cut off")

// full is the size of the buffer at which it is sent, in bytes.
const full = 16 << 10

// Event writes an event. Its id and its name may be empty; data has no line breaks. It returns an error if the reader
// has left, or was cut off.
func (o *Writer) Event(id, name string, data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id != "" {
		o.buffer.WriteString("id: " + id + "\n")
	}
	if name != "" {
		o.buffer.WriteString("event: " + name + "\n")
	}
	o.buffer.WriteString("data: ")
	o.buffer.Write(data)
	o.buffer.WriteString("\n\n")
	if o.buffer.Len() < full {
		return nil
	}
	return o.send()
}

// JSON writes an event that consists of v as JSON, with <, > and & unescaped. Errors: those of Event, and of a value
// that cannot be encoded.
func (o *Writer) JSON(v any) error {
	data, err := codec.Plain(v)
	if err != nil {
		return err
	}
	return o.Event("", "", data)
}

// Flush sends the buffer. The first flush begins the answer. The error is that of Event.
func (o *Writer) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.send()
}

// Follow is [Hub.Follow]; f writes the items.
func (o *Writer) Follow(ctx context.Context, id team.TeamID, opt Options, f func(Item) error) error {
	if err := o.Flush(); err != nil {
		return err
	}
	return o.hub.read(ctx, id, opt, reader{item: f, pause: o.Flush})
}

// Goal is Follow until the goal has ended, and returns the team's record at that time. See [client.Goal.FollowToEnd].
func (o *Writer) Goal(ctx context.Context, id team.TeamID, g *client.Goal, opt Options, f func(Item) error) (team.Team, error) {
	record, err := g.FollowToEnd(ctx, func(ctx context.Context, on bool, belongs func(time.Time) bool) error {
		opt.Follow = on
		return o.Follow(ctx, id, opt, func(i Item) error {
			var at time.Time // of a delta
			if i.Entry != nil {
				at, opt.After = i.Entry.Time, i.Entry.Cursor
			}
			if !belongs(at) {
				return nil
			}
			return f(i)
		})
	})
	if err == nil {
		err = ctx.Err()
	}
	return record, err
}

// send is Flush, under the lock.
func (o *Writer) send() error {
	switch {
	case o.broken:
		return errCutOff
	case o.begun && o.buffer.Len() == 0:
		return nil
	}
	o.written = true
	if !o.begun {
		o.begin()
	}
	var err error
	if o.buffer.Len() > 0 {
		_, err = o.body.Write(o.buffer.Bytes())
	}
	if err == nil {
		err = o.rc.Flush()
	}
	if o.buffer.Reset(); o.buffer.Cap() > 4*full { // it was a large one
		o.buffer = bytes.Buffer{}
	}
	if err == nil && o.r.Method == http.MethodHead {
		err = errCutOff
	}
	if err == nil {
		return nil
	}
	o.broken = true
	o.cut()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.hub.metrics.slow.Inc()
		o.hub.log.InfoContext(o.r.Context(), "a reader of a stream takes nothing", "path", o.r.URL.Path)
	}
	return err
}

// begin starts the answer.
func (o *Writer) begin() {
	o.begun = true
	o.hub.metrics.open.Inc()
	head := o.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	head.Set("Connection", "keep-alive") // some clients look for it
	head.Set("X-Accel-Buffering", "no")  // else nginx gathers it
	head.Add("Vary", "Accept-Encoding")
	if takesGzip(o.r.Header) {
		head.Set("Content-Encoding", "gzip")
		// Each write is compressed whole and separately: nothing is held back, and a silent stream takes no memory for
		// it.
		o.body, _ = gzip.NewWriterLevel(o.w, gzip.StatelessCompression) // there is that level
	}
	o.w.WriteHeader(http.StatusOK)
}

// takesGzip reports whether a request accepts gzip, with a weight above 0.
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, q, weighted := strings.Cut(weight, "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return !weighted || err == nil && n > 0
		}
	}
	return false
}

// close writes the end of the compressed data.
func (o *Writer) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if z, ok := o.body.(*gzip.Writer); ok && !o.broken {
		_ = z.Close() // a reader that has left needs none
	}
}

// state reports whether the answer has begun, and whether nothing more can be written.
func (o *Writer) state() (begun, broken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun, o.broken
}

// keepAlive writes a comment after each interval without other writes, so that no proxy takes the connection for dead.
// It returns when ctx ends.
func (o *Writer) keepAlive(ctx context.Context) {
	shutdown.Every(ctx, o.hub.times.keepAlive, func(context.Context) { o.sign() })
}

func (o *Writer) sign() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun && !o.written && !o.broken {
		o.buffer.WriteString(": keep-alive\n\n")
		_ = o.send() // a send that fails ends the stream
	}
	o.written = false
}
