package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksGetCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show one task with all its texts", Args: exactly(1, "the task's ID"),
		ValidArgsFunction: completeTasks(1, anyTask),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := team.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				v, err := t.Board().Task(ctx, id)
				if err != nil {
					return err
				}
				one := []team.TaskView{v}
				if err := t.Board().Explain(ctx, one, nil); err != nil {
					return err
				}
				return a.printFields(one[0], string(id), taskFields(one[0]))
			})
		},
	}
}

func taskFields(v team.TaskView) []field {
	var returned []string
	for _, y := range v.Returned {
		state := "not merged"
		if y.Unfinished {
			state = "not finished"
		}
		if y.Host != "" {
			state += ", also on host " + y.Host
		}
		returned = append(returned, fmt.Sprintf("%s of %s, %s", cmp.Or(y.Commit, "files that are not stored"), y.By, state)+onlyIf(y.LeftOut != "", ": "+y.LeftOut))
	}
	if _, stored := v.Work(); stored && v.Status != team.Completed {
		returned = append(returned, fmt.Sprintf("teamctl diff %s shows the newest that is stored", v.ID))
	}
	var artifacts []string
	for _, a := range v.Artifacts {
		artifacts = append(artifacts, fmt.Sprintf("%s (%d bytes)", a.Path, a.Bytes))
	}
	// Only where there is one, or one is expected.
	deliverable := onlyIf(v.DeliverableReq || v.Digest != "", v.DeliverablePath) + onlyIf(v.DeliverableReq, " (required)")
	return []field{
		{"id", string(v.ID)}, {"title", v.Title}, {"status", v.Shown()}, {"priority", team.PriorityName(v.Priority)},
		{"assignee", holder(v)}, {"reserved for", string(v.ReservedFor)}, {"last held by", onlyIf(v.Status == team.Pending, string(v.Assignee))}, {"role", v.Role},
		{"needs a plan", onlyIf(v.Gate != "", "yes; approver: "+string(v.Gate))},
		{"dependencies", strings.Join(team.Strings(v.Dependencies...), ",")}, {"waiting for", v.Why}, {"blocks", strings.Join(team.Strings(v.Blocks...), ",")},
		{"attempts", onlyIf(v.Attempts > 0, fmt.Sprintf("%d of %d", v.Attempts, team.MaxAttempts))}, {"reason", v.Reason}, {"revision", fmt.Sprint(v.Revision)}, {"epoch", fmt.Sprint(v.Epoch)},
		{"created", moment(&v.CreatedAt) + " by " + string(v.CreatedBy)}, {"claimed", moment(v.ClaimedAt)}, {"completed", moment(v.CompletedAt)},
		{"check", v.Check}, {"deliverable", deliverable}, {"digest", v.Digest}, {"artifacts", strings.Join(artifacts, "\n")}, {"commit", v.Commit}, {"returned", strings.Join(returned, "\n")}, {"undone by", v.Undone}, {"description", v.Description}, {"result", v.ResultSummary},
	}
}
