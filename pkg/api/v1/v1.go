// Package v1 is the API for programs, under /v1: the counterpart of teamctl, with the same calls of package client and
// the same meaning.
//
// Its description, OpenAPI 3.1, is generated from the Go types of requests and answers and served at /v1/openapi.json
// and /v1/openapi.yaml. Errors are problem documents (package problem). Requests are authorized before they come here.
package v1

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Options are the settings of the API.
type Options struct {
	Client  *client.Client                 // required
	Hub     *stream.Hub                    // of the same cluster; required
	NewTeam func() (client.NewTeam, error) // what teams are made with, their names aside; required
	Log     *slog.Logger                   // default: discard
}

// service implements the resources; each file of this package registers some of them.
type service struct {
	Options
	api    huma.API
	within time.Duration // how long a request may take that says nothing else
}

// New returns the handler of all paths that begin with /v1/. It returns an error if Options are incomplete.
func New(o Options) (http.Handler, error) { return newHandler(o, 30*time.Second) }

func newHandler(o Options, within time.Duration) (http.Handler, error) {
	if o.Client == nil || o.Hub == nil || o.NewTeam == nil {
		return nil, errors.New("v1: Options lack Client, Hub or NewTeam")
	}
	o.Log = telemetry.OrDiscard(o.Log)
	mux := http.NewServeMux()
	s := &service{Options: o, api: newAPI(mux), within: within}
	for _, register := range []func(){s.status, s.teams, s.goals, s.timeline, s.members, s.tasks, s.changes, s.branch, s.mail, s.approvals, s.roles, s.usage, s.audit, s.deliverables, s.events} {
		register()
	}
	s.finish()
	return problem.Mux(mux, "/v1/openapi.json lists what there is"), s.describe(mux)
}

// describe serves the OpenAPI, which is made once: huma's own is made at the first request, without a lock for
// concurrent ones.
func (s *service) describe(mux *http.ServeMux) error {
	asJSON, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return err
	}
	asYAML, err := s.api.OpenAPI().YAML()
	if err != nil {
		return err
	}
	serve := func(path, contentType string, data []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(data) // a client that has left needs none
		})
	}
	serve("/v1/openapi.json", "application/json", asJSON)
	serve("/v1/openapi.yaml", "application/yaml", asYAML)
	return nil
}

// OfTeam is the team in a path.
type OfTeam struct {
	Team string `path:"team" doc:"The name of a team." example:"red"`
}

func (o OfTeam) of() OfTeam { return o }

// open opens the team. Errors: InvalidArgument; NotFound.
func (s *service) open(ctx context.Context, in OfTeam) (*client.Team, error) {
	id, err := team.ParseTeamID(in.Team)
	if err != nil {
		return nil, err
	}
	return s.Client.Open(ctx, id)
}

// nameOf parses the name of a member, which may be empty. Errors: InvalidArgument.
func nameOf(s string) (team.AgentID, error) {
	if s == "" {
		return "", nil
	}
	return team.ParseAgentID(s)
}

// idsOf parses the ids of tasks. Errors: InvalidArgument.
func idsOf(names []string) ([]team.TaskID, error) {
	ids := make([]team.TaskID, len(names))
	for i, name := range names {
		var err error
		if ids[i], err = team.ParseTaskID(name); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// page returns the part of a list that begins at a place and has at most limit entries, and the next page, "" at the
// end.
func page[T any](all []T, from, limit int) (part []T, behind string) {
	return pageOf(all, from, limit, func(T) bool { return true })
}

// pageOf is page for the wanted entries. Its places are those of the whole list: a client that decides on the entries
// of a page before it requests the next one skips none.
func pageOf[T any](all []T, from, limit int, wanted func(T) bool) (part []T, behind string) {
	part = []T{}
	for at := from; at < len(all); at++ {
		switch {
		case !wanted(all[at]):
		case len(part) == limit:
			return part, next(at)
		default:
			part = append(part, all[at])
		}
	}
	return part, ""
}
