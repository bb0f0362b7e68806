package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv"
	"agentteam/pkg/team"
)

func (a *app) landCmd() *cobra.Command {
	var publish bool
	cmd := &cobra.Command{
		Use: "land", Short: "Take the team's completed work over into your checkout", Args: atMost(0),
		Long: "land brings the checkout in the team's workspace forward to what its completed tasks have changed, as\n" +
			"`git merge --ff-only` does, also while the team works. A checkout with uncommitted changes, or with commits that the\n" +
			"line lacks, is refused, with what to do. The branch agentteam/TEAM is there in any case.\n" +
			"--publish runs branch_hook if the checkout lacks commits of the branch.",
	}
	cmd.Flags().BoolVar(&publish, "publish", false, "make the branch agentteam/TEAM only, for a pull request, and run branch_hook; the checkout stays as it is")
	cmd.Flags().String("workspace", "", "the checkout (default: the team's workspace)")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"workspace": aFolder})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
			t, err := c.Open(ctx, cfg.Team)
			if err != nil {
				return err
			}
			record, err := t.Record(ctx)
			if err != nil {
				return err
			}
			dir, err := workspaceOf(cfg)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("workspace") {
				dir = cmp.Or(record.Workspace, dir)
			}
			take := t.Branch().Land
			if publish {
				take = t.Branch().Publish
			}
			defer a.printMade(dir, execenv.ExecutableSettings(dir))
			d, err := take(ctx, dir)
			if team.CodeOf(err) == team.NotFound {
				err = team.Errorf(team.NotFound, "%w", err).WithHint("name your checkout with --workspace DIR")
			}
			if err != nil {
				return err
			}
			if err := a.printLanding(d, dir, publish); err != nil || !publish {
				return err
			}
			return a.runHook(cfg.BranchHook, dir, record, d, a.command("land --publish", record.ID))
		})
	}
	return cmd
}

func (a *app) printLanding(d client.Diff, dir string, published bool) error {
	line := fmt.Sprintf("%s is at %s, with new commits of the team: %d", dir, d.Head.Short(), len(d.Commits))
	switch {
	case published:
		line = fmt.Sprintf("%s in %s is at %s, with commits that the checkout lacks: %d", d.Branch, dir, d.Head.Short(), len(d.Commits))
	case d.From == d.Head:
		line = fmt.Sprintf("%s has all of %s already", dir, d.Branch)
	}
	return a.printLine(d, string(d.Head), line)
}
