package process

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// healthWait is how long a process may take to answer whether it is ready.
const healthWait = 3 * time.Second

// health asks the process with these settings, on this machine, whether it is ready. It is for the
// health check of a container, whose image may have no other client. Errors: Unavailable if the
// process does not answer or is not ready; InvalidArgument if the settings do not contain its port.
func health(ctx context.Context, cfg config.Config) error {
	host, port, err := net.SplitHostPort(cfg.HTTP)
	if err != nil || port == "0" {
		return team.Errorf(team.InvalidArgument, "the process listens on a port of its own choice (%s)", cfg.HTTP).
			WithHint("give it and this command the same AGENTTEAM_HTTP, with a port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "%w", err)
	}
	// Not the default client: the process is on this machine, and the proxy settings are for its
	// tools.
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return team.Errorf(team.Unavailable, "the process does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return team.Errorf(team.Unavailable, "not ready: %s", bytes.TrimSpace(why))
	}
	return nil
}
