package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/view/screen"
)

func (a *app) topCmd() *cobra.Command {
	return &cobra.Command{
		Use: "top [TEAM]", Short: "See a team live on a screen, and step in", Args: atMost(1),
		Long: "top shows the members with what they do and why, the board, what happens, what waits for you, and each agent's\n" +
			"conversation, and lets you answer, approve, write, assign and stop. ? lists its keys and commands; q leaves, and the\n" +
			"team goes on. Without TEAM it lists the teams, unless there is only one.",
		ValidArgsFunction: first(completeTeams),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.screenable(); err != nil {
				return err
			}
			named := ""
			if len(args) > 0 {
				id, err := team.ParseTeamID(args[0])
				if err == nil {
					err = a.ofTeam(args[0], id)
				}
				if err != nil {
					return err
				}
				named = args[0]
			}
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			return a.connectedIn(ctx, func(ctx context.Context, c *client.Client, cfg config.Config) error {
				id, err := startTeam(ctx, c, cfg, named != "")
				if err != nil {
					return err
				}
				return a.onScreen(ctx, c, id, screen.Leave{})
			})
		},
	}
}

// screenable returns an error where no screen can be drawn, with the commands that show the same as text.
func (a *app) screenable() error {
	const instead = "teamctl status, teamctl agents, teamctl tasks and teamctl events -f show the same as text, also with -o json"
	switch {
	case !a.forPeople():
		return team.Errorf(team.InvalidArgument, "a screen has no output format %q", a.output).WithHint(instead)
	case !live(os.Stdout) || !term.IsTerminal(os.Stdin.Fd()):
		return team.Errorf(team.InvalidArgument, "a screen takes a terminal, as stdin and stdout").WithHint(instead)
	}
	return nil
}

// startTeam returns the team that the screen shows first: the one that was named or is set, or the only one;
// "" for the list of several.
func startTeam(ctx context.Context, c *client.Client, cfg config.Config, named bool) (team.TeamID, error) {
	for _, o := range cfg.Origins() {
		named = named || o.Name == "team" && o.Origin != "default"
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	if named {
		_, err := c.Open(ctx, cfg.Team)
		return cfg.Team, err
	}
	all, err := c.Names(ctx)
	if err != nil || len(all) != 1 {
		return "", err
	}
	return all[0].ID, nil
}

// onScreen shows the screen until the user leaves it. Messages meanwhile are printed after it.
func (a *app) onScreen(ctx context.Context, c *client.Client, id team.TeamID, leave screen.Leave) error {
	var held strings.Builder
	to := a.notes.Writer
	a.notes.to(&held)
	err := screen.Run(ctx, screen.Options{Client: c, Team: id, In: os.Stdin, Out: os.Stdout, Env: colourEnv(), Leave: leave, Traits: runtime.Traits})
	a.notes.to(to)
	if held.Len() > 0 {
		_, _ = a.notes.Write([]byte(held.String()))
	}
	return err
}

// watchScreen shows the goal on the screen until the user leaves it, and returns the team's record at the end of
// the goal. Leaving before that interrupts the command.
func (a *app) watchScreen(ctx context.Context, c *client.Client, t *client.Team, g *client.Goal, leave screen.Leave) (record team.Team, err error) {
	ended, done := make(chan struct{}), make(chan error, 1)
	waits, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		var err error
		if record, err = g.Wait(waits); err == nil {
			close(ended)
		}
		done <- err
	}()
	leave.Ended = ended
	if err = a.onScreen(ctx, c, t.ID(), leave); err != nil {
		stop()
	}
	defer time.AfterFunc(endWait, stop).Stop()
	werr := <-done // before record is read
	switch {
	case err != nil:
		return team.Team{}, a.ended(ctx, err)
	case werr != nil && waits.Err() != nil && ctx.Err() == nil:
		return team.Team{}, errInterrupted
	}
	return record, a.ended(ctx, werr)
}

// endWait is how long to wait for a goal's end that the screen has shown already.
const endWait = time.Second
