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
		Use: "cancel {ID | --all}", Short: "Give a task up, or with --all each that is open",
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

// cancelOpen cancels every open task, and prints those that it has cancelled.
func (a *app) cancelOpen(ctx context.Context, t *client.Team, reason string) error {
	open, err := t.OpenTasks(ctx)
	if err != nil {
		return err
	}
	cancelled, err := t.CancelAll(ctx, open, reason)
	views, verr := t.Views(ctx, cancelled)
	if err := errors.Join(err, verr); err != nil {
		return err
	}
	if len(views) == 0 {
		a.note("there is no open task")
	}
	return a.printTasks(views)
}
