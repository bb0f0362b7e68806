// Package plan reads plan files: several tasks, and which of them comes after
// which, in one YAML document (docs/plans.md).
//
// It knows no board. Whether a task that a plan names by its id exists, and whether
// the team has a role, is for whoever creates the tasks to find out.
package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// Limits of a plan file. The board has one more: the records of all tasks of a call
// together.
const (
	MaxBytes     = 1 << 20
	MaxTasks     = 1000
	maxNameBytes = 128
)

// Plan is a plan file that was read. It must not be changed.
type Plan struct {
	// Tasks come in the order of the file. Those that come after others of the plan
	// name them by position ([team.NewTask.After]).
	Tasks []team.NewTask

	roles map[int]*yaml.Node // where the file says the role of a task
	refs  []ref
	file  string
}

// ref is a dependency as it is written, to be looked up once all names are known.
type ref struct {
	from int
	node *yaml.Node
}

// Parse reads a plan; file stands for it in errors.
//
// Errors: [team.InvalidArgument], which begins with file:line:column and says what
// is allowed there. Only the first fault is reported.
func Parse(file string, src []byte) (Plan, error) {
	p := &parser{Reader: strictyaml.Reader{File: file, Files: "plans"}, places: map[string]int{}}
	p.roles = map[int]*yaml.Node{}
	if root := p.read(src); p.Err() == nil {
		p.plan(root)
	}
	if p.Err() != nil {
		return Plan{}, p.Err()
	}
	return Plan{p.tasks, p.roles, p.refs, file}, nil
}

// InRole returns err, about the role of a task, with the place where the plan names
// that role. Tasks are counted from 0, as in Plan.Tasks.
func (p Plan) InRole(task int, err error) error { return p.at(p.roles[task], err) }

// InDependency is InRole for a task on the board that the task depends on.
func (p Plan) InDependency(task int, on team.TaskID, err error) error {
	for _, r := range p.refs {
		if id, perr := team.ParseTaskID(r.node.Value); perr == nil && r.from == task && id == on {
			return p.at(r.node, err)
		}
	}
	return err
}

func (p Plan) at(n *yaml.Node, err error) error {
	if n == nil {
		return err
	}
	r := strictyaml.Reader{File: p.file}
	r.Refuse(n, err)
	return r.Err()
}

// read returns the root of the file's one document.
func (p *parser) read(src []byte) *yaml.Node {
	if len(src) > MaxBytes {
		p.Fail(strictyaml.Start, "the plan is larger than the limit of %d bytes", MaxBytes)
		return nil
	}
	line, column := 1, 1 // the YAML reader does not say where such bytes stand
	for rest := src; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		at := &yaml.Node{Line: line, Column: column}
		switch {
		case r == utf8.RuneError && size == 1:
			p.Fail(at, "this is not UTF-8")
		case unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t':
			p.Fail(at, "here is the control character %U; remove it", r)
		case r == '\n':
			line, column = line+1, 0
		}
		column, rest = column+1, rest[size:]
	}
	if p.Err() != nil {
		return nil
	}
	root := p.Document(src)
	if root == nil {
		p.Fail(strictyaml.Start, "the plan is empty; it needs tasks")
	}
	return root
}

// parser turns YAML nodes into tasks.
type parser struct {
	strictyaml.Reader
	tasks  []team.NewTask
	places map[string]int // of the tasks that have a name
	roles  map[int]*yaml.Node
	refs   []ref
}

func (p *parser) plan(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		p.Refuse(n, team.Errorf(team.InvalidArgument, "a plan is a mapping with the key tasks, and this is a list").
			WithHint("write `tasks:` in a line before it"))
		return
	}
	var list *yaml.Node
	p.Object(n, "a plan", map[string]func(*yaml.Node){"tasks": func(v *yaml.Node) { list = v }})
	if list == nil {
		p.Fail(n, "the plan has no tasks")
		return
	}
	items := p.Items(list, "tasks")
	if len(items) > MaxTasks {
		p.Fail(items[MaxTasks], "the plan has %d tasks, the limit is %d", len(items), MaxTasks)
		return
	}
	p.tasks = make([]team.NewTask, len(items))
	for i, item := range items {
		p.task(i, item)
	}
	p.resolve()
}

func (p *parser) task(i int, n *yaml.Node) {
	t := &p.tasks[i]
	titled := false
	p.Object(n, "a task", map[string]func(*yaml.Node){
		"name": func(v *yaml.Node) { p.name(v, i) },
		"title": func(v *yaml.Node) {
			t.Title, titled = p.str(v, "title"), true
			p.Refuse(v, team.NewTask{Title: t.Title}.Validate())
		},
		"description": func(v *yaml.Node) {
			t.Description = p.str(v, "description")
			p.valid(v, team.NewTask{Description: t.Description})
		},
		"priority": func(v *yaml.Node) {
			if v.Tag != "!!int" && v.Tag != "!!str" {
				p.Fail(v, "priority must be normal, high or critical; or 0, 1, 2")
				return
			}
			var err error
			t.Priority, err = team.ParsePriority(v.Value)
			p.Refuse(v, err)
		},
		"role": func(v *yaml.Node) {
			t.Role, p.roles[i] = team.CanonicalRole(p.str(v, "role")), v
			p.valid(v, team.NewTask{Role: t.Role})
			if t.Role == "" {
				p.Fail(v, "role is empty; leave it out for a task that anybody may take")
			}
		},
		"depends_on": func(v *yaml.Node) { p.dependsOn(v, i) },
		"check": func(v *yaml.Node) {
			t.Check = p.str(v, "check")
			p.valid(v, team.NewTask{Check: t.Check})
			if strings.TrimSpace(t.Check) == "" {
				p.Fail(v, "check is empty; leave it out for a task that needs none")
			}
		},
		"deliverable_required": func(v *yaml.Node) {
			if v.Tag != "!!bool" || v.Decode(&t.DeliverableReq) != nil {
				p.Fail(v, "deliverable_required must be true or false")
			}
		},
		"metadata": func(v *yaml.Node) {
			if v.Kind != yaml.MappingNode {
				p.Fail(v, "metadata must be a mapping")
				return
			}
			var err error
			t.Metadata, err = json.Marshal(p.Value(v, p.leaf))
			p.Refuse(v, err)
			p.valid(v, team.NewTask{Metadata: t.Metadata})
		},
	})
	if !titled {
		p.Fail(n, "the task has no title")
	}
}

