package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/telemetry"
)

// start runs a server on a free loopback port until the test, or stop, ends it.
// stop returns what Run returned.
func start(t *testing.T, ready func(context.Context) error) (srv *telemetry.Server, stop func() error) {
	t.Helper()
	srv, err := telemetry.Listen(telemetry.Options{Addr: "127.0.0.1:0", Metrics: telemetry.NewRegistry(), Ready: ready})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx); close(done) }()
	stop = func() error { cancel(); return brokertest.Receive(t, "the server ends", done) }
	t.Cleanup(func() { stop() })
	return srv, stop
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestServerRoutes(t *testing.T) {
	srv, _ := start(t, nil)
	srv.Handle("GET /later", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "later") }))
	for path, want := range map[string]string{
		"/livez":   "ok\n",
		"/readyz":  "ready\n",
		"/metrics": "agentteam_build_info",
		"/later":   "later",
	} {
		if status, body := get(t, srv.URL()+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s = %d %.200q, want 200 and %q", path, status, body, want)
		}
	}
	if status, _ := get(t, srv.URL()+"/nothing"); status != http.StatusNotFound {
		t.Errorf("GET /nothing = %d, want 404", status)
	}
}

// A page elsewhere whose name leads here is told nothing.
func TestOtherHosts(t *testing.T) {
	srv, _ := start(t, nil)
	for host, want := range map[string]int{"": 200, "localhost:1": 200, "LOCALHOST.": 200, "[::1]:9": 200, "127.9.9.9": 200, "evil.example.org": 421, "127.0.0.1.nip.io": 421} {
		req, err := http.NewRequest("GET", srv.URL()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != want {
			t.Errorf("Host %q: %d, want %d", host, res.StatusCode, want)
		}
	}
}

func TestReadyzTellsWhyNot(t *testing.T) {
	srv, _ := start(t, func(context.Context) error { return errors.New("nats: no servers\navailable 连接") })
	if status, body := get(t, srv.URL()+"/readyz"); status != http.StatusServiceUnavailable || body != "nats: no servers available 连接\n" {
		t.Errorf("GET /readyz = %d %q, want 503 and the reason in one line", status, body)
	}
	if status, _ := get(t, srv.URL()+"/livez"); status != http.StatusOK {
		t.Errorf("GET /livez = %d, want 200: a process that is not ready is alive", status)
	}
}

func TestReadyHasDeadline(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if status, body := get(t, srv.URL()+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("GET /readyz = %d %q, want 503 when nothing answers", status, body)
	}
}

func TestListenOnPortInUse(t *testing.T) {
	srv, _ := start(t, nil)
	addr := strings.TrimPrefix(srv.URL(), "http://")
	_, err := telemetry.Listen(telemetry.Options{Addr: addr, Metrics: telemetry.NewRegistry()})
	var op *net.OpError
	if !errors.As(err, &op) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("Listen on a taken port = %v, want a *net.OpError for EADDRINUSE", err)
	}
	if msg := err.Error(); !strings.Contains(msg, addr) || !strings.Contains(msg, "choose another address") || strings.Contains(msg, "\n") {
		t.Errorf("error %q does not say in one line which address and what to do", msg)
	}
}

// Streams end only when their reader goes; a stopping process must not wait for it.
func TestRunEndsOpenStreams(t *testing.T) {
	srv, stop := start(t, nil)
	srv.Handle("GET /stream", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	res, err := http.Get(srv.URL() + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := stop(); err != nil {
		t.Errorf("Run = %v, want nil after an orderly stop", err)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream was cut off, not ended: %v", err)
	}
}

func TestRunCutsOffStuckHandlers(t *testing.T) {
	t.Parallel()
	srv, stop := start(t, nil)
	release := make(chan struct{})
	srv.Handle("GET /stuck", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	}))
	t.Cleanup(func() { close(release) })
	res, err := http.Get(srv.URL() + "/stuck")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := stop(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if _, err := io.ReadAll(res.Body); err == nil { // hangs as long as the connection is open
		t.Error("the answer of a handler that never returned has an orderly end")
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "http://")); err == nil {
		t.Error("the address is still served after Run returned")
	}
}

func TestURLOfAllInterfacesNamesAHost(t *testing.T) {
	srv, err := telemetry.Listen(telemetry.Options{Addr: ":0", Metrics: telemetry.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if u := srv.URL(); strings.Contains(u, "[::]") || strings.Contains(u, "0.0.0.0") {
		t.Errorf("URL = %s, which nobody can connect to", u)
	}
}

// Whoever asks the wrong process, at an address that was another's, is to look for
// the right one anew.
func TestNotFoundCloses(t *testing.T) {
	srv, err := telemetry.Listen(telemetry.Options{Addr: "127.0.0.1:0", Metrics: telemetry.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	defer func() {
		cancel()
		if err := brokertest.Receive(t, "the server ends", ended); err != nil {
			t.Error(err)
		}
	}()
	for path, want := range map[string]struct {
		status int
		closes bool
	}{"/http_sd": {404, true}, "/livez": {200, false}} {
		resp, err := http.Get(srv.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want.status || resp.Close != want.closes {
			t.Errorf("%s: %d, closes %v; want %+v", path, resp.StatusCode, resp.Close, want)
		}
	}
}

// Who sends half a body is not waited for, so that nobody can use up the descriptors.
func TestHalfABodyEnds(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nhalf")
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK") {
		t.Errorf("%q, %v", answer, err)
	}
}
