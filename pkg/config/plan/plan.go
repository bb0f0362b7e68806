// Package plan parses plan files: several tasks and their order, in one YAML document (docs/plans.md).
//
// It does not use the board. The caller that creates the tasks checks that the ids and the roles in a plan exist.
package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// Limits of a plan file. The board also bounds the records of all tasks of a call together.
const (
	MaxBytes     = 1 << 20
	MaxTasks     = 1000
	maxNameBytes = 128
)

// Plan is a parsed plan file. It must not be changed.
type Plan struct {
	// Tasks come in the order of the file. Those that come after others of the plan
	// name them by position ([team.NewTask.After]).
	Tasks []team.NewTask

	file document
	root strictyaml.Node
}

// document is a plan as it is written.
type document struct {
	Tasks []task `yaml:"tasks" required:"a list of tasks" minItems:"1"`
}

type task struct {
	Name           name           `yaml:"name"`
	Title          string         `yaml:"title" required:"one line that states what is to be done" minLength:"1"`
	Description    string         `yaml:"description"`
	Priority       priority       `yaml:"priority"`
	Role           string         `yaml:"role" minLength:"1"`
	DependsOn      []dependency   `yaml:"depends_on"`
	Check          string         `yaml:"check" minLength:"1"`
	DeliverableReq bool           `yaml:"deliverable_required"`
	Metadata       map[string]any `yaml:"metadata"`
}

// Parse parses a plan; file is its name in errors.
//
// Errors: [team.InvalidArgument], which begins with file:line:column and states what is allowed there. Only the first
// error is reported.
func Parse(file string, src []byte) (Plan, error) {
	if len(src) > MaxBytes {
		return Plan{}, team.Errorf(team.InvalidArgument, "%s:1:1: the plan is larger than the limit of %d bytes", file, MaxBytes)
	}
	var p Plan
	var err error
	if p.root, err = (strictyaml.Format{File: file, Kind: "plan", Quoted: true}).Decode(src, &p.file); err != nil {
		return Plan{}, err
	}
	if n := len(p.file.Tasks); n > MaxTasks {
		return Plan{}, p.root.At(fmt.Errorf("the plan has %d tasks, the limit is %d", n, MaxTasks), "tasks", MaxTasks)
	}
	p.Tasks = make([]team.NewTask, len(p.file.Tasks))
	for i, t := range p.file.Tasks {
		p.Tasks[i] = t.task()
	}
	if err := p.resolve(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// InRole returns err, about the role of a task, with the place of that role in the plan. Tasks are counted from 0, as
// in Plan.Tasks.
func (p Plan) InRole(task int, err error) error {
	if p.Tasks[task].Role == "" {
		return err
	}
	return p.root.At(err, "tasks", task, "role")
}

// InDependency is InRole for a task's dependency on the board.
func (p Plan) InDependency(task int, on team.TaskID, err error) error {
	for i, d := range p.file.Tasks[task].DependsOn {
		if id, perr := team.ParseTaskID(d.text); perr == nil && id == on {
			return p.root.At(err, "tasks", task, "depends_on", i)
		}
	}
	return err
}

// Validate checks each field as the board will, so that an error has its place.
func (t task) Validate() error {
	n := t.task()
	for _, alone := range []struct {
		key string
		n   team.NewTask
	}{
		{"title", team.NewTask{Title: n.Title}}, {"description", team.NewTask{Title: "x", Description: n.Description}},
		{"role", team.NewTask{Title: "x", Role: n.Role}}, {"check", team.NewTask{Title: "x", Check: n.Check}},
		{"metadata", team.NewTask{Title: "x", Metadata: n.Metadata}},
	} {
		if err := alone.n.Validate(); err != nil {
			return strictyaml.At(err, alone.key)
		}
	}
	if len(t.DependsOn) > team.MaxDependencies {
		return strictyaml.At(fmt.Errorf("%d dependencies are too many, the limit is %d", len(t.DependsOn), team.MaxDependencies), "depends_on")
	}
	return nil
}

// task returns t without its dependencies.
func (t task) task() team.NewTask {
	n := team.NewTask{Title: t.Title, Description: t.Description, Priority: int(t.Priority), Role: team.CanonicalRole(t.Role),
		Check: t.Check, DeliverableReq: t.DeliverableReq}
	if t.Metadata != nil {
		n.Metadata, _ = json.Marshal(t.Metadata) // the decoder has seen that JSON can hold it
	}
	return n
}

// name is the name of a task in the plan.
type name string

func (n *name) UnmarshalText(text []byte) error {
	s := string(text)
	*n = name(s)
	_, err := team.ParseTaskID(s)
	switch {
	case s == "" || len(s) > maxNameBytes || strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("want 1 to %d bytes, in one line, without spaces at the ends", maxNameBytes)
	case err == nil:
		return fmt.Errorf("%q could be the id of a task on the board", s)
	}
	return nil
}

type priority int

func (p *priority) UnmarshalText(text []byte) error {
	level, err := team.ParsePriority(string(text))
	*p = priority(level)
	return err
}

// dependency is the name of a task of the plan, or the id of one on the board.
type dependency struct{ text string }

func (d *dependency) UnmarshalText(text []byte) error {
	d.text = string(text)
	return nil
}

// resolve resolves the dependencies of the tasks. A name in the plan has priority over an id, and no name can be both.
func (p *Plan) resolve() error {
	places := map[string]int{}
	for i, t := range p.file.Tasks {
		if _, twice := places[string(t.Name)]; twice {
			return p.root.At(fmt.Errorf("a second task with the name %q", t.Name), "tasks", i, "name")
		}
		if t.Name != "" {
			places[string(t.Name)] = i
		}
	}
	after := map[int][]int{}
	for i, t := range p.file.Tasks {
		to := &p.Tasks[i]
		for k, d := range t.DependsOn {
			at, named := places[d.text]
			id, err := team.ParseTaskID(d.text)
			switch {
			case named:
				to.After = append(to.After, at)
			case err == nil:
				to.Dependencies = append(to.Dependencies, id)
			default:
				return p.root.At(team.Errorf(team.InvalidArgument, "no task of this plan has the name %q, and it is no task id", d.text).
					WithHint("give the other task a name, or write an id like T-001"), "tasks", i, "depends_on", k)
			}
		}
		after[i] = to.After
	}
	if path := team.CycleOf(after); path != nil {
		return p.waiting(path)
	}
	return nil
}

// waiting returns the error for a cycle of tasks. Only names can make one: tasks on the board do not depend on the
// plan.
func (p *Plan) waiting(path []int) error {
	var names []string
	for _, i := range append(path, path[0]) {
		names = append(names, string(p.file.Tasks[i].Name))
	}
	last := path[len(path)-1]
	k := slices.Index(p.file.Tasks[last].DependsOn, dependency{names[0]})
	return p.root.At(fmt.Errorf("the tasks wait for each other: %s", strings.Join(names, " -> ")), "tasks", last, "depends_on", k)
}
