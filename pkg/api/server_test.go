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
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/api/access"
	"agentteam/pkg/api/problem"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// The tokens of the tests.
const (
	token  = "0123456789abcdef0123456789abcdef"
	reader = "fedcba9876543210fedcba9876543210" // may only read
)

// options are those of a server on a free port of loopback.
func options(t *testing.T) Options {
	t.Helper()
	return optionsOver(t, brokertest.Server(t))
}

// optionsOver is options over the NATS server at url.
func optionsOver(t *testing.T, url string) Options {
	t.Helper()
	o := Options{API: config.API{Addr: "127.0.0.1:0", Hosts: []string{"api.test"}, TokenFile: filepath.Join(t.TempDir(), "token")}, Workspace: t.TempDir()}
	put(t, o.TokenFile, []byte(token+"\n"))
	c, err := client.Connect(t.Context(), client.Options{URL: url})
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
		if s.http.Handler, err = s.handler(access.Options{Token: token, ReadToken: reader, Hosts: []string{"api.test"}}, mux); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(t, "the server ends", done); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request with the token, and returns the answer with its body.
func ask(t *testing.T, c *http.Client, method, url string, body io.Reader) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(brokertest.Context(t), method, url, body)
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

const (
	// here is one of the names in the settings: it counts at any port.
	here  = "Host: api.test\r\n"
	typed = "Content-Type: application/json\r\n"
	mine  = "Authorization: Bearer " + token + "\r\n"
)

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

func TestPage(t *testing.T) {
	s := serve(t, options(t), defaultLimits, nil)
	req, _ := http.NewRequestWithContext(brokertest.Context(t), "GET", s.URL()+"/", nil)
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
	for _, active := range []string{"<script>", "<style", "style=", "onload"} {
		if bytes.Contains(body, []byte(active)) {
			t.Errorf("the page has %s, which its policy forbids", active)
		}
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'") || !strings.Contains(policy, "trusted-types 'none'") {
		t.Errorf("the page's policy is %q", policy)
	}
	for path, contentType := range map[string]string{"page.js": "text/javascript", "page.css": "text/css", "icon.svg?n=3": "image/svg+xml"} {
		if res, _ := ask(t, http.DefaultClient, "GET", s.URL()+"/assets/"+path, nil); res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), contentType) {
			t.Errorf("/assets/%s: %d, %s", path, res.StatusCode, res.Header)
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
		if res, _ := raw(t, s, "GET "+path+" HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"); res.StatusCode != 401 {
			t.Errorf("%s without a token: %d", path, res.StatusCode)
		}
	}
	if res, _ := raw(t, s, "GET /health HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"); res.StatusCode != 200 {
		t.Errorf("/health: %d", res.StatusCode)
	}
	res, body := ask(t, http.DefaultClient, "POST", s.URL()+"/v1/teams/red/agui", strings.NewReader(`{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}`))
	refused(t, res, body, http.StatusNotFound, `there is no team "red"`)
}

// Nobody is sent to another path than the one asked for: a client that follows would delete a
// team where it meant a member.
func TestNoRedirects(t *testing.T) {
	o := options(t)
	if _, err := o.Client.Make(t.Context(), client.NewTeam{ID: "red"}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, o, defaultLimits, nil)
	for _, request := range []string{
		"DELETE /v1/teams/red/members/..", "DELETE /v1/teams/red/members/../", "DELETE /v1/teams/red/members/.", "DELETE /v1//teams/red", "GET /team", "GET /files", "GET /v1",
		"GET /team//tasks", "POST /v1/teams/red/tasks/../goal", "GET /./health",
	} {
		res, body := raw(t, s, request+" HTTP/1.1\r\nConnection: close\r\n"+here+mine+"\r\n")
		refused(t, res, body, 404, "nothing at this path")
	}
	if res, body := raw(t, s, "GET /v1/teams/red HTTP/1.1\r\nConnection: close\r\n"+here+mine+"\r\n"); res.StatusCode != 200 {
		t.Errorf("the team is gone: %d %s", res.StatusCode, body)
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
	req, _ := http.NewRequestWithContext(brokertest.Context(t), "GET", s.URL()+"/half", nil)
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
	raw(t, s, "GET /list HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP agentteam_api_requests_total Requests to the HTTP API; the route of a refused one is none.
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
	if s.http.Handler, err = s.handler(access.Options{Token: token, Hosts: []string{"api.test"}}, named(h)); err != nil {
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
	if err := brokertest.Receive(t, "the server ends", done); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.ln.Addr().String()); err == nil {
		t.Error("the address is still taken")
	}
}
