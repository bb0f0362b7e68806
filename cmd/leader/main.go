// Command leader is a leader process: it leads every active team, or the one it is
// given. See package leader.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"agentteam/pkg/config"
	"agentteam/pkg/leader"
	"agentteam/pkg/process"
	"agentteam/pkg/spawn"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leader:", team.Line(err))
	}
	os.Exit(team.ExitCode(err))
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "leader", Short: "Lead every active team of a NATS server, or one", Args: noArgs,
		Version: telemetry.Version(), SilenceErrors: true, SilenceUsage: true,
	}
	f := cmd.Flags()
	f.String("server", "", "address of the NATS server")
	f.String("team", "", "lead this team only")
	f.String("http", "", "host:port of health and metrics; port 0 is a free one")
	f.String("workspace", "", "folder that the tools work in; default: the team's")
	exec := f.Bool("local-exec", false, "start a teammate process when no standby takes a spawn")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return team.Errorf(team.InvalidArgument, "%w", err) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(config.Sources{Flags: config.FlagsOf(f.Lookup), Env: os.LookupEnv})
		if err != nil {
			return err
		}
		o := leader.Options{Config: cfg, LocalExec: *exec, Lifeline: spawn.Lifeline(), Stderr: os.Stderr}
		if f.Changed("team") {
			o.Only = cfg.Team
		}
		return leader.Run(cmd.Context(), o)
	}
	cmd.AddCommand(health())
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// health is the health check of a container.
func health() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Ask the leader that runs here with the same settings whether it is ready", Args: noArgs,
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
