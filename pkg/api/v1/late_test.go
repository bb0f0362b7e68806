package v1_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/api/v1"
	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// While NATS is away each request ends in time, and says what is not known.
func TestLate(t *testing.T) {
	r := newRig(t)
	r.do(t, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201})
	way := brokertest.NewProxy(t, r.nats)
	c, err := client.Connect(t.Context(), client.Options{URL: way.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	hub := stream.New(c, stream.HubOptions{})
	t.Cleanup(hub.Close)
	var log strings.Builder
	h, err := v1.NewWithin(v1.Options{
		Client: c, Hub: hub, NewTeam: func() (client.NewTeam, error) { return client.NewTeam{}, nil },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	r.url = srv.URL
	way.Swallow("never") // the link has died, and this process does not know it
	again, look := "try again", "whether this was done is not known"
	r.all(t, []ask{
		{do: "GET /v1/teams", want: 504, code: team.Unavailable, says: []string{again, "!" + look}},
		{do: "GET /v1/teams/t/tasks/1", want: 504, code: team.Unavailable, says: []string{again}},
		{do: "GET /v1/teams/t/tasks?status=merging", want: 504, code: team.Unavailable, says: []string{again}},
		{do: "GET /v1/teams/t/events", want: 504, code: team.Unavailable, says: []string{again}},
		{do: "GET /v1/teams/t/members/ann/transcript", want: 504, code: team.Unavailable, says: []string{again}},
		{do: "GET /v1/teams/t/tasks/1/deliverable", want: 504, code: team.Unavailable, says: []string{again}},
		{do: "POST /v1/teams", body: `{"id":"red"}`, want: 504, code: team.Unavailable, says: []string{look}},
		{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"y"}]}`, header: []string{"Idempotency-Key", "k"}, want: 504, code: team.Unavailable, says: []string{look, "Idempotency-Key"}},
		{do: "POST /v1/teams/t/goal", body: `{"goal":"y"}`, want: 504, code: team.Unavailable, says: []string{look}},
		{do: "PATCH /v1/teams/t/tasks/1", body: `{"title":"y"}`, want: 504, code: team.Unavailable, says: []string{look}},
	})
	if strings.Contains(log.String(), "has failed") {
		t.Errorf("the log has %s", log.String())
	}
	// Once this process knows, nobody waits.
	way.Close()
	brokertest.Until(t, "the loss is known", func() bool { return c.Ready(t.Context()) != nil })
	for _, a := range []ask{
		{do: "GET /v1/teams"}, {do: "GET /v1/status"}, {do: "GET /v1/teams/t/events"}, {do: "GET /v1/teams/t/events?follow=true"}, {do: "GET /v1/teams/t/tasks/1/deliverable"},
		{do: "POST /v1/teams", body: `{"id":"red"}`, says: []string{"nothing was done"}}, {do: "POST /v1/teams/t/goal", body: `{"goal":"y"}`, says: []string{"nothing was done"}},
	} {
		a.want, a.code, a.says = 503, team.Unavailable, append(a.says, "NATS is away", "!"+look)
		if got := r.do(t, a); got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", a.do)
		}
	}
	r.do(t, ask{do: "GET /v1/session", want: 200})
	// Once it is back, so is the API, and a repetition does what was not done, once.
	way.Open()
	for range 2 {
		brokertest.Until(t, "the API is back", func() bool {
			return r.send(t, "POST", "/v1/teams/t/tasks", `{"tasks":[{"title":"y"}]}`, "Idempotency-Key", "k") < 500
		})
	}
	if tasks, err := r.team.Board().Tasks(t.Context()); err != nil || len(tasks) != 2 {
		t.Errorf("there are %d tasks, %v", len(tasks), err)
	}
}

// An error that is none of ours is logged, and not told.
func TestNothingLeaks(t *testing.T) {
	r := newRig(t)
	var log strings.Builder
	hub := stream.New(r.client, stream.HubOptions{})
	t.Cleanup(hub.Close)
	h, err := v1.New(v1.Options{
		Client: r.client, Hub: hub, NewTeam: func() (client.NewTeam, error) { return client.NewTeam{}, io.ErrUnexpectedEOF },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/roles", nil))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "EOF") || !strings.Contains(w.Body.String(), "log") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "EOF") {
		t.Errorf("the log has %q", log.String())
	}
}

func TestOptions(t *testing.T) {
	if _, err := v1.New(v1.Options{}); err == nil {
		t.Error("an API was made of nothing")
	}
}

// A member that is drained leaves later than the request waits.
func TestDrain(t *testing.T) {
	r := newRig(t)
	r.goal(t)
	m := r.join(t, "coder")
	r.all(t, []ask{
		{do: "DELETE /v1/teams/t/members/" + string(m.AgentID) + "?drain=true&timeout=0", want: 202, says: []string{`"forced":false`, string(m.AgentID)}},
		{name: "a seat", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x","assignee":"zoe","seat":true}]}`, want: 201},
		{name: "of a seat", do: "DELETE /v1/teams/t/members/zoe?drain=true", want: 422, code: team.InvalidArgument},
		{name: "a seat is just ended", do: "DELETE /v1/teams/t/members/zoe", want: 200, says: []string{`"state":"stopped"`}},
		{name: "its task is back", do: "GET /v1/teams/t/tasks/1", want: 200, says: []string{`"status":"pending"`}},
	})
}

