package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
)

func TestBodies(t *testing.T) {
	l := defaultLimits
	l.body = 100
	s := serve(t, options(t), l, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})
	chunked := func(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) }
	for _, body := range []io.Reader{strings.NewReader(strings.Repeat("a", 100)), chunked(strings.Repeat("a", 100)), nil} {
		res, got := ask(t, http.DefaultClient, "POST", s.URL()+"/echo", body)
		if want := 100; res.StatusCode != 200 || body != nil && len(got) != want {
			t.Errorf("%d, %d bytes", res.StatusCode, len(got))
		}
	}
	for _, body := range []io.Reader{strings.NewReader(strings.Repeat("a", 101)), chunked(strings.Repeat("a", 101)), strings.NewReader(strings.Repeat("a", 10<<20))} {
		res, got := ask(t, http.DefaultClient, "POST", s.URL()+"/echo", body)
		refused(t, res, got, 413, "100 bytes")
	}
}

// A body that never ends holds up nobody: not the handlers, and without a token not even
// the answer.
func TestBodyThatNeverEnds(t *testing.T) {
	l := defaultLimits
	l.bodyWait = 50 * time.Millisecond
	called := false
	s := serve(t, options(t), l, func(http.ResponseWriter, *http.Request) { called = true })
	const head = "POST /echo HTTP/1.1\r\nHost: api.test\r\nContent-Type: application/json\r\n"
	const mine = "Authorization: Bearer " + token + "\r\n"
	for _, body := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
		res, got := raw(t, s, head+mine+body)
		refused(t, res, got, 408, "50ms")
		res, got = raw(t, s, head+body)
		refused(t, res, got, 401, "needs a token")
	}
	res, got := raw(t, s, head+mine+"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n")
	refused(t, res, got, 400, "could not be read")
	if called {
		t.Error("the handler was called")
	}
}

func TestHeaderThatIsTooLarge(t *testing.T) {
	o := options(t)
	s := serve(t, o, defaultLimits, nil)
	var trust *x509.CertPool
	o.Cert, o.Key, trust = certificate(t)
	over := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	defer over.CloseIdleConnections()
	large := strings.Repeat("a", mostHeader)
	for base, c := range map[string]*http.Client{s.URL(): http.DefaultClient, serve(t, o, defaultLimits, nil).URL(): {Transport: over}} {
		for query, header := range map[string]string{"": large, "?after=" + large: ""} {
			req, _ := http.NewRequestWithContext(brokertest.Context(t), "GET", base+"/"+query, nil)
			req.Header.Set("X-Large", header)
			res, err := c.Do(req)
			if err != nil {
				if c == http.DefaultClient {
					t.Error(err)
				}
				continue // HTTP/2 may end the connection instead
			}
			res.Body.Close()
			if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: answered %d", res.Proto, res.StatusCode)
			}
		}
	}
}

// A client that takes nothing is cut off, and the others are not disturbed.
func TestSlowReader(t *testing.T) {
	l := defaultLimits
	l.writeWait = 100 * time.Millisecond
	ended := make(chan error, 1)
	s := serve(t, options(t), l, func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("what") == "quick" {
			return
		}
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				ended <- err
				return
			}
		}
	})
	conn, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /flood HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n\r\n", token)
	if err := brokertest.Receive(t, "the slow reader is cut off", ended); !os.IsTimeout(err) {
		t.Errorf("the handler's write failed by %v", err)
	}
	if res, _ := ask(t, http.DefaultClient, "GET", s.URL()+"/quick", nil); res.StatusCode != 200 {
		t.Errorf("another client: %d", res.StatusCode)
	}
}

// deadlines notes those that are set on it.
type deadlines struct {
	http.ResponseWriter
	last time.Time
	set  int
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.last = t; d.set++; return nil }
func (d *deadlines) WriteHeader(int)                    { d.in() }
func (d *deadlines) Write(p []byte) (int, error)        { d.in(); return len(p), nil }
func (d *deadlines) Flush()                             { d.in() }
func (d *deadlines) in() {
	if d.last.IsZero() {
		panic("a write without deadline")
	}
}

// Each write has a deadline, and none holds between two of them: under HTTP/2 that would
// end a stream that is silent.
func TestDeadlinesOfWrites(t *testing.T) {
	d := &deadlines{}
	w := &writer{ResponseWriter: d, rc: http.NewResponseController(d), within: time.Hour}
	rc := http.NewResponseController(w)
	for _, write := range []func(){func() { w.WriteHeader(200) }, func() { _, _ = w.Write(nil) }, func() { _ = rc.Flush() }} {
		_ = rc.SetWriteDeadline(time.Now()) // as a handler may
		write()
		if !d.last.IsZero() {
			t.Errorf("a deadline of %v is left", d.last)
		}
	}
	if d.set != 9 {
		t.Errorf("%d deadlines were set", d.set)
	}
}

