package v1

import (
	"context"
	"net/http"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
)

type goalsOut struct {
	Body struct {
		Goals []team.PastGoal `json:"goals" nullable:"false"`
	} `nameHint:"Goals"`
}

type timelineIn struct {
	OfTeam
	Goal   int       `query:"goal" minimum:"0" maximum:"1000000" doc:"The number of the goal; left out, the one that the team has, or had last."`
	From   time.Time `query:"from" doc:"Only spans from then on; left out, from the goal's beginning."`
	To     time.Time `query:"to" doc:"Only spans until then; left out, until the goal's end, or now."`
	Points int       `query:"points" default:"500" minimum:"1" maximum:"5000" doc:"How many spans a lane has about at most: shorter ones beside each other are merged to one of what took longest of them."`
}

func (s *service) timeline() {
	addOf(s, operation{
		id: "list-goals", method: http.MethodGet, path: "/v1/teams/{team}/goals", tag: tagGoal, summary: "List the goals that a team has ended",
		doc: "The last ones, the oldest first, each with its summary and what became of its tasks; goal and summary are cut.",
	}, func(ctx context.Context, t *client.Team, _ *struct{ OfTeam }) (*goalsOut, error) {
		var out goalsOut
		past, err := t.Goals().Ended(ctx)
		out.Body.Goals = append([]team.PastGoal{}, past...)
		return &out, err
	})
	addOf(s, operation{
		id: "get-timeline", method: http.MethodGet, path: "/v1/teams/{team}/timeline", tag: tagGoal, summary: "Show what took the time of a goal",
		doc: "A lane for each agent, with what it was at and what it waited for; a bar for each hold of a task; the critical path over the tasks, and a sentence that sums it up. " +
			"It is read from what is stored: what that does not show is a gap, or a span of kind unknown.",
	}, func(ctx context.Context, t *client.Team, in *timelineIn) (*answer[timeline.Timeline], error) {
		if !in.From.IsZero() && !in.To.IsZero() && !in.To.After(in.From) {
			return nil, team.Errorf(team.InvalidArgument, "query.to: it is not after query.from").WithHint("name a later time")
		}
		whole, err := t.Goals().Timeline(ctx, in.Goal)
		return &answer[timeline.Timeline]{whole.Window(in.From, in.To, in.Points)}, err
	})
}
