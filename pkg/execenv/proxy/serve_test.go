package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/execenv/proxy"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

const public = "93.184.215.14"

// A plain request reaches its host as it was sent, without what is between a client and a proxy.
func TestPlain(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{"a.org", "*.b.org"})
	r.name("a.org", public)
	r.serve(public+":80", page(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s %s %q %v", req.Method, req.Host, req.RequestURI, body, req.Header)
	}))
	body := "5\r\nhello\r\n0\r\n\r\n"
	conn := r.open()
	fmt.Fprintf(conn, "POST http://A.org:80/p?q=a;b&%%zz HTTP/1.1\r\nHost: evil.com\r\nTransfer-Encoding: chunked\r\nConnection: close, X-Secret, Upgrade\r\nX-Secret: 1\r\nX-Kept: 1\r\n"+
		"Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\n\r\n%s", body)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(answer.Body)
	if want := `POST a.org /p?q=a;b&%zz "hello" map[X-Kept:[1]]`; string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What could be read in two ways is refused, and so is what is no request for a proxy.
func TestMalformed(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{team.FullNetwork})
	r.name("a.org", public)
	for _, request := range []string{
		"POST http://a.org/ HTTP/1.1\r\nHost: a.org\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"POST http://a.org/ HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"POST http://a.org/ HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
		"GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nHost: evil.com\r\n\r\n",
		"GET http://a.org/ HTTP/1.1\r\nHost: a.org\x00.evil.com\r\n\r\n",
		"GET http://a.org\x00.evil.com/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
		"GET http://a.org/ HTTP/1.1\r\nHost : a.org\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.org\r\n\r\n", "GET * HTTP/1.1\r\nHost: a.org\r\n\r\n", "GET a.org HTTP/1.1\r\nHost: a.org\r\n\r\n",
		"GET https://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", "GET file:///etc/passwd HTTP/1.1\r\nHost: a.org\r\n\r\n", "GET http:a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
		"CONNECT /x HTTP/1.1\r\nHost: a.org:443\r\n\r\n", "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:443\r\nContent-Length: 5\r\n\r\nhello",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
	} {
		if status, text := r.raw(request); status != 400 && status != 501 {
			t.Errorf("%q: %d %s", request, status, text)
		}
	}
	if looked, dialled := r.seen(); len(looked)+len(dialled) > 0 {
		t.Errorf("looked up %q, dialled %q", looked, dialled)
	}
	// Both lengths are no reason to refuse: the chunks count, and that is what is sent on.
	r.serve(public+":80", page(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%q %d %q", body, req.ContentLength, req.TransferEncoding)
	}))
	conn := r.open()
	io.WriteString(conn, "POST http://a.org/ HTTP/1.1\r\nHost: a.org\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET http://127.0.0.1/ HTTP/1.1\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(answer.Body); string(got) != `"hello" -1 ["chunked"]` {
		t.Errorf("both lengths: %s", got)
	}
}

// A tunnel carries TLS, whose certificate the client checks itself, and a redirect is a new request.
func TestTunnelAndRedirect(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{"example.com", "a.org"})
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, "secure "+req.Host) }))
	t.Cleanup(secure.Close)
	r.name("example.com", public)
	r.name("a.org", public)
	r.serve(public+":443", secure)
	to := ""
	r.serve(public+":80", page(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, to, http.StatusFound) }))
	r.client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	r.client.CheckRedirect = nil

	to = "https://example.com/"
	if status, text := r.get("http://a.org/"); status != 200 || text != "secure example.com" {
		t.Errorf("%d %s", status, text)
	}
	for _, to = range []string{"http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://0xa9fea9fe/", "http://evil.com/", "http://a.org:4222/"} {
		if status, text := r.get("http://a.org/"); status != 403 || !strings.HasPrefix(text, "network: ") || strings.Count(text, "\n") != 1 {
			t.Errorf("to %s: %d %s", to, status, text)
		}
	}
	// The reason of a refused tunnel is in the error of the client.
	if _, text := r.get("https://evil.com/"); !strings.Contains(text, "network: evil.com is refused: allowed are example.com, a.org; a person can add it") {
		t.Errorf("a refused tunnel: %s", text)
	}
	_, dialled := r.seen()
	for _, at := range dialled {
		if at != public+":80" && at != public+":443" {
			t.Errorf("dialled %s", at)
		}
	}
}

// A name is looked up once for a connection, and what was found is what is dialled.
func TestRebinding(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{"a.org"})
	r.name("a.org", public)
	r.serve(public+":80", page(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "public")
	}))
	if status, text := r.get("http://a.org/"); status != 200 || text != "public" {
		t.Errorf("%d %s", status, text)
	}
	r.mu.Lock()
	delete(r.names, "a.org.")
	r.mu.Unlock()
	r.name("a.org", "127.0.0.1")
	if status, text := r.get("http://a.org/"); status != 403 || !strings.Contains(text, "no public address") {
		t.Errorf("%d %s", status, text)
	}
	if looked, dialled := r.seen(); len(looked) != 2 || len(dialled) != 1 {
		t.Errorf("looked up %q, dialled %q", looked, dialled)
	}
}

