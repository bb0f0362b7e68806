package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/plan"
	"agentteam/pkg/team"
)

// newTask holds the flags of `tasks add` for one task.
type newTask struct {
	title, description, priority, role, check, assignee string
	after, supersedes                                   []string
	deliverable, seat                                   bool
}

func (a *app) tasksAddCmd() *cobra.Command {
	var n newTask
	var file, key string
	cmd := &cobra.Command{
		Use: "add TITLE | -f FILE", Short: "Put a task, or all tasks of a plan, on the board", Args: atMost(1),
		Long: "add puts a task on the board; an idle teammate takes it as soon as its dependencies are completed.\n" +
			"With -f it puts all tasks of a plan there, all at once or none of them: a YAML file\n\n" +
			"    tasks:\n      - name: tests\n        title: Run all tests\n      - title: Tag the release\n        depends_on: [tests, T-001]\n\n" +
			"in which a task may also have description, priority, role, check, deliverable_required and metadata.\n" +
			"With --key a call can be repeated: the same key again adds nothing and prints what was added first,\n" +
			"as it is now.\n" +
			"A team that is not there yet is made.",
	}
	f := cmd.Flags()
	f.StringVar(&n.title, "title", "", "the TITLE, one line that says what is to be done, as a flag")
	f.StringVar(&n.description, "description", "", "all that its assignee needs to know; - reads it from stdin")
	f.StringVar(&n.priority, "priority", "normal", "normal, high or critical; or 0, 1, 2")
	f.StringSliceVar(&n.after, "depends-on", nil, "ids of the tasks that must be completed first, with commas between")
	f.StringVar(&n.role, "role", "", "only members of this role take it by themselves")
	f.StringSliceVar(&n.supersedes, "supersedes", nil, "tasks whose checks no longer count once this one is merged")
	f.StringVar(&n.check, "check", "", "a shell command that must succeed before the task counts as completed")
	f.BoolVar(&n.deliverable, "deliverable-required", false, "it counts as completed only if its deliverable is there")
	f.StringVar(&n.assignee, "assignee", "", "the member that is to do it, as with tasks assign; left out, the next idle one takes it")
	f.BoolVar(&n.seat, "seat", false, "with --assignee: if no member has that name, make a person's seat of it")
	single := []string{"title", "description", "priority", "depends-on", "role", "check", "supersedes", "deliverable-required", "assignee", "seat"}
	f.StringVarP(&file, "file", "f", "", "a plan; - reads it from stdin")
	f.StringVar(&key, "key", "", "a key of your own that makes the call repeatable")
	completeFlags(cmd, map[string]cobra.CompletionFunc{
		"priority": fixed("normal", "high", "critical"), "depends-on": inList(completeTasks(0, anyTask)), "role": completeRoles, "assignee": completePresent,
		"file": aFile,
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
		case f.Changed("title"):
			return team.Errorf(team.InvalidArgument, "the title is given twice: %q and --title %q", args[0], n.title).WithHint("quote texts with spaces")
		default:
			if err := f.Set("title", args[0]); err != nil {
				return err
			}
		}
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
	assignee, err := a.optionalMember(f.assignee)
	if err != nil {
		return err
	}
	if n.Priority, err = team.ParsePriority(f.priority); err != nil {
		return err
	}
	if n.Dependencies, err = parseAll(f.after, team.ParseTaskID); err != nil {
		return err
	}
	if n.Supersedes, err = parseAll(f.supersedes, team.ParseTaskID); err != nil {
		return err
	}
	if n.Description, err = textOf(cmd, f.description); err != nil {
		return err
	}
	n.ReservedFor = assignee
	var seats []team.AgentID
	switch {
	case f.seat && assignee == "":
		return team.Errorf(team.InvalidArgument, "whose seat is to be made?").WithHint("add --assignee NAME")
	case f.seat:
		seats = append(seats, assignee)
	}
	return a.addTasks(key, []team.NewTask{n}, seats, func(ctx context.Context, t *client.Team, created []team.Task, done string) error {
		task, told := created[0], whatWasDone(done, created[0])
		if assignee != "" && task.Status == team.Pending && (done == justAdded || task.AsAdded(n)) {
			var err error
			if task, _, err = t.Board().Assign(ctx, task.ID, assignee); err != nil {
				return fmt.Errorf("%s %s, but not assigned: %w", created[0].ID, strings.Replace(done, justAdded, "was added", 1), err)
			}
			given, err := a.given(ctx, t, task, assignee)
			if err != nil {
				return err
			}
			told += ", " + given
		}
		return a.printTask(ctx, t, task, told)
	})
}

func (a *app) addPlan(cmd *cobra.Command, file, key string) error {
	in, name := cmd.InOrStdin(), "stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return team.Errorf(team.InvalidArgument, "read the plan: %w", err).WithHint("--file names a YAML file; - is stdin")
		}
		defer f.Close() // it was read only
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
	err = a.addTasks(key, p.Tasks, nil, func(ctx context.Context, t *client.Team, created []team.Task, done string) error {
		views, err := t.Board().Views(ctx, created)
		if err != nil {
			return err
		}
		return printAll(a, views, func(v team.TaskView) string { return string(v.ID) }, func() {
			for _, v := range views {
				a.say(fmt.Sprintf("%s %s: %s", v.ID, whatWasDone(done, v.Task), v.Title))
			}
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

// whatWasDone describes what was done with a task, and its dependencies.
func whatWasDone(done string, t team.Task) string {
	if len(t.Dependencies) == 0 {
		return done
	}
	return done + ", after " + strings.Join(team.Strings(t.Dependencies...), ",")
}

// Texts about a call's tasks: if its key was used before, nothing was added.
const (
	justAdded = "added"
	existed   = "exists already"
)

// noteKey prints a note if the tasks of a repeated call differ from those that it names now, in case the key
// was meant for something else.
func (a *app) noteKey(key string, tasks []team.NewTask, before []team.Task) {
	same := func(n team.NewTask, t team.Task) bool {
		return strings.TrimSpace(n.Title) == t.Title && n.Description == t.Description
	}
	if !slices.EqualFunc(tasks, before, same) {
		fmt.Fprintf(a.err, "nothing was added: the key %s was used before, and what is on the board reads otherwise now (use another key for other tasks)\n", printable(key))
	}
}

// addTasks adds the tasks in one call, to a team that is created if it does not exist, since seats may be for
// these names. then prints them; its argument done describes whether they were added.
func (a *app) addTasks(key string, tasks []team.NewTask, seats []team.AgentID, then func(ctx context.Context, t *client.Team, added []team.Task, done string) error) error {
	if err := team.ValidatePlan(tasks); err != nil {
		return err
	}
	return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
		workspace, err := workspaceOf(cfg)
		if err != nil {
			return err
		}
		t, err := a.makeTeam(ctx, cfg, workspace, func(ctx context.Context, n client.NewTeam) (*client.Team, error) {
			n.Seats = seats
			return c.MakeFor(ctx, n, tasks)
		})
		if err != nil {
			return err
		}
		added, again, err := t.Board().Add(ctx, key, tasks...)
		if err != nil {
			return err
		}
		if again {
			a.noteKey(key, tasks, added)
			return then(ctx, t, added, existed)
		}
		return then(ctx, t, added, justAdded)
	})
}

// maxInput limits what is read from stdin; a record's limit is smaller, and is reported as an error.
const maxInput = 1 << 20

// textOf returns the text, or stdin for "-", without trailing newlines, like the shell's $(...).
func textOf(cmd *cobra.Command, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxInput+1))
	if err != nil {
		return "", team.Errorf(team.InvalidArgument, "read stdin: %w", err)
	}
	if len(data) > maxInput {
		return "", team.Errorf(team.InvalidArgument, "what stdin has is longer than %d bytes", maxInput).WithHint("put it into a file, and write where that is")
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
