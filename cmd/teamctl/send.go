package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) sendCmd() *cobra.Command {
	return &cobra.Command{
		Use: "send NAME TEXT", Short: "Write to a member", Args: exactly(2, "NAME and TEXT"),
		ValidArgsFunction: first(completeMembers),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := team.ParseAgentID(args[0])
			if err != nil {
				return err
			}
			if err := checkText(args[1]); err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				m, to, err := t.Send(ctx, name, args[1])
				if err != nil {
					return err
				}
				return a.printSent(t, m, to)
			})
		},
	}
}

// checkText refuses a message that says nothing.
func checkText(text string) error {
	if strings.TrimSpace(text) == "" {
		return team.Errorf(team.InvalidArgument, "TEXT is empty")
	}
	return nil
}

// sent is what send and broadcast print, as the agents' own tools do.
type sent struct {
	MessageID   string         `json:"message_id"`
	DeliveredTo []team.AgentID `json:"delivered_to"`
}

func (a *app) printSent(t *client.Team, m team.Message, to []team.AgentID) error {
	return a.print(sent{m.ID, to}, nil, []string{m.ID}, func(io.Writer, bool) error {
		line := "sent to"
		for i, name := range to {
			if i > 0 {
				line += ","
			}
			line += " " + name.At(t.ID())
		}
		return a.say(line)
	})
}
