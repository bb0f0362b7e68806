package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) broadcastCmd() *cobra.Command {
	var f mailFlags
	cmd := &cobra.Command{Use: "broadcast TEXT", Short: "Write to every member", Args: exactly(1, "TEXT")}
	f.flags(a, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		mail, err := f.mail(a, args[0])
		if err != nil {
			return err
		}
		mail.To = team.Everyone
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			m, to, err := t.Mail().Send(ctx, mail)
			if err != nil {
				return err
			}
			return a.printSent(t, m, to, "")
		})
	}
	return cmd
}
