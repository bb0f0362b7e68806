package main

import (
	"github.com/spf13/cobra"

	"agentteam/pkg/team"
)

func (a *app) tasksClaimCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "claim ID --as NAME", Short: "Have a member take a task", Args: exactly(1, "the task's ID"),
		Long: "claim asks the running teammate NAME to take the task and waits for its answer.\n" +
			"If nobody runs under that name, a person's seat of that name takes it; it is made on first use.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Claimable(v.ReservedFor, v.Role) }),
	}
	as := a.memberFlag(cmd, "as", completePresent, "who takes it; required")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		id, err := team.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		name, err := as()
		if err != nil {
			return err
		}
		if name == "" {
			return team.Errorf(team.InvalidArgument, "who is to claim %s?", id).WithHint("add --as NAME")
		}
		a.awaited = string(name) + " to take the task"
		return a.changeTask(taskUpdate{id: id, as: name, status: team.InProgress}.apply)
	}
	return cmd
}
