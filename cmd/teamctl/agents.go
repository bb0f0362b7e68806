package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) agentsCmd() *cobra.Command {
	cmd := group(a.agentsLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "agents", []string{"agent"}, "Show the members of the team; by itself it lists them"
	cmd.AddCommand(a.agentsLsCmd(), a.agentsGetCmd())
	return cmd
}

func (a *app) agentsLsCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the members in order of joining", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			var id team.TeamID
			var agents []client.Agent
			err := a.readTeam(func(ctx context.Context, t *client.Team) (err error) {
				id = t.ID()
				agents, err = t.Agents(ctx, all)
				return err
			})
			if err != nil {
				return err
			}
			return a.printAgents(id, agents)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also members that have left")
	return cmd
}

func (a *app) agentsGetCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show one member", Args: exactly(1, "the NAME of a member"),
		ValidArgsFunction: first(completeMembers),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := team.ParseAgentID(args[0])
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				m, err := t.Agent(ctx, name)
				if err != nil {
					return err
				}
				return a.print(m, nil, []string{string(m.AgentID)}, func(io.Writer, bool) error {
					return writeFields(a.screen(), agentFields(t.ID(), m))
				})
			})
		},
	}
}

func (a *app) printAgents(id team.TeamID, agents []client.Agent) error {
	return printList(a, agents, func(m client.Agent) string { return string(m.AgentID) }, func(wide bool) table {
		t := table{columns: []column{{head: "NAME", cut: true}, {head: "ROLE", cut: true}, {head: "STATE"}, {head: "TASK"}, {head: "TURNS", drop: 1}}}
		if wide {
			t.columns = append(t.columns, column{head: "BACKEND", drop: 3}, column{head: "HOST", cut: true, drop: 4}, column{head: "PID", drop: 2},
				column{head: "MODEL", cut: true, drop: 5}, column{head: "JOINED", drop: 6}, column{head: "WORKSPACE", cut: true, drop: 7})
		}
		for _, m := range agents {
			row := []string{memberInk[m.Color].Render(m.AgentID.At(id)), m.Role, paint(string(m.State)), orDash(string(m.Task)), fmt.Sprint(m.Turn)}
			if wide {
				row = slices.Concat(row, []string{string(m.Backend), orDash(m.Host), pid(m), orDash(m.Model), age(m.JoinedAt), orDash(printable(m.Workspace))})
			}
			t.add(row...)
		}
		return t
	})
}

func pid(m client.Agent) string {
	if m.PID == 0 {
		return "-"
	}
	return fmt.Sprint(m.PID)
}

func agentFields(id team.TeamID, m client.Agent) []field {
	return []field{
		{"name", m.AgentID.At(id)}, {"role", m.Role}, {"state", string(m.State)}, {"task", string(m.Task)},
		{"turns", fmt.Sprint(m.Turn)}, {"incarnation", fmt.Sprint(m.Incarnation)},
		{"backend", string(m.Backend)}, {"host", m.Host}, {"pid", pid(m)}, {"model", m.Model}, {"workspace", m.Workspace},
		{"joined", moment(&m.JoinedAt)}, {"last error", m.LastError}, {"prompt", m.Prompt},
	}
}
