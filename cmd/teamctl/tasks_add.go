package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) tasksAddCmd() *cobra.Command {
	var title, description, priority, role string
	var after []string
	cmd := &cobra.Command{
		Use: "add --title TITLE", Short: "Put a task on the board", Args: cobra.NoArgs,
		Long: "add puts a task on the board; an idle teammate takes it as soon as its dependencies are completed.\n" +
			"A team that is not there yet is made.",
	}
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "one line that says what is to be done; required")
	f.StringVar(&description, "description", "", "all that its assignee needs to know; - reads it from stdin")
	f.StringVar(&priority, "priority", "normal", "normal, high or critical; or 0, 1, 2")
	f.StringSliceVar(&after, "depends-on", nil, "ids of the tasks that must be completed first, with commas between")
	f.StringVar(&role, "role", "", "only members of this role take it by themselves")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		n := team.NewTask{Title: title, Role: team.CanonicalRole(role)}
		var err error
		if n.Priority, err = parsePriority(priority); err != nil {
			return err
		}
		if n.Dependencies, err = parseTaskIDs(after); err != nil {
			return err
		}
		if n.Description, err = textOf(cmd, description); err != nil {
			return err
		}
		if err := n.Validate(); err != nil { // before a team is made for it
			return err
		}
		add := func(ctx context.Context, t *client.Team) error {
			created, err := t.AddTasks(ctx, n)
			if err != nil {
				return err
			}
			return a.printTask(ctx, t, created[0], "added")
		}
		if len(n.Dependencies) > 0 { // a team made now could not have them
			return a.withTeam(add)
		}
		return a.inMadeTeam(n.Role, add)
	}
	return cmd
}

// parsePriority reads a priority by its name or number.
func parsePriority(s string) (int, error) {
	if p := slices.Index(priorities, s); p >= 0 {
		return p, nil
	}
	if p, err := strconv.Atoi(s); err == nil && p >= 0 && p < len(priorities) {
		return p, nil
	}
	return 0, team.Errorf(team.InvalidArgument, "%q is not a priority", s).WithHint("use normal, high or critical; or 0, 1, 2")
}

func parseTaskIDs(all []string) ([]team.TaskID, error) {
	var ids []team.TaskID
	for _, s := range all {
		id, err := team.ParseTaskID(s)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// maxInput bounds what is read from stdin; a record holds less, and says so.
const maxInput = 1 << 20

// textOf is the text given, or stdin for "-", without the newlines at its end as
// the shell's $(...) would give it.
func textOf(cmd *cobra.Command, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxInput))
	if err != nil {
		return "", team.Errorf(team.InvalidArgument, "read stdin: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
