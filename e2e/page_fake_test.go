package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/api/web"
)

// fakeAPI serves the page, and of /v1 what a test gives it: slow and odd answers, faults, and teams
// of any size, without a cluster.
type fakeAPI struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	changed chan struct{} // closed and made again with each change of feeds
	answers map[string]http.HandlerFunc
	feeds   map[string][]string // the entries of each stream, by its path
	asked   []string            // method, path and query of each request, and its body
}

// newFakeAPI starts one, which has the teams red and blue, active and without members. The page of its
// tab is opened at an address behind the #.
func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{t: t, changed: make(chan struct{}), answers: map[string]http.HandlerFunc{}, feeds: map[string][]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/", f.serve)
	mux.Handle("/", web.New(http.NotFoundHandler()))
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.url = s.URL
	f.says("GET /session", `{"access": "write"}`)
	teams := []string{}
	for _, id := range []string{"red", "blue"} {
		record := `{"id": "` + id + `", "status": "active", "goal": "The goal of ` + id + `", "goal_number": 1}`
		teams = append(teams, record)
		f.says("GET /teams/"+id, record)
		f.says("GET /teams/"+id+"/goal", record)
		f.says("GET /teams/"+id+"/members", `{"members": []}`)
		f.says("POST /teams/"+id+"/messages", `{"message_id": "m-sent"}`)
		f.says("GET /teams/"+id+"/messages/m-sent", `{"id": "m-sent", "from": "user", "to": "coder-1", "content": "x", "deliveries": [{"agent_id": "coder-1", "status": "processed"}]}`)
		f.feeds["/teams/"+id+"/events"] = nil
	}
	f.says("GET /teams", `{"teams": [`+strings.Join(teams, ",")+`]}`)
	return f
}

// opened is a tab with the page of f.
func (f *fakeAPI) opened(hash string) *tab {
	f.t.Helper()
	p := openBrowser(f.t).tab()
	p.login(f.url + "/" + hash)
	return p
}

// says has a request answered by a document; what is a method and the path behind /v1.
func (f *fakeAPI) says(what, document string) {
	f.does(what, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, document)
	})
}

func (f *fakeAPI) does(what string, answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[what] = answer
}

// refuses has a request answered by a problem.
func (f *fakeAPI) refuses(what string, status int, detail string) {
	f.does(what, func(w http.ResponseWriter, _ *http.Request) { fail(w, status, detail) })
}

func fail(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status": %d, "detail": %s}`, status, quoted(detail))
}

// happens puts entries of a type, with a value, into the feed of a team.
func (f *fakeAPI) happens(id, kind string, values ...any) {
	for _, v := range values {
		f.writes("/teams/"+id+"/events", map[string]any{"agent_id": "leader", "event": map[string]any{"type": kind, "value": v}})
	}
}

// writes puts an entry into a stream.
func (f *fakeAPI) writes(stream string, entry map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.feeds[stream])
	entry["cursor"], entry["time"] = fmt.Sprint(n+1), fmt.Sprintf("2026-03-14T12:%02d:%02dZ", n/60%60, n%60)
	f.feeds[stream] = append(f.feeds[stream], string(mustJSON(f.t, entry)))
	close(f.changed)
	f.changed = make(chan struct{})
}

// member has a coder join a team.
func (f *fakeAPI) member(id, name string) {
	f.happens(id, "MEMBER_JOINED", map[string]any{"agent_id": name, "role": "coder", "state": "joined", "incarnation": 1})
}

// task puts a task on the board of a team, or changes it.
func (f *fakeAPI) task(id, task, status, assignee string, after ...string) {
	f.happens(id, "TASK_CREATED", map[string]any{"id": task, "title": "The work of " + task, "status": status, "assignee": assignee, "dependencies": after})
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	body := make([]byte, 0)
	if r.Body != nil {
		var doc json.RawMessage
		if json.NewDecoder(r.Body).Decode(&doc) == nil {
			body = doc
		}
	}
	f.mu.Lock()
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.RequestURI(), "/v1")+" "+string(body)))
	answer := f.answers[r.Method+" "+path]
	_, feed := f.feeds[path]
	f.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case feed && strings.Contains(r.Header.Get("Accept"), "event-stream"):
		f.stream(w, r, path)
	default:
		fail(w, 404, "there is no "+path)
	}
}

// stream sends all entries behind the last that a client has had, and then what comes.
func (f *fakeAPI) stream(w http.ResponseWriter, r *http.Request, path string) {
	at := 0
	_, _ = fmt.Sscan(r.Header.Get("Last-Event-ID"), &at) // none: from the beginning
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		f.mu.Lock()
		entries, changed := f.feeds[path], f.changed
		f.mu.Unlock()
		for ; at < len(entries); at++ {
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", at+1, entries[at])
		}
		fmt.Fprint(w, "event: ready\ndata: {}\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// requested waits for a request that begins so, and returns it.
func (f *fakeAPI) requested(begin string) (request string) {
	f.t.Helper()
	until(f.t, "the page asks for "+begin, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		i := slices.IndexFunc(f.asked, func(s string) bool { return strings.HasPrefix(s, begin) })
		if i >= 0 {
			request = f.asked[i]
		}
		return i >= 0
	})
	return request
}

// times is how often there was a request that begins so.
func (f *fakeAPI) times(begin string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.asked {
		if strings.HasPrefix(s, begin) {
			n++
		}
	}
	return n
}
