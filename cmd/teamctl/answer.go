package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) answerCmd() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use: "answer [ID] TEXT", Short: "Answer a question that a member has asked you",
		Long: "answer answers the question of that ID, or without ID the only one that is open. `teamctl status` and\n" +
			"`teamctl inbox user` list them. TEXT is - to read it from stdin; of a question with choices it is one of them,\n" +
			"or its number.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly(1, "TEXT, or ID and TEXT")(cmd, args)
		},
		ValidArgsFunction: first(completeQuestions),
	}
	cmd.Flags().StringVar(&as, "as", "", "answer for this seat")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"as": completePresent})
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		seat, err := a.optionalMember(as)
		if err != nil {
			return err
		}
		id := ""
		if len(args) == 2 {
			id = args[0]
		}
		text, err := textOf(a.cmd, args[len(args)-1])
		if err == nil {
			err = checkText(text)
		}
		if err != nil {
			return err
		}
		return a.withTeam(func(ctx context.Context, t *client.Team) error {
			q, m, err := t.Answer(ctx, seat, id, text)
			if err != nil {
				return err
			}
			return a.printAnswered(ctx, t, q, m)
		})
	}
	return cmd
}

// answered is what answer prints for programs.
type answered struct {
	MessageID string       `json:"message_id"`
	Question  string       `json:"question"`
	To        team.AgentID `json:"to"`
	Answer    string       `json:"answer"`
}

// printAnswered says who goes on.
func (a *app) printAnswered(ctx context.Context, t *client.Team, q client.Letter, m team.Message) error {
	return a.print(answered{m.ID, q.ID, m.To, m.Content}, nil, []string{m.ID}, func(io.Writer, bool) error {
		line := m.To.At(t.ID())
		if asker, err := t.Agent(ctx, m.To); err == nil && asker.State != team.Running { // else the answer has woken it
			if when := readWhen(asker.State); when != "" {
				return a.say("answered " + line + when)
			}
		}
		return a.say(line + " goes on with the answer: " + team.Clean(oneLine(m.Content), 60))
	})
}

// completeQuestions offers the ids of the open questions.
func completeQuestions(cmd *cobra.Command, _ []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
	glance(cmd, func(ctx context.Context, t *client.Team) {
		questions, err := t.Questions(ctx, team.UserAgent)
		if err != nil {
			return
		}
		for _, q := range questions {
			if q.Open {
				ids = append(ids, cobra.CompletionWithDesc(q.ID, string(q.From)+": "+q.Summary))
			}
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
