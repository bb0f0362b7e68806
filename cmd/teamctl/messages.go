package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) messagesCmd() *cobra.Command {
	cmd := group(readsStored(a, a.messagesLsCmd()))
	cmd.Use, cmd.Aliases, cmd.Short, cmd.ValidArgsFunction = "messages", []string{"message"}, "Look at messages; by itself it lists those to you", nil
	cmd.AddCommand(readsStored(a, a.messagesLsCmd()), readsStored(a, a.messagesGetCmd()))
	return cmd
}

// messagesLsCmd is the command inbox under a second name.
func (a *app) messagesLsCmd() *cobra.Command {
	cmd := a.inboxCmd()
	cmd.Use, cmd.Aliases = "ls [NAME]", []string{"list"}
	cmd.Long = "ls" + strings.TrimPrefix(cmd.Long, "inbox")
	return cmd
}

func (a *app) messagesGetCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show a message and its delivery status", Args: exactly(1, "the ID of a message"),
		Long: "get shows a message as a whole, and its delivery status with each recipient: pending, delivered, processed, refused or dead.",
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				l, err := t.Mail().Message(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(l, []string{l.ID}, func() { a.printMessage(l) })
			})
		},
	}
}

func (a *app) printMessage(l client.StoredMessage) {
	to := string(l.To)
	if l.To == team.Everyone {
		to = "all"
	}
	approve := ""
	if l.Approve != nil {
		approve = fmt.Sprint(*l.Approve)
	}
	writeFields(a.screen(), []field{
		{"id", l.ID}, {"type", string(l.Type)}, {"from", string(l.From)}, {"to", to}, {"sent", moment(&l.StoredAt)}, {"summary", onlyIf(l.Summary != team.Summarize(l.Content), l.Summary)}, {"urgent", onlyIf(l.Urgent, "yes")},
		{"in reply to", l.InReplyTo}, {"request", l.RequestID}, {"approve", approve}, {"choices", strings.Join(l.Numbered(), "\n")}, {"delivery", deliveriesOf(l)},
	})
	if l.Content != "" {
		a.sayText("\n" + l.Content)
	}
}

// deliveriesOf describes a message's deliveries, a line for each recipient.
func deliveriesOf(l client.StoredMessage) string {
	lines := make([]string, len(l.Deliveries))
	for i, f := range l.Deliveries {
		lines[i] = string(f.AgentID) + ": " + deliveryOf(l, f)
		if at := f.At(); at != nil {
			lines[i] += " at " + moment(at)
		}
		if f.Reason != "" {
			lines[i] += ": " + team.OneLine(f.Reason)
		}
	}
	return strings.Join(lines, "\n")
}
