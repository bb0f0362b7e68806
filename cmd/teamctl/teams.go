package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

func (a *app) teamsCmd() *cobra.Command {
	cmd := group(a.teamsLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "teams", []string{"team"}, "Show, make, change and delete teams; by itself it lists them"
	cmd.AddCommand(a.teamsLsCmd(), a.teamsGetCmd(), makesTeam(a.teamsAddCmd()), a.teamsSetCmd(), a.teamsApplyCmd(), a.teamsRmCmd())
	return cmd
}

func (a *app) teamsLsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List all teams, also those that have ended", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return a.connected(func(ctx context.Context, c *client.Client, _ config.Config) error {
				teams, err := c.Teams(ctx)
				if err != nil {
					return err
				}
				if len(teams) == 0 {
					a.note("there are no teams yet: `teamctl run GOAL` makes one")
				}
				return printList(a, teams, func(t client.TeamStatus) string { return string(t.ID) }, func() table { return teamsTable(teams) })
			})
		},
	}
}

func (a *app) teamsGetCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a team's record: its goal, limits and policies", Args: exactly(1, "the NAME of a team"),
		ValidArgsFunction: first(completeTeams),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.onTeam(args[0], func(ctx context.Context, t *client.Team) error {
				record, err := t.Record(ctx)
				if err != nil {
					return err
				}
				return a.printTeam(record)
			})
		},
	}
}

func (a *app) teamsAddCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a team without a goal", Args: exactly(1, "the NAME of the new team"),
		Long: "add makes a team, with the roles of this folder, which then waits for a goal or for tasks. `teamctl run` and `tasks add`\n" +
			"make the team that they name by themselves; add is for one that is to have other limits or policies from its start.",
	}
	choices := choicesOf(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := team.ParseTeamID(args[0])
		if err != nil {
			return err
		}
		return a.connected(func(ctx context.Context, c *client.Client, cfg config.Config) error {
			workspace, err := workspaceOf(cfg)
			if err != nil {
				return err
			}
			cfg.Team = id
			roles, err := a.loadRoles()
			if err != nil {
				return err
			}
			record, err := c.AddTeam(ctx, newTeam(cfg, roles, workspace), choices(cmd))
			if err != nil {
				return err
			}
			return a.printTeam(record)
		})
	}
	return cmd
}

func (a *app) teamsSetCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change a team's limits and policies", Args: exactly(1, "the NAME of a team"),
		ValidArgsFunction: first(completeTeams),
		Long:              "set changes what its flags name, at any time: the team's leader and members act on it at once.",
	}
	choices := choicesOf(cmd, false)
	var settings bool
	cmd.Flags().BoolVar(&settings, "from-settings", false, "take over what the settings here say of sandbox, isolation, network, permissions, credentials and paths")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ch := choices(cmd)
		if settings {
			cfg, err := a.settings()
			if err != nil {
				return err
			}
			a.printWaiting(cfg, role.Roles{})
			ch.Policy = &cfg.Policy
		}
		if ch.None() {
			return team.Errorf(team.InvalidArgument, "nothing is to be changed").WithHint("`teamctl teams set --help` lists what can be")
		}
		return a.onTeam(args[0], func(ctx context.Context, t *client.Team) error {
			record, err := t.Choose(ctx, ch)
			if err != nil {
				return err
			}
			return a.printTeam(record)
		})
	}
	return cmd
}

func (a *app) teamsRmCmd() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "rm NAME", Short: "Delete a team and all that is stored of it", Args: exactly(1, "the NAME of a team"),
		ValidArgsFunction: first(completeTeams),
		Long: "rm deletes a team that has ended: its board, mail, conversations and files in NATS, and the homes of its members on\n" +
			"this machine. Files in its workspace stay, and branches of the repository there.\n" +
			"It is refused while the team is at work, a member lives, or the repository lacks what the team has merged.\n" +
			"With --force the team is stopped first; who has not left\n" +
			"after --timeout is stopped by force.",
	}
	cmd.Flags().BoolVar(&force, "force", false, "stop who is still in it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := team.ParseTeamID(args[0])
		if err != nil {
			return err
		}
		ctx, wait, cancel := a.stopping(cmd.Context())
		defer cancel()
		defer a.waitsFor("the team's members to leave, and its storage to go")()
		return a.connectedIn(ctx, func(ctx context.Context, c *client.Client, _ config.Config) error {
			d, err := c.DeleteTeam(ctx, id, force, wait)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("team %s is deleted", id)
			if len(d.Ended) > 0 {
				line += "; stopped for it: " + strings.Join(team.Strings(d.Ended...), ", ")
			}
			if d.Open > 0 {
				line += fmt.Sprintf("; with it went tasks that were not done: %d", d.Open)
			}
			return a.printLine(d, string(id), line)
		})
	}
	return cmd
}

// onTeam runs f on a team that an argument names.
func (a *app) onTeam(name string, f func(context.Context, *client.Team) error) error {
	id, err := team.ParseTeamID(name)
	if err != nil {
		return err
	}
	return a.connected(func(ctx context.Context, c *client.Client, _ config.Config) error {
		t, err := c.Open(ctx, id)
		if err != nil {
			return err
		}
		return f(ctx, t)
	})
}

