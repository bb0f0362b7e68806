package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what runs, and the state of each team", Args: atMost(0),
		Long: "status shows the server, the processes on it, their models, and every team (or that of --team) with its members\n" +
			"by state and its tasks by status. It succeeds once NATS and a leader process answer. While the cluster of the folder is\n" +
			"down it shows the teams as they are stored, and ends with 5.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var head string
			var cause error
			a.head = func(line string, err error) { head, cause = line, err }
			return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
				s, err := c.Status(ctx)
				err = cmp.Or(err, cause)
				if cmd.Flags().Changed("team") {
					if s.Teams = slices.DeleteFunc(s.Teams, func(t client.TeamStatus) bool { return t.ID != cfg.Team }); len(s.Teams) == 0 && err == nil && cfg.Team != team.DefaultTeam {
						_, err = c.Open(ctx, cfg.Team) // in the words of every other command
					}
				}
				if perr := a.printStatus(shownStatus{head, s}); perr != nil {
					return perr
				}
				roles, _ := role.Load(".") // who needs them reports what is wrong with them
				for _, w := range waits(cfg, roles) {
					a.note(inOneLine(w.String()))
				}
				return err
			})
		},
	}
}

// shownStatus is a status as printed.
type shownStatus struct {
	Down string `json:"down,omitempty"` // of which folder the cluster is down, and when the teams were stored; "" if it was asked
	client.Status
}

func (a *app) printStatus(s shownStatus) error {
	names := make([]string, len(s.Teams))
	for i, t := range s.Teams {
		names[i] = string(t.ID)
	}
	return a.print(s, names, func() {
		if s.Down != "" {
			a.say(s.Down)
		} else {
			a.printProcesses(s.Status)
		}
		if len(s.Teams) == 0 {
			return
		}
		fmt.Fprintln(a.out)
		a.printTable(teamsTable(s.Teams))
		a.printWork(s.Teams)
		for _, ts := range s.Teams {
			a.printToPerson(ts)
			for _, p := range ts.Parked {
				a.note(parkedLine(p.AgentID.At(ts.ID), p.State, p.Cause, p.RetryAt))
			}
			for _, q := range ts.Damaged {
				a.note(fmt.Sprintf("damaged in team %s: %s: %s (teamctl repair --team %s)", ts.ID, q.Key, printable(team.OneLine(q.Error)), ts.ID))
			}
			for _, m := range ts.Lost {
				a.note(fmt.Sprintf("%s is lost: %s", m.AgentID.At(ts.ID), m.Why))
			}
			for _, m := range ts.Silent {
				a.note(fmt.Sprintf("%s beats, but %s", m.AgentID.At(ts.ID), m.Why))
			}
		}
	})
}

// printProcesses shows the server and the processes on it.
func (a *app) printProcesses(s client.Status) {
	model := s.Model
	if model == control.NoModel {
		model += " (agents cannot think: set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, where they are started)"
	}
	wide := a.output == asWide
	names := aliases(s.Leaders)
	writeFields(a.screen(), []field{
		{"server", s.Server}, {"model", model}, {"sandbox", sandboxes(slices.Concat(s.Leaders, s.Standbys, s.Members))}, {"storage", s.Storage},
		{"aliases", onlyIf(len(names) > 1, strings.Join(names, ", "))},
		{"leaders", processes(s.Leaders, wide)}, {"standbys", processes(s.Standbys, wide)}, {"teammates", processes(s.Members, wide)},
	})
}

// printToPerson shows the open questions, and the number of unread messages to the person.
func (a *app) printToPerson(ts client.TeamStatus) {
	for _, q := range ts.Questions {
		a.printQuestion(ts.ID, q, ts.Questions)
	}
	for _, p := range slices.Concat(ts.Plans, ts.Requests) {
		a.say(a.requestLines(ts.ID, p)...)
	}
	if more := ts.Unread - len(ts.Questions) - len(ts.Requests); more > 0 {
		a.say("", explain.Counted(more, "unread message")+" to you: "+a.command("inbox user", ts.ID))
	}
}

// printWork prints what each member does, and what is waited for.
func (a *app) printWork(teams []client.TeamStatus) {
	t := table{columns: []column{{head: "MEMBER", cut: true}, {head: "STATE"}, {head: "TASK"}, {head: "AT", cut: true}, {head: "PROGRESS", drop: 1}}}
	for _, ts := range teams {
		for _, w := range ts.Work {
			progress := "-"
			if w.ProgressAt != nil {
				progress = age(*w.ProgressAt) + " ago"
			}
			t.add(w.AgentID.At(ts.ID), paint(string(w.State)), orDash(string(w.Task)), orDash(printable(doing(w))), progress)
		}
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(a.out)
		a.printTable(t)
	}
}

// aliases returns the names of models that some processes have.
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

// processes returns their number, with wide also where each runs.
func processes(all []control.Process, wide bool) string {
	s := fmt.Sprint(len(all))
	if wide {
		for _, p := range all {
			s += "\n"
			for _, m := range p.Memberships {
				s += m.AgentID.At(m.Team) + ", "
			}
			s += fmt.Sprintf("%s pid %s, model %s, aliases %s, sandbox %s, version %s, %s", p.Host, p.PID, p.Model, orDash(strings.Join(p.Aliases, " ")), orDash(p.Sandbox), p.Version, p.Metrics)
			if p.API != "" {
				s += ", API " + p.API
			}
		}
	}
	return s
}
