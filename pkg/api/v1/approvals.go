package v1

import (
	"context"
	"net/http"
	"slices"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

type listApprovalsIn struct {
	OfTeam
	All bool `query:"all" doc:"Also plans that do not wait for a decision."`
	Paging
}

type approvalsOut struct {
	Body struct {
		Approvals []client.Plan `json:"approvals" nullable:"false"`
		Next      string        `json:"next,omitempty" doc:"page of the next page; left out on the last."`
	} `nameHint:"Approvals"`
}

// OfApproval is a plan in a path.
type OfApproval struct {
	OfTeam
	ID string `path:"approval" maxLength:"512" doc:"The id of a plan that was submitted." example:"9f0c2d41"`
}

type approvalOut struct{ Body client.Plan }

type decideIn struct {
	OfApproval
	Body struct {
		Approve  bool   `json:"approve" doc:"Its member may carry the plan out; if not, it makes another one." example:"true"`
		Feedback string `json:"feedback,omitempty" doc:"What is to be done otherwise; a rejection needs it."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"Decision"`
}

type decideOut struct{ Body team.Approval }

const tagApprovals = "approvals"

func (s *service) approvals() {
	add(s, operation{
		id: "list-approvals", method: http.MethodGet, path: "/v1/teams/{team}/approvals", tag: tagApprovals, summary: "List the plans that wait for a decision",
		doc: "Of members in plan mode, oldest first.",
	}, func(ctx context.Context, in *listApprovalsIn) (*approvalsOut, error) {
		from, err := in.from()
		if err != nil {
			return nil, err
		}
		t, err := s.open(ctx, in.OfTeam)
		if err != nil {
			return nil, err
		}
		plans, err := t.Plans(ctx)
		if err != nil {
			return nil, err
		}
		plans = slices.DeleteFunc(plans, func(p client.Plan) bool { return !p.Waits() && !in.All })
		var out approvalsOut
		out.Body.Approvals, out.Body.Next = page(plans, from, in.Limit)
		return &out, nil
	})
	add(s, operation{
		id: "get-approval", method: http.MethodGet, path: "/v1/teams/{team}/approvals/{approval}", tag: tagApprovals, summary: "Show a plan",
		doc: "Its text, and what was decided on it.",
	}, func(ctx context.Context, in *struct{ OfApproval }) (*approvalOut, error) {
		t, err := s.open(ctx, in.OfTeam)
		if err != nil {
			return nil, err
		}
		p, err := t.Plan(ctx, in.ID)
		return &approvalOut{p}, err
	})
	add(s, operation{
		id: "decide-approval", method: http.MethodPost, path: "/v1/teams/{team}/approvals/{approval}/decide", tag: tagApprovals, summary: "Approve or reject a plan",
		doc: "On behalf of a person. A plan is decided on once: a second decision is a conflict.",
	}, func(ctx context.Context, in *decideIn) (*decideOut, error) {
		t, err := s.open(ctx, in.OfTeam)
		if err != nil {
			return nil, err
		}
		a, err := t.DecidePlan(ctx, in.ID, in.Body.Approve, in.Body.Feedback)
		return &decideOut{a}, err
	})
}
