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

// faults are the signals by which the system ends a program for what it does.
var faults = []syscall.Signal{syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSYS}

// faulty reports whether a child that ended like this would most likely end so again: by its own error. What others
// have ended by a signal, and what did not reach its server in time, starts again well.
func faulty(ended error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(ended, &exit) {
		return ended != nil // it could not be started
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return slices.Contains(faults, w.Signal())
	}
	code := exit.ExitCode() // 126 and 127 are of a program that the system cannot load
	return code != 0 && code != team.ExitCode(team.Unavailable) && code != team.ExitCode(context.DeadlineExceeded) && code < 128
}

// breaks reports why a child cannot start, if the cluster cannot do without the child: before all have answered each
// of them is needed, later the leader.
func (c *Cluster) breaks(label, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up && label != leader {
		return
	}
	select {
	case c.broken <- team.Errorf(team.InvalidState, "the %s process cannot start, tried %d times: %s", label, mostTries, reason):
	default: // another one's is there
	}
}

// lastLine passes on what is written to it, and keeps the end of it.
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

// reason is the last line, else how the program ended. It is called once the program has ended.
func (l *lastLine) reason(ended error) string {
	said := ""
	if l != nil {
		lines := strings.Split(strings.TrimSpace(string(l.tail)), "\n")
		said = team.Clean(team.OneLine(lines[len(lines)-1]), 1000)
	}
	return cmp.Or(said, fmt.Sprint(ended))
}
