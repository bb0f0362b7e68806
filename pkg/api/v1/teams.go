package v1

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// choices are the settings of a team, by the names of its record.
type choices struct {
	Description  *string         `json:"description,omitempty" doc:"What the team is for."`
	MaxTeammates *int            `json:"max_teammates,omitempty" doc:"How many teammates it may have at once."`
	Isolation    *team.Isolation `json:"isolation,omitempty" doc:"From the next goal on: worktree has each task done in a separate tree and merged, shared has all work in the folder, auto is worktree where it can be."`
	Policies     *policyChoices  `json:"policies,omitempty"`

	_ struct{} `additionalProperties:"false"`
}

type policyChoices struct {
	Create   *team.Create   `json:"create,omitempty" doc:"Who may create tasks: all, or leader (and people)."`
	Respawn  *team.Respawn  `json:"respawn,omitempty" doc:"What happens to a lost member: respawn brings it back, ask does so once a person allows it, release does not."`
	Approver *team.Approver `json:"approver,omitempty" doc:"Who approves plans: leader or human."`
	Check    *string        `json:"check,omitempty" doc:"A command that must pass on each merge, in addition to the checks of tasks. Empty: none."`
	Dialect  *team.Dialect  `json:"dialect,omitempty" doc:"The tool names that models see: native or claude."`
	Delegate *bool          `json:"delegate,omitempty" doc:"The leader only leads: it has no tools of the workspace."`
	PlanMode *bool          `json:"plan_mode,omitempty" doc:"Teammates that are spawned change nothing before their plans are approved."`

	_ struct{} `additionalProperties:"false"`
}

func (c choices) client() team.Choices {
	ch := team.Choices{Description: c.Description, MaxTeammates: c.MaxTeammates, Isolation: c.Isolation}
	if p := c.Policies; p != nil {
		ch.Create, ch.Respawn, ch.Approver, ch.Check, ch.Dialect, ch.PlanMode, ch.Delegate = p.Create, p.Respawn, p.Approver, p.Check, p.Dialect, p.PlanMode, p.Delegate
	}
	return ch
}

type newTeam struct {
	ID           string          `json:"id" doc:"Its name: 1 to 63 of a-z, 0-9 and -." example:"red"`
	Workspace    string          `json:"workspace,omitempty" doc:"The folder in which its members work, as their machines name it, from the root on; left out, that of the leader process."`
	Description  *string         `json:"description,omitempty" doc:"What the team is for."`
	MaxTeammates *int            `json:"max_teammates,omitempty" doc:"How many teammates it may have at once."`
	Isolation    *team.Isolation `json:"isolation,omitempty" doc:"How its members' files are kept apart, see the change of a team; left out, as the leader process's settings have it."`
	Policies     *policyChoices  `json:"policies,omitempty"`

	_ struct{} `additionalProperties:"false"`
}

type teamsIn struct {
	Limit int    `query:"limit" default:"1000" minimum:"1" maximum:"1000" doc:"How many teams a page has at most."`
	Page  string `query:"page" maxLength:"63" doc:"The page that begins here: next of the page before."`
}

type teamsOut struct {
	Body struct {
		Teams []client.TeamStatus `json:"teams" nullable:"false"`
		Next  string              `json:"next,omitempty" doc:"The page that follows; left out at the end."`
	} `nameHint:"Teams"`
}

type addTeamIn struct {
	Key  string `header:"Idempotency-Key" maxLength:"256" doc:"A key of at most 256 bytes of your choice. With it, a team that already exists exactly as requested and has had no goal is returned with status 200."`
	Body newTeam
}

type teamOut struct {
	Status   int
	Location string `header:"Location"`
	Body     team.Team
}

type editTeamIn struct {
	OfTeam
	Body choices
}

type removeTeamIn struct {
	OfTeam
	Force bool `query:"force" doc:"Stop the members that are still in it."`
	Timeout
}

// Timeout is how long members may take to leave.
type Timeout struct {
	Timeout int `query:"timeout" default:"10" minimum:"0" maximum:"60" doc:"How many seconds members may take to leave; then they are stopped by force."`
}

func (t Timeout) wait() time.Duration { return time.Duration(t.Timeout) * time.Second }

const tagTeams = "teams"

