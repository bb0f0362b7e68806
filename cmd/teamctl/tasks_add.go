package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/plan"
	"agentteam/pkg/team"
)

// newTask is what the flags of `tasks add` say of one task.
type newTask struct {
	title, description, priority, role, check, assignee string
	after                                               []string
	deliverable                                         bool
}

func (a *app) tasksAddCmd() *cobra.Command {
	var n newTask
	var file, key string
	cmd := &cobra.Command{
		Use: "add --title TITLE | -f FILE", Short: "Put a task, or all tasks of a plan, on the board", Args: atMost(0),
		Long: "add puts a task on the board; an idle teammate takes it as soon as its dependencies are completed.\n" +
			"With -f it puts all tasks of a plan there, all at once or none of them: a YAML file\n\n" +
			"    tasks:\n      - name: tests\n        title: Run all tests\n      - title: Tag the release\n        depends_on: [tests, T-001]\n\n" +
			"in which a task may also have description, priority, role, check, deliverable_required and metadata.\n" +
			"With --key a call can be repeated: the same key again adds nothing and prints what was added first.\n" +
			"A team that is not there yet is made.",
	}
	f := cmd.Flags()
	f.StringVar(&n.title, "title", "", "one line that says what is to be done; required")
	f.StringVar(&n.description, "description", "", "all that its assignee needs to know; - reads it from stdin")
	f.StringVar(&n.priority, "priority", "normal", "normal, high or critical; or 0, 1, 2")
	f.StringSliceVar(&n.after, "depends-on", nil, "ids of the tasks that must be completed first, with commas between")
	f.StringVar(&n.role, "role", "", "only members of this role take it by themselves")
	f.StringVar(&n.check, "check", "", "a shell command that must succeed before the task counts as completed")
	f.BoolVar(&n.deliverable, "deliverable-required", false, "it counts as completed only if its deliverable is there")
	f.StringVar(&n.assignee, "assignee", "", "the member that is to do it, as with tasks assign; left out, the next idle one takes it")
	single := []string{"title", "description", "priority", "depends-on", "role", "check", "deliverable-required", "assignee"}
	f.StringVarP(&file, "file", "f", "", "a plan; - reads it from stdin")
	f.StringVar(&key, "key", "", "a word of your own that makes the call one that can be repeated")
	completeFlags(cmd, map[string]cobra.CompletionFunc{
		"priority": fixed("normal", "high", "critical"), "depends-on": inList(completeTasks(0, anyTask)), "role": completeRoles, "assignee": completeMembers,
		"file": aFile,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !f.Changed("file") {
			return a.addTask(cmd, n, key)
		}
		for _, name := range single {
			if f.Changed(name) {
				return team.Errorf(team.InvalidArgument, "--file and --%s do not go together", name).WithHint("write it into the plan")
			}
		}
		return a.addPlan(cmd, file, key)
	}
	return cmd
}

func (a *app) addTask(cmd *cobra.Command, f newTask, key string) error {
	n := team.NewTask{Title: f.title, Role: team.CanonicalRole(f.role), Check: f.check, DeliverableReq: f.deliverable}
	assignee, err := optionalName(f.assignee)
	if err != nil {
		return err
	}
	if n.Priority, err = team.ParsePriority(f.priority); err != nil {
		return err
	}
	if n.Dependencies, err = parseTaskIDs(f.after); err != nil {
		return err
	}
	if n.Description, err = textOf(cmd, f.description); err != nil {
		return err
	}
	return a.addTasks(key, []team.NewTask{n}, func(ctx context.Context, t *client.Team, created []team.Task) error {
		task, done := created[0], added(created[0])
		if assignee != "" && task.Status == team.Pending {
			var seated bool
			var err error
			if task, seated, err = t.Assign(ctx, task.ID, assignee); err != nil {
				return fmt.Errorf("%s was added, but not assigned: %w", created[0].ID, err)
			}
			if seated {
				a.noteSeat(assignee, task.ID)
			}
			done += ", assigned to " + f.assignee
		}
		return a.printTask(ctx, t, task, done)
	})
}

func (a *app) addPlan(cmd *cobra.Command, file, key string) error {
	in, name := cmd.InOrStdin(), "stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return team.Errorf(team.InvalidArgument, "read the plan: %w", err).WithHint("--file names a YAML file; - is stdin")
		}
		defer f.Close() //nolint:errcheck // it was read only
		in, name = f, file
	}
	src, err := io.ReadAll(io.LimitReader(in, plan.MaxBytes+1))
	if err != nil {
		return team.Errorf(team.InvalidArgument, "read %s: %w", name, err)
	}
	p, err := plan.Parse(name, src)
	if err != nil {
		return err
	}
	err = a.addTasks(key, p.Tasks, func(ctx context.Context, t *client.Team, created []team.Task) error {
		views, err := t.Views(ctx, created)
		if err != nil {
			return err
		}
		items, names := make([]any, len(views)), make([]string, len(views))
		for i, v := range views {
			items[i], names[i] = v, string(v.ID)
		}
		return a.print(items, items, names, func(io.Writer, bool) error {
			for _, v := range views {
				if err := a.say(fmt.Sprintf("%s %s: %s", v.ID, added(v.Task), v.Title)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	var absent *client.AbsentError
	switch {
	case !errors.As(err, &absent):
		return err
	case absent.Dependency != "":
		return p.InDependency(absent.Task, absent.Dependency, err)
	}
	return p.InRole(absent.Task, err)
}

// added says of a task that it was put on the board, and what it comes after.
func added(t team.Task) string {
	if len(t.Dependencies) == 0 {
		return "added"
	}
	return "added, after " + joinIDs(t.Dependencies)
}

// addTasks adds the tasks in one call, to a team that is made if it is not there.
func (a *app) addTasks(key string, tasks []team.NewTask, then func(ctx context.Context, t *client.Team, created []team.Task) error) error {
	if err := team.ValidatePlan(tasks); err != nil {
		return err
	}
	return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
		workspace, err := workspaceOf(cfg)
		if err != nil {
			return err
		}
		n, err := a.newTeam(cfg, workspace)
		if err != nil {
			return err
		}
		t, err := c.MakeFor(ctx, n, tasks)
		if err != nil {
			return err
		}
		created, err := t.AddTasks(ctx, key, tasks...)
		if err != nil {
			return err
		}
		return then(ctx, t, created)
	})
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
