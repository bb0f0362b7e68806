package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// oldTasks is what a new goal does with the open tasks that earlier ones have left.
type oldTasks int

const (
	askOld oldTasks = iota // on a terminal; else they are kept, and that is said
	keepOld
	cancelOld
)

// settleOld keeps or cancels the open tasks that earlier goals have left.
func (a *app) settleOld(ctx context.Context, t *client.Team, record team.Team, what oldTasks) error {
	if record.GoalNumber == 0 || what == keepOld {
		return nil
	}
	open, err := t.OpenTasks(ctx)
	if err != nil {
		return err
	}
	var old []team.Task
	for _, task := range open {
		if leftBehind(task, record) {
			old = append(old, task)
		}
	}
	if len(old) == 0 {
		return nil
	}
	if what == askOld {
		if what, err = a.askOld(ctx, old); err != nil {
			return err
		}
	}
	if what == keepOld {
		a.tell(fmt.Sprintf("%s; the team works on them too (%s cancels every open task)", ofEarlier(old, "kept"), a.command("tasks cancel --all", record.ID)))
		return nil
	}
	cancelled, err := t.CancelAll(ctx, old, "left by an earlier goal")
	if len(cancelled) > 0 {
		a.tell(ofEarlier(cancelled, "cancelled"))
	}
	return err
}

// leftBehind reports whether an open task is an earlier goal's: agents have made it, or it
// was there when that goal ended. What a person has added since is meant for the next.
func leftBehind(task team.Task, record team.Team) bool {
	return task.CreatedBy != team.UserAgent || record.FinishedAt != nil && task.CreatedAt.Before(*record.FinishedAt)
}

// maxNamed is how many tasks are named in a line.
const maxNamed = 5

// ofEarlier says what became of tasks.
func ofEarlier(tasks []team.Task, what string) string {
	var ids []string
	for i, task := range tasks {
		if i == maxNamed {
			ids = append(ids, "...")
			break
		}
		ids = append(ids, string(task.ID))
	}
	count, verb := fmt.Sprintf("%d open tasks", len(tasks)), "are"
	if len(tasks) == 1 {
		count, verb = "1 open task", "is"
	}
	if what == "" {
		return fmt.Sprintf("%s of earlier goals: %s", count, strings.Join(ids, ", "))
	}
	return fmt.Sprintf("%s of earlier goals %s %s: %s", count, verb, what, strings.Join(ids, ", "))
}

// askOld asks on the terminal what is to become of tasks. Without a terminal they are kept.
func (a *app) askOld(ctx context.Context, tasks []team.Task) (oldTasks, error) {
	if !a.forPeople() || !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stderr.Fd()) {
		return keepOld, nil
	}
	fmt.Fprintln(a.err, ofEarlier(tasks, ""))
	for _, task := range tasks[:min(len(tasks), maxNamed)] {
		fmt.Fprintf(a.err, "  %s %s\n", task.ID, printable(task.Title))
	}
	answers := make(chan string)
	go func() { // ends with the process: nothing ends a reading of the terminal
		defer close(answers)
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			answers <- strings.ToLower(strings.TrimSpace(s.Text()))
		}
	}()
	for {
		fmt.Fprint(a.err, "Keep them on the board, or cancel them? [K/c] ")
		select {
		case <-ctx.Done():
			fmt.Fprintln(a.err)
			return askOld, ctx.Err()
		case answer, more := <-answers:
			if more {
				a.notes.answered()
			}
			switch {
			case !more:
				fmt.Fprintln(a.err)
				return keepOld, nil
			case answer == "", strings.HasPrefix("keep", answer):
				return keepOld, nil
			case strings.HasPrefix("cancel", answer):
				return cancelOld, nil
			}
		}
	}
}
