package main

import (
	"fmt"
	"io"
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
			return a.print(info, []string{v}, func(w io.Writer, wide bool) error {
				if !wide {
					_, err := fmt.Fprintln(w, "teamctl", v)
					return err
				}
				_, err := fmt.Fprintln(w, "teamctl", v, info["go"], info["platform"])
				return err
			})
		},
	}
}
