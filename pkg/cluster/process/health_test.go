package process_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentteam/pkg/cluster/process"
	"agentteam/pkg/team"
)

// health runs the sub-command for a process that listens at addr.
func health(t *testing.T, addr string) error {
	t.Setenv("AGENTTEAM_HTTP", addr)
	cmd := process.Command("leader", "Lead")
	cmd.SetArgs([]string{"health"})
	return cmd.ExecuteContext(t.Context())
}

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

	for _, at := range []string{addr, "0.0.0.0:" + port, ":" + port} {
		if err := health(t, at); err != nil {
			t.Errorf("health at %s = %v", at, err)
		}
	}
	ready = false
	if err := health(t, addr); !errors.Is(err, team.Unavailable) || !strings.Contains(team.Line(err), "NATS is not connected yet") {
		t.Errorf("health of a process that is not ready = %v, want Unavailable and the reason", err)
	}
	srv.Close()
	if err := health(t, addr); !errors.Is(err, team.Unavailable) {
		t.Errorf("health of a process that is gone = %v, want Unavailable", err)
	}
	if err := health(t, "127.0.0.1:0"); !errors.Is(err, team.InvalidArgument) || team.HintOf(err) == "" {
		t.Errorf("health at an unknown port = %v, want InvalidArgument and a hint", err)
	}
}
