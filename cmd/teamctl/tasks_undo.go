package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksUndoCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "undo ID", Short: "Take back what a completed task has changed", Args: exactly(1, "the task's ID"),
		Long: "undo reverts the commit of a completed task in the team's line. The task stays completed, its record names the\n" +
			"commit that takes it back, and the leader gets mail. It is refused, with files and tasks, if later work builds on it.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Commit != "" && v.Undone == "" }),
	}
	as := a.memberFlag(cmd, "as", completePresent, "the person's seat in whose name")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		id, err := team.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		name, err := as()
		if err != nil {
			return err
		}
		return a.changeTask(func(ctx context.Context, t *client.Team) (team.Task, string, error) {
			task, undone, err := t.Branch().Undo(ctx, id, name)
			if !undone {
				return task, "was undone before", err
			}
			return task, "undone", err
		})
	}
	return cmd
}
