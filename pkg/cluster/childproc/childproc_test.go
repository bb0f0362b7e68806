package childproc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/team"
)

// asChild makes the test binary a child of the test.
const asChild = "AGENTTEAM_TEST_AS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	ctx := childproc.WithLifeline(context.Background(), childproc.Lifeline())
	fmt.Println("up", syscall.Getpgrp() == os.Getpid())
	select {
	case <-ctx.Done():
		fmt.Println(context.Cause(ctx))
	case <-time.After(time.Minute):
		fmt.Println("nobody ended it")
	}
}

// started is a child that is up, and what it prints from then on.
func started(t *testing.T, lifeline *os.File) (*childproc.Process, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p, err := childproc.Start(self, nil, []string{asChild + "=1"}, lifeline, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); <-p.Done() })
	said := bufio.NewReader(r)
	if line, err := said.ReadString('\n'); line != "up true\n" {
		t.Fatalf("the child says %q (%v), want that it is up, in a process group of its own", line, err)
	}
	return p, said
}

func TestLifeline(t *testing.T) {
	lifeline, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer lifeline.Close()
	p, said := started(t, lifeline)
	held.Close() // as it happens when its owner ends, in whatever way
	line, _ := said.ReadString('\n')
	<-p.Done()
	if p.Err() != nil || !strings.Contains(line, "owner has ended") {
		t.Errorf("the child ended with %v and said %q", p.Err(), line)
	}
}

func TestTerminate(t *testing.T) {
	p, _ := started(t, nil) // without a lifeline only a signal ends it
	if err := syscall.Kill(p.PID(), 0); err != nil {
		t.Fatalf("process %d: %v", p.PID(), err)
	}
	p.Terminate()
	if <-p.Done(); p.Err() == nil {
		t.Error("a child that SIGTERM has ended ended well")
	}
}

func TestNoLifeline(t *testing.T) {
	if f := childproc.Lifeline(); f != nil {
		t.Errorf("a process that nobody started as a child has the lifeline %v", f.Name())
	}
	if ctx := t.Context(); childproc.WithLifeline(ctx, nil) != ctx {
		t.Error("without a lifeline the context is another")
	}
}

func TestStartNothing(t *testing.T) {
	if _, err := childproc.Start(filepath.Join(t.TempDir(), "leader"), nil, nil, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestFindBinary(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "agentteam-test-program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got, err := childproc.FindBinary(filepath.Base(program)); err != nil || got != program {
		t.Errorf("in PATH it is %q, %v; want %q", got, err, program)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := childproc.FindBinary(filepath.Base(self)); err != nil || got != self {
		t.Errorf("beside the running program it is %q, %v; want %q", got, err, self)
	}
	if _, err := childproc.FindBinary("agentteam-absent"); !errors.Is(err, team.NotFound) || team.HintOf(err) == "" {
		t.Errorf("an absent program: %v; want not_found with a hint", err)
	}
}
