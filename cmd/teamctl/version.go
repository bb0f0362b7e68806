package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"agentteam/pkg/telemetry"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := telemetry.Version()
			info := map[string]string{"version": v, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			line := "teamctl " + v
			if a.output == asWide {
				line += " " + info["go"] + " " + info["platform"]
			}
			return a.printLine(info, v, line)
		},
	}
}
