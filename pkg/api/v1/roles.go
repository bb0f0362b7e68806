package v1

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

type rolesOut struct {
	Body struct {
		Roles []team.Role `json:"roles" nullable:"false"`
	} `nameHint:"Roles"`
}

func inOrder(roles map[string]team.Role) *rolesOut {
	var out rolesOut
	out.Body.Roles = []team.Role{}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		out.Body.Roles = append(out.Body.Roles, roles[name])
	}
	return &out
}

type roleIn struct {
	OfTeam
	Role string `path:"role" doc:"The name of a role." example:"coder"`
}

const tagRoles = "roles"

func (s *service) roles() {
	add(s, operation{
		id: "list-roles", method: http.MethodGet, path: "/v1/roles", tag: tagRoles, summary: "List the roles that new teams get",
		doc: "The built-in ones and those of the leader process's folder, in order of name.",
	}, func(_ context.Context, _ *struct{}) (*rolesOut, error) {
		n, err := s.NewTeam()
		return inOrder(n.Roles), err
	})
	addOf(s, operation{
		id: "list-team-roles", method: http.MethodGet, path: "/v1/teams/{team}/roles", tag: tagRoles, summary: "List a team's roles",
		doc: "As the team has stored them, in order of name.",
	}, func(ctx context.Context, t *client.Team, _ *struct{ OfTeam }) (*rolesOut, error) {
		record, err := t.Record(ctx)
		return inOrder(record.Roles), err
	})
	addOf(s, operation{
		id: "get-team-role", method: http.MethodGet, path: "/v1/teams/{team}/roles/{role}", tag: tagRoles, summary: "Show a role with its instructions",
		doc: "As the team has stored it.",
	}, func(ctx context.Context, t *client.Team, in *roleIn) (*answer[team.Role], error) {
		record, err := t.Record(ctx)
		if err != nil {
			return nil, err
		}
		role, err := record.Role(in.Role)
		return &answer[team.Role]{role}, err
	})
}
