// Package brokertest runs the real NATS server inside a test's process.
package brokertest

import (
	"context"
	"testing"
	"time"

	"agentteam/pkg/broker"
	"agentteam/pkg/broker/embedded"
	"agentteam/pkg/team"
)

// Server starts a server with JetStream on a free loopback port, its store in
// the test's folder, and returns its URL. It stops when the test ends.
func Server(t testing.TB) string {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s.URL()
}

// Connect connects to url until the test ends.
func Connect(t testing.TB, url string) *broker.Conn {
	t.Helper()
	c, err := broker.Connect(context.Background(), broker.Options{URL: url, Name: t.Name(), Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Team starts a server and makes a team on it.
func Team(t testing.TB, id team.TeamID) *broker.Team {
	t.Helper()
	bt, err := Connect(t, Server(t)).Make(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return bt
}
