package teamtool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
)

type listTasksArgs struct {
	Status    string `json:"status,omitempty" jsonschema:"default: all but cancelled"`
	Assignee  string `json:"assignee,omitempty"`
	Claimable bool   `json:"claimable,omitempty" jsonschema:"only those that you could claim now"`
	Page      int    `json:"page,omitempty" jsonschema:"from 1, of 100 tasks"`
}

type taskArgs struct {
	TaskID string `json:"task_id"`
}

type claimArgs struct {
	TaskID   string `json:"task_id"`
	Assignee string `json:"assignee,omitempty"`
}

// newTaskArgs are the fields of a task in create_task.
type newTaskArgs struct {
	Title               string        `json:"title"`
	Description         string        `json:"description,omitempty"`
	Priority            team.Priority `json:"priority,omitempty"`
	Dependencies        []string      `json:"dependencies,omitempty" jsonschema:"ids of tasks that must be completed first"`
	Role                string        `json:"role,omitempty"`
	Assignee            string        `json:"assignee,omitempty"`
	Check               string        `json:"check,omitempty"`
	Supersedes          []string      `json:"-"`
	DeliverableRequired bool          `json:"deliverable_required,omitempty"`
}

type createTaskArgs struct {
	newTaskArgs
	Metadata map[string]any `json:"metadata,omitempty" jsonschema:"stored with the task"`
}

// plannedArgs are newTaskArgs with keys for references between tasks.
type plannedArgs struct {
	Key                 string        `json:"key" jsonschema:"your name for it in this call"`
	Title               string        `json:"title"`
	Description         string        `json:"description,omitempty" jsonschema:"the teammate sees only this: goal, paths it may touch, what is out of scope, how to tell that it is done"`
	Priority            team.Priority `json:"priority,omitempty" jsonschema:"normal, high or critical"`
	Dependencies        []string      `json:"dependencies,omitempty" jsonschema:"keys of this call, or ids: what must be completed first"`
	Role                string        `json:"role,omitempty" jsonschema:"only this role may take it"`
	Assignee            string        `json:"assignee,omitempty" jsonschema:"member who must do it; default: any idle teammate of the role. A new name is spawned if role is given"`
	Check               string        `json:"check,omitempty" jsonschema:"shell command that proves the work, such as go test ./api/...; it must exit 0 within 5 minutes"`
	Supersedes          []string      `json:"supersedes,omitempty" jsonschema:"ids of earlier tasks whose checks this one replaces"`
	DeliverableRequired bool          `json:"deliverable_required,omitempty" jsonschema:"its deliverable file must not be empty"`
}

type createTasksArgs struct {
	Tasks []plannedArgs `json:"tasks"`
}

type updateTaskArgs struct {
	TaskID             string         `json:"task_id"`
	Status             string         `json:"status,omitempty"`
	ResultSummary      string         `json:"result_summary,omitempty" jsonschema:"for completed: what was done in which files, how it was checked and what came out, deviations, risks"`
	Artifacts          []string       `json:"artifacts,omitempty" jsonschema:"for completed: files to store that git ignores"`
	Reason             string         `json:"reason,omitempty" jsonschema:"for every other status; the next holder reads it"`
	Assignee           string         `json:"assignee,omitempty" jsonschema:"gives it to this member, now or once that one is free"`
	Title              *string        `json:"title,omitempty" jsonschema:"this and the next ones: only of a pending task"`
	Description        *string        `json:"description,omitempty"`
	Priority           *team.Priority `json:"priority,omitempty"`
	Supersedes         []string       `json:"supersedes,omitempty" jsonschema:"ids of earlier tasks whose checks this one replaces"`
	AddDependencies    []string       `json:"add_dependencies,omitempty"`
	RemoveDependencies []string       `json:"remove_dependencies,omitempty"`
	Metadata           map[string]any `json:"metadata,omitempty" jsonschema:"stored with the task"`
}

type releaseTaskArgs struct {
	TaskID string `json:"task_id"`
	Reason string `json:"reason,omitempty" jsonschema:"why; the next one reads it"`
}

