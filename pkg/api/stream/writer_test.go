package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// stuck is what a client that takes nothing is written to.
type stuck struct{ *httptest.ResponseRecorder }

func (stuck) FlushError() error { return fmt.Errorf("flush: %w", os.ErrDeadlineExceeded) }

// A client that takes nothing is cut off, by an event as by a sign of life: the context of its
// stream ends, nothing more can be written, and it is counted once.
func TestStalledReaderIsCounted(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*Writer){
		"an event":       func(o *Writer) { _ = o.JSON(strings.Repeat("x", 2*full)) },
		"a sign of life": func(o *Writer) { o.begun = true; o.sign() },
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, metrics: prometheus.NewRegistry()}
			hub := New(nil, HubOptions{Metrics: r.metrics})
			defer hub.Close()
			err := hub.Stream(stuck{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil), func(ctx context.Context, out *Writer) error {
				write(out)
				<-ctx.Done()
				return out.Flush()
			}, func(_ *Writer, err error) { t.Errorf("a reader that was cut off gets an end: %v", err) })
			if err != nil {
				t.Errorf("a stream that has begun fails by %v", err)
			}
			if n := r.count("agentteam_stream_slow_readers_total"); n != 1 {
				t.Errorf("%v slow readers are counted", n)
			}
		})
	}
}

// Signs of life are between events, never in one, and none comes where there is always an
// event. What is written is sent together.
func TestStreamIsWritten(t *testing.T) {
	t.Parallel()
	hub := New(nil, HubOptions{})
	defer hub.Close()
	w := httptest.NewRecorder()
	err := hub.Stream(w, httptest.NewRequest(http.MethodGet, "/", nil), func(_ context.Context, out *Writer) error {
		out.sign() // the answer has not begun
		err := errors.Join(out.JSON("a<b"), out.Flush())
		out.sign()
		out.sign() // nothing since the last
		err = errors.Join(err, out.Event("7", "name", []byte("{}")), out.JSON(2))
		if strings.Contains(w.Body.String(), "name") {
			t.Error("what is gathered was sent before")
		}
		err = errors.Join(err, out.Flush())
		out.sign()
		if out.JSON(func() {}) == nil {
			t.Error("a function is written as JSON")
		}
		return err
	}, func(out *Writer, err error) {
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
		_ = out.JSON("end")
	})
	want := "data: \"a<b\"\n\n: keep-alive\n\nid: 7\nevent: name\ndata: {}\n\ndata: 2\n\ndata: \"end\"\n\n"
	if got := w.Body.String(); got != want || err != nil {
		t.Errorf("it writes %q, %v; want %q", got, err, want)
	}
}

// A stream that ends before it has begun is for the caller to answer, as is one of a closed
// hub; one that has begun gets its end.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	other := errors.New("another")
	for name, tt := range map[string]struct {
		begin, closed bool
		read          error
		want, end     error
	}{
		"before it began":      {read: other, want: other},
		"with an error":        {begin: true, read: other, end: other},
		"of a closed hub":      {closed: true, want: ErrClosed},
		"as the process stops": {begin: true, read: nil, end: ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			hub := New(nil, HubOptions{})
			if tt.closed {
				hub.Close()
			}
			var end error
			err := hub.Stream(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), func(ctx context.Context, out *Writer) error {
				if tt.begin {
					_ = out.Flush()
				}
				if tt.read == nil {
					go hub.Close()
					<-ctx.Done()
				}
				return tt.read
			}, func(_ *Writer, err error) { end = err })
			if err != tt.want || end != tt.end {
				t.Errorf("Stream returns %v and ends with %v, want %v and %v", err, end, tt.want, tt.end)
			}
			hub.Close()
		})
	}
}
