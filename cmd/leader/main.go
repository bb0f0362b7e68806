// Command leader is a leader process: it leads every active team, or the one it is
// given. See package leader.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/cluster/leader"
	"agentteam/pkg/cluster/process"
	"agentteam/pkg/config"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/team"
)

func main() {
	shutdown.SurviveClosedPipes()
	ctx, stop := shutdown.Signals(context.Background())
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leader:", team.Line(err))
	}
	os.Exit(team.ExitCode(err))
}

func command() *cobra.Command {
	cmd := process.Command("leader", "Lead every active team of a NATS server, or one")
	f := cmd.Flags()
	f.String("team", "", "lead this team only")
	f.String("api", "", "host:port of the HTTP API; port 0 is a free one; default: none")
	f.String("api-token-file", "", "file that holds the token of the API")
	f.String("api-read-token-file", "", "file that holds its token for reading only")
	f.Bool("insecure", false, "serve the API beyond this machine without TLS")
	exec := f.Bool("local-exec", false, "start a teammate process when no standby takes a spawn")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(config.Sources{Flags: config.FlagsOf(f.Lookup), Env: os.LookupEnv})
		if err == nil {
			err = process.Decided(cfg)
		}
		if err != nil {
			return err
		}
		o := leader.Options{Config: cfg, LocalExec: *exec, Lifeline: childproc.Lifeline(), Stderr: os.Stderr}
		if f.Changed("team") {
			o.Only = cfg.Team
		}
		return leader.Run(cmd.Context(), o)
	}
	return cmd
}
