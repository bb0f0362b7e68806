package v1

import (
	"context"
	"net/http"

	"agentteam/pkg/api/access"
	"agentteam/pkg/client"
	"agentteam/pkg/telemetry"
)

const tagCluster = "cluster"

// session describes the client's access.
type session struct {
	Access  string `json:"access" enum:"read,write" doc:"What the token or the cookie of the request may do: read, or read and write."`
	Version string `json:"version" doc:"Of the process that answers."`
}

func (s *service) status() {
	add(s, operation{
		id: "get-status", method: http.MethodGet, path: "/v1/status", tag: tagCluster,
		summary: "Tell what runs and how the teams stand",
		doc:     "The processes of the cluster, and each team with its members, its tasks by status and what waits for a person.",
	}, func(ctx context.Context, _ *struct{}) (*answer[client.Status], error) {
		st, err := s.Client.Status(ctx)
		return &answer[client.Status]{st}, err
	})
	add(s, operation{
		id: "get-session", method: http.MethodGet, path: "/v1/session", tag: tagCluster, here: true, summary: "Show what the token of this request may do",
		doc: "A page asks it so that it offers nothing that would be refused.",
	}, func(ctx context.Context, _ *struct{}) (*answer[session], error) {
		who := session{Access: "write", Version: telemetry.Version()}
		if access.By(ctx) == access.Reading {
			who.Access = "read"
		}
		return &answer[session]{who}, nil
	})
}
