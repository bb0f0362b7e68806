package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"agentteam/pkg/team"
)

// faults are the signals by which the system ends a program because of the program's own error.
var faults = []syscall.Signal{syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSYS}

// faulty reports whether a child ended by its own error, so that it would most likely end so again.
// A child that another process has ended by a signal, or that did not reach its server in time, is
// expected to start well.
func faulty(ended error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(ended, &exit) {
		return ended != nil // it could not be started
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return slices.Contains(faults, w.Signal())
	}
	code := exit.ExitCode() // 126 and 127 are the codes of a program that the system cannot load
	return code != 0 && code != team.ExitCode(team.Unavailable) && code != team.ExitCode(context.DeadlineExceeded) && code < 128
}

// breaks reports why a child cannot start, if the cluster needs the child: until all have answered
// that is each of them, later only the leader.
func (c *Cluster) breaks(label, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up && label != leader {
		return
	}
	select {
	case c.broken <- team.Errorf(team.InvalidState, "the %s process cannot start, tried %d times: %s", label, mostTries, reason):
	default: // another error waits already
	}
}

// lastLine passes on its input, and keeps the end of it.
type lastLine struct {
	to   io.Writer
	tail []byte
}

const mostOfTail = 4 << 10

// Write never fails: a program must not end because its log is full.
func (l *lastLine) Write(p []byte) (int, error) {
	if l.to != nil {
		_, _ = l.to.Write(p)
	}
	l.tail = append(l.tail, p...)
	l.tail = l.tail[max(0, len(l.tail)-mostOfTail):]
	return len(p), nil
}

// reason returns the last line, else how the program ended. It is called once the program has
// ended.
func (l *lastLine) reason(ended error) string {
	said := ""
	if l != nil {
		lines := strings.Split(strings.TrimSpace(string(l.tail)), "\n")
		said = team.Clean(team.OneLine(lines[len(lines)-1]), 1000)
	}
	return cmp.Or(said, fmt.Sprint(ended))
}
