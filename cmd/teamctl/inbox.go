package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

func (a *app) inboxCmd() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "inbox [NAME]", Short: "List the mail to you or to a member, and its delivery status", Args: atMost(1),
		Long: "inbox lists the mail to a member, oldest first; without NAME, or with user, the mail to you. Each message has its delivery status:\n" +
			"pending, delivered (in the member's conversation), processed (its model has answered since), refused or dead.\n" +
			"Mail to a person is processed once that person has written back; a question that waits for an answer is open.\n" +
			"`teamctl messages get ID` shows a message as a whole.",
		ValidArgsFunction: first(completeReaders),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show the messages as a whole, and continue with those that come, until Ctrl-C or --timeout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		who := team.UserAgent
		if len(args) > 0 {
			var err error
			if who, err = a.reader(args[0]); err != nil {
				return err
			}
		}
		if follow {
			return a.following(cmd.Context(), a.awaitTeam, func(ctx context.Context, t *client.Team) error { return a.followInbox(ctx, t, who) })
		}
		return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
			letters, err := t.Mail().Inbox(ctx, who)
			if err != nil {
				return err
			}
			if len(letters) == 0 {
				a.note(fmt.Sprintf("nobody has written to %s yet", who))
			}
			return a.printInbox(t.ID(), letters)
		})
	}
	return cmd
}

// reader is like member for a name that may also be the user, without a team.
func (a *app) reader(s string) (team.AgentID, error) {
	name, id, _ := strings.Cut(s, "@")
	if name != string(team.UserAgent) {
		return a.member(s)
	}
	if id == "" {
		return team.UserAgent, nil
	}
	of, err := team.ParseTeamID(id)
	if err != nil {
		return "", err
	}
	return team.UserAgent, a.ofTeam(s, of)
}

// completeReaders offers the names of those who have an inbox.
func completeReaders(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, how := completeMembers(cmd, args, word)
	return append(names, cobra.CompletionWithDesc(string(team.UserAgent), "you")), how
}

func (a *app) printInbox(id team.TeamID, letters []client.StoredMessage) error {
	err := printList(a, letters, func(l client.StoredMessage) string { return l.ID }, func() table {
		rows := table{columns: []column{{head: "ID", drop: 2}, {head: "TIME", drop: 1}, {head: "FROM", cut: true}, {head: "TYPE", drop: 3}, {head: "STATUS"}, {head: "SUMMARY", cut: true}}}
		for _, l := range letters {
			rows.add(l.ID, clockOf(l.StoredAt, time.Now()), string(l.From), string(l.Type), paint(deliveryOf(l, l.Deliveries[0])), printable(team.OneLine(l.Summary)))
		}
		return rows
	})
	if err != nil || !a.forPeople() {
		return err
	}
	for _, l := range letters {
		if l.Open {
			a.printQuestion(id, l, letters)
		}
	}
	return nil
}

// clockOf formats a time of day, with its date unless that is today.
func clockOf(at, now time.Time) string {
	at = at.Local()
	if at.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// deliveryOf describes a message's delivery in a word.
func deliveryOf(l client.StoredMessage, f client.Delivery) string {
	switch {
	case l.Open:
		return "open"
	case l.Asks() && f.AgentID == team.UserAgent && f.Status == team.MailDelivered: // its task has ended, or its sender has left
		return "void"
	case l.Asks() && f.AgentID == team.UserAgent && f.Status == team.MailProcessed:
		return "answered"
	}
	return string(f.Status)
}

// printQuestion shows one of all open questions, and the command that answers it.
func (a *app) printQuestion(id team.TeamID, l client.StoredMessage, all []client.StoredMessage) {
	lines := []string{"", fmt.Sprintf("%s asks%s%s, %s ago:", l.From.At(id), l.For(), onlyIf(l.AnswerTo != "", ", which "+string(l.AnswerTo)+" holds now"), age(l.StoredAt))}
	for line := range strings.Lines(l.Content) {
		lines = append(lines, "  "+strings.TrimRight(line, "\r\n"))
	}
	for _, choice := range l.Numbered() {
		lines = append(lines, "    "+choice)
	}
	a.say(append(lines, "answer: "+a.answerWith(id, l.Message, l.Which(all)))...)
}

// answerWith returns the command that answers a question.
func (a *app) answerWith(id team.TeamID, q team.Message, which string) string {
	words := "answer " + which + " " + q.AnswerUsage()
	if q.To != team.UserAgent {
		words += " --as " + string(q.To)
	}
	return a.command(words, id)
}

// followInbox shows the whole mail to who, and then new mail.
func (a *app) followInbox(ctx context.Context, t *client.Team, who team.AgentID) error {
	show, end, err := a.messagePrinter(ctx, t)
	if err != nil {
		return err
	}
	letters, err := t.Mail().Inbox(ctx, who)
	var last uint64
	for _, l := range letters {
		if last = l.Seq; err == nil {
			err = show(l)
		}
	}
	if err == nil {
		err = t.Mail().FollowInbox(ctx, who, last, show)
	}
	return closed(err, end)
}

// messagePrinter returns a function that prints messages one by one, to people as in the team's stream.
func (a *app) messagePrinter(ctx context.Context, t *client.Team) (show func(client.StoredMessage) error, end func() error, err error) {
	if show = oneByOne(a, func(l client.StoredMessage) string { return l.ID }); show != nil {
		return show, func() error { return nil }, nil
	}
	s, err := a.plainStream(ctx, t, render.Options{Full: true}, "")
	if err != nil {
		return nil, nil, err
	}
	return func(l client.StoredMessage) error { return s.entry(l.Entry()) }, s.close, nil
}
