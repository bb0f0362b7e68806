package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/config"
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