func (t tools) taskTools() []tool.Tool {
	return []tool.Tool{
		tool.New("list_tasks", "Show the board, a line for each task.", t.listTasks, tool.Traits{Talk: true, ReadOnly: true, Terse: true},
			tool.Enum("status", "pending", "in_progress", "completed", "failed", "cancelled"), tool.Hidden("claimable")),
		tool.New("get_task", "Show one task with its description, check, result and holder.", t.getTask, tool.Traits{Talk: true, ReadOnly: true, Terse: true}),
		tool.New("create_task", "Add a task; fields as in create_tasks. An idle teammate takes it once its dependencies are completed.", t.createTask, tool.Traits{Silent: true}, t.leadersOnly("assignee", "check"), t.creators(), tool.Hidden("metadata")),
		tool.New("create_tasks", "Add one or more tasks, all of them or none. Idle teammates take them once their dependencies are completed.", t.createTasks, tool.Traits{Silent: true}, t.leadersOnly("tasks.assignee", "tasks.check"), t.creators()),
		tool.New("claim_task", "Take a task. You hold one at a time.", t.claimTask, tool.Traits{Silent: true}, tool.Hidden("assignee")),
		tool.New("update_task", t.updateDescription(), t.updateTask, tool.Traits{Silent: true}, tool.Alias("update_task_status"), tool.Hidden("metadata"), tool.Enum("status", t.statuses()...),
			t.leadersOnly("assignee", "title", "description", "priority", "add_dependencies", "remove_dependencies"), tool.UngatedIf(gives)),
		tool.New("release_task", "Give your task back, for somebody else to do.", t.releaseTask, tool.Traits{Silent: true, Ungated: true}),
	}
}

// creators hides the tools that create tasks from members that may not.
func (t tools) creators() tool.Option {
	if t.LeaderCreates && !t.leads() {
		return tool.Unlisted()
	}
	return tool.Hidden()
}

// statuses returns the statuses that a model is offered. A task is claimed by its assignment or by
// an offer, so in_progress is accepted but not listed.
func (t tools) statuses() []string {
	if t.leads() {
		return []string{"pending", "completed", "failed", "cancelled"}
	}
	return []string{"completed", "failed", "pending"}
}

// gives reports whether the call only gives a task up: any member may always do that.
func gives(in updateTaskArgs) bool {
	return (in.Status == string(team.Failed) || in.Status == string(team.Pending)) && in.Assignee == "" && in.Title == nil && in.Description == nil &&
		in.Priority == nil && in.AddDependencies == nil && in.RemoveDependencies == nil && in.Metadata == nil
}

// leadersOnly hides arguments that only the leader may give.
func (t tools) leadersOnly(arguments ...string) tool.Option {
	if t.leads() {
		return tool.Hidden()
	}
	return tool.Hidden(arguments...)
}

func (t tools) updateDescription() string {
	if t.leads() {
		return "Change a task: its status (pending takes it back from its holder), its assignee, or its text."
	}
	return "Report on your task: completed needs result_summary; failed: nobody can do it; pending gives it back, since somebody else could."
}

func (t tools) listTasks(ctx context.Context, in listTasksArgs) (tool.Output, error) {
	q := team.Query{Status: []team.TaskStatus{team.Pending, team.InProgress, team.Completed, team.Failed}, Limit: pageOfTasks}
	var err error
	if q.Assignee, err = optionalName(in.Assignee); err != nil {
		return tool.Output{}, err
	}
	if in.Status != "" {
		status, err := team.ParseTaskStatus(in.Status)
		if err != nil {
			return tool.Output{}, err
		}
		q.Status = []team.TaskStatus{status}
	}
	if in.Claimable {
		q.Claimable, q.Role, q.ReservedFor = &in.Claimable, t.Self.Role, t.Self.AgentID
	}
	if in.Page < 0 {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "page: %d, want 1 or more", in.Page)
	}
	page := max(in.Page, 1)
	list := taskList{Page: page}
	for skip := (page - 1) * pageOfTasks; ; {
		p, err := t.List(ctx, q)
		if err != nil {
			return tool.Output{}, err
		}
		passed := min(skip, len(p.Tasks))
		skip -= passed
		list.Tasks = append(list.Tasks, p.Tasks[passed:]...)
		list.Total = p.Total
		if q.After = p.Next; q.After == "" || len(list.Tasks) >= pageOfTasks {
			break
		}
	}
	list.Tasks = list.Tasks[:min(len(list.Tasks), pageOfTasks)]
	err = t.explain(ctx, list.Tasks)
	return tool.Output{Value: list, Brief: list.brief()}, err
}

// explain fills in why no member works on the free tasks. Only the leader gets it, since only it
// can change that.
func (t tools) explain(ctx context.Context, tasks []team.TaskView) error {
	free := func(v team.TaskView) bool { return v.Status == team.Pending && !v.IsBlocked }
	if !t.leads() || !slices.ContainsFunc(tasks, free) {
		return nil
	}
	record, err := t.Team(ctx)
	if err != nil {
		return err
	}
	members, err := t.Roster.List(ctx)
	if err != nil {
		return err
	}
	s, heard := explain.Situation{Status: record.Status, Led: true, Roles: record.Roles}, t.Heard(ctx, members)
	for _, m := range members {
		h := heard[m.AgentID]
		s.Members = append(s.Members, explain.Standing{Member: m, State: h.State(m, record, time.Now()), Task: h.Task})
	}
	for i, v := range tasks {
		if free(v) {
			tasks[i].Why = s.Why(v, nil)
		}
	}
	return nil
}

