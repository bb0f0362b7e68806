package teamtool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
)

// forms returns the other forms of the team's tools: those of Claude Code, and names that other
// descriptions of agent teams use.
func (t tools) forms() map[string][]dialect.Form {
	hidden := []string{"priority"} // metadata.priority is it
	if !t.leads() {
		hidden = append(hidden, "addBlocks")
	}
	return map[string][]dialect.Form{
		"list_tasks": {{Name: "TaskList", Dialect: team.Claude, Names: map[string][]string{"assignee": {"owner"}}, Show: blockedBy}},
		"get_task":   {{Name: "TaskGet", Dialect: team.Claude, Names: map[string][]string{"task_id": {"taskId"}}, Show: claudeTask}},
		"claim_task": {{Name: "claim_task", Names: map[string][]string{"assignee": {"assignee", "assignee_agent_id"}}}},
		"broadcast": {{Name: "broadcast", Own: teamName, Hidden: []string{"team_name"}, Calls: t.inTeam,
			Names: map[string][]string{"content": {"content", "message"}}}},
		"create_task": {
			{Name: "create_task", Names: map[string][]string{"assignee": {"assignee", "assignee_agent_id"}}},
			{Name: "TaskCreate", Dialect: team.Claude, Show: claudeTask, Own: taskExtras, Hidden: []string{"priority", "role", "check", "deliverable_required"}, Calls: newTaskCall, Names: map[string][]string{
				"title": {"subject"}, "assignee": {"owner", "assignee_agent_id"}, "dependencies": {"blockedBy", "addBlockedBy"}}},
		},
		"create_tasks": {{Name: "TeamFanout", Dialect: team.Claude, Optional: []string{"tasks.key"}, Calls: t.fanoutCall,
			Own: teamName, Hidden: []string{"team_name"}, Names: map[string][]string{
				"tasks.title": {"subject"}, "tasks.description": {"description", "instruction"}, "tasks.dependencies": {"blockedBy"},
				"tasks.assignee": {"owner", "assignee_agent_id"}}, Show: dialect.RenamedEach(map[string]string{"dependencies": "blockedBy"})}},
		"update_task": {
			{Name: "update_task", Names: map[string][]string{"assignee": {"assignee", "assignee_agent_id"}}},
			{Name: "TaskUpdate", Dialect: team.Claude, Show: claudeTask, Hidden: hidden, Calls: t.updateCalls,
				Own: slices.Concat([]dialect.Argument{{Name: "addBlocks", Type: "array", Description: "ids that are to wait for this one"},
					{Name: "status", Type: "string", Enum: t.claudeStatuses()}}, taskExtras),
				Names: map[string][]string{"task_id": {"taskId"}, "assignee": {"owner", "assignee_agent_id"}, "title": {"subject"},
					"add_dependencies": {"addBlockedBy"}, "remove_dependencies": {"removeBlockedBy"}}},
		},
		"send_message": {
			{Name: "send_message", Own: teamName, Hidden: []string{"team_name"}, Calls: t.inTeam,
				Names: map[string][]string{"to": {"to", "to_agent_id", "recipient"}, "content": {"content", "message"}}},
			{Name: "SendMessage", Dialect: team.Claude, Optional: []string{"to", "message"}, Unfold: unfoldMessage, Calls: t.messageCall,
				Own: slices.Concat(teamName, t.messageTypes()), Hidden: []string{"team_name"},
				Names: map[string][]string{"to": {"to", "recipient", "to_agent_id"}, "content": {"message", "content"}}},
		},
		"TeamCreate": {{Name: "TeamCreate", Dialect: team.Claude, Names: map[string][]string{"team_name": {"team_name", "name"}}}},
		"TeamDelete": {{Name: "TeamDelete", Dialect: team.Claude, Names: map[string][]string{"team_name": {"team_name", "name"}}}},
		"spawn_teammate": {
			{Name: "spawn_teammate", Names: map[string][]string{"role": {"role", "role_name"}}},
			{Name: "Task", Dialect: team.Claude, When: func(given map[string]any) bool { return !team.StartsSubagent(given) }, Optional: []string{"subagent_type"}, Calls: t.spawnCall, Names: map[string][]string{"role": {"subagent_type", "role_name"}},
				Own: spawnExtras, Hidden: []string{"description", "mode", "tasks"}},
		},
	}
}

// teamName is an argument of tools that act on a team; a member has only one team.
var teamName = []dialect.Argument{{Name: "team_name", Type: "string"}}

// taskExtras are fields that only Claude's task tools have. They are stored in the task's metadata.
var taskExtras = []dialect.Argument{
	{Name: "activeForm", Type: "string"},
	{Name: "metadata", Type: "object", Description: "its priority is normal, high or critical"},
}

