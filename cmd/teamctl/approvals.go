package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func (a *app) approvalsCmd() *cobra.Command {
	cmd := group(a.approvalsLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "approvals", []string{"approval"}, "List what waits for a decision: plans, calls, lost members; and decide"
	cmd.AddCommand(a.approvalsLsCmd(), a.approvalsShowCmd(), a.approvalsApproveCmd(), a.approvalsRejectCmd())
	return cmd
}

func (a *app) approvalsLsCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List what waits for a decision", Args: atMost(0),
		Long: "ls lists the plans of members in plan mode, who change nothing before theirs is approved. The leader decides on a\n" +
			"plan, or a person may; where the approver is human, a person has to. It also lists the calls for which the team's\n" +
			"permissions ask, and the lost members that come back only if a person lets them (policy respawn: ask): on\n" +
			"these only a person decides. show has the whole call.",
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were decided on, or are void")
	cmd.RunE = func(*cobra.Command, []string) error {
		return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
			plans, err := t.Plans().List(ctx)
			if err != nil {
				return err
			}
			if !all {
				plans = slices.DeleteFunc(plans, func(p client.Plan) bool { return !p.Waits() })
			}
			if len(plans) == 0 {
				a.note("nothing waits for a decision")
			}
			return printList(a, plans, func(p client.Plan) string { return p.ID }, func() table { return plansTable(t.ID(), plans) })
		})
	}
	return cmd
}

func plansTable(id team.TeamID, plans []client.Plan) table {
	t := table{columns: []column{{head: "ID"}, {head: "AGENT", cut: true}, {head: "TASK"}, {head: "STATUS"}, {head: "DECIDES"}, {head: "AGE", drop: 1}, {head: "KIND", drop: 3}, {head: "WHAT", cut: true, drop: 2}}}
	for _, p := range plans {
		t.add(p.ID, p.AgentID.At(id), orDash(string(p.Task)), planStatus(p), string(p.Asks()), age(p.CreatedAt), string(cmp.Or(p.Kind, team.OfPlan)), printable(p.Brief()))
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
		Use: "show ID|NAME", Short: "Show a plan, a call that must be allowed or a lost member, as a whole", Args: exactly(1, "the ID, or whose it is"),
		ValidArgsFunction: first(completePlans),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				p, err := a.findPlan(ctx, t, args[0])
				if err != nil {
					return err
				}
				fields := []field{
					{"id", p.ID}, {"agent", p.AgentID.At(t.ID())}, {"written by", string(p.Author)}, {"task", string(p.Task)}, {"status", planStatus(p)}, {"why", p.Void},
					{"decides", string(p.Asks())}, {"submitted", moment(&p.CreatedAt)}, {"decided", moment(p.DecidedAt)}, {"decided by", string(p.DecidedBy)},
					{"scope", string(p.Scope)}, {"feedback", p.Feedback}, {"ended", moment(p.EndedAt)}, {"hash", p.PlanHash}, {"plan", p.Plan},
				}
				return a.printFields(p, p.ID, append(fields, callFields(p.Call)...))
			})
		},
	}
}

// callFields returns the rows for a call that a person must allow; none for a plan.
func callFields(c *team.AskedCall) []field {
	if c == nil {
		return nil
	}
	return []field{{"tool", c.Tool}, {"call", c.Shown()}, {"in", team.Escaped(c.Dir)}, {"asked since", c.Why}, {"always adds", c.Rule}, {"digest", c.Digest}}
}

func (a *app) approvalsApproveCmd() *cobra.Command {
	var d team.Decision
	var scope string
	cmd := &cobra.Command{
		Use: "approve ID|NAME", Short: "Approve a plan, allow a call, or let a lost member come back", Args: exactly(1, "the ID, or whose it is"), ValidArgsFunction: first(completePlans),
		Long: "approve lets the plan's agent carry it out: until the task that it holds has ended or, without a task, until it\n" +
			"goes idle. A call is allowed once; with --scope task as often as it is made in that time; with --scope always a rule\n" +
			"that allows such calls is added to the team's permissions, too. A lost member is brought back. Of several decisions the\n" +
			"first holds. ID may be the beginning of one; NAME is the member of which only one request waits.",
	}
	cmd.Flags().StringVar(&d.Feedback, "feedback", "", "what the agent is to know besides")
	cmd.Flags().StringVar(&scope, "scope", "", "of a call: once, task or always (default once)")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"scope": fixed(team.Strings(team.Once, team.ForTask, team.Always)...)})
	as := a.memberFlag(cmd, "as", completePresent, "decide on a call for this seat")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		d.Approve, d.Scope = true, team.Scope(scope)
		return a.decide(args[0], as, d)
	}
	return cmd
}

func (a *app) approvalsRejectCmd() *cobra.Command {
	var d team.Decision
	cmd := &cobra.Command{
		Use: "reject ID|NAME [--feedback TEXT]", Short: "Reject a plan, with what is to be different, refuse a call, or leave a lost member lost", Args: exactly(1, "the ID, or whose it is"), ValidArgsFunction: first(completePlans),
		Long: "reject has the plan's agent continue to plan, with the feedback. The agent of a call does without it, or makes another.\n" +
			"A lost member stays lost. Of several decisions the first holds.",
	}
	cmd.Flags().StringVar(&d.Feedback, "feedback", "", "what is to be different; required for a plan")
	as := a.memberFlag(cmd, "as", completePresent, "decide on a call for this seat")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.decide(args[0], as, d) }
	return cmd
}

