package v1

import (
	"context"
	"net/http"

	"agentteam/pkg/client"
	"agentteam/pkg/usage"
)

type usageIn struct {
	OfTeam
	By string `query:"by" enum:"agent,role,alias,task" default:"agent" doc:"A row for each agent, role, alias (of the model) or task."`
}

type usageRow struct {
	Name string `json:"name"` // "" = calls without a task, or of which the role or alias is not known
	client.Usage
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
		doc: "Since the team was made, the costly first. The cost is in the currency of the prices in the settings, and null where they hold none.",
	}, func(ctx context.Context, t *client.Team, in *usageIn) (*usageOut, error) {
		by, err := usage.ParseBy(in.By)
		if err != nil {
			return nil, err
		}
		table, err := t.Cost(ctx, by)
		if err != nil {
			return nil, err
		}
		var out usageOut
		out.Body.By, out.Body.Total, out.Body.Rows = by, client.UsageOf(table.Total), make([]usageRow, len(table.Rows))
		for i, row := range table.Rows {
			out.Body.Rows[i] = usageRow{row.Name, client.UsageOf(row.Sum)}
		}
		return &out, nil
	})
}
