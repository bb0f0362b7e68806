package main

import (
	"github.com/spf13/cobra"

	"agentteam/pkg/team"
)

func (a *app) tasksReleaseCmd() *cobra.Command {
	u := taskUpdate{status: team.Pending}
	cmd := &cobra.Command{
		Use: "release ID", Short: "Put a task back on the board", Args: exactly(1, "the task's ID"),
		Long: "release puts a task in progress back on the board: with --as for the person's seat that holds it,\n" +
			"without for whoever does. Of a task that is reserved for a member it ends the reservation.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status == team.InProgress || v.ReservedFor != "" }),
	}
	as := a.memberFlag(cmd, "as", completePresent, "the person's seat that gives it back")
	cmd.Flags().StringVar(&u.reason, "reason", "", "why; the next one reads it")
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		if u.id, err = team.ParseTaskID(args[0]); err != nil {
			return err
		}
		if u.as, err = as(); err != nil {
			return err
		}
		return a.changeTask(u.apply)
	}
	return cmd
}
