package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// OfTask is a task in a path.
type OfTask struct {
	OfTeam
	ID string `path:"task" doc:"The id of a task, such as T-001." example:"T-001"`
}

// task opens the team and parses the id.
func (s *service) task(ctx context.Context, in OfTask) (*client.Team, team.TaskID, error) {
	id, err := team.ParseTaskID(in.ID)
	if err != nil {
		return nil, "", err
	}
	t, err := s.open(ctx, in.OfTeam)
	return t, id, err
}

type listTasksIn struct {
	OfTeam
	IDs         []string `query:"ids" doc:"Only these, with commas between."`
	Status      []string `query:"status" doc:"Only tasks that are pending, blocked, in_progress, merging, completed, failed or cancelled; several with commas between. Left out, all but cancelled ones."`
	All         bool     `query:"all" doc:"Also cancelled tasks."`
	Assignee    string   `query:"assignee" doc:"Only tasks that this member holds or held last."`
	ReservedFor string   `query:"reserved_for" doc:"Only tasks that are reserved for this member; with claimable also unreserved ones."`
	Role        string   `query:"role" doc:"Only tasks for this role; with claimable also those for any role."`
	Claimable   bool     `query:"claimable" doc:"Only tasks that could be claimed now."`
	Blocked     bool     `query:"blocked" doc:"Only pending tasks that wait for others."`
	Text        string   `query:"text" doc:"Only tasks with this text in title or description; upper and lower case are the same."`
	Limit       int      `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"How many tasks a page has at most."`
	Page        string   `query:"page" doc:"The page that begins here: next of the page before."`
}

// query returns the query of in. Errors: InvalidArgument.
func (in *listTasksIn) query() (q team.Query, err error) {
	q = team.Query{Role: team.CanonicalRole(in.Role), Text: in.Text, After: in.Page, Limit: in.Limit}
	if q.IDs, err = idsOf(in.IDs); err != nil {
		return q, err
	}
	if q.Assignee, err = nameOf(in.Assignee); err != nil {
		return q, err
	}
	if q.ReservedFor, err = nameOf(in.ReservedFor); err != nil {
		return q, err
	}
	yes := true
	if in.Blocked {
		q.Blocked = &yes
	}
	if in.Claimable {
		q.Claimable = &yes
	}
	if q, err = q.InStatuses(in.Status, in.All); err != nil {
		return q, err
	}
	return q, q.Validate()
}

// newTask is a task in the form of plan files.
type newTask struct {
	Name                string   `json:"name,omitempty" maxLength:"128" doc:"A name by which others of this request may depend on it; it is not kept."`
	Title               string   `json:"title" doc:"One line: what is to be done." example:"Port the parser"`
	Description         string   `json:"description,omitempty" doc:"All that its assignee needs to know."`
	Priority            priority `json:"priority,omitempty"`
	Dependencies        []string `json:"dependencies,omitempty" doc:"Names of tasks of this request, and ids of tasks on the board, that must be completed first."`
	Role                string   `json:"role,omitempty" doc:"Only members of this role claim it without being assigned."`
	Assignee            string   `json:"assignee,omitempty" doc:"The member that is to do it, as by assign; left out, the next idle one takes it."`
	Seat                bool     `json:"seat,omitempty" doc:"If no member has the assignee's name, make a person's seat with it."`
	Check               string   `json:"check,omitempty" doc:"A shell command that must succeed before the task counts as completed."`
	Supersedes          []string `json:"supersedes,omitempty" doc:"Tasks whose checks no longer count once this one is merged."`
	DeliverableRequired bool     `json:"deliverable_required,omitempty" doc:"It counts as completed only if its deliverable is there."`
	Metadata            object   `json:"metadata,omitempty" doc:"Any JSON object; it is stored as it is."`

	_ struct{} `additionalProperties:"false"`
}

// priority is a word or a number.
type priority int

// UnmarshalJSON decodes normal, high or critical; or 0, 1, 2.
func (p *priority) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) != nil {
		word = string(data)
	}
	n, err := team.ParsePriority(word)
	*p = priority(n)
	return err
}

