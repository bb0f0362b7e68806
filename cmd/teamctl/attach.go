package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

// view is how the work on a goal is shown to people.
type view struct {
	render.Options
	quiet bool
	panes *panes    // those that show teammates; nil: none
	since time.Time // earlier entries only update the state
}

// flags adds the flags of the view to cmd.
func (v *view) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&v.quiet, "quiet", "q", false, "print the answer only")
	cmd.Flags().BoolVarP(&v.Full, "verbose", "v", false, "show calls and results as they are, and all that is otherwise left out")
	cmd.MarkFlagsMutuallyExclusive("quiet", "verbose")
}

func (a *app) attachCmd() *cobra.Command {
	var v view
	var since moments
	cmd := &cobra.Command{
		Use: "attach", Short: "Come back to a goal: see what was done, watch the rest", Args: atMost(0),
		Long: "attach shows what the team has done for its present goal and continues as run does, with its result and exit status.\n" +
			"A goal that has ended is shown with its result. Ctrl-C leaves the team at work.\n" +
			"With --agent it shows one member, with its mail and its tasks.",
	}
	v.flags(cmd)
	agent := a.memberFlag(cmd, "agent", completeMembers, "show only this member")
	cmd.Flags().Var(&since, "since", "begin at this time, such as 10m (ago), 14:30 or 2026-11-22T14:30:00Z (default: when the goal was set)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if v.Only, err = agent(); err != nil {
			return err
		}
		ctx, cancel := a.bounded(cmd.Context())
		defer cancel()
		return a.connectedIn(ctx, func(ctx context.Context, c *client.Client, cfg config.Config) error {
			t, err := c.Open(ctx, cfg.Team)
			if err != nil {
				return err
			}
			return a.attach(ctx, c, t, cfg, v, since.Time)
		})
	}
	return cmd
}

// attach shows the team's current goal from its beginning, or from since, to its end.
func (a *app) attach(ctx context.Context, c *client.Client, t *client.Team, cfg config.Config, v view, since time.Time) error {
	g, err := t.Goals().Present(ctx)
	if errors.Is(err, team.InvalidState) { // there is none
		err = team.Errorf(team.NotFound, "%w", err).WithHint("%s", team.HintOf(err))
	}
	if err != nil {
		return err
	}
	if v.Only != "" {
		if _, err := t.Members().Get(ctx, v.Only); err != nil {
			return err
		}
	}
	after := g.After()
	if v.since = since; since.Before(g.Begun()) && !since.IsZero() {
		if after, err = t.FeedAt(ctx, since); err != nil {
			return err
		}
	}
	if !v.quiet {
		a.note("goal: " + team.OneLine(g.Record().Goal))
	}
	stop := a.printTroubles(ctx, c, t, false)
	record, werr := a.watch(ctx, t, g, v, after)
	stop()
	return a.finish(ctx, c, t, g, record, werr, cfg, &runRequest{view: v})
}
