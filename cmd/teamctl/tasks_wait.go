package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksWaitCmd() *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use: "wait ID...", Short: "Wait until tasks are completed, and print them",
		Long: "wait returns once every task has the status, and prints the tasks. It ends with status 1 as soon as\n" +
			"one of them has ended otherwise, and with 124 when the time given by --timeout has passed; without that\n" +
			"it waits as long as it takes. A completed task counts as one that was in_progress.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return team.Errorf(team.InvalidArgument, "%s takes the ids of tasks", cmd.CommandPath()).WithHint("usage: %s", cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeTasks(0, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	cmd.Flags().StringVar(&until, "for", string(team.Completed), "the status to wait for: pending, in_progress, completed, failed or cancelled")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"for": fixed(shownStatuses...)})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseTaskIDs(args)
		if err != nil {
			return err
		}
		status, err := team.ParseTaskStatus(until)
		if err != nil {
			return err
		}
		return a.waitFor(cmd.Context(), ids, status)
	}
	return cmd
}

var errReached = errors.New("every task has the status")

// waitFor prints the tasks as they stand when the waiting has ended, however.
func (a *app) waitFor(ctx context.Context, ids []team.TaskID, status team.TaskStatus) error {
	now, known := make([]team.TaskView, len(ids)), statuses{}
	err := a.following(ctx, openTeam, func(ctx context.Context, t *client.Team) error {
		for _, id := range ids { // and not for one that does not exist
			if _, err := t.Task(ctx, id); err != nil {
				return err
			}
		}
		return t.Watch(ctx, func(b client.Board) error {
			for _, v := range b.Tasks {
				known[v.ID] = v.Status
				if at := slices.Index(ids, v.ID); at >= 0 {
					now[at] = v
				}
			}
			return reached(now, status)
		})
	})
	if now[0].ID != "" {
		if perr := a.printTasks(now, known); perr != nil {
			return perr
		}
	}
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// reached returns errReached if all tasks have the status, an error that names the
// first that can no longer get it, or nil if there is something to wait for.
func reached(tasks []team.TaskView, status team.TaskStatus) error {
	open := false
	for _, v := range tasks {
		switch {
		case v.Status == status || status == team.InProgress && v.Status == team.Completed:
		case v.Status.Open():
			open = true
		default:
			return team.Errorf(team.InvalidState, "%s is %s and will not be %s%s", v.ID, v.Status, status, why(v.Task))
		}
	}
	if open {
		return nil
	}
	return errReached
}
