package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

func (a *app) spawnCmd() *cobra.Command {
	var name, approver string
	var count int
	var anyway bool
	var m team.Member
	cmd := &cobra.Command{
		Use: "spawn ROLE", Short: "Start teammates of a role", Args: exactly(1, "ROLE"),
		Long: "spawn makes new members of the team out of standby processes; either all of them come up or none stays.\n" +
			"A team that is not there yet is made. With --count, -o json is an array.",
		ValidArgsFunction: first(completeRoles),
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "name of the member (default: the role with the next number)")
	f.IntVar(&count, "count", 1, "how many")
	f.StringVar(&m.Prompt, "prompt", "", "its first mail, on which it begins at once; - reads it from stdin")
	f.StringVar(&m.Model, "model", "", "the model it uses (default: the role's, else its process's)")
	f.BoolVar(&m.PlanMode, "plan-mode", false, "it changes nothing before its plan is approved")
	f.StringVar(&approver, "approver", "", "who approves its plans: leader, or human only (default: as its role or the team says)")
	f.BoolVar(&anyway, "anyway", false, "also in a team that was saved to continue elsewhere")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"model": completeModels, "approver": fixed(string(team.ByLeader), string(team.ByHuman))})
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		m.Approver = team.Approver(approver)
		m.Role = team.CanonicalRole(args[0])
		if m.AgentID, err = a.optionalMember(name); err != nil {
			return err
		}
		if count < 1 {
			return team.Errorf(team.InvalidArgument, "--count %d: at least one is spawned", count)
		}
		if m.Prompt, err = textOf(cmd, m.Prompt); err != nil {
			return err
		}
		a.awaited = "a process to become the member"
		return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
			workspace, err := workspaceOf(cfg)
			if err != nil {
				return err
			}
			if anyway {
				if err := a.anyway(ctx, c, cfg.Team); err != nil {
					return err
				}
			}
			t, err := a.makeTeam(ctx, cfg, workspace, func(ctx context.Context, n client.NewTeam) (*client.Team, error) {
				return c.MakeToSpawn(ctx, n, m, count)
			})
			if err != nil {
				return err
			}
			return a.spawn(ctx, t, m, count)
		})
	}
	return cmd
}

// spawn adds the members and prints them: an array if --count was given.
func (a *app) spawn(ctx context.Context, t *client.Team, m team.Member, count int) error {
	spawned, err := t.Members().Spawn(ctx, m, count)
	if err != nil {
		return err
	}
	agents := make([]client.Agent, len(spawned))
	for i, s := range spawned {
		if agents[i], err = t.Members().Get(ctx, s.AgentID); err != nil {
			return err
		}
	}
	if a.cmd.Flags().Changed("count") {
		return a.printAgents(t.ID(), agents)
	}
	one := agents[0]
	return a.printLine(one, string(one.AgentID), fmt.Sprintf("%s joined as %s", one.AgentID.At(t.ID()), one.Role))
}

// completeModels offers the names of the processes' models.
func completeModels(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	snapshotAll(cmd, func(ctx context.Context, c *client.Client, _ team.TeamID) { names, _ = c.Models(ctx) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
