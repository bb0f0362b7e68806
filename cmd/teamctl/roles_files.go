package main

import (
	"github.com/spf13/cobra"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

func (a *app) rolesValidateCmd() *cobra.Command {
	return &cobra.Command{
		Use: "validate [FILE...]", Aliases: []string{"check"}, Short: "Check role files strictly, without a cluster",
		Long: "validate checks the role files FILE..., else those of this folder and of your configuration folder. In a file of\n" +
			"yours an unknown key or tool is a fault; of a file in .claude/agents it is a warning, for that was written for another\n" +
			"program. With a fault it exits 2.",
		RunE: func(_ *cobra.Command, args []string) error {
			rep, err := role.Check(".", args, runtime.Has)
			if err != nil {
				return err
			}
			names := make([]string, len(rep.Files))
			copy(names, rep.Files)
			err = a.print(rep, names, func() {
				for _, n := range rep.Notices {
					a.say(team.OneLine(n.Place() + ": warning: " + n.Message()))
				}
				for _, n := range rep.Faults {
					a.say(team.OneLine(n.String()))
				}
			})
			if err != nil {
				return err
			}
			if len(rep.Faults) > 0 {
				return team.Errorf(team.InvalidArgument, "%s in %s", explain.Counted(len(rep.Faults), "fault"), explain.Counted(len(rep.Files), "role file")).WithHint("docs/roles.md lists the keys; teamctl roles new NAME writes a file with all of them")
			}
			a.note(explain.Counted(len(rep.Files), "role file") + ": no fault, " + explain.Counted(len(rep.Notices), "warning"))
			return nil
		},
	}
}

func (a *app) rolesNewCmd() *cobra.Command {
	return &cobra.Command{
		Use: "new NAME", Short: "Write a role file with comments into .agents", Args: exactly(1, "the NAME of the role"),
		Long: "new writes .agents/NAME.md, which lists all that a role file may state. It replaces no file.",
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := role.New(".", args[0])
			if err != nil {
				return err
			}
			return a.printLine(map[string]any{"name": args[0], "file": path}, path, path+" is written; once you have changed it, the next run, spawn or tasks add stores the role with the team")
		},
	}
}
