package teamwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/api/teamwire"
	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/client"
	"agentteam/pkg/event"
	"agentteam/pkg/journal"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/model"
	"agentteam/pkg/registry"
	"agentteam/pkg/role"
	"agentteam/pkg/roster"
	"agentteam/pkg/subject"
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
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, nats: brokertest.Server(t), dir: t.TempDir()}
	c, err := client.Connect(t.Context(), client.Options{URL: r.nats})
	r.ok(err)
	t.Cleanup(c.Close)
	r.client = c
	h, err := teamwire.New(teamwire.Options{Client: c, Hub: stream.New(c, stream.HubOptions{}), Workspace: r.dir, NewTeam: func() (client.NewTeam, error) {
		roles, err := role.Load(r.dir)
		return client.NewTeam{Roles: roles.All, Workspace: r.dir}, err
	}})
	r.ok(err)
	limited := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Body = http.MaxBytesReader(w, req.Body, 2<<20)
		h.ServeHTTP(w, req)
	})
	srv := httptest.NewServer(limited)
	t.Cleanup(srv.Close)
	r.url = srv.URL
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
	got, file := stable(r.log.String()), filepath.Join("testdata", name)
	if *update {
		r.ok(os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	r.ok(err)
	if got != string(want) {
		r.t.Errorf("%s differs; got:\n%s", file, got)
	}
}

var (
	ulids = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	times = regexp.MustCompile(`"timestamp":\d+`)
)

// stable is a text with what differs from run to run replaced: ids by their order, times.
func stable(s string) string {
	seen := map[string]string{}
	s = ulids.ReplaceAllStringFunc(s, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("ID-%d", len(seen)+1)
		}
		return seen[id]
	})
	return times.ReplaceAllString(s, `"timestamp":1`)
}

// cast writes what agents of one team do.
type cast struct {
	*rig
	bt    *broker.Storage
	words map[team.AgentID]*journal.Journal
}

// cast opens the team of a session that was made before.
func (r *rig) cast(user, session string) *cast {
	r.t.Helper()
	bt, err := brokertest.Connect(r.t, r.nats).Open(r.t.Context(), team.SessionTeam(user, session))
	r.ok(err)
	return &cast{r, bt, map[team.AgentID]*journal.Journal{}}
}

// member writes the record of a member as being in a state.
func (c *cast) member(a team.AgentID, role string, state team.MemberState) {
	c.t.Helper()
	r := roster.New(c.bt)
	m, err := r.Get(c.t.Context(), a)
	if err != nil && !errors.Is(err, team.NotFound) {
		c.t.Fatal(err)
	}
	m.AgentID, m.Role, m.State, m.Backend, m.Incarnation = a, role, state, team.Pool, 1
	_, err = r.Put(c.t.Context(), m)
	c.ok(err)
}

func (c *cast) runs(a team.AgentID, b team.EventBody) {
	c.t.Helper()
	b.ThreadID = string(a)
	event.New(c.bt, nil).Emit(c.t.Context(), team.Event{AgentID: a, RunID: "run-of-" + string(a), Event: b})
}

func (c *cast) writes(a team.AgentID, rec journal.Record) {
	c.t.Helper()
	if c.words[a] == nil {
		j, _, err := journal.Open(c.t.Context(), c.bt, a, 1, journal.Options{})
		c.ok(err)
		c.words[a] = j
	}
	rec.RunID = "run-of-" + string(a)
	_, err := c.words[a].Append(c.t.Context(), rec)
	c.ok(err)
}

// says writes a turn with a text and, unless it is "", the call of a tool.
func (c *cast) says(a team.AgentID, text, tool string) {
	c.t.Helper()
	m := model.Message{Role: "assistant", Content: text}
	if tool != "" {
		m.ToolCalls = []model.ToolCall{{ID: "call-" + tool, Name: tool, Arguments: `{"path":"<a>"}`}}
	}
	data, err := json.Marshal(model.Reply{Message: m})
	c.ok(err)
	c.writes(a, journal.Record{Kind: journal.Turn, Turn: data})
}

func (c *cast) hears(a team.AgentID, tool, result string) {
	c.t.Helper()
	c.writes(a, journal.Record{Kind: journal.Result, Result: &journal.ToolResult{CallID: "call-" + tool, Name: tool, Content: result}})
}

func (c *cast) mails(from, to team.AgentID, kind team.MessageType, text string) {
	c.t.Helper()
	box := mailbox.New(c.bt, mailbox.Options{Members: roster.New(c.bt)})
	_, _, err := box.Send(c.t.Context(), team.Message{Type: kind, From: from, To: to, Content: text})
	c.ok(err)
}

// ends ends the team's goal.
func (c *cast) ends(status team.Status, summary string) {
	c.t.Helper()
	reg := registryOf(c.t, c.nats)
	_, err := reg.End(c.t.Context(), c.bt, status, summary)
	c.ok(err)
}

func registryOf(t *testing.T, nats string) *registry.Registry {
	t.Helper()
	reg, err := registry.Open(t.Context(), brokertest.Connect(t, nats))
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func (r *rig) session() *client.Team {
	r.t.Helper()
	t, err := r.client.OpenSession(r.t.Context(), "ann", "day 1")
	r.ok(err)
	return t
}

// goals is how many goals the team has had.
func (c *cast) goals() int {
	c.t.Helper()
	record, err := c.session().Record(c.t.Context())
	c.ok(err)
	return record.GoalNumber
}

// until waits until the team's record is as wanted.
func (c *cast) until(ok func(team.Team) bool) {
	c.t.Helper()
	there := errors.New("there")
	err := c.bt.Bucket.Watch(c.t.Context(), func(e broker.Entry) error {
		if record, err := registry.Decode(e); err == nil && ok(record) {
			return there
		}
		return nil
	}, nil, subject.KeyTeam)
	if !errors.Is(err, there) {
		c.t.Fatal(err)
	}
}
