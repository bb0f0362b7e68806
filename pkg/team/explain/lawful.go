package explain

import (
	"slices"

	"agentteam/pkg/team"
)

// Unlawful returns why no rule allows a task to go from one copy of its record to the next; "" if a rule
// does. Readers detect illegal writes with it: our own writers cannot make them, other programs can.
func Unlawful(before, t team.Task) string {
	same := t.Assignee == before.Assignee && t.Incarnation == before.Incarnation
	switch {
	case t.Epoch < before.Epoch:
		return "the epoch fell"
	case t.Attempts < before.Attempts:
		return "attempts were forgotten"
	case !slices.Equal(before.Dependencies, t.Dependencies) && (before.Status != team.Pending || t.Status != team.Pending):
		return "dependencies of a task that is not pending were changed"
	case t.Gate.Stricter(before.Gate) != t.Gate:
		return "its gate was opened"
	case t.ReservedFor != "" && t.Status != team.Pending:
		return "it is reserved and not pending"
	case !before.Status.Open():
		switch over := t.Status == before.Status && same && t.Epoch == before.Epoch && t.ResultSummary == before.ResultSummary; {
		case over: // its metadata may change
			return ""
		case t.Status == team.Completed && before.Status == team.Completed:
			return "it was completed twice"
		}
		return "it was over"
	case t.Status == team.Cancelled:
		return unless(same && t.Epoch == before.Epoch, "more than the status was changed")
	}
	switch [2]team.TaskStatus{before.Status, t.Status} {
	case [2]team.TaskStatus{team.Pending, team.Pending}:
		return unless(same && t.Epoch == before.Epoch && t.Attempts == before.Attempts, "a task that nobody holds was changed by more than an edit")
	case [2]team.TaskStatus{team.Pending, team.InProgress}:
		if before.ReservedFor != "" && before.ReservedFor != t.Assignee {
			return "it is reserved for " + string(before.ReservedFor)
		}
		return unless(t.Epoch == before.Epoch+1, "a claim raises the epoch by one")
	case [2]team.TaskStatus{team.InProgress, team.InProgress}:
		if same {
			returned := t.Unmerged == before.Unmerged+1 && t.Epoch == before.Epoch+1
			return unless(t.Epoch == before.Epoch || returned, "the holder is the same and the epoch is not")
		}
		return unless(t.Epoch == before.Epoch+1, "another holder raises the epoch by one")
	case [2]team.TaskStatus{team.InProgress, team.Completed}:
		return unless(same && t.Epoch == before.Epoch, "it was not completed by its holder")
	case [2]team.TaskStatus{team.InProgress, team.Failed}, [2]team.TaskStatus{team.InProgress, team.Pending}:
		return unless(same && t.Epoch <= before.Epoch+1, "it was freed and more than that")
	}
	return "there is no such transition"
}

func unless(right bool, wrong string) string {
	if right {
		return ""
	}
	return wrong
}
