package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func boardOf(tasks ...team.Task) []team.TaskView { return team.View(tasks) }

func node(id team.TaskID, s team.TaskStatus, title string, deps ...team.TaskID) team.Task {
	return team.Task{ID: id, Status: s, Title: title, Dependencies: deps}
}

func drawn(t *testing.T, tasks []team.TaskView, all bool) string {
	t.Helper()
	var out bytes.Buffer
	g := team.GraphOf(tasks)
	if !all {
		g.Nodes = worthShowing(g)
	}
	newApp(&out, &out).printGraph(g, statusesOf(tasks))
	return out.String()
}

// The drawing has its columns aligned. A cancelled task is left out unless another
// one that is shown comes after it.
func TestPrintGraph(t *testing.T) {
	tasks := boardOf(
		node("T-001", team.Completed, "写一个测试 🚀"),
		node("T-002", team.Cancelled, "that others wait for"),
		node("T-003", team.Pending, "waits for what is given up", "T-001", "T-002"),
		node("T-004", team.InProgress, "\x1b[31mcolour\x07 \u202eturned", "T-001"),
		node("T-006", team.Failed, ""),
		node("T-007", team.Pending, "two\nlines\tand a tab"),
		node("T-008", team.Pending, "last", "T-003", "T-006"),
		node("T-010", team.Pending, "its dependency cannot be read", "T-009"),
		node("T-011", team.Cancelled, "before one that is cancelled too"),
		node("T-012", team.Cancelled, "that nobody waits for", "T-011"),
		node("T-1000", team.Completed, "done though it waited for what was given up", "T-002"),
	)
	const shown = `ID         STATUS       DEPENDENCIES             TITLE
T-001      completed    -                        写一个测试 🚀
T-002      cancelled    -                        that others wait for
T-006      failed       -
T-007      pending      -                        two lines and a tab
T-009      unknown      -
  T-003    blocked      T-001,T-002 (cancelled)  waits for what is given up
  T-004    in_progress  T-001                    [31mcolour turned
  T-010    blocked      T-009 (unknown)          its dependency cannot be read
  T-1000   completed    T-002                    done though it waited for what was given up
    T-008  blocked      T-003,T-006 (failed)     last
`
	if got := drawn(t, tasks, false); got != shown {
		t.Errorf("drawn was\n%s, want\n%s", got, shown)
	}
	if got := drawn(t, tasks, true); !strings.Contains(got, "before one that is cancelled too") || !strings.Contains(got, "that nobody waits for") {
		t.Errorf("with all tasks, drawn was\n%s", got)
	}
}

// A long chain must not push what it says out of the window.
func TestPrintGraphOfChain(t *testing.T) {
	chain := []team.Task{node("T-001", team.Pending, "x")}
	for n := 2; n <= 1000; n++ {
		chain = append(chain, node(team.MakeTaskID(n), team.Pending, fmt.Sprint(n), team.MakeTaskID(n-1)))
	}
	for line := range strings.Lines(drawn(t, boardOf(chain...), false)) {
		if len(line) > 80 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
}
