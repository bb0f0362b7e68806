// Package brokertest runs real NATS servers for tests: one inside the test's process, or several as processes of their
// own, which a test can kill.
package brokertest

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

// replicatedEnv, if set, makes every Server a cluster of three, so that tests for one server run against replicated
// streams too (make test-r3).
const replicatedEnv = "AGENTTEAM_TEST_REPLICATED"

// Server starts a server with JetStream on a free loopback port, its store in
// the test's folder, and returns its URL. It stops when the test ends.
func Server(t testing.TB) string {
	t.Helper()
	if os.Getenv(replicatedEnv) != "" {
		return replicated(t)
	}
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s.URL()
}

// Connect connects to url until the test ends. Its new streams on a cluster are replicated on all servers.
func Connect(t testing.TB, url string) *broker.Conn {
	t.Helper()
	c, err := broker.Connect(context.Background(), broker.Options{URL: url, Name: t.Name(), Wait: 20 * time.Second, Replicas: 1 + strings.Count(url, ",")})
	if err != nil {
		t.Fatal(err)
	}
	Bound(t, c.Close, c.Follow)
	return c
}

// away bounds the time without a server: no test takes its server away for so long.
const away = 2 * Longest

// Bound calls end, which closes a connection, when the test ends, and once its server has been away for too long. Calls on
// the connection repeat until they are answered or it is closed: without a bound, a test whose server has died for good
// would hang, and so would all later tests.
func Bound(t testing.TB, end func(), follow func(ctx context.Context, f func(connected bool))) {
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		late := time.AfterFunc(away, end)
		late.Stop()
		defer late.Stop()
		follow(ctx, func(connected bool) {
			if late.Stop(); !connected {
				late.Reset(away)
			}
		})
	})
	t.Cleanup(func() {
		stop()
		following.Wait()
		end()
	})
}

// Team starts a server and makes a team on it.
func Team(t testing.TB, id team.TeamID) *broker.Storage {
	t.Helper()
	c := Connect(t, Server(t))
	_, err := c.Registry(t.Context()) // which is there before any team
	var bt *broker.Storage
	if err == nil {
		bt, err = c.Make(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bt
}

// shared is the cluster of all tests of a package, which run one after the other: a cluster for each would take seconds.
// It ends with the test's process.
var shared = sync.OnceValues(func() (*Cluster, error) {
	dir, err := os.MkdirTemp("", "brokertest-*")
	if err != nil {
		return nil, err
	}
	return startCluster(dir, 3, true)
})

// replicated returns the URL of the shared cluster, which is empty at the start of each test.
func replicated(t testing.TB) string {
	t.Helper()
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.removeStreams(); err != nil {
			t.Error(err)
		}
	})
	return c.URL()
}
