package teamtool

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type teamCreateArgs struct {
	TeamName    string `json:"team_name"`
	Description string `json:"description,omitempty" jsonschema:"what the team is for"`
}

type teamDeleteArgs struct {
	Summary string `json:"summary,omitempty" jsonschema:"the answer to the person: what was done, how it was checked, where it is, what is left"`
}

type teamCollectArgs struct {
	TeamName string `json:"team_name,omitempty"`
}

// described is the result of TeamCreate.
type described struct {
	TeamName    team.TeamID `json:"team_name"`
	Description string      `json:"description,omitempty"`
}

// claudeTools are the tools that only Claude has, for which we have no tool but another way.
func (t tools) claudeTools() []tool.Tool {
	return []tool.Tool{
		tool.New("TeamCreate", "Say what the team that you lead is for. It is there already.", t.teamCreate),
		tool.New("TeamDelete", "End the team's work and the goal, once you have checked the result yourself. No task may be pending or in progress, and each teammate must have left: ask each with a shutdown_request by SendMessage first.", t.teamDelete),
		tool.New("TeamCollect", "Show what the tasks of this goal have come to. While some are open it ends your turn, until there is more.", t.teamCollect, tool.Hidden("team_name"), tool.ReadOnly()),
	}
}

func (t tools) teamCreate(ctx context.Context, in teamCreateArgs) (any, error) {
	if err := t.ownTeam(ctx, map[string]any{"team_name": in.TeamName}); err != nil {
		return nil, err
	}
	if in.Description != "" {
		if err := t.Crew.Describe(ctx, in.Description); err != nil {
			return nil, err
		}
	}
	return described{team.TeamID(in.TeamName), in.Description}, nil
}

// teamDelete is the tool TeamDelete: what a team holds stays until a person deletes it.
// Errors: Conflict while a teammate lives; those of finish_team.
func (t tools) teamDelete(ctx context.Context, in teamDeleteArgs) (any, error) {
	there, err := t.teammates(ctx)
	for wait := leaveWithin; err == nil && there != nil && wait > 0; wait -= leaveTick {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(leaveTick):
			there, err = t.teammates(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, team.Errorf(team.Conflict, "the team has members: %s", strings.Join(there, ", ")).
			WithHint("ask each with a shutdown_request by SendMessage to leave, and wait for its answer")
	}
	if in.Summary == "" {
		c, err := t.collect(ctx)
		if err != nil {
			return nil, err
		}
		in.Summary = cmp.Or(strings.Join(c.Done, "\n"), "The team was ended.")
	}
	return t.finish(ctx, finishArgs(in))
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

// Rests tells the agent that its run ends here.
func (c collected) Rests() bool { return len(c.Open) > 0 }

// Brief is what is done, and what is not.
func (c collected) Brief() any {
	text := strings.Join(c.Done, "\n")
	if len(c.Open) > 0 {
		text += fmt.Sprintf("\n[%d open; your turn ends, and you are woken when there is more]\n%s", len(c.Open), strings.Join(c.Open, "\n"))
	}
	return cmp.Or(strings.TrimSpace(text), "(no tasks)")
}

func (t tools) teamCollect(ctx context.Context, in teamCollectArgs) (any, error) {
	if in.TeamName != "" {
		if err := t.ownTeam(ctx, map[string]any{"team_name": in.TeamName}); err != nil {
			return nil, err
		}
	}
	return t.collect(ctx)
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
