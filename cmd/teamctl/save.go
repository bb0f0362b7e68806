package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/config"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

func (a *app) saveCmd() *cobra.Command {
	var asCopy bool
	cmd := &cobra.Command{
		Use: "save FILE", Short: "Save a team to one file, to continue in another cluster", Args: exactly(1, "the FILE to write"),
		Long: "save writes all that NATS holds of the team to a file: board, mail, conversations, files, and the line's history.\n" +
			"It is refused while a member or a leader works for the team. From then on the team continues only where the file is loaded\n" +
			"(teamctl load), or here with `teamctl run --anyway`. With --copy it is saved as it is, also at work, and continues here.\n" +
			"Trees of tasks, homes of members and your checkout are not in it. The file is for your eyes only: it has\n" +
			"every conversation in it. Without a cluster in this folder and without --server it saves what this folder keeps.",
		ValidArgsFunction: first(aFile),
	}
	cmd.Flags().BoolVar(&asCopy, "copy", false, "save the team as it is; it continues here")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.stored("the team to be written", func(ctx context.Context, s *archive.Store, cfg config.Config) error {
			saved, err := s.Save(ctx, cfg.Team, args[0], asCopy)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("team %s is saved to %s (%s)", saved.Team, saved.File, sizeOf(saved.Bytes))
			if !asCopy {
				line += "; it continues where that is loaded: teamctl load " + saved.File
			}
			return a.printLine(saved, saved.File, line)
		})
	}
	return cmd
}

// anyway lets a saved team, if there is one, continue here.
func (a *app) anyway(ctx context.Context, c *client.Client, id team.TeamID) error {
	t, err := c.Open(ctx, id)
	if errors.Is(err, team.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	record, marked, err := t.Anyway(ctx)
	if marked && err == nil {
		a.notice(fmt.Sprintf("team %s was saved, and continues here as %s", id, record.Status))
	}
	return err
}

// sizeOf formats a number of bytes for people.
func sizeOf(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// stored runs f with a connection to the cluster's stored data.
func (a *app) stored(wait string, f func(ctx context.Context, s *archive.Store, cfg config.Config) error) error {
	return a.keeping(wait, func(ctx context.Context, cfg config.Config) error {
		s, err := archive.Connect(ctx, archive.Options{URL: cfg.Server, Replicas: cfg.Replicas})
		if err != nil {
			return err
		}
		defer s.Close()
		return f(ctx, s, cfg)
	})
}

// keeping runs f while the cluster's server, whose address is in the settings, runs. Where no cluster runs in
// this folder, and no server is named, it starts a server for the folder's data, without processes for its
// teams. It has no time limit.
func (a *app) keeping(wait string, f func(ctx context.Context, cfg config.Config) error) error {
	ctx, cancel := a.bounded(a.cmd.Context())
	defer cancel()
	defer a.waitsFor(wait)()
	cfg, err := a.clientSettings()
	if err != nil {
		return err
	}
	if find(cfg) != noCluster {
		return a.ended(ctx, a.linked(ctx, cfg, func(ctx context.Context, _ *client.Client) error { return f(ctx, cfg) }))
	}
	server, err := embedded.Start(embedded.Options{Dir: cfg.DataDir})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	cfg.Server = server.URL()
	return a.ended(ctx, f(ctx, cfg))
}

// loadedTeam is the result of load for programs.
type loadedTeam struct {
	Team   team.TeamID  `json:"team"`
	Status team.Status  `json:"status"`
	Goal   string       `json:"goal"`
	Loaded *team.Loaded `json:"loaded"`
}

func (a *app) loadCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "load FILE", Short: "Make the team of a file that save has written", Args: exactly(1, "the FILE of a save"),
		Long: "load makes the team that `teamctl save` has written, under its name, with every message and every conversation.\n" +
			"The whole file is verified first: one that was cut short or changed is refused, and nothing is made. There must be no team\n" +
			"of that name here. A goal that was under way continues as soon as a leader finds it; members come back as after a crash.\n" +
			"A load that was killed is repeated, or taken back with `teamctl teams rm`. Load only what you trust: roles and what\n" +
			"members may do come with it. Without a cluster in this folder and without --server the team is kept in this folder.",
		ValidArgsFunction: first(aFile),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := archive.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		return a.stored("the team to be made", func(ctx context.Context, s *archive.Store, cfg config.Config) error {
			if cmd.Flags().Changed("team") && cfg.Team != f.Head.Team {
				return team.Errorf(team.InvalidArgument, "%s holds team %s, which is loaded under this name only", args[0], f.Head.Team).WithHint("leave --team out")
			}
			t, err := s.Load(ctx, f)
			if err != nil {
				return err
			}
			next := "set it a goal: " + a.command("run GOAL", t.ID)
			if t.AtWork() {
				next = "its goal continues; to follow it: " + a.command("run --resume", t.ID)
			}
			return a.printLine(loadedTeam{t.ID, t.Status, t.Goal, t.Loaded}, string(t.ID),
				fmt.Sprintf("team %s is loaded, as it was on %s; %s", t.ID, f.Head.Created.Local().Format(time.DateTime), next))
		})
	}
	return cmd
}
