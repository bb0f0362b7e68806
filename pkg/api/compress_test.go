package api

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// got asks for a path with gzip, which Go's own client hides otherwise, and returns the answer, whose
// body ends with the test.
func got(t *testing.T, s *Server, path, encoding string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(brokertest.Context(t), "GET", s.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept-Encoding", encoding)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if vary := strings.Join(res.Header.Values("Vary"), " "); res.StatusCode != http.StatusOK || !strings.Contains(vary, "Accept-Encoding") {
		t.Errorf("%s: %d, which varies by %q", path, res.StatusCode, vary)
	}
	return res
}

// The page and JSON are compressed for those who take that.
func TestCompressed(t *testing.T) {
	o := options(t)
	red, err := o.Client.Make(t.Context(), client.NewTeam{ID: "red"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := red.Board().Add(t.Context(), "", team.NewTask{Title: "x", Description: strings.Repeat("x", 10_000)}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, o, defaultLimits, nil)
	for _, path := range []string{"/assets/page.js", "/assets/page.css", "/v1/teams/red/events", "/v1/openapi.json"} {
		plain, err := io.ReadAll(got(t, s, path, "identity").Body)
		if err != nil {
			t.Fatal(err)
		}
		res := got(t, s, path, "gzip, deflate, br")
		short, err := io.ReadAll(res.Body)
		if err != nil || res.Header.Get("Content-Encoding") != "gzip" || len(short) > len(plain)/2 {
			t.Fatalf("%s: %d bytes of %d with %q, %v", path, len(short), len(plain), res.Header.Get("Content-Encoding"), err)
		}
		z, err := gzip.NewReader(strings.NewReader(string(short)))
		if err != nil {
			t.Fatal(err)
		}
		if whole, err := io.ReadAll(z); err != nil || string(whole) != string(plain) {
			t.Errorf("%s: other bytes than without, %v", path, err)
		}
	}
}

// Each event of a compressed stream arrives when it happens, and the end is one.
func TestCompressedStream(t *testing.T) {
	o := options(t)
	red, err := o.Client.Make(t.Context(), client.NewTeam{ID: "red"})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, o, defaultLimits, nil)
	for _, refused := range []string{"identity", "gzip;q=0", "br, gzip; q=0.0, *"} {
		if as := got(t, s, "/v1/teams/red/events?follow=true", refused).Header.Get("Content-Encoding"); as != "" {
			t.Errorf("who takes %q gets %s", refused, as)
		}
	}
	res := got(t, s, "/v1/teams/red/events?follow=true", "br;q=1.0, GZIP;q=0.8")
	z, err := gzip.NewReader(res.Body)
	if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(res.Header, err)
	}
	lines := bufio.NewReader(z)
	until := func(words string) {
		t.Helper()
		for line := ""; !strings.Contains(line, words); {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatalf("%v before %q", err, words)
			}
		}
	}
	until("event: ready")
	for _, title := range []string{"one", "two"} {
		if _, _, err := red.Board().Add(t.Context(), "", team.NewTask{Title: title}); err != nil {
			t.Fatal(err)
		}
		until(title) // and nothing comes behind it
	}
	s.hub.Close()
	if rest, err := io.ReadAll(lines); err != nil || !strings.Contains(string(rest), "event: problem") {
		t.Errorf("it ends with %q, %v", rest, err)
	}
}
