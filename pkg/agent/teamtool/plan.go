package teamtool

import (
	"context"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type submitArgs struct {
	Plan string `json:"plan" jsonschema:"what you will change, in which files, in which order, and how you will check it"`
}

type approveArgs struct {
	RequestID string `json:"request_id"`
	Approve   bool   `json:"approve"`
	Feedback  string `json:"feedback,omitempty" jsonschema:"needed to reject: what is to be different"`
}

// submitted is the result of submit_plan.
type submitted struct {
	RequestID string              `json:"request_id"`
	Status    team.ApprovalStatus `json:"status"`
	Approver  team.AgentID        `json:"approver"`
}

// judged is the result of approve_plan.
type judged struct {
	RequestID string              `json:"request_id"`
	AgentID   team.AgentID        `json:"agent_id"`
	Status    team.ApprovalStatus `json:"status"`
}

// planTools returns submit_plan for all teammates, also those that need no plan now, and
// approve_plan for the leader: a list of tools that changed with the mode or with the task would
// invalidate the endpoint's cache of the whole prompt.
func (t tools) planTools() []tool.Tool {
	list := []tool.Tool{
		tool.New("approve_plan", "Approve or reject the plan of a teammate that asks for it.", t.approve, tool.Traits{LeaderOnly: true}),
	}
	if t.Gate != nil {
		list = append(list, tool.New("submit_plan", "Ask for approval of your plan, if you are in plan mode or your task needs one. Change nothing before; end your turn after this call, and go on when the answer comes.",
			t.submit, tool.Alias("ExitPlanMode"), tool.Traits{Ungated: true}))
	}
	return list
}

func (t tools) submit(ctx context.Context, in submitArgs) (tool.Output, error) {
	a, err := t.Gate.Submit(ctx, in.Plan)
	if err != nil {
		return tool.Output{}, err
	}
	// It waits for the decision without a limit: its work cannot continue otherwise.
	return tool.Output{Value: submitted{RequestID: a.ID, Status: a.Status, Approver: a.Asks()},
		Effects: tool.Effects{Await: a.Await()}}, nil
}

// answerPlan is approve_plan by a message of type plan_approval_response.
func (t tools) answerPlan(ctx context.Context, m team.Message) (tool.Output, error) {
	if err := m.Validate(); err != nil {
		return tool.Output{}, err
	}
	a, err := t.Plans.Get(ctx, m.RequestID)
	if err == nil && a.AgentID != m.To {
		err = team.Errorf(team.NotFound, "%s has submitted no plan %s", m.To, a.ID).WithHint("it is of %s", a.AgentID)
	}
	if err != nil {
		return tool.Output{}, err
	}
	return t.approve(ctx, approveArgs{m.RequestID, *m.Approve, m.Content})
}

func (t tools) approve(ctx context.Context, in approveArgs) (tool.Output, error) {
	a, err := t.Plans.Decide(ctx, in.RequestID, team.Decision{By: t.Self.AgentID, Approve: in.Approve, Feedback: in.Feedback})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: judged{a.ID, a.AgentID, a.Status}}, nil
}
