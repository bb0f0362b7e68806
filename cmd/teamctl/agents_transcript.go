package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/view/render"
)

func (a *app) agentsTranscriptCmd() *cobra.Command {
	var follow bool
	o := render.Options{Fold: 10, Journal: true}
	cmd := &cobra.Command{
		Use: "transcript NAME", Short: "Show a member's conversation and its calls", Args: exactly(1, "the NAME of a member or a subagent"),
		Long: "transcript shows what a member was told, said and did, from its journal, also after it has left.\n" +
			"A subagent is named by its owner and its id, as coder-1.a1b2c3d.\n" +
			"With -o jsonl, or json and --follow, it is one entry a line.",
		ValidArgsFunction: first(completeMembers),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue with what comes, until Ctrl-C or --timeout")
	cmd.Flags().BoolVarP(&o.Full, "verbose", "v", false, "show calls and results as they are, in full")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := a.conversation(args[0])
		if err != nil {
			return err
		}
		print := a.pastPrinter()
		if follow {
			print = a.followPrinter()
		}
		show := func(ctx context.Context, t *client.Team) error {
			p, err := a.orStream(ctx, t, print, o, "")
			if err != nil {
				return err
			}
			return closed(t.Members().Transcript(ctx, name, follow, p.entry), p.end)
		}
		if follow {
			return a.following(cmd.Context(), openTeam, show)
		}
		return a.withTeam(show)
	}
	return cmd
}
