package teamtool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/model/tokens"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// The types below are the short results that models see. Programs get the whole records.

// earlier describes the end of an earlier hold of a task for its next holder.
type earlier struct {
	By     team.AgentID `json:"by"`
	Reason string       `json:"reason,omitempty"`
	Left   string       `json:"left,omitempty"`   // where unfinished work is
	Commit string       `json:"commit,omitempty"` // of work that was not merged
	Branch string       `json:"branch,omitempty"` // contains that commit, in a tree of the next holder
}

// taken is the information on a task just taken that its record does not have.
type taken struct {
	tries  []team.Try // how the earlier holds ended: the claim has removed that from the record
	brings team.Inherited
}

// taken reads that information. A part that cannot be read is left out, since the claim is made;
// the record names where the work is, and the gate stays closed.
func (t tools) taken(ctx context.Context, task team.Task) (k taken) {
	ctx, done := shutdown.Outlive(ctx, shutdown.Tools)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, resultWithin)
	defer cancel()
	last, unmerged, err := t.Slot.LastTry(ctx, task)
	for _, y := range []*team.Try{last, unmerged} {
		if err == nil && y != nil {
			k.tries = append(k.tries, *y)
		}
	}
	if t.Inherited != nil {
		if brings, err := t.Inherited(ctx, task); err == nil {
			k.brings = brings
		}
	}
	return k
}

// effects returns the effects of taking a task: if it inherits a wait, the model is not asked for
// the next step.
func (k taken) effects(task team.Task) tool.Effects {
	return tool.Effects{Moved: &task, Await: k.brings.Await}
}

// earlierHolds returns the tries, and the other holds whose work on t was not merged.
func earlierHolds(t team.Task, tries []team.Try) (all []earlier) {
	stored := slices.DeleteFunc(slices.Clone(t.Returned), func(y team.Try) bool { return y.Commit == "" })
	for _, y := range slices.Concat(tries, stored) {
		e := earlier{By: y.By, Reason: y.Reason, Left: y.Left(), Commit: y.Commit}
		if y.Commit != "" {
			e.Branch = y.Branch(t.ID)
		}
		if !slices.ContainsFunc(all, func(o earlier) bool { return o.Branch != "" && o.Branch == e.Branch }) {
			all = append(all, e)
		}
	}
	return all
}

// changed returns the result of a change to a task: without the caller's own input and empty
// fields. k has the information on a task just taken; nil for any other.
func changed(c team.TaskView, k *taken) any {
	b := struct {
		ID          team.TaskID     `json:"id"`
		Status      team.TaskStatus `json:"status"`
		Assignee    team.AgentID    `json:"assignee,omitempty"`
		ReservedFor team.AgentID    `json:"reserved_for,omitempty"`
		Why         string          `json:"why,omitempty"`
		WaitingFor  []team.TaskID   `json:"waiting_for,omitempty"`
		Attempts    int             `json:"attempts,omitempty"`
		Earlier     []earlier       `json:"earlier,omitempty"`
		Brings      string          `json:"brings,omitempty"`
	}{ID: c.ID, Status: c.Status, ReservedFor: c.ReservedFor, Why: c.Why, WaitingFor: c.WaitingFor}
	if c.Status == team.InProgress {
		b.Assignee = c.Assignee
	}
	if c.Status.Open() {
		b.Attempts = c.Attempts
	}
	if k != nil {
		b.Earlier, b.Brings = earlierHolds(c.Task, k.tries), k.brings.Text()
	}
	return b
}

