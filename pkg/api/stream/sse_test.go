package stream

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// serve serves the hub's streams at /<team>.
func (r *rig) serve(h *Hub) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		o, err := Ask(req)
		if err == nil {
			err = h.Serve(w, req, team.TeamID(req.URL.Path[1:]), o)
		}
		if err != nil {
			problem.Write(w, err)
		}
	}))
	r.t.Cleanup(s.Close)
	r.t.Cleanup(h.Close)
	return s.URL
}

// source reads a stream as a browser's EventSource does.
type source struct {
	t    testing.TB
	resp *http.Response
	in   *bufio.Reader
}

// frame is one event, or a comment.
type frame struct{ id, event, data, comment string }

func (r *rig) open(address, last string) *source {
	r.t.Helper()
	req, err := http.NewRequestWithContext(brokertest.Context(r.t), http.MethodGet, address, nil)
	r.ok(err)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	r.ok(err)
	r.t.Cleanup(func() { resp.Body.Close() })
	return &source{r.t, resp, bufio.NewReader(resp.Body)}
}

// next returns the next frame.
func (s *source) next() (f frame) {
	s.t.Helper()
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the stream ended: %v", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "":
			if value != "" {
				f.comment = value
				continue
			}
			if f == (frame{}) {
				continue
			}
			return f
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data = value
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	address := r.serve(r.hub) + "/t"
	r.runs("bob")
	r.says("one\ntwo")
	past := r.past(client.FeedOptions{})
	s := r.open(address, "")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Connection": "keep-alive"} {
		if got := s.resp.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, e := range past {
		want, err := json.Marshal(e)
		r.ok(err)
		if got := s.next(); got != (frame{id: string(e.Cursor), data: string(want)}) {
			t.Errorf("the stream has\n%+v, want the entry\n%s", got, want)
		}
	}
	if got := s.next(); got != (frame{event: readyEvent, data: "{}"}) {
		t.Errorf("behind what had happened comes %+v, want the event that says so", got)
	}
	var f frame
	for f.event == "" { // until the hub listens
		r.writes("m", 0, "He")
		r.runs("carl")
		f = s.next()
	}
	var d team.Delta
	if err := json.Unmarshal([]byte(f.data), &d); err != nil || f.event != deltaEvent || f.id != "" || d.Text != "He" || d.MessageID != "m" {
		t.Errorf("a delta is %+v", f)
	}

	// A browser that comes back says where it was, whatever its address says.
	again := r.open(address+"?live=0&after="+url.QueryEscape(string(past[1].Cursor)), string(past[0].Cursor))
	if got := again.next(); got.id != string(past[1].Cursor) {
		t.Errorf("behind the first comes %+v", got)
	}
	later := r.open(address+"?live=false&after="+url.QueryEscape(string(past[0].Cursor)), "")
	if got := later.next(); got.id != string(past[1].Cursor) {
		t.Errorf("after the first comes %+v", got)
	}
	some := r.open(address+"?agent=x,carl&agent=bob&type=run_started", "")
	for _, want := range []team.AgentID{"bob", "carl"} {
		var e client.Entry
		if err := json.Unmarshal([]byte(some.next().data), &e); err != nil || e.AgentID != want {
			t.Errorf("filtered comes %+v, want one of %s", e, want)
		}
	}
}

// A reader learns that NATS is away, and that it is back, though nothing happens in the team.
func TestServeWithoutNATS(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := brokertest.NewProxy(t, r.url)
	c, err := client.Connect(t.Context(), client.Options{URL: p.URL})
	r.ok(err)
	t.Cleanup(c.Close)
	s := r.open(r.serve(New(c, HubOptions{}))+"/t", "")
	if got := s.next(); got.event != readyEvent {
		t.Fatalf("it begins with %+v", got)
	}
	p.Close()
	if got := s.next(); got != (frame{event: connectionEvent, data: `{"connected":false}`}) {
		t.Errorf("without NATS comes %+v", got)
	}
	p.Open()
	if got := s.next(); got != (frame{event: connectionEvent, data: `{"connected":true}`}) {
		t.Errorf("with NATS again comes %+v", got)
	}
	r.runs("bob")
	if got := s.next(); got.event != "" {
		t.Errorf("behind it comes %+v", got)
	}
}

