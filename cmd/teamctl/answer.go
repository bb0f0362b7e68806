package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) answerCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "answer [NAME|ID] TEXT", Short: "Answer a question that a member has asked you",
		Long: "answer answers the question of the member NAME, or the one of that ID; with TEXT alone the only one that is open.\n" +
			"`teamctl status` and `teamctl inbox` list them. TEXT is - to read it from stdin; of a question with choices it is\n" +
			"one of them, or its number.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly(1, "TEXT, or NAME and TEXT")(cmd, args)
		},
		ValidArgsFunction: first(completeQuestions),
	}
	as := a.memberFlag(cmd, "as", completePresent, "answer for this seat")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		seat, err := as()
		if err != nil {
			return err
		}
		which := ""
		if len(args) == 2 {
			which = args[0]
			if name, err := a.member(which); err == nil {
				which = string(name)
			}
		}
		text, err := textOf(a.cmd, args[len(args)-1])
		if err == nil {
			err = checkText(text)
		}
		if err != nil {
			return err
		}
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			q, m, err := t.Mail().Answer(ctx, seat, which, text)
			if err != nil {
				return err
			}
			return a.printAnswered(ctx, t, q, m)
		})
	}
	return cmd
}

// answered is the result of answer for programs.
type answered struct {
	MessageID string       `json:"message_id"`
	Question  string       `json:"question"`
	To        team.AgentID `json:"to"`
	Answer    string       `json:"answer"`
}

// printAnswered prints who got the answer, and when it is read.
func (a *app) printAnswered(ctx context.Context, t *client.Team, q client.StoredMessage, m team.Message) error {
	return a.print(answered{m.ID, q.ID, m.To, m.Content}, []string{m.ID}, func() {
		line := m.To.At(t.ID())
		if asker, err := t.Members().Get(ctx, m.To); err == nil && asker.State != team.Running { // else the answer has woken it
			if when := readWhen(asker.State, false); when != "" {
				a.say("answered " + line + when)
				return
			}
		}
		a.say(line + " goes on with the answer: " + team.Clean(team.OneLine(m.Content), 60))
	})
}

// completeQuestions offers the names of members with open questions, and question ids where a member has
// several.
func completeQuestions(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	snapshotOf(cmd, func(ctx context.Context, t *client.Team) {
		who, err := team.ParseAgentID(cmd.Flag("as").Value.String())
		if err != nil {
			who = team.UserAgent
		}
		questions, _ := t.Mail().Questions(ctx, who)
		for _, q := range questions {
			if q.Open {
				names = append(names, cobra.CompletionWithDesc(q.Which(questions), string(q.From)+q.For()+": "+q.Summary))
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
