package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksGetCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show one task with all its texts", Args: exactly(1, "the task's ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := team.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			var v team.TaskView
			err = a.withTeam(func(ctx context.Context, t *client.Team) (err error) {
				v, err = t.Task(ctx, id)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(v, nil, []string{string(v.ID)}, func(io.Writer, bool) error {
				return writeFields(a.screen(), taskFields(v))
			})
		},
	}
}

func taskFields(v team.TaskView) []field {
	attempts := ""
	if v.Attempts > 0 {
		attempts = fmt.Sprintf("%d of %d", v.Attempts, team.MaxAttempts)
	}
	return []field{
		{"id", string(v.ID)}, {"title", v.Title}, {"status", shownStatus(v)}, {"priority", shownPriority(v.Priority)},
		{"assignee", string(v.Assignee)}, {"role", v.Role},
		{"dependencies", joinIDs(v.Dependencies)}, {"waiting for", joinIDs(v.WaitingFor)}, {"blocks", joinIDs(v.Blocks)},
		{"attempts", attempts}, {"reason", v.Reason},
		{"created", moment(&v.CreatedAt) + " by " + string(v.CreatedBy)}, {"claimed", moment(v.ClaimedAt)}, {"completed", moment(v.CompletedAt)},
		{"deliverable", v.DeliverablePath}, {"description", v.Description}, {"result", v.ResultSummary},
	}
}
