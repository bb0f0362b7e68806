package team

import (
	"encoding/json"
	"time"
)

// TaskView is a task as it is printed: the record, and facts derived from it and its neighbours. Those are not stored.
type TaskView struct {
	Task
	Revision   uint64     `json:"revision"`
	IsBlocked  bool       `json:"is_blocked"`        // pending, and a dependency is not completed
	WaitingFor []TaskID   `json:"waiting_for"`       // its dependencies that are not completed
	Blocks     []TaskID   `json:"blocks"`            // tasks that name it as a dependency and are not cancelled
	Why        string     `json:"why,omitempty"`     // why nobody works on it, see [Situation.Why]; only where that was asked for
	Merging    *time.Time `json:"merging,omitempty"` // since when its work waits to be in the team's line; nil: it does not, or that was not asked for
}

// View returns the views of tasks, which are all tasks of the board.
func View(tasks []Task) []TaskView {
	status := make(map[TaskID]TaskStatus, len(tasks))
	blocks := map[TaskID][]TaskID{}
	for _, t := range tasks {
		status[t.ID] = t.Status
		for _, d := range t.Dependencies {
			if t.Status != Cancelled {
				blocks[d] = append(blocks[d], t.ID)
			}
		}
	}
	views := make([]TaskView, len(tasks))
	for i, t := range tasks {
		waiting := []TaskID{}
		for _, d := range t.Dependencies {
			if status[d] != Completed {
				waiting = append(waiting, d)
			}
		}
		views[i] = t.View(waiting, blocks[t.ID])
	}
	return views
}

// View returns the view of t with its open dependencies and the tasks that it blocks. It makes nil lists empty.
func (t Task) View(waitingFor, blocks []TaskID) TaskView {
	v := TaskView{Task: t, Revision: t.Revision, IsBlocked: t.Status == Pending && len(waitingFor) > 0, WaitingFor: waitingFor, Blocks: blocks}
	for _, list := range []*[]TaskID{&v.WaitingFor, &v.Blocks, &v.Dependencies} {
		if *list == nil {
			*list = []TaskID{}
		}
	}
	if v.Metadata == nil {
		v.Metadata = json.RawMessage("{}")
	}
	return v
}

// Claimable reports whether a member of this name and role would take the task automatically.
func (v TaskView) Claimable(name AgentID, role string) bool {
	return v.Status == Pending && !v.IsBlocked && v.Fits(name, role)
}

// Dead reports whether the task waits for a failed or cancelled dependency, named by, and so never becomes claimable
// without an edit.
func (v TaskView) Dead(status func(TaskID) TaskStatus) (by TaskID, dead bool) {
	for _, d := range v.WaitingFor {
		if s := status(d); s == Failed || s == Cancelled {
			return d, true
		}
	}
	return "", false
}
