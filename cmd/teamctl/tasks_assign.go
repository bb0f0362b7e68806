package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksAssignCmd() *cobra.Command {
	var seat bool
	cmd := &cobra.Command{
		Use: "assign ID --to NAME", Short: "Give a task to a member", Args: exactly(1, "the task's ID"),
		Long: "assign has the running teammate NAME take the task, whatever its role. If somebody else holds the task, it is taken\n" +
			"from them. A pending task that NAME cannot take now is reserved for it: nobody else gets it, and NAME takes it as soon\n" +
			"as it is free. `tasks release` ends a reservation. NAME may be a person's seat; --seat makes one, if no member has\n" +
			"that name.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	to := a.memberFlag(cmd, "to", completePresent, "who is to do it; required")
	cmd.Flags().BoolVar(&seat, "seat", false, "if no member has that name, make a person's seat of it")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		id, err := team.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		name, err := to()
		if err != nil {
			return err
		}
		if name == "" {
			return team.Errorf(team.InvalidArgument, "who is to do %s?", id).WithHint("add --to NAME")
		}
		a.awaited = string(name) + " to take the task"
		return a.changeTask(func(ctx context.Context, t *client.Team) (task team.Task, given string, err error) {
			b := t.Board()
			if seat {
				b = b.Seating(name)
			}
			if task, _, err = b.Assign(ctx, id, name); err == nil {
				given, err = a.given(ctx, t, task, name)
			}
			return task, given, err
		})
	}
	return cmd
}

// given describes the result of an assignment: the member has the task, or what it waits for.
func (a *app) given(ctx context.Context, t *client.Team, task team.Task, to team.AgentID) (string, error) {
	if task.Status != team.Pending {
		return "assigned to " + string(to), nil
	}
	v, err := t.Board().View(ctx, task)
	if err != nil {
		return "", err
	}
	one := []team.TaskView{v}
	if err := t.Board().Explain(ctx, one, nil); err != nil {
		return "", err
	}
	switch why := one[0].Why; {
	case v.IsBlocked:
		return "reserved for " + string(to) + ", waits for " + why, nil
	case why != "":
		return why, nil
	}
	return "reserved for " + string(to), nil
}
