package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/cluster/discovery"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
)

// site is a NATS server with processes on it that are only announced.
type site struct {
	t   *testing.T
	url string
	n   int
}

// process announces one and returns its connection and its metrics' host:port.
func (s *site) process(kind string, memberships ...control.Membership) (c *broker.Conn, target string) {
	s.t.Helper()
	s.n++
	target = fmt.Sprintf("host-%03d:8080", s.n)
	id := fmt.Sprintf("host/%d/x", s.n)
	c = brokertest.Connect(s.t, s.url)
	if _, err := control.Announce(c, control.Process{ID: id, Kind: kind, Metrics: "http://" + target + "/metrics"}); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range memberships {
		m.Process = id
		if _, err := control.Serve(s.t.Context(), c, m, control.Handlers{}); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := c.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return c, target
}

// get asks a handler and returns the labels by target.
func get(t *testing.T, h http.Handler) map[string]map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/http_sd", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return decode(t, w.Body.Bytes())
}

func decode(t *testing.T, data []byte) map[string]map[string]string {
	t.Helper()
	var groups []struct {
		Targets []string
		Labels  map[string]string
	}
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	got := map[string]map[string]string{}
	for _, g := range groups {
		if len(g.Targets) != 1 || got[g.Targets[0]] != nil {
			t.Fatalf("a process has not one group with one target: %s", data)
		}
		got[g.Targets[0]] = g.Labels
	}
	return got
}

func TestHandler(t *testing.T) {
	t.Parallel()
	s := &site{t: t, url: brokertest.Server(t)}
	self, alone := s.process("leader", control.Membership{Team: "t", AgentID: team.Leader, Role: "leader"})
	_, spare := s.process("leader")
	_, busy := s.process("leader", control.Membership{Team: "u", AgentID: team.Leader, Role: "leader"}, control.Membership{Team: "v", AgentID: team.Leader, Role: "leader"})
	coder, member := s.process("teammate", control.Membership{Team: "t", AgentID: "alice", Role: "coder"})
	_, waiting := s.process("teammate")
	other, err := micro.AddService(self.NATS(), micro.Config{Name: "somebody-elses", Version: "1.0.0", Metadata: map[string]string{"kind": "leader", "metrics": "http://10.0.0.1:1/metrics"}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Stop() // of no interest

	want := map[string]map[string]string{
		alone:   {"kind": "leader", "state": "joined", "role": "leader", "agent_id": "leader", "team": "t"},
		spare:   {"kind": "leader", "state": "standby", "role": "leader", "agent_id": "leader"},
		busy:    {"kind": "leader", "state": "joined", "role": "leader", "agent_id": "leader"},
		member:  {"kind": "teammate", "state": "joined", "role": "coder", "agent_id": "alice", "team": "t"},
		waiting: {"kind": "teammate", "state": "standby"},
	}
	h := discovery.Handler(self, "host/1/x")
	if got := get(t, h); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got:\n%v\nwant:\n%v", got, want)
	}

	coder.Close()
	_, late := s.process("teammate")
	delete(want, member)
	want[late] = map[string]string{"kind": "teammate", "state": "standby"}
	if got := get(t, h); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after one left and one came:\n%v\nwant:\n%v", got, want)
	}
}

func TestHundred(t *testing.T) {
	t.Parallel()
	s := &site{t: t, url: brokertest.Server(t)}
	self, _ := s.process("leader")
	for i := range 99 {
		s.process("teammate", control.Membership{Team: "t", AgentID: team.AgentID(fmt.Sprintf("coder-%d", i)), Role: "coder"})
	}
	agents := map[string]bool{}
	for l := range maps.Values(get(t, discovery.Handler(self, "host/1/x"))) {
		agents[l["agent_id"]] = true
	}
	if len(agents) != 100 {
		t.Errorf("%d of 100 processes are listed", len(agents))
	}
}

