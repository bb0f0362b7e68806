package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

func (a *app) tasksWaitCmd() *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use: "wait ID...", Short: "Wait until tasks are completed, and print them",
		Long: "wait returns once every task has the status, and prints the tasks. It ends with status 1 as soon as\n" +
			"one of them has ended otherwise, or cannot begin since it waits for one that failed or was cancelled; and\n" +
			"with 124 when the time given by --timeout has passed. Without that it waits as long as it takes.\n" +
			"A completed task counts as one that was in_progress.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return team.Errorf(team.InvalidArgument, "%s takes the ids of tasks", cmd.CommandPath()).WithHint("usage: %s", cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeTasks(0, func(v team.TaskView) bool { return v.Status.Open() }),
	}
	cmd.Flags().StringVar(&until, "for", string(team.Completed), "the status to wait for: pending, in_progress, completed, failed or cancelled")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"for": fixed(shownStatuses...)})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseAll(args, team.ParseTaskID)
		if err != nil {
			return err
		}
		status, err := team.ParseTaskStatus(until)
		if err != nil {
			return err
		}
		return a.waitFor(cmd.Context(), ids, status)
	}
	return cmd
}

var errReached = errors.New("every task has the status")

// waitFor waits, and prints the tasks as they are at the end, whatever the result.
func (a *app) waitFor(ctx context.Context, ids []team.TaskID, status team.TaskStatus) error {
	w := newWaiting(ids, status)
	err := a.following(ctx, openTeam, func(ctx context.Context, t *client.Team) error {
		for _, id := range ids { // and not for one that does not exist
			if _, err := t.Board().Task(ctx, id); err != nil {
				return err
			}
		}
		return t.Board().Watch(ctx, func(b client.Snapshot) error { return w.take(b) })
	})
	if len(w.tasks) > 0 {
		now := make([]team.TaskView, 0, len(ids))
		for _, id := range ids {
			if v, there := w.tasks[id]; there {
				if v.IsBlocked {
					v.Why = explain.WaitsFor(v, func(id team.TaskID) team.TaskStatus { return w.tasks[id].Status })
				}
				now = append(now, v)
			}
		}
		if perr := a.printTasks(now); perr != nil {
			return perr
		}
	}
	switch {
	case errors.Is(err, errReached):
		return nil
	case errors.Is(err, errTimeout):
		return &over{errTimeout.text + w.open(), errTimeout.hint, errTimeout.cause, ""}
	}
	return err
}

// waiting waits until some tasks have a status.
type waiting struct {
	ids    []team.TaskID
	status team.TaskStatus
	tasks  map[team.TaskID]team.TaskView // all of the board, as received so far
	gone   map[team.TaskID]bool          // deleted
}

func newWaiting(ids []team.TaskID, status team.TaskStatus) *waiting {
	return &waiting{ids: ids, status: status, tasks: map[team.TaskID]team.TaskView{}, gone: map[team.TaskID]bool{}}
}

// take adds new and changed tasks. It returns errReached if all awaited tasks have the status, an error that
// names the first that can no longer get it, or nil if it must wait on.
func (w *waiting) take(b client.Snapshot) error {
	blocks := len(b.Gone) > 0 // a task's path may be blocked for good now
	for _, id := range b.Gone {
		w.gone[id] = true
		delete(w.tasks, id)
	}
	for _, v := range b.Tasks {
		delete(w.gone, v.ID)
		before, known := w.tasks[v.ID]
		blocks = blocks || !known || v.Status == team.Failed || v.Status == team.Cancelled || !slices.Equal(before.Dependencies, v.Dependencies)
		w.tasks[v.ID] = v
	}
	reached, passed := true, map[team.TaskID]bool{}
	for _, id := range w.ids {
		switch v := w.tasks[id]; {
		case w.gone[id]:
			return team.Errorf(team.NotFound, "%s was deleted", id)
		case w.has(v):
		case v.ID == "": // its record cannot be read until it is repaired
			reached = false
		case v.Status.Open():
			reached = false
			if !blocks || w.status != team.Completed && w.status != team.InProgress {
				continue // what is blocked can be given up
			}
			if way := w.deadEnd(id, passed); way != nil {
				return w.neverBegins(way)
			}
		default:
			return team.Errorf(team.InvalidState, "%s is %s and will not be %s%s", v.ID, v.Status, w.status, why(v.Task))
		}
	}
	if reached {
		return errReached
	}
	return nil
}

func (w *waiting) has(v team.TaskView) bool {
	return v.Status == w.status || w.status == team.InProgress && v.Status == team.Completed
}

// deadEnd returns the path from a task through its dependencies to one that failed or was cancelled or
// deleted; nil if there is none. passed are tasks known to have none.
func (w *waiting) deadEnd(id team.TaskID, passed map[team.TaskID]bool) []team.TaskID {
	v := w.tasks[id]
	switch {
	case v.Status == team.Failed || v.Status == team.Cancelled || w.gone[id]:
		return []team.TaskID{id}
	case v.Status != team.Pending || passed[id]:
		return nil
	}
	passed[id] = true
	for _, d := range v.Dependencies {
		if way := w.deadEnd(d, passed); way != nil {
			return append([]team.TaskID{id}, way...)
		}
	}
	return nil
}

// neverBegins returns an error that explains why the first task of the path will not begin, and what can be
// done.
func (w *waiting) neverBegins(way []team.TaskID) error {
	text := string(way[0]) + " waits for " + string(way[1])
	for _, id := range way[2:] {
		text += ", that for " + string(id)
	}
	id := way[len(way)-1]
	end, how := w.tasks[id], "was cancelled"
	switch {
	case w.gone[id]:
		how = "was deleted"
	case end.Status == team.Failed:
		how = "has failed"
	}
	return team.Errorf(team.InvalidState, "%s, which %s%s: %s will not be %s", text, how, why(end.Task), way[0], w.status).
		WithHint("teamctl tasks update %s --remove-dependency %s, with --add-dependency if another task takes its place", way[len(way)-2], id)
}

// open names the awaited tasks that do not have the status yet.
func (w *waiting) open() string {
	text := ""
	for _, id := range w.ids {
		if v := w.tasks[id]; !w.has(v) && v.ID != "" {
			text += fmt.Sprintf("; %s is %s", id, v.Shown())
		}
	}
	return text
}

// why returns the reason of a task's last change, or its result.
func why(t team.Task) string {
	switch {
	case t.Status == team.Completed:
		return " (" + team.OneLine(t.ResultSummary) + ")"
	case t.Reason != "":
		return " (" + team.Summarize(t.Reason) + ")"
	}
	return ""
}
