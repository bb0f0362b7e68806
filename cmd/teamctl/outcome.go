package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// outcome is the last output of run with -o json.
type outcome struct {
	Team    team.TeamID     `json:"team"`
	Status  string          `json:"status"` // finished, failed, stopped or timed_out
	End     string          `json:"end"`    // the same in words, with how many tasks have failed
	Summary string          `json:"summary"`
	Reason  string          `json:"reason,omitempty"` // why the goal has failed
	Tasks   []team.TaskView `json:"tasks"`            // all of the board
	Failed  []failedTask    `json:"failed_tasks"`     // of this goal
	Agents  []client.Agent  `json:"agents"`
	Usage   client.Usage    `json:"usage"`
	Elapsed float64         `json:"elapsed_seconds"`
	Branch  *branchEnd      `json:"branch,omitempty"` // nil: the members shared the workspace, or the goal has not ended

	open           []team.TaskView // of this goal: what is not done
	completed, all int             // tasks of this goal
	priced         bool            // the settings here hold the prices of some model
	quiet          bool            // the answer only
	interrupted    bool            // by the user: the goal is still active
}

// failedTask is a task that has failed in a goal.
type failedTask struct {
	ID     team.TaskID `json:"id"`
	Title  string      `json:"title"`
	Reason string      `json:"reason"`
	Given  bool        `json:"given_up"` // by the leader: the result does without it
}

// count counts how the tasks of g have ended; record is the team's record at the goal's end.
func (o *outcome) count(g *client.Goal, record team.Team) {
	o.Failed = []failedTask{}
	for _, v := range o.Tasks {
		if !g.Has(v.ID) {
			continue
		}
		o.all++
		switch v.Status {
		case team.Completed:
			o.completed++
		case team.Failed:
			o.Failed = append(o.Failed, failedTask{v.ID, v.Title, v.Reason, slices.Contains(record.GivenUp, v.ID)})
		case team.Pending, team.InProgress:
			o.open = append(o.open, v)
		}
	}
}

// inWords describes how the goal has ended.
func (o *outcome) inWords() string {
	return team.Ending{Status: team.Status(o.Status), Failed: len(o.Failed)}.InWords()
}

// err returns the error of a goal that has not ended well; nil if it has.
func (o *outcome) err() error {
	if o.Status != string(team.TeamFinished) {
		text := "the goal ended as " + o.Status
		if o.Reason != "" {
			text += ": " + o.Reason
		}
		return team.Errorf(team.InvalidState, "%s", text)
	}
	var missed []string
	for _, f := range o.Failed {
		if !f.Given {
			missed = append(missed, string(f.ID))
		}
	}
	if missed == nil {
		return nil
	}
	return team.Errorf(team.InvalidState, "the goal ended as finished, with failed tasks that the leader has not given up: %s", strings.Join(missed, ", "))
}

// printOutcome prints o; for people the epilogue, if there is one, is the last line of a finished goal.
func (a *app) printOutcome(o outcome, epilogue string) error {
	return a.print(o, []string{string(o.Team)}, func() {
		if !o.interrupted { // else there is nothing to conclude yet
			a.showOutcome(o, epilogue)
		}
	})
}

func (a *app) showOutcome(o outcome, epilogue string) {
	s := strings.TrimSpace(o.Summary)
	if s != "" && !o.quiet {
		fmt.Fprintln(a.out)
	}
	a.sayText(s)
	if o.quiet {
		return
	}
	fmt.Fprintln(a.out)
	printSome(a.out, "failed", o.Failed, func(f failedTask) string {
		line := fmt.Sprintf("%s %s", f.ID, printable(f.Title))
		if f.Reason != "" {
			line += ": " + printable(team.Clean(team.OneLine(f.Reason), maxReason))
		}
		return line
	})
	if o.Status == string(team.TeamFailed) {
		printSome(a.out, "not done", o.open, func(v team.TaskView) string {
			return fmt.Sprintf("%s %s (%s)", v.ID, printable(v.Title), v.Shown())
		})
	}
	of := "tasks"
	if len(o.Tasks) > o.all { // the board, which finish_team counts, holds more
		of = "tasks of this goal"
	}
	a.sayText(fmt.Sprintf("%s: %d of %d %s completed, %s, %s, %.1f s", o.inWords(), o.completed, o.all, of, explain.Counted(o.Usage.ModelCalls, "model call"), used(o.Usage, o.priced), o.Elapsed))
	o.Branch.write(a.out)
	if epilogue != "" && o.Status == string(team.TeamFinished) {
		fmt.Fprintln(a.out, epilogue)
	}
}

// Limits for the list of tasks that are not completed.
const (
	maxFailedShown = 20
	maxReason      = 200 // characters: the reason may be the output of a check
)

// printSome prints the first few of all, one a line, each after the prefix what.
func printSome[T any](w io.Writer, what string, all []T, line func(T) string) {
	for i, v := range all {
		if i == maxFailedShown {
			fmt.Fprintf(w, "%s: and %d more\n", what, len(all)-i)
			return
		}
		fmt.Fprintln(w, wrapped(what+": "+line(v), lineWidth(w)))
	}
}

// used describes the tokens and cost of model calls, as far as known. An unknown cost is mentioned only if
// prices are set.
func used(u client.Usage, priced bool) string {
	s := about(u.TotalTokens, u.Estimated) + " tokens"
	if u.TotalTokens+u.WastedTokens == 0 {
		return s
	}
	var parts []string
	for _, p := range []struct {
		name   string
		tokens int
	}{{"in", u.PromptTokens}, {"cached", u.CachedTokens}, {"out", u.CompletionTokens}, {"reasoning", u.ReasoningTokens}, {"wasted", u.WastedTokens}} {
		if p.tokens > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.tokens))
		}
	}
	s += " (" + strings.Join(parts, ", ") + ")"
	if u.Cost != nil || priced {
		s += ", cost " + price(u.Cost, u.Currency, u.UnpricedCalls, u.Estimated)
	}
	return s
}
