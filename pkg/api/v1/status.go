package v1

import (
	"context"
	"net/http"

	"agentteam/pkg/client"
)

const tagCluster = "cluster"

func (s *service) status() {
	add(s, operation{
		id: "get-status", method: http.MethodGet, path: "/v1/status", tag: tagCluster,
		summary: "Tell what runs and how the teams stand",
		doc:     "The processes of the cluster, and each team with its members, its tasks by status and what waits for a person.",
	}, func(ctx context.Context, _ *struct{}) (*answer[client.Status], error) {
		st, err := s.Client.Status(ctx)
		return &answer[client.Status]{st}, err
	})
}