// whole returns a task in full, without empty fields and those that only programs need. k has the
// information on a task just taken.
func whole(w team.TaskView, k taken) any {
	b := struct {
		ID           team.TaskID     `json:"id"`
		Title        string          `json:"title"`
		Status       team.TaskStatus `json:"status"`
		Assignee     team.AgentID    `json:"assignee,omitempty"`
		ReservedFor  team.AgentID    `json:"reserved_for,omitempty"`
		Role         string          `json:"role,omitempty"`
		Gate         team.Approver   `json:"needs_plan_approved_by,omitempty"`
		Priority     int             `json:"priority,omitempty"`
		Description  string          `json:"description,omitempty"`
		Dependencies []team.TaskID   `json:"dependencies,omitempty"`
		WaitingFor   []team.TaskID   `json:"waiting_for,omitempty"`
		Blocks       []team.TaskID   `json:"blocks,omitempty"`
		Check        string          `json:"check,omitempty"`
		Deliverable  string          `json:"deliverable_path,omitempty"`
		Required     bool            `json:"deliverable_required,omitempty"`
		Summary      string          `json:"result_summary,omitempty"`
		Reason       string          `json:"reason,omitempty"`
		Attempts     int             `json:"attempts,omitempty"`
		Earlier      []earlier       `json:"earlier,omitempty"`
		Brings       string          `json:"brings,omitempty"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		CreatedBy    team.AgentID    `json:"created_by,omitempty"`
	}{w.ID, w.Title, w.Status, w.Assignee, w.ReservedFor, w.Role, w.Gate, w.Priority, w.Description, w.Dependencies, w.WaitingFor, w.Blocks, w.Check,
		w.DeliverablePath, w.DeliverableReq, w.ResultSummary, w.Reason, w.Attempts, earlierHolds(w.Task, k.tries), k.brings.Text(), w.Metadata, w.CreatedBy}
	if w.Status == team.Completed && w.Digest == "" { // there is no such file
		b.Deliverable = ""
	}
	return b
}

// planned is the result of create_tasks, in the order of the call.
type planned []plannedTask

type plannedTask struct {
	Key          string        `json:"key"`
	ID           team.TaskID   `json:"id"`
	ReservedFor  team.AgentID  `json:"reserved_for,omitempty"`
	Dependencies []team.TaskID `json:"dependencies,omitempty"`
}

// taskList is a page of the board.
type taskList struct {
	Tasks []team.TaskView `json:"tasks"`
	Page  int             `json:"page"`
	Total int             `json:"total"` // on all pages
}

const (
	pageOfTasks = 100
	lineTokens  = 40 // of one task in a list, estimated: a page must not fill a model's window
)

// brief returns a line for each task, and one with the number of the tasks on later pages.
func (l taskList) brief() string {
	var b strings.Builder
	for _, v := range l.Tasks {
		b.WriteString(taskLine(v) + "\n")
	}
	switch after := l.Total - (l.Page-1)*pageOfTasks - len(l.Tasks); {
	case len(l.Tasks) == 0 && l.Total > 0:
		fmt.Fprintf(&b, "(no tasks on page %d; all %d are on the pages before)", l.Page, l.Total)
	case len(l.Tasks) == 0:
		b.WriteString("(no tasks)")
	case after > 0:
		fmt.Fprintf(&b, "[%d more: go on with page %d]", after, l.Page+1)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// taskLine returns a task in a list: its status, its title, and the first words of its result.
func taskLine(v team.TaskView) string {
	line := fmt.Sprintf("%s %s", v.ID, v.Status)
	switch {
	case v.Status == team.Pending && len(v.WaitingFor) > 0:
		line += ", waits for " + team.Some(v.WaitingFor, 3)
	case v.Why != "":
		line += ", " + v.Why
	case v.Status == team.InProgress, v.Status == team.Completed:
		line += " (" + string(v.Assignee) + ")"
	}
	if v.ReservedFor != "" {
		line += ", reserved for " + string(v.ReservedFor)
	} else if v.Role != "" && v.Status == team.Pending {
		line += ", for a " + v.Role
	}
	line += ": " + v.Title
	if what := cmp.Or(v.ResultSummary, v.Reason); what != "" {
		line = within(line, lineTokens*2/3) + " - " + team.Summarize(what)
	}
	return within(line, lineTokens)
}

// within returns the beginning of a line, up to about limit tokens.
func within(line string, limit int) string {
	n := tokens.Estimate(line)
	if n <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:len(line)*limit/n], "") + "..."
}
