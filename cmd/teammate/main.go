// Command teammate is a teammate process: a standby that becomes a member when it
// is asked, or one named member. See package teammate.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/cluster/process"
	"agentteam/pkg/cluster/teammate"
	"agentteam/pkg/config"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

func main() {
	shutdown.SurviveClosedPipes()
	ctx, stop := shutdown.Signals(context.Background())
	ctx = childproc.WithLifeline(ctx, childproc.Lifeline())
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "teammate:", team.Line(err))
	}
	os.Exit(team.ExitCode(err))
}

func command() *cobra.Command {
	cmd := process.Command("teammate", "Stand by for any team, or join one under a name")
	f := cmd.Flags()
	f.String("team", "", "with --name: the team to join")
	name := f.String("name", "", "join under this name; without it, stand by")
	role := f.String("role", "", "with --name: the role, for a member that is not there yet")
	incarnation := f.Uint64("incarnation", 0, "with --name: only while a spawn that has written this incarnation waits for it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(config.Sources{Flags: config.FlagsOf(f.Lookup), Env: os.LookupEnv})
		if err == nil {
			err = process.Decided(cfg)
		}
		if err != nil {
			return err
		}
		o := teammate.Options{Config: cfg, Role: *role, Incarnation: *incarnation, Stderr: os.Stderr}
		switch {
		case f.Changed("name"):
			var of team.TeamID // as in name@team
			if o.Name, of, err = team.ParseAddress(*name); err != nil {
				return err
			}
			if of != "" && f.Changed("team") && of != cfg.Team {
				return team.Errorf(team.InvalidArgument, "%s is not of team %s", *name, cfg.Team).WithHint("leave out --team, or the part behind the @")
			}
			o.Config.Team = cmp.Or(of, cfg.Team)
			if o.Name == team.Leader {
				return team.Errorf(team.InvalidArgument, "a teammate cannot be named leader")
			}
		case f.Changed("team"), f.Changed("role"), f.Changed("incarnation"):
			return team.Errorf(team.InvalidArgument, "--team, --role and --incarnation go with --name").WithHint("a standby has none of them: they come with the order that it gets")
		}
		return teammate.Run(cmd.Context(), o)
	}
	return cmd
}
