package main

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"agentteam/pkg/cluster/doctor"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
)

func (a *app) doctorCmd() *cobra.Command {
	var o doctor.Options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what agentteam needs, and list what is missing", Args: atMost(0),
		Long: "doctor checks the programs, the workspace, git, the server, the processes on it and the model.\n" +
			"A model on this machine or in this network is also sent a prompt of 6,000 tokens, to see whether it is cut.\n" +
			"It succeeds if nothing fails; else its exit status is that of the first failure.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(sources(a.cmd))
			if err != nil {
				return err
			}
			ctx, cancel := a.deadline(cmd.Context())
			defer cancel()
			roles, _ := role.Load(".") // what is wrong with them is no concern of a check
			o.Waits = waits(cfg, roles)
			checks := doctor.Run(ctx, cfg, o)
			if err := printAll(a, checks, func(c doctor.Check) string { return c.Name }, func() { a.printChecks(checks) }); err != nil {
				return err
			}
			return a.ended(ctx, doctor.Err(checks))
		},
	}
	cmd.Flags().BoolVar(&o.ProbeWindow, "probe-window", false, "send the model a prompt as large as its window in the settings, or 6,000 tokens, to see whether its endpoint cuts it; may cost money")
	return cmd
}

// printChecks prints each check with its hint below. Long lines are wrapped, not cut.
func (a *app) printChecks(checks []doctor.Check) {
	const statusWidth, nameWidth = 6, 13
	w, width := a.screen(), a.width()
	indent := strings.Repeat(" ", statusWidth+nameWidth)
	for _, c := range checks {
		text := printable(c.Detail)
		if c.Hint != "" {
			text += "\n→ " + printable(c.Hint)
		}
		if width > len(indent)+leastCut {
			text = lipgloss.Wrap(text, width-len(indent), "")
		}
		status := paint(string(c.Status)) + strings.Repeat(" ", statusWidth-len(c.Status))
		name := fmt.Sprintf("%-*s", nameWidth, c.Name)
		fmt.Fprintln(w, status+name+strings.ReplaceAll(text, "\n", "\n"+indent))
	}
}
