package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/team/strictyaml"
)

func (a *app) configCmd() *cobra.Command {
	cmd := group(&cobra.Command{Use: "config", Short: "Show and check the settings"})
	var origin bool
	view := &cobra.Command{
		Use: "view", Short: "Print every setting that is in effect here", Args: atMost(0),
		Long: "view prints every setting as it holds for a command run in this folder: a flag wins over the environment,\n" +
			"that over team.yaml, and that over the default. Secrets are only said to be set or not. The models\n" +
			"that the settings name follow, each as models.ALIAS, and what else is set of them as models.ALIAS.KEY.",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(sources(a.cmd))
			if err != nil {
				return err
			}
			if w := cfg.Waiting(); len(w.Keys) > 0 {
				a.note(inOneLine(w.String()))
			}
			return printList(a, cfg.Origins(), func(o config.Origin) string { return o.Name }, func() table {
				t := table{columns: []column{{head: "NAME"}, {head: "VALUE", cut: true}, {head: "ORIGIN", cut: true, wide: !origin}}}
				for _, o := range cfg.Origins() {
					t.add(o.Name, orDash(printable(o.Value)), printable(o.Origin))
				}
				return t
			})
		},
	}
	view.Flags().BoolVar(&origin, "show-origin", false, "also print where each setting came from")
	cmd.AddCommand(view, a.configValidateCmd(), a.configSchemaCmd())
	return cmd
}

func (a *app) configValidateCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "validate [-f FILE]", Short: "Check a settings file, and the roles that it names", Args: atMost(0),
		Long: "validate checks team.yaml as each command does that needs all of it: keys, types, words, models, permissions, and that\n" +
			"the roles it names are there. Each fault is printed with line and column, and is exit code 2 (3: a role or file is missing).",
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the settings file; default: the nearest team.yaml")
	cmd.RunE = func(*cobra.Command, []string) error {
		src := sources(a.cmd)
		src.File, src.All = file, true
		cfg, err := config.Load(src)
		if err == nil && !cfg.Found() {
			return noSettings()
		}
		if !cfg.Found() {
			return err
		}
		where := cfg.File()
		roles, missing := role.Load(".")
		if missing != nil {
			where += " and the role files"
		} else {
			_, missing = cfg.Roles(roles.All)
		}
		if faults := strictyaml.Faults(errors.Join(err, missing)); len(faults) > 0 {
			return a.faulty(cfg.File(), where, faults)
		}
		a.printWaiting(cfg, roles)
		return a.printLine(map[string]any{"file": cfg.File(), "valid": true}, cfg.File(), cfg.File()+" is valid")
	}
	return cmd
}

// faulty prints the faults of a settings file, and returns them as one error. A single fault is only
// returned.
func (a *app) faulty(file, where string, faults []error) error {
	if len(faults) == 1 {
		return faults[0]
	}
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = team.Line(fault)
	}
	err := a.printLine(map[string]any{"file": file, "valid": false, "faults": lines}, file, lines...)
	if err != nil {
		return err
	}
	code := team.InvalidArgument
	if !slices.ContainsFunc(faults, func(err error) bool { return !errors.Is(err, team.NotFound) }) {
		code = team.NotFound
	}
	return team.Errorf(code, "%s in %s", explain.Counted(len(faults), "fault"), where)
}

// noSettings returns the error of a command that needs a settings file.
func noSettings() error {
	return team.Errorf(team.NotFound, "there is no team.yaml here or above").WithHint("`teamctl init` writes one; -f names another file")
}

func (a *app) configSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of team.yaml, for editors", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(config.Schema())
			return err
		},
	}
}
