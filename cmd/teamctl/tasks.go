package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksCmd() *cobra.Command {
	cmd := group(readsStored(a, a.tasksLsCmd()))
	cmd.Use, cmd.Aliases, cmd.Short = "tasks", []string{"task"}, "Work on the team's board; by itself it lists the tasks"
	cmd.AddCommand(readsStored(a, a.tasksLsCmd()), readsStored(a, a.tasksGetCmd()), makesTeam(a.tasksAddCmd()), a.tasksClaimCmd(), a.tasksAssignCmd(), a.tasksReleaseCmd(),
		a.tasksUpdateCmd(), a.tasksCancelCmd(), a.tasksUndoCmd(), a.tasksWaitCmd(), readsStored(a, a.tasksGraphCmd()), readsStored(a, a.tasksHistoryCmd()))
	return cmd
}

// statuses maps task ids to statuses.
type statuses map[team.TaskID]team.TaskStatus

func statusesOf(tasks []team.TaskView) statuses {
	s := make(statuses, len(tasks))
	for _, v := range tasks {
		s[v.ID] = v.Status
	}
	return s
}

// of returns the status of a task.
func (s statuses) of(id team.TaskID) team.TaskStatus { return s[id] }

// holder returns who has the task, or had it when it ended; nobody for a pending task, whoever held it last.
// For a task in progress it adds what its holder does, if that was reported.
func holder(v team.TaskView) string {
	if v.Status == team.Pending {
		return ""
	}
	if doing := v.Doing(); doing != "" && v.Status == team.InProgress {
		return string(v.Assignee) + " (" + doing + ")"
	}
	return string(v.Assignee)
}

// printTasks prints a list of tasks.
func (a *app) printTasks(tasks []team.TaskView) error {
	return printList(a, tasks, func(v team.TaskView) string { return string(v.ID) }, func() table {
		waits := slices.ContainsFunc(tasks, func(v team.TaskView) bool { return v.Why != "" })
		t := table{columns: []column{{head: "ID"}, {head: "STATUS"}, {head: "PRIO", drop: 5}, {head: "ASSIGNEE", cut: true, drop: 1},
			{head: "DEPENDENCIES", cut: true, drop: 3, wide: true}, {head: "WAITING FOR", cut: true, drop: 2, wide: !waits},
			{head: "ROLE", drop: 4, wide: true}, {head: "ATTEMPTS", drop: 7, wide: true}, {head: "UPDATED", drop: 6, wide: true}, {head: "TITLE", cut: true}}}
		for _, v := range tasks {
			t.add(string(v.ID), paint(v.Shown()), team.PriorityName(v.Priority), orDash(holder(v)), orDash(strings.Join(team.Strings(v.Dependencies...), ",")),
				orDash(printable(v.Why)), orDash(v.Role), fmt.Sprint(v.Attempts), age(v.UpdatedAt), printable(v.Title))
		}
		return t
	})
}

// changeTask calls f, which changes a task and describes that, and prints the result.
func (a *app) changeTask(f func(context.Context, *client.Team) (task team.Task, done string, err error)) error {
	return a.withTeam(func(ctx context.Context, t *client.Team) error {
		task, done, err := f(ctx, t)
		if err != nil {
			return err
		}
		return a.printTask(ctx, t, task, done)
	})
}

// printTask prints the result of a change: the record for programs, a sentence for people.
func (a *app) printTask(ctx context.Context, t *client.Team, task team.Task, what string) error {
	v, err := t.Board().View(ctx, task)
	if err != nil {
		return err
	}
	return a.printLine(v, string(v.ID), fmt.Sprintf("%s %s: %s", v.ID, what, v.Title))
}

// warnBad lists records that cannot be read, and so are missing in the output.
func (a *app) warnBad(bad []team.Quarantined) {
	for _, q := range bad {
		fmt.Fprintf(a.err, "not shown: %s at revision %d: %s\n", q.Key, q.Revision, printable(team.OneLine(q.Error)))
	}
}

func orDash(s string) string { return cmp.Or(s, "-") }
