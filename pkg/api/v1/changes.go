package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// Changed is a request to change a task.
type Changed struct {
	OfTask
	IfMatch string `header:"If-Match" doc:"The ETag with which the task was read. If it has been written since, nothing is changed, and the status is 412."`
}

// open opens the team's board, for a change at the requested revision.
func (in Changed) open(ctx context.Context, s *service) (client.Board, team.TaskID, error) {
	revision, err := in.revision()
	if err != nil {
		return client.Board{}, "", err
	}
	t, id, err := s.task(ctx, in.OfTask)
	if err != nil {
		return client.Board{}, "", err
	}
	return t.Board().At(revision), id, nil
}

// revision returns the requested revision, 0 if any. Errors: InvalidArgument.
func (in Changed) revision() (uint64, error) {
	if in.IfMatch == "" || in.IfMatch == "*" {
		return 0, nil
	}
	tag, quoted := strings.CutPrefix(in.IfMatch, `"`)
	tag, closed := strings.CutSuffix(tag, `"`)
	n, err := strconv.ParseUint(tag, 10, 64)
	if !quoted || !closed || err != nil || n == 0 {
		return 0, team.Errorf(team.InvalidArgument, "header.If-Match: %q is no ETag of a task", team.Clean(in.IfMatch, 40)).
			WithHint(`take the ETag of the answer in which the task was read, with its quotes, such as "17"`)
	}
	return n, nil
}

