package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

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