// Whatever stands in a query, the answer is a list or says what is wrong with it.
func FuzzFilters(f *testing.F) {
	r := newRig(f)
	r.do(f, ask{do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"name":"a","title":"x","role":"coder"},{"title":"y","depends_on":["a"]}]}`, want: 201})
	hub := stream.New(r.client, stream.HubOptions{})
	f.Cleanup(hub.Close)
	h, err := v1.New(v1.Options{Client: r.client, Hub: hub, NewTeam: func() (client.NewTeam, error) { return client.NewTeam{}, nil }})
	if err != nil {
		f.Fatal(err)
	}
	for _, q := range []string{
		"", "status=pending,blocked&limit=1", "ids=T-001,2", "page=T-001", "page=id.T-001",
		"limit=-1", "limit=99999999999999999999", "claimable=yes", "text=%00%ff", "status=", "status=,,", "ids=,", "ids=T-000", "role=*", "assignee=%2e%2e", "a=b", "limit=1&limit=2", ";", "%zz",
		"after=AAAA", "type=TASK_CREATED,,&agent=leader", "live=0&follow=0", "by=alias", "wait=0", "as=user", "all=1", "timeout=1e3", "page=+1", "page=18446744073709551616",
		"since=now", "since=2026-11-22T14:30:00Z&tool=bash", "page=1.YQ", "page=1.!", "page=.",
	} {
		for i := range fuzzed {
			f.Add(i, q)
		}
	}
	f.Fuzz(func(t *testing.T, path int, query string) {
		req := httptest.NewRequest(http.MethodGet, "/v1/teams/t/"+fuzzed[uint(path)%uint(len(fuzzed))], nil)
		req.URL.RawQuery = query
		if q, err := url.ParseQuery(query); strings.Contains(query, "wait") || err == nil && q.Get("follow") != "" {
			t.Skip("it may take its time")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req.WithContext(t.Context()))
		if w.Code != http.StatusOK && w.Code != http.StatusNotFound && w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d: %s", req.URL, w.Code, w.Body)
		}
		if want := "application/json"; w.Code == http.StatusOK && w.Header().Get("Content-Type") != want {
			t.Errorf("%s: of type %s", req.URL, w.Header().Get("Content-Type"))
		}
	})
}

// fuzzed are the paths with filters.
var fuzzed = []string{"tasks", "events", "members", "inbox/leader", "questions", "approvals", "usage", "goal", "audit"}