func (t tools) getTask(ctx context.Context, in taskArgs) (tool.Output, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return tool.Output{}, err
	}
	v, err := t.view(ctx, id)
	return tool.Output{Value: v, Brief: whole(v, taken{})}, err
}

func (t tools) createTask(ctx context.Context, in createTaskArgs) (tool.Output, error) {
	if err := t.mayCreate(ctx); err != nil {
		return tool.Output{}, err
	}
	n, err := t.newTask(ctx, in.newTaskArgs)
	if err != nil {
		return tool.Output{}, err
	}
	if n.Dependencies, err = parseIDs(in.Dependencies); err != nil {
		return tool.Output{}, err
	}
	if in.Metadata != nil {
		if n.Metadata, err = json.Marshal(in.Metadata); err != nil {
			return tool.Output{}, err
		}
	}
	created, err := t.Board.Create(ctx, t.Self.AgentID, n)
	if err != nil {
		return tool.Output{}, err
	}
	task := created[0]
	if task.ReservedFor == t.Self.AgentID {
		// Even if the claim fails, the task is created, and no other member takes it.
		if held, err := t.Slot.Claim(ctx, task.ID); err == nil {
			task = held
		}
	}
	return t.result(ctx, task)
}

// newTask checks the fields of a task except its dependencies.
func (t tools) newTask(ctx context.Context, in newTaskArgs) (team.NewTask, error) {
	member, err := t.reservable(ctx, in.Assignee)
	if err != nil {
		return team.NewTask{}, err
	}
	if !t.leads() && (in.Check != "" || in.Supersedes != nil) {
		return team.NewTask{}, team.Errorf(team.PermissionDenied, "only the leader may set a check or supersede one")
	}
	supersedes, err := parseIDs(in.Supersedes)
	if err != nil {
		return team.NewTask{}, err
	}
	if in.Role != "" { // no member would ever take a task for an unknown role
		record, err := t.Team(ctx)
		if err != nil {
			return team.NewTask{}, err
		}
		role, err := record.Role(in.Role)
		if err != nil {
			return team.NewTask{}, err
		}
		in.Role = role.Name // the call may use another name of it
	}
	return team.NewTask{Title: in.Title, Description: in.Description, Priority: int(in.Priority), Role: in.Role, ReservedFor: member, Check: in.Check, Supersedes: supersedes, DeliverableReq: in.DeliverableRequired}, nil
}

// reservable checks the optional name of the member for which a task is reserved.
func (t tools) reservable(ctx context.Context, name string) (team.AgentID, error) {
	a, err := optionalName(name)
	switch {
	case err != nil || a == "" || a == t.Self.AgentID:
		return a, err
	case !t.leads():
		return "", team.Errorf(team.PermissionDenied, "only the leader may assign a task to others")
	}
	m, err := t.Roster.Get(ctx, a)
	if err != nil {
		return "", err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return "", err
	}
	if why := m.Absent(record.Policies); why != "" {
		return "", team.Errorf(team.Unavailable, "%s %s", a, why).WithHint("choose another member, or spawn it again by its name")
	}
	return a, nil
}