// Schema returns the schema for the OpenAPI.
func (priority) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Description: priorityNames() + " The name is taken as well as the number; answers have the number."}
	for n := range team.Priorities() {
		s.Enum = append(s.Enum, float64(n)) // as a decoded body has it
	}
	s.Enum = append(s.Enum, anyOf(team.Priorities())...)
	return s
}

// object is any JSON object, unchanged.
type object json.RawMessage

// UnmarshalJSON stores the text; null is none.
func (o *object) UnmarshalJSON(data []byte) error {
	if string(data) != "null" {
		*o = slices.Clone(data)
	}
	return nil
}

// Schema returns the schema for the OpenAPI.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

type addTasksIn struct {
	OfTeam
	Key  string `header:"Idempotency-Key" doc:"A key of at most 256 bytes of your choice. A request with the same key adds nothing and returns the tasks of the first request as they are now, with status 200."`
	Body struct {
		Tasks []newTask `json:"tasks" nullable:"false" doc:"All of them are added, or none."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"NewTasks"`
}

type addTasksOut struct {
	Status int
	Body   struct {
		Tasks   []team.TaskView `json:"tasks" nullable:"false"`
		Existed bool            `json:"existed" doc:"An earlier request had the same Idempotency-Key."`
	} `nameHint:"AddedTasks"`
}

type taskOut struct {
	ETag string `header:"ETag" doc:"The task's revision, for If-Match."`
	Body team.TaskView
}

func taskAnswer(v team.TaskView) *taskOut {
	return &taskOut{ETag: `"` + strconv.FormatUint(v.Revision, 10) + `"`, Body: v}
}

type historyOut struct {
	Body struct {
		Steps []explain.Step `json:"steps" nullable:"false"`
		Whole bool           `json:"whole" doc:"The board still knows how the task was created; if not, the first step only shows the state it had."`
	} `nameHint:"History"`
}

const tagTasks = "tasks"

func (s *service) tasks() {
	addOf(s, operation{
		id: "list-tasks", method: http.MethodGet, path: "/v1/teams/{team}/tasks", tag: tagTasks, summary: "List a team's tasks",
		doc: "A page of the tasks that meet all conditions, without cancelled ones unless they are asked for; next is the page behind it. why is the reason why no member works on a task.",
	}, listTasks)
	addOf(s, operation{
		id: "add-tasks", method: http.MethodPost, path: "/v1/teams/{team}/tasks", tag: tagTasks, summary: "Put tasks on the board", status: http.StatusCreated, also: []int{http.StatusOK},
		doc: "An idle teammate takes a task as soon as its dependencies are completed. A team that has ended becomes active again.",
	}, addTasks)
	add(s, operation{
		id: "get-task", method: http.MethodGet, path: "/v1/teams/{team}/tasks/{task}", tag: tagTasks, summary: "Show one task with all its texts",
		doc: "With its description, its result and why no member works on it. The ETag is for If-Match.",
	}, func(ctx context.Context, in *struct{ OfTask }) (*taskOut, error) {
		t, id, err := s.task(ctx, in.OfTask)
		if err != nil {
			return nil, err
		}
		v, err := t.Board().Task(ctx, id)
		if err != nil {
			return nil, err
		}
		one := []team.TaskView{v}
		if err := t.Board().Explain(ctx, one, nil); err != nil {
			return nil, err
		}
		return taskAnswer(one[0]), nil
	})
	add(s, operation{
		id: "get-task-history", method: http.MethodGet, path: "/v1/teams/{team}/tasks/{task}/history", tag: tagTasks, summary: "Tell what became of a task",
		doc: "Who did what, when and why.",
	}, func(ctx context.Context, in *struct{ OfTask }) (*historyOut, error) {
		t, id, err := s.task(ctx, in.OfTask)
		if err != nil {
			return nil, err
		}
		var out historyOut
		out.Body.Steps, out.Body.Whole, err = t.Board().History(ctx, id)
		return &out, err
	})
	addOf(s, operation{
		id: "get-graph", method: http.MethodGet, path: "/v1/teams/{team}/graph", tag: tagTasks, summary: "Show which task waits for which",
		doc: "All tasks of the board as nodes, each after those that it waits for, and an edge from each dependency to the task that waits for it.",
	}, func(ctx context.Context, t *client.Team, _ *struct{ OfTeam }) (*answer[team.Graph], error) {
		tasks, err := t.Board().Tasks(ctx)
		if err == nil {
			err = t.Board().Merging(ctx, tasks)
		}
		return &answer[team.Graph]{team.GraphOf(tasks)}, err
	})
}

func listTasks(ctx context.Context, t *client.Team, in *listTasksIn) (*answer[team.Page], error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	p, err := t.Board().List(ctx, q)
	if err != nil {
		return nil, err
	}
	p.Tasks = append([]team.TaskView{}, p.Tasks...)
	return &answer[team.Page]{p}, t.Board().Explain(ctx, p.Tasks, nil)
}

func addTasks(ctx context.Context, t *client.Team, in *addTasksIn) (*addTasksOut, error) {
	tasks, err := newTasks(in.Body.Tasks)
	if err != nil {
		return nil, err
	}
	b := t.Board().Seating(seats(in.Body.Tasks, tasks)...)
	added, existed, err := b.Add(ctx, in.Key, tasks...)
	if err != nil {
		return nil, err
	}
	for i, n := range in.Body.Tasks {
		if n.Assignee == "" || i >= len(added) || added[i].Status != team.Pending || existed && !added[i].AsAdded(tasks[i]) {
			continue
		}
		if added[i], _, err = b.Assign(ctx, added[i].ID, tasks[i].ReservedFor); err != nil {
			return nil, fmt.Errorf("%s is on the board, but not assigned: %w", added[i].ID, err)
		}
	}
	out := addTasksOut{Status: http.StatusCreated}
	if existed {
		out.Status, out.Body.Existed = http.StatusOK, true
	}
	out.Body.Tasks, err = b.Views(ctx, added)
	return &out, err
}

// seats returns the names for which seats are created.
func seats(in []newTask, tasks []team.NewTask) (names []team.AgentID) {
	for i, n := range in {
		if n.Seat {
			names = append(names, tasks[i].ReservedFor)
		}
	}
	return names
}

// newTasks parses the tasks of one request. Errors: InvalidArgument, with the place.
func newTasks(in []newTask) ([]team.NewTask, error) {
	places := map[string]int{}
	for i, n := range in {
		at := fmt.Sprintf("body.tasks[%d].name", i)
		_, twice := places[n.Name]
		_, err := team.ParseTaskID(n.Name)
		switch {
		case n.Name == "":
			continue
		case twice:
			return nil, team.Errorf(team.InvalidArgument, "%s: a second task with the name %q", at, n.Name)
		case err == nil:
			return nil, team.Errorf(team.InvalidArgument, "%s: %q could be the id of a task on the board", at, n.Name).WithHint("choose another name")
		}
		places[n.Name] = i
	}
	tasks := make([]team.NewTask, len(in))
	for i, n := range in {
		assignee, err := nameOf(n.Assignee)
		if err != nil {
			return nil, fmt.Errorf("body.tasks[%d].assignee: %w", i, err)
		}
		supersedes, err := idsOf(n.Supersedes)
		if err != nil {
			return nil, fmt.Errorf("body.tasks[%d].supersedes: %w", i, err)
		}
		tasks[i] = team.NewTask{
			Supersedes: supersedes, Title: n.Title, Description: n.Description, Priority: int(n.Priority), Role: team.CanonicalRole(n.Role), ReservedFor: assignee,
			Check: n.Check, DeliverableReq: n.DeliverableRequired, Metadata: json.RawMessage(n.Metadata),
		}
		for k, on := range n.Dependencies {
			at, named := places[on]
			id, err := team.ParseTaskID(on)
			switch {
			case named:
				tasks[i].After = append(tasks[i].After, at)
			case err == nil:
				tasks[i].Dependencies = append(tasks[i].Dependencies, id)
			default:
				return nil, team.Errorf(team.InvalidArgument, "body.tasks[%d].dependencies[%d]: %q is neither the name of a task of this request nor an id", i, k, team.Clean(on, 80)).
					WithHint("ids look like T-001")
			}
		}
	}
	return tasks, nil
}
