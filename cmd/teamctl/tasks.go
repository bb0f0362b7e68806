package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksCmd() *cobra.Command {
	cmd := group(a.tasksLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "tasks", []string{"task"}, "Work on the team's board; by itself it lists the tasks"
	cmd.AddCommand(a.tasksLsCmd(), a.tasksGetCmd(), a.tasksAddCmd(), a.tasksClaimCmd(), a.tasksReleaseCmd(),
		a.tasksUpdateCmd(), a.tasksCancelCmd(), a.tasksGraphCmd())
	return cmd
}

// taskFilter says which tasks are listed.
type taskFilter struct {
	status, assignee     string
	claimable, cancelled bool
}

// statusBlocked is what people see of a pending task that waits for others.
const statusBlocked = "blocked"

func (a *app) tasksLsCmd() *cobra.Command {
	var f taskFilter
	var wide bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the tasks in order of id", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if wide && a.output == asTable {
				a.output = asWide
			}
			var tasks []team.TaskView
			err := a.readTeam(func(ctx context.Context, t *client.Team) (err error) {
				tasks, err = t.Tasks(ctx)
				return err
			})
			if err != nil {
				return err
			}
			return a.printTasks(slices.DeleteFunc(tasks, func(v team.TaskView) bool { return !f.match(v) }))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.status, "status", "", "only tasks that are pending, blocked, in_progress, completed, failed or cancelled")
	flags.StringVar(&f.assignee, "assignee", "", "only tasks that this member holds or held last")
	flags.BoolVar(&f.claimable, "claimable", false, "only tasks that could be claimed now")
	flags.BoolVar(&f.cancelled, "all", false, "also cancelled tasks")
	flags.BoolVarP(&wide, "wide", "w", false, "more columns, as -o wide")
	return cmd
}

func (f *taskFilter) check() error {
	if f.status != "" && f.status != statusBlocked {
		s, err := team.ParseTaskStatus(f.status)
		if err != nil {
			return err
		}
		f.status = string(s)
	}
	if f.assignee != "" {
		_, err := team.ParseAgentID(f.assignee)
		return err
	}
	return nil
}

func (f *taskFilter) match(v team.TaskView) bool {
	switch {
	case v.Status == team.Cancelled && !f.cancelled && f.status != string(team.Cancelled),
		f.status == statusBlocked && !v.IsBlocked,
		f.status != "" && f.status != statusBlocked && f.status != string(v.Status),
		f.assignee != "" && f.assignee != string(v.Assignee),
		f.claimable && (v.Status != team.Pending || v.IsBlocked):
		return false
	}
	return true
}

var priorities = []string{"normal", "high", "critical"}

// shownStatus is the status as people see it.
func shownStatus(v team.TaskView) string {
	if v.IsBlocked {
		return statusBlocked
	}
	return string(v.Status)
}

func shownPriority(p int) string {
	if p >= 0 && p < len(priorities) {
		return priorities[p]
	}
	return fmt.Sprint(p)
}

func (a *app) printTasks(tasks []team.TaskView) error {
	return printList(a, tasks, func(v team.TaskView) string { return string(v.ID) }, func(wide bool) table {
		t := table{columns: []column{{head: "ID"}, {head: "STATUS"}, {head: "PRIO", drop: 4}, {head: "ASSIGNEE", cut: true}, {head: "TITLE", cut: true}}}
		if wide {
			t.columns = slices.Insert(t.columns, 4, column{head: "DEPENDENCIES", cut: true, drop: 1}, column{head: "ROLE", drop: 2},
				column{head: "ATTEMPTS", drop: 5}, column{head: "UPDATED", drop: 3})
		}
		for _, v := range tasks {
			row := []string{string(v.ID), paint(shownStatus(v)), shownPriority(v.Priority), orDash(string(v.Assignee)), printable(v.Title)}
			if wide {
				row = slices.Insert(row, 4, orDash(joinIDs(v.Dependencies)), orDash(v.Role), fmt.Sprint(v.Attempts), age(v.UpdatedAt))
			}
			t.add(row...)
		}
		return t
	})
}

// printTask prints what became of one task: the record for programs, a line that
// says it for people.
func (a *app) printTask(ctx context.Context, t *client.Team, task team.Task, what string) error {
	v, err := t.View(ctx, task)
	if err != nil {
		return err
	}
	return a.print(v, nil, []string{string(v.ID)}, func(io.Writer, bool) error {
		return a.say(fmt.Sprintf("%s %s: %s", v.ID, what, v.Title))
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func joinIDs(ids []team.TaskID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = string(id)
	}
	return strings.Join(parts, ",")
}
