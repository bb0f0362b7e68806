package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/api/access"
	"agentteam/pkg/api/problem"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

const token = "0123456789abcdef0123456789abcdef"

// options are those of a server on a free port of loopback.
func options(t *testing.T) Options {
	t.Helper()
	o := Options{API: config.API{Addr: "127.0.0.1:0", TokenFile: filepath.Join(t.TempDir(), "token")}, Workspace: t.TempDir()}
	put(t, o.TokenFile, []byte(token+"\n"))
	c, err := client.Connect(t.Context(), client.Options{URL: brokertest.Server(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o.Client = c
	o.NewTeam = func() (client.NewTeam, error) { return client.NewTeam{}, nil }
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	return o
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve runs a server with these limits until the test ends. If h is not nil it stands in
// place of all handlers, at the path /{what}.
func serve(t *testing.T, o Options, l limits, h http.HandlerFunc) *Server {
	t.Helper()
	s, err := listen(o, l)
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		mux := http.NewServeMux()
		mux.Handle("/{what}", named(h))
		if s.http.Handler, err = s.handler(access.Options{Token: token}, mux); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request with the token, and returns the answer with its body.
func ask(t *testing.T, c *http.Client, method, url string, body io.Reader) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, data
}

// refused checks a problem document.
func refused(t *testing.T, res *http.Response, body []byte, status int, words string) {
	t.Helper()
	var d problem.Document
	err := json.Unmarshal(body, &d)
	if err != nil || res.StatusCode != status || d.Status != status || !strings.Contains(d.Detail, words) || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("answered %d, %s (%v); want %d about %q", res.StatusCode, body, err, status, words)
	}
}

func TestPage(t *testing.T) {
	s := serve(t, options(t), defaultLimits, nil)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%d, %s", res.StatusCode, res.Header)
	}
	for _, active := range []string{"<script", "<style", "style=", "onload"} {
		if bytes.Contains(body, []byte(active)) {
			t.Errorf("the page has %s, which its policy forbids", active)
		}
	}
	if _, body = ask(t, http.DefaultClient, "GET", s.URL()+"/", nil); !json.Valid(body) {
		t.Errorf("a program is answered %s", body)
	}
	res, body = ask(t, http.DefaultClient, "GET", s.URL()+"/nothing/here", nil)
	refused(t, res, body, 404, "nothing at this path")
}

// Every mounted handler answers, /health without a token.
func TestMounts(t *testing.T) {
	o := options(t)
	o.Workspace = filepath.Dir(o.TokenFile)
	s := serve(t, o, defaultLimits, nil)
	if res, body := ask(t, http.DefaultClient, "GET", s.URL()+"/files/content?path=token", nil); res.StatusCode != 403 {
		t.Errorf("the file of the token: %d, %s", res.StatusCode, body)
	}
	for _, path := range []string{"/", "/team/sessions?user_id=ann", "/files/tree", "/v1/teams", "/v1/openapi.json"} {
		if res, body := ask(t, http.DefaultClient, "GET", s.URL()+path, nil); res.StatusCode != 200 {
			t.Errorf("%s: %d, %s", path, res.StatusCode, body)
		}
		if res, _ := raw(t, s, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"); res.StatusCode != 401 {
			t.Errorf("%s without a token: %d", path, res.StatusCode)
		}
	}
	if res, _ := raw(t, s, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"); res.StatusCode != 200 {
		t.Errorf("/health: %d", res.StatusCode)
	}
	res, body := ask(t, http.DefaultClient, "POST", s.URL()+"/v1/teams/red/agui", strings.NewReader(`{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}`))
	refused(t, res, body, http.StatusNotFound, `there is no team "red"`)
}

// No operation of /v1 is done without a token, at another Host, or, if it changes anything, with
// the token for reading.
func TestRights(t *testing.T) {
	o := options(t)
	o.ReadTokenFile = filepath.Join(t.TempDir(), "read")
	const readToken = "abcdef0123456789abcdef0123456789"
	put(t, o.ReadTokenFile, []byte(readToken+"\n"))
	s := serve(t, o, defaultLimits, nil)
	_, body := ask(t, http.DefaultClient, "GET", s.URL()+"/v1/openapi.json", nil)
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(body, &doc); err != nil || len(doc.Paths) < 20 {
		t.Fatalf("%d paths, %v", len(doc.Paths), err)
	}
	for path, operations := range doc.Paths {
		path = strings.NewReplacer("{", "", "}", "").Replace(path)
		for method := range operations {
			method = strings.ToUpper(method)
			status := func(host, token string) int {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				if req.Header.Set("Content-Type", "application/json"); token != "" {
					req.Header.Set("Authorization", "Bearer "+token)
				}
				req.Host = host
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				return res.StatusCode
			}
			if got := status("127.0.0.1", ""); got != http.StatusUnauthorized {
				t.Errorf("%s %s without a token: %d", method, path, got)
			}
			if got := status("evil.example.org", token); got != http.StatusMisdirectedRequest {
				t.Errorf("%s %s at another Host: %d", method, path, got)
			}
			if got := status("127.0.0.1", readToken); (got == http.StatusForbidden) != (method != http.MethodGet) || got == http.StatusUnauthorized {
				t.Errorf("%s %s with the token for reading: %d", method, path, got)
			}
		}
	}
}

// No address beyond loopback without TLS, unless that is wanted.
func TestReach(t *testing.T) {
	for addr, reaches := range map[string]bool{
		"127.0.0.1:0": false, "localhost:0": false, "[::1]:0": false, "127.9.9.9:0": false,
		":0": true, "0.0.0.0:0": true, "[::]:0": true, "192.0.2.1:0": true,
	} {
		o := options(t)
		o.Addr = addr
		err := Check(o.API)
		if !reaches {
			if err != nil {
				t.Errorf("%s: %v", addr, err)
			}
			continue
		}
		if hint := team.HintOf(err); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(hint, "--insecure") || !strings.Contains(hint, "AGENTTEAM_API_TLS_CERT") || !strings.Contains(hint, "AGENTTEAM_API_TLS_KEY") {
			t.Errorf("%s: %v (%s)", addr, err, hint)
		}
		o.Insecure = true
		if err := Check(o.API); err != nil {
			t.Errorf("%s, insecure: %v", addr, err)
		}
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Options)
		code   team.Code
		words  string
	}{
		"no token file":         {func(o *Options) { o.TokenFile = "" }, team.InvalidArgument, "AGENTTEAM_API_TOKEN_FILE"},
		"a token for all":       {func(o *Options) { _ = os.Chmod(o.TokenFile, 0o644) }, team.InvalidArgument, "chmod 600"},
		"no folder for a token": {func(o *Options) { o.ReadTokenFile = o.TokenFile + "/none" }, team.InvalidState, "may write"},
		"the same token twice":  {func(o *Options) { o.ReadTokenFile = o.TokenFile }, team.InvalidArgument, "the same"},
		"a certificate alone":   {func(o *Options) { o.Cert = "x" }, team.InvalidArgument, "AGENTTEAM_API_TLS_KEY"},
		"no certificate":        {func(o *Options) { o.Cert, o.Key = o.TokenFile, o.TokenFile }, team.InvalidArgument, "PEM"},
		"no address":            {func(o *Options) { o.Addr = "127.0.0.1:70000" }, team.InvalidArgument, "127.0.0.1:8090"},
		"an address elsewhere":  {func(o *Options) { o.Addr, o.Insecure = "192.0.2.1:0", true }, team.InvalidState, "--api"},
	} {
		o := options(t)
		tt.change(&o)
		s, err := Listen(o)
		if err == nil {
			s.Close()
		}
		if team.CodeOf(err) != tt.code || !strings.Contains(err.Error()+team.HintOf(err), tt.words) {
			t.Errorf("%s: %v (%s), want %s about %s", name, err, team.HintOf(err), tt.code, tt.words)
		}
	}
}

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

// raw sends text as it is, and returns the answer that is read from the connection.
func raw(t *testing.T, s *Server, text string) (*http.Response, []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// A body that never ends holds up nobody: not the handlers, and without a token not even
// the answer.
func TestBodyThatNeverEnds(t *testing.T) {
	l := defaultLimits
	l.bodyWait = 50 * time.Millisecond
	called := false
	s := serve(t, options(t), l, func(http.ResponseWriter, *http.Request) { called = true })
	const head = "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
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
	large := strings.Repeat("a", 2*mostHeader)
	for base, c := range map[string]*http.Client{s.URL(): http.DefaultClient, serve(t, o, defaultLimits, nil).URL(): {Transport: over}} {
		for query, header := range map[string]string{"": large, "?after=" + large: ""} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/"+query, nil)
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
	fmt.Fprintf(conn, "GET /flood HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", token)
	if err := <-ended; !os.IsTimeout(err) {
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
	if n := s.ln.open.Load(); n > int64(l.open+spare) {
		t.Errorf("%d connections are open", n)
	}
	for _, res := range open {
		res.Body.Close()
	}
}

// events is a handler that sends one event and then nothing until its client leaves.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: 1\n\n")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// follow opens a stream and reads its first line.
func follow(t *testing.T, s *Server, over http.RoundTripper) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := over.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: 1\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	return res
}

// A thousand readers of one team are each told everything, beside them others are answered, and
// when they have left nothing of them remains.
func TestAThousandStreams(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := options(t)
	o.Metrics = reg
	red, err := o.Client.Make(t.Context(), client.NewTeam{ID: "red"})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, o, defaultLimits, nil)
	const many = 1000
	readers := make([]*bufio.Reader, many)
	bodies := make([]io.Closer, many)
	// next returns the next event's cursor, or "" if the stream ends.
	next := func(i int) string {
		for {
			line, err := readers[i].ReadString('\n')
			if id, ok := strings.CutPrefix(line, "id: "); ok || err != nil {
				return id
			}
		}
	}
	all := func(f func(i int)) {
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
	}
	all(func(i int) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/v1/teams/red/events?follow=true", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		readers[i], bodies[i] = bufio.NewReader(res.Body), res.Body
	})
	if t.Failed() {
		return
	}
	if n := s.ln.open.Load(); n < many {
		t.Errorf("%d connections are open", n)
	}
	const events = 20
	for n := range events {
		if _, _, err := red.AddTasks(t.Context(), "", team.NewTask{Title: fmt.Sprint("task ", n)}); err != nil {
			t.Fatal(err)
		}
	}
	told := make([][events]string, many)
	all(func(i int) {
		for n := range events {
			told[i][n] = next(i)
		}
	})
	for i := range told {
		if told[i] != told[0] || told[i][events-1] == "" {
			t.Fatalf("reader %d is told %q, the first one %q", i, told[i], told[0])
		}
	}
	if res, _ := ask(t, http.DefaultClient, "GET", s.URL()+"/v1/teams", nil); res.StatusCode != 200 {
		t.Errorf("a request beside them: %d", res.StatusCode)
	}
	for _, body := range bodies {
		body.Close()
	}
	open := func() float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "agentteam_streams_open" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	for open() != 0 { // until each handler has noticed
		if t.Context().Err() != nil {
			t.Fatalf("%v streams are open still", open())
		}
		runtime.Gosched()
	}
}

func TestPanics(t *testing.T) {
	var log bytes.Buffer
	o := options(t)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, o, defaultLimits, func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("what") == "half" {
			_, _ = io.WriteString(w, "half an answer")
			_ = http.NewResponseController(w).Flush()
		}
		panic("the secret is 42")
	})
	res, body := ask(t, http.DefaultClient, "GET", s.URL()+"/whole", nil)
	refused(t, res, body, 500, "has failed")
	if strings.Contains(string(body), "42") || !strings.Contains(log.String(), "42") || !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("the client is told %s, the log %s", body, &log)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/half", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("half an answer ends like a whole one")
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	o := options(t)
	o.Metrics = reg
	s := serve(t, o, defaultLimits, func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("what") == "events" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
	})
	ask(t, http.DefaultClient, "GET", s.URL()+"/list", nil)
	ask(t, http.DefaultClient, "GET", s.URL()+"/events", nil)
	ask(t, http.DefaultClient, "PURGE", s.URL()+"/list", nil)
	ask(t, http.DefaultClient, "GET", s.URL()+"/not/here", nil)
	raw(t, s, "GET /list HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP agentteam_api_requests_total Requests to the HTTP API that have been answered, streams when they ended.
# TYPE agentteam_api_requests_total counter
agentteam_api_requests_total{code="200",method="GET",route="/{what}"} 2
agentteam_api_requests_total{code="200",method="other",route="/{what}"} 1
agentteam_api_requests_total{code="401",method="GET",route="none"} 1
agentteam_api_requests_total{code="404",method="GET",route="none"} 1
`), "agentteam_api_requests_total")
	if err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(s.metrics.seconds); n != 2 {
		t.Errorf("%d routes are timed", n)
	}
	if p, err := testutil.GatherAndLint(reg); err != nil || len(p) > 0 {
		t.Errorf("%v, %v", p, err)
	}
}

// certificate makes one for 127.0.0.1, and returns its files and who trusts it.
func certificate(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	put(t, cert, data)
	put(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM(data)
	return cert, key, trust
}

func TestTLS(t *testing.T) {
	o := options(t)
	var trust *x509.CertPool
	o.Cert, o.Key, trust = certificate(t)
	s := serve(t, o, defaultLimits, nil)
	over := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	defer over.CloseIdleConnections()
	c := &http.Client{Transport: over, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if res, _ := ask(t, c, "GET", s.URL()+"/", nil); res.StatusCode != 200 || res.ProtoMajor != 2 || !strings.HasPrefix(s.URL(), "https://") {
		t.Errorf("%s: %d, %s", s.URL(), res.StatusCode, res.Proto)
	}
	res, _ := ask(t, c, "GET", s.URL()+"/login?code="+access.NewCode(token, time.Now()), nil)
	if cookies := res.Cookies(); len(cookies) != 1 || !cookies[0].Secure {
		t.Errorf("%d: %v", res.StatusCode, cookies)
	}
	res, body := ask(t, c, "POST", s.URL()+"/", strings.NewReader(strings.Repeat("a", 1<<20+1)))
	refused(t, res, body, 413, "1048576 bytes")
	if _, err := (&http.Client{}).Get(s.URL()); err == nil {
		t.Error("the certificate is trusted by all")
	}
	old := &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if conn, err := tls.Dial("tcp", s.ln.Addr().String(), old); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// A server that ends ends its streams, and gives the address back.
func TestRunEnds(t *testing.T) {
	s, err := Listen(options(t))
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})
	if s.http.Handler, err = s.handler(access.Options{Token: token}, named(h)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	go func() {
		<-began
		cancel()
	}()
	ask(t, http.DefaultClient, "GET", s.URL()+"/", nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.ln.Addr().String()); err == nil {
		t.Error("the address is still taken")
	}
}
