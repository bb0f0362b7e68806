package main

import (
	"context"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// following runs f on the command's team, opened with open, with no time limit unless one was given.
func (a *app) following(ctx context.Context, open opener, f func(ctx context.Context, t *client.Team) error) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return a.connectedIn(ctx, func(ctx context.Context, c *client.Client, cfg config.Config) error {
		t, err := open(ctx, c, cfg.Team)
		if err == nil {
			err = f(ctx, t)
		}
		if err == nil {
			err = ctx.Err()
		}
		return err
	})
}

// opener opens a team: [app.awaitTeam], or openTeam.
type opener func(context.Context, *client.Client, team.TeamID) (*client.Team, error)

func openTeam(ctx context.Context, c *client.Client, id team.TeamID) (*client.Team, error) {
	return c.Open(ctx, id)
}

// watchTasks prints the tasks that match q, and each of them again when it changes.
func (a *app) watchTasks(ctx context.Context, q team.Query) error {
	if q.After != "" || q.Limit != 0 {
		return team.Errorf(team.InvalidArgument, "--watch goes with neither --limit nor --page")
	}
	if q.Merging {
		return team.Errorf(team.InvalidArgument, "--watch does not go with --status merging").WithHint("watch in_progress tasks")
	}
	shown, status := map[team.TaskID]bool{}, statuses{}
	print := a.taskPrinter(status)
	begun := false
	return a.following(ctx, a.awaitTeam, func(ctx context.Context, t *client.Team) error {
		return t.Board().Watch(ctx, func(b client.Snapshot) error {
			a.warnBad(b.Bad)
			for _, id := range b.Gone {
				if shown[id] {
					fmt.Fprintf(a.err, "%s was deleted\n", id)
				}
				delete(status, id)
				delete(shown, id)
			}
			for _, v := range b.Tasks {
				status[v.ID] = v.Status
			}
			if !begun {
				begun = true
				if len(selectAll(b, q).Tasks) == 0 {
					a.noteNone(ctx, t, q, len(b.Tasks) == 0)
				}
			}
			for _, v := range b.Tasks {
				match := q.Match(v.Row())
				if match || shown[v.ID] { // or it has just ceased to match
					if err := print(v); err != nil {
						return err
					}
				}
				shown[v.ID] = match
			}
			return nil
		})
	})
}

// narrow is a terminal width that leaves little space for the title.
const narrow = 60

// taskPrinter returns a function that prints tasks one by one: a record, or a table row whose column widths
// are set before the rows are known. A blocked task's title is followed by what it waits for; status then
// knows all tasks.
func (a *app) taskPrinter(status statuses) func(team.TaskView) error {
	if print := oneByOne(a, func(v team.TaskView) string { return string(v.ID) }); print != nil {
		return print
	}
	w, width, head := a.screen(), a.width(), false
	wide := a.output == asWide
	row := func(id, status, priority, assignee, role, attempts, title string) error {
		line := pad(id, 6) + pad(status, 11)
		if width == 0 || width >= narrow {
			line += pad(priority, 8) + pad(assignee, 12)
		}
		if wide {
			line += pad(role, 10) + pad(attempts, 8)
		}
		line += title
		if width > 0 {
			line = ansi.Truncate(line, width, "…")
		}
		_, err := fmt.Fprintln(w, line)
		return err
	}
	return func(v team.TaskView) error {
		if !head {
			head = true
			if err := row(faint.Render("ID"), faint.Render("STATUS"), faint.Render("PRIO"), faint.Render("ASSIGNEE"), faint.Render("ROLE"), faint.Render("ATTEMPTS"), faint.Render("TITLE")); err != nil {
				return err
			}
		}
		title := printable(v.Title)
		if v.IsBlocked {
			title += faint.Render(" ← " + explain.WaitsFor(v, status.of))
		}
		return row(string(v.ID), paint(v.Shown()), team.PriorityName(v.Priority), orDash(holder(v)), orDash(v.Role), fmt.Sprint(v.Attempts), title)
	}
}

// pad fills a text to the width of its column and the gap to the next.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s))+gap)
}
