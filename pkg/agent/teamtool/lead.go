package teamtool

import (
	"context"
	"fmt"
	"slices"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type spawnArgs struct {
	Role   string `json:"role"`
	Name   string `json:"name,omitempty" jsonschema:"default: role and a number, such as coder-1; the name of a stopped member brings that one back, with what it knows"`
	Prompt string `json:"prompt,omitempty" jsonschema:"message it starts with; work that others could do belongs in a task"`
	Model  string `json:"model,omitempty" jsonschema:"default: the role's"`

	PlanMode bool `json:"plan_mode,omitempty" jsonschema:"it changes nothing until you approve its plan"`
}

type removeArgs struct {
	AgentID string `json:"agent_id"`
	Reason  string `json:"reason,omitempty"`
}

type finishArgs struct {
	Summary string   `json:"summary" jsonschema:"the answer to the person: what was done and where it is, how you checked it, deviations, risks, what is left"`
	GivenUp []string `json:"given_up,omitempty" jsonschema:"ids of the failed tasks that the result does without"`
}

type spawned struct {
	AgentID team.AgentID `json:"agent_id"`
	Role    string       `json:"role"`
	Note    string       `json:"note,omitempty"` // where the result differs from the request
}

// removed is the result of remove_teammate.
type removed struct {
	AgentID   team.AgentID `json:"agent_id"`
	State     string       `json:"state"`                // stopped; refused: it stays; asked: its answer comes as mail
	Reason    string       `json:"reason,omitempty"`     // of a refusal
	RequestID string       `json:"request_id,omitempty"` // of an open request
}

// finished is the result of finish_team.
type finished struct {
	Summary   string   `json:"summary"`
	Completed int      `json:"completed_tasks"`
	Total     int      `json:"total_tasks"`
	Failed    []string `json:"failed_tasks,omitempty"` // since the goal was set
}

// leads are the traits of most leader-only tools.
var leads = tool.Traits{LeaderOnly: true, Silent: true}

func (t tools) leadTools() []tool.Tool {
	return []tool.Tool{
		tool.New("spawn_teammate", "Add a teammate, which stays for later tasks.", t.spawn, leads, tool.Alias("TeamSpawn"), t.models()),
		tool.New("remove_teammate", "Ask a teammate to leave. It may refuse and stay; you get its reason.", t.remove, leads),
		tool.New("finish_team", "End the goal after you have checked the result yourself. No task may be pending or in progress.", t.finish, leads),
	}
}

// models offers the models by name, if there is a choice.
func (t tools) models() tool.Option {
	if len(t.Aliases) < 2 {
		return tool.Hidden("model")
	}
	return tool.Enum("model", t.Aliases...)
}

// model returns the alias with this name, or "" for the role's, with a note if the name is unknown:
// models use unknown names, and a teammate with the role's model is worth more than a refusal.
func (t tools) model(name string) (alias, note string) {
	switch {
	case name == "", name == team.Inherit:
		return "", ""
	case slices.Contains(t.Aliases, name):
		return name, ""
	}
	return "", fmt.Sprintf("there is no model %q; the member has its role's", team.Clean(name, 80))
}

func (t tools) spawn(ctx context.Context, in spawnArgs) (tool.Output, error) {
	alias, note := t.model(in.Model)
	m := team.Member{Role: team.CanonicalRole(in.Role), Prompt: in.Prompt, Model: alias, PlanMode: in.PlanMode}
	if in.Name != "" {
		name, err := team.ParseAgentID(in.Name)
		if err != nil {
			return tool.Output{}, err
		}
		m.AgentID = name
	}
	m, err := t.Admin.Spawn(ctx, m)
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: spawned{m.AgentID, m.Role, note}}, nil
}

func (t tools) remove(ctx context.Context, in removeArgs) (tool.Output, error) {
	a, err := team.ParseAgentID(in.AgentID)
	if err != nil {
		return tool.Output{}, err
	}
	if a == t.Self.AgentID {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "the leader cannot remove itself").WithHint("finish_team ends the team's work")
	}
	m, err := t.Roster.Get(ctx, a)
	if err != nil {
		return tool.Output{}, err
	}
	if m.State == team.Stopped {
		return tool.Output{Value: removed{AgentID: a, State: string(team.Stopped)}}, nil
	}
	if m.Backend == team.Person {
		return tool.Output{}, team.Errorf(team.PermissionDenied, "%s is a person", a).WithHint("a person leaves when that person wants to")
	}
	answer, err := t.Admin.Remove(ctx, a, in.Reason)
	switch {
	case err != nil:
		return tool.Output{}, err
	case answer.Left:
		return tool.Output{Value: removed{AgentID: a, State: string(team.Stopped)}}, nil
	case answer.Refused:
		return tool.Output{Value: removed{AgentID: a, State: "refused", Reason: answer.Reason}}, nil
	}
	return tool.Output{Value: removed{AgentID: a, State: "asked", RequestID: answer.RequestID}}, nil
}

func (t tools) finish(ctx context.Context, in finishArgs) (tool.Output, error) {
	f, err := t.end(ctx, in)
	return tool.Output{Value: f, Effects: tool.Effects{Ends: true}}, err
}

// end ends the goal.
func (t tools) end(ctx context.Context, in finishArgs) (f finished, err error) {
	if in.Summary == "" {
		return f, team.Errorf(team.InvalidArgument, "the summary is empty").WithHint("it is the answer that the person gets")
	}
	var givenUp []team.TaskID
	for _, s := range in.GivenUp {
		id, err := team.ParseTaskID(s)
		if err != nil {
			return f, err
		}
		givenUp = append(givenUp, id)
	}
	if err := t.Admin.Finish(ctx, in.Summary, givenUp); err != nil {
		return f, err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return f, err
	}
	tasks, err := t.Board.All(ctx)
	if err != nil {
		return f, err
	}
	f = finished{Summary: in.Summary, Total: len(tasks)}
	for _, task := range tasks {
		switch {
		case task.Status == team.Completed:
			f.Completed++
		case task.Status == team.Failed && task.Revision > record.GoalSeq:
			f.Failed = append(f.Failed, fmt.Sprintf("%s (%s): %s", task.ID, task.Title, team.Summarize(task.Reason)))
		}
	}
	return f, nil
}