// claudeTask shows a task with Claude's names of its fields.
var claudeTask = dialect.Renamed(map[string]string{"title": "subject", "assignee": "owner", "waiting_for": "blockedBy"})

var waits = regexp.MustCompile(`(?m)^(T-\d+ pending), waits for `)

// blockedBy returns a list of tasks with Claude's word for dependencies.
func blockedBy(lines string) string { return waits.ReplaceAllString(lines, "$1, blockedBy ") }

// newTaskCall returns the call of create_task for a call of TaskCreate.
func newTaskCall(_ context.Context, given map[string]any) ([]map[string]any, error) {
	if err := intoMetadata(given); err != nil {
		return nil, err
	}
	return []map[string]any{given}, nil
}

// intoMetadata moves activeForm into the metadata, and the priority out of it. Error:
// InvalidArgument for an invalid priority.
func intoMetadata(given map[string]any) error {
	metadata, _ := given["metadata"].(map[string]any)
	if p, ok := metadata["priority"]; ok {
		n, err := team.ParsePriority(fmt.Sprint(p))
		if err != nil {
			return team.Errorf(team.InvalidArgument, "metadata.priority: %w", err).WithHint("use normal, high or critical")
		}
		given["priority"] = n
		delete(metadata, "priority")
	}
	if form, ok := given["activeForm"]; ok {
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata[team.ActiveForm] = form
		delete(given, "activeForm")
	}
	if delete(given, "metadata"); len(metadata) > 0 {
		given["metadata"] = metadata
	}
	return nil
}

// fanoutCall returns the call of create_tasks for a call of TeamFanout: a task that no other names
// needs no key.
func (t tools) fanoutCall(ctx context.Context, given map[string]any) ([]map[string]any, error) {
	if err := t.ownTeam(ctx, given); err != nil {
		return nil, err
	}
	list, _ := given["tasks"].([]any)
	for i, e := range list {
		if task, ok := e.(map[string]any); ok && task["key"] == nil {
			task["key"] = strconv.Itoa(i + 1)
		}
	}
	return []map[string]any{given}, nil
}

// updateCalls returns the calls of update_task for a call of TaskUpdate, which may contain several
// changes. A task's text can change only while it is pending, so before the claim; its metadata
// while its owner holds it.
func (t tools) updateCalls(ctx context.Context, given map[string]any) ([]map[string]any, error) {
	id := given["task_id"]
	blocks, _ := given["addBlocks"].([]any)
	delete(given, "addBlocks")
	if err := intoMetadata(given); err != nil {
		return nil, err
	}
	if err := t.mergeMetadata(ctx, given); err != nil {
		return nil, err
	}
	if given["status"] == string(team.Completed) && given["result_summary"] == nil {
		given["result_summary"] = "done; no summary was given"
	}
	move := part(given, "status", "assignee", "result_summary", "reason", "artifacts")
	metadata := part(given, "metadata")
	edit := part(given, "title", "description", "priority", "add_dependencies", "remove_dependencies")
	claims := move["assignee"] != nil || move["status"] == string(team.InProgress)
	if !claims {
		for name, v := range metadata {
			edit[name] = v
		}
		metadata = nil
	}
	var calls []map[string]any
	for _, b := range blocks {
		calls = append(calls, map[string]any{"task_id": b, "add_dependencies": []any{id}})
	}
	for _, c := range []map[string]any{edit, move, metadata} {
		if len(c) > 0 {
			c["task_id"] = id
			calls = append(calls, c)
		}
	}
	if calls == nil {
		calls = []map[string]any{given} // empty: the tool returns the error
	}
	return calls, nil
}

// part returns the entries of given with these names.
func part(given map[string]any, names ...string) map[string]any {
	p := map[string]any{}
	for _, n := range names {
		if v, ok := given[n]; ok {
			p[n] = v
		}
	}
	return p
}

