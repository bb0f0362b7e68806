package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// A command that waits says for what, once it has for a while, and never when it is over.
func TestWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		a := newApp(io.Discard, &errs)
		over := a.waitsFor("nothing much")
		time.Sleep(patience - time.Millisecond)
		over()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if errs.Len() > 0 {
			t.Errorf("a short wait says %q", errs.String())
		}
		over = a.waitsFor("an answer")
		time.Sleep(patience)
		synctest.Wait()
		over()
		if errs.String() != "waiting for an answer\n" {
			t.Errorf("a long wait says %q", errs.String())
		}
	})
}

// A command that is still connecting hears that its cluster was ended meanwhile.
func TestWhileThere(t *testing.T) {
	dir := t.TempDir()
	if err := config.WriteCluster(dir, config.Cluster{NATS: "nats://127.0.0.1:1", PIDs: []int{os.Getpid()}}); err != nil {
		t.Fatal(err)
	}
	cl, file, err := config.FindCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := whileThere(t.Context(), file, cl)
	defer stop()
	if err := config.RemoveCluster(dir); err != nil {
		t.Fatal(err)
	}
	brokertest.Receive(t, "the connecting ends", ctx.Done())
	if cause := context.Cause(ctx); !errors.Is(cause, errClusterEnded) || team.CodeOf(cause) != team.Unavailable {
		t.Errorf("the connecting ended because %v", cause)
	}
}

// A command that asks once ends within 3 s of the loss of its server, in one line; one that follows
// waits, and says so.
func TestServerGoesAway(t *testing.T) {
	for name, asks := range map[string]bool{"asks": true, "follows": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := brokertest.NewProxy(t, brokertest.Server(t))
			var errs said
			a := newApp(io.Discard, &errs)
			a.brief = asks
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := a.linked(ctx, config.Config{Server: proxy.URL}, func(ctx context.Context, c *client.Client) error {
				proxy.Close()
				if !asks {
					brokertest.Until(t, "the loss is printed", func() bool { return errs.String() != "" })
					cancel()
				}
				_, err := c.Teams(ctx)
				return err
			})
			line := team.Line(err)
			if away := "NATS is away at " + strings.TrimPrefix(proxy.URL, "nats://"); asks && (team.ExitCode(err) != 5 || !strings.Contains(strings.ReplaceAll(line, "nats://", ""), away) || strings.Contains(err.Error(), "\n") || errs.String() != "") {
				t.Errorf("it ends with %v: %q, after %q", err, line, errs.String())
			}
			if !asks && !strings.Contains(errs.String(), "waiting until it is back") {
				t.Errorf("it prints %q", errs.String())
			}
		})
	}
}

// said is what a command says, from several goroutines.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
