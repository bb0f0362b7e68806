package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/team"
)

func (a *app) auditCmd() *cobra.Command {
	var since moments
	var q audit.Query
	var agent func() (team.AgentID, error)
	cmd := &cobra.Command{
		Use: "audit", Short: "Show which calls agents have made, by whose leave, and what came of them", Args: atMost(0),
		Long: "audit lists the calls of tools by all agents that the team ever had, the oldest first: who, for which task, the level\n" +
			"of the sandbox, the rule or the person that allowed it, and what came of it. Arguments and results are told by\n" +
			"their digests only (-o wide), so no secret is in it; agents transcript has them as long as journals are kept.",
		RunE: func(*cobra.Command, []string) (err error) {
			if q.Agent, err = agent(); err != nil {
				return err
			}
			q.Since = since.Time
			return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
				if err := areMembers(ctx, t, q.Agent); err != nil {
					return err
				}
				entries, err := t.Audit(ctx, q)
				if err != nil {
					return err
				}
				if len(entries) == 0 {
					a.note(fmt.Sprintf("team %s has no such call", t.ID()))
				}
				return printList(a, entries, func(e audit.Entry) string { return e.Call }, func() table { return auditTable(entries) })
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&since, "since", "begin at this time, such as 10m (ago), 14:30 or 2026-11-22T14:30:00Z")
	agent = a.memberFlag(cmd, "agent", completeMembers, "only calls of this agent")
	flags.StringVar(&q.Tool, "tool", "", "only calls of this tool, by its own name or that which the model has called")
	return cmd
}

func auditTable(entries []audit.Entry) table {
	t := table{columns: []column{{head: "TIME", drop: 2}, {head: "AGENT"}, {head: "TASK", drop: 4}, {head: "TOOL"}, {head: "OUTCOME"}, {head: "EXIT", drop: 3}, {head: "SANDBOX", drop: 1},
		{head: "TERM", drop: 5, wide: true}, {head: "ARGUMENTS", drop: 6, wide: true}, {head: "RESULT", drop: 7, wide: true}, {head: "LEAVE", cut: true}}}
	for _, e := range entries {
		exit := ""
		if e.Exit != nil {
			exit = fmt.Sprint(*e.Exit)
		}
		t.add(moment(&e.At), string(e.Agent), orDash(string(e.Task)), orDash(printable(e.Tool)), cmp.Or(string(e.Code), string(e.Outcome)), orDash(exit), orDash(string(e.Sandbox)),
			fmt.Sprint(e.Incarnation), orDash(e.Arguments), orDash(e.Result), orDash(printable(leave(e))))
	}
	return t
}

// leave is by what a call was let pass, or refused.
func leave(e audit.Entry) string {
	var parts []string
	if e.Rule != "" {
		parts = append(parts, "rule "+team.OneLine(e.Rule))
	}
	for _, g := range e.Grants {
		parts = append(parts, fmt.Sprintf("%s (%s)", g.By, g.Approval))
	}
	return strings.Join(parts, "; ")
}
