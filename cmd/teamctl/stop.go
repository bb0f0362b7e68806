package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// stopGrace is for what follows the asking: the force, and its answer.
const stopGrace = 15 * time.Second

func (a *app) stopCmd() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "stop [NAME...]", Short: "Stop members, or the whole team",
		Long: "stop asks the members to leave and waits for them; whoever has not left after --timeout is stopped by force.\n" +
			"Without a name it ends the team's goal as stopped and stops every member. Tasks they hold go back to the board.",
		ValidArgsFunction: completeMembers,
	}
	cmd.Flags().BoolVar(&force, "force", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var names []team.AgentID
		for _, arg := range args {
			name, err := team.ParseAgentID(arg)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		wait := a.timeout
		if wait == 0 {
			wait = defaultTimeout
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), wait+stopGrace, errTimeout)
		defer cancel()
		if force {
			wait = 0
		}
		return a.connectedIn(ctx, func(ctx context.Context, c *client.Client, cfg config.Config) error {
			t, err := c.Open(ctx, cfg.Team)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return a.stopTeam(ctx, t, wait)
			}
			return a.stopMembers(ctx, t, names, wait)
		})
	}
	return cmd
}

func (a *app) stopTeam(ctx context.Context, t *client.Team, wait time.Duration) error {
	if err := t.StopTeam(ctx, wait); err != nil {
		return err
	}
	return a.print(map[string]any{"team": t.ID(), "status": team.TeamStopped}, nil, []string{string(t.ID())}, func(io.Writer, bool) error {
		return a.say("team " + string(t.ID()) + " is stopped")
	})
}

// stopMembers stops the members side by side, so that one that is slow to leave
// does not use up the others' time.
func (a *app) stopMembers(ctx context.Context, t *client.Team, names []team.AgentID, wait time.Duration) error {
	for _, name := range names { // a name that is wrong changes nothing
		if _, err := t.Agent(ctx, name); err != nil {
			return err
		}
	}
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = t.Stop(ctx, name, wait) })
	}
	wg.Wait()
	var stopped []client.Agent
	for i, name := range names {
		if errs[i] == nil {
			var m client.Agent
			if m, errs[i] = t.Agent(ctx, name); errs[i] == nil {
				stopped = append(stopped, m)
			}
		}
	}
	if err := a.printAgents(t.ID(), stopped); err != nil {
		return err
	}
	return errors.Join(errs...)
}
