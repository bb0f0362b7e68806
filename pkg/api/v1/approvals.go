package v1

import (
	"context"
	"net/http"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

type listApprovalsIn struct {
	OfTeam
	All bool `query:"all" doc:"Also what does not wait for a decision."`
	Paging
}

type approvalsOut struct {
	Body struct {
		Approvals []client.Plan `json:"approvals" nullable:"false"`
		Next      string        `json:"next,omitempty" doc:"page of the next page; left out on the last."`
	} `nameHint:"Approvals"`
}

// OfApproval is a plan or a call in a path.
type OfApproval struct {
	OfTeam
	ID string `path:"approval" maxLength:"512" doc:"The id of a plan that was submitted, or of a call that was asked for." example:"9f0c2d41"`
}

type decideIn struct {
	OfApproval
	Body struct {
		Approve  bool       `json:"approve" doc:"Its member may carry the plan out, make the call, or come back; if not, it does something else, or stays lost." example:"true"`
		Feedback string     `json:"feedback,omitempty" doc:"What is to be done otherwise; the rejection of a plan needs it."`
		Scope    team.Scope `json:"scope,omitempty" doc:"Of a call: once, which is the default; task, as often as it is made while its member holds the task; always, which also adds the rule of the call to the team's permissions."`
		As       string     `json:"as,omitempty" doc:"The person's seat that decides on a call; left out, the user."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"Decision"`
}

const tagApprovals = "approvals"

func (s *service) approvals() {
	addOf(s, operation{
		id: "list-approvals", method: http.MethodGet, path: "/v1/teams/{team}/approvals", tag: tagApprovals, summary: "List what waits for a decision",
		doc: "Plans of members in plan mode, calls that a person has to allow (kind permission), and lost members that a person may let come back (kind respawn), oldest first.",
	}, func(ctx context.Context, t *client.Team, in *listApprovalsIn) (*approvalsOut, error) {
		from, err := in.from()
		if err != nil {
			return nil, err
		}
		plans, err := t.Plans().List(ctx)
		if err != nil {
			return nil, err
		}
		var out approvalsOut
		out.Body.Approvals, out.Body.Next = pageOf(plans, from, in.Limit, func(p client.Plan) bool { return in.All || p.Waits() })
		return &out, nil
	})
	addOf(s, operation{
		id: "get-approval", method: http.MethodGet, path: "/v1/teams/{team}/approvals/{approval}", tag: tagApprovals, summary: "Show a plan or a call",
		doc: "The whole of it, and the decision on it.",
	}, func(ctx context.Context, t *client.Team, in *struct{ OfApproval }) (*answer[client.Plan], error) {
		p, err := t.Plans().Get(ctx, in.ID)
		return &answer[client.Plan]{p}, err
	})
	addOf(s, operation{
		id: "decide-approval", method: http.MethodPost, path: "/v1/teams/{team}/approvals/{approval}/decide", tag: tagApprovals, summary: "Approve or reject a plan, or allow a call",
		doc: "On behalf of a person. It is decided on once: a second decision is a conflict.",
	}, func(ctx context.Context, t *client.Team, in *decideIn) (*answer[team.Approval], error) {
		as, err := nameOf(in.Body.As)
		if err != nil {
			return nil, err
		}
		a, err := t.Plans().Decide(ctx, as, in.ID, team.Decision{Approve: in.Body.Approve, Feedback: in.Body.Feedback, Scope: in.Body.Scope})
		return &answer[team.Approval]{a}, err
	})
}
