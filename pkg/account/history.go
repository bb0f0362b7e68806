package account

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// Step is one change in the life of a task, as it is told to people.
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

// History tells the life of a task from copies of its record, oldest first. whole
// is false if the oldest is not the one that was created; the first step then only
// says how it stood.
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
			s.What, s.Why = changed(copies[i-1], t)
		}
		steps = append(steps, s)
	}
	return steps, whole
}

// change is what was done to a task between two copies of its record.
type change int

const (
	edited    change = iota // or only written again
	created                 // there is no copy before
	claimed                 // by its holder
	assigned                // by somebody else, to its holder
	passed                  // from its holder to another
	kept                    // by somebody, for a member
	unkept                  // it is anybody's again
	adopted                 // by a later incarnation of its holder
	unchecked               // completing it failed by its check
	released                // by its holder
	freed                   // by somebody else
	completed
	undone // what it has changed was taken back
	failed
	cancelled
)

// changeOf returns what made t of before, which is zero if it is not known.
func changeOf(before, t team.Task) change {
	held := before.Status == team.InProgress
	switch {
	case t.Status != before.Status && t.Status == team.Completed:
		return completed
	case t.Status != before.Status && t.Status == team.Failed:
		return failed
	case t.Status != before.Status && t.Status == team.Cancelled:
		return cancelled
	case t.Undone != before.Undone && t.Status == before.Status:
		return undone
	case t.Status == team.InProgress && !held && t.UpdatedBy != t.Assignee && t.UpdatedBy != "":
		return assigned
	case t.Status == team.InProgress && !held:
		return claimed
	case t.Status == team.InProgress && t.Assignee != before.Assignee:
		return passed
	case t.Status == team.InProgress && t.Incarnation != before.Incarnation:
		return adopted
	case t.Status == team.InProgress && t.Attempts > before.Attempts:
		return unchecked
	case t.Status == team.Pending && held && t.UpdatedBy != before.Assignee:
		return freed
	case t.Status == team.Pending && held:
		return released
	case t.Status == team.Pending && before.Status == "" && t.Untouched():
		return created
	case t.Status == team.Pending && t.ReservedFor != before.ReservedFor && t.ReservedFor != "":
		return kept
	case t.Status == team.Pending && t.ReservedFor != before.ReservedFor:
		return unkept
	}
	return edited
}

// ChangeType returns the type of the event that made t of before, the copy of the
// record before it; a zero Task if that is not known. Of before it takes Status,
// Assignee, Incarnation, Attempts and ReservedFor.
func ChangeType(before, t team.Task) team.EventType {
	switch changeOf(before, t) {
	case created:
		return team.TaskCreated
	case claimed:
		return team.TaskClaimed
	case assigned, passed, kept:
		return team.TaskAssigned
	case adopted:
		return team.TaskAdopted
	case released, freed:
		return team.TaskReleased
	case completed:
		return team.TaskCompleted
	case failed:
		return team.TaskFailed
	case cancelled:
		return team.TaskCancelled
	}
	return team.TaskUpdated
}

// changed returns what was done between two copies of a task, and why.
func changed(before, t team.Task) (what, why string) {
	held := before.Status == team.InProgress
	switch changeOf(before, t) {
	case completed:
		return "completed", t.ResultSummary
	case undone:
		return "undone", "by commit " + t.Undone + " of the line"
	case failed:
		if held && t.UpdatedBy == team.Watchdog {
			return fmt.Sprintf("taken from %s, failed", before.Assignee), t.Reason
		}
		return "failed", t.Reason
	case cancelled:
		if held {
			return fmt.Sprintf("cancelled, taken from %s", before.Assignee), t.Reason
		}
		return "cancelled", t.Reason
	case assigned:
		return fmt.Sprintf("assigned to %s", t.Assignee), ""
	case claimed:
		return "claimed", ""
	case passed:
		return fmt.Sprintf("reassigned from %s to %s", before.Assignee, t.Assignee), ""
	case kept:
		return "reserved for " + string(t.ReservedFor), ""
	case unkept:
		return "no longer reserved for " + string(before.ReservedFor), ""
	case adopted:
		return "adopted" + counted(before, t), fmt.Sprintf("incarnation %d goes on for %d", t.Incarnation, before.Incarnation)
	case unchecked:
		return "check failed" + attempts(t), t.Reason
	case freed:
		return fmt.Sprintf("taken from %s%s", before.Assignee, counted(before, t)), t.Reason
	case released:
		return "released" + counted(before, t), t.Reason
	}
	return editedIn(before, t)
}

// counted tells of the attempt that a change counted as, if it did.
func counted(before, t team.Task) string {
	if t.Attempts > before.Attempts {
		return attempts(t)
	}
	return ""
}

func attempts(t team.Task) string {
	return fmt.Sprintf(" (attempt %d of %d)", t.Attempts, team.MaxAttempts)
}

// editedIn names the fields that an edit changed, and how.
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
	if fields == nil {
		return "written again", ""
	}
	return "edited " + strings.Join(fields, ", "), strings.Join(how, "; ")
}

// difference is what was added and taken away, as "+T-003 -T-001".
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
