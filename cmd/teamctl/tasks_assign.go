package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksAssignCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "assign ID --to NAME", Short: "Give a task to a member", Args: exactly(1, "the task's ID"),
		Long: "assign has the running teammate NAME take the task, whatever its role, and waits for its answer. If somebody\n" +
			"else holds the task, it is taken from them. If nobody runs under that name, a person's seat takes it, also from\n" +
			"somebody else; it is made on first use.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	cmd.Flags().StringVar(&to, "to", "", "who is to do it; required")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"to": completeMembers})
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		id, err := team.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		if to == "" {
			return team.Errorf(team.InvalidArgument, "who is to do %s?", id).WithHint("add --to NAME")
		}
		name, err := team.ParseAgentID(to)
		if err != nil {
			return err
		}
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			task, seated, err := t.Assign(ctx, id, name)
			if err != nil {
				return err
			}
			if seated {
				a.noteSeat(name, id)
			}
			return a.printTask(ctx, t, task, "assigned to "+to)
		})
	}
	return cmd
}

// noteSeat says that a task has gone to a person, in case the name was mistyped: a
// person's task never comes back by itself.
func (a *app) noteSeat(name team.AgentID, id team.TaskID) {
	fmt.Fprintf(a.err, "no member is called %s: a person's seat of that name was made and has %s now (undo it with: teamctl tasks release %s)\n", name, id, id)
}
