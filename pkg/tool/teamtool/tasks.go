package teamtool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"agentteam/pkg/completion"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type listTasksArgs struct {
	Status    string `json:"status,omitempty" jsonschema:"only tasks with this status: pending, in_progress, completed, failed or cancelled; cancelled ones are listed only if asked for"`
	Assignee  string `json:"assignee,omitempty" jsonschema:"only tasks of this member"`
	Claimable bool   `json:"claimable,omitempty" jsonschema:"only tasks that you could claim now"`
}

type taskArgs struct {
	TaskID string `json:"task_id" jsonschema:"the task's id, like T-001"`
}

type createTaskArgs struct {
	Title               string   `json:"title" jsonschema:"one line that says what is to be done"`
	Description         string   `json:"description,omitempty" jsonschema:"all that somebody without your knowledge needs: what, where, what the result is"`
	Priority            int      `json:"priority,omitempty" jsonschema:"0 normal, 1 high, 2 critical"`
	Dependencies        []string `json:"dependencies,omitempty" jsonschema:"ids of tasks that must be completed first"`
	Role                string   `json:"role,omitempty" jsonschema:"only members of this role may claim it"`
	Assignee            string   `json:"assignee,omitempty" jsonschema:"leader only: the member that is to do it; left out, the next idle one takes it"`
	Check               string   `json:"check,omitempty" jsonschema:"leader only: a command that must succeed before the task counts as completed"`
	DeliverableRequired bool     `json:"deliverable_required,omitempty" jsonschema:"the task can be completed only once its deliverable is there and not empty"`
}

type updateTaskArgs struct {
	TaskID             string         `json:"task_id" jsonschema:"the task's id, like T-001"`
	Status             string         `json:"status,omitempty" jsonschema:"completed (with result_summary), failed (with reason), in_progress (claims it), pending (releases it), cancelled (leader)"`
	ResultSummary      string         `json:"result_summary,omitempty" jsonschema:"what was done and where the result is; needed for completed"`
	Reason             string         `json:"reason,omitempty" jsonschema:"why it failed, is released or cancelled"`
	Assignee           string         `json:"assignee,omitempty" jsonschema:"leader: has this member claim it; else your own name to claim it"`
	Title              *string        `json:"title,omitempty" jsonschema:"leader: a new title, while it is pending"`
	Description        *string        `json:"description,omitempty" jsonschema:"leader: a new description, while it is pending"`
	Priority           *int           `json:"priority,omitempty" jsonschema:"leader: 0 normal, 1 high, 2 critical"`
	AddDependencies    []string       `json:"add_dependencies,omitempty" jsonschema:"leader: ids of tasks that must be completed first"`
	RemoveDependencies []string       `json:"remove_dependencies,omitempty" jsonschema:"leader: dependencies to take away"`
	Metadata           map[string]any `json:"metadata,omitempty" jsonschema:"an object that is stored with the task"`
}

type releaseTaskArgs struct {
	TaskID string `json:"task_id" jsonschema:"the task's id, like T-001"`
	Reason string `json:"reason,omitempty" jsonschema:"why you give it back; the next one reads it"`
}

func (t tools) taskTools() []tool.Tool {
	return []tool.Tool{
		tool.New("list_tasks", "List the tasks on the team's board, as an array of task records with the first words of their descriptions.", t.listTasks, tool.Alias("TaskList")),
		tool.New("get_task", "Show one task of the board.", t.getTask, tool.Alias("TaskGet")),
		tool.New("create_task", "Put a task on the board. An idle teammate takes it as soon as its dependencies are completed. Returns its id.", t.createTask, tool.Alias("TaskCreate")),
		tool.New("claim_task", "Take a task: it becomes yours and nobody else works on it. You can hold one task at a time.", t.claimTask),
		tool.New("update_task", "Complete, fail, release or change a task.", t.updateTask, tool.Alias("TaskUpdate", "update_task_status")),
		tool.New("release_task", "Give your task back to the board so that somebody else can take it.", t.releaseTask),
	}
}

