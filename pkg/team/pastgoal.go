package team

import (
	"fmt"
	"slices"
	"time"
)

// PastGoal is the summary of an ended goal in the team's record, for the leader of the next one.
type PastGoal struct {
	Number  int        `json:"number"`
	Goal    string     `json:"goal"`          // its beginning, at most 300 characters
	Status  Status     `json:"status"`        // how it ended
	End     string     `json:"end,omitempty"` // the same in words; "" = not known
	SetAt   *time.Time `json:"set_at,omitempty"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
	Summary string     `json:"summary,omitempty"` // of its end, at most 1,500 characters
	Reason  string     `json:"reason,omitempty"`  // why it has failed, at most 300 characters
	Tasks   string     `json:"tasks,omitempty"`   // in a start record: its tasks, in a line
}

// maxPastGoals bounds how many ended goals a record keeps: the newest.
const maxPastGoals = 5

// Ended returns the past goals of t, with its present one if that has ended; the slice is
// the caller's.
func (t Team) Ended() []PastGoal {
	past := slices.Clone(t.PastGoals)
	if t.Goal == "" || t.Status == Active {
		return past
	}
	past = append(past, PastGoal{Number: t.GoalNumber, Goal: Clip(t.Goal, 300), Status: t.Status, End: t.End, SetAt: t.GoalAt, EndedAt: t.FinishedAt, Summary: Clip(t.Summary, 1500), Reason: Clip(t.Reason, 300)})
	return past[max(0, len(past)-maxPastGoals):]
}

// WithTasks returns the past goals with a summary of their tasks: those created between the setting of a goal
// and of the next.
func WithTasks(past []PastGoal, tasks []Task) []PastGoal {
	past = slices.Clone(past)
	of := make([][]Task, len(past))
	for _, task := range tasks {
		i := len(past) - 1
		for i >= 0 && (past[i].SetAt == nil || task.CreatedAt.Before(*past[i].SetAt)) {
			i--
		}
		present := i == len(past)-1 && i >= 0 && past[i].EndedAt != nil && task.CreatedAt.After(*past[i].EndedAt)
		if i >= 0 && !present {
			of[i] = append(of[i], task)
		}
	}
	for i, tasks := range of {
		past[i].Tasks = inShort(tasks)
	}
	return past
}

// inShort summarizes tasks in a line, such as "T-001 to T-004: 3 completed, 1 failed (T-002)".
func inShort(tasks []Task) string {
	if len(tasks) == 0 {
		return ""
	}
	slices.SortFunc(tasks, func(a, b Task) int { return a.ID.Number() - b.ID.Number() })
	text := string(tasks[0].ID)
	if last := tasks[len(tasks)-1].ID; len(tasks) > 1 {
		text += " to " + string(last)
	}
	sep := ": "
	for _, s := range []TaskStatus{Completed, Failed, Cancelled, InProgress, Pending} {
		var ids []TaskID
		for _, t := range tasks {
			if t.Status == s {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		text += fmt.Sprintf("%s%d %s", sep, len(ids), s)
		sep = ", "
		if s != Completed {
			text += " (" + Some(ids, 1) + ")"
		}
	}
	return text
}