// Streams and connections are counted; too many are told to come again.
func TestTooManyClients(t *testing.T) {
	l := defaultLimits
	l.open = 3
	s := serve(t, options(t), l, events)
	var open []*http.Response
	for range l.open {
		open = append(open, follow(t, s, http.DefaultTransport))
	}
	fresh := &http.Client{Transport: &http.Transport{}}
	res, body := ask(t, fresh, "GET", s.URL()+"/events", nil)
	refused(t, res, body, 503, "as many clients")
	if res.Header.Get("Retry-After") != "5" || !res.Close {
		t.Errorf("Retry-After %q, closes %v", res.Header.Get("Retry-After"), res.Close)
	}
	for range spare + 1 { // of these all but one are over the last limit, or were refused above
		conn, err := net.Dial("tcp", s.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	conn, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection over all limits was answered")
	}
	brokertest.Until(t, "no connection over all limits is open", func() bool { return s.open.Load() <= int64(l.open+spare) })
	for _, res := range open {
		res.Body.Close()
	}
}

// One client that takes all it can leaves room for the others: those with another token.
func TestOneClientTakesNotAll(t *testing.T) {
	l := defaultLimits
	l.open, l.each = 8, 3
	s := serve(t, options(t), l, events)
	as := func(token string) (*http.Response, []byte) {
		t.Helper()
		req, _ := http.NewRequestWithContext(brokertest.Context(t), "GET", s.URL()+"/events", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := (&http.Transport{}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		if res.StatusCode == 200 {
			return res, nil
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, body
	}
	for i := range l.each {
		if res, _ := as(reader); res.StatusCode != 200 {
			t.Fatalf("stream %d: %d", i, res.StatusCode)
		}
	}
	res, body := as(reader)
	refused(t, res, body, 503, "as one may have")
	if res, _ := as(token); res.StatusCode != 200 || !res.Close {
		t.Errorf("another client: %d, and its connection is kept: %v", res.StatusCode, !res.Close)
	}
}

// Whoever has no token, or none of a request to the end, holds no connection for long.
func TestConnectionsEnd(t *testing.T) {
	l := defaultLimits
	l.headerWait, l.bodyWait, l.idleWait = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	o := options(t)
	o.Origins = []string{"https://team.example.org"}
	s := serve(t, o, l, nil)
	o.Cert, o.Key, _ = certificate(t)
	secure := serve(t, o, l, nil)
	const half = "Content-Length: 1000\r\n\r\n{"
	for name, tt := range map[string]struct {
		at   *Server
		text string
		want string // the answer's beginning, "" if there is none
	}{
		"nothing is sent":               {s, "", ""},
		"half a header":                 {s, "GET / HTTP/1.1\r\nHost:", ""},
		"half a header, under TLS":      {secure, "\x16\x03\x01", ""},
		"nothing more is asked":         {s, "GET /health HTTP/1.1\r\n" + here + "\r\n", "HTTP/1.1 200"},
		"half a body":                   {s, "POST /v1/teams HTTP/1.1\r\n" + here + mine + typed + half, "HTTP/1.1 408"},
		"without a token":               {s, "POST /v1/teams HTTP/1.1\r\n" + here + half, "HTTP/1.1 401"},
		"without a token, in chunks":    {s, "POST /v1/teams HTTP/1.1\r\n" + here + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "HTTP/1.1 401"},
		"without a token, before it":    {s, "POST /v1/teams HTTP/1.1\r\n" + here + "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 401"},
		"to another Host":               {s, "POST /v1/teams HTTP/1.1\r\nHost: evil.example.org\r\n" + half, "HTTP/1.1 421"},
		"half a body of health":         {s, "GET /health HTTP/1.1\r\n" + here + half, "HTTP/1.1 401"},
		"half a body of a preflight":    {s, "OPTIONS /v1/teams HTTP/1.1\r\n" + here + "Origin: https://team.example.org\r\nAccess-Control-Request-Method: POST\r\n" + half, "HTTP/1.1 204"},
		"half a body for all options":   {s, "OPTIONS * HTTP/1.1\r\n" + here + half, "HTTP/1.1 401"},
		"half a body, and a path twice": {s, "POST //v1/teams HTTP/1.1\r\n" + here + half, "HTTP/1.1 401"},
		"a connection to elsewhere":     {s, "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", "HTTP/1.1 421"},
		"a connection to here":          {s, "CONNECT 127.0.0.1:443 HTTP/1.1\r\n" + here + "\r\n", "HTTP/1.1 401"},
		"HTTP/1.0 without a Host":       {s, "GET /v1/teams HTTP/1.0\r\n\r\n", "HTTP/1.0 421"},
		"two lengths":                   {s, "POST /v1/teams HTTP/1.1\r\n" + here + mine + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.1 400"},
		"no HTTP":                       {s, "hello\r\n\r\n", "HTTP/1.1 400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", tt.at.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, tt.text); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			if os.IsTimeout(err) {
				t.Error("the connection is still open")
			}
			if !strings.HasPrefix(string(got), tt.want) || tt.want == "" && len(got) > 0 {
				t.Errorf("answered %q, want %s", got, tt.want)
			}
		})
	}
}

// Under HTTP/2 too a client that takes nothing is cut off, and this is told from one that has
// left.
func TestSlowReaderUnderHTTP2(t *testing.T) {
	l := defaultLimits
	l.writeWait = 100 * time.Millisecond
	o := options(t)
	cert, key, trust := certificate(t)
	o.Cert, o.Key = cert, key
	ended := make(chan error, 1)
	s := serve(t, o, l, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				ended <- err
				return
			}
		}
	})
	over := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	defer over.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(brokertest.Context(t), "GET", s.URL()+"/flood", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := over.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := brokertest.Receive(t, "the slow reader is cut off", ended); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the handler's write failed by %v", err)
	}
	if res.ProtoMajor != 2 {
		t.Errorf("it is %s", res.Proto)
	}
}
