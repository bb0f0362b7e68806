package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
)

func (a *app) broadcastCmd() *cobra.Command {
	return &cobra.Command{
		Use: "broadcast TEXT", Short: "Write to every member", Args: exactly(1, "TEXT"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkText(args[0]); err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				m, to, err := t.Broadcast(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printSent(t, m, to)
			})
		},
	}
}
