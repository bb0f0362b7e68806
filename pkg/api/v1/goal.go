package v1

import (
	"context"
	"errors"
	"net/http"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

type setGoalIn struct {
	OfTeam
	Key  string `header:"Idempotency-Key" doc:"A key of at most 256 bytes of your choice. A request with the same key sets no goal again, even after the goal has ended."`
	Body struct {
		Goal      string `json:"goal" doc:"What the team is to reach." example:"Port the parser"`
		Workspace string `json:"workspace,omitempty" doc:"The folder in which its members work from now on, from the root on."`
		Budget    string `json:"budget,omitempty" doc:"The limit of its model calls, such as 5 (US dollars) or 5usd,2Mtok,400turns,90m, or none. Default: 20 dollars, or 10 million tokens where prices are unknown." example:"5usd,2Mtok"`
		Add       bool   `json:"add,omitempty" doc:"If the team is already working, mail the text to its leader instead of refusing it."`

		_ struct{} `additionalProperties:"false"`
	} `nameHint:"NewGoal"`
}

// goal is a team's goal and its outcome.
type goal struct {
	Team           team.TeamID   `json:"team"`
	Goal           string        `json:"goal"`
	Number         int           `json:"goal_number"` // how many goals the team has had with this one
	Status         team.Status   `json:"status"`      // of the team
	End            string        `json:"end,omitempty" doc:"How the goal has ended, in words, such as: finished, 2 tasks failed."`
	Summary        string        `json:"summary"` // the result; "" while the team is at work
	Reason         string        `json:"reason,omitempty"`
	GivenUp        []team.TaskID `json:"given_up,omitempty"`
	EarlierTasks   []team.TaskID `json:"earlier_tasks,omitempty" doc:"The tasks of the board that had ended before the goal was set. They are not part of its progress."`
	GoalAt         *time.Time    `json:"goal_at"`     // when it was set; null: not known
	FinishedAt     *time.Time    `json:"finished_at"` // null: not yet
	ElapsedSeconds float64       `json:"elapsed_seconds"`
	Usage          client.Usage  `json:"usage"` // of the goal so far
	Lost           string        `json:"lost,omitempty" doc:"Why no process leads the team, if known, while the goal is being worked on."`
}

type setGoalOut struct {
	Status int
	Body   struct {
		Goal    goal `json:"goal"`
		Started bool `json:"started" doc:"The text is the team's goal; if not, the team was already working, and the text was mailed to its leader."`
		Existed bool `json:"existed" doc:"An earlier request had the same Idempotency-Key."`
	} `nameHint:"GoalSet"`
}

type getGoalIn struct {
	OfTeam
	Wait int `query:"wait" minimum:"0" maximum:"30" doc:"How many seconds to wait for the goal to end. The answer has its state at that time."`
}

func (in *getGoalIn) wait() time.Duration { return time.Duration(in.Wait) * time.Second }

type stopGoalIn struct {
	OfTeam
	Timeout
}

const tagGoal = "goal"

func (s *service) goals() {
	addOf(s, operation{
		id: "set-goal", method: http.MethodPost, path: "/v1/teams/{team}/goal", tag: tagGoal, summary: "Set a team a goal", status: http.StatusCreated, also: []int{http.StatusOK, http.StatusAccepted},
		doc: "It is a conflict if the team is already working, unless add is set: then the text is mailed to its leader, and the status is 202. " +
			"A team that somebody else sets a goal at the same moment gets the text as mail too.",
	}, setGoal)
	addOf(s, operation{
		id: "get-goal", method: http.MethodGet, path: "/v1/teams/{team}/goal", tag: tagGoal, summary: "Show a team's goal and its result",
		doc: "The goal that the team has, or had last. With wait the answer comes once the goal has ended, or that time is over.",
	}, s.getGoal)
	addOf(s, operation{
		id: "stop-team", method: http.MethodDelete, path: "/v1/teams/{team}/goal", tag: tagGoal, summary: "Stop a team",
		doc: "Its goal ends as stopped, and every member leaves without being asked. A member that has not left after timeout is stopped by force. Tasks that they held go back to the board.",
	}, func(ctx context.Context, t *client.Team, in *stopGoalIn) (*teamOut, error) {
		if err := t.StopTeam(ctx, in.wait()); err != nil {
			return nil, err
		}
		record, err := t.Record(ctx)
		return &teamOut{Status: http.StatusOK, Body: record}, err
	})
}

func setGoal(ctx context.Context, t *client.Team, in *setGoalIn) (*setGoalOut, error) {
	if err := absolute(in.Body.Workspace); err != nil {
		return nil, err
	}
	budget, err := team.GoalBudget(in.Body.Budget)
	if err != nil {
		return nil, err
	}
	g, existed, err := t.Goals().Set(ctx, client.NewGoal{Text: in.Body.Goal, Workspace: in.Body.Workspace, Key: in.Key, Add: in.Body.Add, Budgets: team.Budgets{Goal: budget}})
	if err != nil {
		return nil, err
	}
	out := setGoalOut{Status: http.StatusCreated}
	switch {
	case existed:
		out.Status = http.StatusOK
	case !g.Started():
		out.Status = http.StatusAccepted
	}
	out.Body.Started, out.Body.Existed = g.Started(), existed
	out.Body.Goal, err = goalOf(ctx, t, g)
	return &out, err
}

func (s *service) getGoal(ctx context.Context, t *client.Team, in *getGoalIn) (*answer[goal], error) {
	g, err := t.Goals().Present(ctx)
	if err == nil && in.Wait > 0 && g.Record().AtWork() {
		waiting, cancel := context.WithTimeout(ctx, in.wait())
		_, err = g.Wait(waiting)
		if waiting.Err() != nil {
			err = nil
		}
		cancel()
		if err == nil {
			g, err = t.Goals().Present(ctx) // as it stands now
		}
	}
	if errors.Is(err, team.InvalidState) && !errors.Is(err, team.ErrUnreadable) {
		err = team.Errorf(team.NotFound, "team %s has no goal", t.ID()).WithHint("POST to this path sets it one")
	}
	if err != nil {
		return nil, err
	}
	body, err := goalOf(ctx, t, g)
	if err == nil && g.Record().AtWork() {
		body.Lost, err = t.Unled(ctx)
	}
	return &answer[goal]{body}, err
}

func goalOf(ctx context.Context, t *client.Team, g *client.Goal) (goal, error) {
	record := g.Record()
	used, err := g.Usage(ctx)
	v := goal{Team: t.ID(), Goal: record.Goal, Number: record.GoalNumber, Status: record.Status, End: record.End, Summary: record.Summary, Reason: record.Reason, GivenUp: record.GivenUp, EarlierTasks: g.Earlier(),
		GoalAt: record.GoalAt, FinishedAt: record.FinishedAt, ElapsedSeconds: g.Elapsed(record).Seconds(), Usage: used}
	return v, err
}
