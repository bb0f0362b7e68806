package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/api/stream/streamtest"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
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
	req, err := http.NewRequestWithContext(brokertest.Context(t), "GET", s.URL()+"/events", nil)
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

// follower follows the events of a team as a program does: where its stream ends, it continues
// behind the last cursor.
type follower struct {
	t       *testing.T
	address string
	body    io.Closer
	lines   *bufio.Reader
	cursor  string
}

// open opens the stream, and tries again while the process has none to give.
func (f *follower) open() {
	for f.t.Context().Err() == nil {
		req, _ := http.NewRequestWithContext(brokertest.Context(f.t), "GET", f.address, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Last-Event-ID", f.cursor)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			f.t.Error(err)
			return
		}
		if f.body, f.lines = res.Body, bufio.NewReader(res.Body); res.StatusCode == http.StatusOK {
			return
		}
		res.Body.Close()
	}
}

// next returns the next entry, or false once the test is over.
func (f *follower) next() (e client.Entry, ok bool) {
	id := ""
	for f.t.Context().Err() == nil {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			f.body.Close()
			f.open()
			continue
		}
		if cursor, is := strings.CutPrefix(line, "id: "); is {
			id = strings.TrimSpace(cursor)
		}
		if data, is := strings.CutPrefix(line, "data: "); is && id != "" {
			f.cursor = id
			return e, json.Unmarshal([]byte(data), &e) == nil
		}
	}
	return e, false
}

