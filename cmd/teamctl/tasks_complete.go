package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
)

// completionTime limits a completion; after that nothing is offered.
const completionTime = time.Second

// shownStatuses are the statuses that a task can have.
var shownStatuses = []string{string(team.Pending), string(team.InProgress), string(team.Completed), string(team.Failed), string(team.Cancelled)}

func anyTask(team.TaskView) bool { return true }

// completeTasks offers the ids of tasks for which keep is true, for up to most arguments (0: any number),
// each with its status and title.
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
		snapshotOf(cmd, func(ctx context.Context, t *client.Team) {
			page, _ := t.Board().List(ctx, team.Query{Limit: team.MaxPage})
			for _, v := range page.Tasks {
				if keep(v) && !slices.Contains(given, v.ID) {
					ids = append(ids, cobra.CompletionWithDesc(string(v.ID), v.Shown()+": "+printable(v.Title)))
				}
			}
		})
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeMembers offers the names of the members that the team has or had.
func completeMembers(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return memberNames(cmd, args, true)
}

// completePresent offers the names of the members that have not left.
func completePresent(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return memberNames(cmd, args, false)
}

func memberNames(cmd *cobra.Command, args []string, all bool) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	snapshotOf(cmd, func(ctx context.Context, t *client.Team) {
		members, _ := t.Members().Records(ctx)
		for _, m := range members {
			if name := string(m.AgentID); (all || m.State != team.Stopped) && !slices.Contains(args, name) {
				names = append(names, cobra.CompletionWithDesc(name, m.Role+", "+string(m.State)))
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeTeams offers the names of the teams, each with its status.
func completeTeams(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	snapshotAll(cmd, func(ctx context.Context, c *client.Client, _ team.TeamID) {
		teams, _ := c.Names(ctx)
		for _, t := range teams {
			names = append(names, cobra.CompletionWithDesc(string(t.ID), string(t.Status)))
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completePlans offers the plans and calls that wait for a decision.
func completePlans(cmd *cobra.Command, _ []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
	snapshotOf(cmd, func(ctx context.Context, t *client.Team) {
		plans, _ := t.Plans().List(ctx)
		for _, p := range plans {
			if p.Waits() {
				ids = append(ids, cobra.CompletionWithDesc(p.ID, string(p.AgentID)+": "+printable(p.Brief())))
			}
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeRoles offers the roles of role files, built-in roles, and the team's.
func completeRoles(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	loaded, _ := role.Load(".") // of a file that is damaged the command will say so
	roles := loaded.All
	snapshotOf(cmd, func(ctx context.Context, t *client.Team) {
		if record, err := t.Record(ctx); err == nil {
			maps.Copy(roles, record.Roles)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if name != team.LeaderRole {
			names = append(names, cobra.CompletionWithDesc(name, printable(team.OneLine(roles[name].Description))))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// inList completes the last entry of a list with commas; the shell expects words that begin with the whole
// list. The entries before count as previous arguments. After a comma there are no descriptions: cobra's bash
// script compares words with descriptions in a quoted form, in which a comma differs from what was typed.
func inList(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, list string) ([]cobra.Completion, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(list, ',') + 1
		before := strings.Split(list[:at], ",")
		words, directive := f(cmd, slices.Concat(args, before), list[at:])
		all := make([]cobra.Completion, 0, len(words))
		for _, word := range words {
			name, _, _ := strings.Cut(word, "\t")
			switch {
			case at == 0:
				all = append(all, word)
			case !slices.Contains(before, name):
				all = append(all, list[:at]+name)
			}
		}
		return all, directive
	}
}

// first completes the first argument only.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

// Directives for files and folders; nothing else is completed as one.
var (
	aFile   = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	aFolder = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
)

func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeFlags sets the completion functions of the command's flags.
func completeFlags(cmd *cobra.Command, flags map[string]cobra.CompletionFunc) {
	for name, f := range flags {
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// snapshotOf runs f on the team in the command line so far. It prints no errors: the user has not called anything
// yet.
func snapshotOf(cmd *cobra.Command, f func(ctx context.Context, t *client.Team)) {
	snapshotAll(cmd, func(ctx context.Context, c *client.Client, id team.TeamID) {
		if t, err := c.Open(ctx, id); err == nil {
			f(ctx, t)
		}
	})
}

// snapshotAll is glance for completions that do not depend on one team.
func snapshotAll(cmd *cobra.Command, f func(ctx context.Context, c *client.Client, id team.TeamID)) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	src := sources(cmd)
	src.Lenient = true
	cfg, err := config.Load(src)
	if err != nil {
		return
	}
	c, err := connect(ctx, cfg)
	if err != nil {
		return
	}
	defer c.Close()
	f(ctx, c, cfg.Team)
}
