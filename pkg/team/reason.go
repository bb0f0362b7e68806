package team

import (
	"cmp"
	"fmt"
)

// Ending states how a goal ends.
type Ending struct {
	Status  Status   // finished, failed or stopped
	Summary string   // the result
	Reason  string   // why it has failed; "" if it has not
	GivenUp []TaskID // the failed tasks that the result does without
	Failed  int      // tasks of the goal that have failed
}

// InWords returns the ending as people read it, such as "finished, 2 tasks failed".
func (e Ending) InWords() string {
	switch e.Failed {
	case 0:
		return string(e.Status)
	case 1:
		return string(e.Status) + ", 1 task failed"
	}
	return fmt.Sprintf("%s, %d tasks failed", e.Status, e.Failed)
}

// Failed counts the tasks that have failed since the goal was set.
func (t Team) Failed(tasks []Task) (n int) {
	for _, task := range tasks {
		if task.Status == Failed && task.Revision > t.GoalSeq {
			n++
		}
	}
	return n
}

// InWords returns the status of the team or, once its goal has ended, how it ended.
func (t Team) InWords() string { return cmp.Or(t.End, string(t.Status)) }

// InWords returns how the goal has ended.
func (g PastGoal) InWords() string { return cmp.Or(g.End, string(g.Status)) }

// Why returns why the team's last goal has failed, else its result.
func (t Team) Why() string { return cmp.Or(t.Reason, t.Summary) }
