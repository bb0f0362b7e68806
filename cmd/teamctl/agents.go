package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

func (a *app) agentsCmd() *cobra.Command {
	cmd := group(a.agentsLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "agents", []string{"agent"}, "Show the members of the team; by itself it lists them"
	cmd.AddCommand(a.agentsLsCmd(), a.agentsGetCmd(), readsStored(a, a.agentsTranscriptCmd()), a.agentsCompactCmd(), a.agentsJobsCmd())
	return cmd
}

func (a *app) agentsLsCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the members in order of joining", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return a.readTeam(a.printNone, func(ctx context.Context, t *client.Team) error {
				agents, err := t.Members().List(ctx, all)
				if err != nil {
					return err
				}
				if len(agents) == 0 {
					a.noteNoAgents(ctx, t)
				}
				return a.printAgents(t.ID(), agents)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also members that have left")
	return cmd
}

// noteNoAgents prints why the team has no member.
func (a *app) noteNoAgents(ctx context.Context, t *client.Team) {
	record, err := t.Record(ctx)
	if err != nil {
		return
	}
	had, err := t.Members().Records(ctx)
	switch {
	case err != nil:
	case record.Status != team.Active && len(had) > 0:
		a.note(fmt.Sprintf("team %s is %s: its members have left (--all lists them)", t.ID(), record.InWords()))
	case record.Status != team.Active:
		a.note(fmt.Sprintf("team %s is %s and had no members", t.ID(), record.InWords()))
	case len(had) > 0:
		a.note(fmt.Sprintf("all members of team %s have left (--all lists them)", t.ID()))
	default:
		a.note(fmt.Sprintf("team %s has no members yet: teamctl spawn ROLE makes one", t.ID()))
	}
}

func (a *app) agentsGetCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show one member", Args: exactly(1, "the NAME of a member"),
		ValidArgsFunction: first(completeMembers),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := a.member(args[0])
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				m, err := t.Members().Get(ctx, name)
				if err != nil {
					return err
				}
				return a.printFields(m, string(m.AgentID), agentFields(t.ID(), m))
			})
		},
	}
}

func (a *app) agentsCompactCmd() *cobra.Command {
	return &cobra.Command{
		Use: "compact NAME", Short: "Have a member shorten its conversation", Args: exactly(1, "the NAME of a member"),
		Long: "compact has a member shorten its conversation: before its next model call, or at once if it is idle.\n" +
			"Its task, the mail of people and of the leader, and its newest turns stay; a summary takes the place of the rest.",
		ValidArgsFunction: first(completePresent),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := a.member(args[0])
			if err != nil {
				return err
			}
			return a.withTeam(func(ctx context.Context, t *client.Team) error {
				if err := t.Members().Compact(ctx, name); err != nil {
					return err
				}
				return a.printLine(map[string]any{"agent_id": name}, string(name), name.At(t.ID())+" shortens its conversation; teamctl agents shows how full it is")
			})
		},
	}
}

func (a *app) printAgents(id team.TeamID, agents []client.Agent) error {
	err := printList(a, agents, nameOfAgent, func() table {
		t := table{columns: []column{{head: "NAME", cut: true}, {head: "ROLE", cut: true}, {head: "STATE"}, {head: "TASK"}, {head: "TURNS", drop: 1}, {head: "CONTEXT", drop: 2},
			{head: "BACKEND", drop: 4, wide: true}, {head: "HOST", cut: true, drop: 5, wide: true}, {head: "PID", drop: 3, wide: true},
			{head: "ALIAS", cut: true, drop: 6, wide: true}, {head: "MODEL", cut: true, drop: 6, wide: true}, {head: "TOKENS", drop: 7, wide: true}, {head: "AT", cut: true, drop: 5, wide: true},
			{head: "JOINED", drop: 7, wide: true}, {head: "WORKSPACE", cut: true, drop: 8, wide: true}, {head: "PROJECT", cut: true, drop: 8, wide: true}}}
		for _, m := range agents {
			t.add(render.Ink(m.Color).Render(m.AgentID.At(id)), m.Role, paint(string(m.State)), orDash(string(m.Task)), fmt.Sprint(m.Turn), fullness(m),
				string(m.Backend), orDash(m.Host), orDash(number(m.PID)), orDash(printable(m.Alias)), orDash(printable(m.Model)), fmt.Sprint(m.Tokens), orDash(printable(doing(client.WorkOf(m)))),
				age(m.JoinedAt), orDash(printable(m.Workspace)), orDash(printable(notifiedOf(m))))
			for _, j := range m.Jobs { // beneath their owner
				t.add("  "+j.ID, cmp.Or(j.Type, string(j.Kind)), jobState(j), orDash(string(j.Task)), turnsOf(j), "-", "-", "-", "-", "-", "-", fmt.Sprint(j.Tokens), orDash(printable(j.About)), age(j.Since), "-", "-")
			}
		}
		return t
	})
	for _, m := range agents {
		if m.Parked() {
			a.note(parkedLine(m.AgentID.At(id), m.Member.State, m.LastError, m.RetryAt))
		}
		if m.State == team.Unreadable {
			a.note(m.AgentID.At(id) + ": " + team.OneLine(m.LastError))
		}
	}
	return err
}

