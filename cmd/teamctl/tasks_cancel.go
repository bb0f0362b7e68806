package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksCancelCmd() *cobra.Command {
	var reason string
	var all bool
	cmd := &cobra.Command{
		Use: "cancel {ID | --all}", Short: "Cancel a task, or with --all each that is open",
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return atMost(0)(cmd, args)
			}
			return exactly(1, "the task's ID, or --all")(cmd, args)
		},
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().BoolVar(&all, "all", false, "every task that is pending or in progress")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if all {
			return a.withTeam(func(ctx context.Context, t *client.Team) error { return a.cancelOpen(ctx, t, reason) })
		}
		id, err := team.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		return a.changeTask(taskUpdate{id: id, status: team.Cancelled, reason: reason}.apply)
	}
	return cmd
}

// cancelOpen cancels all open tasks, and prints those that it has cancelled.
func (a *app) cancelOpen(ctx context.Context, t *client.Team, reason string) error {
	open, err := t.Board().Open(ctx)
	if err != nil {
		return err
	}
	cancelled, err := t.Board().CancelAll(ctx, open, reason)
	views, verr := t.Board().Views(ctx, cancelled)
	if err := errors.Join(err, verr); err != nil {
		return err
	}
	if len(views) == 0 {
		a.note("there is no open task")
	}
	return a.printTasks(views)
}