func (t tools) listTasks(ctx context.Context, in listTasksArgs) (any, error) {
	q := team.Query{Status: []team.TaskStatus{team.Pending, team.InProgress, team.Completed, team.Failed}, Limit: maxListed}
	var err error
	if q.Assignee, err = optionalName(in.Assignee); err != nil {
		return nil, err
	}
	if in.Status != "" {
		status, err := team.ParseTaskStatus(in.Status)
		if err != nil {
			return nil, err
		}
		q.Status = []team.TaskStatus{status}
	}
	if in.Claimable {
		q.Claimable, q.Role = &in.Claimable, t.Self.Role
	}
	list := []team.TaskView{}
	for {
		p, err := t.List(ctx, q)
		if err != nil {
			return nil, err
		}
		if p.Total > maxListed {
			return nil, team.Errorf(team.InvalidArgument, "%d tasks match, and a list holds at most %d", p.Total, maxListed).
				WithHint("narrow it down with status, assignee or claimable")
		}
		for _, v := range p.Tasks {
			v.Description = team.Summarize(v.Description) // get_task shows it whole
			list = append(list, v)
		}
		if q.After = p.Next; q.After == "" {
			return list, nil
		}
	}
}

// maxListed bounds what a model is shown at once.
const maxListed = 500

func (t tools) getTask(ctx context.Context, in taskArgs) (any, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return nil, err
	}
	return t.view(ctx, id)
}

func (t tools) createTask(ctx context.Context, in createTaskArgs) (any, error) {
	if err := t.mayCreate(ctx); err != nil {
		return nil, err
	}
	if !t.leads() && (in.Assignee != "" && in.Assignee != string(t.Self.AgentID) || in.Check != "") {
		return nil, team.Errorf(team.PermissionDenied, "only the leader may assign a task to others or set a check")
	}
	deps, err := parseIDs(in.Dependencies)
	if err != nil {
		return nil, err
	}
	assignee, err := optionalName(in.Assignee)
	if err != nil {
		return nil, err
	}
	if in.Role != "" { // a role that nobody can play would leave the task to itself
		record, err := t.Team(ctx)
		if err != nil {
			return nil, err
		}
		role, err := record.Role(in.Role)
		if err != nil {
			return nil, err
		}
		in.Role = role.Name // it may have been asked for by another name
	}
	created, err := t.Board.Create(ctx, t.Self.AgentID, team.NewTask{
		Title: in.Title, Description: in.Description, Priority: in.Priority, Dependencies: deps,
		Role: in.Role, Check: in.Check, DeliverableReq: in.DeliverableRequired,
	})
	if err != nil {
		return nil, err
	}
	task := created[0]
	if assignee != "" {
		if task, err = t.assign(ctx, assignee, task.ID); err != nil {
			return nil, team.Errorf(cmp.Or(team.CodeOf(err), team.Unavailable), "%s was created, but not assigned to %s: %w", created[0].ID, in.Assignee, err).
				WithHint("it is pending; any idle teammate of its role takes it")
		}
	}
	return t.result(ctx, task)
}

func (t tools) claimTask(ctx context.Context, in taskArgs) (any, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return nil, err
	}
	task, err := t.Hand.Claim(ctx, id)
	if err != nil {
		return nil, err
	}
	return t.result(ctx, task)
}

// assign gives a task to a member: to oneself by one's own hand, to another by a
// request to its process.
func (t tools) assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error) {
	if a == t.Self.AgentID {
		return t.Hand.Claim(ctx, id)
	}
	if !t.leads() {
		return team.Task{}, team.Errorf(team.PermissionDenied, "only the leader may assign a task to others")
	}
	return t.Crew.Assign(ctx, a, id)
}

func (t tools) updateTask(ctx context.Context, in updateTaskArgs) (any, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return nil, err
	}
	edit := team.Edit{Title: in.Title, Description: in.Description, Priority: in.Priority}
	if in.Metadata != nil {
		if edit.Metadata, err = json.Marshal(in.Metadata); err != nil {
			return nil, err
		}
	}
	if edit.AddDependencies, err = parseIDs(in.AddDependencies); err != nil {
		return nil, err
	}
	if edit.RemoveDependencies, err = parseIDs(in.RemoveDependencies); err != nil {
		return nil, err
	}
	var status team.TaskStatus
	if in.Status != "" {
		if status, err = team.ParseTaskStatus(in.Status); err != nil {
			return nil, err
		}
	}
	assignee, err := optionalName(in.Assignee)
	if err != nil {
		return nil, err
	}
	if err := in.check(edit, status); err != nil {
		return nil, err
	}
	var task team.Task
	switch {
	case !edit.Empty():
		task, _, err = t.Board.Edit(ctx, id, t.actor(), edit)
	case assignee != "":
		task, err = t.assign(ctx, assignee, id)
	default:
		task, err = t.move(ctx, id, status, in)
	}
	if err != nil {
		return nil, err
	}
	return t.result(ctx, task)
}

