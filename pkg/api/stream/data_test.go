package stream

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A client of bare data that takes nothing is cut off, by an event as by a sign of life, and
// the context of its request ends. It is counted once: of an event by Follow, to which its
// error goes.
func TestDataIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write func(*Data) error
		want  error
		count float64
	}{
		"events": {func(d *Data) error { return d.Write(strings.Repeat("x", 200<<10)) }, os.ErrDeadlineExceeded, 0},
		"signs": {func(d *Data) error {
			if d.sign(); d.broken() {
				return errCutOff
			}
			return nil
		}, errCutOff, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, metrics: prometheus.NewRegistry()}
			hub := New(nil, HubOptions{Metrics: r.metrics})
			hub.times.write = 50 * time.Millisecond
			ended := make(chan error, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				d := hub.Data(w)
				var err error
				for err == nil {
					err = tt.write(d)
				}
				<-req.Context().Done()
				if again := d.Write("more"); again != errCutOff {
					t.Errorf("then a write fails by %v", again)
				}
				ended <- err
			}))
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			r.ok(err)
			defer conn.Close()
			_, err = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			r.ok(err)
			if err := <-ended; !errors.Is(err, tt.want) {
				t.Errorf("the write fails by %v", err)
			}
			if n := r.count("agentteam_stream_slow_readers_total"); n != tt.count {
				t.Errorf("%v slow readers are counted", n)
			}
		})
	}
}

// Signs of life stand between events, never in one, and none where there is always an event.
func TestDataAlive(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	d := New(nil, HubOptions{}).Data(w)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(d.Write("a<b"))
	d.sign()
	d.sign() // nothing since the last
	ok(d.Write(2))
	d.sign()
	if got, want := w.Body.String(), "data: \"a<b\"\n\n: keep-alive\n\ndata: 2\n\n"; got != want {
		t.Errorf("it writes %q, want %q", got, want)
	}
}
