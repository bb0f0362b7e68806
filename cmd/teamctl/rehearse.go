package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"agentteam/pkg/demo"
	"agentteam/pkg/team"
)

func (a *app) rehearseCmd() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use: "rehearse [FILE]", Short: "Serve a scripted model endpoint, to try without a model", Args: atMost(1),
		Long: "rehearse serves an OpenAI-compatible endpoint whose answers come from a script (docs/rehearsal.md), and prints its base URL.\n" +
			"Without FILE it plays the demo's script. Ctrl-C ends it.",
		ValidArgsFunction: first(aFile),
	}
	cmd.Flags().StringVar(&addr, "listen", "127.0.0.1:0", "host:port to listen on; port 0 is a free one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, script := "demo", demo.Script
		if len(args) > 0 {
			var err error
			if name = args[0]; name == "" {
				return team.Errorf(team.InvalidArgument, "the name of the script is empty")
			}
			if script, err = os.ReadFile(name); os.IsNotExist(err) {
				return team.Errorf(team.NotFound, "%w", err)
			} else if err != nil {
				return team.Errorf(team.InvalidArgument, "%w", err)
			}
		}
		url, stop, err := startRehearsal(cmd.Context(), name, script, addr, slog.New(slog.NewTextHandler(a.err, nil)))
		if err != nil {
			return err
		}
		defer stop()
		if _, err := fmt.Fprintln(a.out, url); err != nil {
			return err
		}
		<-cmd.Context().Done()
		return nil
	}
	return cmd
}
