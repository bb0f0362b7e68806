package v1

import (
	"context"
	"net/http"

	"agentteam/pkg/client"
	"agentteam/pkg/store/usage"
)

type usageIn struct {
	OfTeam
	By    usage.By `query:"by" enum:"agent,role,alias,task" default:"agent" doc:"A row for each agent, role, alias (of the model) or task."`
	Split usage.By `query:"split" enum:"agent,role,alias,task" doc:"In each row, parts of it: its calls by this."`
	Goal  int      `query:"goal" minimum:"-1" maximum:"1000000" doc:"The number of the goal whose calls are counted: those from when it was set until the next one was; -1 is the newest. Left out or 0, all since the team was made."`
}

type usageRow struct {
	Name string `json:"name"` // "" = calls without a task, or of which the role or alias is not known
	client.Usage
	Parts []usageRow `json:"parts,omitempty" doc:"With split: the same calls by that, the costly first."`
}

func usageRows(rows []usage.Row) []usageRow {
	out := make([]usageRow, len(rows))
	for i, row := range rows {
		out[i] = usageRow{row.Name, client.UsageOf(row.Sum), usageRows(row.Parts)}
	}
	return out
}

type usageOut struct {
	Body struct {
		By    usage.By     `json:"by"`
		Rows  []usageRow   `json:"rows" nullable:"false"`
		Total client.Usage `json:"total"`
	} `nameHint:"UsageTable"`
}

func (s *service) usage() {
	addOf(s, operation{
		id: "get-usage", method: http.MethodGet, path: "/v1/teams/{team}/usage", tag: tagTeams, summary: "Show what model calls have used and cost",
		doc: "Since the team was made or of one goal, the costly first. The cost is in the currency of the prices in the settings, and null where they hold none.",
	}, func(ctx context.Context, t *client.Team, in *usageIn) (*usageOut, error) {
		by := []usage.By{in.By}
		if in.Split != "" {
			by = append(by, in.Split)
		}
		table, err := t.Cost(ctx, in.Goal, by...)
		if err != nil {
			return nil, err
		}
		var out usageOut
		out.Body.By, out.Body.Rows, out.Body.Total = in.By, usageRows(table.Rows), client.UsageOf(table.Total)
		return &out, nil
	})
}