// createTasks adds several tasks, all of them or none. Their dependencies name one another by keys;
// any other name is an id. Assignees that do not exist are spawned first, all of them or none.
func (t tools) createTasks(ctx context.Context, in createTasksArgs) (tool.Output, error) {
	if err := t.mayCreate(ctx); err != nil {
		return tool.Output{}, err
	}
	at, err := keysOf(in.Tasks)
	if err != nil {
		return tool.Output{}, err
	}
	join, err := t.newcomers(ctx, in.Tasks)
	if err != nil {
		return tool.Output{}, err
	}
	tasks := make([]team.NewTask, len(in.Tasks))
	for i, p := range in.Tasks {
		who := team.AgentID(p.Assignee)
		joins := slices.ContainsFunc(join, func(n newcomer) bool { return n.name == who })
		if joins {
			p.Assignee = ""
		}
		n, err := t.newTask(ctx, newTaskArgs{Title: p.Title, Description: p.Description, Priority: p.Priority, Role: p.Role, Assignee: p.Assignee, Check: p.Check, Supersedes: p.Supersedes, DeliverableRequired: p.DeliverableRequired})
		if err != nil {
			return tool.Output{}, planError(i, p, err)
		}
		for _, d := range p.Dependencies {
			if other, ok := at[d]; ok {
				n.After = append(n.After, other)
				continue
			}
			id, err := team.ParseTaskID(d)
			if err != nil {
				return tool.Output{}, planError(i, p, team.Errorf(team.NotFound, "the dependency %q is no key of this call, and no task's id", team.Clean(d, 80)))
			}
			n.Dependencies = append(n.Dependencies, id)
		}
		if tasks[i] = n; joins {
			tasks[i].ReservedFor = who
		}
	}
	undo, err := t.spawnAll(ctx, join)
	if err != nil {
		undo()
		return tool.Output{}, team.Errorf(cmp.Or(team.CodeOf(err), team.Unavailable), "%w", err).WithHint("%s", nothingCreated(err))
	}
	created, err := t.Board.Create(ctx, t.Self.AgentID, tasks...)
	if err != nil {
		if team.CodeOf(err) != team.Unavailable { // else the tasks may be there
			undo()
		}
		return tool.Output{}, team.Errorf(cmp.Or(team.CodeOf(err), team.Unavailable), "%w", err).WithHint("%s", nothingCreated(err))
	}
	list := make(planned, len(created))
	for i, task := range created {
		list[i] = plannedTask{in.Tasks[i].Key, task.ID, task.ReservedFor, task.Dependencies}
	}
	return tool.Output{Value: list}, nil
}

// keysOf returns the index of each task of a plan by its key.
func keysOf(plan []plannedArgs) (map[string]int, error) {
	at := map[string]int{}
	for i, p := range plan {
		if first, twice := at[p.Key]; twice {
			return nil, planError(i, p, team.Errorf(team.InvalidArgument, "task %d has the same key", first+1))
		}
		if p.Key == "" {
			return nil, planError(i, p, team.Errorf(team.InvalidArgument, "its key is empty"))
		}
		at[p.Key] = i
	}
	return at, nil
}

// planError returns the error of one task of a plan, with the hint that none was created.
func planError(i int, p plannedArgs, err error) error {
	return team.Errorf(cmp.Or(team.CodeOf(err), team.Unavailable), "task %d (%s): %w", i+1, team.Clean(cmp.Or(p.Key, p.Title), 40), err).WithHint("%s", nothingCreated(err))
}

// nothingCreated returns the hint of an error of a plan. After Unavailable, the plan may be stored.
func nothingCreated(err error) string {
	hint := "none of the tasks was created"
	if team.CodeOf(err) == team.Unavailable || team.CodeOf(err) == "" {
		hint = "look at the board before you repeat it"
	}
	if h := team.ModelHintOf(err); h != "" {
		hint = h + "; " + hint
	}
	return hint
}

// claimTask takes a task for the caller, or for the member that the call names.
func (t tools) claimTask(ctx context.Context, in claimArgs) (tool.Output, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return tool.Output{}, err
	}
	assignee, err := optionalName(in.Assignee)
	if err != nil {
		return tool.Output{}, err
	}
	task, err := t.assign(ctx, cmp.Or(assignee, t.Self.AgentID), id)
	if err != nil {
		return tool.Output{}, err
	}
	if task.Assignee != t.Self.AgentID {
		return t.result(ctx, task)
	}
	v := task.View(nil, nil)
	k := t.taken(ctx, task)
	return tool.Output{Value: v, Brief: whole(v, k), Effects: k.effects(task)}, nil
}

// assign gives a task to a member: to the caller by its own slot, to another by a request to its
// process.
func (t tools) assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error) {
	if a == t.Self.AgentID {
		return t.Slot.Claim(ctx, id)
	}
	if !t.leads() {
		return team.Task{}, team.Errorf(team.PermissionDenied, "only the leader may assign a task to others")
	}
	return t.Admin.Assign(ctx, a, id)
}

