package teamtool

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type teamCreateArgs struct {
	TeamName    string `json:"team_name"`
	Description string `json:"description,omitempty"`
}

type teamDeleteArgs struct {
	TeamName string   `json:"team_name,omitempty" jsonschema:"to have its members leave first"`
	Summary  string   `json:"summary,omitempty" jsonschema:"the answer to the person: what was done and where it is, how you checked it, deviations, risks, what is left"`
	GivenUp  []string `json:"given_up,omitempty" jsonschema:"ids of the failed tasks that the result does without"`
}

type teamCollectArgs struct {
	TeamName string `json:"team_name,omitempty"`
}

// described is the result of TeamCreate: how the team is set up.
type described struct {
	TeamName    string       `json:"team_name"`
	TeamID      team.TeamID  `json:"team_id"` // what people call it
	Description string       `json:"description,omitempty"`
	Lead        team.AgentID `json:"lead_agent_id"`
	Most        int          `json:"max_teammates"`
	Workspace   string       `json:"workspace"`
	Members     []teammate   `json:"members"`
}

// deleted is the result of TeamDelete.
type deleted struct {
	finished
	Note string `json:"note"`
}

// claudeTools are the tools that only Claude has, for which we have no tool but another way.
func (t tools) claudeTools() []tool.Tool {
	return []tool.Tool{
		tool.New("TeamCreate", "Name the team that you lead, which is there already. You get how it is set up.", t.teamCreate, leads),
		tool.New("TeamDelete", "End the goal after you have checked the result yourself. No task may be pending or in progress. With team_name the members are asked to leave; without it each must have left.", t.teamDelete, leads),
		tool.New("TeamCollect", "Show what the tasks of this goal have come to. While some are open, it ends your turn.", t.teamCollect, tool.Hidden("team_name"), tool.Traits{ReadOnly: true, Terse: true, LeaderOnly: true}),
	}
}

func (t tools) teamCreate(ctx context.Context, in teamCreateArgs) (tool.Output, error) {
	if err := t.Crew.Describe(ctx, in.TeamName, in.Description); err != nil {
		return tool.Output{}, err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return tool.Output{}, err
	}
	members, err := t.members(ctx)
	return tool.Output{Value: described{cmp.Or(in.TeamName, string(record.ID)), record.ID, record.Description, team.Leader, record.MaxTeammates, record.Workspace, members}}, err
}

// teamDelete is the tool TeamDelete: what a team holds stays until a person deletes it.
// Errors: InvalidState while a task is open, and then nobody is asked to leave; Conflict
// while a teammate lives; those of finish_team.
func (t tools) teamDelete(ctx context.Context, in teamDeleteArgs) (tool.Output, error) {
	if in.TeamName != "" {
		if err := t.dismiss(ctx, in.TeamName); err != nil {
			return tool.Output{}, err
		}
	}
	there, err := t.teammates(ctx)
	for wait := leaveWithin; err == nil && there != nil && wait > 0; wait -= leaveTick {
		if !shutdown.Sleep(ctx, leaveTick) {
			return tool.Output{}, context.Cause(ctx)
		}
		there, err = t.teammates(ctx)
	}
	if err != nil {
		return tool.Output{}, err
	}
	if there != nil {
		return tool.Output{}, team.Errorf(team.Conflict, "the team has members: %s", strings.Join(there, ", ")).
			WithHint("ask them by TeamDelete with team_name, or each with a shutdown_request by SendMessage, and wait for the answers")
	}
	if in.Summary == "" {
		c, err := t.collect(ctx)
		if err != nil {
			return tool.Output{}, err
		}
		in.Summary = cmp.Or(strings.Join(c.Done, "\n"), "The team was ended.")
	}
	f, err := t.end(ctx, finishArgs{in.Summary, in.GivenUp})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: deleted{f, "the goal has ended; the team's tasks, mail, conversations and files stay until a person deletes the team"},
		Effects: tool.Effects{Ends: true}}, nil
}

// dismiss asks all teammates at once to leave, and waits a few seconds for their answers.
func (t tools) dismiss(ctx context.Context, name string) error {
	if err := t.ownTeam(ctx, map[string]any{"team_name": name}); err != nil {
		return err
	}
	c, err := t.collect(ctx)
	if err != nil {
		return err
	}
	if len(c.Open) > 0 {
		return team.Errorf(team.InvalidState, "%d tasks are open, such as %s; nobody was asked to leave", len(c.Open), c.Open[0]).WithHint("have them completed, or cancel what is given up")
	}
	there, err := t.teammates(ctx)
	if err != nil {
		return err
	}
	var asked errgroup.Group
	for _, a := range there {
		asked.Go(func() error {
			answer, err := t.Crew.Remove(ctx, team.AgentID(a), "the team's work is done")
			if err == nil && answer.Refused {
				err = team.Errorf(team.Conflict, "%s refuses to leave: %s", a, answer.Reason).WithHint("settle that with it first, then call TeamDelete again")
			}
			return err
		})
	}
	return asked.Wait()
}

// leaveWithin is how long after its answer a member may take to be gone.
const (
	leaveWithin = 2 * time.Second
	leaveTick   = 100 * time.Millisecond
)

// teammates are the names of those with a process that have not left.
func (t tools) teammates(ctx context.Context) (there []string, err error) {
	members, err := t.Roster.List(ctx)
	for _, m := range members {
		if m.AgentID != team.Leader && m.Backend != team.Person && m.State != team.Stopped {
			there = append(there, string(m.AgentID))
		}
	}
	return there, err
}

// collected is the result of TeamCollect: the tasks of the goal, a line for each.
type collected struct {
	Done []string `json:"done"`
	Open []string `json:"open"`
}

// brief is what is done, and what is not.
func (c collected) brief() string {
	text := strings.Join(c.Done, "\n")
	if len(c.Open) > 0 {
		text += fmt.Sprintf("\n[%d open; your turn ends, and you are woken when there is more]\n%s", len(c.Open), strings.Join(c.Open, "\n"))
	}
	return cmp.Or(strings.TrimSpace(text), "(no tasks)")
}

func (t tools) teamCollect(ctx context.Context, in teamCollectArgs) (tool.Output, error) {
	if in.TeamName != "" {
		if err := t.ownTeam(ctx, map[string]any{"team_name": in.TeamName}); err != nil {
			return tool.Output{}, err
		}
	}
	c, err := t.collect(ctx)
	return tool.Output{Value: c, Brief: c.brief(), Effects: tool.Effects{Rests: len(c.Open) > 0}}, err
}

// collect reads the tasks that are open, or have ended since the goal was set.
func (t tools) collect(ctx context.Context) (collected, error) {
	record, err := t.Team(ctx)
	if err != nil {
		return collected{}, err
	}
	tasks, err := t.Board.All(ctx)
	if err != nil {
		return collected{}, err
	}
	c := collected{Done: []string{}, Open: []string{}}
	for _, task := range tasks {
		line := taskLine(task.View(nil, nil))
		switch {
		case task.Status.Open():
			c.Open = append(c.Open, line)
		case task.Status != team.Cancelled && task.Revision > record.GoalSeq:
			c.Done = append(c.Done, line)
		}
	}
	return c, nil
}
