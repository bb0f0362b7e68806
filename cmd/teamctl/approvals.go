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

func (a *app) approvalsCmd() *cobra.Command {
	cmd := group(a.approvalsLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "approvals", []string{"approval"}, "Show plans and decide on them; by itself it lists those that wait"
	cmd.AddCommand(a.approvalsLsCmd(), a.approvalsShowCmd(), a.approvalsApproveCmd(), a.approvalsRejectCmd())
	return cmd
}

func (a *app) approvalsLsCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the plans that wait for a decision", Args: atMost(0),
		Long: "ls lists the plans of members in plan mode, who change nothing before theirs is approved. The leader decides on a\n" +
			"plan, or a person may; where the approver is human, a person has to.",
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were decided on, or are void")
	cmd.RunE = func(*cobra.Command, []string) error {
		return a.readTeam(func(ctx context.Context, t *client.Team) error {
			plans, err := t.Plans(ctx)
			if err != nil {
				return err
			}
			if !all {
				plans = slices.DeleteFunc(plans, func(p client.Plan) bool { return !p.Waits() })
			}
			if len(plans) == 0 {
				a.note("no plan waits for a decision")
			}
			return printList(a, plans, func(p client.Plan) string { return p.ID }, func(bool) table { return plansTable(t.ID(), plans) })
		})
	}
	return cmd
}

func plansTable(id team.TeamID, plans []client.Plan) table {
	t := table{columns: []column{{head: "ID"}, {head: "AGENT", cut: true}, {head: "TASK"}, {head: "STATUS"}, {head: "DECIDES"}, {head: "AGE", drop: 1}, {head: "PLAN", cut: true, drop: 2}}}
	for _, p := range plans {
		t.add(p.ID, p.AgentID.At(id), orDash(string(p.Task)), planStatus(p), string(p.Asks()), age(p.CreatedAt), printable(team.Summarize(p.Plan)))
	}
	return t
}

func planStatus(p client.Plan) string {
	if p.Void != "" {
		return "void"
	}
	return string(p.Status)
}

func (a *app) approvalsShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a plan with its whole text", Args: exactly(1, "the plan's ID"),
		ValidArgsFunction: first(completePlans),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				p, err := t.Plan(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(p, nil, []string{p.ID}, func(io.Writer, bool) error {
					return writeFields(a.screen(), []field{
						{"id", p.ID}, {"agent", p.AgentID.At(t.ID())}, {"task", string(p.Task)}, {"status", planStatus(p)}, {"why", p.Void},
						{"decides", string(p.Asks())}, {"submitted", moment(&p.CreatedAt)}, {"decided", moment(p.DecidedAt)}, {"decided by", string(p.DecidedBy)},
						{"feedback", p.Feedback}, {"ended", moment(p.EndedAt)}, {"hash", p.PlanHash}, {"plan", p.Plan},
					})
				})
			})
		},
	}
}

func (a *app) approvalsApproveCmd() *cobra.Command {
	var feedback string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Approve a plan", Args: exactly(1, "the plan's ID"), ValidArgsFunction: first(completePlans),
		Long: "approve lets the plan's agent carry it out: until the task that it holds has ended or, without a task, until it\n" +
			"goes idle. Of several decisions the first holds.",
	}
	cmd.Flags().StringVar(&feedback, "feedback", "", "what the agent is to know besides")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.decide(args[0], true, feedback) }
	return cmd
}

func (a *app) approvalsRejectCmd() *cobra.Command {
	var feedback string
	cmd := &cobra.Command{
		Use: "reject ID --feedback TEXT", Short: "Reject a plan, and say what is to be different", Args: exactly(1, "the plan's ID"), ValidArgsFunction: first(completePlans),
		Long: "reject has the plan's agent go on planning, with the feedback. Of several decisions the first holds.",
	}
	cmd.Flags().StringVar(&feedback, "feedback", "", "what is to be different; required")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.decide(args[0], false, feedback) }
	return cmd
}

func (a *app) decide(id string, approve bool, feedback string) error {
	return a.withTeam(func(ctx context.Context, t *client.Team) error {
		p, err := t.DecidePlan(ctx, id, approve, feedback)
		if err != nil {
			return err
		}
		return a.print(p, nil, []string{p.ID}, func(io.Writer, bool) error {
			return a.say(fmt.Sprintf("the plan %s of %s is %s", p.ID, p.AgentID.At(t.ID()), p.Status))
		})
	})
}