// choicesOf adds the flags for a team's choices to cmd, with a new team's defaults if fresh is set: else what
// is not given stays unchanged. The returned function returns the choices that were given.
func choicesOf(cmd *cobra.Command, fresh bool) func(*cobra.Command) team.Choices {
	var description, create, respawn, approver, check, dialect, isolation string
	var teammates int
	var planMode, delegate bool
	f := cmd.Flags()
	f.StringVar(&description, "description", "", "what the team is for")
	f.IntVar(&teammates, "max-teammates", onlyIf(fresh, team.DefaultMaxTeammates), "how many teammates it may have at once")
	f.StringVar(&create, "create", onlyIf(fresh, string(team.CreateAll)), "who may create tasks: all, or the leader (and people)")
	f.StringVar(&respawn, "respawn", onlyIf(fresh, string(team.RespawnAlways)), "what becomes of a lost member: respawn it, ask a person first, or release its task and leave it")
	f.StringVar(&approver, "approver", onlyIf(fresh, string(team.ByLeader)), "who approves plans: leader or human")
	f.StringVar(&check, "check", "", "a command that must pass on each merge, in addition to the checks of tasks (\"\": none)")
	f.StringVar(&dialect, "dialect", onlyIf(fresh, string(team.Native)), "the names of tools that models are told: native or claude; a role may have its own")
	f.StringVar(&isolation, "isolation", "", isolationUsage+"; from its next goal on")
	f.BoolVar(&delegate, "delegate", false, "the leader only leads: it has no tools of the workspace, from its next turn on; --delegate=false ends that")
	f.BoolVar(&planMode, "plan-mode", false, "teammates that are spawned change nothing before their plans are approved")
	completeFlags(cmd, map[string]cobra.CompletionFunc{
		"create":    fixed(string(team.CreateAll), string(team.CreateLeader)),
		"respawn":   fixed(team.Strings(team.RespawnAlways, team.RespawnAsk, team.RespawnRelease)...),
		"approver":  fixed(string(team.ByLeader), string(team.ByHuman)),
		"dialect":   fixed(string(team.Native), string(team.Claude)),
		"isolation": fixed(team.Isolation("").Values()...),
	})
	return func(cmd *cobra.Command) team.Choices {
		return team.Choices{
			Description:  ifGiven(cmd, "description", description),
			MaxTeammates: ifGiven(cmd, "max-teammates", teammates),
			Create:       ifGiven(cmd, "create", team.Create(create)),
			Respawn:      ifGiven(cmd, "respawn", team.Respawn(respawn)),
			Approver:     ifGiven(cmd, "approver", team.Approver(approver)),
			Check:        ifGiven(cmd, "check", check),
			Dialect:      ifGiven(cmd, "dialect", team.Dialect(dialect)),
			Isolation:    ifGiven(cmd, "isolation", team.Isolation(isolation)),
			Delegate:     ifGiven(cmd, "delegate", delegate),
			PlanMode:     ifGiven(cmd, "plan-mode", planMode),
		}
	}
}

// ifGiven returns a flag's value; nil if the flag is missing.
func ifGiven[T any](cmd *cobra.Command, flag string, v T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &v
}

// onlyIf returns v if shown is set, else its zero value.
func onlyIf[T any](shown bool, v T) (zero T) {
	if shown {
		return v
	}
	return zero
}

// number formats n, or returns "" for 0.
func number(n int) string { return onlyIf(n != 0, fmt.Sprint(n)) }

func teamsTable(teams []client.TeamStatus) table {
	t := table{columns: []column{{head: "TEAM", cut: true}, {head: "STATUS"}, {head: "MEMBERS", cut: true}, {head: "TASKS", cut: true}, {head: "GOAL", cut: true, drop: 1}}}
	for _, ts := range teams {
		status := cmp.Or(ts.End, string(ts.Status))
		if ts.Status == team.Active && ts.Leader == "" {
			status = "no leader"
		}
		t.add(string(ts.ID), status, orDash(strings.Join(explain.ByName(ts.Members), ", ")), orDash(strings.Join(explain.ByName(ts.Tasks), ", ")), orDash(printable(team.OneLine(ts.Goal))))
	}
	return t
}

func (a *app) printTeam(t team.Team) error {
	p := t.PolicyOf("")
	p.Sandbox, p.Isolation = cmp.Or(p.Sandbox, team.SandboxAuto), team.Isolation(isolationShown(t))
	if p.Network == nil {
		p.Network = team.Network{}
	}
	return a.printFields(t, string(t.ID), slices.Concat([]field{
		{"name", string(t.ID)}, {"status", t.InWords()}, {"description", t.Description}, {"goal", t.Goal}, {"goals so far", fmt.Sprint(t.GoalNumber)},
		{"max teammates", fmt.Sprint(t.MaxTeammates)}, {"create", string(t.Policies.Create)}, {"respawn", string(t.Policies.Respawn)}, {"approver", string(t.Policies.Approver)}, {"check", cmp.Or(t.Policies.Check, "-")},
		{"plan mode", fmt.Sprint(t.Policies.PlanMode)}, {"delegate mode", fmt.Sprint(t.Policies.Delegate)}, {"dialect", string(t.Dialect(team.Role{}))},
		{"lease", t.Lease().String()}, {"roles", strings.Join(slices.Sorted(maps.Keys(t.Roles)), ", ")}, {"workspace", t.Workspace},
	}, policyFields(p), []field{{"summary", t.Summary}, {"made", moment(&t.CreatedAt)}, {"ended", moment(t.FinishedAt)}, {"saved", savedShown(t)}}))
}

// savedShown returns when and to which file a team was saved that is to continue elsewhere.
func savedShown(t team.Team) string {
	if t.Saved == nil {
		return ""
	}
	return moment(&t.Saved.At) + " to " + t.Saved.File
}

// isolationShown returns the team's wish, and the isolation of its current or last goal.
func isolationShown(t team.Team) string {
	wish := string(cmp.Or(t.Policy.Isolation, team.IsolationAuto))
	switch {
	case t.Branch == nil:
		return wish
	case t.HasBranch():
		return wish + ", now " + string(team.Worktrees)
	}
	return strings.TrimSuffix(wish+", now "+string(team.Shared)+": "+t.Branch.Why, ": ")
}
