package process

import (
	"os"

	"github.com/spf13/cobra"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Command returns the common command of all processes: the settings of every process as flags, the
// sub-command health, and InvalidArgument for errors in the arguments. The caller adds its own
// flags. kind is the program's name.
func Command(kind, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: kind, Short: short, Args: noArgs,
		Version: telemetry.Version(), SilenceErrors: true, SilenceUsage: true,
	}
	f := cmd.Flags()
	f.String("server", "", "address of the NATS server")
	f.String("http", "", "host:port of health and metrics; port 0 is a free one")
	f.String("sandbox", "", "how commands are confined: auto, bubblewrap, the weaker confined, or none (default auto)")
	f.String("workspace", "", "folder that the tools work in; default: the team's")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return team.Errorf(team.InvalidArgument, "%w", err) })
	cmd.AddCommand(&cobra.Command{
		Use: "health", Short: "Ask the " + kind + " that runs here with the same settings whether it is ready", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(config.Sources{Env: os.LookupEnv})
			if err != nil {
				return err
			}
			return health(cmd.Context(), cfg)
		},
	})
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// noArgs is cobra.NoArgs as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return team.Errorf(team.InvalidArgument, "%w", err)
	}
	return nil
}
