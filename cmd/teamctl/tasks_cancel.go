package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksCancelCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Give a task up", Args: exactly(1, "the task's ID"),
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		id, err := team.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			task, err := t.Cancel(ctx, id, "", reason)
			if err != nil {
				return err
			}
			return a.printTask(ctx, t, task, "cancelled")
		})
	}
	return cmd
}
