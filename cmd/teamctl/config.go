package main

import (
	"github.com/spf13/cobra"

	"agentteam/pkg/config"
)

func (a *app) configCmd() *cobra.Command {
	cmd := group(&cobra.Command{Use: "config", Short: "Show the settings"})
	var origin bool
	view := &cobra.Command{
		Use: "view", Short: "Print every setting that is in effect here", Args: atMost(0),
		Long: "view prints every setting as it holds for a command run in this folder: a flag wins over the environment,\n" +
			"that over team.yaml, and that over the default. Secrets are only said to be set or not. The models\n" +
			"that the settings name follow, each as models.ALIAS, and what else is set of them as models.ALIAS.KEY.",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.settings()
			if err != nil {
				return err
			}
			return printList(a, cfg.Origins(), func(o config.Origin) string { return o.Name }, func(wide bool) table {
				t := table{columns: []column{{head: "NAME"}, {head: "VALUE", cut: true}}}
				if origin || wide {
					t.columns = append(t.columns, column{head: "ORIGIN", cut: true})
				}
				for _, o := range cfg.Origins() {
					t.add([]string{o.Name, orDash(printable(o.Value)), printable(o.Origin)}[:len(t.columns)]...)
				}
				return t
			})
		},
	}
	view.Flags().BoolVar(&origin, "show-origin", false, "also print where each setting came from")
	cmd.AddCommand(view)
	return cmd
}