// Whoever misses something is told so, and how the team stands; cut off between the two,
// it is told both again.
func TestReset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	address := r.serve(r.hub) + "/t"
	_, _, err := r.team.Board().Add(t.Context(), "", team.NewTask{Title: "a task"})
	r.ok(err)
	r.runs("bob")
	first := r.past(client.FeedOptions{})
	for range 5 {
		r.runs("bob")
	}
	js, err := jetstream.New(r.bt.Conn.NATS())
	r.ok(err)
	name, _ := subject.Events("t")
	str, err := js.Stream(t.Context(), name)
	r.ok(err)
	r.ok(str.Purge(t.Context(), jetstream.WithPurgeSequence(5)))
	for range 2 {
		s := r.open(address, string(first[len(first)-1].Cursor))
		reset, snap, rest := s.next(), s.next(), s.next()
		if reset.event != resetEvent || reset.id != "" || !strings.Contains(reset.data, `"missing":[{"source":"events","why":"forgotten","from":2,"to":4}]`) {
			t.Errorf("the reset is %+v", reset)
		}
		var now snapshot
		if err := json.Unmarshal([]byte(snap.data), &now); err != nil || snap.event != snapshotEvent || snap.id == "" || len(now.Tasks) != 1 || now.Tasks[0].Title != "a task" {
			t.Errorf("the snapshot is %+v", snap)
		}
		if rest.event != "" || rest.id == "" || !strings.Contains(rest.data, "RUN_STARTED") {
			t.Errorf("then comes %+v", rest)
		}
		after := r.open(address, snap.id)
		if got := after.next(); got != rest {
			t.Errorf("behind the snapshot comes %+v, want %+v", got, rest)
		}
	}
}

// What is wrong is told by a problem document, before anything is streamed.
func TestProblems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	address := r.serve(r.hub)
	r.runs("bob")
	end, err := r.team.End(t.Context())
	r.ok(err)
	p, err := end.Place("t")
	r.ok(err)
	for name, tt := range map[string]struct {
		path   string
		status int
		want   string
	}{
		"no such team":    {"/nobody", 404, "nobody"},
		"garbage":         {"/t?after=garbage", 422, "is not a cursor"},
		"of another team": {"/t?after=" + string(p.Cursor("other")), 422, "not of team t"},
		"of the future":   {"/t?after=" + string(future(end)), 422, "beyond the end"},
		"long":            {"/t?after=" + strings.Repeat("x", 2000), 422, "2000 characters"},
		"type":            {"/t?type=run_started,sunny", 422, "sunny"},
		"agent":           {"/t?agent=A%20B", 422, "A B"},
		"live":            {"/t?live=maybe", 422, "maybe"},
		"query":           {"/t?after=%zz", 422, "query"},
	} {
		s := r.open(address+tt.path, "")
		var d problem.Document
		err := json.NewDecoder(s.in).Decode(&d)
		if err != nil || s.resp.StatusCode != tt.status || d.Status != tt.status || !strings.Contains(d.Detail, tt.want) || s.resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %+v (%v), want %d and %q", name, s.resp.StatusCode, d, err, tt.status, tt.want)
		}
		if _, err := s.in.ReadByte(); err != io.EOF {
			t.Errorf("%s: more comes", name)
		}
	}
}

// Who asks for the head only is told that, at once.
func TestHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	resp, err := http.Head(r.serve(r.hub) + "/t")
	r.ok(err)
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("it is %d %v", resp.StatusCode, resp.Header)
	}
}

// Whatever stands in an address, it is read or refused.
func FuzzAsk(f *testing.F) {
	f.Add("after=x&agent=a,b&type=CUSTOM&live=0", "")
	f.Add("agent=,,&type=run_started&live=", "AQ")
	f.Fuzz(func(t *testing.T, query, last string) {
		o, err := Ask(&http.Request{URL: &url.URL{RawQuery: query}, Header: http.Header{"Last-Event-Id": {last}}})
		if err != nil {
			if team.CodeOf(err) != team.InvalidArgument || len(err.Error()) > 2000 {
				t.Errorf("%q: %v", query, err)
			}
			return
		}
		for _, a := range o.Agents {
			if _, err := team.ParseAgentID(string(a)); err != nil {
				t.Errorf("%q names %q", query, a)
			}
		}
		if len(o.After) > maxAfter || !o.Follow {
			t.Errorf("%q is read as %+v", query, o)
		}
	})
}
