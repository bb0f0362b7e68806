package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/control"
	"agentteam/pkg/team"
)

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what runs and how the teams stand", Args: atMost(0),
		Long: "status shows the server, the processes on it, their models, and every team (or that of --team) with its members\n" +
			"by state and its tasks by status. It succeeds once NATS and a leader process answer.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
				s, err := c.Status(ctx)
				if cmd.Flags().Changed("team") {
					if s.Teams = slices.DeleteFunc(s.Teams, func(t client.TeamStatus) bool { return t.ID != cfg.Team }); len(s.Teams) == 0 && err == nil && cfg.Team != team.DefaultTeam {
						_, err = c.Open(ctx, cfg.Team) // in the words of every other command
					}
				}
				if perr := a.printStatus(s); perr != nil {
					return perr
				}
				return err
			})
		},
	}
}

func (a *app) printStatus(s client.Status) error {
	names := make([]string, len(s.Teams))
	for i, t := range s.Teams {
		names[i] = string(t.ID)
	}
	return a.print(s, nil, names, func(_ io.Writer, wide bool) error {
		model := s.Model
		if model == control.NoModel {
			model += " (agents cannot think: set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, where they are started)"
		}
		fields := []field{{"server", s.Server}, {"model", model}}
		if names := aliases(s.Leaders); len(names) > 1 {
			fields = append(fields, field{"aliases", strings.Join(names, ", ")})
		}
		err := writeFields(a.screen(), append(fields, []field{
			{"leaders", processes(s.Leaders, wide)}, {"standbys", processes(s.Standbys, wide)}, {"teammates", processes(s.Members, wide)},
		}...))
		if err != nil || len(s.Teams) == 0 {
			return err
		}
		t := table{columns: []column{{head: "TEAM", cut: true}, {head: "STATUS"}, {head: "MEMBERS", cut: true}, {head: "TASKS", cut: true}, {head: "GOAL", cut: true, drop: 1}}}
		for _, ts := range s.Teams {
			status := string(ts.Status)
			if ts.Status == team.Active && ts.Leader == "" {
				status = "no leader"
			}
			t.add(string(ts.ID), status, counts(ts.Members), counts(ts.Tasks), orDash(printable(oneLine(ts.Goal))))
		}
		fmt.Fprintln(a.out)
		if err := t.write(a.screen(), a.width()); err != nil {
			return err
		}
		for _, ts := range s.Teams {
			for _, p := range ts.Parked {
				fmt.Fprintf(a.out, "%s waits for its model, which refuses: %s\n", p.AgentID.At(ts.ID), printable(oneLine(p.Cause)))
			}
		}
		return nil
	})
}

// aliases are the names of models that some of the processes have.
func aliases(all []control.Process) (names []string) {
	for _, p := range all {
		for _, name := range p.Aliases {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// processes is their number, with wide also where each is.
func processes(all []control.Process, wide bool) string {
	s := fmt.Sprint(len(all))
	if wide {
		for _, p := range all {
			s += fmt.Sprintf("\n%s pid %s, model %s, aliases %s, version %s, %s", p.Host, p.PID, p.Model, orDash(strings.Join(p.Aliases, " ")), p.Version, p.Metrics)
		}
	}
	return s
}

// counts is "2 idle, 1 running", in the order of the names.
func counts[S ~string](n map[S]int) string {
	var parts []string
	for name, count := range n {
		parts = append(parts, fmt.Sprintf("%d %s", count, name))
	}
	slices.SortFunc(parts, func(a, b string) int {
		return strings.Compare(a[strings.Index(a, " "):], b[strings.Index(b, " "):])
	})
	return orDash(strings.Join(parts, ", "))
}
