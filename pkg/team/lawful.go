package team

import "slices"

// Unlawful says why no rule allows a task to go from one copy of its record to the next; "" if
// one does. It is for whoever sees what was written: writers are kept to the rules by the
// transitions themselves, and programs of others may not be.
func Unlawful(before, t Task) string {
	same := t.Assignee == before.Assignee && t.Incarnation == before.Incarnation
	switch {
	case t.Epoch < before.Epoch:
		return "the epoch fell"
	case t.Attempts < before.Attempts:
		return "attempts were forgotten"
	case !slices.Equal(before.Dependencies, t.Dependencies) && (before.Status != Pending || t.Status != Pending):
		return "dependencies of a task that is not pending were changed"
	case t.ReservedFor != "" && t.Status != Pending:
		return "it is reserved and not pending"
	case !before.Status.Open():
		switch over := t.Status == before.Status && same && t.Epoch == before.Epoch && t.ResultSummary == before.ResultSummary; {
		case over: // its metadata may change
			return ""
		case t.Status == Completed && before.Status == Completed:
			return "it was completed twice"
		}
		return "it was over"
	case t.Status == Cancelled:
		return unless(same && t.Epoch == before.Epoch, "more than the status was changed")
	}
	switch [2]TaskStatus{before.Status, t.Status} {
	case [2]TaskStatus{Pending, Pending}:
		return unless(same && t.Epoch == before.Epoch && t.Attempts == before.Attempts, "a task that nobody holds was changed by more than an edit")
	case [2]TaskStatus{Pending, InProgress}:
		if before.ReservedFor != "" && before.ReservedFor != t.Assignee {
			return "it is reserved for " + string(before.ReservedFor)
		}
		return unless(t.Epoch == before.Epoch+1, "a claim raises the epoch by one")
	case [2]TaskStatus{InProgress, InProgress}:
		if same {
			return unless(t.Epoch == before.Epoch, "the holder is the same and the epoch is not")
		}
		return unless(t.Epoch == before.Epoch+1, "another holder raises the epoch by one")
	case [2]TaskStatus{InProgress, Completed}:
		return unless(same && t.Epoch == before.Epoch, "it was not completed by its holder")
	case [2]TaskStatus{InProgress, Failed}, [2]TaskStatus{InProgress, Pending}:
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