func nameOfAgent(m client.Agent) string { return string(m.AgentID) }

// parkedLine explains why a member does not work, and when it asks its model again.
func parkedLine(name string, state team.MemberState, cause string, retry *time.Time) string {
	if state == team.WaitingRepair {
		return name + " waits for a repair (teamctl repair): " + team.OneLine(cause)
	}
	line := name + " is parked, without a usable answer from its model: " + team.OneLine(cause)
	if retry != nil {
		line += "; it asks again at " + retry.Local().Format(time.TimeOnly)
	}
	return line
}

// doing describes in a few words what a member does or waits for; "" for nothing.
func doing(w client.Work) string {
	if w.Drains {
		w.Drains = false
		return strings.TrimPrefix(doing(w)+"; leaves after its task", "; ")
	}
	since := ""
	if w.Since != nil {
		since = " for " + age(*w.Since)
	}
	switch {
	case w.Person && w.Task != "":
		return "waits for this person" + since
	case w.State == team.WaitingApproval && w.Awaits == team.UserAgent:
		return "waits for you to decide on its request " + w.Asked + since
	case w.State == team.WaitingApproval:
		return fmt.Sprintf("waits for %s to decide on its plan %s", w.Awaits, w.Asked) + since
	case w.Awaits != "":
		return "waits for an answer of " + string(w.Awaits) + since
	case w.Trouble != "":
		return team.OneLine(w.Trouble)
	case w.State == team.WaitingAnswer && len(w.Jobs) > 0:
		return "waits for its work in the background"
	case w.Tool != "":
		return w.Tool + since
	case w.State == team.Running, w.State == team.Stalled:
		return "its model"
	case w.State == team.Unknown:
		return "its process has not answered: it may be slow, or gone"
	}
	return ""
}

// planMode names who approves the plans of a member in plan mode; "" for other members.
func planMode(m team.Member) string {
	if !m.PlanMode {
		return ""
	}
	return "yes; approver: " + string(cmp.Or(m.Approver, team.ByLeader))
}

// fullness returns how full a member's context is, in short form.
func fullness(m client.Agent) string {
	switch {
	case m.Context == 0:
		return "-"
	case m.Window == 0:
		return fmt.Sprintf("%.1fk", float64(m.Context)/1000)
	}
	return fmt.Sprintf("%d%%", 100*m.Context/m.Window)
}

// contextOf returns how full a member's context is, in tokens.
func contextOf(m client.Agent) string {
	switch {
	case m.Context == 0:
		return ""
	case m.Window == 0:
		return fmt.Sprintf("%d tokens", m.Context)
	}
	return fmt.Sprintf("%d of %d tokens", m.Context, m.Window)
}

// notifiedOf names the repository's files that are in a member's instructions.
func notifiedOf(m client.Agent) string {
	all := make([]string, len(m.Project))
	for i, f := range m.Project {
		all[i] = f.String()
	}
	return strings.Join(all, ", ")
}

func agentFields(id team.TeamID, m client.Agent) []field {
	return []field{
		{"name", m.AgentID.At(id)}, {"role", m.Role}, {"plan mode", planMode(m.Member)}, {"state", string(m.State)}, {"task", string(m.Task)},
		{"turns", fmt.Sprint(m.Turn)}, {"incarnation", fmt.Sprint(m.Incarnation)},
		{"backend", string(m.Backend)}, {"host", m.Host}, {"pid", orDash(number(m.PID))}, {"alias", m.Alias}, {"model", m.Model}, {"tokens", number(m.Tokens)}, {"at", doing(client.WorkOf(m))}, {"last progress", moment(m.ProgressAt)}, {"context", contextOf(m)}, {"asks its model again", moment(m.RetryAt)}, {"workspace", m.Workspace}, {"instructions of the project", notifiedOf(m)},
		{"joined", moment(&m.JoinedAt)}, {"last error", m.LastError}, {"prompt", m.Prompt},
	}
}