// mergeMetadata adds the task's metadata that given does not name; a null removes a field.
func (t tools) mergeMetadata(ctx context.Context, given map[string]any) error {
	change, ok := given["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	id, err := team.ParseTaskID(fmt.Sprint(given["task_id"]))
	if err != nil {
		return err
	}
	task, err := t.Board.Get(ctx, id)
	if err != nil {
		return err
	}
	merged := map[string]any{}
	if len(task.Metadata) > 0 {
		if err := json.Unmarshal(task.Metadata, &merged); err != nil {
			return err
		}
	}
	for name, v := range change {
		if merged[name] = v; v == nil {
			delete(merged, name)
		}
	}
	given["metadata"] = merged
	return nil
}

// unfoldMessage takes a request or response out of the field message, where newer versions of
// Claude Code put it.
func unfoldMessage(given map[string]any) {
	message, ok := given["message"].(map[string]any)
	if !ok {
		return
	}
	delete(given, "message")
	for name, v := range message {
		if name == "reason" || name == "feedback" {
			name = "message"
		}
		given[name] = v
	}
}

// messageCall returns the call of send_message for a call of SendMessage. A shutdown_response goes
// to the leader by default and a broadcast to all, so they need no receiver.
func (t tools) messageCall(ctx context.Context, given map[string]any) ([]map[string]any, error) {
	if err := t.ownTeam(ctx, given); err != nil {
		return nil, err
	}
	kind, _ := given["type"].(string)
	var missing []string
	switch m := team.MessageType(cmp.Or(kind, string(team.MsgMessage))); {
	case m == team.MsgBroadcast && given["to"] == nil:
		given["to"] = string(team.Everyone)
	case m == team.MsgShutdownResponse && given["to"] == nil:
		given["to"] = string(team.Leader)
	case given["to"] == nil:
		missing = append(missing, "to")
	}
	switch team.MessageType(cmp.Or(kind, string(team.MsgMessage))) {
	case team.MsgMessage, team.MsgBroadcast:
		if given["content"] == nil {
			missing = append(missing, "message")
		}
	}
	if missing != nil {
		return nil, tool.Missing(missing...).WithHint("a message has to and message; a broadcast goes to *")
	}
	if given["content"] == nil {
		given["content"] = ""
	}
	return []map[string]any{given}, nil
}

// claudeStatuses returns the statuses that TaskUpdate offers a model, which also claims with it.
func (t tools) claudeStatuses() []string {
	list := []string{"pending", "in_progress", "completed", "failed"}
	if t.leads() {
		list = append(list, "deleted")
	}
	return list
}

// messageTypes returns the types that SendMessage offers a model; there is no separate tool to
// approve a plan.
func (t tools) messageTypes() []dialect.Argument {
	if t.leads() {
		return []dialect.Argument{{Name: "type", Type: "string", Enum: []string{"message", "broadcast", "shutdown_request", "plan_approval_response"},
			Description: "default: message. shutdown_request asks a teammate to leave, with your reason as message; it may refuse"}}
	}
	return []dialect.Argument{{Name: "type", Type: "string", Enum: []string{"message", "broadcast", "shutdown_response"},
		Description: "default: message. shutdown_response answers a shutdown_request, with your reason as message"}}
}

// inTeam returns the call without the name of the team.
func (t tools) inTeam(ctx context.Context, given map[string]any) ([]map[string]any, error) {
	return []map[string]any{given}, t.ownTeam(ctx, given)
}

// spawnExtras are arguments that only Task has.
var spawnExtras = []dialect.Argument{
	{Name: "team_name", Type: "string", Description: "required for a teammate; without it Task is Agent"},
	{Name: "description", Type: "string"},
	{Name: "mode", Type: "string"},
	{Name: "tasks"},
}

// fanout is the hint to a model that tries to start several tasks with Task.
const fanout = "for several pieces of work at once use TeamFanout; for a teammate give Task team_name and name, and its work by TaskCreate"

// spawnCall returns the call of spawn_teammate for a call of Task. Without a role the member gets
// the general one. Claude Code's type Plan plans and requests approval.
func (t tools) spawnCall(ctx context.Context, given map[string]any) ([]map[string]any, error) {
	mode, _ := given["mode"].(string)
	if given["tasks"] != nil {
		return nil, team.Errorf(team.InvalidArgument, "Task starts one teammate; it has no tasks").WithHint(fanout)
	}
	if !team.IsTaskMode(mode) {
		return nil, team.Errorf(team.InvalidArgument, "Task starts one agent; it has no mode %q", team.Clean(mode, 40)).WithHint(fanout)
	}
	if given["team_name"] == nil { // where there are no subagents
		return nil, team.Errorf(team.InvalidArgument, "Task without team_name would start a subagent").WithHint(fanout)
	}
	if err := t.ownTeam(ctx, given); err != nil {
		return nil, err
	}
	if given["role"] == nil || given["role"] == "" {
		record, err := t.Team(ctx)
		if err != nil {
			return nil, err
		}
		given["role"] = record.GeneralRole()
	}
	if mode == "plan" || given["role"] == "Plan" {
		given["plan_mode"] = true
	}
	delete(given, "description")
	delete(given, "mode")
	return []map[string]any{given}, nil
}

// ownTeam removes team_name from given. Errors: InvalidArgument if it is not the member's team.
func (t tools) ownTeam(ctx context.Context, given map[string]any) error {
	name, _ := given["team_name"].(string)
	if delete(given, "team_name"); name == "" {
		return nil
	}
	record, err := t.Team(ctx)
	if err != nil {
		return err
	}
	if !record.Answers(name) {
		return team.Errorf(team.InvalidArgument, "team_name: %q is not your team, which is %q", team.Clean(name, 80), record.Called()).
			WithHint("you are in one team, which is there already: use team_name %q", record.Called())
	}
	return nil
}