// Prometheus keeps its targets only if the answer is an error.
func TestUnreliable(t *testing.T) {
	t.Parallel()
	port := brokertest.Port()
	server, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	s := &site{t: t, url: server.URL()}
	self, _ := s.process("leader")
	refused := func(ctx context.Context, id, why string) {
		t.Helper()
		w := httptest.NewRecorder()
		discovery.Handler(self, id).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/http_sd", nil))
		if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), why) || strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("%d: %q, want 503 and %q", w.Code, w.Body, why)
		}
	}
	refused(t.Context(), "host/2/x", "NATS did not even bring")             // as if our own answer had been lost
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // our own answer comes, others would be missed
	defer cancel()
	refused(short, "host/1/x", "context deadline exceeded")
	gone := self.NATS().StatusChanged(nats.RECONNECTING)
	server.Shutdown()
	brokertest.Receive(t, "the connection is lost", gone)
	refused(t.Context(), "host/1/x", "NATS is away")
	back := self.NATS().StatusChanged(nats.CONNECTED)
	if server, err = embedded.Start(embedded.Options{Dir: t.TempDir(), Port: port}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	brokertest.Receive(t, "the connection is back", back)
	brokertest.Until(t, "the process has heard of it", func() bool { return !self.Restored().IsZero() }) // the client tells its handlers at about the same time
	refused(t.Context(), "host/1/x", "NATS has only just come back")                                     // this process, and who knows who else
}

func TestGroupsWithoutAddress(t *testing.T) {
	t.Parallel()
	if got, err := json.Marshal(discovery.Groups([]control.Process{{Kind: "teammate"}, {Metrics: "%"}})); string(got) != "[]" || err != nil {
		t.Errorf("processes without an address give %s, %v", got, err)
	}
}

// The real processes: their targets answer, and the labels follow what they become.
func TestProcesses(t *testing.T) {
	t.Parallel()
	c := teamtest.Start(t, `agents: [{rules: [{name: idle, say: Nothing to do.}]}]`)
	c.Leader()
	c.Teammates(1)
	var leader string
	brokertest.Until(t, "the leader is up", func() bool {
		s, err := c.Client.Processes(t.Context())
		if err == nil {
			leader = strings.TrimSuffix(s.Leaders[0].Metrics, "/metrics")
		}
		return leader != ""
	})
	// until asks until those who are there are as wanted, named by their labels.
	until := func(want ...string) {
		t.Helper()
		for deadline := time.Now().Add(brokertest.Longest); ; {
			got := map[string]bool{}
			targets := decode(t, body(t, leader+"/http_sd"))
			for target, l := range targets {
				got[fmt.Sprintf("%s %s %s %s", l["state"], l["team"], l["role"], l["agent_id"])] = true
				if !strings.Contains(string(body(t, "http://"+target+"/metrics")), "agentteam_build_info") {
					t.Errorf("%s serves no metrics", target)
				}
			}
			missing := len(targets) != len(want)
			for _, w := range want {
				missing = missing || !got[w]
			}
			if !missing {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("there are %v, want %q", targets, want)
			}
		}
	}
	until("standby  leader leader", "standby   ")
	passesOn(t, leader)

	tm := c.Team("t")
	if _, err := tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	stop := c.Named("bob", "reviewer", "t")
	until("joined t leader leader", "joined t coder coder-1", "joined t reviewer bob")
	stop()
	// Nobody is listed for bob until a process has come free that takes his place.
	until("joined t leader leader", "joined t coder coder-1")
	if _, err := tm.Members().Stop(t.Context(), "coder-1", client.StopOptions{Wait: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	until("joined t leader leader", "joined t reviewer bob")
}

// passesOn plays what happens when containers are made anew: the leader's address passes
// to a teammate while Prometheus is connecting to it, which asks that teammate then. It
// must not keep this connection, or it would never find the leader's new address.
func passesOn(t *testing.T, leader string) {
	t.Helper()
	address := ""
	for a := range decode(t, body(t, leader+"/http_sd")) {
		if "http://"+a != leader {
			address = a
		}
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, now string) (net.Conn, error) {
		at := address
		address = now
		return new(net.Dialer).DialContext(ctx, network, at)
	}}}
	defer client.CloseIdleConnections()
	for _, want := range []int{http.StatusNotFound, http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, leader+"/http_sd", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body) // else the connection is not used again
		resp.Body.Close()
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s, %v, want %d", resp.Status, err, want)
		}
	}
}

func body(t *testing.T, url string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, resp.Status, err, data)
	}
	return data
}
