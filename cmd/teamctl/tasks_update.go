package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// taskUpdate is one change of a task: to a status, or of what it says.
type taskUpdate struct {
	id              team.TaskID
	as              team.AgentID
	status          team.TaskStatus // "" = an edit
	summary, reason string
	commit          string // that brings a person's work into the line
	dir             string // of the checkout that has it
	edit            team.Edit
}

// The flags of `tasks update` that change what a task says.
var editFlags = []string{"title", "description", "priority", "add-dependency", "remove-dependency"}

func (a *app) tasksUpdateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update ID", Short: "Complete, fail, claim, release, cancel or edit a task", Args: exactly(1, "the task's ID"),
		Long: "update changes the status of a task, or what a pending task says.\n" +
			"A person's seat completes the task that it holds: --status completed --as NAME --summary TEXT. In a team that works in\n" +
			"trees, --commit names what was done for it in the checkout of the current folder, and is merged like the work of a member.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	f := cmd.Flags()
	f.String("status", "", "completed (with --as and --summary), failed, in_progress (with --as), pending, or cancelled, which deleted is read as")
	f.String("as", "", "the member in whose name")
	f.String("summary", "", "what was done and where the result is, for completed; - reads it from stdin")
	f.String("commit", "", "a branch, tag or hash of your checkout that has the work, for completed")
	f.String("reason", "", "why, for failed, pending and cancelled")
	f.String("title", "", "a new title")
	f.String("description", "", "a new description; - reads it from stdin")
	f.String("priority", "", "normal, high or critical; or 0, 1, 2")
	f.StringSlice("add-dependency", nil, "ids of tasks that must be completed first")
	f.StringSlice("remove-dependency", nil, "ids of dependencies to take away")
	completeFlags(cmd, map[string]cobra.CompletionFunc{
		"as": completePresent, "status": fixed(shownStatuses...), "priority": fixed("normal", "high", "critical"),
		"add-dependency": inList(completeTasks(0, anyTask)), "remove-dependency": inList(completeTasks(0, anyTask)),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		u, err := a.readUpdate(cmd, args[0])
		if err != nil {
			return err
		}
		return a.changeTask(u.apply)
	}
	return cmd
}

func (a *app) readUpdate(cmd *cobra.Command, id string) (u taskUpdate, err error) {
	given := func(name string) (string, bool) { f := cmd.Flags().Lookup(name); return f.Value.String(), f.Changed }
	if u.id, err = team.ParseTaskID(id); err != nil {
		return u, err
	}
	as, _ := given("as")
	if u.as, err = a.optionalMember(as); err != nil {
		return u, err
	}
	if status, ok := given("status"); ok {
		if u.status, err = team.ParseTaskStatus(status); err != nil {
			return u, err
		}
	}
	summary, _ := given("summary")
	if u.summary, err = textOf(cmd, summary); err != nil {
		return u, err
	}
	u.reason, _ = given("reason")
	if u.commit, _ = given("commit"); u.commit != "" {
		if u.dir, err = os.Getwd(); err != nil {
			return u, err
		}
	}
	if u.edit, err = readEdit(cmd, given); err != nil {
		return u, err
	}
	return u, u.check(given)
}

func readEdit(cmd *cobra.Command, given func(string) (string, bool)) (e team.Edit, err error) {
	if title, ok := given("title"); ok {
		e.Title = &title
	}
	if text, ok := given("description"); ok {
		if text, err = textOf(cmd, text); err != nil {
			return e, err
		}
		e.Description = &text
	}
	if s, ok := given("priority"); ok {
		p, err := team.ParsePriority(s)
		if err != nil {
			return e, err
		}
		e.Priority = &p
	}
	if e.AddDependencies, err = idsOf(cmd, "add-dependency"); err != nil {
		return e, err
	}
	e.RemoveDependencies, err = idsOf(cmd, "remove-dependency")
	return e, err
}

func idsOf(cmd *cobra.Command, flag string) ([]team.TaskID, error) {
	list, err := cmd.Flags().GetStringSlice(flag)
	if err != nil {
		return nil, err
	}
	return each(list, team.ParseTaskID)
}

// check refuses flags that do not go together, rather than leaving one out of
// account.
func (u taskUpdate) check(given func(string) (string, bool)) error {
	_, summary := given("summary")
	_, reason := given("reason")
	switch {
	case u.status == "" && u.edit.Empty():
		return team.Errorf(team.InvalidArgument, "nothing to change in %s", u.id).WithHint("add --status, or one of --%s", strings.Join(editFlags, ", --"))
	case u.status != "" && !u.edit.Empty():
		return team.Errorf(team.InvalidArgument, "--status goes with none of --%s", strings.Join(editFlags, ", --")).WithHint("edit the task first, then change its status")
	case u.status == team.InProgress && u.as == "":
		return team.Errorf(team.InvalidArgument, "who is to claim %s?", u.id).WithHint("add --as NAME")
	case u.status == team.Completed && strings.TrimSpace(u.summary) == "":
		return team.Errorf(team.InvalidArgument, "%s cannot be completed without a summary", u.id).WithHint("add --summary TEXT: what was done and where the result is")
	case summary && u.status != team.Completed:
		return team.Errorf(team.InvalidArgument, "--summary goes with --status completed only")
	case u.commit != "" && u.status != team.Completed:
		return team.Errorf(team.InvalidArgument, "--commit goes with --status completed only")
	case reason && (u.status == "" || u.status == team.Completed || u.status == team.InProgress):
		return team.Errorf(team.InvalidArgument, "--reason goes with --status failed, pending or cancelled only")
	}
	return nil
}

// apply makes the change and says what was done.
func (u taskUpdate) apply(ctx context.Context, t *client.Team) (task team.Task, done string, err error) {
	if u.commit != "" {
		task, err = t.Board().CompleteWith(ctx, u.id, u.as, u.summary, u.dir, u.commit)
		return task, string(team.Completed), err
	}
	switch u.status {
	case team.Completed:
		task, err = t.Board().Complete(ctx, u.id, u.as, u.summary)
	case team.Failed:
		task, err = t.Board().Fail(ctx, u.id, u.as, u.reason)
	case team.Pending:
		task, err = t.Board().Release(ctx, u.id, u.as, u.reason)
		return task, "released", err
	case team.Cancelled:
		task, err = t.Board().Cancel(ctx, u.id, u.as, u.reason)
	case team.InProgress:
		task, err = t.Board().Seating(u.as).Claim(ctx, u.id, u.as)
		return task, "claimed by " + string(u.as), err
	default:
		var changed bool
		if task, changed, err = t.Board().Edit(ctx, u.id, u.as, u.edit); !changed {
			return task, "says that already, nothing was changed", err
		}
		return task, "edited", err
	}
	return task, string(u.status), err
}
