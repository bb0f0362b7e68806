package client

import (
	"context"

	"agentteam/pkg/board/index"
	"agentteam/pkg/team"
)

// List returns the part of the board that q names; see [index.List].
func (t Board) List(ctx context.Context, q team.Query) (team.Page, error) {
	return index.List(ctx, t.team, t.board, q)
}
