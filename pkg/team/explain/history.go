package explain

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// Step is one change of a task, as people see it.
type Step struct {
	At       time.Time       `json:"at"`
	By       team.AgentID    `json:"by"`       // who made the change; "" if the record does not tell
	From     team.TaskStatus `json:"from"`     // "" for the first step
	To       team.TaskStatus `json:"to"`       // the same as From if something else was changed
	Assignee team.AgentID    `json:"assignee"` // afterwards: who holds it, or held it last
	Epoch    uint64          `json:"epoch"`
	Revision uint64          `json:"revision"`
	What     string          `json:"what"` // what was done, in a few words
	Why      string          `json:"why"`  // the reason, the result, or what was edited
}

// History returns the steps of a task from copies of its record, oldest first. whole is false if the oldest
// copy is not that of its creation; the first step then states only its status.
func History(copies []team.Task) (steps []Step, whole bool) {
	for i, t := range copies {
		s := Step{At: t.UpdatedAt, By: t.UpdatedBy, To: t.Status, Assignee: t.Assignee, Epoch: t.Epoch, Revision: t.Revision}
		if i == 0 {
			whole = t.Untouched()
			s.By, s.What = cmp.Or(s.By, t.CreatedBy), "created"
			if !whole {
				s.What, s.Why = "older copies are gone", t.Reason
			}
		} else {
			s.From = copies[i-1].Status
			_, s.What, s.Why = Change(copies[i-1], t)
			s.By = Writer(copies[i-1], t)
		}
		steps = append(steps, s)
	}
	return steps, whole
}

// Writer returns the agent that made t out of the previous copy before; "" if the record does not show it. A
// member whose hold is over adds its work to the record without becoming its author.
func Writer(before, t team.Task) team.AgentID {
	if t.Status == before.Status && t.Epoch == before.Epoch {
		for _, y := range t.Returned {
			if !slices.Contains(before.Returned, y) {
				return y.By
			}
		}
	}
	return t.UpdatedBy
}

// Change returns how t came from the previous copy before: the type of the event, the change in a few words,
// and the reason. For the type alone before may be zero, or have Status, Assignee, Incarnation, Attempts and
// ReservedFor only.
func Change(before, t team.Task) (kind team.EventType, what, why string) {
	held, from := before.Status == team.InProgress, "taken from "+string(before.Assignee)
	switch {
	case t.Status != before.Status && t.Status == team.Completed:
		return team.TaskCompleted, "completed", t.ResultSummary
	case t.Status != before.Status && t.Status == team.Failed && held && t.UpdatedBy == team.Watchdog:
		return team.TaskFailed, from + ", failed", t.Reason
	case t.Status != before.Status && t.Status == team.Failed:
		return team.TaskFailed, "failed", t.Reason
	case t.Status != before.Status && t.Status == team.Cancelled && held:
		return team.TaskCancelled, "cancelled, " + from, t.Reason
	case t.Status != before.Status && t.Status == team.Cancelled:
		return team.TaskCancelled, "cancelled", t.Reason
	case t.Undone != before.Undone && t.Status == before.Status: // what it has changed was taken back
		return team.TaskUpdated, "undone", "by commit " + t.Undone + " of the line"
	case t.Status == team.InProgress && !held && t.UpdatedBy != t.Assignee && t.UpdatedBy != "":
		return team.TaskAssigned, "assigned to " + string(t.Assignee), ""
	case t.Status == team.InProgress && !held:
		return team.TaskClaimed, "claimed", ""
	case t.Status == team.InProgress && t.Assignee != before.Assignee:
		return team.TaskAssigned, fmt.Sprintf("reassigned from %s to %s", before.Assignee, t.Assignee), ""
	case t.Status == team.InProgress && t.Incarnation != before.Incarnation:
		return team.TaskAdopted, "adopted" + counted(before, t), fmt.Sprintf("incarnation %d goes on for %d", t.Incarnation, before.Incarnation)
	case t.Status == team.InProgress && t.Unmerged > before.Unmerged:
		return team.TaskUpdated, "not merged, stays with " + string(t.Assignee) + counted(before, t), t.Reason
	case t.Status == team.InProgress && t.Attempts > before.Attempts: // completing it failed by its check
		return team.TaskUpdated, "check failed" + counted(before, t), t.Reason
	case t.Status == team.Pending && held && t.UpdatedBy != before.Assignee:
		return team.TaskReleased, from + counted(before, t) + kept(t), t.Reason
	case t.Status == team.Pending && held:
		return team.TaskReleased, "released" + counted(before, t) + kept(t), t.Reason
	case t.Status == team.Pending && before.Status == "" && t.Untouched():
		return team.TaskCreated, "created", ""
	case t.Status == team.Pending && t.ReservedFor != before.ReservedFor && t.ReservedFor != "":
		return team.TaskAssigned, "reserved for " + string(t.ReservedFor), ""
	case t.Status == team.Pending && t.ReservedFor != before.ReservedFor:
		return team.TaskUpdated, "no longer reserved for " + string(before.ReservedFor), ""
	}
	what, why = editedIn(before, t)
	return team.TaskUpdated, what, why
}

// counted returns the number of the attempt if the change counted as one; else "".
func counted(before, t team.Task) string {
	if t.Attempts > before.Attempts {
		return fmt.Sprintf(" (attempt %d of %d)", t.Attempts, team.MaxAttempts)
	}
	return ""
}

// kept names the member that a freed task is reserved for; "" if none.
func kept(t team.Task) string {
	if t.ReservedFor == "" {
		return ""
	}
	return ", reserved for " + string(t.ReservedFor)
}

// editedIn returns the names and the details of the fields that an edit changed.
func editedIn(before, t team.Task) (what, why string) {
	var fields, how []string
	note := func(differs bool, field, detail string) {
		if !differs {
			return
		}
		fields = append(fields, field)
		if detail != "" {
			how = append(how, detail)
		}
	}
	note(before.Title != t.Title, "title", fmt.Sprintf("%q -> %q", before.Title, t.Title))
	note(before.Description != t.Description, "description", "")
	note(before.Priority != t.Priority, "priority", team.PriorityName(before.Priority)+" -> "+team.PriorityName(t.Priority))
	note(!slices.Equal(before.Dependencies, t.Dependencies), "dependencies", difference(before.Dependencies, t.Dependencies))
	note(!bytes.Equal(before.Metadata, t.Metadata), "metadata", "")
	switch n := len(t.Returned); {
	case fields != nil:
	case n > 0 && !slices.Equal(before.Returned, t.Returned):
		return "stored what a former holder has changed", ""
	default:
		return "written again", ""
	}
	return "edited " + strings.Join(fields, ", "), strings.Join(how, "; ")
}

// difference returns the added and removed ids, as "+T-003 -T-001".
func difference(before, after []team.TaskID) string {
	var parts []string
	for _, id := range after {
		if !slices.Contains(before, id) {
			parts = append(parts, "+"+string(id))
		}
	}
	for _, id := range before {
		if !slices.Contains(after, id) {
			parts = append(parts, "-"+string(id))
		}
	}
	return strings.Join(parts, " ")
}