func (t tools) updateTask(ctx context.Context, in updateTaskArgs) (tool.Output, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return tool.Output{}, err
	}
	edit := team.Edit{Title: in.Title, Description: in.Description, Priority: (*int)(in.Priority)}
	if in.Metadata != nil {
		if edit.Metadata, err = json.Marshal(in.Metadata); err != nil {
			return tool.Output{}, err
		}
	}
	if in.Supersedes != nil && !t.leads() {
		return tool.Output{}, team.Errorf(team.PermissionDenied, "only the leader may supersede a check")
	}
	if edit.Supersedes, err = parseIDs(in.Supersedes); err != nil {
		return tool.Output{}, err
	}
	if edit.AddDependencies, err = parseIDs(in.AddDependencies); err != nil {
		return tool.Output{}, err
	}
	if edit.RemoveDependencies, err = parseIDs(in.RemoveDependencies); err != nil {
		return tool.Output{}, err
	}
	var status team.TaskStatus
	if in.Status != "" {
		if status, err = team.ParseTaskStatus(in.Status); err != nil {
			return tool.Output{}, err
		}
	}
	assignee, err := optionalName(in.Assignee)
	if err != nil {
		return tool.Output{}, err
	}
	if err := in.check(edit, status); err != nil {
		return tool.Output{}, err
	}
	var task team.Task
	takes := (assignee == t.Self.AgentID || status == team.InProgress) && !t.held(id)
	switch {
	case !edit.Empty():
		task, _, err = t.Board.Edit(ctx, id, t.actor(), edit)
	case assignee != "":
		task, err = t.assign(ctx, assignee, id)
	default:
		task, err = t.move(ctx, id, status, in)
	}
	if err != nil {
		return tool.Output{}, err
	}
	out, err := t.result(ctx, task)
	if takes && task.Status == team.InProgress && task.Assignee == t.Self.AgentID {
		k := t.taken(ctx, task)
		out.Brief, out.Effects = changed(task.View(nil, nil), &k), k.effects(task)
	}
	return out, err
}

// check refuses fields that exclude each other before any change: a call takes effect in full or
// not at all, and no field is ignored.
func (in updateTaskArgs) check(edit team.Edit, status team.TaskStatus) error {
	moves := status != "" || in.Assignee != ""
	switch {
	case len(in.Artifacts) > 0 && status != team.Completed:
		return team.Errorf(team.InvalidArgument, "artifacts go with status completed")
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

// optionalName parses the name of a member; "" stays "".
func optionalName(s string) (team.AgentID, error) {
	if s == "" {
		return "", nil
	}
	return team.ParseAgentID(s)
}

// move makes the transition to a status.
func (t tools) move(ctx context.Context, id team.TaskID, status team.TaskStatus, in updateTaskArgs) (team.Task, error) {
	switch status {
	case team.Completed:
		return t.complete(ctx, id, in.ResultSummary, in.Artifacts)
	case team.InProgress:
		return t.Slot.Claim(ctx, id)
	case team.Pending:
		return t.release(ctx, id, in.Reason)
	case team.Failed:
		if t.held(id) || !t.leads() {
			return t.Slot.Fail(ctx, id, in.Reason)
		}
		return t.Board.Fail(ctx, id, t.actor(), 0, team.Freed{Reason: in.Reason})
	}
	return t.Slot.Cancel(ctx, id, t.actor(), in.Reason)
}

// complete completes the task if its check passes and its deliverable and artifacts are valid.
func (t tools) complete(ctx context.Context, id team.TaskID, summary string, artifacts []string) (team.Task, error) {
	done := team.Done{Summary: summary}
	if err := done.Validate(); err != nil { // a check may take minutes
		return team.Task{}, err
	}
	task, err := t.Slot.MayComplete(ctx, id)
	if err != nil {
		return task, err
	}
	if done.Digest, done.Artifacts, err = t.Verify(ctx, task, artifacts); err == nil && t.Complete != nil {
		task, err = t.Complete(ctx, task, done)
	} else if err == nil {
		task, err = t.Slot.Complete(ctx, id, done)
	}
	if failed, ok := errors.AsType[*completion.CheckError](err); ok {
		task, ferr := t.Slot.FailCheck(ctx, id, failed.Output)
		if ferr != nil {
			return task, ferr
		}
		err := failed.Counted(task)
		return task, tool.Plain(err, fmt.Sprintf("%s\n[%s]", failed, team.ModelHintOf(err)))
	}
	return task, err
}

func (t tools) held(id team.TaskID) bool {
	h, ok := t.Slot.Task()
	return ok && h.ID == id
}

func (t tools) releaseTask(ctx context.Context, in releaseTaskArgs) (tool.Output, error) {
	id, err := team.ParseTaskID(in.TaskID)
	if err != nil {
		return tool.Output{}, err
	}
	task, err := t.release(ctx, id, in.Reason)
	if err != nil {
		return tool.Output{}, err
	}
	return t.result(ctx, task)
}

// release gives back the caller's own task, or takes back another's with the leader's rights.
func (t tools) release(ctx context.Context, id team.TaskID, reason string) (team.Task, error) {
	if t.held(id) || !t.leads() {
		return t.Slot.GiveBack(ctx, id, team.GiveBack{Freed: team.Freed{Reason: reason}})
	}
	return t.Board.Release(ctx, id, t.actor(), 0, team.Freed{Reason: reason})
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
