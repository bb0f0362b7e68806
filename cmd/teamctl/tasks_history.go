package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksHistoryCmd() *cobra.Command {
	return &cobra.Command{
		Use: "history ID", Short: "Tell what became of a task: who did what, when and why", Args: exactly(1, "the task's ID"),
		ValidArgsFunction: completeTasks(1, anyTask),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := team.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			var steps []team.Step
			var whole bool
			err = a.withTeam(func(ctx context.Context, t *client.Team) (err error) {
				steps, whole, err = t.History(ctx, id)
				return err
			})
			if err != nil {
				return err
			}
			if !whole {
				fmt.Fprintf(a.err, "the bucket keeps the last copies of a record only: what became of %s before is not known\n", id)
			}
			return a.printHistory(steps)
		},
	}
}

func (a *app) printHistory(steps []team.Step) error {
	return printList(a, steps, func(s team.Step) string { return fmt.Sprint(s.Revision) }, func(wide bool) table {
		t := table{columns: []column{{head: "TIME", drop: 1}, {head: "BY"}, {head: "WHAT"}, {head: "STATUS", drop: 3}, {head: "EPOCH", drop: 2}}}
		if wide {
			t.columns = append(t.columns, column{head: "ASSIGNEE", drop: 4}, column{head: "REVISION", drop: 5})
		}
		t.columns = append(t.columns, column{head: "WHY", cut: true})
		for _, s := range steps {
			row := []string{moment(&s.At), orDash(string(s.By)), printable(s.What), paint(string(s.To)), fmt.Sprint(s.Epoch)}
			if wide {
				row = append(row, orDash(string(s.Assignee)), fmt.Sprint(s.Revision))
			}
			t.add(append(row, printable(strings.Join(strings.Fields(s.Why), " ")))...)
		}
		return t
	})
}