// check refuses fields that do not go together before anything is changed: a call is
// done whole or not at all, and nothing that it says is left out of account.
func (in updateTaskArgs) check(edit team.Edit, status team.TaskStatus) error {
	moves := status != "" || in.Assignee != ""
	switch {
	case !moves && (in.ResultSummary != "" || in.Reason != ""):
		return team.Errorf(team.InvalidArgument, "result_summary and reason go with a status").WithHint("set status, such as completed")
	case !moves && edit.Empty():
		return team.Errorf(team.InvalidArgument, "update_task changes nothing: no field besides task_id is set").WithHint("set status, or a field to change")
	case moves && !edit.Empty():
		return team.Errorf(team.InvalidArgument, "a change of status or assignee and a change of what the task says exclude each other").WithHint("make two calls")
	case in.Assignee != "" && status != "" && status != team.InProgress:
		return team.Errorf(team.InvalidArgument, "status %s and an assignee exclude each other", status).WithHint("make two calls")
	case in.ResultSummary != "" && status != team.Completed:
		return team.Errorf(team.InvalidArgument, "result_summary goes with status completed")
	case in.Reason != "" && (status == team.Completed || status == team.InProgress || in.Assignee != ""):
		return team.Errorf(team.InvalidArgument, "reason goes with status failed, pending or cancelled").WithHint("put it into result_summary, or leave it out")
	}
	return nil
}

// optionalName checks the name of a member that may be left out.
func optionalName(s string) (team.AgentID, error) {
	if s == "" {
		return "", nil
	}
	return team.ParseAgentID(s)
}

// move makes the transition that a status asks for.
func (t tools) move(ctx context.Context, id team.TaskID, status team.TaskStatus, in updateTaskArgs) (team.Task, error) {
	switch status {
	case team.Completed:
		return t.complete(ctx, id, in.ResultSummary)
	case team.InProgress:
		return t.Hand.Claim(ctx, id)
	case team.Pending:
		return t.release(ctx, id, in.Reason)
	case team.Failed:
		if t.held(id) || !t.leads() {
			return t.Hand.Fail(ctx, id, in.Reason)
		}
		return t.Board.Fail(ctx, id, t.actor(), 0, in.Reason)
	}
	task, err := t.Board.Cancel(ctx, id, t.actor(), in.Reason)
	if err == nil {
		t.Hand.Drop(id)
	}
	return task, err
}

// complete completes the task, once its check and its deliverable are as they must
// be.
func (t tools) complete(ctx context.Context, id team.TaskID, summary string) (team.Task, error) {
	done := team.Done{Summary: summary}
	if err := done.Validate(); err != nil { // a check may take minutes
		return team.Task{}, err
	}
	task, err := t.Hand.MayComplete(ctx, id)
	if err != nil {
		return task, err
	}
	done.Digest, err = t.Verify(ctx, task)
	var failed *completion.CheckError
	if errors.As(err, &failed) {
		task, ferr := t.Hand.FailCheck(ctx, id, failed.Output)
		if ferr != nil {
			return task, ferr
		}
		return task, failed.Counted(task)
	}
	if err != nil {
		return task, err
	}
	return t.Hand.Complete(ctx, id, done)
}

func (t tools) held(id team.TaskID) bool {
	h, ok := t.Hand.Task()
	return ok && h.ID == id
}

func (t tools) releaseTask(ctx context.Context, in releaseTaskArgs) (any, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return nil, err
	}
	task, err := t.release(ctx, id, in.Reason)
	if err != nil {
		return nil, err
	}
	return t.result(ctx, task)
}

// release gives back one's own task, or takes back another's with the leader's
// rights.
func (t tools) release(ctx context.Context, id team.TaskID, reason string) (team.Task, error) {
	if t.held(id) || !t.leads() {
		return t.Hand.Release(ctx, id, reason, false)
	}
	return t.Board.Release(ctx, id, t.actor(), 0, reason, false)
}

func parseIDs(ids []string) ([]team.TaskID, error) {
	var out []team.TaskID
	var errs []error
	for _, s := range ids {
		id, err := team.ParseTaskID(s)
		out, errs = append(out, id), append(errs, err)
	}
	return out, errors.Join(errs...)
}
