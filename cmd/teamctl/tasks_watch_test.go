package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
)

// lines gives what is written to w a line at a time.
func lines(t *testing.T) (w io.Writer, next func(want string)) {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	all := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			all <- s.Text()
		}
	}()
	return w, func(want string) {
		t.Helper()
		late := time.After(brokertest.Longest)
		for {
			select {
			case line := <-all:
				if strings.Contains(line, want) {
					return
				}
				t.Logf("passed over: %s", line)
			case <-late:
				t.Fatalf("no line with %q came", want)
			}
		}
	}
}

// Whoever watches is told when the server has gone, and when it is back what became
// of the board goes on.
func TestWatchTellsOfServer(t *testing.T) {
	for _, follow := range [][]string{{"tasks", "-w"}, {"events", "--follow"}} {
		t.Run(strings.Join(follow, " "), func(t *testing.T) {
			dir := t.TempDir()
			srv, err := embedded.Start(embedded.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { srv.Shutdown() }()
			address := srv.URL()
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			port, err := strconv.Atoi(u.Port())
			if err != nil {
				t.Fatal(err)
			}
			teamctl := func(args ...string) {
				t.Helper()
				if err := newApp(io.Discard, io.Discard).run(t.Context(), append(args, "--server", address)); err != nil {
					t.Fatalf("%q: %v", args, err)
				}
			}
			teamctl("tasks", "add", "--title", "one")
			teamctl("tasks", "claim", "1", "--as", "alice")

			ctx, cancel := context.WithCancel(t.Context())
			out, printed := lines(t)
			errs, said := lines(t)
			ended := make(chan error, 1)
			go func() { ended <- newApp(out, errs).run(ctx, append(follow, "--server", address)) }()
			defer func() { cancel(); brokertest.Receive(t, "the command ends", ended) }()

			printed("one")
			srv.Shutdown()
			said("NATS is away")
			if srv, err = embedded.Start(embedded.Options{Dir: dir, Port: port}); err != nil {
				t.Fatal(err)
			}
			said("NATS is back")
			teamctl("tasks", "update", "1", "--status", "completed", "--as", "alice", "--summary", "done")
			printed("completed")
		})
	}
}
