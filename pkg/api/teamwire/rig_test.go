package teamwire_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/api/stream/streamtest"
	"agentteam/pkg/api/teamwire"
	"agentteam/pkg/client"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "write the golden files")

// rig is the handler on a real NATS server, without a leader: what agents do is written by
// the test.
type rig struct {
	t      *testing.T
	url    string // of the handler
	nats   string
	client *client.Client
	dir    string // the workspace
	log    strings.Builder
	stop   func() // ends the contexts of all requests, as a process does that stops
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, nats: brokertest.Server(t), dir: t.TempDir()}
	c, err := client.Connect(t.Context(), client.Options{URL: r.nats})
	r.ok(err)
	t.Cleanup(c.Close)
	r.client = c
	hub := stream.New(c, stream.HubOptions{})
	t.Cleanup(hub.Close)
	h, err := teamwire.New(teamwire.Options{
		Client: c, Hub: hub, Workspace: r.dir, Private: []string{filepath.Join(r.dir, "api.token")},
		NewTeam: func() (client.NewTeam, error) {
			roles, err := role.Load(r.dir)
			return client.NewTeam{Roles: roles.All, Workspace: r.dir}, err
		},
	})
	r.ok(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	srv := httptest.NewUnstartedServer(h)
	srv.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	srv.Start()
	t.Cleanup(func() { stop(); srv.Close() })
	r.url, r.stop = srv.URL, stop
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// ask makes a request, and returns status and body.
func (r *rig) ask(method, path, body string) (int, string) {
	r.t.Helper()
	resp := r.send(r.t.Context(), method, path, body)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	r.ok(err)
	return resp.StatusCode, string(data)
}

func (r *rig) send(ctx context.Context, method, path, body string) *http.Response {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, brokertest.Longest)
	r.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	r.ok(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	r.ok(err)
	return resp
}

// tell is ask, with request and answer noted for the golden file.
func (r *rig) tell(method, path, body string) string {
	r.t.Helper()
	status, answer := r.ask(method, path, body)
	fmt.Fprintf(&r.log, ">>> %s %s\n", method, path)
	if body != "" {
		fmt.Fprintf(&r.log, "%s\n", body)
	}
	fmt.Fprintf(&r.log, "<<< %d\n%s\n", status, strings.TrimRight(answer, "\n"))
	return answer
}

// golden compares what was noted with a file.
func (r *rig) golden(name string) {
	r.t.Helper()
	got, file := streamtest.Stable(r.log.String()), filepath.Join("testdata", name)
	if *update {
		r.ok(os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	r.ok(err)
	if got != string(want) {
		r.t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// cast opens the team of a session that was made before, for a test to play in.
func (r *rig) cast(user, session string) *streamtest.Cast {
	r.t.Helper()
	return streamtest.Open(r.t, r.nats, team.SessionTeam(user, session))
}

func (r *rig) session() *client.Team {
	r.t.Helper()
	t, err := r.client.OpenSession(r.t.Context(), "ann", "day 1")
	r.ok(err)
	return t
}
