package teamtool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
)

type teamCreateArgs struct {
	TeamName    string `json:"team_name"`
	Description string `json:"description,omitempty"`
}

type teamDeleteArgs struct {
	TeamName string   `json:"team_name,omitempty" jsonschema:"default: your team"`
	Summary  string   `json:"summary,omitempty" jsonschema:"the answer to the person: what was done and where it is, how you checked it, deviations, risks, what is left"`
	GivenUp  []string `json:"given_up,omitempty" jsonschema:"ids of the failed tasks that the result does without"`
}

type teamCollectArgs struct {
	TeamName string `json:"team_name,omitempty"`
}

// described is the result of TeamCreate: the team's setup.
type described struct {
	TeamName    string       `json:"team_name"`
	TeamID      team.TeamID  `json:"team_id"` // the id that people use
	Description string       `json:"description,omitempty"`
	Lead        team.AgentID `json:"lead_agent_id"`
	Most        int          `json:"max_teammates"`
	Workspace   string       `json:"workspace"`
	Members     []teammate   `json:"members"`
	Note        string       `json:"note,omitempty"` // the names that the team answers to
}

// deleted is the result of TeamDelete.
type deleted struct {
	finished
	Note string `json:"note"`
}

// claudeTools returns the tools that only Claude has, without a native counterpart.
func (t tools) claudeTools() []tool.Tool {
	return []tool.Tool{
		tool.New("TeamCreate", "Name the team that you lead, which is there already. You get how it is set up.", t.teamCreate, leads),
		tool.New("TeamDelete", "End the goal after you have checked the result yourself. No task may be open, and no member at work; idle ones leave.", t.teamDelete, leads),
		tool.New("TeamCollect", "Show what the tasks of this goal have come to. While some are open, it ends your turn.", t.teamCollect, tool.Hidden("team_name"), tool.Traits{Talk: true, ReadOnly: true, Terse: true, LeaderOnly: true}),
	}
}

func (t tools) teamCreate(ctx context.Context, in teamCreateArgs) (tool.Output, error) {
	if err := t.Admin.Describe(ctx, in.TeamName, in.Description); err != nil {
		return tool.Output{}, err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return tool.Output{}, err
	}
	note := ""
	if len(record.Names) > 1 {
		note = fmt.Sprintf("this is no further team: you lead one, which is called %s, too", strings.Join(slices.DeleteFunc(slices.Clone(record.Names), func(n string) bool { return n == in.TeamName }), ", "))
	}
	members, err := t.members(ctx)
	return tool.Output{Value: described{cmp.Or(in.TeamName, string(record.ID)), record.ID, record.Description, team.Leader, record.MaxTeammates, record.Workspace, members, note}}, err
}

// teamDelete implements TeamDelete: it ends the goal, and the members leave with it. The stored
// team stays until a person deletes it. Errors: InvalidState while a task is open; Conflict while a
// teammate works; those of finish_team.
func (t tools) teamDelete(ctx context.Context, in teamDeleteArgs) (tool.Output, error) {
	if err := t.ownTeam(ctx, map[string]any{"team_name": in.TeamName}); err != nil {
		return tool.Output{}, err
	}
	c, err := t.collect(ctx)
	if err != nil {
		return tool.Output{}, err
	}
	if len(c.Open) > 0 {
		return tool.Output{}, team.Errorf(team.InvalidState, "%s open, such as %s", explain.Counted(len(c.Open), "task"), c.Open[0]).WithHint("have them completed, or cancel what is given up")
	}
	busy, err := t.atWork(ctx)
	for wait := backoffWithin; err == nil && busy != nil && wait > 0; wait -= backoffTick {
		if !shutdown.Sleep(ctx, backoffTick) {
			return tool.Output{}, context.Cause(ctx)
		}
		busy, err = t.atWork(ctx)
	}
	if err != nil {
		return tool.Output{}, err
	}
	if busy != nil {
		return tool.Output{}, team.Errorf(team.Conflict, "not all members are idle: %s", strings.Join(busy, ", ")).
			WithHint("end your turn; you are woken when all are idle, and can end the team then")
	}
	f, err := t.end(ctx, finishArgs{cmp.Or(in.Summary, strings.Join(c.Done, "\n"), "The team was ended."), in.GivenUp})
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: deleted{f, "the goal has ended and the members leave; the team's tasks, mail, conversations and files stay until a person deletes the team: teamctl teams rm"},
		Effects: tool.Effects{Ends: true}}, nil
}

// backoffWithin is how long a member may take to end the turn in which it completed its task or answered.
const (
	backoffWithin = 2 * time.Second
	backoffTick   = 100 * time.Millisecond
)

// atWork returns the teammates that are not idle, each with its state.
func (t tools) atWork(ctx context.Context) (busy []string, err error) {
	members, err := t.members(ctx)
	for _, m := range members {
		switch m.State {
		case team.Idle, team.Lost, team.Created, team.Joined:
		default:
			if !m.You {
				busy = append(busy, fmt.Sprintf("%s (%s)", m.AgentID, m.State))
			}
		}
	}
	return busy, err
}

// collected is the result of TeamCollect: the tasks of the goal, a line for each.
type collected struct {
	Done []string `json:"done"`
	Open []string `json:"open"`
}

// brief lists the ended tasks, then the open ones.
func (c collected) brief() string {
	text := strings.Join(c.Done, "\n")
	if len(c.Open) > 0 {
		text += fmt.Sprintf("\n[%d open; your turn ends, and you are woken when there is more]\n%s", len(c.Open), strings.Join(c.Open, "\n"))
	}
	return cmp.Or(strings.TrimSpace(text), "(no tasks)")
}

func (t tools) teamCollect(ctx context.Context, in teamCollectArgs) (tool.Output, error) {
	if err := t.ownTeam(ctx, map[string]any{"team_name": in.TeamName}); err != nil {
		return tool.Output{}, err
	}
	c, err := t.collect(ctx)
	return tool.Output{Value: c, Brief: c.brief(), Effects: tool.Effects{Backoff: len(c.Open) > 0}}, err
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