// Bodies are passed on while they come, in both directions, and a half of a connection ends apart.
func TestStreams(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{team.FullNetwork})
	r.name("a.org", public)
	r.serve(public+":80", page(t, func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		lines := bufio.NewScanner(req.Body)
		for lines.Scan() {
			fmt.Fprintln(w, "got "+lines.Text())
			w.(http.Flusher).Flush()
		}
	}))
	body, send := io.Pipe()
	go io.WriteString(send, "one\n")
	answer, err := r.client.Post("http://a.org/", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answer.Body)
	for _, next := range []string{"two", "three", ""} {
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "got ") {
			t.Fatalf("%q, %v", line, err)
		}
		if next != "" {
			io.WriteString(send, next+"\n")
		}
	}
	send.Close()
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Error(err)
	}

	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() { // answers once it has all
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		conn.Write(all)
	}()
	r.mu.Lock()
	r.hosts[public+":9418"] = echo.Addr().String()
	r.mu.Unlock()
	conn := r.open().(*net.UnixConn)
	io.WriteString(conn, "CONNECT a.org:9418 HTTP/1.1\r\n\r\nearly ")
	in := bufio.NewReader(conn)
	if _, err := http.ReadResponse(in, nil); err != nil {
		t.Fatal(err)
	}
	sent := strings.Repeat("x", 1<<20)
	io.WriteString(conn, sent)
	conn.CloseWrite()
	if got, err := io.ReadAll(in); err != nil || string(got) != "early "+sent {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A connection on which nothing moves is closed, whichever side is silent.
func TestIdle(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{team.FullNetwork}, func(o *proxy.Options) { o.Idle = time.Second })
	r.name("a.org", public)
	gone := make(chan struct{}, 2)
	r.serve(public+":80", page(t, func(w http.ResponseWriter, req *http.Request) {
		w.(http.Flusher).Flush()
		<-req.Context().Done()
		gone <- struct{}{}
	}))
	answer, err := r.client.Get("http://a.org/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("a silent answer looks whole")
	}
	brokertest.Receive(t, "the silent side is left", gone)
	conn := r.open()
	io.WriteString(conn, "CONNECT a.org:80 HTTP/1.1\r\n\r\n")
	in := bufio.NewReader(conn)
	if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != 200 {
		t.Fatal(answer, err)
	}
	if got, err := io.ReadAll(in); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// At its end a proxy closes all connections, and its listener.
func TestEnd(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{"a.org"})
	r.name("a.org", public)
	r.serve(public+":443", page(t, nil))
	tunnel, silent := r.open(), r.open()
	io.WriteString(tunnel, "CONNECT a.org:443 HTTP/1.1\r\n\r\n")
	if answer, err := http.ReadResponse(bufio.NewReader(tunnel), nil); err != nil || answer.StatusCode != 200 {
		t.Fatal(answer, err)
	}
	r.stop()
	for _, conn := range []net.Conn{tunnel, silent} {
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	if conn, err := net.Dial("unix", r.socket); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

// A network that cannot be is refused.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, network := range []team.Network{{"https://a.org"}, {"*"}, {"a.org", team.FullNetwork}} {
		if _, err := proxy.New(proxy.Options{Network: network}); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%v: %v", network, err)
		}
	}
}

// More connections than the bound wait, and are served when others end.
func TestBoundOfConnections(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	var held []net.Conn
	for range 256 {
		held = append(held, r.open())
	}
	waiting := r.open()
	io.WriteString(waiting, "CONNECT a.org:443 HTTP/1.1\r\n\r\n")
	waiting.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := waiting.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	held[0].Close()
	waiting.SetReadDeadline(time.Now().Add(time.Minute))
	if answer, err := http.ReadResponse(bufio.NewReader(waiting), nil); err != nil || answer.StatusCode != 403 {
		t.Error(answer, err)
	}
}

// Each request is counted and logged with its host, and with nothing that may be secret.
func TestLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	r := start(t, team.Network{"a.org"}, func(o *proxy.Options) {
		o.Logger, o.Registry = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), reg
	})
	r.name("a.org", public)
	r.serve(public+":80", page(t, func(http.ResponseWriter, *http.Request) {}))
	for _, address := range []string{"http://u:canary@a.org/canary?canary", "http://u:canary@evil.com/canary?canary", "http://a.org:443/canary"} {
		req, err := http.NewRequest("POST", address, strings.NewReader("canary"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer canary")
		req.Header.Set("Proxy-Authorization", "Bearer canary")
		answer, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if status, _ := r.raw("GET http://canary\x00/ HTTP/1.1\r\n\r\n"); status != 400 {
		t.Error(status)
	}
	r.stop()
	for _, want := range []string{"allowed", "refused", "failed", "evil.com", "nothing at"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, &log)
		}
	}
	if strings.Contains(log.String(), "canary") {
		t.Errorf("logged: %s", &log)
	}
	const want = `# HELP agentteam_network_requests_total Requests of commands to the network: allowed, refused or failed.
# TYPE agentteam_network_requests_total counter
agentteam_network_requests_total{outcome="allowed"} 1
agentteam_network_requests_total{outcome="failed"} 1
agentteam_network_requests_total{outcome="refused"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
