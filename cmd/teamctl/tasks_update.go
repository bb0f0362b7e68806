package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// taskUpdate is one change of a task: a status, or an edit.
type taskUpdate struct {
	id              team.TaskID
	as              team.AgentID
	status          team.TaskStatus // "" = an edit
	summary, reason string
	commit          string // that brings a person's work into the line
	edit            team.Edit
}

// editFlags are the flags of `tasks update` that edit a task.
var editFlags = []string{"title", "description", "priority", "add-dependency", "remove-dependency"}

func (a *app) tasksUpdateCmd() *cobra.Command {
	var u taskUpdate
	var status string
	var e edits
	cmd := &cobra.Command{
		Use: "update ID", Short: "Complete, fail, claim, release, cancel or edit a task", Args: exactly(1, "the task's ID"),
		Long: "update changes the status of a task, or what a pending task says.\n" +
			"A person's seat completes the task that it holds: --status completed --as NAME --summary TEXT. In a team that works in\n" +
			"trees, --commit names what was done for it in the checkout of the current folder, and is merged like the work of a member.",
		ValidArgsFunction: completeTasks(1, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	f := cmd.Flags()
	f.StringVar(&status, "status", "", "completed (with --as and --summary), failed, in_progress (with --as), pending, or cancelled, which deleted is read as")
	as := a.memberFlag(cmd, "as", completePresent, "the member in whose name")
	f.StringVar(&u.summary, "summary", "", "what was done and where the result is, for completed; - reads it from stdin")
	f.StringVar(&u.commit, "commit", "", "a branch, tag or hash of your checkout that has the work, for completed")
	f.StringVar(&u.reason, "reason", "", "why, for failed, pending and cancelled")
	f.StringVar(&e.title, "title", "", "a new title")
	f.StringVar(&e.description, "description", "", "a new description; - reads it from stdin")
	f.StringVar(&e.priority, "priority", "", "normal, high or critical; or 0, 1, 2")
	f.StringSliceVar(&e.add, "add-dependency", nil, "ids of tasks that must be completed first")
	f.StringSliceVar(&e.remove, "remove-dependency", nil, "ids of dependencies to take away")
	completeFlags(cmd, map[string]cobra.CompletionFunc{
		"status": fixed(shownStatuses...), "priority": fixed("normal", "high", "critical"),
		"add-dependency": inList(completeTasks(0, anyTask)), "remove-dependency": inList(completeTasks(0, anyTask)),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if u.id, err = team.ParseTaskID(args[0]); err != nil {
			return err
		}
		if u.as, err = as(); err != nil {
			return err
		}
		if status != "" {
			if u.status, err = team.ParseTaskStatus(status); err != nil {
				return err
			}
		}
		if u.summary, err = textOf(cmd, u.summary); err != nil {
			return err
		}
		if u.edit, err = e.read(cmd); err != nil {
			return err
		}
		if err := u.check(f.Changed); err != nil {
			return err
		}
		return a.changeTask(u.apply)
	}
	return cmd
}

// edits are the values of the flags that edit a task, as typed.
type edits struct {
	title, description, priority string
	add, remove                  []string
}

func (e edits) read(cmd *cobra.Command) (edit team.Edit, err error) {
	if e.description, err = textOf(cmd, e.description); err != nil {
		return edit, err
	}
	edit.Title, edit.Description = ifGiven(cmd, "title", e.title), ifGiven(cmd, "description", e.description)
	if e.priority != "" {
		p, err := team.ParsePriority(e.priority)
		if err != nil {
			return edit, err
		}
		edit.Priority = &p
	}
	if edit.AddDependencies, err = parseAll(e.add, team.ParseTaskID); err != nil {
		return edit, err
	}
	edit.RemoveDependencies, err = parseAll(e.remove, team.ParseTaskID)
	return edit, err
}

// check returns an error for flags that conflict, rather than ignoring one.
func (u taskUpdate) check(given func(flag string) bool) error {
	switch {
	case u.status == "" && u.edit.Empty():
		return team.Errorf(team.InvalidArgument, "nothing to change in %s", u.id).WithHint("add --status, or one of --%s", strings.Join(editFlags, ", --"))
	case u.status != "" && !u.edit.Empty():
		return team.Errorf(team.InvalidArgument, "--status goes with none of --%s", strings.Join(editFlags, ", --")).WithHint("edit the task first, then change its status")
	case u.status == team.InProgress && u.as == "":
		return team.Errorf(team.InvalidArgument, "who is to claim %s?", u.id).WithHint("add --as NAME")
	case u.status == team.Completed && strings.TrimSpace(u.summary) == "":
		return team.Errorf(team.InvalidArgument, "%s cannot be completed without a summary", u.id).WithHint("add --summary TEXT: what was done and where the result is")
	case given("summary") && u.status != team.Completed:
		return team.Errorf(team.InvalidArgument, "--summary goes with --status completed only")
	case u.commit != "" && u.status != team.Completed:
		return team.Errorf(team.InvalidArgument, "--commit goes with --status completed only")
	case given("reason") && (u.status == "" || u.status == team.Completed || u.status == team.InProgress):
		return team.Errorf(team.InvalidArgument, "--reason goes with --status failed, pending or cancelled only")
	}
	return nil
}

// apply changes the task, and describes that.
func (u taskUpdate) apply(ctx context.Context, t *client.Team) (task team.Task, done string, err error) {
	if u.commit != "" {
		dir, err := os.Getwd() // the checkout that has it
		if err != nil {
			return task, "", err
		}
		task, err = t.Board().CompleteWith(ctx, u.id, u.as, u.summary, dir, u.commit)
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