// findPlan finds a plan or a call by its id, a prefix of the id, or its member's name.
func (a *app) findPlan(ctx context.Context, t *client.Team, which string) (client.Plan, error) {
	if name, err := a.member(which); err == nil {
		which = string(name)
	}
	return t.Plans().Find(ctx, which)
}

func (a *app) decide(which string, as func() (team.AgentID, error), d team.Decision) error {
	seat, err := as()
	if err != nil {
		return err
	}
	return a.withTeam(func(ctx context.Context, t *client.Team) error {
		found, err := a.findPlan(ctx, t, which)
		if err != nil {
			return err
		}
		p, err := t.Plans().Decide(ctx, seat, found.ID, d)
		if err != nil {
			return err
		}
		return a.printLine(p, p.ID, decided(t.ID(), p))
	})
}

// decided returns a sentence about a decision.
func decided(id team.TeamID, p team.Approval) string {
	what := fmt.Sprintf("the plan %s of %s is %s", p.ID, p.AgentID.At(id), p.Status)
	switch {
	case p.Call == nil:
	case p.Kind == team.OfRespawn && p.Status == team.PlanRejected:
		what = fmt.Sprintf("refused: %s stays lost", p.AgentID.At(id))
	case p.Kind == team.OfRespawn:
		what = fmt.Sprintf("allowed: %s is brought back", p.AgentID.At(id))
	case p.Status == team.PlanRejected:
		what = fmt.Sprintf("refused: %s may not make the call %s", p.AgentID.At(id), printable(p.Brief()))
	case p.Scope == team.Always:
		what = fmt.Sprintf("allowed: %s makes the call %s; from now on the rule %s allows such calls", p.AgentID.At(id), printable(p.Brief()), printable(p.Call.Rule))
	case p.Scope == team.ForTask:
		what = fmt.Sprintf("allowed for its task: %s makes the call %s", p.AgentID.At(id), printable(p.Brief()))
	default:
		what = fmt.Sprintf("allowed once: %s makes the call %s", p.AgentID.At(id), printable(p.Brief()))
	}
	return what
}

// decides returns a function that explains how a call is allowed, unless it is already decided. A nil how
// means the commands for it.
func (a *app) decides(ctx context.Context, t *client.Team, how func(team.Approval) string) (func(team.Approval) string, error) {
	plans, err := t.Plans().List(ctx)
	if err != nil {
		return nil, err
	}
	over := map[string]bool{}
	for _, p := range plans {
		over[p.ID] = !p.Waits()
	}
	return func(p team.Approval) string {
		switch {
		case over[p.ID]:
			return ""
		case how != nil:
			return how(p)
		}
		return a.decideWith(t.ID(), p)
	}, nil
}

// decideWith returns the commands that decide a plan or a call.
func (a *app) decideWith(id team.TeamID, p team.Approval) string {
	if p.IsPlan() {
		return fmt.Sprintf("approve: %s; reject: %s", a.command("approvals approve "+p.ID, id), a.command("approvals reject "+p.ID+" --feedback TEXT", id))
	}
	scopes := strings.Join(team.Strings(p.Scopes()[1:]...), "|") // once is the default
	if scopes != "" {
		scopes = " [--scope " + scopes + "]"
	}
	return fmt.Sprintf("allow: %s%s; refuse: %s", a.command("approvals approve "+p.ID, id), scopes, a.command("approvals reject "+p.ID, id))
}

// requested returns the call that an entry asks a person to allow; ok is false if there is none.
func requested(e client.Entry) (p team.Approval, ok bool) {
	b := e.Event.Event
	return p, b.Type == team.ApprovalRequested && json.Unmarshal(b.Value, &p) == nil && p.Call != nil
}

// mostShown limits the characters of a call that is shown among other things.
const mostShown = 4000

// Limits for a plan that is shown among other things: characters, and lines.
const mostPlan, mostPlanLines = 1500, 20

// requestLines returns lines that show a plan or a call that waits for a person, and the commands to decide
// it.
func (a *app) requestLines(id team.TeamID, p client.Plan) []string {
	if p.IsPlan() {
		about := ""
		if p.Task != "" {
			about = " for " + string(p.Task)
		}
		lines := []string{"", fmt.Sprintf("%s asks you to approve its plan%s, %s ago:", p.AgentID.At(id), about, age(p.CreatedAt))}
		text := strings.Split(strings.TrimRight(team.Clip(p.Plan, mostPlan), "\r\n"), "\n")
		for _, line := range text[:min(len(text), mostPlanLines)] {
			lines = append(lines, "  "+printable(strings.TrimRight(line, "\r")))
		}
		if len([]rune(p.Plan)) > mostPlan || len(text) > mostPlanLines {
			lines = append(lines, "the whole plan: "+a.command("approvals show "+p.ID, id))
		}
		return append(lines, a.decideWith(id, p.Approval))
	}
	lines := []string{"", fmt.Sprintf("%s %s, %s ago:", p.AgentID.At(id), printable(p.Asking()), age(p.CreatedAt))}
	for line := range strings.SplitSeq(p.Call.Quoted(mostShown), "\n") {
		lines = append(lines, "  "+printable(line))
	}
	return append(lines, "  in: "+printable(team.Escaped(p.Call.Dir)), "  why: "+printable(p.Call.Why), a.decideWith(id, p.Approval))
}
