package api

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/config/role"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// No route waits for a named pipe, wherever an agent puts one: a place of the API would be lost
// for each request.
func TestNoRouteWaitsForAPipe(t *testing.T) {
	o := options(t)
	o.NewTeam = func() (client.NewTeam, error) {
		roles, err := role.Load(o.Workspace)
		return client.NewTeam{Roles: roles.All, Workspace: o.Workspace}, err
	}
	s := serve(t, o, defaultLimits, nil)
	task := func(workspace, id string) {
		t.Helper()
		tm, err := o.Client.Make(t.Context(), client.NewTeam{ID: team.TeamID(id), Workspace: workspace})
		if err == nil {
			_, _, err = tm.Board().Add(t.Context(), "", team.NewTask{Title: "leave something"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if res, body := ask(t, http.DefaultClient, "POST", s.URL()+"/v1/teams/"+id+"/tasks/T-001/claim", strings.NewReader(`{"as":"ann","seat":true}`)); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	task(o.Workspace, "red")
	task(filepath.Join(o.Workspace, "pipe"), "blue") // the whole workspace became one
	record, err := o.Client.Open(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	v, err := record.Board().Task(t.Context(), "T-001")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", ".agents/nobody.md", ".claude/agents/nobody.md", "AGENTS.md", v.DeliverablePath} {
		name = filepath.Join(o.Workspace, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = syscall.Mkfifo(name, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("pipe", filepath.Join(o.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	deliverable := "/files/content?path=" + v.DeliverablePath
	for _, request := range []string{
		"GET /files/tree", "GET /files/tree?path=pipe", "GET /files/tree?path=link", "GET /files/tree?path=pipe/x", "GET " + deliverable,
		"GET /files/content?path=pipe", "GET /files/content?path=link", "GET /files/content?path=pipe/x",
		"GET /v1/roles", `POST /v1/teams {"id":"new"}`, `POST /v1/teams/red/goal {"goal":"g"}`,
		`POST /team/tasks {"user_id":"ann","session_id":"1","title":"t"}`, `POST /team/query {"user_id":"ann","session_id":"1","message":"m"}`,
		"GET /v1/teams/red/tasks/T-001/deliverable", "GET /v1/teams/blue/tasks/T-001/deliverable",
		`POST /v1/teams/red/tasks/T-001/complete {"as":"ann","summary":"s"}`, `POST /v1/teams/blue/tasks/T-001/complete {"as":"ann","summary":"s"}`,
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		ctx, cancel := context.WithTimeout(t.Context(), brokertest.Longest) // far more than any takes
		req, err := http.NewRequestWithContext(ctx, method, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		if res, err := http.DefaultClient.Do(req); err != nil {
			t.Errorf("%s: %v", request, err)
		} else if res.Body.Close(); res.StatusCode >= 500 {
			t.Errorf("%s: %d", request, res.StatusCode)
		}
		cancel()
	}
}
