package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// streamReader reads a team's stream as a browser does: when it ends, it goes on behind the
// last id, at another process if there is one.
type streamReader struct {
	apis  []string // base URLs
	token string

	mu      sync.Mutex
	entries []string // as JSON without their cursors
	opened  map[string]int
}

// run reads until ctx ends.
func (s *streamReader) run(ctx context.Context) {
	last := ""
	for n := 0; ctx.Err() == nil; n++ {
		api := s.apis[n%len(s.apis)]
		if !s.read(ctx, api, &last) {
			select { // it is away, or just going
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// read reads one stream to its end; ok is false if there was none.
func (s *streamReader) read(ctx context.Context, api string, last *string) (ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/v1/teams/"+string(team.DefaultTeam)+"/events", nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Accept", "text/event-stream")
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	s.mu.Lock()
	s.opened[api]++
	s.mu.Unlock()
	in := bufio.NewReader(resp.Body)
	id, data := "", ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return true // what came of an event that was cut off does not count
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
		case name == "id":
			id = value
		case name == "data":
			data = value
		case line == "\n":
			if id != "" {
				*last = id
				s.keep(data)
			}
			id, data = "", ""
		}
	}
}

func (s *streamReader) keep(data string) {
	var e client.Entry
	_ = json.Unmarshal([]byte(data), &e) // what is none is missed later
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, withoutCursor(e))
}

// all returns the entries so far, sorted: those that came late stand elsewhere at another
// process.
func (s *streamReader) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.entries))
}

func withoutCursor(e client.Entry) string {
	e.Cursor = ""
	data, _ := json.Marshal(e) // which was read from JSON
	return string(data)
}

// The leader process is killed while people watch by its API: each goes on at another
// process, and has seen the same events in the end, each once.
func TestStreamsSurviveTheirProcess(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown() })
	c := &cluster{t: t, dir: t.TempDir()}
	file := filepath.Join(c.dir, "token")
	c.env = append(environ(), "NATS_URL="+srv.URL(), "OPENAI_MODEL=rehearsal", "OPENAI_BASE_URL="+rehearse(t, ""),
		"AGENTTEAM_API=127.0.0.1:0", "AGENTTEAM_API_TOKEN_FILE="+file)
	conn := dial(t, srv.URL())
	first := c.launch("leader")
	defer first.Process.Kill()
	var apis []string
	served := func(n int) func() bool {
		return func() bool {
			s, err := conn.Processes(t.Context())
			if err != nil || len(s.Leaders) != n {
				return false
			}
			for _, p := range s.Leaders {
				if p.API != "" && !slices.Contains(apis, p.API) {
					apis = append(apis, p.API)
				}
			}
			return len(apis) == n
		}
	}
	until(t, "the API is served", served(1))
	for range 3 {
		c.start("teammate")
	}
	until(t, "the standbys answer", func() bool {
		s, err := conn.Processes(t.Context())
		return err == nil && len(s.Standbys) == 3
	})
	tm := newTeam(t, conn, team.DefaultTeam)
	f := follow(t, tm)
	done := c.begin(survey(tree(t))...)
	f.next("the first process leads", func(e client.Entry) bool { return e.AgentID == team.Leader && e.Event.Event.Type == team.MemberJoined })
	c.start("leader")
	until(t, "another process serves it too", served(2))
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	readers := make([]*streamReader, 20)
	for i := range readers {
		readers[i] = &streamReader{apis: apis, token: strings.TrimSpace(string(token)), opened: map[string]int{}}
		reading.Go(func() { readers[i].run(ctx) })
	}
	f.next("work goes on", func(e client.Entry) bool { return e.Event.Event.Type == team.TaskClaimed })
	until(t, "all have read something", func() bool {
		return !slices.ContainsFunc(readers, func(s *streamReader) bool { return len(s.all()) == 0 })
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if r := done.end(t); r.Status != string(team.TeamFinished) {
		t.Errorf("the run ended as %s: %s", r.Status, r.Summary)
	}
	var whole []string
	until(t, "all have read everything", func() bool {
		whole = nil
		if err := tm.Feed(t.Context(), client.FeedOptions{}, func(e client.Entry) error {
			whole = append(whole, withoutCursor(e))
			return nil
		}); err != nil {
			return false
		}
		slices.Sort(whole)
		return !slices.ContainsFunc(readers, func(s *streamReader) bool { return len(s.all()) < len(whole) })
	})
	for i, s := range readers {
		if got := s.all(); !slices.Equal(got, whole) {
			t.Errorf("reader %d has read %d events, the team has %d:%s", i, len(got), len(whole), apart(got, whole))
		}
		if s.opened[apis[0]] != 1 || s.opened[apis[1]] == 0 {
			t.Errorf("reader %d had %d streams of the process that was killed, and %d of the other", i, s.opened[apis[0]], s.opened[apis[1]])
		}
	}
}

// apart names the events that two sorted lists do not both have, or not as often.
func apart(got, want []string) (text string) {
	count := map[string]int{}
	for _, e := range got {
		count[e]++
	}
	for _, e := range want {
		count[e]--
	}
	for e, n := range count {
		if n != 0 {
			text += fmt.Sprintf("\n%+d %s", n, e)
		}
	}
	return text
}
