package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/config"
)

func (a *app) exportCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export DIR", Short: "Write what a team has done into a folder, to be read", Args: exactly(1, "the DIR to write to"),
		Long: "export writes README.md and report.html (one page, without scripts), the conversation of each member and\n" +
			"subagent as Markdown, the team with its members and each task as JSON, each inbox as JSON lines, and what the tasks have changed as a diff. DIR must\n" +
			"be empty, or not there. The team may be at work. It cannot be loaded again from that: see `teamctl save`.",
		ValidArgsFunction: first(aFolder),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.keeping("the team to be read", func(ctx context.Context, cfg config.Config) error {
			c, err := client.Connect(ctx, client.Options{URL: cfg.Server})
			if err != nil {
				return err
			}
			defer c.Close()
			t, err := c.Open(ctx, cfg.Team)
			if err == nil {
				err = archive.Export(ctx, t, args[0])
			}
			if err != nil {
				return err
			}
			page := filepath.Join(args[0], "report.html")
			return a.printLine(map[string]any{"team": t.ID(), "dir": args[0], "report": page}, args[0], fmt.Sprintf("team %s is written to %s; begin with %s", t.ID(), args[0], page))
		})
	}
	return cmd
}
