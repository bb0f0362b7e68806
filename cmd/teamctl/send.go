package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) sendCmd() *cobra.Command {
	var m mailFlags
	cmd := &cobra.Command{
		Use: "send NAME TEXT", Short: "Write to a member", Args: exactly(2, "NAME and TEXT"),
		Long: "send writes to a member, in your name or with --as in that of a person's seat. TEXT is - to read it from stdin.\n" +
			"The member reads it at its next turn; with --urgent before anything else.",
		ValidArgsFunction: first(completePresent),
	}
	m.flags(a, cmd)
	cmd.Flags().StringVar(&m.replyTo, "reply-to", "", "ID of the message that this answers")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name, err := a.member(args[0])
		if err != nil {
			return err
		}
		mail, err := m.mail(a, args[1])
		if err != nil {
			return err
		}
		mail.To = name
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			when := ""
			if a.forPeople() { // as it is before the message wakes it
				if to, err := t.Members().Get(ctx, name); err == nil { // the leader may be of a team without a leader process
					when = readWhen(to.State, mail.Urgent)
				}
			}
			m, to, err := t.Mail().Send(ctx, mail)
			if err != nil {
				return err
			}
			return a.printSent(t, m, to, when)
		})
	}
	return cmd
}

// mailFlags are the flags of send and broadcast.
type mailFlags struct {
	as      func() (team.AgentID, error)
	replyTo string
	urgent  bool
}

func (f *mailFlags) flags(a *app, cmd *cobra.Command) {
	f.as = a.memberFlag(cmd, "as", completePresent, "write as this person's seat")
	cmd.Flags().BoolVar(&f.urgent, "urgent", false, "have it read before anything else")
}

// mail returns the mail to send, without its recipients.
func (f *mailFlags) mail(a *app, text string) (m client.NewMail, err error) {
	m = client.NewMail{ReplyTo: f.replyTo, Urgent: f.urgent}
	if m.As, err = f.as(); err != nil {
		return m, err
	}
	if m.Text, err = textOf(a.cmd, text); err != nil {
		return m, err
	}
	return m, checkText(m.Text)
}

// checkText returns an error for an empty message.
func checkText(text string) error {
	if strings.TrimSpace(text) == "" {
		return team.Errorf(team.InvalidArgument, "TEXT is empty")
	}
	return nil
}

// sendResult is the output of send and broadcast, the same as of the agents' tools.
type sendResult struct {
	MessageID   string         `json:"message_id"`
	DeliveredTo []team.AgentID `json:"delivered_to"`
	Stored      string         `json:"stored,omitempty"` // where the whole text is, if it is too long for a message
}

// readWhen describes when a member in this state reads its mail, if not immediately.
func readWhen(state team.MemberState, urgent bool) string {
	switch state {
	case team.Stopped:
		return ", which has left: kept until it is back"
	case team.Lost:
		return ", which is lost: it reads it when it is back"
	case team.Unknown:
		return ", whose process does not answer now: it reads it later, or when it is back"
	case team.WaitingBudget:
		return ", which waits for a budget: it reads it once that is raised"
	case team.WaitingModel:
		return ", which waits for its model: it reads it then"
	case team.WaitingRepair:
		return ", whose journal cannot be read: it reads it once that is repaired"
	case team.Running:
		if urgent {
			return ", which is busy: it is interrupted and reads it now"
		}
		return ", which is busy: it reads it at its next turn"
	}
	return ""
}

// printSent prints who got a message, and when it is read.
func (a *app) printSent(t *client.Team, m team.Message, to []team.AgentID, when string) error {
	names := make([]string, len(to))
	for i, name := range to {
		names[i] = name.At(t.ID())
	}
	if m.Stored != "" {
		when += "; the text is long: its beginning and end are read at once, the whole is stored (teamctl messages get " + m.ID + ")"
	}
	return a.printLine(sendResult{m.ID, to, m.Stored}, m.ID, "sent to "+strings.Join(names, ", ")+when)
}
