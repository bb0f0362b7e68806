package team_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestEdit(t *testing.T) {
	task := team.NewTask{Title: "old", Role: "coder", Dependencies: []team.TaskID{"T-001", "T-002"}}.Task("T-009", "leader", at)
	later := at.Add(1)
	e := team.Edit{
		Title: new("新的 🚀"), Description: new("more"), Priority: new(2), Metadata: json.RawMessage(`{"k":1}`),
		AddDependencies: []team.TaskID{"T-1000", "T-002", "T-999"}, RemoveDependencies: []team.TaskID{"T-001"},
	}
	got := must(t)(e.Apply(task, team.Leader, later))
	if got.Title != "新的 🚀" || got.Description != "more" || got.Priority != 2 || string(got.Metadata) != `{"k":1}` || !got.UpdatedAt.Equal(later) {
		t.Errorf("edited = %+v", got)
	}
	if want := []team.TaskID{"T-002", "T-999", "T-1000"}; !slices.Equal(got.Dependencies, want) {
		t.Errorf("dependencies are %v, want %v", got.Dependencies, want)
	}
	if got.DeliverablePath != task.DeliverablePath || got.Role != "coder" || got.CreatedBy != "leader" || !got.CreatedAt.Equal(at) {
		t.Errorf("an edit changed what it must keep: %+v", got)
	}
	if !slices.Equal(task.Dependencies, []team.TaskID{"T-001", "T-002"}) {
		t.Error("the task it was made from has changed")
	}
}

func TestEditRefused(t *testing.T) {
	tasks := inEach(t)
	title, meta := team.Edit{Title: new("x")}, team.Edit{Metadata: json.RawMessage(`{}`)}
	for status, want := range map[team.TaskStatus]team.Code{
		team.Pending: "", team.InProgress: team.Conflict,
		team.Completed: team.InvalidState, team.Failed: team.InvalidState, team.Cancelled: team.InvalidState,
	} {
		for name, e := range map[string]team.Edit{"title": title, "priority": {Priority: new(1)}, "description": {Description: new("more")},
			"dependencies": {AddDependencies: []team.TaskID{"T-002"}}} {
			if _, err := e.Apply(tasks[status], team.Leader, at); team.CodeOf(err) != want {
				t.Errorf("%s of a task that is %s: %v, want %q", name, status, err, want)
			}
		}
		if _, err := meta.Apply(tasks[status], team.Leader, at); err != nil {
			t.Errorf("metadata of a task that is %s: %v", status, err)
		}
	}
	for name, e := range map[string]team.Edit{
		"empty title": {Title: new("")}, "priority": {Priority: new(5)}, "long": {Description: new(strings.Repeat("x", team.MaxTextBytes+1))},
		"metadata": {Metadata: json.RawMessage(`nonsense`)},
	} {
		if _, err := e.Apply(tasks[team.Pending], team.Leader, at); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%s: %v, want invalid_argument", name, err)
		}
	}
}

// What a task says already is not written again: it stays as it was, with its time and
// author.
func TestEditChangesNothing(t *testing.T) {
	task := team.NewTask{Title: "old", Description: "d", Priority: 1, Dependencies: []team.TaskID{"T-001"}, Metadata: json.RawMessage(`{"k":1}`)}.
		Task("T-009", "leader", at)
	bare, claimed := pending(), task
	claimed.Status = team.InProgress
	for name, tt := range map[string]struct {
		task team.Task
		edit team.Edit
	}{
		"title":       {task, team.Edit{Title: new(" old ")}},
		"description": {task, team.Edit{Description: new("d")}},
		"priority":    {task, team.Edit{Priority: new(1)}},
		"dependency":  {task, team.Edit{AddDependencies: []team.TaskID{"T-001", "T-001"}}},
		"metadata":    {task, team.Edit{Metadata: json.RawMessage("{ \"k\": 1 }\n")}},
		"absent":      {task, team.Edit{RemoveDependencies: []team.TaskID{"T-007"}}},
		"claimed":     {claimed, team.Edit{Title: new("old"), AddDependencies: []team.TaskID{"T-001"}, RemoveDependencies: []team.TaskID{"T-007"}}},
		"no metadata": {bare, team.Edit{Metadata: json.RawMessage(`{}`)}},
		"all":         {task, team.Edit{Title: new("old"), Description: new("d"), Priority: new(1)}},
	} {
		got, err := tt.edit.Apply(tt.task, "user", at.Add(1))
		if err != nil || !got.Calls(tt.task) || got.UpdatedBy != "leader" || !got.UpdatedAt.Equal(at) || !bytes.Equal(got.Metadata, tt.task.Metadata) {
			t.Errorf("%s: %+v, %v; want the task as it was", name, got, err)
		}
	}
	if got := must(t)(team.Edit{Title: new("old"), Priority: new(2)}.Apply(task, "user", at.Add(1))); got.Calls(task) || got.UpdatedBy != "user" {
		t.Errorf("with one change it is %+v", got)
	}
}

// Whether a dependency is to be there or not must be said.
func TestEditContradicts(t *testing.T) {
	task := team.NewTask{Title: "x", Dependencies: []team.TaskID{"T-001", "T-002"}}.Task("T-009", "leader", at)
	for _, id := range []team.TaskID{"T-001", "T-007"} {
		_, err := team.Edit{AddDependencies: []team.TaskID{id}, RemoveDependencies: []team.TaskID{id}}.Apply(task, "user", at)
		if team.CodeOf(err) != team.InvalidArgument || team.HintOf(err) != "leave one of both out" {
			t.Errorf("%s: %v, hint %q", id, err, team.HintOf(err))
		}
	}
}

func TestEditEmpty(t *testing.T) {
	if e := (team.Edit{}); !e.Empty() || e.TouchesGraph() {
		t.Error("the zero Edit changes nothing")
	}
	for _, e := range []team.Edit{{Title: new("")}, {Description: new("")}, {Priority: new(0)}, {Metadata: json.RawMessage(`{}`)},
		{AddDependencies: []team.TaskID{"T-001"}}, {RemoveDependencies: []team.TaskID{"T-001"}}} {
		if e.Empty() {
			t.Errorf("%+v is not empty", e)
		}
	}
	if e := (team.Edit{RemoveDependencies: []team.TaskID{"T-001"}}); !e.TouchesGraph() {
		t.Error("removing a dependency touches the graph")
	}
}
