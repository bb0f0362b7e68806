package teamtool

import (
	"context"
	"fmt"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type spawnArgs struct {
	Role   string `json:"role" jsonschema:"one of the team's roles"`
	Name   string `json:"name,omitempty" jsonschema:"a name for it; left out, it is the role and the next number"`
	Prompt string `json:"prompt,omitempty" jsonschema:"instructions for this member beside its role's; work is given by tasks"`
	Model  string `json:"model,omitempty" jsonschema:"a model other than the role's"`
}

type removeArgs struct {
	AgentID string `json:"agent_id" jsonschema:"the member's name"`
}

type finishArgs struct {
	Summary string `json:"summary" jsonschema:"the answer to the person who set the goal: what was done, what came out, where it is"`
}

type spawned struct {
	AgentID team.AgentID `json:"agent_id"`
	Role    string       `json:"role"`
}

type removed struct {
	AgentID team.AgentID     `json:"agent_id"`
	State   team.MemberState `json:"state"`
}

// finished is the result of finish_team.
type finished struct {
	Summary   string   `json:"summary"`
	Completed int      `json:"completed_tasks"`
	Total     int      `json:"total_tasks"`
	Failed    []string `json:"failed_tasks,omitempty"` // since the goal was set
}

// EndsRun: with the goal's end the leader has nothing more to do.
func (finished) EndsRun() bool { return true }

func (t tools) leadTools() []tool.Tool {
	return []tool.Tool{
		tool.New("spawn_teammate", "Bring a teammate into the team. It takes work from the board by itself. Returns its name.", t.spawn, tool.Alias("TeamSpawn", "Task"), t.models()),
		tool.New("remove_teammate", "Have an idle teammate leave the team.", t.remove),
		tool.New("finish_team", "End the goal: no task may be pending or in progress. The summary is the answer that the person gets.", t.finish, tool.Alias("TeamDelete")),
	}
}

// models offers the models by name, if there is a choice.
func (t tools) models() tool.Option {
	if len(t.Aliases) < 2 {
		return tool.Without("model")
	}
	return tool.Enum("model", t.Aliases)
}

func (t tools) spawn(ctx context.Context, in spawnArgs) (any, error) {
	m := team.Member{Role: team.CanonicalRole(in.Role), Prompt: in.Prompt, Model: in.Model}
	if in.Name != "" {
		name, err := team.ParseAgentID(in.Name)
		if err != nil {
			return nil, err
		}
		m.AgentID = name
	}
	m, err := t.Crew.Spawn(ctx, m)
	if err != nil {
		return nil, err
	}
	return spawned{m.AgentID, m.Role}, nil
}

func (t tools) remove(ctx context.Context, in removeArgs) (any, error) {
	a, err := team.ParseAgentID(in.AgentID)
	if err != nil {
		return nil, err
	}
	if a == t.Self.AgentID {
		return nil, team.Errorf(team.InvalidArgument, "the leader cannot remove itself").WithHint("finish_team ends the team's work")
	}
	m, err := t.Roster.Get(ctx, a)
	if err != nil {
		return nil, err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return nil, err
	}
	h := t.Heard(ctx, []team.Member{m})[a]
	if s := h.State(m, record.Lease(), time.Now()); s == team.Running {
		return nil, team.Errorf(team.InvalidState, "%s is running", a).WithHint("wait until it is idle, or ask it by send_message to stop")
	}
	tasks, err := t.Board.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		if task.Status == team.InProgress && task.Assignee == a {
			return nil, team.Errorf(team.InvalidState, "%s holds %s", a, task.ID).WithHint("release the task first, or wait until it is completed")
		}
	}
	if err := t.Crew.Remove(ctx, a); err != nil {
		return nil, err
	}
	return removed{a, team.Stopped}, nil
}

func (t tools) finish(ctx context.Context, in finishArgs) (any, error) {
	if in.Summary == "" {
		return nil, team.Errorf(team.InvalidArgument, "the summary is empty").WithHint("it is the answer that the person gets")
	}
	if err := t.Crew.Finish(ctx, in.Summary); err != nil {
		return nil, err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := t.Board.All(ctx)
	if err != nil {
		return nil, err
	}
	f := finished{Summary: in.Summary, Total: len(tasks)}
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
