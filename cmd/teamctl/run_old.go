package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// oldTasks is what a new goal does with earlier goals' open tasks.
type oldTasks int

const (
	askOld oldTasks = iota // on a terminal; else they are kept, and that is said
	keepOld
	cancelOld
)

// settleOld keeps or cancels earlier goals' open tasks.
func (a *app) settleOld(ctx context.Context, t *client.Team, record team.Team, what oldTasks) error {
	if record.GoalNumber == 0 || what == keepOld {
		return nil
	}
	open, err := t.Board().Open(ctx)
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
		a.notice(fmt.Sprintf("%s; the team works on them too (%s cancels every open task)", ofEarlier(old, "kept"), a.command("tasks cancel --all", record.ID)))
		return nil
	}
	cancelled, err := t.Board().CancelAll(ctx, old, "left by an earlier goal")
	if len(cancelled) > 0 {
		a.notice(ofEarlier(cancelled, "cancelled"))
	}
	return err
}

// leftBehind reports whether an open task belongs to an earlier goal: agents have created it, or it existed
// when that goal ended. What a person has added since is for the next goal.
func leftBehind(task team.Task, record team.Team) bool {
	return task.CreatedBy != team.UserAgent || record.FinishedAt != nil && task.CreatedAt.Before(*record.FinishedAt)
}

// maxNamed limits the tasks that a line names.
const maxNamed = 5

// ofEarlier returns a sentence about what was done with tasks.
func ofEarlier(tasks []team.Task, what string) string {
	var ids []team.TaskID
	for _, task := range tasks {
		ids = append(ids, task.ID)
	}
	switch {
	case what == "":
	case len(tasks) == 1:
		what = " is " + what
	default:
		what = " are " + what
	}
	return fmt.Sprintf("%s of earlier goals%s: %s", explain.Counted(len(tasks), "open task"), what, team.Some(ids, maxNamed))
}

// askOld asks on the terminal what to do with tasks. Without a terminal they are kept.
func (a *app) askOld(ctx context.Context, tasks []team.Task) (oldTasks, error) {
	if !a.hasTerminal() {
		return keepOld, nil
	}
	fmt.Fprintln(a.err, ofEarlier(tasks, ""))
	for _, task := range tasks[:min(len(tasks), maxNamed)] {
		fmt.Fprintf(a.err, "  %s %s\n", task.ID, printable(task.Title))
	}
	what := askOld
	err := a.ask(ctx, "Keep them on the board, or cancel them? [K/c] ", func(answer string, more bool) bool {
		switch {
		case !more, answer == "", strings.HasPrefix("keep", answer):
			what = keepOld
		case strings.HasPrefix("cancel", answer):
			what = cancelOld
		}
		return what != askOld
	})
	return what, err
}

// hasTerminal reports whether a person can be asked.
func (a *app) hasTerminal() bool {
	return a.forPeople() && term.IsTerminal(os.Stdin.Fd()) && term.IsTerminal(os.Stderr.Fd())
}

// ask asks on the terminal until take accepts the answer, which is in lower case; more is false at the end of
// the input.
func (a *app) ask(ctx context.Context, question string, take func(answer string, more bool) bool) error {
	answers := chatLines(ctx, linesOf(os.Stdin))
	for {
		fmt.Fprint(a.err, question)
		select {
		case <-ctx.Done():
			fmt.Fprintln(a.err)
			return ctx.Err()
		case answer, more := <-answers:
			if more {
				a.notes.answered()
			} else {
				fmt.Fprintln(a.err)
			}
			if take(strings.ToLower(strings.TrimSpace(answer)), more) || !more {
				return nil
			}
		}
	}
}
