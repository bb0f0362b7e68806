package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksLsCmd() *cobra.Command {
	var q team.Query
	var status []string
	var claimable, blocked, cancelled, watch bool
	var assignee func() (team.AgentID, error)
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the tasks", Args: atMost(0),
		Long: "ls lists the tasks that meet all conditions, without cancelled ones unless they are asked for.\n" +
			"With --limit or --page it lists one page, and says on stderr how to get the next.\n" +
			"With --watch it goes on with the tasks that change, and with those that a change sets free,\n" +
			"until Ctrl-C or --timeout; one that no longer meets the conditions is shown once more.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if q.Limit < 0 {
				return team.Errorf(team.InvalidArgument, "--limit %d: a page has 1 task or more", q.Limit).WithHint("leave --limit out for all tasks")
			}
			if q.Assignee, err = assignee(); err != nil {
				return err
			}
			q.Role = team.CanonicalRole(q.Role)
			if q, err = q.InStatuses(status, cancelled); err != nil {
				return err
			}
			if blocked {
				q.Blocked = &blocked
			}
			if claimable {
				q.Claimable = &claimable
			}
			if err = q.Validate(); err != nil {
				return err
			}
			if watch {
				return a.watchTasks(cmd.Context(), q)
			}
			return a.listTasks(q)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&status, "status", nil, "only tasks that are pending, blocked, in_progress, merging, completed, failed or cancelled; several with commas between")
	assignee = a.memberFlag(cmd, "assignee", completeMembers, "only tasks that this member holds or held last")
	flags.StringVar(&q.Role, "role", "", "only tasks for this role; with --claimable also those for any role")
	flags.BoolVar(&claimable, "claimable", false, "only tasks that could be claimed now")
	flags.BoolVar(&blocked, "blocked", false, "only pending tasks that wait for others")
	flags.StringVar(&q.Text, "text", "", "only tasks with this text in title or description")
	flags.BoolVar(&cancelled, "all", false, "also cancelled tasks")
	flags.IntVar(&q.Limit, "limit", 0, fmt.Sprintf("one page of this many tasks, at most %d; 0 lists all", team.MaxPage))
	flags.StringVar(&q.After, "page", "", fmt.Sprintf("the page that begins here, as the one before printed; of %d tasks unless --limit is given", team.DefaultPage))
	flags.BoolVarP(&watch, "watch", "w", false, "follow what changes")
	completeFlags(cmd, map[string]cobra.CompletionFunc{
		"role": completeRoles, "status": inList(fixed(append(shownStatuses, team.ShownBlocked, "merging")...)),
	})
	return cmd
}

// listTasks prints the tasks that match q: its page, or all if it asks for none.
func (a *app) listTasks(q team.Query) error {
	return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) (err error) {
		var page team.Page
		var known func(team.TaskID) team.TaskStatus // on a page, what its tasks wait for is read
		empty := false
		if q.Limit == 0 && q.After == "" {
			b, err := t.Board().Snapshot(ctx)
			if err == nil && q.Merging {
				err = t.Board().Merging(ctx, b.Tasks)
			}
			if err != nil {
				return err
			}
			page, known, empty = selectAll(b, q), statusesOf(b.Tasks).of, len(b.Tasks) == 0
		} else if page, err = t.Board().List(ctx, q); err != nil {
			return err
		}
		if len(page.Tasks) == 0 {
			a.noteNone(ctx, t, q, empty)
		}
		if err := t.Board().Explain(ctx, page.Tasks, known); err != nil {
			return err
		}
		a.warnBad(page.Quarantined)
		if err := a.printTasks(page.Tasks); err != nil {
			return err
		}
		a.printNext(page)
		return nil
	})
}

// noteNone prints why the list is empty: a name may be mistyped.
func (a *app) noteNone(ctx context.Context, t *client.Team, q team.Query, empty bool) {
	if q.Role != "" {
		if record, err := t.Record(ctx); err == nil {
			if _, err := record.Role(q.Role); err != nil {
				a.note("no task matches: " + team.Line(err))
				return
			}
		}
	}
	if q.Assignee != "" {
		if _, err := t.Members().Get(ctx, q.Assignee); errors.Is(err, team.NotFound) {
			a.note("no task matches: " + team.Line(err))
			return
		}
	}
	switch {
	case empty:
		a.note("the board is empty")
	case q.After != "":
		a.note("no task that matches comes after " + q.After)
	case q.IsUsual() && q.Claimable == nil && q.Blocked == nil:
		a.note("no task matches (cancelled ones are listed with --all)")
	default:
		a.note("no task matches")
	}
}

// selectAll returns all tasks of b that match q as one page.
func selectAll(b client.Snapshot, q team.Query) team.Page {
	all := make([]*team.TaskView, len(b.Tasks))
	for i := range b.Tasks {
		all[i] = &b.Tasks[i]
	}
	q.Limit = max(len(all), 1)
	selected, _, _ := team.Select(q, slices.Values(all), (*team.TaskView).Row)
	p := team.Page{Quarantined: b.Bad}
	for _, v := range selected {
		p.Tasks = append(p.Tasks, *v)
	}
	return p
}

// printNext prints on stderr that there are more pages, and how to get the next.
func (a *app) printNext(p team.Page) {
	switch {
	case p.Next == "":
	case a.output == asJSON || a.output == asJSONL:
		_ = writeJSON(a.err, map[string]any{"total": p.Total, "next": p.Next})
	default:
		fmt.Fprintf(a.err, "%d match in all; the next page: --page %s\n", p.Total, p.Next)
	}
}