// dependsOn notes to what the task refers.
func (p *parser) dependsOn(n *yaml.Node, i int) {
	if n.Kind != yaml.SequenceNode {
		p.Fail(n, "depends_on must be a list of names of this plan and ids of tasks, such as [tests, T-001]")
		return
	}
	for _, item := range n.Content {
		p.refs = append(p.refs, ref{i, item})
	}
	if len(n.Content) > team.MaxDependencies {
		p.Fail(n, "%d dependencies are too many, the limit is %d", len(n.Content), team.MaxDependencies)
	}
}

// valid checks one field as the board will, so that a fault is told with its place.
func (p *parser) valid(at *yaml.Node, n team.NewTask) {
	n.Title = "x"
	p.Refuse(at, n.Validate())
}

// name notes under which name others of the plan may refer to the task.
func (p *parser) name(n *yaml.Node, i int) {
	s := p.str(n, "name")
	_, err := team.ParseTaskID(s)
	_, twice := p.places[s]
	switch {
	case s == "" || len(s) > maxNameBytes || strings.TrimSpace(s) != s || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		p.Fail(n, "a name is 1 to %d bytes long, in one line, without spaces at its ends", maxNameBytes)
	case err == nil:
		p.Fail(n, "the name %q could be the id of a task on the board", s)
	case twice:
		p.Fail(n, "a second task with the name %q", s)
	}
	p.places[s] = i
}

// resolve looks up what the tasks depend on. A name of the plan comes before the
// reading as an id, and none can be both.
func (p *parser) resolve() {
	for _, r := range p.refs {
		if p.Err() != nil {
			return
		}
		if r.node.Kind != yaml.ScalarNode || r.node.Tag != "!!str" && r.node.Tag != "!!int" {
			p.Fail(r.node, "a dependency is the name of a task of this plan or the id of a task on the board")
			return
		}
		t := &p.tasks[r.from]
		at, named := p.places[r.node.Value]
		id, err := team.ParseTaskID(r.node.Value)
		switch {
		case named && at == r.from:
			p.Fail(r.node, "the task depends on itself")
		case named:
			t.After = append(t.After, at)
		case err == nil:
			t.Dependencies = append(t.Dependencies, id)
		default:
			p.Refuse(r.node, team.Errorf(team.InvalidArgument, "no task of this plan has the name %q, and it is no task id", r.node.Value).
				WithHint("give the other task a name, or write an id like T-001"))
		}
	}
	p.acyclic()
}

// acyclic refuses tasks that would wait for each other. Only names can make a
// cycle: what is on the board knows nothing of this plan.
func (p *parser) acyclic() {
	const under, done = 1, 2
	state := make([]int, len(p.tasks))
	var path []int
	var walk func(i int)
	walk = func(i int) {
		state[i], path = under, append(path, i)
		for _, d := range p.tasks[i].After {
			switch state[d] {
			case under:
				p.Fail(p.place(i, d), "the tasks wait for each other: %s", p.round(path[slices.Index(path, d):]))
			case 0:
				walk(d)
			}
		}
		state[i], path = done, path[:len(path)-1]
	}
	for i := range p.tasks {
		if state[i] == 0 {
			walk(i)
		}
	}
}

// place is where task i says that it depends on task d.
func (p *parser) place(i, d int) *yaml.Node {
	at := slices.IndexFunc(p.refs, func(r ref) bool { at, ok := p.places[r.node.Value]; return ok && r.from == i && at == d })
	return p.refs[at].node
}

// round names the tasks of a cycle, each waiting for the next.
func (p *parser) round(path []int) string {
	names := make([]string, 0, len(path)+1)
	for _, i := range append(slices.Clone(path), path[0]) {
		for name, at := range p.places {
			if at == i {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, " -> ")
}

// str is a text that is written as one: 1.10 for a title would be read as 1.1 by
// the next program.
func (p *parser) str(n *yaml.Node, what string) string {
	s := p.Text(n, what)
	if n.Tag != "!!str" {
		p.Fail(n, "%s must be a text; put %s in quotes", what, n.Value)
	}
	return s
}

// leaf is a text in metadata. Of what else comes here, such as dates, JSON knows
// nothing.
func (p *parser) leaf(n *yaml.Node) any {
	if n.Tag != "!!str" {
		p.Fail(n, "%q must be a text, a number, true, false, null, a list or a mapping; put it in quotes", n.Value)
	}
	return n.Value
}
