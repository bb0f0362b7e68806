package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksReleaseCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "release ID", Short: "Put a task back on the board", Args: exactly(1, "the task's ID"),
		Long: "release puts a task in progress back on the board: with --as for the person's seat that holds it,\n" +
			"without for whoever does. Of a task that is reserved for a member it ends the reservation.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status == team.InProgress || v.ReservedFor != "" }),
	}
	as := a.memberFlag(cmd, "as", completePresent, "the person's seat that gives it back")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the next one reads it")
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
			task, err := t.Board().Release(ctx, id, name, reason)
			return task, "released", err
		})
	}
	return cmd
}