// A thousand readers of one team get each task once and in order, beside them others are
// answered, and when they have left nothing of them remains.
func TestAThousandStreams(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := options(t)
	o.Metrics = reg
	red, err := o.Client.Make(t.Context(), client.NewTeam{ID: "red"})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, o, defaultLimits, nil)
	const many, tasks = 1000, 20
	readers := make([]*follower, many)
	all := func(f func(i int)) {
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
	}
	all(func(i int) {
		readers[i] = &follower{t: t, address: s.URL() + "/v1/teams/red/events?follow=true"}
		readers[i].open()
	})
	if t.Failed() {
		return
	}
	if n := s.open.Load(); n < many {
		t.Errorf("%d connections are open", n)
	}
	var want []string
	for n := range tasks {
		want = append(want, fmt.Sprint("task ", n))
		if _, _, err := red.Board().Add(t.Context(), "", team.NewTask{Title: want[n]}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([][]string, many)
	all(func(i int) {
		for !slices.Contains(got[i], want[tasks-1]) {
			e, ok := readers[i].next()
			if !ok {
				return
			}
			var task team.Task
			if e.Event.Event.Type == team.TaskCreated && json.Unmarshal(e.Event.Event.Value, &task) == nil {
				got[i] = append(got[i], task.Title)
			}
		}
	})
	for i := range got {
		if !slices.Equal(got[i], want) {
			t.Fatalf("reader %d got %q", i, got[i])
		}
	}
	if res, _ := ask(t, http.DefaultClient, "GET", s.URL()+"/v1/teams", nil); res.StatusCode != 200 {
		t.Errorf("a request beside them: %d", res.StatusCode)
	}
	for _, r := range readers {
		r.body.Close()
	}
	brokertest.Until(t, "each handler has noticed that its stream is closed", func() bool { return value(t, reg, "agentteam_streams_open") == 0 })
}

// Who asks for the head of a stream only is not held by it: its connection is for the next
// request.
func TestHeadOfStreams(t *testing.T) {
	o := options(t)
	red, err := o.Client.MakeSession(t.Context(), "ann", "1", client.NewTeam{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := red.Goals().Start(t.Context(), "count", ""); err != nil {
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

// value is that of a metric without labels.
func value(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

// streams are all that the API has, of the session of ann with the team TEAM, and how they end
// when the process stops.
var streams = []struct{ method, path, body, last string }{
	{"POST", "/v1/teams/TEAM/agui", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}`,
		`data: {"type":"RUN_ERROR","message":"this process is stopping; the goal goes on","code":"unavailable"}`},
	{"POST", "/team/stream", `{"user_id":"ann","session_id":"1","message":"x"}`,
		`data: {"type":"error","envelope":null,"session_id":"1","error":"This process is stopping; the team is not"}`},
	{"GET", "/team/subscribe?user_id=ann&session_id=1", "",
		`data: {"type":"error","envelope":null,"session_id":"1","error":"This process is stopping; the team is not"}`},
	{"GET", "/v1/teams/TEAM/events?follow=true", "",
		`data: {"title":"Service Unavailable","status":503,"detail":"this process is stopping","code":"unavailable","hint":"go on with the last cursor, at another leader process or when it is back"}`},
	{"GET", "/v1/teams/TEAM/members/coder-1/transcript", "",
		`data: {"title":"Service Unavailable","status":503,"detail":"this process is stopping","code":"unavailable","hint":"go on with the last cursor, at another leader process or when it is back"}`},
}

// session makes the team of the streams, with coder-1 in it, and returns who plays its agents.
func session(t *testing.T, o Options, nats string) (*client.Team, *streamtest.Cast) {
	t.Helper()
	made, err := o.Client.MakeSession(t.Context(), "ann", "1", client.NewTeam{})
	if err != nil {
		t.Fatal(err)
	}
	cast := streamtest.Open(t, nats, made.ID())
	cast.Member("coder-1", "coder", team.Joined)
	return made, cast
}

// openAll opens all streams, each over a connection of dial.
func openAll(t *testing.T, s *Server, id team.TeamID, dial func() net.Conn) (all []*http.Response) {
	t.Helper()
	for _, stream := range streams {
		path := strings.Replace(stream.path, "TEAM", string(id), 1)
		conn := dial()
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\n"+here+mine+typed+"Accept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", stream.method, path, len(stream.body), stream.body)
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-cache" || res.Header.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("%s: %s, %v", path, res.Status, res.Header)
		}
		all = append(all, res)
	}
	return all
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(brokertest.Longest)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Every stream on which nothing happens shows that it lives. When the process stops, each ends
// with why, in the form of its protocol, and the goal is still under way.
func TestStreamsLiveAndEnd(t *testing.T) {
	nats := brokertest.Server(t)
	o := optionsOver(t, nats)
	made, _ := session(t, o, nats)
	l := defaultLimits
	l.keepAlive = 10 * time.Millisecond
	s, err := listen(o, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	open := openAll(t, s, made.ID(), func() net.Conn { return dial(t, s) })
	lines := make([]*bufio.Scanner, len(open))
	for i, res := range open {
		lines[i] = bufio.NewScanner(res.Body)
		for signs := 0; signs < 2; {
			if !lines[i].Scan() {
				t.Fatalf("%s ends: %v", streams[i].path, lines[i].Err())
			}
			if lines[i].Text() == ": keep-alive" {
				signs++
			}
		}
	}
	cancel()
	if err := brokertest.Receive(t, "the server ends", done); err != nil {
		t.Error(err)
	}
	for i, stream := range streams {
		last := ""
		for lines[i].Scan() {
			if lines[i].Text() != "" {
				last = lines[i].Text()
			}
		}
		if err := lines[i].Err(); err != nil || last != stream.last {
			t.Errorf("%s ends with %s, %v\nwant %s", stream.path, last, err, stream.last)
		}
	}
	if record, err := made.Record(t.Context()); err != nil || !record.AtWork() {
		t.Errorf("the team is %s (%v)", record.Status, err)
	}
}

// A reader that takes nothing is cut off and counted, whichever stream it is, and the others
// are not disturbed.
func TestStreamsOfStalledReaders(t *testing.T) {
	nats, reg := brokertest.Server(t), prometheus.NewRegistry()
	o := optionsOver(t, nats)
	o.Metrics = reg
	made, cast := session(t, o, nats)
	l := defaultLimits
	l.writeWait = 2 * time.Second
	s := serve(t, o, l, nil)
	buffered := func(bytes int) net.Conn {
		conn := dial(t, s)
		if err := conn.(*net.TCPConn).SetReadBuffer(bytes); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	openAll(t, s, made.ID(), func() net.Conn { return buffered(1 << 10) })
	good := buffered(1 << 20)
	defer good.Close()
	fmt.Fprintf(good, "GET /v1/teams/%s/events?follow=true HTTP/1.1\r\n"+here+mine+"\r\n", made.ID())
	lines, text := bufio.NewReader(good), strings.Repeat("x", 50<<10)
	for value(t, reg, "agentteam_stream_slow_readers_total") < float64(len(streams)) {
		cast.Says("coder-1", text, "")
		// It takes each text before the next, so its connection has room for one whatever the
		// load: none but the stalled readers is ever waited for.
		for line := ""; !strings.Contains(line, text); {
			var err error
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatalf("the stream of another reader ends: %v", err)
			}
		}
	}
}
