package process_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/process"
	"agentteam/pkg/team"
)

func TestHealth(t *testing.T) {
	ready := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			http.Error(w, "NATS is not connected yet", http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")

	for _, http := range []string{addr, "0.0.0.0:" + port, ":" + port} {
		if err := process.Health(t.Context(), config.Config{HTTP: http}); err != nil {
			t.Errorf("Health at %s = %v", http, err)
		}
	}
	ready = false
	if err := process.Health(t.Context(), config.Config{HTTP: addr}); !errors.Is(err, team.Unavailable) || !strings.Contains(team.Line(err), "NATS is not connected yet") {
		t.Errorf("Health of a process that is not ready = %v, want Unavailable and the reason", err)
	}
	srv.Close()
	if err := process.Health(t.Context(), config.Config{HTTP: addr}); !errors.Is(err, team.Unavailable) {
		t.Errorf("Health of a process that is gone = %v, want Unavailable", err)
	}
	if err := process.Health(t.Context(), config.Config{HTTP: "127.0.0.1:0"}); !errors.Is(err, team.InvalidArgument) || team.HintOf(err) == "" {
		t.Errorf("Health at an unknown port = %v, want InvalidArgument and a hint", err)
	}
}
