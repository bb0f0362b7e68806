package v1

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/team"
)

type auditIn struct {
	OfTeam
	Since time.Time `query:"since" doc:"Only calls that ended at this time or later." example:"2026-11-22T14:30:00Z"`
	Agent string    `query:"agent" doc:"Only calls of this agent."`
	Tool  string    `query:"tool" maxLength:"512" doc:"Only calls of this tool, by its own name or that which the model has called."`
	Limit int       `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"How many entries a page has at most."`
	Page  string    `query:"page" maxLength:"1024" doc:"The page that begins here: next of the page before."`
}

// auditEntry has another name in the document: the feed has entries, too.
type auditEntry audit.Entry

type auditOut struct {
	Body struct {
		Entries []audit.Entry `json:"entries" nullable:"false"`
		Next    string        `json:"next,omitempty" doc:"page of the next page; left out on the last."`
	} `nameHint:"Audit"`
}

func (s *service) audit() {
	addOf(s, operation{
		id: "list-audit", method: http.MethodGet, path: "/v1/teams/{team}/audit", tag: tagTeams, summary: "List the calls of tools that agents have made",
		doc: "Oldest first, with what allowed each and its outcome, also of agents that have left. Arguments and results are there by digest only. " +
			"A call that is under way has the outcome unknown; a later page has it again once it has ended.",
	}, auditPage)
}

func auditPage(ctx context.Context, t *client.Team, in *auditIn) (*auditOut, error) {
	behind, err := in.behind()
	if err != nil {
		return nil, err
	}
	q := audit.Query{Since: in.Since, Tool: in.Tool}
	if q.Agent, err = nameOf(in.Agent); err != nil {
		return nil, err
	}
	if q.Agent != "" && q.Agent != team.Leader { // who may not be there yet
		if _, err = agent(ctx, t, q.Agent); err != nil {
			return nil, err
		}
	}
	entries, err := t.Audit(ctx, q)
	if err != nil {
		return nil, err
	}
	if behind != nil {
		from, _ := slices.BinarySearchFunc(entries, *behind, audit.Entry.Compare)
		if from < len(entries) && entries[from].Compare(*behind) == 0 {
			from++
		}
		entries = entries[from:]
	}
	var out auditOut
	out.Body.Entries, out.Body.Next = page(entries, 0, in.Limit)
	if out.Body.Next != "" {
		last := entries[in.Limit-1]
		out.Body.Next = fmt.Sprintf("%d.%s", last.Seq, base64.RawURLEncoding.EncodeToString([]byte(last.Call)))
	}
	return &out, nil
}

// behind returns the entry after which the page begins, nil at the beginning. It is not an index: a call that ends
// meanwhile moves to a later place. Errors: InvalidArgument.
func (in *auditIn) behind() (*audit.Entry, error) {
	if in.Page == "" {
		return nil, nil
	}
	seq, call, _ := strings.Cut(in.Page, ".")
	n, err := strconv.ParseUint(seq, 10, 64)
	id, bad := base64.RawURLEncoding.DecodeString(call)
	if err != nil || bad != nil {
		return nil, noPlace(in.Page)
	}
	return &audit.Entry{Seq: n, Call: string(id)}, nil
}
