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
	cmd.AddCommand(a.agentsLsCmd(), a.agentsGetCmd(), a.agentsCompactCmd())
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

func (a *app) agentsCompactCmd() *cobra.Command {
	return &cobra.Command{
		Use: "compact NAME", Short: "Have a member shorten its conversation", Args: exactly(1, "the NAME of a member"),
		Long: "compact has a member shorten its conversation: before its next model call, or at once if it is idle.\n" +
			"Its task, the mail of people and of the leader, and its newest turns stay; a summary takes the place of the rest.",
		ValidArgsFunction: first(completeMembers),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := team.ParseAgentID(args[0])
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				if err := t.Compact(ctx, name); err != nil {
					return err
				}
				return a.print(map[string]any{"agent_id": name}, nil, []string{string(name)}, func(w io.Writer, _ bool) error {
					_, err := fmt.Fprintf(w, "%s shortens its conversation; teamctl agents shows how full it is\n", name.At(t.ID()))
					return err
				})
			})
		},
	}
}

func (a *app) printAgents(id team.TeamID, agents []client.Agent) error {
	return printList(a, agents, func(m client.Agent) string { return string(m.AgentID) }, func(wide bool) table {
		t := table{columns: []column{{head: "NAME", cut: true}, {head: "ROLE", cut: true}, {head: "STATE"}, {head: "TASK"}, {head: "TURNS", drop: 1}, {head: "CONTEXT", drop: 2}}}
		if wide {
			t.columns = append(t.columns, column{head: "BACKEND", drop: 4}, column{head: "HOST", cut: true, drop: 5}, column{head: "PID", drop: 3},
				column{head: "MODEL", cut: true, drop: 6}, column{head: "JOINED", drop: 7}, column{head: "WORKSPACE", cut: true, drop: 8})
		}
		for _, m := range agents {
			row := []string{memberInk[m.Color].Render(m.AgentID.At(id)), m.Role, paint(string(m.State)), orDash(string(m.Task)), fmt.Sprint(m.Turn), fullness(m)}
			if wide {
				row = slices.Concat(row, []string{string(m.Backend), orDash(m.Host), pid(m), orDash(m.Model), age(m.JoinedAt), orDash(printable(m.Workspace))})
			}
			t.add(row...)
		}
		return t
	})
}

// fullness is how full a member's context is, in short.
func fullness(m client.Agent) string {
	switch {
	case m.Context == 0:
		return "-"
	case m.Window == 0:
		return fmt.Sprintf("%.1fk", float64(m.Context)/1000)
	}
	return fmt.Sprintf("%d%%", 100*m.Context/m.Window)
}

// contextOf is how full it is in tokens.
func contextOf(m client.Agent) string {
	switch {
	case m.Context == 0:
		return ""
	case m.Window == 0:
		return fmt.Sprintf("%d tokens", m.Context)
	}
	return fmt.Sprintf("%d of %d tokens", m.Context, m.Window)
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
		{"backend", string(m.Backend)}, {"host", m.Host}, {"pid", pid(m)}, {"model", m.Model}, {"context", contextOf(m)}, {"asks its model again", moment(m.RetryAt)}, {"workspace", m.Workspace},
		{"joined", moment(&m.JoinedAt)}, {"last error", m.LastError}, {"prompt", m.Prompt},
	}
}
