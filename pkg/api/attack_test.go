package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
)

const (
	here  = "Host: 127.0.0.1\r\n"
	typed = "Content-Type: application/json\r\n"
	mine  = "Authorization: Bearer " + token + "\r\n"
)

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
	req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/flood", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := over.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the handler's write failed by %v", err)
	}
	if res.ProtoMajor != 2 {
		t.Errorf("it is %s", res.Proto)
	}
}

// Who asks for the head of a stream only is not held by it: its connection is for the next
// request.
func TestHeadOfStreams(t *testing.T) {
	o := options(t)
	red, err := o.Client.MakeSession(t.Context(), "ann", "1", client.NewTeam{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := red.StartGoal(t.Context(), "count", ""); err != nil {
		t.Fatal(err)
	}
	s := serve(t, o, defaultLimits, nil)
	for _, address := range []string{"/team/subscribe?user_id=ann&session_id=1", fmt.Sprintf("/v1/teams/%s/events?follow=true", red.ID())} {
		conn, err := net.Dial("tcp", s.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "HEAD %s HTTP/1.1\r\n"+here+mine+"Connection: close\r\n\r\n", address)
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200") || !strings.Contains(string(got), "text/event-stream") {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}

// A process that stops tells the readers of streams so, each in the words of its protocol: none
// of them ends without a last one.
func TestStreamsAreToldOfTheEnd(t *testing.T) {
	o := options(t)
	if _, err := o.Client.Make(t.Context(), client.NewTeam{ID: "red"}); err != nil {
		t.Fatal(err)
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	open := map[string]*http.Response{}
	for _, stream := range []struct{ method, path, body string }{
		{"GET", "/v1/teams/red/events?follow=true", ""},
		{"POST", "/v1/teams/red/agui", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}`},
		{"POST", "/team/stream", `{"user_id":"ann","session_id":"1","message":"x"}`},
		{"GET", "/team/subscribe?user_id=ann&session_id=1", ""},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), stream.method, s.URL()+stream.path, strings.NewReader(stream.body))
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("%s: %s", stream.path, res.Status)
		}
		open[stream.path] = res
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for path, res := range open {
		got, err := io.ReadAll(res.Body)
		last := got[bytes.LastIndex(bytes.TrimRight(got, "\n"), []byte("data: "))+1:]
		if err != nil || !bytes.Contains(bytes.ToLower(last), []byte("this process is stopping")) || bytes.Contains(got, []byte(`"complete"`)) || bytes.Contains(got, []byte("RUN_FINISHED")) {
			t.Errorf("%s ends with %q, %v", path, got, err)
		}
	}
}
