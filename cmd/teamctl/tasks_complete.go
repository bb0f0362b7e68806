package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// completionTime bounds what a Tab may take; then nothing is offered.
const completionTime = time.Second

// shownStatuses are the statuses that a task can have.
var shownStatuses = []string{string(team.Pending), string(team.InProgress), string(team.Completed), string(team.Failed), string(team.Cancelled)}

func anyTask(team.TaskView) bool { return true }

// completeTasks offers the ids of tasks that keep lets through, for up to most
// arguments (0: any number), each with its status and title.
func completeTasks(most int, keep func(team.TaskView) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var given []team.TaskID
		for _, arg := range args {
			if id, err := team.ParseTaskID(arg); err == nil {
				given = append(given, id)
			}
		}
		glance(cmd, func(ctx context.Context, t *client.Team) {
			page, err := t.List(ctx, team.Query{Limit: team.MaxPage})
			if err != nil {
				return
			}
			for _, v := range page.Tasks {
				if keep(v) && !slices.Contains(given, v.ID) {
					ids = append(ids, cobra.CompletionWithDesc(string(v.ID), v.Shown()+": "+printable(v.Title)))
				}
			}
		})
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeMembers offers the names of the team's members.
func completeMembers(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	glance(cmd, func(ctx context.Context, t *client.Team) {
		for _, name := range slices.Sorted(maps.Keys(t.Colours(ctx))) {
			names = append(names, string(name))
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeFlags says what is offered as values of the command's flags.
func completeFlags(cmd *cobra.Command, flags map[string]cobra.CompletionFunc) {
	for name, f := range flags {
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// glance runs f on the team that the command line names so far. It is silent about
// whatever goes wrong: nobody has asked for anything yet.
func glance(cmd *cobra.Command, f func(ctx context.Context, t *client.Team)) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	cfg, err := config.Load(config.Sources{Flags: config.FlagsOf(cmd.Flags().Lookup), Env: os.LookupEnv})
	if err != nil {
		return
	}
	c, err := client.Connect(ctx, client.Options{URL: cfg.Server, Replicas: cfg.Replicas})
	if err != nil {
		return
	}
	defer c.Close()
	if t, err := c.Open(ctx, cfg.Team); err == nil {
		f(ctx, t)
	}
}