type editTaskIn struct {
	Changed
	Body struct {
		Title              *string   `json:"title,omitempty"`
		Description        *string   `json:"description,omitempty"`
		Priority           *priority `json:"priority,omitempty"`
		AddDependencies    []string  `json:"add_dependencies,omitempty" doc:"Ids of tasks that must be completed first."`
		RemoveDependencies []string  `json:"remove_dependencies,omitempty" doc:"Ids of dependencies to take away."`
		Metadata           object    `json:"metadata,omitempty" doc:"An object in place of the one that is there."`
		As                 string    `json:"as,omitempty" doc:"The person's seat that changes the metadata of the task that it holds; left out, a person with full rights."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"TaskEdit"`
}

// assignOptions is a request on behalf of a member.
type assignOptions struct {
	As   string `json:"as" doc:"The member in whose name: a person's seat, or an agent, which is asked." example:"ann"`
	Seat bool   `json:"seat,omitempty" doc:"If no member has that name, make a person's seat with it."`

	_ struct{} `additionalProperties:"false"`
}

type claimIn struct {
	Changed
	Body assignOptions `nameHint:"Claim"`
}

type assignIn struct {
	Changed
	Body struct {
		Assignee string `json:"assignee" doc:"The member that is to do it." example:"coder-1"`
		Seat     bool   `json:"seat,omitempty" doc:"If no member has that name, make a person's seat with it."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"Assignment"`
}

type completeIn struct {
	Changed
	Body struct {
		As      string `json:"as" doc:"The person's seat that holds the task." example:"ann"`
		Summary string `json:"result_summary" doc:"What was done, and where the result is." example:"Done in main.go"`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"Completion"`
}

// reason is why a task is given up; it may be left out altogether.
type reason struct {
	As     string `json:"as,omitempty" doc:"The person's seat that holds the task; left out, a person with full rights."`
	Reason string `json:"reason,omitempty" doc:"Why."`

	_ struct{} `additionalProperties:"false"`
}

type giveUpIn struct {
	Changed
	Body *reason
}

type assignOut struct {
	ETag string `header:"ETag" doc:"The task's revision, for If-Match."`
	Body struct {
		team.TaskView
		SeatCreated bool `json:"seat_created" doc:"No member had that name; a person's seat was made, and holds the task."`
	} `nameHint:"AssignedTask"`
}

// seating returns b, with a seat for a if the request asks for one.
func seating(b client.Board, asked bool, a team.AgentID) client.Board {
	if !asked {
		return b
	}
	return b.Seating(a)
}

// checkTime limits a task's check.
const checkTime = 5 * time.Minute

func (s *service) changes() {
	at := func(verb string) string { return "/v1/teams/{team}/tasks/{task}/" + verb }
	add(s, operation{
		id: "edit-task", method: http.MethodPatch, path: "/v1/teams/{team}/tasks/{task}", tag: tagTasks, summary: "Change what a pending task says",
		doc: "What is left out stays. Of a task in progress only the metadata can be changed.",
	}, s.editTask)
	add(s, operation{
		id: "claim-task", method: http.MethodPost, path: at("claim"), tag: tagTasks, summary: "Take a free task",
		doc: "Of many claims of one task exactly one wins. A person's seat holds one task at a time.",
	}, func(ctx context.Context, in *claimIn) (*taskOut, error) {
		return s.change(ctx, in.Changed, in.Body.As, true, func(b client.Board, id team.TaskID, as team.AgentID) (team.Task, error) {
			return seating(b, in.Body.Seat, as).Claim(ctx, id, as)
		})
	})
	add(s, operation{
		id: "complete-task", method: http.MethodPost, path: at("complete"), tag: tagTasks, summary: "Complete a task that a person's seat holds", more: checkTime,
		doc: "The task's check is run in the team's workspace, and its deliverable is stored; the workspace must be on the machine of this process.",
	}, func(ctx context.Context, in *completeIn) (*taskOut, error) {
		return s.change(ctx, in.Changed, in.Body.As, true, func(b client.Board, id team.TaskID, as team.AgentID) (team.Task, error) {
			return b.Complete(ctx, id, as, in.Body.Summary)
		})
	})
	add(s, operation{
		id: "fail-task", method: http.MethodPost, path: at("fail"), tag: tagTasks, summary: "End a task as failed",
		doc: "Tasks that depend on it stay blocked, with that reason.",
	}, s.giveUp(client.Board.Fail))
	add(s, operation{
		id: "release-task", method: http.MethodPost, path: at("release"), tag: tagTasks, summary: "Put a task back on the board",
		doc: "Without as, the task is taken from its holder. If the task is reserved for a member, the reservation ends.",
	}, s.giveUp(client.Board.Release))
	add(s, operation{
		id: "cancel-task", method: http.MethodPost, path: at("cancel"), tag: tagTasks, summary: "Give a task up",
		doc: "No member works on it any more. Tasks that depend on it stay blocked, with that reason.",
	}, s.giveUp(client.Board.Cancel))
	add(s, operation{
		id: "assign-task", method: http.MethodPost, path: at("assign"), tag: tagTasks, summary: "Give a task to a member",
		doc: "A member with a process takes the task, whatever its role, also from another member. A pending task that it cannot take now is reserved for it: no other member gets it.",
	}, s.assign)
}

// change changes a task and returns its new state. as may be empty unless it is required.
func (s *service) change(ctx context.Context, in Changed, as string, required bool, f func(client.Board, team.TaskID, team.AgentID) (team.Task, error)) (*taskOut, error) {
	name, err := nameOf(as)
	if required && as == "" {
		name, err = team.ParseAgentID(as)
	}
	if err != nil {
		return nil, err
	}
	b, id, err := in.open(ctx, s)
	if err != nil {
		return nil, err
	}
	task, err := f(b, id, name)
	if err != nil {
		return nil, err
	}
	v, err := b.View(ctx, task)
	if err != nil {
		return nil, err
	}
	return taskAnswer(v), nil
}

// giveUp is change for a request without a required body.
func (s *service) giveUp(f func(client.Board, context.Context, team.TaskID, team.AgentID, string) (team.Task, error)) func(context.Context, *giveUpIn) (*taskOut, error) {
	return func(ctx context.Context, in *giveUpIn) (*taskOut, error) {
		said := *cmp.Or(in.Body, &reason{})
		return s.change(ctx, in.Changed, said.As, false, func(b client.Board, id team.TaskID, as team.AgentID) (team.Task, error) {
			return f(b, ctx, id, as, said.Reason)
		})
	}
}

func (s *service) editTask(ctx context.Context, in *editTaskIn) (*taskOut, error) {
	e := team.Edit{Title: in.Body.Title, Description: in.Body.Description, Priority: (*int)(in.Body.Priority), Metadata: json.RawMessage(in.Body.Metadata)}
	var err error
	if e.AddDependencies, err = idsOf(in.Body.AddDependencies); err != nil {
		return nil, err
	}
	if e.RemoveDependencies, err = idsOf(in.Body.RemoveDependencies); err != nil {
		return nil, err
	}
	if e.Empty() {
		return nil, team.Errorf(team.InvalidArgument, "body: nothing is to be changed").WithHint("name a title, description, priority, dependencies or metadata")
	}
	return s.change(ctx, in.Changed, in.Body.As, false, func(b client.Board, id team.TaskID, as team.AgentID) (team.Task, error) {
		task, _, err := b.Edit(ctx, id, as, e)
		return task, err
	})
}

func (s *service) assign(ctx context.Context, in *assignIn) (*assignOut, error) {
	var out assignOut
	v, err := s.change(ctx, in.Changed, in.Body.Assignee, true, func(b client.Board, id team.TaskID, to team.AgentID) (task team.Task, err error) {
		task, out.Body.SeatCreated, err = seating(b, in.Body.Seat, to).Assign(ctx, id, to)
		return task, err
	})
	if err != nil {
		return nil, err
	}
	out.ETag, out.Body.TaskView = v.ETag, v.Body
	return &out, nil
}
