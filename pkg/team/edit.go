package team

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// Edit is a change of the content of a task. Nil fields stay unchanged.
type Edit struct {
	Title              *string
	Description        *string
	Priority           *int
	AddDependencies    []TaskID
	RemoveDependencies []TaskID
	Supersedes         []TaskID // replaces those of the task; nil leaves them
	Metadata           json.RawMessage
}

// Empty reports whether e changes nothing.
func (e Edit) Empty() bool {
	return e.Metadata == nil && !e.TouchesWork()
}

// TouchesGraph reports whether e changes dependencies, which needs the board's guard against cycles.
func (e Edit) TouchesGraph() bool { return len(e.AddDependencies)+len(e.RemoveDependencies) > 0 }

// Apply returns t as by has edited it. If the edit changes nothing, it returns t with its time and author,
// whatever its status: a caller without an answer may repeat an edit. Only a pending task can be edited,
// except for metadata: the holder of a task in progress works on its former content. Errors: Conflict while
// it is in progress; InvalidState once it is over; InvalidArgument.
func (e Edit) Apply(t Task, by AgentID, now time.Time) (Task, error) {
	next, err := e.made(t)
	switch {
	case err != nil:
		return t, err
	case next.Calls(t):
		return t, nil
	case t.Status == InProgress && e.TouchesWork():
		return t, Errorf(Conflict, "%s is being worked on by %s and cannot be edited", t.ID, t.Assignee).
			WithHint("send %s a message, or release the task first", t.Assignee)
	case t.Status != Pending && e.TouchesWork():
		return t, Errorf(InvalidState, "%s is %s and cannot be edited", t.ID, t.Status).WithHint(startAgain)
	}
	next.UpdatedAt, next.UpdatedBy = now, by
	return next, nil
}

// TouchesWork reports whether e changes more than metadata.
func (e Edit) TouchesWork() bool {
	return e.Title != nil || e.Description != nil || e.Priority != nil || e.Supersedes != nil || e.TouchesGraph()
}

// made returns t with the edit, whatever its status.
func (e Edit) made(t Task) (Task, error) {
	deps, err := e.dependencies(t)
	if err != nil {
		return t, err
	}
	n := NewTask{Title: t.Title, Description: t.Description, Priority: t.Priority, Dependencies: deps, Role: t.Role, Supersedes: t.Supersedes, Metadata: e.Metadata}
	if e.Title != nil {
		n.Title = *e.Title
	}
	if e.Description != nil {
		n.Description = *e.Description
	}
	if e.Priority != nil {
		n.Priority = *e.Priority
	}
	if e.Supersedes != nil {
		n.Supersedes = e.Supersedes
	}
	if err := n.Validate(); err != nil {
		return t, err
	}
	edited := n.Task(t.ID, t.CreatedBy, t.CreatedAt)
	next := t
	next.Title, next.Description, next.Priority, next.Dependencies, next.Supersedes = edited.Title, edited.Description, edited.Priority, edited.Dependencies, edited.Supersedes
	if next.Title != t.Title || next.Description != t.Description {
		next.Declined = nil // it is another task to whoever could not do it
	}
	if e.Metadata != nil {
		next.Metadata = e.Metadata
	}
	return next, nil
}

// dependencies returns the dependencies of t after the edit.
func (e Edit) dependencies(t Task) ([]TaskID, error) {
	for _, d := range e.RemoveDependencies {
		if slices.Contains(e.AddDependencies, d) {
			return nil, Errorf(InvalidArgument, "the dependency on %s is to be both added and removed", d).WithHint("leave one of both out")
		}
	}
	return slices.DeleteFunc(append(slices.Clone(t.Dependencies), e.AddDependencies...), func(d TaskID) bool {
		return slices.Contains(e.RemoveDependencies, d)
	}), nil
}

// Calls reports whether t and u have the same content: no field differs that an [Edit] can change.
func (t Task) Calls(u Task) bool {
	return t.Title == u.Title && t.Description == u.Description && t.Priority == u.Priority &&
		slices.Equal(t.Dependencies, u.Dependencies) && slices.Equal(t.Supersedes, u.Supersedes) && bytes.Equal(compact(t.Metadata), compact(u.Metadata))
}

// compact returns metadata without spaces, which the store may add; {} for none, as it is printed.
func compact(m json.RawMessage) []byte {
	if len(m) == 0 {
		return []byte("{}")
	}
	var b bytes.Buffer
	if json.Compact(&b, m) != nil {
		return m
	}
	return b.Bytes()
}
