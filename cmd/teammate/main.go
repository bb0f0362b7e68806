// Command teammate is a teammate process: a standby that becomes a member when it
// is asked, or one named member. See package teammate.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"agentteam/pkg/config"
	"agentteam/pkg/process"
	"agentteam/pkg/spawn"
	"agentteam/pkg/team"
	"agentteam/pkg/teammate"
	"agentteam/pkg/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx = spawn.WithLifeline(ctx, spawn.Lifeline())
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "teammate:", team.Line(err))
	}
	os.Exit(team.ExitCode(err))
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "teammate", Short: "Stand by for any team, or join one under a name", Args: noArgs,
		Version: telemetry.Version(), SilenceErrors: true, SilenceUsage: true,
	}
	f := cmd.Flags()
	f.String("server", "", "address of the NATS server")
	f.String("team", "", "with --name: the team to join")
	f.String("http", "", "host:port of health and metrics; port 0 is a free one")
	f.String("workspace", "", "folder that the tools work in; default: the team's")
	name := f.String("name", "", "join under this name; without it, stand by")
	role := f.String("role", "", "with --name: the role, for a member that is not there yet")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return team.Errorf(team.InvalidArgument, "%w", err) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(config.Sources{Flags: config.FlagsOf(f.Lookup), Env: os.LookupEnv})
		if err != nil {
			return err
		}
		o := teammate.Options{Config: cfg, Role: *role, Stderr: os.Stderr}
		switch {
		case f.Changed("name"):
			if o.Name, err = team.ParseAgentID(*name); err != nil {
				return err
			}
			if o.Name == team.Leader {
				return team.Errorf(team.InvalidArgument, "a teammate cannot be named leader")
			}
		case f.Changed("team"), f.Changed("role"):
			return team.Errorf(team.InvalidArgument, "--team and --role go with --name").WithHint("a standby has neither: it is told by whoever asks it")
		}
		return teammate.Run(cmd.Context(), o)
	}
	cmd.AddCommand(health())
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// health is the health check of a container.
func health() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Ask the teammate that runs here with the same settings whether it is ready", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(config.Sources{Env: os.LookupEnv})
			if err != nil {
				return err
			}
			return process.Health(cmd.Context(), cfg)
		},
	}
}

// noArgs is cobra's own as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return team.Errorf(team.InvalidArgument, "%w", err)
	}
	return nil
}
