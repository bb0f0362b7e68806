package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

func (a *app) tasksHistoryCmd() *cobra.Command {
	return &cobra.Command{
		Use: "history ID", Short: "Show the history of a task: who did what, when and why", Args: exactly(1, "the task's ID"),
		ValidArgsFunction: completeTasks(1, anyTask),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := team.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				steps, whole, err := t.Board().History(ctx, id)
				if err != nil {
					return err
				}
				if !whole {
					fmt.Fprintf(a.err, "the bucket keeps the last copies of a record only: what became of %s before is not known\n", id)
				}
				return a.printHistory(id, steps)
			})
		},
	}
}

// printHistory prints the steps; by name it prints their task.
func (a *app) printHistory(id team.TaskID, steps []explain.Step) error {
	items := make([]any, len(steps))
	for i, s := range steps {
		items[i] = s
	}
	return a.print(items, []string{string(id)}, func() {
		t := table{columns: []column{{head: "TIME", drop: 1}, {head: "BY"}, {head: "WHAT"}, {head: "FROM", drop: 4}, {head: "STATUS", drop: 3}, {head: "EPOCH", drop: 2},
			{head: "ASSIGNEE", drop: 5, wide: true}, {head: "REVISION", drop: 6, wide: true}, {head: "WHY", cut: true}}}
		for _, s := range steps {
			t.add(moment(&s.At), orDash(string(s.By)), printable(s.What), orDash(paint(string(s.From))), paint(string(s.To)), fmt.Sprint(s.Epoch),
				orDash(string(s.Assignee)), fmt.Sprint(s.Revision), printable(team.OneLine(reason(s))))
		}
		a.printTable(t)
	})
}

// reason returns a step's reason, unless nobody gave one: the board then stores who made the step, which is
// shown already.
func reason(s explain.Step) string {
	for _, what := range []string{"cancelled", "given up", "released"} {
		if s.Why == what+" by "+string(s.By) {
			return ""
		}
	}
	return s.Why
}