func (s *service) teams() {
	add(s, operation{
		id: "list-teams", method: http.MethodGet, path: "/v1/teams", tag: tagTeams, summary: "List all teams",
		doc: "All teams in order of their names, also those that have ended, each with its state and what it has used.",
	}, func(ctx context.Context, in *teamsIn) (*teamsOut, error) {
		var out teamsOut
		var from, next team.TeamID
		var err error
		if in.Page != "" {
			if from, err = team.ParseTeamID(in.Page); err != nil {
				return nil, err
			}
		}
		teams, next, err := s.Client.TeamsFrom(ctx, from, in.Limit)
		if err == nil {
			err = s.Client.WithUsage(ctx, teams)
		}
		out.Body.Next = string(next)
		out.Body.Teams = append([]client.TeamStatus{}, teams...)
		return &out, err
	})
	add(s, operation{
		id: "add-team", method: http.MethodPost, path: "/v1/teams", tag: tagTeams, summary: "Make a team without a goal", status: http.StatusCreated, also: []int{http.StatusOK},
		doc: "The team has the built-in roles and those of the leader process's folder. It is a conflict if there is a team of that name.",
	}, s.addTeam)
	addOf(s, operation{
		id: "get-team", method: http.MethodGet, path: "/v1/teams/{team}", tag: tagTeams, summary: "Show a team's record",
		doc: "Its goal, its limits, policies and roles, and the head of its line.",
	}, showTeam)
	addOf(s, operation{
		id: "edit-team", method: http.MethodPatch, path: "/v1/teams/{team}", tag: tagTeams, summary: "Change a team's limits and policies",
		doc: "What is left out stays. The team's leader and members act on it immediately.",
	}, editTeam)
	add(s, operation{
		id: "remove-team", method: http.MethodDelete, path: "/v1/teams/{team}", tag: tagTeams, summary: "Delete a team and all that is kept of it",
		doc: "Its board, mail, conversations and files in NATS go; files in its workspace stay. It is a conflict while the team is working or " +
			"a member lives, unless force is set: then the team is stopped first.",
	}, func(ctx context.Context, in *removeTeamIn) (*answer[client.Deleted], error) {
		id, err := team.ParseTeamID(in.Team)
		if err != nil {
			return nil, err
		}
		d, err := s.Client.DeleteTeam(ctx, id, in.Force, in.wait())
		return &answer[client.Deleted]{d}, err
	})
}

func (s *service) addTeam(ctx context.Context, in *addTeamIn) (*teamOut, error) {
	id, err := team.ParseTeamID(in.Body.ID)
	if err != nil {
		return nil, err
	}
	n, err := s.NewTeam()
	if err != nil {
		return nil, err
	}
	if err := absolute(in.Body.Workspace); err != nil {
		return nil, err
	}
	if n.ID = id; in.Body.Workspace != "" {
		n.Workspace = in.Body.Workspace
	}
	ch := choices{Description: in.Body.Description, MaxTeammates: in.Body.MaxTeammates, Isolation: in.Body.Isolation, Policies: in.Body.Policies}.client()
	out := teamOut{Status: http.StatusCreated, Location: "/v1/teams/" + string(id)}
	if in.Key == "" {
		out.Body, err = s.Client.AddTeam(ctx, n, ch)
		return &out, err
	}
	var existed bool
	if out.Body, existed, err = s.Client.AddTeamOnce(ctx, n, ch); existed {
		out.Status = http.StatusOK
	}
	return &out, err
}

// absolute refuses a relative folder, which each process would resolve differently. "" names none.
func absolute(workspace string) error {
	if workspace == "" || filepath.IsAbs(workspace) {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "the workspace %q is not an absolute path", team.Clean(workspace, 200)).WithHint("name the folder from the root on, such as /srv/project")
}

func editTeam(ctx context.Context, t *client.Team, in *editTeamIn) (*teamOut, error) {
	ch := in.Body.client()
	if ch.None() {
		return nil, team.Errorf(team.InvalidArgument, "body: nothing is to be changed").WithHint("name description, max_teammates, isolation or a policy")
	}
	record, err := t.Choose(ctx, ch)
	return &teamOut{Status: http.StatusOK, Body: record}, err
}
